import type {
  HandoffHistoryMapper,
  HandoffInputData,
  HandoffInputFilter,
  HandoffInputPatch,
} from '../agent/handoff.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { inputToList } from '../items/convert.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { checkMarkers, nestHistory } from '../run/handoff-history.ts';
import type { ForwardedItem } from '../run/handoff-history.ts';
import { forwardedOf, mergePatch, withForwarded } from '../run/handoff-patch.ts';

/**
 * Drops tool calls, outputs, reasoning, MCP items and earlier handoffs from what the next agent sees and from what this
 * turn leaves behind in `result.newItems` and the session. Messages stay, and so does a history that is text.
 *
 * @example handoff(billing, { inputFilter: removeAllTools })
 */
export const removeAllTools: HandoffInputFilter = (data) => ({
  inputHistory:
    typeof data.inputHistory === 'string' ? data.inputHistory : data.inputHistory.filter((item) => !isOfTools(item)),
  preHandoffItems: withoutTools(data.preHandoffItems),
  newItems: withoutTools(data.newItems),
  inputItems: data.inputItems && withoutTools(data.inputItems),
});

/**
 * Keeps the last `count` messages of the conversation before this turn, and what came after the first of them. Earlier
 * messages and calls are hidden from the next agent; outputs whose call is hidden are, too. This turn, the session and
 * `result.newItems` stay as they are.
 *
 * @throws UserError when `count` is not an integer of at least 0
 * @example handoff(billing, { inputFilter: keepLastMessages(6) })
 */
export function keepLastMessages(count: number): HandoffInputFilter {
  const problem = kinds.integer(0)(count);
  if (problem !== undefined)
    throw new UserError(`keepLastMessages: \`count\` must be ${problem}, not ${kindOf(count)}.`);
  return (data) => lastMessages(data, count);
}

/**
 * The summary that the run option `nestHandoffHistory: true` makes, as a filter: for one handoff, or to be composed with
 * others. `historyMapper` makes the next input instead of the summary; `markers` are the lines around its records, default
 * `<CONVERSATION HISTORY>` and `</CONVERSATION HISTORY>`. The session keeps everything.
 *
 * @throws UserError for unknown options and empty markers; at the handoff, when the mapper returns no list of items
 * @example handoff(billing, { inputFilter: nestHandoffHistory({ markers: { start: '<past>', end: '</past>' } }) })
 */
export function nestHandoffHistory(
  options: {
    historyMapper?: HandoffHistoryMapper | undefined;
    markers?: { start: string; end: string } | undefined;
  } = {},
): HandoffInputFilter {
  checkOptions(options, { historyMapper: kinds.function, markers: kinds.object }, 'nestHandoffHistory');
  const { historyMapper: mapper } = options;
  if (options.markers !== undefined) checkOptions(options.markers, ['start', 'end'], 'nestHandoffHistory: markers');
  const markers = checkMarkers(options.markers);
  return (data) => {
    const { patch, forwarded } = nestHistory(data, { mapper, markers });
    return withForwarded(patch, forwarded);
  };
}

/**
 * One filter of several, from left to right: each sees what the ones before changed. Waits for those that are async.
 *
 * @throws UserError for what is not a function; at the handoff, when a filter returns no patch
 * @example handoff(billing, { inputFilter: composeHandoffFilters(removeAllTools, keepLastMessages(4)) })
 */
export function composeHandoffFilters<C = unknown>(
  ...filters: readonly HandoffInputFilter<C>[]
): HandoffInputFilter<C> {
  for (const [index, filter] of filters.entries()) {
    if (typeof filter !== 'function')
      throw new UserError(`composeHandoffFilters: filter ${index} must be a function, not ${kindOf(filter)}.`);
  }
  return async (data) => {
    let seen = data;
    const forwarded: ForwardedItem[] = [];
    for (const [index, filter] of filters.entries()) {
      // Each works on what the one before left.
      // oxlint-disable-next-line no-await-in-loop
      const patch = await filter(seen);
      seen = mergePatch(seen, patch, `filter ${index} of composeHandoffFilters`);
      forwarded.push(...forwardedOf(patch));
    }
    return withForwarded(changesOf(data, seen), forwarded);
  };
}

/** What is another value than before. */
function changesOf<C>(before: HandoffInputData<C>, after: HandoffInputData<C>): HandoffInputPatch {
  const { inputHistory, preHandoffItems, newItems, inputItems } = after;
  return {
    ...(inputHistory !== before.inputHistory && { inputHistory }),
    ...(preHandoffItems !== before.preHandoffItems && { preHandoffItems }),
    ...(newItems !== before.newItems && { newItems }),
    ...(inputItems !== before.inputItems && { inputItems }),
  };
}

// ---- tools

const TOOL_ITEMS: ReadonlySet<RunItem['type']> = new Set([
  'handoff_call_item',
  'handoff_output_item',
  'tool_call_item',
  'tool_call_output_item',
  'tool_approval_item',
  'tool_search_call_item',
  'tool_search_output_item',
  'reasoning_item',
  'mcp_list_tools_item',
  'mcp_approval_request_item',
  'mcp_approval_response_item',
]);

/** Beside those that end like a call or its output. */
const TOOL_TYPES: ReadonlySet<string> = new Set([
  'reasoning',
  'program',
  'program_output',
  'tool_search_output',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
]);

function withoutTools(items: readonly RunItem[]): RunItem[] {
  return items.filter((item) => !TOOL_ITEMS.has(item.type) && !(item.type === 'input_item' && isOfTools(item.rawItem)));
}

function isOfTools(item: AgentInputItem): boolean {
  const { type } = item as { type?: unknown };
  return typeof type === 'string' && (/_call(?:_output)?$/.test(type) || TOOL_TYPES.has(type));
}

// ---- the last messages

function lastMessages({ inputHistory, preHandoffItems }: HandoffInputData, count: number): HandoffInputPatch {
  const history = inputToList(inputHistory);
  const conversation: AgentInputItem[] = [...history, ...preHandoffItems.map(({ rawItem }) => rawItem)];
  const kept = withoutOrphans(conversation, startOfLast(conversation, count));
  const keptHistory = history.filter((_, index) => kept.has(index));
  return {
    // A text that stays is the same text.
    inputHistory: keptHistory.length === history.length ? inputHistory : keptHistory,
    preHandoffItems: preHandoffItems.filter((_, index) => kept.has(history.length + index)),
  };
}

/** Where the last `count` messages begin. Reasoning directly before belongs to what it led to. */
function startOfLast(conversation: readonly AgentInputItem[], count: number): number {
  if (count === 0) return conversation.length;
  let start = conversation.length;
  let left = count;
  for (let index = conversation.length - 1; index >= 0 && left > 0; index--) {
    if (!isMessage(conversation[index])) continue;
    left -= 1;
    start = index;
  }
  if (left > 0) return 0;
  while (start > 0 && conversation[start - 1]?.type === 'reasoning') start -= 1;
  return start;
}

/** Indexes from `start` on, without outputs of calls before it: a model refuses these. */
function withoutOrphans(conversation: readonly AgentInputItem[], start: number): ReadonlySet<number> {
  const calls = new Set<unknown>();
  const kept = new Set<number>();
  for (const [index, item] of conversation.entries()) {
    const { type, call_id: callId } = item as { type?: unknown; call_id?: unknown };
    if (index < start) calls.add(callId);
    else if (!isText(type) || !type.endsWith('_output') || !isText(callId) || !calls.has(callId)) kept.add(index);
  }
  return kept;
}

function isMessage(item: AgentInputItem | undefined): boolean {
  return isText((item as { role?: unknown } | undefined)?.role);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
