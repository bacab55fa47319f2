import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { UserError } from '@agents/core';
import { checkOptions, checkStoreName, kinds, sessionOptionChecks } from '@agents/core/session';
import type { SessionOptions } from '@agents/core/session';

import type { Connection } from './connection.ts';
import type { SQLiteHistory } from './history.ts';
import type { SQLiteSessionOptions } from './options.ts';
import type { TableNames } from './schema.ts';

/** In the options of a session: the connection of the store that makes it. */
export const storeConnection: unique symbol = Symbol('storeConnection');
export interface OfStore {
  readonly [storeConnection]?: Connection;
}

/** In the options of a session: its history, on a branch. */
export const branchHistory: unique symbol = Symbol('branchHistory');
export interface OfBranch {
  readonly [branchHistory]?: SQLiteHistory;
}

export function sharedConnection(options: unknown): Connection | undefined {
  return (options as OfStore | undefined)?.[storeConnection];
}

/** What the options mean, checked and with defaults. */
export interface Config {
  readonly target:
    | { readonly handle: NonNullable<SQLiteSessionOptions['database']> }
    | { readonly path: string }
    | 'memory';
  readonly names: TableNames;
  readonly busyTimeoutMs: number;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly session: SessionOptions;
  /** As they were given. */
  readonly given: SQLiteSessionOptions;
}

const { operationTimeoutMs: _, ...sessionChecks } = sessionOptionChecks;
const checks = {
  ...sessionChecks,
  path: kinds.any,
  database: kinds.any,
  busyTimeoutMs: (value: unknown): string | undefined =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0
      ? undefined
      : 'a number of milliseconds, 0 or more',
  synchronous: kinds.oneOf('FULL', 'NORMAL'),
  sessionsTable: kinds.any,
  messagesTable: kinds.any,
};

/** @throws UserError */
export function readOptions(given: string | URL | SQLiteSessionOptions | undefined, where = 'SQLiteSession'): Config {
  const options: SQLiteSessionOptions =
    given === undefined ? {} : typeof given === 'string' || given instanceof URL ? { path: given } : given;
  checkOptions(options, checks, where);
  const {
    path,
    database,
    busyTimeoutMs = 5000,
    synchronous = 'FULL',
    sessionsTable = 'agent_sessions',
    messagesTable = 'agent_messages',
    ...session
  } = options;
  // Own members alone go on to the session.
  const target = readTarget({ path, database }, where);
  const names = tableNames(sessionsTable, messagesTable);
  return { target, names, busyTimeoutMs, synchronous, session, given: options };
}

function readTarget({ path, database }: SQLiteSessionOptions, where: string): Config['target'] {
  if (database !== undefined) {
    if (path !== undefined) throw new UserError(`${where} takes 'path' or 'database', not both.`);
    if (typeof database?.exec !== 'function' || typeof database.prepare !== 'function') {
      throw wrong(where, 'database', "an open database with 'exec' and 'prepare'");
    }
    return { handle: database };
  }
  if (path === undefined || path === ':memory:') return 'memory';
  if (path instanceof URL) {
    if (path.protocol !== 'file:') throw wrong(where, 'path', 'a path or a file: URL');
    return { path: fileURLToPath(path) };
  }
  if (typeof path !== 'string' || path.trim() === '')
    throw wrong(where, 'path', 'a path that is not blank, or a file: URL');
  // Now, so that a later chdir changes nothing. SQLite would read `file:` itself, with parameters nobody checked.
  if (path.startsWith('file:')) throw wrong(where, 'path', 'a path, or a URL object for file: URLs');
  return { path: resolve(path) };
}

function tableNames(sessions: unknown, messages: unknown): TableNames {
  const names = { sessions: tableName(sessions), messages: tableName(messages) };
  if (names.sessions.toLowerCase() === names.messages.toLowerCase()) {
    throw new UserError("'sessionsTable' and 'messagesTable' must be two tables.", { code: 'session_name_invalid' });
  }
  // Each pair of tables has operations of its own: equal ids in two pairs are two sessions.
  const isDefault = names.sessions === 'agent_sessions' && names.messages === 'agent_messages';
  return {
    ...names,
    operations: isDefault ? 'agent_session_operations' : `${names.messages}_operations`,
    metadata: isDefault ? 'agent_session_metadata' : `${names.messages}_metadata`,
  };
}

function tableName(name: unknown): string {
  checkStoreName(name, 'table');
  if (/^sqlite_/i.test(name))
    throw new UserError(`'${name}' is no table name: SQLite keeps names that begin with 'sqlite_' for itself.`, {
      code: 'session_name_invalid',
    });
  return name;
}

function wrong(where: string, option: string, expected: string): UserError {
  return new UserError(`Option '${option}' of ${where} must be ${expected}.`);
}
