import { checkStoreUrl, StoredSessionStore } from '@agents/core/session';

import { readStoreOptions } from './options.ts';
import type { RedisConnection, RedisSessionOptions } from './options.ts';
import { TIMEOUT_MS } from './session.ts';
import type { RedisSession } from './session.ts';
import { RedisStore } from './store-backend.ts';

/**
 * All sessions under a key prefix, those of the Python SDK too. Found by a scan of the keys: unordered, and one that others
 * write to meanwhile may come twice. With `index: true` those that this store's sessions wrote come first, in order.
 *
 * @throws UserError for options of a wrong kind
 * @example
 * await using store = RedisSessionStore.open('redis://localhost:6379');
 * const { sessions } = await store.list({ withCount: true });
 */
export class RedisSessionStore extends StoredSessionStore<RedisSession> {
  constructor(
    options: RedisConnection &
      RedisSessionOptions & {
        /** Keeps a sorted set, so that lists are ordered. Default `false`. */ index?: boolean | undefined;
      },
  ) {
    const { config, index } = readStoreOptions(options);
    const timeoutMs = config.session.operationTimeoutMs ?? TIMEOUT_MS;
    super(new RedisStore(config, index), { name: 'RedisSessionStore', timeoutMs });
  }

  /**
   * `redis://…`, `rediss://…`
   *
   * @throws UserError for another URL; it does not show it
   */
  static open(url: string): RedisSessionStore {
    return new RedisSessionStore({ url: checkStoreUrl(url, ['redis', 'rediss'], 'RedisSessionStore.open()') });
  }
}
