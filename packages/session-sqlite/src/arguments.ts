import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { UserError } from '@agents/core';
import type { HistoryOperation, HistoryTransaction, SessionSettings } from '@agents/core/session';

import type { SQLiteSessionOptions } from './options.ts';
import type { TableNames } from './schema.ts';

/** What the options mean, checked and with defaults. */
export interface Config {
  readonly target:
    | { readonly handle: NonNullable<SQLiteSessionOptions['database']> }
    | { readonly path: string }
    | 'memory';
  readonly names: TableNames;
  readonly busyTimeoutMs: number;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly sessionSettings: SessionSettings | undefined;
  readonly throwCorrupt: boolean;
  readonly onCorruptItem: SQLiteSessionOptions['onCorruptItem'];
}

const KNOWN = [
  'path',
  'database',
  'busyTimeoutMs',
  'synchronous',
  'sessionSettings',
  'corruptItems',
  'onCorruptItem',
  'sessionsTable',
  'messagesTable',
] as const satisfies readonly (keyof SQLiteSessionOptions)[];

/** @throws UserError */
export function readOptions(given: string | URL | SQLiteSessionOptions | undefined): Config {
  const options: SQLiteSessionOptions =
    given === undefined ? {} : typeof given === 'string' || given instanceof URL ? { path: given } : given;
  // `null` and lists come from configuration that is not there; a database in memory would be silently lost.
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new UserError('Options of SQLiteSession must be a path, a URL or an object.');
  const unknown = Object.keys(options).find((key) => !(KNOWN as readonly string[]).includes(key));
  if (unknown !== undefined)
    throw new UserError(`Unknown option '${unknown}' of SQLiteSession. ${suggestion(unknown)}`);
  const {
    busyTimeoutMs = 5000,
    synchronous = 'FULL',
    corruptItems = 'skip',
    sessionsTable = 'agent_sessions',
    messagesTable = 'agent_messages',
  } = options;
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0)
    throw wrong('busyTimeoutMs', 'a number of milliseconds, 0 or more');
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') throw wrong('synchronous', "'FULL' or 'NORMAL'");
  if (corruptItems !== 'skip' && corruptItems !== 'throw') throw wrong('corruptItems', "'skip' or 'throw'");
  if (options.onCorruptItem !== undefined && typeof options.onCorruptItem !== 'function')
    throw wrong('onCorruptItem', 'a function');
  checkSettings(options.sessionSettings);
  return {
    target: readTarget(options),
    names: tableNames(sessionsTable, messagesTable),
    busyTimeoutMs,
    synchronous,
    sessionSettings: options.sessionSettings,
    throwCorrupt: corruptItems === 'throw',
    onCorruptItem: options.onCorruptItem,
  };
}

function readTarget({ path, database }: SQLiteSessionOptions): Config['target'] {
  if (database !== undefined) {
    if (path !== undefined) throw new UserError("SQLiteSession takes 'path' or 'database', not both.");
    if (typeof database?.exec !== 'function' || typeof database.prepare !== 'function') {
      throw wrong('database', "an open database with 'exec' and 'prepare'");
    }
    return { handle: database };
  }
  if (path === undefined || path === ':memory:') return 'memory';
  if (path instanceof URL) {
    if (path.protocol !== 'file:') throw wrong('path', 'a path or a file: URL');
    return { path: fileURLToPath(path) };
  }
  if (typeof path !== 'string' || path.trim() === '') throw wrong('path', 'a path that is not blank, or a file: URL');
  // Now, so that a later chdir changes nothing. SQLite would read `file:` itself, with parameters nobody checked.
  if (path.startsWith('file:')) throw wrong('path', 'a path, or a URL object for file: URLs');
  return { path: resolve(path) };
}

function tableNames(sessions: unknown, messages: unknown): TableNames {
  for (const name of [sessions, messages]) {
    if (typeof name === 'string' && /^(?!sqlite_)[a-z_][a-z0-9_]{0,62}$/i.test(name)) continue;
    throw new UserError(
      `'${String(name).slice(0, 80)}' is no table name: letters, digits and underscores, at most 63, beginning with a letter or underscore, and not with 'sqlite_', which SQLite keeps for itself.`,
      { code: 'session_name_invalid' },
    );
  }
  const names = { sessions: String(sessions), messages: String(messages) };
  if (names.sessions.toLowerCase() === names.messages.toLowerCase()) {
    throw new UserError("'sessionsTable' and 'messagesTable' must be two tables.", { code: 'session_name_invalid' });
  }
  // Each pair of tables has operations of its own: equal ids in two pairs are two sessions.
  const isDefault = names.sessions === 'agent_sessions' && names.messages === 'agent_messages';
  return { ...names, operations: isDefault ? 'agent_session_operations' : `${names.messages}_operations` };
}

