import type { AnyAgent } from '../agent/agent.ts';
import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import { itemDigest } from '../items/convert.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import { completedBy, invocationOf } from '../state/invocation.ts';
import type { LedgerEntry } from '../state/ledger.ts';
import type { OwnedItem } from '../state/record.ts';
import type { AgentGraph } from './agents.ts';
import { own } from './json.ts';
import { ItemReader } from './read-item.ts';
import type { WaitingFacts } from './read-item.ts';
import { equalJson, malformed } from './read-json.ts';
import {
  locateFirstTurn,
  readGenerated,
  readList,
  readOwnership,
  sameWaitingItem,
  survivors,
} from './read-ownership.ts';
import type { SourceList } from './read-ownership.ts';
import type { Version } from './versions.ts';

/** Everything of a snapshot that is made of items. */
export interface ReadItems {
  readonly generated: RunItem[];
  readonly session: RunItem[];
  readonly newItems: readonly RunItem[];
  /** Of the step. */
  readonly interruptions: readonly ToolApprovalItem[];
  /** Waiting items whose agents are not reachable, with their place in the step's list. */
  readonly unreachable: readonly { readonly index: number; readonly item: JsonObject }[];
  /** `nested_history_owned_session_item_refs`. */
  readonly ownedHistory: readonly OwnedItem[];
}

export interface ItemsSource {
  readonly state: JsonObject;
  readonly version: Version;
  readonly graph: AgentGraph;
  readonly input: string | readonly AgentInputItem[];
  readonly currentTurn: number;
  /** The step's list of waiting items, in JSON; `undefined`: it is no interruption. */
  readonly interruptions: readonly JsonValue[] | undefined;
  readonly processed: JsonObject | undefined;
  readonly rows: readonly LedgerEntry[];
  readonly createdAt: (callId: string) => string | undefined;
  readonly currentAgent: AnyAgent;
  /** What waits in paused runs of agent tools: it belongs to them, and the step's list only repeats it. */
  readonly nestedItems: readonly ToolApprovalItem[];
}

/** @throws UserError `state_malformed`, `agent_identity_missing`, `history_ref_invalid` */
export function readItems(source: ItemsSource): ReadItems {
  const { state, version, graph, processed } = source;
  const generatedJson = list(state, 'generated_items') ?? [];
  const sessionJson = list(state, 'session_items');
  const newItemsJson = (processed && list(processed, 'new_items', 'last_processed_response.new_items')) ?? [];
  const reader = new ItemReader(graph, waitingFacts(source, sessionJson ?? generatedJson));
  let session: SourceList = readList(sessionJson ?? [], reader);
  const indexes = version.has('sessionIndexes') ? own(state, 'generated_session_item_indexes') : undefined;
  let generated = readGenerated(generatedJson, indexes, session, reader);
  if (source.interruptions !== undefined) generated = withResponse(generated, newItemsJson, reader);
  if (sessionJson === undefined) session = generated;

  const interruptionsJson = source.interruptions ?? [];
  const ownership = version.has('responseOwnership')
    ? own(state, 'current_response_generated_item_ownership')
    : undefined;
  const located =
    source.interruptions && readOwnership(ownership, generated, session, { newItemsJson, interruptionsJson });
  const first =
    located === undefined && source.currentTurn === 1 ? locateFirstTurn(generated, newItemsJson) : undefined;
  const nested = [...source.nestedItems];
  const waiting = interruptionsJson.flatMap((json, index) => {
    const known = located?.interruptions[index] ?? sameWaitingItem(json, generated);
    if (known === undefined && isNested(json, nested)) return [];
    const item = known ?? reader.read(json);
    // Of an agent tool whose run is not there: nobody here can decide it.
    return [{ index, json, item: known === undefined && item?.agent !== source.currentAgent ? undefined : item }];
  });
  const result: ReadItems = {
    generated: survivors(generated),
    session: sessionJson === undefined ? survivors(generated) : survivors(session),
    newItems: located?.newItems ?? first ?? survivors(readList(newItemsJson, reader)),
    interruptions: waiting.flatMap(({ item }) => (item instanceof ToolApprovalItem ? [item] : [])),
    unreachable: waiting.flatMap(({ index, json, item }) =>
      item === undefined && isObject(json) ? [{ index, item: json }] : [],
    ),
    ownedHistory: version.has('nestedHistory')
      ? readHistoryRefs(own(state, 'nested_history_owned_session_item_refs'), session, source.input)
      : [],
  };
  for (const reason of reader.skipped) getLogger('run_state').warn(`An item of a run state was skipped: ${reason}.`);
  return result;
}

/** Whether the JSON repeats one of these items, each of which is repeated once. */
function isNested(json: JsonValue, items: ToolApprovalItem[]): boolean {
  if (items.length === 0 || !isObject(json)) return false;
  const agent = own(json, 'agent');
  const name = isObject(agent) ? own(agent, 'name') : agent;
  const at = items.findIndex((item) => item.agent.name === name && equalJson(own(json, 'raw_item'), item.rawItem));
  if (at >= 0) items.splice(at, 1);
  return at >= 0;
}

