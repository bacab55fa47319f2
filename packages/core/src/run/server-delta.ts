import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { StateRecord } from '../state/record.ts';
import { UserError } from '../base/errors.ts';
import { pythonJson } from '../base/json-encode.ts';
import { convertedItem, inputToList } from '../items/convert.ts';

// Pure: what a provider that keeps the history of a run has not got.

/** An item that the provider has not got, and where the record has it. */
export interface Pending {
  readonly list: 'input' | 'items';
  readonly index: number;
  readonly item: AgentInputItem;
}

/** What the provider does not know: all, before it knows anything; later what was held back, and local results of the last response. */
export function unknownItems(record: StateRecord): Pending[] {
  const { modelResponses, serverManaged, generatedItems } = record;
  const ofInput = (isDue: (index: number) => boolean): Pending[] =>
    inputToList(record.input).flatMap((item, index) => (isDue(index) ? { list: 'input', index, item } : []));
  const ofItems = (indexes: readonly number[]): Pending[] =>
    indexes.flatMap((index) => {
      const item = wireOf(generatedItems[index], record);
      return item === undefined ? [] : { list: 'items', index, item };
    });
  const response = modelResponses.at(-1);
  // A chain without a link: whoever answered keeps nothing.
  const keepsNothing = (serverManaged?.conversationId ?? serverManaged?.previousResponseId) === undefined;
  if (response === undefined || serverManaged === undefined || keepsNothing)
    return [...ofInput(() => true), ...ofItems(generatedItems.map((_, index) => index))];
  const results = ofItems(localResults(generatedItems, response));
  const { undelivered } = serverManaged;
  if (undelivered === undefined) return results;
  const held = new Set(undelivered.input);
  return [...ofInput((index) => held.has(index)), ...ofItems(undelivered.items), ...results];
}

function wireOf(item: RunItem | undefined, { reasoningItemIdPolicy }: StateRecord): AgentInputItem | undefined {
  return item && convertedItem(item, reasoningItemIdPolicy);
}

/**
 * Places of what this side made of a response, in the order of its calls: it stands behind the response's own items,
 * whichever pass made it (RUN-1506).
 */
function localResults(items: readonly RunItem[], { output }: ModelResponse): number[] {
  const order = new Map<unknown, number>();
  const made = new Set<string | undefined>();
  output.forEach((item, index) => {
    const { call_id: callId } = wire(item);
    made.add(identity(item));
    if (callId !== undefined && !order.has(callId)) order.set(callId, index);
  });
  const hasIds = !output.some((item) => wire(item)['id'] === PLACEHOLDER_ID);
  const found: { readonly index: number; readonly order: number }[] = [];
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index];
    if (item === undefined || item.type === 'tool_approval_item') continue;
    const { type, call_id: callId, id } = wire(item.rawItem);
    const isOutput = order.has(callId) && String(type).endsWith('_output') && !made.has(identity(item.rawItem));
    // The message of a handler has no id that a provider gave.
    if (!isOutput && !(hasIds && type === 'message' && id === PLACEHOLDER_ID)) break;
    found.push({ index, order: order.get(callId) ?? output.length });
  }
  return found.toSorted((a, b) => a.order - b.order || a.index - b.index).map(({ index }) => index);
}

/**
 * Items that a filter left out: those that are not among what it returned, by object, then by content, then by the call or
 * id that they belong to. Messages that it wrote anew stand for those in whose place they are.
 * @throws UserError when they may or may not
 */
export function leftOut(pending: readonly Pending[], list: readonly AgentInputItem[]): readonly Pending[] {
  const given = new Set(list);
  let left = pending.filter(({ item }) => !given.delete(item));
  for (const key of [(item: AgentInputItem) => pythonJson(item), identity]) {
    const byKey = new Map<string, AgentInputItem[]>();
    if (left.length === 0) return left;
    for (const item of given) {
      const text = key(item);
      if (text !== undefined) byKey.set(text, [...(byKey.get(text) ?? []), item]);
    }
    left = left.filter(({ item }) => {
      const text = key(item);
      const same = text === undefined ? undefined : byKey.get(text)?.shift();
      return same === undefined || !given.delete(same);
    });
  }
  const missing = left.filter(({ item }) => isMessage(item));
  const written = [...given].filter(isMessage);
  if (missing.length === 0 || written.length === 0) return left;
  const inPlace = missing.every((entry, index) => {
    const item = written[index];
    return item && roleOf(item) === roleOf(entry.item) && list.indexOf(item) === pending.indexOf(entry);
  });
  if (missing.length !== written.length || !inPlace)
    throw new UserError(
      'callModelInputFilter returned messages of which it cannot be told whether they stand for pending input: the reconstruction of what the provider gets is ambiguous. Return the items of modelData.input themselves, or copies, and add others beside them.',
    );
  return left.filter((entry) => !missing.includes(entry));
}

/** A provider gives no such id. */
const PLACEHOLDER_ID = '__fake_id__';

function wire(item: object): Readonly<Record<string, unknown>> {
  return item as Readonly<Record<string, unknown>>;
}

function roleOf(item: object | undefined): unknown {
  return item && wire(item)['role'];
}

function isMessage(item: AgentInputItem): boolean {
  return typeof roleOf(item) === 'string';
}

function identity(item: object): string | undefined {
  const { type, id, call_id: callId } = wire(item);
  const name = callId ?? id;
  return typeof name === 'string' && name !== '' && name !== PLACEHOLDER_ID ? `${String(type)} ${name}` : undefined;
}
