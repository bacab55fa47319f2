import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { median } from '../../clock.ts';
import { answer, question } from '../../task.ts';
import type { FileStore, OpenStore } from './file.ts';

/** One of the stores that are measured beside each other, each in a file of its own. */
export interface Contestant {
  readonly openStore: OpenStore;
  /** Items that a session has before it is measured. */
  readonly history: number;
  readonly withOperationId?: boolean;
}

export interface StoreOptions {
  readonly synchronous: 'FULL' | 'NORMAL';
  /** Appends per session, then reads: few enough for the history to stay about as long as it was. */
  readonly calls: number;
  /** Of warm-up, and of measuring. */
  readonly ms: number;
}

/** Times of one call in µs. Medians, and of a clock on the wall: much of it waits for the disk. */
export interface StoreTimes {
  readonly append: number;
  /** Of 20 items. */
  readonly tail: number;
}

/** Call by call in turn, so that what the disk and the rest of the machine do hits all of them alike. */
export async function storeTimes<Name extends string>(
  contestants: Readonly<Record<Name, Contestant>>,
  options: StoreOptions,
): Promise<Record<Name, StoreTimes>> {
  const folder = mkdtempSync(join(tmpdir(), 'agents-bench-'));
  try {
    const all = Object.entries<Contestant>(contestants).map(
      ([name, contestant]) => new Timed(name, contestant, folder),
    );
    const start = performance.now();
    do {
      if (performance.now() - start < options.ms) for (const timed of all) timed.forget();
      await measureSessions(all, options);
    } while (performance.now() - start < 2 * options.ms);
    return Object.fromEntries(all.map((timed) => [timed.name, timed.times])) as Record<Name, StoreTimes>;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** New sessions with their histories, the same calls of each. */
async function measureSessions(all: readonly Timed[], { synchronous, calls }: StoreOptions): Promise<void> {
  for (const timed of all) await timed.open(synchronous);
  for (let call = 0; call < calls; call += 1) for (const timed of all) await timed.append(call);
  for (let call = 0; call < calls; call += 1) for (const timed of all) await timed.tail();
  for (const timed of all) await timed.close();
}

class Timed {
  readonly name: string;
  readonly #contestant: Contestant;
  readonly #path: string;
  #sessions = 0;
  #store: FileStore | undefined;
  #last: readonly object[] = [];
  #appends: number[] = [];
  #tails: number[] = [];

  constructor(name: string, contestant: Contestant, folder: string) {
    this.name = name;
    this.#contestant = contestant;
    this.#path = join(folder, `${name}.db`);
  }

  get times(): StoreTimes {
    return { append: median(this.#appends), tail: median(this.#tails) };
  }

  forget(): void {
    this.#appends = [];
    this.#tails = [];
  }

  async open(synchronous: StoreOptions['synchronous']): Promise<void> {
    const { openStore, history } = this.#contestant;
    this.#store = openStore(`session ${++this.#sessions}`, this.#path, synchronous);
    await this.#store.append(Array.from({ length: history / 2 }, (_, index) => exchange(index)).flat());
  }

  async append(call: number): Promise<void> {
    this.#last = exchange(call);
    const operationId = this.#contestant.withOperationId ? `operation ${call}` : undefined;
    const before = performance.now();
    await this.#store?.append(this.#last, operationId);
    this.#appends.push((performance.now() - before) * 1000);
  }

  async tail(): Promise<void> {
    const before = performance.now();
    const items = await this.#store?.tail(20);
    this.#tails.push((performance.now() - before) * 1000);
    if (items?.length !== 20 || !isDeepStrictEqual(items.slice(-2), this.#last))
      throw new Error('The tail is not what was appended last.');
  }

  async close(): Promise<void> {
    await this.#store?.close();
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
