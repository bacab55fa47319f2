export { MongoDBSession } from './session.ts';
export { MongoDBSessionStore } from './store.ts';
export type { MongoDBConnection, MongoDBOptions, MongoDBSessionOptions } from './options.ts';
