import type { AgentInputItem } from '@agents/core';
import { RedisSession } from '@agents/session-redis';
import { Redis } from 'ioredis';
import { itemsOf, textsOf } from '../floor.ts';
import { ours } from '../ours.ts';
import type { OpenBackend, Store } from '../store.ts';

/**
 * The layout of the Python SDK: a list of the items, a hash that says when the session was updated. One transaction, sent
 * and answered at once; it is not sent again when its answer is lost, for it would be stored twice.
 */
class Floor implements Store {
  readonly #client: Redis;
  readonly #session: string;
  readonly #messages: string;

  constructor(client: Redis, sessionId: string) {
    this.#client = client;
    this.#session = `bare:${sessionId}`;
    this.#messages = `${this.#session}:messages`;
  }

  async append(items: readonly object[]): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const answers = await this.#client
      .multi()
      .rpush(this.#messages, ...textsOf(items))
      .hset(this.#session, 'updated_at', now)
      .exec();
    const failure =
      answers === null ? new Error('The transaction was discarded.') : answers.find(([error]) => error)?.[0];
    if (failure) throw failure;
  }

  async tail(count: number): Promise<readonly object[]> {
    return itemsOf(await this.#client.lrange(this.#messages, -count, -1));
  }

  async close(): Promise<void> {}
}

export const open: OpenBackend = async (url) => {
  const bare = new Redis(url, { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
  const client = new Redis(url);
  return {
    floor: async (sessionId) => new Floor(bare, sessionId),
    session: async (sessionId) => ours(new RedisSession<AgentInputItem | object>(sessionId, { client })),
    async close() {
      await Promise.all([bare.quit(), client.quit()]);
    },
  };
};
