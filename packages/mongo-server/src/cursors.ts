import { BSON, Long } from 'mongodb';

import { CommandError } from './errors.ts';
import type { Doc } from './values.ts';

const MAX_REPLY_BYTES = 16 * 1024 * 1024;
const FIRST_BATCH = 101;

/** Results that are fetched bit by bit. Each is of the moment at which it was made. */
export class Cursors {
  readonly #open = new Map<string, { space: string; docs: Doc[] }>();
  #last = 1_000_000;

  get count(): number {
    return this.#open.size;
  }

  first(space: string, docs: Doc[], batchSize: number | undefined, single: boolean): Doc {
    const batch = take(docs, batchSize ?? FIRST_BATCH);
    let id = Long.ZERO;
    if (docs.length > 0 && !single) {
      id = Long.fromNumber(++this.#last);
      this.#open.set(id.toString(), { space, docs });
    }
    return { cursor: { firstBatch: batch, id, ns: space }, ok: 1 };
  }

  next(id: string, batchSize: number | undefined): Doc {
    const cursor = this.#open.get(id);
    if (!cursor) throw new CommandError(43, 'CursorNotFound', `cursor id ${id} not found`);
    const nextBatch = take(cursor.docs, batchSize ?? Infinity);
    if (cursor.docs.length === 0) this.#open.delete(id);
    return {
      cursor: { nextBatch, id: cursor.docs.length === 0 ? Long.ZERO : Long.fromString(id), ns: cursor.space },
      ok: 1,
    };
  }

  kill(id: string): boolean {
    return this.#open.delete(id);
  }
}

/** Removes from the front what fits into one answer: at least one document. */
function take(docs: Doc[], count: number): Doc[] {
  let bytes = 0;
  let taken = 0;
  while (taken < docs.length && taken < count) {
    bytes += BSON.calculateObjectSize(docs[taken] ?? {});
    if (taken > 0 && bytes > MAX_REPLY_BYTES) break;
    taken++;
  }
  return docs.splice(0, taken);
}
