export { DrizzleSession } from './session.ts';
export { DrizzleSessionStore } from './store.ts';
export type { DrizzleDatabase, DrizzleOptions, DrizzleSessionOptions } from './options.ts';
export type { AgentTableOptions, AgentTables } from './tables.ts';
