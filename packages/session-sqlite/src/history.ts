import { matchSuffix, operationMismatch, suffixMismatch, versionConflict } from '@agents/core/session';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';

import type { Config } from './arguments.ts';
import { retryBusy } from './busy.ts';
import { acquire } from './connection.ts';
import type { Connection } from './connection.ts';
import type { Row, Statements } from './statements.ts';

/** Rows fetched at once. */
const PAGE = 500;
/** Reading a long history lets others run this often. */
const YIELD_AFTER_MS = 15;
const ATTEMPTS = 10;

/** The history of one session in a file. Nothing is opened before the first call. */
export class SQLiteHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #config: Config;
  readonly #connection: Connection;
  readonly close: (() => void) | undefined;

  constructor(sessionId: string, config: Config) {
    this.#sessionId = sessionId;
    this.#config = config;
    this.#connection = acquire(config);
    const ownsDatabase = config.target === 'memory' || 'path' in config.target;
    this.close = ownsDatabase ? () => this.#connection.release() : undefined;
  }

  /**
   * A long history is read in pages, and others run in between; rows are only ever removed from the newest on, so what was
   * read is of one moment as long as the newest row of the first page is still there, and is read again if it is not.
   */
  async read(count: number | undefined): Promise<StoredHistory> {
    if (count === 0) return { records: [], version: await this.#query((statements) => this.#version(statements)) };
    for (let attempt = 0; ; attempt++) {
      const history = await this.#readPages(count, attempt < ATTEMPTS ? PAGE : Number.MAX_SAFE_INTEGER);
      if (history !== undefined) return history;
    }
  }

  async write(change: HistoryWrite): Promise<string> {
    const { operation, ifVersion } = change;
    return await this.#transaction((statements) => {
      const known = operation && statements.operation(this.#sessionId, operation.id);
      if (known !== undefined) {
        if (known.digest !== operation?.digest) throw operationMismatch();
        return known.result;
      }
      const actual = ifVersion === undefined ? undefined : this.#version(statements);
      if (ifVersion !== undefined && actual !== ifVersion)
        throw versionConflict(this.#sessionId, ifVersion, actual ?? '');
      if (change.type === 'replace') statements.deleteMessages(this.#sessionId);
      else if (change.type === 'replace_suffix') this.#deleteSuffix(statements, change.expected);
      statements.append(this.#sessionId, change.texts);
      const version = this.#version(statements);
      if (operation) statements.addOperation(this.#sessionId, operation.id, operation.digest, version);
      return version;
    });
  }

  async pop(): Promise<StoredRecord | undefined> {
    return await this.#transaction((statements) => {
      const [row] = statements.newest(this.#sessionId, 1);
      if (row === undefined) return undefined;
      statements.deleteMessage(row.id);
      return recordOf(row);
    });
  }

  async clear(): Promise<void> {
    await this.#transaction((statements) => statements.clear(this.#sessionId));
  }

  #version(statements: Statements): string {
    return statements.version(this.#sessionId);
  }

  /** `undefined`: what was read was removed meanwhile. */
  async #readPages(limit = Number.MAX_SAFE_INTEGER, page: number): Promise<StoredHistory | undefined> {
    const rows: Row[] = [];
    let since = performance.now();
    for (let before: number | undefined; rows.length < limit; before = rows.at(-1)?.id) {
      const count = Math.min(limit - rows.length, page);
      const more = await this.#query((statements) => statements.newest(this.#sessionId, count, before));
      for (const row of more) rows.push(row);
      if (more.length < count) break;
      if (performance.now() - since < YIELD_AFTER_MS) continue;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      since = performance.now();
    }
    const newestId = rows[0]?.id ?? 0;
    if (rows.length > page && !(await this.#query((statements) => statements.hasMessage(this.#sessionId, newestId))))
      return undefined;
    return { records: rows.map(recordOf).toReversed(), version: String(newestId) };
  }

  #deleteSuffix(statements: Statements, expected: readonly string[]): void {
    if (expected.length === 0) return;
    for (let count = expected.length; ; count = Math.max(2 * count, 16)) {
      const rows = statements.newest(this.#sessionId, count).toReversed();
      const matched = matchSuffix(rows.map(recordOf), expected);
      if (matched?.length === expected.length) {
        for (const index of matched) statements.deleteMessage(rows[index]?.id ?? 0);
        return;
      }
      // Corrupt rows do not count; with too few others the window grows.
      if (matched === undefined || rows.length < count) throw suffixMismatch();
    }
  }

  async #transaction<R>(work: (statements: Statements) => R): Promise<R> {
    return await this.#query((statements) => this.#connection.transaction(() => work(statements)));
  }

  async #query<R>(work: (statements: Statements) => R): Promise<R> {
    const { names, busyTimeoutMs } = this.#config;
    return await retryBusy(busyTimeoutMs, this.#sessionId, () => work(this.#connection.statements(names)));
  }
}

function recordOf({ id, text }: Row): StoredRecord {
  return { text: typeof text === 'string' ? text : undefined, position: id };
}
