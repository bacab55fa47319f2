import {
  matchSuffix,
  operationMismatch,
  SessionSchemaError,
  suffixMismatch,
  versionConflict,
} from '@agents/core/session';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';

import type { Changes, Outcome, WriteRequest } from './changes.ts';
import { AnswerLost } from './connection.ts';
import type { Connection } from './connection.ts';
import type { SessionKeys } from './keys.ts';
import { findOperation, newOperationId, shortDigest } from './operations.ts';
import type { KnownOperation } from './operations.ts';
import { readSize, readTail } from './read.ts';
import type { Tail } from './read.ts';

export interface RedisHistorySetup {
  readonly keys: SessionKeys;
  readonly connection: Connection;
  readonly changes: Changes;
  readonly ttlMs: number | undefined;
  /** After a write that is stored, whatever becomes of it. */
  readonly written?: ((sessionId: string) => Promise<void>) | undefined;
}

/** The history that a change was made for, of one moment. */
interface Seen {
  /** `undefined`: any will do. */
  readonly version: string | undefined;
  /** The elements at the end that it removes. */
  readonly expected: readonly Buffer[];
  /** Which of these are put back: corrupt ones in between. */
  readonly kept: readonly Buffer[];
}

/** The history of one session in Redis. Nothing is sent before the first call. */
export class RedisHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #setup: RedisHistorySetup;
  readonly close: (() => Promise<void>) | undefined;

  constructor(sessionId: string, setup: RedisHistorySetup) {
    this.#sessionId = sessionId;
    this.#setup = setup;
    this.close = setup.connection.close?.bind(setup.connection);
  }

  async read(count: number | undefined): Promise<StoredHistory> {
    return await this.#tail(count);
  }

  async write(change: HistoryWrite): Promise<string> {
    for (;;) {
      const version = await this.#write(change);
      // `undefined`: somebody else changed the history between our look at it and our change.
      if (version !== undefined) return version;
    }
  }

  /** Looks at the newest record, then removes it if nothing was changed since: sent twice, it removes one. */
  async pop(): Promise<StoredRecord | undefined> {
    const { connection, changes, keys } = this.#setup;
    for (;;) {
      const { records, version } = await this.#tail(1);
      const record = records[0];
      if (record === undefined) return undefined;
      const request = { operationId: newOperationId(), sessionId: this.#sessionId, expected: record.raw, version };
      const outcome = await connection.use((client) => changes.pop(client, keys, request));
      if (outcome.what === 'type') throw wrongType(outcome, this.#sessionId);
      if (outcome.what !== 'changed') return record;
    }
  }

  async clear(): Promise<void> {
    await this.remove();
  }

  /**
   * Looks first, then removes what it saw: sent twice, or late, it does not remove what others wrote since. What nobody has
   * updated is known by its time, whatever its version.
   *
   * @param idleSince milliseconds since 1970: only what was not updated since then
   * @returns how many items are gone; `undefined`: the session was not there, or was updated since
   */
  async remove(idleSince?: number): Promise<number | undefined> {
    const { connection, changes, keys } = this.#setup;
    for (;;) {
      const seen = idleSince === undefined ? await this.#tail(0) : await connection.use((c) => readSize(c, keys));
      const { version, length, exists } = seen;
      const outcome = await connection.use((client) => changes.clear(client, keys, { version, idleSince }));
      if (outcome.what === 'type') throw wrongType(outcome, this.#sessionId);
      if (outcome.what === 'removed') return outcome.items;
      // The first time that it was sent, it did it.
      if (outcome.what === 'gone') return outcome.sentAgain && exists ? length : undefined;
      if (outcome.what === 'kept') return undefined;
    }
  }

  async ping(): Promise<void> {
    await this.#setup.connection.use((client) => client.ping());
  }

  outcomeUnknown(error: unknown): boolean {
    return error instanceof AnswerLost;
  }

  async #write(change: HistoryWrite): Promise<string | undefined> {
    const { operation, ifVersion } = change;
    const found = await this.#look(change);
    if ('known' in found) return versionOfKnown(found.known, operation?.digest);
    const { connection, changes, keys, ttlMs, written } = this.#setup;
    const request: WriteRequest = {
      // Every change has an id: clients send again what was not answered.
      operationId: operation?.id ?? newOperationId(),
      digest: shortDigest(operation?.digest),
      sessionId: this.#sessionId,
      ttlMs: change.upkeep === true ? 'keep' : ttlMs,
      version: ifVersion ?? found.version,
      mode: change.type === 'replace' ? 'replace' : found.expected.length > 0 ? 'suffix' : 'append',
      expected: found.expected,
      push: [...found.kept, ...change.texts],
    };
    const outcome = await connection.use((client) => changes.write(client, keys, request));
    if (outcome.what === 'done') {
      if (change.upkeep !== true) await written?.(this.#sessionId);
      return outcome.version;
    }
    if (outcome.what === 'known') return versionOfKnown(outcome, operation?.digest);
    if (outcome.what === 'type') throw wrongType(outcome, this.#sessionId);
    if (outcome.what === 'changed' && ifVersion !== undefined)
      throw versionConflict(this.#sessionId, ifVersion, outcome.version);
    return undefined;
  }

  /** What a change has to know of the history before it removes something of it. */
  async #look(change: HistoryWrite): Promise<Seen | { readonly known: KnownOperation }> {
    const nothing: Seen = { version: undefined, expected: [], kept: [] };
    if (change.type === 'append') return nothing;
    if (change.type === 'replace')
      return change.ifVersion === undefined ? { ...nothing, version: (await this.#tail(0)).version } : nothing;
    if (change.expected.length === 0) return nothing;
    const found = await this.#findSuffix(change.expected);
    if (!('operations' in found)) return found;
    const known = change.operation && findOperation(found.operations, change.operation.id);
    if (known === undefined) throw suffixMismatch();
    return { known };
  }

  /** Corrupt records do not count; with too few others the window grows. What the session remembers, when the end is another. */
  async #findSuffix(expected: readonly string[]): Promise<Seen | { operations: string }> {
    for (let count = expected.length; ; count = Math.max(2 * count, 16)) {
      const { records, operations, version } = await this.#tail(count, { operations: true });
      const matched = matchSuffix(records, expected);
      if (matched?.length === expected.length) {
        const tail = records.slice(matched[0]);
        const removed = new Set(matched.map((index) => records[index]));
        return {
          version,
          expected: tail.map(({ raw }) => raw),
          kept: tail.filter((record) => !removed.has(record)).map(({ raw }) => raw),
        };
      }
      if (matched === undefined || records.length < count) return { operations };
    }
  }

  async #tail(count: number | undefined, options?: { operations: boolean }): Promise<Tail> {
    const { connection, keys } = this.#setup;
    return await connection.use((client) => readTail(client, keys, count, options));
  }
}

export function wrongType(
  { expected, actual }: Extract<Outcome, { what: 'type' }>,
  sessionId: string,
): SessionSchemaError {
  return new SessionSchemaError(
    `A key of this session holds a ${actual} where a ${expected} is needed; nothing was changed. Another program uses this name: choose another keyPrefix or session id.`,
    { sessionId },
  );
}

function versionOfKnown(known: KnownOperation, digest: string | undefined): string {
  // Of ids of ours none was stored either.
  if (known.digest !== shortDigest(digest)) throw operationMismatch();
  return known.version;
}
