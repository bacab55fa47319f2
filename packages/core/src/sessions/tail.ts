import { checkItemList } from '../items/check.ts';
import { itemDigest } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import { supports } from './contract.ts';
import type { Session } from './contract.ts';

/** More than any turn needs; a longer batch is compared with as much as is known. */
export const KEPT = 256;

/**
 * What a segment knows of the session's newest items, from its own read and its own batches, so that a write knows what
 * stood before it without reading again. Bounded: a turn costs the same at any length of history.
 */
export class KnownTail {
  #items: AgentInputItem[];
  /** Whether the items reach back to the beginning. */
  #complete: boolean;

  constructor(items: readonly AgentInputItem[], complete: boolean) {
    this.#items = items.slice(-KEPT);
    this.#complete = complete && items.length <= KEPT;
  }

  /** Whether something is known: a window of 0 hides everything. */
  get known(): boolean {
    return this.#complete || this.#items.length > 0;
  }

  /** The newest `count` items, or all that are known. */
  last(count: number): readonly AgentInputItem[] {
    return count >= this.#items.length ? this.#items : this.#items.slice(-count);
  }

  push(items: readonly AgentInputItem[]): void {
    this.#items.push(...items.slice(-KEPT));
    if (items.length > KEPT) this.#complete = false;
    if (this.#items.length > 2 * KEPT) {
      this.#items = this.#items.slice(-KEPT);
      this.#complete = false;
    }
  }
}

/** Raw digest of an item as this session compares it (STATE-316). */
export function tailDigest(session: Session, item: AgentInputItem): string {
  if (!supports(session, 'itemPolicy') || !session.normalizeForComparison) return itemDigest(item, 'raw');
  const normalized = session.normalizeForComparison(item);
  checkItemList([normalized], "The session's normalizeForComparison() returned");
  return itemDigest(normalized, 'raw');
}
