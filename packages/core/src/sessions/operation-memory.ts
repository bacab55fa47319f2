import type { HistoryOperationKey } from './history-backend.ts';

/** Operations are remembered this long, the last ones in any case, and never more than so many (SESS-034). */
const REMEMBER_MS = 24 * 60 * 60 * 1000;
const AT_LEAST = 64;
const AT_MOST = 1024;

type Entry = readonly [id: string, digest: string, version: string, atMs: number];

/** Which operations a history has seen, for stores that keep them in one piece of JSON. Never changes; `with` gives another. */
export class OperationMemory {
  readonly #entries: readonly Entry[];
  readonly #byId: ReadonlyMap<string, Entry>;

  /** @param entries the oldest first */
  constructor(entries: readonly Entry[]) {
    this.#entries = entries;
    this.#byId = new Map(entries.map((entry) => [entry[0], entry]));
  }

  /** What is not an entry is left out. */
  static from(value: unknown): OperationMemory {
    const entries = Array.isArray(value) ? (value as readonly unknown[]) : [];
    return new OperationMemory(
      entries.filter(
        (entry): entry is Entry =>
          Array.isArray(entry) && entry.length === 4 && entry.slice(0, 3).every((part) => typeof part === 'string'),
      ),
    );
  }

  get(id: string): { readonly digest: string; readonly version: string } | undefined {
    const entry = this.#byId.get(id);
    return entry && { digest: entry[1], version: entry[2] };
  }

  /** With one more, and without those that may be forgotten. */
  with({ id, digest }: HistoryOperationKey, version: string, now: number = Date.now()): OperationMemory {
    const entries: readonly Entry[] = [...this.#entries, [id, digest, version, now]];
    const last = entries.slice(-AT_MOST);
    const from = Math.max(0, last.length - AT_LEAST);
    return new OperationMemory(last.filter((entry, index) => index >= from || now - entry[3] < REMEMBER_MS));
  }

  toJSON(): readonly Entry[] {
    return this.#entries;
  }
}
