export { RedisSession } from './session.ts';
export type { RedisConnection, RedisKeyOptions, RedisSessionOptions } from './options.ts';
export { RedisSessionStore } from './store.ts';
