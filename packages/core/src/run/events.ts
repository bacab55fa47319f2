import type { AnyAgent } from '../agent/agent.ts';
import type {
  CompactionItem,
  HandoffCallItem,
  HandoffOutputItem,
  McpApprovalRequestItem,
  McpApprovalResponseItem,
  McpListToolsItem,
  MessageOutputItem,
  ReasoningItem,
  RunItem,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from '../items/items.ts';
import type { JsonObject, ResponseStreamEvent } from '../items/wire.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { NextStep } from '../state/next-step.ts';
import { isObject } from '../base/json.ts';
import { plainJson } from '../snapshot/plain.ts';

/** Everything a stream gives. Switch on `type`, then on `name`: `event.item` is narrowed by it. */
export type RunStreamEvent =
  | RawResponsesStreamEvent
  | RunItemStreamEvent
  | AgentUpdatedStreamEvent
  | RunExtendedStreamEvent;

/** The model's own event, as the adapter gave it; text deltas are `data.type === 'response.output_text.delta'`. */
export interface RawResponsesStreamEvent {
  readonly type: 'raw_response_event';
  readonly data: ResponseStreamEvent;
}

/** First event of each stream; another one after each handoff. */
export interface AgentUpdatedStreamEvent {
  readonly type: 'agent_updated_stream_event';
  readonly newAgent: AnyAgent;
}

/** Which item each event name announces. Each item once per run, pauses included. */
export interface RunItemEvents {
  message_output_created: MessageOutputItem;
  reasoning_item_created: ReasoningItem;
  tool_called: ToolCallItem;
  tool_output: ToolCallOutputItem;
  tool_approval_requested: ToolApprovalItem;
  tool_search_called: ToolSearchCallItem;
  tool_search_output_created: ToolSearchOutputItem;
  handoff_requested: HandoffCallItem;
  /** Spelled as in the Python SDK. */
  handoff_occured: HandoffOutputItem;
  mcp_list_tools: McpListToolsItem;
  mcp_approval_requested: McpApprovalRequestItem;
  mcp_approval_response: McpApprovalResponseItem;
  /** Only with `extendedEvents`. */
  compaction_item_created: CompactionItem;
}
export type RunItemStreamEventName = keyof RunItemEvents;

/** An item is complete. */
export type RunItemStreamEvent = {
  [N in RunItemStreamEventName]: {
    readonly type: 'run_item_stream_event';
    readonly name: N;
    readonly item: RunItemEvents[N];
    /**
     * Counts the items of the run, pauses included, so that a reader who comes back can drop what it has: the index in
     * `result.newItems`, until a filter of a handoff takes items out of that list. Their places are not given again.
     */
    readonly position: number;
  };
}[RunItemStreamEventName];

/**
 * Only with `extendedEvents: true`. `turn_ended` comes when a turn is recorded and stored, also when it paused; a resume ends
 * the turn that paused. `tool_progress` is what a tool gave to `ctx.emit`.
 */
export type RunExtendedStreamEvent = { readonly type: 'run_extended_event' } & (
  | { readonly name: 'turn_started'; readonly data: { readonly turn: number; readonly agent: AnyAgent } }
  | {
      readonly name: 'turn_ended';
      readonly data: { readonly turn: number; readonly agent: AnyAgent; readonly step: NextStep['type'] };
    }
  | {
      readonly name: 'tool_progress';
      readonly data: { readonly toolName: string; readonly callId: string; readonly data: unknown };
    }
);

/** Items without a name are not announced. */
const names: { readonly [T in RunItem['type']]: RunItemStreamEventName | undefined } = {
  message_output_item: 'message_output_created',
  reasoning_item: 'reasoning_item_created',
  tool_call_item: 'tool_called',
  tool_call_output_item: 'tool_output',
  tool_approval_item: 'tool_approval_requested',
  tool_search_call_item: 'tool_search_called',
  tool_search_output_item: 'tool_search_output_created',
  handoff_call_item: 'handoff_requested',
  handoff_output_item: 'handoff_occured',
  mcp_list_tools_item: 'mcp_list_tools',
  mcp_approval_request_item: 'mcp_approval_requested',
  mcp_approval_response_item: 'mcp_approval_response',
  compaction_item: undefined,
  input_item: undefined,
};

/** The event that announces an item, if one does. @param extended the run has `extendedEvents` */
export function itemEvent(item: RunItem, position: number, extended: boolean): RunItemStreamEvent | undefined {
  const name = extended && item.type === 'compaction_item' ? 'compaction_item_created' : names[item.type];
  // The table pairs each item class with its name, which the compiler cannot follow through a lookup.
  return name === undefined
    ? undefined
    : ({ type: 'run_item_stream_event', name, item, position } as RunItemStreamEvent);
}

/**
 * JSON-safe form of an event (agents as names), for SSE and WebSockets, without the instructions and tools that raw events
 * of the OpenAI API repeat (`response.created`, `response.completed`). The rest is whole, arguments and outputs of tools too:
 * choose what goes to a browser.
 * @example
 * for await (const event of stream)
 *   if (event.type !== 'raw_response_event' || event.data.type === 'response.output_text.delta')
 *     response.write(`data: ${JSON.stringify(streamEventToJSON(event))}\n\n`);
 */
export function streamEventToJSON(event: RunStreamEvent): JsonObject {
  switch (event.type) {
    case 'raw_response_event':
      return { type: event.type, data: withoutRequest(event.data) };
    case 'agent_updated_stream_event':
      return { type: event.type, new_agent: { name: event.newAgent.name } };
    case 'run_item_stream_event':
      return { type: event.type, name: event.name, position: event.position, item: event.item.toJSON() };
    case 'run_extended_event':
      return { type: event.type, name: event.name, data: extendedData(event) };
  }
}

/** `response.*` events of a whole response repeat what was asked. */
function withoutRequest(data: ResponseStreamEvent): JsonObject {
  const json = data as unknown as JsonObject;
  const { response } = json;
  if (!isObject(response) || !('instructions' in response || 'tools' in response)) return json;
  const { instructions: _, tools: __, ...rest } = response;
  return { ...json, response: rest };
}

function extendedData(event: RunExtendedStreamEvent): JsonObject {
  if (event.name === 'tool_progress') {
    const { toolName, callId, data } = event.data;
    return { tool_name: toolName, call_id: callId, data: plainJson(data) };
  }
  const { agent, ...facts } = event.data;
  return { ...facts, agent: { name: agent.name } };
}
