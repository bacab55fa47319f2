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
  let since = performance.now();
  for (const [index, record] of records.entries()) {
    const item = decodeRecord<T>(record);
    if (item === undefined) corrupt.push(record);
    else items.push(item);
    if (index % SLICE !== SLICE - 1 || performance.now() - since < YIELD_AFTER_MS) continue;
    await new Promise<void>((resolve) => {
      setTimeout(resolve, 0);
    });
    since = performance.now();
  }
  return { items, corrupt };
}
