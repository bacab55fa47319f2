import { setImmediate } from 'node:timers/promises';

/** CPU time of the main thread: what a measurement takes on an idle machine, whatever else this one does. */
export function cpuMs(): number {
  // Linux brings the clock of a thread up to date at each tick, 4 ms, and when it is asked for that of the process.
  process.cpuUsage();
  // Before Node 23.9 only the process has a clock.
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}

/** Mean time of runs one after another, after a warm-up of the same length. At least one run each. */
export async function msPerRun(run: () => Promise<unknown>, ms: number): Promise<number> {
  await spend(run, ms);
  return await spend(run, ms);
}

/** The same of several runs, in slices of 20 ms that take turns: what the machine does and what is compiled by then is alike. */
export async function msPerRunOfEach(runs: readonly (() => Promise<unknown>)[], ms: number): Promise<number[]> {
  const slice = Math.min(20, ms);
  const totals = runs.map(() => 0);
  let slices = 0;
  const start = cpuMs();
  do {
    if (cpuMs() - start < runs.length * ms) totals.fill((slices = 0));
    for (const [index, run] of runs.entries()) totals[index] = (totals[index] ?? 0) + (await spend(run, slice));
    slices += 1;
  } while (cpuMs() - start < 2 * runs.length * ms);
  return totals.map((total) => total / slices);
}

/** Every 10 ms the event loop has a turn, so that timers and finalizers get to run; it costs nothing beside the runs. */
async function spend(run: () => Promise<unknown>, ms: number): Promise<number> {
  const start = cpuMs();
  let runs = 0;
  do {
    const sliceEnd = performance.now() + Math.min(10, ms);
    do {
      await run();
      runs += 1;
    } while (performance.now() < sliceEnd);
    await setImmediate();
  } while (cpuMs() - start < ms);
  return (cpuMs() - start) / runs;
}

export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2;
}
