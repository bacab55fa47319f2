import { sha256Hex } from '../base/digest.ts';
import { isObject } from '../base/json.ts';
import { pythonJson } from '../base/json-encode.ts';
import type { AgentInputItem, RunItem } from './items.ts';

/** `reasoningItemIdPolicy` in effect; `undefined`: none, ids are kept. */
export type ReasoningIds = 'preserve' | 'omit' | undefined;

type Wire = Readonly<Record<string, unknown>>;

/** Members of the SDK's own on stored items; Python's sessions and states have them. */
const SDK_ONLY = ['_agents_tool_description', '_agents_tool_title'] as const;
const NOT_INPUT = ['created_by', ...SDK_ONLY] as const;
/** What a shell output has only on this side. */
const SHELL_OUTPUT_ONLY = ['status', 'shell_output', 'provider_data'] as const;

/**
 * A wire object as model input (RUN-1102): a new object without `created_by`, a null `status` and members of the SDK's own.
 * Its parts are those of the original, which is never changed.
 */
export function toInputItem(rawItem: unknown): AgentInputItem {
  const item: Record<string, unknown> = { ...(rawItem as Wire) };
  // Most items have none of these, and an object that a member was deleted from is slow ever after.
  for (const key of NOT_INPUT) if (key in item) delete item[key];
  if (item['status'] === null) delete item['status'];
  if (item['type'] === 'shell_call_output') {
    for (const key of SHELL_OUTPUT_ONLY) delete item[key];
    if (Array.isArray(item['output'])) item['output'] = item['output'].map(withoutCreatedBy);
  }
  return item as unknown as AgentInputItem;
}

/** The item without the id of a reasoning item (RUN-251); other items as they are. */
export function withoutReasoningId(item: AgentInputItem): AgentInputItem {
  if (item.type !== 'reasoning' || !('id' in item)) return item;
  const { id: _, ...others } = item;
  return others as AgentInputItem;
}

/**
 * What the model sees of an item, a new object each time. `undefined` for waiting calls, which are no input. `omit` leaves
 * out the ids of reasoning items (RUN-251).
 */
export function convertedItem(item: RunItem, reasoningIds?: ReasoningIds): AgentInputItem | undefined {
  if (item.type === 'tool_approval_item') return undefined;
  const converted = toInputItem(item.rawItem);
  return reasoningIds === 'omit' ? withoutReasoningId(converted) : converted;
}

/** The convertible items of `items` as model input, in order. */
export function itemsToInput(
  items: readonly RunItem[],
  options: { reasoningIds?: ReasoningIds } = {},
): AgentInputItem[] {
  const input: AgentInputItem[] = [];
  for (const item of items) {
    const converted = convertedItem(item, options.reasoningIds);
    if (converted !== undefined) input.push(converted);
  }
  return input;
}

/** A run's input as a new list; a string is one message of the user (RUN-227). The items are the caller's own objects. */
export function inputToList(input: string | readonly AgentInputItem[]): AgentInputItem[] {
  return typeof input === 'string' ? [{ content: input, role: 'user' }] : [...input];
}

/**
 * The list without repeated items, the newest content of each kept (RUN-224, SESS-075): calls, reasoning and approval
 * requests stay where they came first, everything else where it came last. Messages are never merged.
 *
 * @returns the same list when nothing is repeated
 */
export function dedupeInput(list: readonly AgentInputItem[]): readonly AgentInputItem[] {
  const keys = list.map(identityKey);
  if (keys.every((key) => key === undefined)) return list;
  /** Of each identity: where it stands, and whose content it has. */
  const places = new Map<string, { position: number; newest: AgentInputItem }>();
  let repeated = false;
  for (const [index, item] of list.entries()) {
    const key = keys[index];
    if (key === undefined) continue;
    const place = places.get(key);
    repeated ||= place !== undefined;
    const position = place !== undefined && staysFirst(item) ? place.position : index;
    places.set(key, { position, newest: item });
  }
  if (!repeated) return list;
  const out: AgentInputItem[] = [];
  for (const [index, item] of list.entries()) {
    const key = keys[index];
    const place = key === undefined ? undefined : places.get(key);
    if (place === undefined) out.push(item);
    else if (place.position === index) out.push(place.newest);
  }
  return out;
}

/**
 * SHA-256 of an item as Python digests it (STATE §12.9). `raw` for pending session writes; `normalized` for ownership of
 * history, where the forms of an assistant message count as one.
 */
export function itemDigest(item: AgentInputItem, form: 'raw' | 'normalized'): string {
  const plain: Record<string, unknown> = { ...(item as unknown as Wire) };
  delete plain['created_by'];
  for (const key of SDK_ONLY) delete plain[key];
  if (form === 'normalized' && plain['role'] === 'assistant') {
    if (typeof plain['content'] === 'string') plain['content'] = [{ type: 'output_text', text: plain['content'] }];
    if (plain['status'] === null || plain['status'] === 'completed') delete plain['status'];
  }
  return sha256Hex(pythonJson(plain));
}

/** `undefined`: never the same as another item. */
function identityKey(item: AgentInputItem): string | undefined {
  const { type, role, id, call_id: callId, approval_request_id: requestId } = item as unknown as Wire;
  if (type === 'message' || (role !== undefined && role !== null)) return undefined;
  const kind = typeof type === 'string' ? type : '';
  const isCall = kind.endsWith('_call') || kind.endsWith('_output') || kind === 'program';
  if (isCall && isName(callId)) return `${kind} call_id ${callId}`;
  if (isName(id) && id !== PLACEHOLDER_ID) return `${kind} id ${id}`;
  if (isName(callId)) return `${kind} call_id ${callId}`;
  return isName(requestId) ? `${kind} approval_request_id ${requestId}` : undefined;
}

/** Id of items that have none yet (MODEL-503). */
const PLACEHOLDER_ID = '__fake_id__';

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function staysFirst(item: AgentInputItem): boolean {
  const type = (item as unknown as Wire)['type'];
  if (typeof type !== 'string') return false;
  return type.endsWith('_call') || type === 'program' || type === 'reasoning' || type === 'mcp_approval_request';
}

function withoutCreatedBy(chunk: unknown): unknown {
  if (!isObject(chunk) || !('created_by' in chunk)) return chunk;
  const { created_by: _, ...others } = chunk;
  return others;
}
