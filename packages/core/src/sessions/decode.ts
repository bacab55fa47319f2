import { decodeItem } from './codec.ts';
import type { StoredRecord } from './history-backend.ts';

/** Items that are decoded between two looks at the clock, and how long others may have to wait. */
const SLICE = 50;
const YIELD_AFTER_MS = 15;

/** `undefined`: corrupt. */
export function decodeRecord<T extends object>({ text }: StoredRecord): T | undefined {
  return text === undefined ? undefined : decodeItem<T>(text);
}

/** Long histories let others run in between. */
export async function decodeAll<T extends object>(
  records: readonly StoredRecord[],
): Promise<{ items: T[]; corrupt: StoredRecord[] }> {
  const items: T[] = [];
  const corrupt: StoredRecord[] = [];
  const pause = pauses();
  for (const [index, record] of records.entries()) {
    const item = decodeRecord<T>(record);
    if (item === undefined) corrupt.push(record);
    else items.push(item);
    if (index % SLICE === SLICE - 1) await pause();
  }
  return { items, corrupt };
}

/** For long loops, called at each turn: lets others run when they have waited for long enough, else gives nothing to wait for. */
export function pauses(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < YIELD_AFTER_MS) return undefined;
    return new Promise<void>((resolve) => {
      setTimeout(() => {
        since = performance.now();
        resolve();
      }, 0);
    });
  };
}