function list(json: JsonObject, key: string, path: string = key): readonly JsonValue[] | undefined {
  const value = own(json, key);
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw malformed(path, 'a list');
  return value;
}

/** Whether a waiting call was started: its row says so, and no output ends it. */
function waitingFacts({ rows, createdAt, input }: ItemsSource, session: readonly JsonValue[]): WaitingFacts {
  const started = new Set(rows.filter((row) => row.executed && !row.completed).map((row) => row.callId));
  let ended: Set<string> | undefined;
  const isEnded = (callId: string): boolean => {
    if (ended === undefined) {
      const wires: unknown[] = [
        ...(typeof input === 'string' ? [] : input),
        ...session.map((item) => (isObject(item) ? own(item, 'raw_item') : undefined)),
      ];
      ended = new Set(wires.flatMap((wire) => completedBy(wire)?.callId ?? []));
    }
    return ended.has(callId);
  };
  return {
    createdAt,
    inDoubt: (call) => {
      if (started.size === 0) return false;
      const callId = invocationOf(call)?.callId;
      return callId !== undefined && started.has(callId) && !isEnded(callId);
    },
  };
}

/** Older writers left the current response out of the generated items (STATE-357). */
function withResponse(generated: SourceList, newItemsJson: readonly JsonValue[], reader: ItemReader): SourceList {
  if (newItemsJson.length === 0) return generated;
  const ids = new Set(newItemsJson.map(idOf));
  const keys = new Set<string | undefined>();
  generated.json.forEach((item, index) => {
    if (generated.items[index] !== undefined && ids.has(idOf(item))) keys.add(keyOf(item));
  });
  const isMissing = newItemsJson.map((item) => {
    const key = keyOf(item);
    return key === undefined ? undefined : !keys.has(key);
  });
  if (!isMissing.includes(true) && isMissing.includes(false)) return generated;
  // An item without an id may repeat one of an earlier response; it is new when nothing of this response is there.
  const isWhollyMissing = !isMissing.includes(false);
  const missing = newItemsJson.filter(
    (item, index) => isMissing[index] ?? (isWhollyMissing || !generated.json.some((other) => equalJson(other, item))),
  );
  const isThere =
    isWhollyMissing &&
    !isMissing.includes(true) &&
    generated.json.some((_, start) =>
      equalJson(generated.json.slice(start, start + newItemsJson.length), newItemsJson),
    );
  if (isThere) return generated;
  return {
    ...generated,
    json: [...generated.json, ...missing],
    items: [...generated.items, ...missing.map((item) => reader.read(item))],
  };
}

/** What tells an item of a response from the others. */
function keyOf(item: JsonValue): string | undefined {
  const id = idOf(item);
  if (id === undefined) return undefined;
  const { type, raw_item: raw } = item as { type?: JsonValue; raw_item: JsonObject };
  return JSON.stringify([type ?? '', own(raw, 'type') ?? '', id]);
}

function idOf(item: JsonValue): string | undefined {
  const raw = isObject(item) ? (item as { raw_item?: JsonValue }).raw_item : undefined;
  if (!isObject(raw)) return undefined;
  const { call_id: callId, id } = raw as { call_id?: JsonValue; id?: JsonValue };
  const known = callId ?? id;
  return typeof known === 'string' && known !== '' ? known : undefined;
}

// ---- ownership of history

function readHistoryRefs(
  json: JsonValue | undefined,
  session: SourceList,
  input: string | readonly AgentInputItem[],
): OwnedItem[] {
  if (json === undefined) return [];
  if (!Array.isArray(json)) throw invalidRef('they are no list');
  const refs: OwnedItem[] = [];
  for (const ref of json as readonly JsonValue[]) {
    if (!isObject(ref)) throw invalidRef('one is no object');
    const {
      index,
      input_index: inputIndex,
      digest,
    } = ref as { index?: JsonValue; input_index?: JsonValue; digest?: JsonValue };
    if (typeof index !== 'number' || typeof inputIndex !== 'number' || typeof digest !== 'string')
      throw invalidRef('one has no index, input_index and digest');
    const inputItem = typeof input === 'string' ? undefined : input[inputIndex];
    if (inputItem === undefined) throw invalidRef('one names an input item that is not there');
    if (itemDigest(inputItem, 'normalized') !== digest) throw invalidRef('one names an input item with another digest');
    if (!(index in session.json)) throw invalidRef('one names a session item that is not there');
    const item = session.items[index];
    if (item === undefined) {
      getLogger('run_state').warn('A reference of a run state to an item that was skipped was ignored.');
      continue;
    }
    if (itemDigest(item.rawItem, 'normalized') !== digest)
      throw invalidRef('one names a session item with another digest');
    refs.push({ item, input: inputItem });
  }
  return refs;
}

function invalidRef(why: string): UserError {
  return new UserError(
    `The references of the run state to nested history are invalid: ${why}. Restore the state as it was written.`,
    { code: 'history_ref_invalid' },
  );
}
