import { closeSync, existsSync, fdatasyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { BSON } from 'mongodb';

import type { Doc } from './values.ts';
import { readDocument } from './wire.ts';

/** What a command changed, one after the other; and the answer that a retry of it gets. */
export interface Entry {
  readonly changes: readonly Doc[];
  readonly retry?: { readonly session: string; readonly number: string; readonly reply: Doc } | undefined;
}

/** Entries in one file of a folder; each whole or not there. */
export class Journal {
  readonly #file: number;

  private constructor(file: number) {
    this.#file = file;
  }

  /** Reads what is there; the torn end that a crash may leave is cut off. */
  static open(folder: string, replay: (entry: Entry) => void): Journal {
    const path = join(folder, 'journal.bson');
    const data = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    let at = 0;
    while (at + 4 <= data.length) {
      const length = data.readInt32LE(at);
      if (at + length > data.length) break;
      replay(readDocument(data.subarray(at, at + length)) as unknown as Entry);
      at += length;
    }
    const file = openSync(path, 'a');
    ftruncateSync(file, at);
    return new Journal(file);
  }

  /** Outlives the process, and the machine, when it returns. */
  append(entry: Entry): void {
    writeSync(this.#file, BSON.serialize(entry, { ignoreUndefined: true }));
    fdatasyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}
