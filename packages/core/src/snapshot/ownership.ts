import { itemDigest } from '../items/convert.ts';
import type { RunItem } from '../items/items.ts';
import type { JsonObject } from '../items/wire.ts';
import type { StateRecord } from '../state/record.ts';

/** For each generated item the index of the same object among the session items. */
export function sessionIndexes(generated: readonly RunItem[], session: readonly RunItem[]): (number | null)[] {
  let places: Map<RunItem, number> | undefined;
  return generated.map((item, index) => {
    // Until history is rewritten for the first time, an item has the same place in both.
    if (session[index] === item) return index;
    places ??= new Map(session.map((other, place) => [other, place]));
    return places.get(item) ?? null;
  });
}

/** Where the current response and its waiting items stand in the generated items (STATE-345); `undefined` when it cannot be told. */
export function responseOwnership({ step, processed, generatedItems }: StateRecord): JsonObject | undefined {
  if (step.type !== 'interruption' || processed === undefined || processed.newItems.length === 0) return undefined;
  const start = uniqueRun(generatedItems, processed.newItems);
  if (start === undefined) return undefined;
  const behind = start + processed.newItems.length;
  const interruptions: number[] = [];
  for (const item of step.interruptions) {
    const index = generatedItems.indexOf(item, behind);
    if (index === -1 || generatedItems.indexOf(item) < behind || generatedItems.includes(item, index + 1))
      return undefined;
    interruptions.push(index);
  }
  return { start, end: generatedItems.length, interruptions };
}

/** Where the items stand that nested history moved into the input (STATE §12.3). */
export function historyRefs({ ownedHistory, input, sessionItems }: StateRecord): JsonObject[] {
  return ownedHistory.flatMap((owned) => {
    const index = sessionItems.indexOf(owned.item);
    const inputIndex = typeof input === 'string' ? -1 : input.indexOf(owned.input);
    if (index === -1 || inputIndex === -1) return [];
    return [{ index, digest: itemDigest(owned.input, 'normalized'), input_index: inputIndex }];
  });
}

/** Index of the one place where `run` stands in `items`, object by object. */
function uniqueRun(items: readonly RunItem[], run: readonly RunItem[]): number | undefined {
  const fits = (start: number): boolean => run.every((item, offset) => items[start + offset] === item);
  const [first] = run;
  if (first === undefined) return undefined;
  let found: number | undefined;
  for (let start = items.indexOf(first); start !== -1; start = items.indexOf(first, start + 1)) {
    if (!fits(start)) continue;
    if (found !== undefined) return undefined;
    found = start;
  }
  return found;
}
