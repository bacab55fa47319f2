import { SessionSchemaError } from '@agents/core/session';

import type { Database } from './driver.ts';
import type { TableNames } from './schema.ts';

/*
 * The tables of Python's AdvancedSQLiteSession (SESS §8). Their names are fixed, so a file has them for one pair of tables;
 * the foreign keys of the first two say for which.
 */
const OWNED = {
  message_structure: { session_id: ['sessions', 'session_id'], message_id: ['messages', 'id'] },
  turn_usage: { session_id: ['sessions', 'session_id'] },
} as const;
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  message_structure: [
    'id',
    'session_id',
    'message_id',
    'branch_id',
    'message_type',
    'sequence_number',
    'user_turn_number',
    'branch_turn_number',
    'tool_name',
  ],
  turn_usage: [
    'session_id',
    'branch_id',
    'user_turn_number',
    'requests',
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'input_tokens_details',
    'output_tokens_details',
  ],
};

/** Whose the tables of branches are: nobody's, those of this pair, or, with the reason, not to be used with it. */
export type BranchOwner = 'none' | 'ours' | { readonly problem: string };

export function branchOwner(database: Database, names: TableNames): BranchOwner {
  const tables = Object.keys(OWNED) as (keyof typeof OWNED)[];
  const missing = tables.filter((table) => !isTable(database, table));
  if (missing.length === tables.length) return 'none';
  if (missing.length > 0) return { problem: `the table '${missing[0] ?? ''}' is missing` };
  for (const table of tables) {
    const problem = ownerProblem(database, names, table);
    if (problem !== undefined) return { problem };
  }
  return 'ours';
}

/** Older versions of that class had two tables only; the others are needed with them. */
export function hasAllBranchTables(database: Database): boolean {
  return ['branch_reservations', 'session_clear_generations'].every((table) => isTable(database, table));
}

function ownerProblem(database: Database, names: TableNames, table: keyof typeof OWNED): string | undefined {
  const columns = database.prepare(`PRAGMA table_info("${table}")`).all() as { name: string }[];
  const lacking = COLUMNS[table]?.find((name) => !columns.some((column) => same(column.name, name)));
  if (lacking !== undefined) return `'${table}' has no column '${lacking}'`;
  const keys = database.prepare(`PRAGMA foreign_key_list("${table}")`).all() as ForeignKey[];
  for (const [column, [role, target]] of Object.entries(OWNED[table])) {
    const owners = keys.filter((key) => same(key.from, column));
    const [owner] = owners;
    if (owner === undefined || owners.length > 1) return `'${table}' does not say whose '${column}' it has`;
    if (!same(owner.table, names[role]) || !same(owner.to, target))
      return `'${table}' belongs to the table '${owner.table}'`;
  }
  return undefined;
}

interface ForeignKey {
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

/** As SQLite compares names: ASCII letters without their case. */
function same(a: string, b: string): boolean {
  const folded = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return folded(a) === folded(b);
}

function isTable(database: Database, name: string): boolean {
  const found: unknown = database
    .prepare(`SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE`)
    .get(name);
  return found !== undefined && found !== null;
}

export function foreignBranches(problem: string): SessionSchemaError {
  return new SessionSchemaError(
    `The file has tables of branches that can't be used with these tables: ${problem}. Nothing was changed. Use another file for each pair of tables.`,
  );
}

/** Makes what is missing. Inside a write transaction. */
export function createBranchTables(database: Database, { sessions, messages }: TableNames): void {
  database.exec(`CREATE TABLE IF NOT EXISTS message_structure (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    message_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    user_turn_number INTEGER,
    branch_turn_number INTEGER,
    tool_name TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES "${sessions}" (session_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id) REFERENCES "${messages}" (id) ON DELETE CASCADE
  );
  CREATE TABLE IF NOT EXISTS turn_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    user_turn_number INTEGER NOT NULL,
    requests INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    input_tokens_details JSON,
    output_tokens_details JSON,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES "${sessions}" (session_id) ON DELETE CASCADE,
    UNIQUE (session_id, branch_id, user_turn_number)
  );
  CREATE TABLE IF NOT EXISTS branch_reservations (
    session_id TEXT NOT NULL,
    branch_id TEXT NOT NULL,
    PRIMARY KEY (session_id, branch_id)
  );
  CREATE TABLE IF NOT EXISTS session_clear_generations (
    session_id TEXT PRIMARY KEY,
    generation INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX IF NOT EXISTS idx_structure_session_seq ON message_structure (session_id, sequence_number);
  CREATE INDEX IF NOT EXISTS idx_structure_branch ON message_structure (session_id, branch_id);
  CREATE INDEX IF NOT EXISTS idx_structure_turn ON message_structure (session_id, branch_id, user_turn_number);
  CREATE INDEX IF NOT EXISTS idx_structure_branch_seq ON message_structure (session_id, branch_id, sequence_number);
  CREATE INDEX IF NOT EXISTS idx_turn_usage_session_turn ON turn_usage (session_id, branch_id, user_turn_number)`);
}
