import { Broken } from '../random/law.ts';
import { watchTimers } from '../random/timers.ts';
import type { Timers } from '../random/timers.ts';
import { driveBoth, FormsDiffer } from './drive.ts';
import type { Story } from './drive.ts';
import { kinds, kindsOf, siteNames } from './sites.ts';
import type { Kind, SiteName } from './sites.ts';

/** Most of the time of a run is waiting. */
const AT_ONCE = 24;
/** Of a seed whose forms differ, when nothing else runs: what differs each time is no matter of time. */
const ATTEMPTS_ALONE = 5;

/** How often each kind of fault happened at each place, in runs of both forms. */
export type Matrix = Map<SiteName, Map<Kind, number>>;

export interface Report {
  /** What was wrong, by seed. */
  readonly failures: string[];
  readonly matrix: Matrix;
}

/** Runs all seeds, several at once. A failure says how to run its seed alone. */
export async function runSeeds(seeds: Iterable<number>): Promise<Report> {
  const failures: string[] = [];
  const matrix: Matrix = new Map();
  const timers = watchTimers();
  const queue = seeds[Symbol.iterator]();
  const unhandled = (reason: unknown): void => void failures.push(`nobody handled a rejection: ${textOf(reason)}`);
  process.on('unhandledRejection', unhandled);
  const alone: number[] = [];
  const fail = (seed: number, text: string): void =>
    void failures.push(`seed ${seed} (AGENTS_SEED=${seed} runs it alone):\n${text}`);
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); !next.done; next = queue.next()) {
      const failure = await runOne(next.value, timers, matrix);
      if (failure instanceof FormsDiffer) alone.push(next.value);
      else if (failure) fail(next.value, textOf(failure));
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    for (const seed of alone) {
      let failure = await runOne(seed, timers, matrix);
      for (let again = 1; again < ATTEMPTS_ALONE && failure instanceof FormsDiffer; again++)
        failure = await runOne(seed, timers, matrix);
      if (failure) fail(seed, textOf(failure));
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    process.off('unhandledRejection', unhandled);
    timers.restore();
  }
  return { failures, matrix };
}

async function runOne(seed: number, timers: Timers, matrix: Matrix): Promise<Error | undefined> {
  try {
    const { value, left } = await timers.count(() => driveBoth(seed));
    for (const story of [value.plain, value.streamed]) count(story, matrix);
    return left === 0 ? undefined : new Broken(`${left} timers are left`);
  } catch (error) {
    return error instanceof Error ? error : new Broken(String(error));
  }
}

function count({ fired }: Story, matrix: Matrix): void {
  for (const { fault } of fired) {
    const row = matrix.get(fault.site) ?? new Map<Kind, number>();
    matrix.set(fault.site, row.set(fault.kind, (row.get(fault.kind) ?? 0) + 1));
  }
}

/** Places and kinds that no seed hit. */
export function unhit(matrix: Matrix): string[] {
  return siteNames.flatMap((site) =>
    kindsOf(site).flatMap((kind) => (matrix.get(site)?.has(kind) ? [] : [`${site} ${kind}`])),
  );
}

export function table(matrix: Matrix): string {
  const cell = (site: SiteName, kind: Kind): string =>
    String(kindsOf(site).includes(kind) ? (matrix.get(site)?.get(kind) ?? 0) : '-').padStart(7);
  return [
    `${''.padEnd(34)}${kinds.map((kind) => kind.padStart(7)).join('')}`,
    ...siteNames.map((site) => site.padEnd(34) + kinds.map((kind) => cell(site, kind)).join('')),
  ].join('\n');
}

function textOf(error: unknown): string {
  if (error instanceof Broken) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
