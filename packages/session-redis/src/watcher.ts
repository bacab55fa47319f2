import type { Redis } from 'ioredis';

import { disconnect, isAnswer } from './connection.ts';

/** A server that takes longer has lost the connection. */
const TIMEOUT_MS = 30_000;

const watchers = new WeakMap<Redis, Watcher>();

/**
 * A connection beside a client, for WATCH: what is watched belongs to the connection, and on the client's own one the
 * commands of others would come between. One for each client, used by one change after the other.
 */
export class Watcher {
  readonly #client: Redis;
  readonly #connection: Redis;
  #last: Promise<unknown> = Promise.resolve();
  /** Why it could not connect; the driver's rejection says only that it did not. */
  #problem: unknown;

  private constructor(client: Redis) {
    this.#client = client;
    this.#connection = client.duplicate({
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      commandTimeout: client.options.commandTimeout ?? TIMEOUT_MS,
    });
    this.#connection.on('error', (error: unknown) => {
      this.#problem = error;
    });
    // An idle one does not keep the process alive, and goes with the client.
    this.#connection.on('connect', () => void this.#connection.stream.unref());
    client.once('end', () => {
      watchers.delete(client);
      this.#connection.disconnect();
    });
  }

  static of(client: Redis): Watcher {
    const watcher = watchers.get(client) ?? new Watcher(client);
    watchers.set(client, watcher);
    return watcher;
  }

  /** It is never mended under way: what is watched at the beginning of the work is watched at its end, or the work fails. */
  exclusive<R>(work: (connection: Redis) => Promise<R>): Promise<R> {
    const result = this.#last.then(async () => {
      const connection = this.#connection;
      // Its owner has quit it: refused as the client itself would do it, not done over a connection that stays behind.
      if (this.#client.status === 'end') throw new Error('Connection is closed.');
      if (connection.status !== 'ready') await this.#connect();
      try {
        return await work(connection);
      } catch (error) {
        // What is watched, and what is still to be answered, goes with the connection.
        if (!isAnswer(error)) await disconnect(connection);
        throw error;
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #connect(): Promise<void> {
    this.#problem = undefined;
    try {
      await this.#connection.connect();
    } catch (error) {
      throw this.#problem ?? error;
    }
  }
}
