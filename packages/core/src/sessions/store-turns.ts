import { isObject } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';
import { reasoningBefore, unansweredCalls, unaskedOutputs } from './prune.ts';
import type { Sourced } from './prune.ts';

/** Whether it is an item that `EncryptedSession` stored: readable under the id of its session alone (SESS-373). */
export function isEnvelope(item: object): boolean {
  return isObject(item) && item['__enc__'] === 1 && 'v' in item && 'kid' in item && 'payload' in item;
}

/** Indexes of the user messages. */
export function turnsOf(items: readonly object[]): number[] {
  return items.flatMap((item, index) => (isUserMessage(item) ? [index] : []));
}

/**
 * Which of the first `count` items stand for themselves: calls that are answered behind the cut only are left out, with
 * the reasoning that led to them. A call that nobody answered anywhere stays.
 */
export function wholePairs(items: readonly object[], count: number): boolean[] {
  const all = sourced(items);
  const head = all.slice(0, count);
  const open = unansweredCalls(all);
  const cut = new Set([...unansweredCalls(head)].filter((entry) => !open.has(entry)));
  const gone = new Set([...cut, ...reasoningBefore(head, cut)]);
  return head.map((entry) => !gone.has(entry));
}

/**
 * Where a history of at most `maxItems` begins: at the first user message that leaves no more, if no call would lose its
 * output; else at the next or, without one, at the last before it. 0: it can't be cut.
 */
export function headCut(items: readonly object[], maxItems: number): number {
  if (items.length <= maxItems) return 0;
  const all = sourced(items);
  const unasked = new Set(unaskedOutputs(all));
  const isWhole = (from: number): boolean => unaskedOutputs(all.slice(from)).every((entry) => unasked.has(entry));
  const turns = turnsOf(items);
  const wanted = items.length - maxItems;
  return (
    turns.find((from) => from >= wanted && isWhole(from)) ??
    turns.findLast((from) => from < wanted && isWhole(from)) ??
    0
  );
}

/** What of an item decides which calls and outputs belong together: all that a fork has to keep of each. */
export function pairedMembers(item: object): object {
  const { type, role, call_id, status, caller } = item as Readonly<Record<string, unknown>>;
  return { type, role, call_id, status, caller };
}

function sourced(items: readonly object[]): Sourced[] {
  return items.map((item) => ({ item: item as AgentInputItem, isNew: false }));
}

function isUserMessage(item: object): boolean {
  if (!isObject(item) || item['role'] !== 'user') return false;
  return item['type'] === undefined || item['type'] === 'message';
}
