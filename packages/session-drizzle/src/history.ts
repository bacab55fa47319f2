import { getLogger } from '@agents/core';
import {
  matchSuffix,
  operationMismatch,
  SessionBusyError,
  SessionSchemaError,
  suffixMismatch,
  versionConflict,
} from '@agents/core/session';
import type { HistoryBackend, HistoryWrite, StoredHistory, StoredRecord } from '@agents/core/session';

import type { SQL } from 'drizzle-orm/sql/sql';

import { Database, errorsOf, outcomeUnknown } from './database.ts';
import { versionOf } from './dialects/dialect.ts';
import type { Dialect, Found } from './dialects/dialect.ts';
import { MySqlDialect } from './dialects/mysql.ts';
import { PgDialect } from './dialects/pg.ts';
import { SQLiteDialect } from './dialects/sqlite.ts';
import { causes } from './errors.ts';
import type { Config } from './options.ts';
import { rows } from './statement.ts';
import type { Body, Row } from './statement.ts';

/** Waits before a change that lost against another one is tried again (the sixth time is the last). */
const DELAYS_MS = [50, 100, 200, 400, 800] as const;
/** Reading a long history lets others run this often. */
const YIELD_AFTER_MS = 15;
const ATTEMPTS = 10;
/** How often old operations are looked for: one change with an operation in so many. */
const FORGET_ONE_IN = 64;

/** The history of one session in a database of drizzle. */
export class DrizzleHistory implements HistoryBackend {
  readonly #sessionId: string;
  readonly #config: Config;
  readonly #database: Database;
  readonly dialect: Dialect;
  readonly #onNoOperations: () => void;
  #found: Promise<Found> | undefined;

  /** @param onNoOperations called once, when it turns out that there is no table of operations */
  constructor(sessionId: string, config: Config, onNoOperations: () => void) {
    this.#sessionId = sessionId;
    this.#config = config;
    this.#database = new Database(config.db, config.dialect);
    this.dialect = makeDialect(config);
    this.#onNoOperations = onNoOperations;
  }

