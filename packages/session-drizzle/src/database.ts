import type { SQL } from 'drizzle-orm/sql/sql';

import { mysqlErrors } from './dialects/mysql.ts';
import { pgErrors } from './dialects/pg.ts';
import { sqliteErrors } from './dialects/sqlite.ts';
import type { ErrorKinds } from './errors.ts';
import { causes, driverError } from './errors.ts';
import { preparedBy } from './prepared.ts';
import type { RunPrepared } from './prepared.ts';
import type { Body, Row, Statement } from './statement.ts';

export type DialectName = 'pg' | 'mysql' | 'sqlite';

/** What drizzle's databases and transactions have of which; `is()` of drizzle goes by the same mark. */
const KINDS: Readonly<Record<string, DialectName>> = {
  PgDatabase: 'pg',
  BasePgAsyncDatabase: 'pg',
  MySqlDatabase: 'mysql',
  BaseSQLiteDatabase: 'sqlite',
};
const ERRORS: Readonly<Record<DialectName, ErrorKinds>> = { pg: pgErrors, mysql: mysqlErrors, sqlite: sqliteErrors };

/** `undefined`: no database of drizzle, or one of another dialect. Loads no dialect, and knows those of other copies. */
export function dialectOf(db: unknown): DialectName | undefined {
  const kind = kindsOf(db, 'object').find((name) => Object.hasOwn(KINDS, name));
  return kind === undefined ? undefined : KINDS[kind];
}

/** The names by which drizzle knows what this is, its own class first. */
export function kindsOf(value: unknown, type: 'object'): readonly string[] {
  const found: string[] = [];
  if (typeof value !== type || value === null) return found;
  try {
    let prototype: unknown = Object.getPrototypeOf(value);
    while (typeof prototype === 'object' && prototype !== null) {
      const made = (prototype as { constructor?: unknown }).constructor as { [mark: symbol]: unknown } | undefined;
      const kind = made?.[Symbol.for('drizzle:entityKind')];
      if (typeof kind === 'string') found.push(kind);
      prototype = Object.getPrototypeOf(prototype);
    }
  } catch {
    // Not one of drizzle's.
  }
  return found;
}

interface Executes {
  execute(query: SQL): PromiseLike<unknown>;
}
interface ServerDatabase extends Executes {
  transaction<R>(run: (tx: Executes) => Promise<R>, config?: object): Promise<R>;
}
interface SQLiteDatabase {
  readonly resultKind?: 'sync' | 'async';
  all(query: SQL): unknown;
  run(query: SQL): unknown;
  transaction(run: (tx: SQLiteDatabase) => unknown, config?: object): unknown;
}

/** One call after the other, for databases of one connection: another call would join an open transaction. By the connection. */
const queues = new WeakMap<object, Promise<unknown>>();

/** The user's database, and how statements and transactions are run with its driver. */
export class Database {
  readonly dialect: DialectName;
  readonly #db: object;
  /** Every call on it waits for the one before. */
  readonly #oneConnection: object | undefined;
  readonly #isSync: boolean;
  /** It is a transaction of the user, `tx`: what is done with it is undone with it, and only its owner can begin it again. */
  readonly isTransaction: boolean;
  readonly #runPrepared: RunPrepared | undefined;

  constructor(db: object, dialect: DialectName) {
    this.#db = db;
    this.dialect = dialect;
    this.#isSync = dialect === 'sqlite' && (db as SQLiteDatabase).resultKind === 'sync';
    const kinds = kindsOf(db, 'object');
    this.isTransaction = kinds.some((kind) => kind.endsWith('Transaction'));
    this.#oneConnection = this.#isSync ? undefined : this.isTransaction ? db : oneConnectionOf(db, dialect);
    this.#runPrepared = preparedBy(db, kinds);
  }

