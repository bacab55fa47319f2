import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { FileSession } from '@agents/core/node';
import type { ManagedSession } from '@agents/core/session';

import { SQLiteSession } from '../../src/index.ts';

export const stores = ['sqlite', 'file'] as const;
export type StoreName = (typeof stores)[number];

interface Item {
  readonly n: string;
}

/** A session in a folder, by name of the store; `waitMs`: for a lock. */
export function sessionIn(store: StoreName, folder: string, id: string, waitMs = 10_000): ManagedSession<Item> {
  if (store === 'file') return new FileSession<Item>(id, { dir: folder, operationTimeoutMs: 2 * waitMs });
  mkdirSync(folder, { recursive: true });
  return new SQLiteSession<Item>(id, { path: pathIn(folder), busyTimeoutMs: waitMs });
}

const pathIn = (folder: string): string => join(folder, 'sessions.db');

/** @throws Error when the file is damaged */
export function checkFiles(store: StoreName, folder: string): void {
  if (store === 'file') return;
  const database = new DatabaseSync(pathIn(folder));
  const { integrity_check: found } = database.prepare('PRAGMA integrity_check').get() as { integrity_check: string };
  database.close();
  if (found !== 'ok') throw new Error(`The file is damaged: ${found}`);
}
