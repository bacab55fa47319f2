import type { AgentInputItem } from './items.ts';

/**
 * What callbacks see of items that a run keeps or sends: frozen copies, so that nobody changes through them what is stored.
 * An item is copied once, when somebody first looks at it, and a list that begins like the one before costs what is new in
 * it. Runs whose callbacks look at no items have no views.
 */
export class ItemViews {
  readonly #views: WeakMap<AgentInputItem, AgentInputItem> = new WeakMap();
  readonly #sources: WeakMap<AgentInputItem, AgentInputItem> = new WeakMap();
  #last: { readonly items: readonly AgentInputItem[]; readonly shown: readonly AgentInputItem[] } = {
    items: [],
    shown: Object.freeze([]),
  };

  /** The list as callbacks see it; of the same list the same one. The list itself must not change any more. */
  list(items: readonly AgentInputItem[]): readonly AgentInputItem[] {
    const { items: before, shown: known } = this.#last;
    if (items === before) return known;
    let same = 0;
    while (same < items.length && same < before.length && items[same] === before[same]) same += 1;
    const shown = known.slice(0, same);
    for (let index = same; index < items.length; index += 1) shown.push(this.#of(items[index] as AgentInputItem));
    this.#last = { items, shown: Object.freeze(shown) };
    return shown;
  }

  /** What a callback returned, with the items themselves in place of their views. */
  sources(items: readonly AgentInputItem[]): AgentInputItem[] {
    return items.map((item) => this.#sources.get(item) ?? item);
  }

  #of(item: AgentInputItem): AgentInputItem {
    const known = this.#views.get(item);
    if (known) return known;
    const view = frozenCopy(item);
    this.#views.set(item, view);
    this.#sources.set(view, item);
    return view;
  }
}

/** Freezes a raw item that callbacks are shown as it is, with everything in it. */
export function freezeRaw(value: unknown): void {
  if (!isData(value) || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freezeRaw(member);
}

function frozenCopy<T>(value: T): T {
  if (!isData(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy)) as T;
  const copy = { ...value } as Record<string, unknown>;
  for (const key of Object.keys(copy)) copy[key] = frozenCopy(copy[key]);
  return Object.freeze(copy) as T;
}

/** Arrays and objects as JSON has them; instances of classes too, unless they say themselves what they are in JSON. */
function isData(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return typeof (value as { toJSON?: unknown }).toJSON !== 'function';
}
