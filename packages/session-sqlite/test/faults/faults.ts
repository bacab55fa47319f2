import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { faultResult, faultStart, makeChange, startProcess } from '@agents/testkit';
import type { ChildProgram, FaultOperation, FaultOutcome } from '@agents/testkit';

import { checkFiles, sessionIn } from './subjects.ts';
import type { StoreName } from './subjects.ts';

/**
 * - `killed`: its process ends in the midst of one of many changes;
 * - `locked`: another process holds the lock for longer than the change waits;
 * - `freed`: and lets go of it in time;
 * - `holder`: and is killed while it holds it.
 */
export const embeddedFaults = ['killed', 'locked', 'freed', 'holder'] as const;
export type EmbeddedFault = (typeof embeddedFaults)[number];

/** Sessions that a process changes one after the other: it is killed before it has changed all. */
const SESSIONS = 60;
/** Short, and long enough for all else that a call does. */
const LOCK_MS = 1000;

/** What a change has to do then. @throws Error that says what is wrong */
export async function meetEmbeddedFault(
  store: StoreName,
  operation: FaultOperation,
  fault: EmbeddedFault,
  round: number,
): Promise<FaultOutcome> {
  const folder = mkdtempSync(join(tmpdir(), `faults-${store}-`));
  try {
    return await (fault === 'killed'
      ? killed(store, operation, folder, round)
      : locked(store, operation, folder, fault));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function killed(
  store: StoreName,
  operation: FaultOperation,
  folder: string,
  round: number,
): Promise<FaultOutcome> {
  const child = start(store, folder, operation, SESSIONS);
  // Some changes were made; then at any moment of the next ones.
  await reached(child, 2 + 2 * (round % 20));
  for (const until = performance.now() + 3 * Math.random(); performance.now() < until;);
  child.process.kill('SIGKILL');
  await child.ended;
  checkFiles(store, folder);
  const begun = child.lines().filter((line) => line.startsWith('begun'));
  const last = begun.length - 1;
  for (let n = 0; n < SESSIONS; n++) {
    const session = sessionIn(store, folder, `s${n}`);
    const found = await session.getItems();
    const isAcknowledged = n < last || child.lines().includes(`done ${n}`);
    const isAfter = same(found, faultResult[operation]);
    if (isAcknowledged && !isAfter) throw wrong(operation, 'acknowledged, and not stored', found);
    if (n > last && !same(found, faultStart)) throw wrong(operation, 'not begun, and made', found);
    if (!isAfter && !same(found, faultStart)) throw wrong(operation, 'a part of it is stored', found);
    if (n === last) {
      if (operation !== 'pop' && operation !== 'clear') {
        await makeChange(session, operation, begun[n]?.split(' ')[2] ?? '');
        const settled = await session.getItems();
        if (!same(settled, faultResult[operation])) throw wrong(operation, 'not settled by its id', settled);
      }
      await session.close();
      if (isAcknowledged) return 'ok';
      return isAfter ? 'committed' : 'absent';
    }
    await session.close();
  }
  throw new Error('No change was begun.');
}

async function locked(
  store: StoreName,
  operation: FaultOperation,
  folder: string,
  fault: Exclude<EmbeddedFault, 'killed'>,
): Promise<FaultOutcome> {
  const waiting = sessionIn(store, folder, 's0', fault === 'locked' ? LOCK_MS : 60_000);
  await waiting.addItems(faultStart);
  const { version } = await waiting.readHistory(0);
  const holder = start(store, folder, 'hold', 1);
  await reached(holder, 1);
  let isSettled = false;
  const told = makeChange(waiting, operation, version)
    .then(
      () => 'ok' as const,
      (error: { code?: string }) => {
        if (error.code === 'session_busy') return 'refused' as const;
        throw error;
      },
    )
    .finally(() => (isSettled = true));
  if (fault === 'locked') await told;
  else await new Promise((resolve) => setTimeout(resolve, 20));
  if (isSettled !== (fault === 'locked')) throw new Error(`${operation}: did not wait for the lock`);
  // Readers are not held up.
  const reader = sessionIn(store, folder, 's0');
  const meanwhile = await reader.getItems();
  if (!same(meanwhile, faultStart)) throw wrong(operation, 'made without the lock', meanwhile);
  holder.process.kill(fault === 'holder' ? 'SIGKILL' : 'SIGTERM');
  await holder.ended;
  const outcome = await told;
  const found = await reader.getItems();
  if (!same(found, outcome === 'ok' ? faultResult[operation] : faultStart))
    throw wrong(operation, `${outcome}, and otherwise`, found);
  // Refused, it can be made now.
  if (outcome === 'refused') await makeChange(sessionIn(store, folder, 's0'), operation, version);
  const last = await reader.getItems();
  if (!same(last, faultResult[operation])) throw wrong(operation, 'not made at last', last);
  await waiting.close();
  await reader.close();
  if ((outcome === 'refused') !== (fault === 'locked')) throw new Error(`${operation}, ${fault}: ${outcome}`);
  return outcome;
}

function start(store: StoreName, folder: string, operation: FaultOperation | 'hold', sessions: number): ChildProgram {
  return startProcess(new URL('change.ts', import.meta.url), store, folder, operation, sessions);
}

async function reached(child: ChildProgram, lines: number): Promise<void> {
  const early = child.ended.then((code) => Promise.reject(new Error(`The process ended by itself: ${code}`)));
  early.catch(() => undefined);
  await Promise.race([child.line(lines), early]);
}

const wrong = (operation: string, what: string, found: readonly object[]): Error =>
  new Error(`${operation}: ${what}: ${JSON.stringify(found)}`);
const same = (items: readonly object[], expected: readonly object[]): boolean =>
  JSON.stringify(items) === JSON.stringify(expected);
