import { UserError } from '@agents/core';

import type { SQLiteHandle } from './options.ts';

/** `SQLiteHandle` with the values that are used here. */
export interface Database {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
}
export interface Statement {
  run(...values: readonly (string | number)[]): unknown;
  get(...values: readonly (string | number)[]): unknown;
  all(...values: readonly (string | number)[]): unknown[];
}
export interface OwnedDatabase extends Database {
  close(): void;
}

/** The public type keeps out of the way of drivers' own types; calls here pass strings and numbers only. */
export function databaseOf(handle: SQLiteHandle): Database {
  return handle;
}

/**
 * Opens a file, or `:memory:`, with the driver of the runtime, which is loaded only now.
 *
 * @throws UserError when the runtime has none; the driver's error when the file can't be opened
 */
export function openDatabase(path: string): OwnedDatabase {
  const { process } = globalThis;
  if (process?.versions?.bun !== undefined) {
    // Foreign keys are off there, and it has no wait of its own, unless somebody asks for them.
    const bun = process.getBuiltinModule?.('bun:sqlite') as unknown as BunSQLite | undefined;
    if (bun !== undefined) return new bun.Database(path);
  }
  const sqlite = process?.getBuiltinModule?.('node:sqlite');
  if (sqlite === undefined) {
    throw new UserError(
      `SQLiteSession needs node:sqlite, which Node has from 22.13 on; this is ${process?.version ?? 'another runtime'}. Use a newer Node, or pass an open database of better-sqlite3 as 'database'.`,
    );
  }
  // Foreign keys as Python's driver has them: off. No wait inside the driver.
  return new sqlite.DatabaseSync(path, { enableForeignKeyConstraints: false });
}

interface BunSQLite {
  readonly Database: new (path: string) => OwnedDatabase;
}
