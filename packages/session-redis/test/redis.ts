import { env } from 'node:process';

/** The Redis that tests share: each uses keys of its own. */
export function redisUrl(): string {
  const { TEST_REDIS_URL: url, TEST_REDIS_URL_MISSING: missing } = env;
  if (missing !== undefined) throw new Error(missing);
  if (url === undefined) throw new Error('TEST_REDIS_URL is to be the address of a Redis that may be written to.');
  return url;
}

let drawn = 0;

/** A prefix that no other test has. */
export const freshPrefix = (): string => `test:${process.pid}:${Date.now()}:${++drawn}`;
