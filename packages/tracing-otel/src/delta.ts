import { isObject } from './parts.ts';

/** What the model calls of one agent have shown of its conversation. */
export class Shown {
  readonly #items = new WeakSet<object>();
  readonly #keys = new Set<string>();

  /** Those that no call has shown yet; from now on they are. */
  fresh(items: readonly unknown[]): unknown[] {
    return items.filter((item) => this.#add(item));
  }

  /** An answer is not new when it comes back as input. */
  add(items: readonly unknown[]): void {
    for (const item of items) this.#add(item);
  }

  #add(item: unknown): boolean {
    if (!isObject(item)) return true;
    const key = keyOf(item);
    if (this.#items.has(item) || (key !== undefined && this.#keys.has(key))) return false;
    this.#items.add(item);
    if (key !== undefined) this.#keys.add(key);
    return true;
  }
}

/** Items that are converted on their way keep their ids; instructions are the same text each time. */
function keyOf(item: Readonly<Record<string, unknown>>): string | undefined {
  const { type, role } = item;
  const id = item['call_id'] ?? item['id'];
  if (typeof id === 'string') return JSON.stringify([type ?? 'message', id]);
  return role === 'system' && typeof item['content'] === 'string' ? JSON.stringify([role, item['content']]) : undefined;
}
