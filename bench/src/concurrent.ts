import { readFileSync } from 'node:fs';
import { cpuMs } from './clock.ts';

/** The first runs of a process, all of them waiting for their models at the same time: ms for all, and the process's peak MiB. */
export async function runsAtOnce(run: () => Promise<unknown>, count: number): Promise<number[]> {
  const start = cpuMs();
  await Promise.all(Array.from({ length: count }, run));
  return [cpuMs() - start, peakMiB()];
}

function peakMiB(): number {
  try {
    // What `resourceUsage()` gives a process on Linux is at least what its parent had when it was started.
    const kib = /^VmHWM:\s+(\d+) kB/mu.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    if (kib !== undefined) return Number(kib) / 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS / 1024;
}
