import { unhandledDuring } from '../run-kit.ts';
import { drive, weatherOf } from './drive.ts';
import type { Outcome } from './drive.ts';
import { Broken } from './law.ts';
import { watchTimers } from './timers.ts';
import type { Timers } from './timers.ts';

/** How many runs go on at once: most of the time of a run is waiting. */
const AT_ONCE = 24;

export interface Report {
  /** What was wrong, by seed. */
  readonly failures: string[];
  readonly outcomes: Readonly<Record<Outcome, number>>;
}

/** Runs all seeds, several at once. A failure says how to run its seed alone. */
export async function runSeeds(seeds: readonly number[]): Promise<Report> {
  const failures: string[] = [];
  const outcomes = { completed: 0, unstored: 0 };
  const timers = watchTimers();
  const queue = seeds.values();
  const worker = async (): Promise<void> => {
    for (const seed of queue) {
      const failure = await runOne(seed, timers, outcomes);
      if (failure !== undefined)
        failures.push(`seed ${seed} (${weatherOf(seed)}; AGENTS_SEED=${seed} runs it alone):\n${failure}`);
    }
  };
  try {
    const unhandled = await unhandledDuring(async () => {
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    });
    for (const reason of unhandled) failures.push(`nobody handled a rejection: ${textOf(reason)}`);
  } finally {
    timers.restore();
  }
  return { failures, outcomes };
}

async function runOne(seed: number, timers: Timers, outcomes: Record<Outcome, number>): Promise<string | undefined> {
  try {
    const { value, left } = await timers.count(() => drive(seed));
    outcomes[value] += 1;
    return left === 0 ? undefined : `${left} timers are left`;
  } catch (error) {
    return textOf(error);
  }
}

function textOf(error: unknown): string {
  if (error instanceof Broken) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
