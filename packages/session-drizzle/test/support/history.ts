import { DrizzleHistory } from '../../src/history.ts';
import { readOptions } from '../../src/options.ts';
import type { Opened } from './databases.ts';

/** An item as it is stored. */
export const text = (content: number | string): string => JSON.stringify({ role: 'user', content: String(content) });
/** Of the items 1, 2, … or from another number on. */
export const textsOf = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, index) => text(from + index));
export const historyOf = (db: Opened['db'], id: string): DrizzleHistory =>
  new DrizzleHistory(id, readOptions({ db }, 'DrizzleSession'), () => {});
/** The texts of the records. */
export const read = async (history: DrizzleHistory, count?: number): Promise<unknown[]> =>
  (await history.read(count)).records.map((record) => record.text);
