import type { StateRecord } from './record.ts';

/** Where the items of the last response stand. */
export interface ResponsePlace {
  /** Index in `generatedItems` of the first of them, or of what follows when they are not there. */
  readonly start: number;
  /** They were found, so that what belongs to the response and what does not is known (STATE-218). */
  readonly located: boolean;
}

/** Looks for the items of the last response: one run of the same objects, which a restore makes of them where it can (STATE-345). */
export function locateResponse({ processed, generatedItems, sessionItems }: StateRecord): ResponsePlace {
  const items = processed?.newItems ?? [];
  const [first] = items;
  if (first === undefined) return { start: generatedItems.length, located: true };
  const runIn = (list: typeof generatedItems): number => {
    const at = list.lastIndexOf(first);
    return at >= 0 && items.every((item, index) => list[at + index] === item) ? at : -1;
  };
  const start = runIn(generatedItems);
  if (start >= 0) return { start, located: true };
  const at = generatedItems.lastIndexOf(first);
  return { start: at === -1 ? generatedItems.length : at, located: runIn(sessionItems) >= 0 };
}
