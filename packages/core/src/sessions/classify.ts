import type { AgentInputItem } from '../items/items.ts';
import type { Sourced } from './prune.ts';

interface Pool {
  take(item: AgentInputItem): boolean;
  takeEqual(item: AgentInputItem): boolean;
}

/**
 * Tells the new items of a callback's result from history: by the objects handed in, then by content (SESS-067). The
 * pools are the two lists as the callback left them, so a summary put into `history[0]` counts as history.
 *
 * @param handed the objects that were handed in as history
 * @param keyOf content key of an item
 */
export function classifyResult(
  result: readonly AgentInputItem[],
  history: readonly AgentInputItem[],
  newItems: readonly AgentInputItem[],
  handed: ReadonlySet<AgentInputItem>,
  keyOf: (item: AgentInputItem) => string,
): Sourced[] {
  const old = pool(history, keyOf);
  const fresh = pool(newItems, keyOf);
  return result.map((item): Sourced => {
    if (!handed.has(item) && fresh.take(item)) return { item, isNew: true };
    if (old.take(item) || handed.has(item) || old.takeEqual(item)) return { item, isNew: false };
    // An equal new item is used up by its copy, so that a second one is not taken for it; either way it is new.
    fresh.takeEqual(item);
    return { item, isNew: true };
  });
}

function pool(items: readonly AgentInputItem[], keyOf: (item: AgentInputItem) => string): Pool {
  const left = new Map<AgentInputItem, number>();
  for (const item of items) left.set(item, (left.get(item) ?? 0) + 1);
  // Content is looked at only when a callback rebuilds items.
  let byKey: Map<string, AgentInputItem[]> | undefined;
  const use = (item: AgentInputItem): boolean => {
    const count = left.get(item) ?? 0;
    if (count > 0) left.set(item, count - 1);
    return count > 0;
  };
  return {
    take: use,
    takeEqual(item) {
      byKey ??= groupByKey(items, keyOf);
      const equal = byKey.get(keyOf(item)) ?? [];
      for (let candidate = equal.pop(); candidate !== undefined; candidate = equal.pop()) {
        if (use(candidate)) return true;
      }
      return false;
    },
  };
}

/** Last ones first, so that the end of each list is the oldest. */
function groupByKey(
  items: readonly AgentInputItem[],
  keyOf: (item: AgentInputItem) => string,
): Map<string, AgentInputItem[]> {
  const groups = new Map<string, AgentInputItem[]>();
  for (const item of items.toReversed()) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