  async read(count: number | undefined): Promise<StoredHistory> {
    await this.look();
    const { pageSize } = this.dialect;
    if (count === 0) {
      const [newest] = await this.query(this.dialect.newest(this.#sessionId, 1));
      return { records: [], version: versionOf(newest) };
    }
    if (pageSize === undefined) return historyOf(await this.query(this.#settled(count)));
    for (let attempt = 0; ; attempt++) {
      const found = await this.#readPages(count, attempt < ATTEMPTS ? pageSize : Number.MAX_SAFE_INTEGER);
      if (found !== undefined) return historyOf(found);
    }
  }

  /** Where the history ends: the id of its newest row, that stands for all before it. */
  async edge(): Promise<{ newest: unknown; version: string }> {
    await this.look();
    const [row] = await this.query(this.#settled(1));
    return { newest: row?.['id'], version: versionOf(row) };
  }

  #settled(count: number | undefined): SQL {
    return this.dialect.settled?.(this.#sessionId, count) ?? this.dialect.newest(this.#sessionId, count);
  }

  async write(change: HistoryWrite): Promise<string> {
    const { operation, texts } = change;
    const found = await this.look();
    if (operation !== undefined && !found.operations) throw this.#noOperations();
    if (this.dialect instanceof MySqlDialect) this.dialect.check(this.#sessionId, texts);
    const adds = texts.length > 0 || operation !== undefined;
    const alone = this.dialect.appendsAlone && change.type === 'append' && adds && change.ifVersion === undefined;
    const version = await this.#retry(() =>
      alone
        ? this.#database.alone(() => this.dialect.append(this.#sessionId, change))
        : this.#database.transaction(() => this.#write(change)),
    );
    if (operation !== undefined && Math.random() < 1 / FORGET_ONE_IN) await this.#forgetOperations();
    return version;
  }

  async pop(): Promise<StoredRecord | undefined> {
    await this.look();
    const dialect = this.dialect;
    const sessionId = this.#sessionId;
    const [row] = await this.transaction(function* () {
      yield* dialect.lock(sessionId, false);
      return yield* dialect.takeNewest(sessionId);
    });
    return row === undefined ? undefined : recordOf(row);
  }

  async clear(): Promise<void> {
    const found = await this.look();
    const dialect = this.dialect;
    const sessionId = this.#sessionId;
    await this.transaction(function* () {
      yield* dialect.lock(sessionId, false);
      yield* dialect.deleteMessages(sessionId, 'all');
      yield* dialect.deleteSession(sessionId, found);
    });
  }

  outcomeUnknown(error: unknown): boolean {
    return outcomeUnknown(error);
  }

  *#write(change: HistoryWrite): Body<string> {
    const { texts, operation, ifVersion, upkeep } = change;
    const dialect = this.dialect;
    const sessionId = this.#sessionId;
    const appends = texts.length > 0 || operation !== undefined;
    yield* dialect.lock(sessionId, appends);
    const known = operation && (yield* dialect.operation(sessionId, operation.id));
    if (known !== undefined) {
      if (known.digest !== operation?.digest) throw operationMismatch();
      return known.result;
    }
    if (ifVersion !== undefined) {
      const { version } = yield* dialect.head(sessionId);
      if (version !== ifVersion) throw versionConflict(sessionId, ifVersion, version);
    }
    if (change.type === 'replace') yield* dialect.deleteMessages(sessionId, 'all');
    else if (change.type === 'replace_suffix') yield* this.#deleteSuffix(change.expected);
    if (appends) return yield* dialect.append(sessionId, { texts, operation, upkeep });
    return (yield* dialect.head(sessionId)).version;
  }

  *#deleteSuffix(expected: readonly string[]): Body<void> {
    if (expected.length === 0) return;
    for (let count = expected.length; ; count = Math.max(2 * count, 16)) {
      const newest = yield* rows(this.dialect.newest(this.#sessionId, count));
      const records = newest.map(recordOf).toReversed();
      const matched = matchSuffix(records, expected);
      if (matched?.length === expected.length) {
        yield* this.dialect.deleteMessages(
          this.#sessionId,
          matched.map((index) => records[index]?.position ?? 0),
        );
        return;
      }
      // Corrupt rows do not count; with too few others the window grows.
      if (matched === undefined || newest.length < count) throw suffixMismatch();
    }
  }

  /**
   * Page by page from the newest row down, others run in between. What was read is of one moment as long as its newest row
   * is still there; `undefined`: it is not.
   */
  async #readPages(limit = Number.MAX_SAFE_INTEGER, page: number): Promise<readonly Row[] | undefined> {
    const found: Row[] = [];
    let since = performance.now();
    for (let pages = 1; ; pages++) {
      const count = Math.min(limit - found.length, page);
      const more = await this.query(this.dialect.newest(this.#sessionId, count, found.at(-1)));
      for (const row of more) found.push(row);
      const isLast = more.length < count || found.length >= limit;
      // One page is of one moment anyway.
      if (isLast && pages === 1) return found;
      if (isLast) break;
      if (performance.now() - since < YIELD_AFTER_MS) continue;
      await new Promise<void>((resolve) => void setTimeout(resolve, 0));
      since = performance.now();
    }
    const stillThere = this.dialect.isThere?.(found[0]?.['id']);
    return stillThere === undefined || (await this.query(stillThere)).length > 0 ? found : undefined;
  }

  /** Of the store: again where the database was locked. */
  async query(statement: SQL): Promise<readonly Row[]> {
    return await this.#retry(() => this.#database.rows(statement));
  }

  /** All or nothing; again where it lost against another one. */
  async transaction<R>(body: () => Body<R>): Promise<R> {
    return await this.#retry(() => this.#database.transaction(body));
  }

  /** Again, as long as the store says that it did nothing because somebody else was at it, and undid nothing of the user's. */
  async #retry<R>(work: () => Promise<R>): Promise<R> {
    const { isConflict, isMissing } = errorsOf(this.#config.dialect);
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const chain = causes(error);
        if (chain.some(isMissing)) throw this.#missing(error);
        if (this.#database.isTransaction || !chain.some(isConflict)) throw error;
        const delay = DELAYS_MS[attempt];
        if (delay === undefined)
          throw new SessionBusyError(
            `Other writers held the database or its rows, ${attempt + 1} times in a row; nothing was written. Try again.`,
            { sessionId: this.#sessionId, cause: error },
          );
        await new Promise<void>((resolve) => void setTimeout(resolve, delay * (0.5 + Math.random() / 2)));
      }
    }
  }

  /** Once, with the first call: which of the tables that Python does not make are there. */
  async look(): Promise<Found> {
    this.#found ??= this.#find();
    try {
      return await this.#found;
    } catch (error) {
      this.#found = undefined;
      throw error;
    }
  }

  async #find(): Promise<Found> {
    const { operations: wanted } = this.#config;
    const known = knownStores.get(this.#config.db)?.get(this.#config.tables.key);
    const found = known ?? readFound((await this.query(this.dialect.found()))[0]);
    if (this.dialect instanceof MySqlDialect) {
      this.dialect.maxPacket = found.packet;
      this.dialect.isMariaDB = found.isMariaDB;
    }
    if (found.operations && found.metadata) remember(this.#config, found);
    if (wanted === 'off') return { ...found, operations: false };
    if (!found.operations) this.#onNoOperations();
    return found;
  }

  #noOperations(): SessionSchemaError {
    const { name } = this.#config.tables.places.operations;
    return new SessionSchemaError(
      `An operation id needs the table '${name}', which is missing or switched off with operations: 'off'. Make it by a migration of the tables of @agents/session-drizzle/${this.#config.dialect}, or by createTables() of that module.`,
      { sessionId: this.#sessionId },
    );
  }

  #missing(cause: unknown): SessionSchemaError {
    const { sessions, messages } = this.#config.tables.places;
    return new SessionSchemaError(
      `The tables '${sessions.name}' and '${messages.name}' are not there, or are not what sessions need. Make them by a migration of the tables of @agents/session-drizzle/${this.#config.dialect}, or by createTables() of that module.`,
      { sessionId: this.#sessionId, cause },
    );
  }

  /** The change is stored: that old operations stay a while longer is no reason to say otherwise. */
  async #forgetOperations(): Promise<void> {
    try {
      await this.#database.change({ sql: this.dialect.forgetOperations(this.#sessionId), gives: 'nothing' });
    } catch (error) {
      getLogger('session').warn('Old operations of a session could not be removed; they stay until the next time.', {
        sessionId: this.#sessionId,
        error: error instanceof Error ? error.name : typeof error,
      });
    }
  }
}

/** Of stores that are complete: nothing has to be asked again. */
const knownStores = new WeakMap<object, Map<string, FoundInStore>>();

interface FoundInStore extends Found {
  readonly packet: number;
  readonly isMariaDB: boolean;
}

function remember({ db, tables }: Config, found: FoundInStore): void {
  const stores = knownStores.get(db) ?? new Map<string, FoundInStore>();
  knownStores.set(db, stores.set(tables.key, found));
}

function readFound(row: Row | undefined): FoundInStore {
  // Booleans of PostgreSQL, numbers of the others.
  const is = (value: unknown): boolean => value === true || Number(value) === 1;
  return {
    operations: is(row?.['operations']),
    metadata: is(row?.['metadata']),
    packet: Number(row?.['packet'] ?? 0),
    isMariaDB: String(row?.['version']).includes('MariaDB'),
  };
}

function makeDialect({ dialect, tables }: Config): Dialect {
  switch (dialect) {
    case 'pg':
      return new PgDialect(tables);
    case 'mysql':
      return new MySqlDialect(tables);
    case 'sqlite':
      return new SQLiteDialect(tables);
    default:
      return dialect satisfies never;
  }
}

/** Of rows that come newest first. */
function historyOf(newestFirst: readonly Row[]): StoredHistory {
  return { records: newestFirst.map(recordOf).toReversed(), version: versionOf(newestFirst[0]) };
}

export function recordOf({ id, text }: Row): StoredRecord {
  return { text: typeof text === 'string' ? text : undefined, position: Number(id) };
}
