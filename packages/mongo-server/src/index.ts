// A MongoDB server for tests. Private; never a dependency of what is published.
export { MongoServer } from './server.ts';
export type { MongoServerOptions } from './server.ts';
export { readMessages } from './wire.ts';
export type { Message } from './wire.ts';
