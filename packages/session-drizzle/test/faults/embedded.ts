// Databases within the process: it is killed in the midst of a change.
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
 * Kills a process that makes one change after the other, each of a session of its own. What it acknowledged has to be
 * there, and the change that was under way as a whole or not at all; under its id it can be repeated.
 *
 * @returns what became of the last change; `ok`: it was acknowledged before the end
 * @throws Error that says what is wrong
 */
export async function killWithin(
  driver: Embedded,
  operation: FaultOperation,
  round: number,
): Promise<Exclude<FaultOutcome, 'refused'>> {
  const folder = mkdtempSync(join(tmpdir(), 'session-drizzle-killed-'));
  const path = join(folder, 'data');
  const versions = await killed(driver, operation, path, round);
  // drizzle of node:sqlite is another release, which this process has not.
  const opened = await open(driver === 'node:sqlite' ? 'better-sqlite3' : driver, path);
  try {
    if (opened.dialect === 'sqlite') await checkFile(opened);
    const last = versions.length - 1;
    for (const [number, { acknowledged }] of versions.entries()) {
      const isAfter = same(await sessionOn(opened, `s${number}`).getItems(), faultResult[operation]);
      if (acknowledged && !isAfter) throw new Error(`${operation}: acknowledged, and not stored`);
    }
    const session = sessionOn(opened, `s${last}`);
    const found = await session.getItems();
    const isAfter = same(found, faultResult[operation]);
    if (!isAfter && !same(found, faultStart))
      throw new Error(`${operation}: a part of the change is stored: ${JSON.stringify(found)}`);
    if (operation !== 'pop' && operation !== 'clear') {
      await makeChange(session, operation, versions[last]?.version ?? '');
      if (!same(await session.getItems(), faultResult[operation]))
        throw new Error(`${operation}: not settled by its id`);
    }
    if (versions[last]?.acknowledged === true) return 'ok';
    return isAfter ? 'committed' : 'absent';
  } finally {
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The changes that it began. */
async function killed(
  driver: Embedded,
  operation: FaultOperation,
  path: string,
  round: number,
): Promise<{ readonly version: string; readonly acknowledged: boolean }[]> {
  const child = start('changes.ts', driver === 'node:sqlite' ? { release: 1 } : {}, driver, path, operation);
  const early = child.ended.then((code) => Promise.reject(new Error(`The process ended by itself: ${code}`)));
  early.catch(() => undefined);
  // When the third change begins, or somewhat later.
  await Promise.race([child.line(2 * 2 + 1), early]);
  for (const until = performance.now() + (round % 8) / 4; performance.now() < until;);
  child.process.kill('SIGKILL');
  await child.ended;
  const lines = child.lines();
  return lines.flatMap((line, at) => {
    const [, version] = /^begun (.*)$/.exec(line) ?? [];
    return version === undefined ? [] : [{ version, acknowledged: lines[at + 1] === 'done' }];
  });
}

async function checkFile(opened: Opened): Promise<void> {
  const result = JSON.stringify(await execute(opened, sql`select * from pragma_integrity_check`));
  if (result !== '[{"integrity_check":"ok"}]') throw new Error(`The file is damaged: ${result}`);
}

const same = (items: readonly object[], expected: readonly object[]): boolean =>
  JSON.stringify(items) === JSON.stringify(expected);
