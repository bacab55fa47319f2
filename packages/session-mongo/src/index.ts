export { MongoDBSession } from './session.ts';
export type { MongoDBConnection, MongoDBOptions, MongoDBSessionOptions } from './options.ts';
