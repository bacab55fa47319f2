/// <reference lib="esnext.disposable" />
import { getLogger, UserError } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { encodeItem, SessionClosedError, SessionItemError, SessionVersionConflictError } from '@agents/core/session';
import type { HistoryOperation, ManagedSession, SessionSettings } from '@agents/core/session';

import {
  checkItems,
  checkOperation,
  checkSessionId,
  checkWriteOptions,
  readOptions,
  resolveLimit,
} from './arguments.ts';
import type { Config } from './arguments.ts';
import { retryBusy } from './busy.ts';
import { operationOf, operationWith, sameItem } from './change.ts';
import type { Operation } from './change.ts';
import { acquire } from './connection.ts';
import type { Connection } from './connection.ts';
import type { SQLiteSessionOptions } from './options.ts';
import { corruptError, decodeRow, newestValid, readHistory } from './read.ts';
import type { History } from './read.ts';
import type { Row, Statements } from './statements.ts';

/**
 * Tables of the Python SDK. Safe with several processes, Python ones included. Nothing is opened before the first call;
 * sessions of one file share one connection. Errors of SQLite itself (a full disk, a file that is no database) pass
 * unchanged.
 *
 * @throws UserError `session_id_invalid`, `session_name_invalid`, and for options of a wrong kind
 * @example
 * const session = new SQLiteSession('user-42', 'chat.db');
 * await run(agent, 'My name is Ada.', { session });
 * await session.close(); // lets go of the file; on Node 24 `await using session = …` does it by itself
 */
export class SQLiteSession<T extends object = AgentInputItem> implements ManagedSession<T> {
  readonly sessionId: string;
  readonly sessionSettings: SessionSettings | undefined;
  readonly #config: Config;
  readonly #connection: Connection;
  readonly #ownsDatabase: boolean;
  #closed = false;
  #closing: Promise<void> | undefined;
  /** Ends when everything that was called before has ended: calls take effect in their order. */
  #last: Promise<unknown> = Promise.resolve();
  #warned = false;

  constructor(sessionId: string, options?: string | URL | SQLiteSessionOptions) {
    checkSessionId(sessionId);
    this.#config = readOptions(options);
    this.sessionId = sessionId;
    this.sessionSettings = this.#config.sessionSettings;
    this.#ownsDatabase = this.#config.target === 'memory' || 'path' in this.#config.target;
    this.#connection = acquire(this.#config);
  }

  get closed(): boolean {
    return this.#closed;
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  async getItems(limit?: number): Promise<T[]> {
    return (await this.#history(limit)).items;
  }

  async addItems(items: readonly T[]): Promise<void> {
    const texts = this.#encode(checkItems(items, 'addItems()'));
    await this.#write((statements) => statements.append(this.sessionId, texts), texts.length === 0);
  }

  async popItem(): Promise<T | undefined> {
    const skipped: Row[] = [];
    const item = await this.#write((statements) => {
      skipped.length = 0;
      for (;;) {
        const row = statements.newest(this.sessionId, 1)[0];
        if (row === undefined) return undefined;
        statements.deleteMessage(row.id);
        const decoded = decodeRow<T>(row);
        if (decoded !== undefined) return decoded;
        skipped.push(row);
      }
    });
    for (const row of skipped) this.#report(row);
    return item;
  }

  async clearSession(): Promise<void> {
    await this.#write((statements) => statements.clear(this.sessionId));
  }

