import { startNode } from '@agents/testkit';
import type { ChildProgram } from '@agents/testkit';

/** Runs a script of this folder as a process of its own; `release: 1` with the next release of drizzle. */
export function start(script: string, options: { release?: 1 }, ...args: readonly string[]): ChildProgram {
  const next = ['--import', new URL('drizzle-1.mjs', import.meta.url).href];
  return startNode(options.release === 1 ? next : [], new URL(script, import.meta.url), ...args);
}
