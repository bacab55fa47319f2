import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import type { RunItem } from '../items/items.ts';
import type { JsonValue } from '../items/wire.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import { own } from './json.ts';
import type { ItemReader } from './read-item.ts';
import { equalJson } from './read-json.ts';

// Restored items are new objects. What was one object before the snapshot is made one again by position: the occurrences in
// the two lists of items, and the current response with its waiting items.

/** A list of items as it stands in the JSON, and what became of each. */
export interface SourceList {
  readonly json: readonly JsonValue[];
  /** At the positions of the JSON; `undefined`: skipped. */
  readonly items: readonly (RunItem | undefined)[];
  /** Of the generated items: their places among the session items; `undefined`: not known. */
  readonly places?: readonly (number | null)[] | undefined;
}

export function survivors({ items }: SourceList): RunItem[] {
  return items.includes(undefined) ? items.filter((item) => item !== undefined) : (items.slice() as RunItem[]);
}

export function readList(json: readonly JsonValue[], reader: ItemReader): SourceList {
  return { json, items: json.map((item) => reader.read(item)) };
}

/** Reads the generated items; occurrences that stand among the session items too become the same objects (STATE-352). */
export function readGenerated(
  json: readonly JsonValue[],
  indexes: JsonValue | undefined,
  session: SourceList,
  reader: ItemReader,
): SourceList {
  const aliases = validIndexes(indexes, json.length, session.json.length);
  const items = json.map((item, position) => {
    const index = aliases?.[position];
    if (typeof index === 'number' && equalJson(item, session.json[index])) return session.items[index];
    return reader.read(item);
  });
  return { json, items, places: aliases };
}

function validIndexes(
  indexes: JsonValue | undefined,
  length: number,
  limit: number,
): readonly (number | null)[] | undefined {
  if (indexes === undefined) return undefined;
  const fits = Array.isArray(indexes) && indexes.length === length && areDistinct(indexes, limit);
  if (fits) return indexes as readonly (number | null)[];
  getLogger('run_state').warn('generated_session_item_indexes of a run state does not fit its items and was ignored.');
  return undefined;
}

function areDistinct(indexes: readonly unknown[], limit: number): boolean {
  const isTaken = new Uint8Array(limit);
  return indexes.every((index) => {
    if (index === null) return true;
    if (!isIndex(index, limit) || isTaken[index] === 1) return false;
    isTaken[index] = 1;
    return true;
  });
}

/** The current response as it is read. */
export interface CurrentResponse {
  /** `last_processed_response.new_items` and the waiting items of the step, in JSON. */
  readonly newItemsJson: readonly JsonValue[];
  readonly interruptionsJson: readonly JsonValue[];
}

/** Positions of the current response in the generated items, if they can be trusted. */
export interface Located {
  readonly newItems: readonly RunItem[];
  /** By position in the JSON of the step's list; `undefined`: no generated item. */
  readonly interruptions: readonly (RunItem | undefined)[];
}

/** The objects of the current response, if the key is there and fits in every respect (STATE-345). */
export function readOwnership(
  key: JsonValue | undefined,
  generated: SourceList,
  session: SourceList,
  response: CurrentResponse,
): Located | undefined {
  const length = generated.json.length;
  const start = isObject(key) ? own(key, 'start') : undefined;
  const positions = isObject(key) ? own(key, 'interruptions') : undefined;
  if (!isObject(key) || own(key, 'end') !== length || !isIndex(start, length) || !Array.isArray(positions))
    return undefined;
  const { newItemsJson, interruptionsJson } = response;
  const behind = start + newItemsJson.length;
  if (newItemsJson.length === 0 || !equalJson(generated.json.slice(start, behind), newItemsJson)) return undefined;
  if (generated.items.slice(start).includes(undefined)) return undefined;
  const interruptions = matchPositions(positions as readonly JsonValue[], behind, generated, interruptionsJson);
  if (interruptions === undefined || !isTail(generated, start, session)) return undefined;
  return { newItems: generated.items.slice(start, behind) as RunItem[], interruptions };
}

/** Each position must show the step's own waiting items, in their order; those of nested runs have none. */
function matchPositions(
  positions: readonly JsonValue[],
  behind: number,
  generated: SourceList,
  waiting: readonly JsonValue[],
): (RunItem | undefined)[] | undefined {
  if (
    new Set(positions).size !== positions.length ||
    !positions.every((position) => isIndex(position, generated.json.length) && position >= behind)
  )
    return undefined;
  const matched: (RunItem | undefined)[] = [];
  let next = 0;
  for (const item of waiting) {
    const position = positions[next] as number | undefined;
    const fits = position !== undefined && equalJson(generated.json[position], item);
    if (fits) next++;
    matched.push(fits ? generated.items[position] : undefined);
  }
  return next === positions.length ? matched : undefined;
}

/**
 * What of these items stands in the session must be its end; what is not there was not published yet. The order may be
 * another one: what a failed turn had finished was published before the rest of it (RUN-509). Waiting items that were
 * decided stay in the session alone.
 */
function isTail({ items, places }: SourceList, start: number, session: SourceList): boolean {
  if (places === undefined) return false;
  const published = new Set(items.slice(start).filter((_, offset) => typeof places[start + offset] === 'number'));
  let left = published.size;
  for (let index = session.items.length - 1; left > 0 && index >= 0; index -= 1) {
    const item = session.items[index];
    if (item === undefined) continue;
    if (published.has(item)) left -= 1;
    else if (item.type !== 'tool_approval_item') return false;
  }
  return left === 0;
}

/** Without the key only the first turn is located: its response stands at the beginning. */
export function locateFirstTurn(
  generated: SourceList,
  newItemsJson: readonly JsonValue[],
): readonly RunItem[] | undefined {
  if (newItemsJson.length === 0 || !equalJson(generated.json.slice(0, newItemsJson.length), newItemsJson))
    return undefined;
  const items = generated.items.slice(0, newItemsJson.length);
  return items.includes(undefined) ? undefined : (items as RunItem[]);
}

/** The generated item that a waiting item of the step repeats, if exactly one does. */
export function sameWaitingItem(json: JsonValue, generated: SourceList): ToolApprovalItem | undefined {
  const same = generated.items.filter(
    (item, index) => item?.type === 'tool_approval_item' && equalJson(generated.json[index], json),
  );
  return same.length === 1 ? (same[0] as ToolApprovalItem) : undefined;
}

function isIndex(value: unknown, limit: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < limit;
}
