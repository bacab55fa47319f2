import { median } from '../clock.ts';

/** Rounds of a measurement of sessions, each of which gives a figure: what counts is the median of their ratios. */
export const ROUNDS = 9;

/**
 * Medians in µs of one call of each, for each round. They take turns call by call, so that what the disk and the rest of
 * the machine do hits all of them alike, and the order changes with each turn. After a round that does not count.
 *
 * @param ms of each round; at least one turn
 */
export async function timesOfEach(calls: readonly (() => Promise<unknown>)[], ms: number): Promise<number[][]> {
  const rounds: number[][] = [];
  for (let round = -1; round < ROUNDS; round += 1) {
    const times = await timesOf(calls, ms);
    if (round >= 0) rounds.push(times.map((all) => median(all)));
  }
  return rounds;
}

async function timesOf(calls: readonly (() => Promise<unknown>)[], ms: number): Promise<number[][]> {
  const times: number[][] = calls.map(() => []);
  const start = performance.now();
  for (let turn = 0; turn === 0 || performance.now() - start < ms; turn += 1) {
    const order = [...calls.entries()];
    for (const [index, call] of turn % 2 === 0 ? order : order.toReversed()) {
      const before = performance.now();
      await call();
      times[index]?.push((performance.now() - before) * 1000);
    }
  }
  return times;
}
