import { matchSuffix, operationMismatch, sessionExists, suffixMismatch, versionConflict } from '@agents/core/session';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';

import type { Usage } from '@agents/core';

import type { Config } from './arguments.ts';
import { BranchRows } from './branch-rows.ts';
import { createBranchTables, foreignBranches } from './branch-schema.ts';
import { BranchState, clearSession, makeBranch, unknownBranch } from './branch.ts';
import { BranchStatements } from './branch-statements.ts';
import { retryBusy } from './busy.ts';
import { acquire } from './connection.ts';
import type { Branches, Connection } from './connection.ts';
import type { Database } from './driver.ts';
import { PlainRows } from './rows.ts';
import type { HistoryRows } from './rows.ts';
import type { Row, Statements } from './statements.ts';
import { sumOfUsage, usageRow } from './usage.ts';

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
  readonly #shared: boolean;
  readonly #branch: BranchState;
  readonly close: (() => void) | undefined;

  /** @param shared of a store, which lets go of it: this history has nothing to close then */
  constructor(sessionId: string, config: Config, shared?: Connection, branch: BranchState = new BranchState('main')) {
    this.#sessionId = sessionId;
    this.#config = config;
    this.#shared = shared !== undefined;
    this.#branch = branch;
    this.#connection = shared ?? branch.connection ?? acquire(config);
    const isOwn = shared === undefined && (config.target === 'memory' || 'path' in config.target);
    this.close = isOwn ? () => this.#connection.release() : undefined;
  }

  /** After a clear: `main`. */
  get branchId(): string {
    return this.#branch.id;
  }

  /**
   * The same session on another branch.
   *
   * @param fromTurn makes it, with the turns before that one, `inOrder` of what was called before; without it the branch has
   * to be there when it is first used
   */
  branch(
    branchId: string,
    fromTurn: number | undefined,
    inOrder: (work: () => Promise<void>) => Promise<void>,
  ): SQLiteHistory {
    const connection = this.#shared ? this.#connection : this.#connection.join(this.#config.synchronous);
    const branch = new BranchState(branchId, connection);
    if (fromTurn === undefined) branch.mustExist = branchId !== 'main';
    else
      branch.begin(
        inOrder(async () => {
          await this.#branches((branches) => {
            this.#branch.refresh(branches, this.#sessionId);
            makeBranch(branches, this.#sessionId, this.#branch.id, branchId, fromTurn);
            branch.refresh(branches, this.#sessionId);
          });
        }),
      );
    return new SQLiteHistory(this.#sessionId, this.#config, this.#shared ? connection : undefined, branch);
  }

  /** Totals of a run, for the current turn of the branch; nothing where there is none, or where it was cleared away. */
  async addUsage(usage: Usage): Promise<void> {
    await this.#branches((branches) => {
      const wasCleared = this.#branch.refresh(branches, this.#sessionId);
      const turn = wasCleared ? undefined : branches.currentTurn(this.#sessionId, this.#branch.id);
      if (turn !== undefined) branches.putUsage(this.#sessionId, this.#branch.id, turn, usageRow(usage));
    });
  }

  async getUsage(): Promise<Usage | undefined> {
    return await this.#query(() => {
      const branches = this.#connection.branches(this.#config.names);
      if (branches === 'none') return undefined;
      if (!(branches instanceof BranchStatements)) throw foreignBranches(branches.problem);
      return sumOfUsage(branches.usage(this.#sessionId, this.#branch.id));
    });
  }

  read(count: number | undefined): StoredHistory | Promise<StoredHistory> {
    if (count === undefined || count > PAGE) return this.#readLong(count);
    if (count === 0) return this.#query((rows) => ({ records: [], version: rows.version() }));
    return this.#query((rows) => {
      const found = rows.newest(count);
      return { records: found.map(recordOf).toReversed(), version: rows.versionOf(found[0]) };
    });
  }

  /** From the oldest row on: see `SessionStoreBackend.parts`. */
  async *parts(): AsyncGenerator<readonly StoredRecord[]> {
    let upTo: Row | undefined;
    let after: Row | undefined;
    for (;;) {
      const part = await this.#query((rows) => {
        upTo ??= rows.newest(1)[0];
        if (upTo === undefined) return [];
        const found = rows.oldest(PAGE, upTo, after);
        // Rows are only ever removed from the newest on: while this one is there, all before it are.
        if (!rows.has(upTo)) throw versionConflict(this.#sessionId, rows.versionOf(upTo), rows.version());
        return found;
      });
      if (part.length > 0) yield part.map(recordOf);
      if (part.length < PAGE) return;
      after = part.at(-1);
    }
  }

  write(change: HistoryWrite): string | Promise<string> {
    const { operation, ifVersion } = change;
    return this.#transaction((rows, statements) => {
      const known = operation && statements.operation(this.#sessionId, operation.id);
      if (known !== undefined) {
        if (known.digest !== operation?.digest) throw operationMismatch();
        return known.result;
      }
      const actual = ifVersion === undefined ? undefined : rows.version();
      if (ifVersion !== undefined && actual !== ifVersion)
        throw versionConflict(this.#sessionId, ifVersion, actual ?? '');
      if (change.type === 'replace') rows.deleteAll();
      else if (change.type === 'replace_suffix') deleteSuffix(rows, change.expected);
      if (change.texts.length > 0) statements.touch(this.#sessionId, change.upkeep);
      rows.append(change.texts);
      const version = rows.version();
      if (operation) statements.addOperation(this.#sessionId, operation.id, operation.digest, version);
      return version;
    });
  }

  pop(): StoredRecord | undefined | Promise<StoredRecord | undefined> {
    return this.#transaction((rows) => {
      const row = rows.pop();
      return row && recordOf(row);
    });
  }

  clear(): void | Promise<void> {
    return this.#transaction(() => {
      const branches = clearSession(this.#connection, this.#config.names, this.#sessionId);
      this.#branch.cleared(branches, this.#sessionId);
    });
  }

  /** All pages in one step: see `StagedHistory.publish`. */
  async publish(
    how: 'create' | 'replace' | 'append',
    pages: (database: Database) => Iterable<readonly string[]>,
  ): Promise<void> {
    await this.#transaction((rows, statements) => {
      if (how === 'create' && (statements.hasSession(this.#sessionId) || rows.newest(1).length > 0))
        throw sessionExists(this.#sessionId);
      if (how === 'replace') rows.deleteAll();
      statements.touch(this.#sessionId);
      for (const texts of pages(this.#connection.database(this.#config.names))) rows.append(texts);
    });
  }

  /**
   * A long history is read in pages, and others run in between; rows are only ever removed from the newest on, so what was
   * read is of one moment as long as the newest row of the first page is still there, and is read again if it is not.
   */
  async #readLong(count: number | undefined): Promise<StoredHistory> {
    for (let attempt = 0; ; attempt++) {
      const history = await this.#readPages(count, attempt < ATTEMPTS ? PAGE : Number.MAX_SAFE_INTEGER);
      if (history !== undefined) return history;
    }
  }

  /** `undefined`: what was read was removed meanwhile. */
  async #readPages(limit = Number.MAX_SAFE_INTEGER, page: number): Promise<StoredHistory | undefined> {
    const read: Row[] = [];
    let version = '';
    let pagesAsked = 0;
    let since = performance.now();
    for (;;) {
      const count = Math.min(limit - read.length, page);
      pagesAsked++;
      const more = await this.#query((rows) => {
        const found = rows.newest(count, read.at(-1));
        if (read.length === 0) version = rows.versionOf(found[0]);
        return found;
      });
      for (const row of more) read.push(row);
      if (more.length < count || read.length >= limit) break;
      if (performance.now() - since < YIELD_AFTER_MS) continue;
      await new Promise<void>((resolve) => void setImmediate(resolve));
      since = performance.now();
    }
    const [newest] = read;
    if (newest !== undefined && pagesAsked > 1 && !(await this.#query((rows) => rows.has(newest)))) return undefined;
    return { records: read.map(recordOf).toReversed(), version };
  }

  #transaction<R>(work: (rows: HistoryRows, statements: Statements) => R): R | Promise<R> {
    return this.#retried((statements) =>
      this.#connection.transaction(() =>
        work(
          this.#rows(statements, this.#connection.branchesToChange(this.#config.names), (adopt) => adopt()),
          statements,
        ),
      ),
    );
  }

  #query<R>(work: (rows: HistoryRows, statements: Statements) => R): R | Promise<R> {
    return this.#retried((statements) =>
      work(
        this.#rows(statements, this.#connection.branches(this.#config.names), (adopt) =>
          this.#connection.transaction(adopt),
        ),
        statements,
      ),
    );
  }

  /** A change of the tables of branches, which are made if need be. */
  async #branches(work: (branches: BranchStatements) => void): Promise<void> {
    const { names } = this.#config;
    await this.#retried(() =>
      this.#connection.transaction(() => {
        if (this.#connection.branches(names) === 'none') createBranchTables(this.#connection.database(names), names);
        const branches = this.#connection.branchesToChange(names);
        if (!(branches instanceof BranchStatements)) throw foreignBranches(branches === 'none' ? '' : branches.problem);
        if (!this.#branch.adopted) branches.adopt(this.#sessionId);
        work(branches);
      }),
    );
  }

  /** At once where nothing has to be waited for: neither a lock nor the branch. */
  #retried<R>(work: (statements: Statements) => R): R | Promise<R> {
    const { names, busyTimeoutMs } = this.#config;
    const now = (): R | Promise<R> =>
      retryBusy(busyTimeoutMs, this.#sessionId, () => work(this.#connection.statements(names)));
    return this.#branch.made === undefined ? now() : this.#branch.made.then(now);
  }

  /** As the tables of this moment have them: another process may just have made those of branches. */
  #rows(statements: Statements, branches: Branches, inTransaction: (work: () => void) => void): HistoryRows {
    if (!(branches instanceof BranchStatements)) {
      if (this.#branch.id !== 'main') throw branches === 'none' ? unknownBranch() : foreignBranches(branches.problem);
      return new PlainRows(statements, this.#sessionId);
    }
    this.#branch.refresh(branches, this.#sessionId);
    if (!this.#branch.adopted) {
      // A transaction may be undone: that nothing is left to adopt is only known when nothing was.
      if (branches.needsAdoption(this.#sessionId)) inTransaction(() => branches.adopt(this.#sessionId));
      else this.#branch.adopted = true;
    }
    return new BranchRows(branches, statements, this.#sessionId, this.#branch.id);
  }
}

function deleteSuffix(rows: HistoryRows, expected: readonly string[]): void {
  if (expected.length === 0) return;
  for (let count = expected.length; ; count = Math.max(2 * count, 16)) {
    const tail = rows.newest(count).toReversed();
    const matched = matchSuffix(tail.map(recordOf), expected);
    if (matched?.length === expected.length) {
      const found = new Set(matched);
      rows.delete(tail.filter((_, index) => found.has(index)));
      return;
    }
    // Corrupt rows do not count; with too few others the window grows.
    if (matched === undefined || tail.length < count) throw suffixMismatch();
  }
}

function recordOf({ id, text }: Row): StoredRecord {
  return { text: typeof text === 'string' ? text : undefined, position: id };
}
