import type { SQL } from 'drizzle-orm/sql/sql';

import type { Statement } from './statement.ts';

/**
 * Carries out a statement by the driver itself, where that spares it to prepare the same text again and again, as drizzle
 * lets it do: SQLite takes as long for that as for the statement, and postgres.js waits for the server twice.
 */
export type RunPrepared = (statement: Statement) => unknown;

/** What is used of better-sqlite3 and `node:sqlite`. */
interface SQLiteClient {
  prepare(text: string): SQLiteStatement;
}
interface SQLiteStatement {
  all(...values: unknown[]): unknown;
  run(...values: unknown[]): unknown;
}
interface PostgresJsClient {
  unsafe(text: string, values: unknown[], options: { readonly prepare: boolean }): PromiseLike<unknown>;
}

/** Prepared statements of a connection: there are a dozen texts, as long as nobody makes tables under many names. */
const MOST = 100;

/**
 * @param kinds by which drizzle knows the database
 * @returns `undefined`: drizzle carries it out. So it does with other drivers, and where it keeps a log or is wrapped.
 */
export function preparedBy(db: object, kinds: readonly string[]): RunPrepared | undefined {
  const { $client: client, session } = db as { $client?: unknown; session?: { logger?: object } };
  if (kindOf(session?.logger) !== 'NoopLogger' || isWrapped(db)) return undefined;
  const isSQLite = kinds.includes('BetterSQLite3Database') || kinds.includes('NodeSQLiteDatabase');
  if (isSQLite && has(client, 'prepare')) return bySQLite(client as SQLiteClient);
  if (kinds.includes('PostgresJsDatabase') && has(client, 'unsafe')) return byPostgresJs(client as PostgresJsClient);
  return undefined;
}

/** Somebody stands before drizzle, and wants to see what it is asked. */
function isWrapped(db: object): boolean {
  const own: unknown = Object.getPrototypeOf(db);
  return ['execute', 'all', 'run'].some((name) => Reflect.get(db, name) !== Reflect.get(own as object, name));
}

function has(client: unknown, method: string): boolean {
  return typeof (client as { readonly [name: string]: unknown } | null | undefined)?.[method] === 'function';
}

function bySQLite(client: SQLiteClient): RunPrepared {
  return ({ sql, gives }) => {
    const { text, values } = textOf(sql, () => '?');
    const statements = preparedOn.get(client) ?? new Map<string, SQLiteStatement>();
    if (statements.size >= MOST) statements.clear();
    preparedOn.set(client, statements);
    const statement = statements.get(text) ?? client.prepare(text);
    statements.set(text, statement);
    return gives === 'rows' ? statement.all(...values) : statement.run(...values);
  };
}
const preparedOn = new WeakMap<object, Map<string, SQLiteStatement>>();

/** The client's own `prepare: false`, for poolers that know no prepared statements, still counts. */
function byPostgresJs(client: PostgresJsClient): RunPrepared {
  return ({ sql }) => {
    const { text, values } = textOf(sql, (index) => `$${index + 1}`);
    return client.unsafe(text, values, { prepare: true });
  };
}

function textOf(sql: SQL, escapeParam: (index: number) => string): { text: string; values: unknown[] } {
  const quoted = (quote: string) => (name: string) => quote + name.replaceAll(quote, quote + quote) + quote;
  const config = { escapeName: quoted('"'), escapeString: quoted("'"), escapeParam };
  // What else it may have concerns columns of drizzle's tables: our statements have none.
  const query = sql.toQuery(config as unknown as Parameters<SQL['toQuery']>[0]);
  return { text: query.sql, values: query.params };
}

function kindOf(value: object | undefined): unknown {
  const made = value?.constructor as { readonly [mark: symbol]: unknown } | undefined;
  return made?.[Symbol.for('drizzle:entityKind')];
}
