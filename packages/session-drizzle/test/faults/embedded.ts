// Databases within the process, which dies in the midst of a change.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { faultResult, faultStart, makeChange } from '@agents/testkit';
import type { FaultOperation, FaultOutcome } from '@agents/testkit';
import { sql } from 'drizzle-orm/sql/sql';

import { start } from '../processes/child.ts';
import { open } from '../support/databases.ts';
import type { DriverName, Opened } from '../support/databases.ts';
import { execute } from '../support/fixture.ts';
import { sessionOn } from './subject.ts';

export type Embedded = Extract<DriverName, 'better-sqlite3' | 'libsql' | 'node:sqlite' | 'PGlite'>;
export const embedded: readonly Embedded[] = ['better-sqlite3', 'libsql', 'node:sqlite', 'PGlite'];

/**
 * Lets a process die within a change: before one of its statements, another one in each round. What was acknowledged has to
 * be there, anything else as a whole or not at all; under its id it can be repeated.
 *
 * @returns what became of the change; `ok`: it had fewer statements
 * @throws Error that says what is wrong
 */
export async function dieWithin(
  driver: Embedded,
  operation: FaultOperation,
  round: number,
): Promise<Exclude<FaultOutcome, 'refused'>> {
  const folder = mkdtempSync(join(tmpdir(), 'session-drizzle-died-'));
  const path = join(folder, 'data');
  const release = driver === 'node:sqlite' ? ({ release: 1 } as const) : {};
  const child = start('change-and-die.ts', release, driver, path, operation, String(round));
  const signal = await child.ended;
  if (signal !== 'SIGKILL') throw new Error(`The process ended by itself: ${signal}`);
  const [version = '', done] = child.lines();
  // drizzle of node:sqlite is another release, which this process has not.
  const opened = await open(driver === 'node:sqlite' ? 'better-sqlite3' : driver, path);
  try {
    if (opened.dialect === 'sqlite') await checkFile(opened);
    const session = sessionOn(opened, 's');
    const found = await session.getItems();
    const isAfter = same(found, faultResult[operation]);
    if (!isAfter && !same(found, faultStart))
      throw new Error(`${operation}: a part of the change is stored: ${JSON.stringify(found)}`);
    if (done === 'done' && !isAfter) throw new Error(`${operation}: acknowledged, and not stored`);
    if (operation !== 'pop' && operation !== 'clear') {
      await makeChange(session, operation, version);
      if (!same(await session.getItems(), faultResult[operation]))
        throw new Error(`${operation}: not settled by its id`);
    }
    if (done === 'done') return 'ok';
    return isAfter ? 'committed' : 'absent';
  } finally {
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function checkFile(opened: Opened): Promise<void> {
  const result = JSON.stringify(await execute(opened, sql`select * from pragma_integrity_check`));
  if (result !== '[{"integrity_check":"ok"}]') throw new Error(`The file is damaged: ${result}`);
}

const same = (items: readonly object[], expected: readonly object[]): boolean =>
  JSON.stringify(items) === JSON.stringify(expected);
