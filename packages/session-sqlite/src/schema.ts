import { SessionSchemaError } from '@agents/core/session';

import type { Database } from './driver.ts';

/** Names that were checked: letters, digits, underscores. */
export interface TableNames {
  readonly sessions: string;
  readonly messages: string;
  readonly operations: string;
  readonly metadata: string;
}

/** Columns that every table of these names must have; more are fine if they need no value. */
const COLUMNS = {
  sessions: ['session_id', 'created_at', 'updated_at'],
  messages: ['id', 'session_id', 'message_data', 'created_at'],
  operations: ['session_id', 'operation_id', 'digest', 'result', 'created_at'],
  metadata: ['session_id', 'data'],
} as const satisfies Record<keyof TableNames, readonly string[]>;

/** The tables of the Python SDK, and two of ours that it ignores (SESS §7.2, SESS-375). */
const CREATE: Record<keyof TableNames, (names: TableNames) => string> = {
  sessions: ({ sessions }) => `CREATE TABLE IF NOT EXISTS "${sessions}" (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
  )`,
  messages: ({ sessions, messages }) => `CREATE TABLE IF NOT EXISTS "${messages}" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES "${sessions}" (session_id) ON DELETE CASCADE
  );
  CREATE INDEX IF NOT EXISTS "idx_${messages}_session_id" ON "${messages}" (session_id, id)`,
  operations: ({ operations }) => `CREATE TABLE IF NOT EXISTS "${operations}" (
    session_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    result TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (session_id, operation_id)
  )`,
  metadata: ({ metadata }) => `CREATE TABLE IF NOT EXISTS "${metadata}" (
    session_id TEXT PRIMARY KEY,
    data TEXT NOT NULL
  )`,
};
/** Without these keys rows would get no ids or used ones, sessions would double, operations would be applied twice. */
const KEYS = {
  sessions: ['session_id'],
  messages: ['id'],
  operations: ['session_id', 'operation_id'],
  metadata: ['session_id'],
} as const satisfies Record<keyof TableNames, readonly string[]>;
const ROLES = ['sessions', 'messages', 'operations', 'metadata'] as const;

/**
 * Which of the tables are missing. Only reads.
 *
 * @throws SessionSchemaError when one of these names means something else
 */
export function missingTables(database: Database, names: TableNames): (keyof TableNames)[] {
  return ROLES.filter((role) => !checkTable(database, names[role], role));
}

/** Makes what is missing. Inside a write transaction: another process may have made it meanwhile. */
export function createTables(database: Database, names: TableNames): void {
  for (const role of missingTables(database, names)) database.exec(CREATE[role](names));
}

/** Whether the table exists. */
function checkTable(database: Database, name: string, role: keyof TableNames): boolean {
  const expected: readonly string[] = COLUMNS[role];
  const found = database.prepare('SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE').get(name) as
    | { type?: unknown; sql?: unknown }
    | undefined
    | null;
  if (found === undefined || found === null) return false;
  if (found.type !== 'table') throw foreign(name, `is a ${String(found.type)}`);
  const columns = database.prepare(`PRAGMA table_info("${name}")`).all() as Column[];
  const missing = expected.filter((column) => !columns.some((other) => other.name.toLowerCase() === column));
  if (missing.length > 0) throw foreign(name, `has no column ${missing.map((column) => `'${column}'`).join(', ')}`);
  const needed = columns.find(
    (column) =>
      !expected.includes(column.name.toLowerCase()) &&
      column.notnull !== 0 &&
      column.dflt_value === null &&
      column.pk === 0,
  );
  if (needed !== undefined) throw foreign(name, `needs a value for its column '${needed.name}'`);
  checkKeys(name, role, columns, String(found.sql));
  return true;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: unknown;
  /** Place in the primary key, from 1 on; 0: not in it. */
  readonly pk: number;
}

function checkKeys(name: string, role: keyof TableNames, columns: readonly Column[], sql: string): void {
  const wanted: readonly string[] = KEYS[role];
  const key = columns.filter(({ pk }) => pk > 0).map((column) => column.name.toLowerCase());
  if (key.length !== wanted.length || !wanted.every((column) => key.includes(column)))
    throw foreign(name, `does not have the primary key (${wanted.join(', ')})`);
  const id = columns.find((column) => column.pk > 0 && column.name.toLowerCase() === 'id');
  // Ids count up and are never used again: the newest one is the version of a history (SESS-192).
  if (id !== undefined && (id.type.toUpperCase() !== 'INTEGER' || !/\bAUTOINCREMENT\b/i.test(sql)))
    throw foreign(name, "has a column 'id' that is not INTEGER PRIMARY KEY AUTOINCREMENT");
  // A numeric column would change ids and texts that look like numbers.
  const numeric = columns.find(
    (column) => TEXTS.has(column.name.toLowerCase()) && column.type !== '' && !/CHAR|CLOB|TEXT|BLOB/i.test(column.type),
  );
  if (numeric !== undefined) throw foreign(name, `has a column '${numeric.name}' that is not text`);
}
const TEXTS: ReadonlySet<string> = new Set(['session_id', 'message_data', 'operation_id', 'digest', 'result', 'data']);

function foreign(name: string, problem: string): SessionSchemaError {
  return new SessionSchemaError(
    `'${name}' ${problem}: it is not a table of sessions, and nothing was changed. Use another file, or other names with 'sessionsTable' and 'messagesTable'.`,
  );
}
