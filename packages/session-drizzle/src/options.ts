import { UserError } from '@agents/core';
import { checkOptions, kinds, sessionOptionChecks } from '@agents/core/session';
import type { SessionOptions } from '@agents/core/session';

import { dialectOf } from './database.ts';
import type { DialectName } from './database.ts';
import { readTables } from './tables.ts';
import type { AgentTables, TableNames } from './tables.ts';

/**
 * A database of drizzle-orm for PostgreSQL, MySQL, MariaDB or SQLite, by any of its drivers and releases. (Its own types
 * differ from release to release; this is what they have in common.)
 */
export interface DrizzleDatabase {
  transaction(run: never, config?: never): unknown;
}

export interface DrizzleOptions {
  /**
   * Yours: it is never closed, and nothing of it is changed. Within a transaction of yours pass its `tx`: what the session does
   * is part of it then. (Over `db` it takes another connection, for which it waits in vain on a pool of one.)
   */
  db: DrizzleDatabase;
  /** What `@agents/session-drizzle/pg` (`/mysql`, `/sqlite`) exports, or `createAgentTables` made. Default: those names. */
  tables?: AgentTables | undefined;
}

export interface DrizzleSessionOptions extends DrizzleOptions, SessionOptions {
  /**
   * `auto` (default): without the operations table (a schema that Python made) the session works, has no history
   * transactions and says so once. `off`: the table is not asked for.
   */
  operations?: 'auto' | 'off' | undefined;
  /** Escape non-ASCII as Python does. Default `true`. */
  ascii?: boolean | undefined;
}

/** Of each call, unless `operationTimeoutMs` says otherwise. */
export const TIMEOUT_MS = 30_000;

/** What the options mean, checked and with defaults. */
export interface Config {
  readonly db: DrizzleDatabase;
  readonly dialect: DialectName;
  readonly tables: TableNames;
  readonly operations: 'auto' | 'off';
  readonly ascii: boolean;
  readonly session: SessionOptions;
}

const checks = {
  ...sessionOptionChecks,
  db: kinds.any,
  tables: kinds.object,
  operations: kinds.oneOf('auto', 'off'),
  ascii: kinds.boolean,
};

/** @throws UserError for unknown or wrong options, and for what is no database of a dialect that this package knows */
export function readOptions(options: DrizzleSessionOptions, name: string): Config {
  checkOptions(options, checks, name);
  const { db, tables, operations = 'auto', ascii = true, ...session } = options ?? {};
  const dialect = dialectOf(db);
  if (dialect === undefined)
    throw new UserError(
      `Option 'db' of ${name} must be a database of drizzle-orm for PostgreSQL, MySQL, MariaDB or SQLite: what \`drizzle(…)\` gives.`,
    );
  return { db, dialect, tables: readTables(tables, dialect, name), operations, ascii, session };
}

/** MySQL's column and its comparison of texts set limits of their own (SESS-137). */
export function checkIdFor(dialect: DialectName, sessionId: string): void {
  if (dialect !== 'mysql') return;
  if (Array.from(sessionId).length > 255 || sessionId.startsWith(' ') || sessionId.endsWith(' '))
    throw new UserError(
      'On MySQL and MariaDB a session id has at most 255 characters, and no space at its beginning or end.',
      { code: 'session_id_invalid' },
    );
}

/** @throws UserError for what is no database of this dialect */
export function readDatabase(db: DrizzleDatabase, dialect: DialectName, name: string): DrizzleDatabase {
  if (dialectOf(db) === dialect) return db;
  throw new UserError(
    `${name} of @agents/session-drizzle/${dialect} needs a database of drizzle-orm for that dialect.`,
  );
}