  /** A statement on its own that reads. */
  async rows(sql: SQL): Promise<readonly Row[]> {
    return await this.#inTurn(async () => {
      try {
        return rowsOf(await this.#execute(this.#db, { sql, gives: 'rows' }));
      } catch (error) {
        throw driverError(error);
      }
    });
  }

  /** A statement on its own that changes something: it may have done so although it failed (`outcomeUnknown`). */
  async change(statement: Statement): Promise<readonly Row[]> {
    return await this.#inTurn(async () => {
      try {
        return rowsOf(await this.#execute(this.#db, statement));
      } catch (error) {
        throw this.#judge(error, 'sent');
      }
    });
  }

  /** A body of one statement, which is a transaction by itself. */
  async alone<R>(body: () => Body<R>): Promise<R> {
    const steps = body();
    let step = steps.next([]);
    while (step.done !== true) step = steps.next(await this.change(step.value));
    return step.value;
  }

  async transaction<R>(body: () => Body<R>): Promise<R> {
    return await this.#inTurn(async () => await (this.#isSync ? this.#runSync(body) : this.#runAsync(body)));
  }

  #runSync<R>(body: () => Body<R>): R {
    const db = this.#db as SQLiteDatabase;
    const run = (tx: SQLiteDatabase): R => {
      const steps = body();
      let step = steps.next([]);
      while (step.done !== true) step = steps.next(rowsOf(this.#execute(tx, step.value)));
      return step.value;
    };
    try {
      return db.transaction(run, { behavior: 'immediate' }) as R;
    } catch (error) {
      throw driverError(error);
    }
  }

  async #runAsync<R>(body: () => Body<R>): Promise<R> {
    const db = this.#db as ServerDatabase;
    // What the driver says at the end may be that it could not undo the transaction either.
    let failure: { readonly error: unknown } | undefined;
    let complete = false;
    const run = async (tx: object): Promise<R> => {
      try {
        const steps = body();
        let step = steps.next([]);
        while (step.done !== true) step = steps.next(rowsOf(await this.#execute(tx, step.value)));
        complete = true;
        return step.value;
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    try {
      return await db.transaction(run, TRANSACTIONS[this.dialect]);
    } catch (error) {
      throw failure === undefined ? this.#judge(error, complete ? 'sent' : 'unsent') : driverError(failure.error);
    }
  }

  /** Of sync drivers the rows themselves. */
  #execute(target: object, statement: Statement): unknown {
    // Those without promises have one connection: their transactions run on it, too.
    if (this.#runPrepared !== undefined && (this.#isSync || target === this.#db)) return this.#runPrepared(statement);
    const { sql, gives } = statement;
    if (this.dialect !== 'sqlite') return (target as Executes).execute(sql);
    return gives === 'rows' ? (target as SQLiteDatabase).all(sql) : (target as SQLiteDatabase).run(sql);
  }

  #judge(thrown: unknown, when: 'sent' | 'unsent'): unknown {
    const error = driverError(thrown);
    if (when === 'sent') {
      const { isAnswer, wasNeverSent } = ERRORS[this.dialect];
      const definite = causes(error).some((cause) => isAnswer(cause) || wasNeverSent(cause));
      if (!definite && typeof error === 'object' && error !== null) uncertain.add(error);
    }
    return error;
  }

  async #inTurn<R>(work: () => Promise<R>): Promise<R> {
    if (this.#oneConnection === undefined) return await work();
    const before = queues.get(this.#oneConnection) ?? Promise.resolve();
    const result = before.then(work);
    queues.set(
      this.#oneConnection,
      result.catch(() => undefined),
    );
    return await result;
  }
}

/** Writers lock the session's row first and look afterwards, so each statement has to see what was committed before it. */
const TRANSACTIONS: Readonly<Record<DialectName, object | undefined>> = {
  pg: { isolationLevel: 'read committed' },
  mysql: undefined,
  sqlite: { behavior: 'immediate' },
};

const uncertain = new WeakSet<object>();

/** Whether the store may have done what failed with this error: the connection was lost after all of it was sent. */
export function outcomeUnknown(error: unknown): boolean {
  return typeof error === 'object' && error !== null && uncertain.has(error);
}

export function errorsOf(dialect: DialectName): ErrorKinds {
  return ERRORS[dialect];
}

/** node-postgres: a list in `rows`; postgres.js, SQLite: the list; mysql2: the list and its columns. */
function rowsOf(result: unknown): readonly Row[] {
  if (Array.isArray(result)) return (Array.isArray(result[0]) ? result[0] : result) as Row[];
  const { rows: list } = (result ?? {}) as { rows?: unknown };
  return Array.isArray(list) ? (list as Row[]) : [];
}

/** What all calls go through; `undefined`: a pool, or a driver that keeps transactions apart by itself, as PGlite does. */
function oneConnectionOf(db: object, dialect: DialectName): object | undefined {
  const client: unknown = (db as { $client?: unknown }).$client;
  // postgres.js: a function, with a pool of its own.
  if (typeof client !== 'object' || client === null) return dialect === 'sqlite' ? db : undefined;
  if (dialect === 'sqlite') return client;
  if (dialect === 'mysql') return 'getConnection' in client ? undefined : client;
  // A client of node-postgres; its pools count their connections.
  return 'query' in client && 'connect' in client && !('totalCount' in client) ? client : undefined;
}