/** @throws UserError `session_id_invalid` */
export function checkSessionId(sessionId: unknown): asserts sessionId is string {
  let problem: string | undefined;
  if (typeof sessionId !== 'string')
    problem = `must be a string, not ${sessionId === null ? 'null' : typeof sessionId}`;
  else if (sessionId.trim() === '') problem = 'must not be blank';
  else if (sessionId.length > 1024) problem = `has ${sessionId.length} UTF-16 units, at most 1024 are allowed`;
  else if (sessionId.includes('\0')) problem = 'must not contain NUL';
  else if (/\p{Surrogate}/u.test(sessionId)) problem = 'must not contain lone surrogates';
  if (problem !== undefined) throw new UserError(`A session id ${problem}.`, { code: 'session_id_invalid' });
}

function checkSettings(settings: unknown): void {
  if (settings === undefined) return;
  if (typeof settings !== 'object' || settings === null) throw wrong('sessionSettings', 'an object');
  const unknown = Object.keys(settings).find((key) => key !== 'limit');
  if (unknown !== undefined)
    throw new UserError(`Unknown member '${unknown}' of 'sessionSettings'. Did you mean 'limit'?`);
  resolveLimit(undefined, settings);
}

/** How many items to read; `undefined`: all. @throws UserError */
export function resolveLimit(limit: number | undefined, settings: SessionSettings | undefined): number | undefined {
  const given = limit ?? settings?.limit;
  if (given === undefined || given === null) return undefined;
  if (!Number.isSafeInteger(given))
    throw new UserError(
      `The limit of getItems() must be a whole number, not ${typeof given === 'number' ? String(given) : typeof given}.`,
    );
  return Math.max(0, given);
}

/** @throws UserError */
export function checkItems<T>(items: readonly T[], where: string): readonly T[] {
  if (!Array.isArray(items)) throw new UserError(`Items of ${where} must be an array.`);
  return items;
}

/** What a versioned write was asked to do. @throws UserError */
export function checkWriteOptions(options: object | undefined, known: readonly string[], where: string): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new UserError(`Options of ${where} must be an object.`);
  for (const [key, value] of Object.entries(options)) {
    if (!known.includes(key)) throw new UserError(`Unknown option '${key}' of ${where}. Known: ${known.join(', ')}.`);
    if (value !== undefined && (typeof value !== 'string' || value.trim() === '')) {
      throw new UserError(`Option '${key}' of ${where} must be a string that is not blank.`);
    }
  }
}

/** @throws UserError */
export function checkOperation<T extends object>(operation: HistoryOperation<T>): HistoryTransaction<T> {
  onlyMembers(operation, ['operationId', 'transaction'], 'argument');
  const { operationId, transaction } = operation;
  if (typeof operationId !== 'string' || operationId.trim() === '')
    throw refuse("needs an 'operationId' that is not blank");
  if (transaction?.type === 'append_items') {
    onlyMembers(transaction, ['type', 'items'], 'transaction');
    checkItems(transaction.items, 'applyHistoryTransaction()');
  } else if (transaction?.type === 'replace_suffix') {
    onlyMembers(transaction, ['type', 'expectedSuffix', 'replacement'], 'transaction');
    checkItems(transaction.expectedSuffix, 'applyHistoryTransaction()');
    checkItems(transaction.replacement, 'applyHistoryTransaction()');
  } else throw refuse("needs a 'transaction' of type 'append_items' or 'replace_suffix'");
  return transaction;
}

function onlyMembers(value: unknown, known: readonly string[], what: string): void {
  if (typeof value !== 'object' || value === null) throw refuse(`needs an object as ${what}`);
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) throw refuse(`has an unknown member '${extra}' in its ${what}`);
}

function refuse(problem: string): UserError {
  return new UserError(`applyHistoryTransaction() ${problem}.`);
}

function wrong(option: string, expected: string): UserError {
  return new UserError(`Option '${option}' of SQLiteSession must be ${expected}.`);
}

/** As the end of a message. */
function suggestion(name: string): string {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z]/g, '');
  const nearest = KNOWN.map((known) => ({ known, distance: editDistance(plain(name), plain(known)) })).sort(
    (a, b) => a.distance - b.distance,
  )[0];
  return nearest !== undefined && nearest.distance <= name.length / 3
    ? `Did you mean '${nearest.known}'?`
    : `Known: ${KNOWN.join(', ')}.`;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
