import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';
import type { MongoClient } from 'mongodb';

import { append } from './append.ts';
import { makeClient } from './arguments.ts';
import type { Config } from './arguments.ts';
import { clear } from './clear.ts';
import { closeClient, ensureConnected } from './connect.ts';
import { ensureIndexes } from './indexes.ts';
import { collectionsOf, operationKey } from './layout.ts';
import type { Collections } from './layout.ts';
import { isInDoubt } from './outcome.ts';
import { pop } from './pop.ts';
import { readHistory } from './read.ts';
import { replace } from './replace.ts';

/** What the parts of a history work with. */
export interface Scope extends Collections {
  readonly sessionId: string;
  readonly ttlMs: number | undefined;
  /** For which callers wait. */
  readonly timeoutMs: number;
}

/** The history of one session. Nothing is sent before the first call. */
export class MongoDBHistory implements HistoryBackend {
  readonly #config: Config;
  readonly #scope: Scope;
  /** Of the last look: a guess that every read confirms. */
  #generation: number | undefined;
  readonly close: (() => Promise<void>) | undefined;

  constructor(sessionId: string, config: Config) {
    const { connection, name, place, ttlMs, timeoutMs } = config;
    const client: MongoClient =
      'client' in connection ? connection.client : makeClient(connection.url, connection.clientOptions, name);
    this.#config = config;
    this.#scope = { ...collectionsOf(client, place), sessionId, ttlMs, timeoutMs };
    this.close = 'client' in connection ? undefined : () => closeClient(client, timeoutMs);
  }

  async read(count: number | undefined): Promise<StoredHistory> {
    await ensureConnected(this.#scope.client);
    const { history, generation } = await readHistory(this.#scope, count, this.#generation);
    this.#generation = generation;
    return history;
  }

  async write(change: HistoryWrite): Promise<string> {
    const { operation } = change;
    await ensureConnected(this.#scope.client);
    await ensureIndexes(this.#scope, this.#config);
    const key = operation && { id: operationKey(operation.id), digest: operation.digest };
    if (change.type === 'append') return await append(this.#scope, change, key);
    return await replace(this.#scope, change, key);
  }

  async pop(): Promise<StoredRecord | undefined> {
    await ensureConnected(this.#scope.client);
    const { record, generation } = await pop(this.#scope, this.#generation);
    this.#generation = generation;
    return record;
  }

  async clear(): Promise<void> {
    await ensureConnected(this.#scope.client);
    await ensureIndexes(this.#scope, this.#config);
    this.#generation = await clear(this.#scope);
  }

  async ping(): Promise<void> {
    await ensureConnected(this.#scope.client);
    await this.#scope.client.db(this.#config.place.database).command({ ping: 1 });
  }

  outcomeUnknown(error: unknown): boolean {
    return isInDoubt(error);
  }
}