  async applyHistoryTransaction(operation: HistoryOperation<T>): Promise<void> {
    const transaction = checkOperation(operation);
    if (transaction.type === 'append_items') {
      const texts = this.#encode(transaction.items);
      await this.#change(operationOf(operation, texts), (statements) => statements.append(this.sessionId, texts));
      return;
    }
    const expected = this.#encode(transaction.expectedSuffix);
    const replacement = this.#encode(transaction.replacement);
    await this.#change(operationOf(operation, expected, replacement), (statements) =>
      this.#replaceSuffix(statements, expected, replacement),
    );
  }

  async readHistory(limit?: number): Promise<{ items: T[]; version: string }> {
    if (resolveLimit(limit, this.sessionSettings) === 0) {
      return { items: [], version: await this.#write((statements) => statements.version(this.sessionId)) };
    }
    const { items, newestId } = await this.#history(limit);
    return { items, version: String(newestId) };
  }

  async appendIfVersion(version: string, items: readonly T[], options?: { operationId?: string }): Promise<string> {
    checkWriteOptions(options, ['operationId'], 'appendIfVersion()');
    const texts = this.#encode(checkItems(items, 'appendIfVersion()'));
    const operation = operationWith(options?.operationId, 'append_items', texts);
    return await this.#change(operation, (statements) => {
      this.#checkVersion(statements, version);
      statements.append(this.sessionId, texts);
    });
  }

  async replaceHistory(items: readonly T[], options?: { ifVersion?: string; operationId?: string }): Promise<string> {
    checkWriteOptions(options, ['ifVersion', 'operationId'], 'replaceHistory()');
    const texts = this.#encode(checkItems(items, 'replaceHistory()'));
    const operation = operationWith(options?.operationId, 'replace_history', texts);
    return await this.#change(operation, (statements) => {
      if (options?.ifVersion !== undefined) this.#checkVersion(statements, options.ifVersion);
      statements.deleteMessages(this.sessionId);
      statements.append(this.sessionId, texts);
    });
  }

  async ping(): Promise<boolean> {
    this.#checkOpen();
    try {
      await this.#query((statements) => statements.version(this.sessionId));
      return true;
    } catch {
      return false;
    }
  }

  /** Final from its first call; what was called before still ends. Does nothing for a database that was handed in. */
  async close(): Promise<void> {
    if (!this.#ownsDatabase) return;
    this.#closed = true;
    this.#closing ??= this.#enqueue(() => this.#connection.release());
    try {
      await this.#closing;
    } catch (error) {
      // Still closed; the next call tries again to let go of the file.
      this.#closing = undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #history(limit: number | undefined): Promise<History<T>> {
    const count = resolveLimit(limit, this.sessionSettings);
    this.#checkOpen();
    if (count === 0) return { items: [], newestId: 0 };
    return await this.#enqueue(() =>
      readHistory<T>({
        sessionId: this.sessionId,
        limit: count,
        query: (work) => this.#query(work),
        corrupt: (row) => {
          if (this.#config.throwCorrupt) throw corruptError(this.sessionId, row);
          this.#report(row);
        },
      }),
    );
  }

  /** One change under an operation id; gives the version after it, or that of the first time. */
  async #change(operation: Operation | undefined, apply: (statements: Statements) => void): Promise<string> {
    return await this.#write((statements) => {
      const known = operation && statements.operation(this.sessionId, operation.id);
      if (known !== undefined) {
        if (known.digest === operation?.digest) return known.result;
        throw new UserError(
          'This operation id was used for another change; nothing was changed. An operation id belongs to one change.',
          {
            code: 'session_operation_mismatch',
          },
        );
      }
      apply(statements);
      const version = statements.version(this.sessionId);
      if (operation !== undefined) statements.addOperation(this.sessionId, operation.id, operation.digest, version);
      return version;
    });
  }

  #replaceSuffix(statements: Statements, expected: readonly string[], replacement: readonly string[]): void {
    const tail = newestValid(statements, this.sessionId, expected.length).toReversed();
    if (tail.length !== expected.length || tail.some(({ text }, index) => !sameItem(text, expected[index] ?? ''))) {
      throw new UserError('The history does not end with the expected items; nothing was changed.', {
        code: 'session_suffix_mismatch',
      });
    }
    for (const { id } of tail) statements.deleteMessage(id);
    statements.append(this.sessionId, replacement);
  }

  #checkVersion(statements: Statements, expected: string): void {
    const actual = statements.version(this.sessionId);
    if (actual === expected) return;
    throw new SessionVersionConflictError(
      'The history was changed since it was read; nothing was written. Read it again.',
      {
        sessionId: this.sessionId,
        expected,
        actual,
      },
    );
  }

  /** In a transaction of its own, after what was called before. */
  async #write<R>(work: (statements: Statements) => R, nothingToDo = false): Promise<R> {
    this.#checkOpen();
    if (nothingToDo) return undefined as R;
    return await this.#enqueue(() => this.#query((statements) => this.#connection.transaction(() => work(statements))));
  }

  async #query<R>(work: (statements: Statements) => R): Promise<R> {
    const { names, busyTimeoutMs } = this.#config;
    return await retryBusy(busyTimeoutMs, this.sessionId, () => work(this.#connection.statements(names)));
  }

  #enqueue<R>(work: () => R | Promise<R>): Promise<R> {
    const result = this.#last.then(work);
    // A failed call does not hold up the next one.
    this.#last = result.catch(() => undefined);
    return result;
  }

  #encode(items: readonly object[]): string[] {
    return Array.from(items, (item, index) => {
      try {
        return encodeItem(item, { style: 'spaced' });
      } catch (error) {
        if (!(error instanceof SessionItemError)) throw error;
        throw new SessionItemError(error.message.replace('Item 0', `Item ${index}`), {
          sessionId: this.sessionId,
          index,
          path: error.path,
          cause: error,
        });
      }
    });
  }

  #report(row: Row): void {
    const { onCorruptItem } = this.#config;
    const info = {
      sessionId: this.sessionId,
      position: row.id,
      reason: typeof row.text === 'string' ? 'not the JSON text of an object' : 'not text',
    };
    if (onCorruptItem !== undefined) {
      const failed = (): void => getLogger('session').warn('onCorruptItem failed; the record is skipped all the same.');
      // What a popped item is, or what was read, is settled: nobody waits for the callback, and its failure is its own.
      try {
        const answer: unknown = onCorruptItem(info);
        Promise.resolve(answer).catch(failed);
      } catch {
        failed();
      }
    } else if (!this.#warned) {
      this.#warned = true;
      getLogger('session').warn(
        'A stored record cannot be decoded and is skipped; further ones of this session are skipped in silence.',
        info,
      );
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new SessionClosedError('The session was closed.', { sessionId: this.sessionId });
  }
}
