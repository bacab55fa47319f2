export type { SQLiteHandle, SQLiteOptions, SQLiteSessionOptions } from './options.ts';
export { SQLiteSession } from './session.ts';
export { SQLiteSessionStore } from './store.ts';
