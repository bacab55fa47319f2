import type { AgentInputItem, Session } from '../../src/index.ts';
import type { HistoryOperation, TransactionalSession } from '../../src/session.ts';
import { SessionOutcomeUnknownError } from '../../src/session.ts';
import { idle } from '../run-kit.ts';
import type { Random } from './script.ts';

/**
 * Of the next append: it fails before anything is stored, its acknowledgement is lost, only its first item arrives, or
 * (where appends have ids) the session says that it does not know.
 */
export type Fault = 'before' | 'lost' | 'half' | 'unknown';

/** What the two kinds of sessions have in common: a list, and when its calls are slow or fail. */
export class Store {
  readonly items: AgentInputItem[] = [];
  readonly error: Error = new Error('the store is down');
  /** Faults of the next appends in order; `undefined`: that one works. */
  faults: (Fault | undefined)[] = [];
  /** The read that fails, counted from now; below 0: none. */
  failingRead = -1;
  /** What was done to it that must not be. */
  readonly broken: string[] = [];
  /** Length before the batch that arrived in part. */
  half: number | undefined;
  readonly #slow: Random;
  readonly #point: (name: string) => void;

  constructor(slow: Random, point: (name: string) => void) {
    this.#slow = slow;
    this.#point = point;
  }

  async read(limit: number | undefined): Promise<AgentInputItem[]> {
    this.#point('read');
    await idle(this.#slow(3));
    this.failingRead -= 1;
    if (this.failingRead === -1) throw this.error;
    const items = limit === undefined ? this.items : limit <= 0 ? [] : this.items.slice(-limit);
    return structuredClone(items);
  }

  async append(items: readonly AgentInputItem[], atomic: boolean): Promise<void> {
    const batch = structuredClone([...items]);
    this.#point('append');
    // Now and then later than anything that is merely awaited: whoever does not wait for a write is seen.
    await idle(this.#slow(6));
    const fault = this.faults.shift();
    if (fault === 'before' || (fault === 'half' && atomic)) throw this.error;
    if (this.half !== undefined && this.items.length <= this.half) this.half = undefined;
    if (this.half !== undefined) this.broken.push('the session was written to, though its last batch is there in part');
    // Of one item there is no part.
    if (fault === 'half' && batch.length > 1) {
      this.half = this.items.length;
      this.items.push(...batch.slice(0, 1));
    } else this.items.push(...batch);
    this.#point('appended');
    await idle(this.#slow(3));
    if (fault === 'unknown' && atomic)
      throw new SessionOutcomeUnknownError('the answer was lost', { sessionId: 's', operation: 'append' });
    if (fault !== undefined) throw this.error;
  }

  /** What a person does about a batch that arrived in part. */
  repair(): boolean {
    if (this.half === undefined) return false;
    this.items.length = this.half;
    this.half = undefined;
    return true;
  }
}

/** The four methods and no more. */
export function plainSession(store: Store): Session {
  return {
    sessionId: 's',
    getItems: (limit) => store.read(limit),
    addItems: (items) => store.append(items, false),
    popItem: async () => store.items.pop(),
    clearSession: async () => void (store.items.length = 0),
  };
}

/** Appends have ids: a repeated one changes nothing. */
export function sessionWithIds(store: Store): TransactionalSession {
  const known = new Set<string>();
  return {
    ...plainSession(store),
    async applyHistoryTransaction({ operationId, transaction }: HistoryOperation): Promise<void> {
      if (transaction.type !== 'append_items') throw new Error('Nobody asks for this.');
      if (known.has(operationId)) return;
      const before = store.items.length;
      try {
        await store.append(transaction.items, true);
      } finally {
        if (store.items.length > before) known.add(operationId);
      }
    },
  };
}
