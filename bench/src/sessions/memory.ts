import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { median } from '../clock.ts';

const TURNS = 25;

/** Bytes that one call takes of the heap and beside it, garbage included, while its result is held: the median. */
export async function bytesOf(call: () => Promise<unknown>): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const all: number[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    collect();
    const before = used();
    const result = await call();
    all.push(used() - before);
    if (result === undefined) throw new Error('Nothing was read.');
  }
  return median(all);
}

function used(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
