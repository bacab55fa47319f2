import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { median } from '../clock.ts';
import { answer, question } from '../task.ts';
import type { OpenStore, Store } from './store.ts';

export interface StoreTask {
  /** Items that a session has before it is measured. */
  readonly history: number;
  readonly synchronous: 'FULL' | 'NORMAL';
  /** Appends per session, then reads: few enough for the history to stay about as long as it was. */
  readonly calls: number;
  readonly withOperationId?: boolean;
}

/** Times of one call in µs. Medians, and of a clock on the wall: much of it waits for the disk. */
export interface StoreTimes {
  readonly append: number;
  /** Of 20 items. */
  readonly tail: number;
}

/** Takes new sessions of one file, each with its history, until the time is up; the first half is warm-up. */
export async function storeTimes(openStore: OpenStore, task: StoreTask, ms: number): Promise<StoreTimes> {
  const folder = mkdtempSync(join(tmpdir(), 'agents-bench-'));
  try {
    const path = join(folder, 'sessions.db');
    const start = performance.now();
    const times: { append: number[]; tail: number[] } = { append: [], tail: [] };
    let sessions = 0;
    do {
      const store = openStore(`session ${++sessions}`, path, task.synchronous);
      if (performance.now() - start < ms) times.append.length = times.tail.length = 0;
      await measureSession(store, task, times);
      await store.close();
    } while (performance.now() - start < 2 * ms);
    return { append: median(times.append), tail: median(times.tail) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureSession(
  store: Store,
  { history, calls, withOperationId }: StoreTask,
  times: { append: number[]; tail: number[] },
): Promise<void> {
  await store.append(Array.from({ length: history / 2 }, (_, index) => exchange(index)).flat());
  let last: readonly object[] = [];
  for (let call = 0; call < calls; call += 1) {
    last = exchange(history + call);
    const before = performance.now();
    await store.append(last, withOperationId ? `operation ${call}` : undefined);
    times.append.push((performance.now() - before) * 1000);
  }
  for (let call = 0; call < calls; call += 1) {
    const before = performance.now();
    const items = await store.tail(20);
    times.tail.push((performance.now() - before) * 1000);
    if (items.length !== Math.min(20, history + 2 * calls) || !isDeepStrictEqual(items.slice(-2), last))
      throw new Error('The tail is not what was appended last.');
  }
}

function exchange(index: number): object[] {
  return [
    { role: 'user', content: `${question} It is question number ${index}.` },
    {
      type: 'message',
      id: `msg_${index}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: answer, annotations: [] }],
    },
  ];
}
