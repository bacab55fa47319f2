import type { AnyAgent } from '../../agent/agent.ts';
import type { Handoff } from '../../agent/handoff.ts';
import type { FunctionTool, ToolCaller } from '../../agent/tool.ts';
import type { ResponseFunctionToolCall, ResponseOutputItem } from '../../items/wire.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { ProcessedResponse, ToolLookupKey } from '../../state/record.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import {
  CompactionItem,
  HandoffCallItem,
  McpListToolsItem,
  MessageOutputItem,
  ReasoningItem,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from '../../items/items.ts';
import type { RunItem } from '../../items/items.ts';
import { lookupKeyOf } from '../../state/lookup-key.ts';
import { jsonToolName, jsonToolOf } from './json-tool.ts';

/** What the model was offered, or would be today, by name. No handoff has the name of a tool. */
export interface ToolTable {
  readonly functions: ReadonlyMap<string, FunctionTool<never>>;
  readonly handoffs: ReadonlyMap<string, Handoff<never>>;
}

/** One function call of a response. `tool` is `undefined` when the agent has none of that name. */
export interface FunctionCall {
  readonly call: ResponseFunctionToolCall;
  /** Of a stored response also the call of a handoff that the agent has not any more. */
  readonly item: ToolCallItem | HandoffCallItem;
  readonly tool: FunctionTool<never> | undefined;
  /** `undefined`: a call without a name. */
  readonly lookupKey: ToolLookupKey | undefined;
  readonly role?: 'handoff' | undefined;
}

/** One call of a response that passes the conversation on. */
export interface HandoffCall {
  readonly call: ResponseFunctionToolCall;
  readonly item: HandoffCallItem;
  readonly handoff: Handoff<never>;
  readonly role: 'handoff';
}

/** What a response asks for. */
export interface Classified {
  readonly items: readonly RunItem[];
  readonly calls: readonly FunctionCall[];
  readonly handoffs: readonly HandoffCall[];
  /** Types that nobody knows: one warning each, no item. */
  readonly unknownTypes: readonly string[];
}

/**
 * Turns a response into items and calls. Pure: it runs no code of the user and changes nothing.
 * @throws ModelBehaviorError for calls that the agent cannot have asked for
 */
export function classify(response: ModelResponse, agent: AnyAgent, tools: ToolTable): Classified {
  const items: RunItem[] = [];
  const calls: FunctionCall[] = [];
  const handoffs: HandoffCall[] = [];
  const unknownTypes: string[] = [];
  for (const raw of response.output) {
    const handoff = raw.type === 'function_call' ? findHandoff(raw, tools) : undefined;
    if (raw.type === 'function_call' && handoff) {
      checkCaller(raw, modelAlone);
      const call = { call: raw, item: new HandoffCallItem(agent, raw), handoff, role: 'handoff' } as const;
      handoffs.push(call);
      items.push(call.item);
    } else if (raw.type === 'function_call') {
      const call = newCall(agent, raw, tools);
      calls.push(call);
      items.push(call.item);
    } else {
      const item = itemOf(raw, agent);
      if (item === undefined) unknownTypes.push(String((raw as { type?: unknown }).type));
      else items.push(item);
    }
  }
  return { items, calls, handoffs, unknownTypes };
}

/**
 * The calls of a stored response against the tools of today; its items stay the objects that they are. A waiting item
 * whose call the stored response does not list is enough to make the call again.
 */
export function reclassify(
  processed: ProcessedResponse,
  waiting: readonly ToolApprovalItem[],
  agent: AnyAgent,
  tools: ToolTable,
): Classified {
  const calls = new Map<string, FunctionCall>();
  const handoffs = new Map<string, HandoffCall>();
  for (const item of processed.newItems) {
    if (item.type === 'tool_call_item' && item.rawItem.type === 'function_call')
      calls.set(item.rawItem.call_id, knownCall(item, item.rawItem, tools));
    if (item.type !== 'handoff_call_item') continue;
    const { rawItem: call } = item;
    const handoff = findHandoff(call, tools);
    if (handoff) handoffs.set(call.call_id, { call, item, handoff, role: 'handoff' });
    else calls.set(call.call_id, { call, item, tool: undefined, lookupKey: lookupKeyOf(call), role: 'handoff' });
  }
  for (const { agent: owner, rawItem, toolOrigin } of waiting) {
    if (owner !== agent || rawItem.type !== 'function_call' || calls.has(rawItem.call_id)) continue;
    calls.set(rawItem.call_id, knownCall(new ToolCallItem(agent, rawItem, { toolOrigin }), rawItem, tools));
  }
  return { items: [], calls: [...calls.values()], handoffs: [...handoffs.values()], unknownTypes: [] };
}

/** The response without the calls in `repeats`, and without the reasoning that led to them: an API refuses one without the other. */
export function withoutRepeats(classified: Classified, repeats: ReadonlySet<FunctionCall | HandoffCall>): Classified {
  if (repeats.size === 0) return classified;
  const dropped = new Set<RunItem>([...repeats].map(({ item }) => item));
  const items: RunItem[] = [];
  for (const item of classified.items) {
    if (!dropped.has(item)) items.push(item);
    else while (items.at(-1)?.type === 'reasoning_item') items.pop();
  }
  return {
    ...classified,
    items,
    calls: classified.calls.filter((call) => !repeats.has(call)),
    handoffs: classified.handoffs.filter((call) => !repeats.has(call)),
  };
}

/** The tool that a call means; one with a namespace never means a tool without. */
export function findTool(
  call: ResponseFunctionToolCall,
  agent: AnyAgent,
  tools: ToolTable,
): FunctionTool<never> | undefined {
  if (call.namespace) return undefined;
  return tools.functions.get(call.name) ?? (call.name === jsonToolName ? jsonToolOf(agent) : undefined);
}

/** The handoff that a call means; one with a namespace never means one (TOOL-P12). */
export function findHandoff(call: ResponseFunctionToolCall, tools: ToolTable): Handoff<never> | undefined {
  return call.namespace ? undefined : tools.handoffs.get(call.name);
}

function newCall(agent: AnyAgent, call: ResponseFunctionToolCall, tools: ToolTable): FunctionCall {
  const tool = findTool(call, agent, tools);
  checkCaller(call, tool?.allowedCallers);
  const item = new ToolCallItem(agent, call, {
    title: tool?.title,
    description: tool?.description || undefined,
    toolOrigin: tool?.origin,
  });
  return { call, item, tool, lookupKey: lookupKeyOf(call) };
}

const modelAlone: readonly ToolCaller[] = ['direct'];

/**
 * Who made the call may make it (TOOL-P9). `permitted`: by the tool; without one anybody may, and the call finds no tool.
 * @throws ModelBehaviorError
 */
export function checkCaller(call: ResponseFunctionToolCall, permitted: readonly ToolCaller[] | undefined): void {
  const { name } = call;
  const kind = callerKind(call.caller);
  if (kind === undefined)
    throw new ModelBehaviorError(
      `The call of ${name} has an unsupported caller type: it is neither direct nor a program with an id.`,
    );
  if (permitted && !permitted.includes(kind))
    throw new ModelBehaviorError(
      `The call of ${name} is ${kind}, and its permitted callers are: ${permitted.join(', ')}.`,
    );
}

/** `undefined`: a caller that cannot be told; it must not pass for the model itself. */
function callerKind(caller: unknown): ToolCaller | undefined {
  if (caller === undefined || caller === null) return 'direct';
  if (!isObject(caller)) return undefined;
  const { type, caller_id: programId } = caller;
  if (type === 'direct') return 'direct';
  return type === 'program' && typeof programId === 'string' && programId !== '' ? 'programmatic' : undefined;
}

/** Of a stored response: its item says what the tool was then. */
function knownCall(item: ToolCallItem, call: ResponseFunctionToolCall, tools: ToolTable): FunctionCall {
  return { call, item, tool: findTool(call, item.agent, tools), lookupKey: lookupKeyOf(call) };
}

function itemOf(raw: Exclude<ResponseOutputItem, ResponseFunctionToolCall>, agent: AnyAgent): RunItem | undefined {
  switch (raw.type) {
    case 'message':
      return new MessageOutputItem(agent, raw);
    case 'reasoning':
      return new ReasoningItem(agent, raw);
    case 'file_search_call':
    case 'web_search_call':
    case 'code_interpreter_call':
    case 'image_generation_call':
    case 'mcp_call':
      return new ToolCallItem(agent, raw);
    case 'shell_call_output':
      return new ToolCallOutputItem(agent, raw, { output: raw.output });
    case 'mcp_list_tools':
      return new McpListToolsItem(agent, raw);
    case 'tool_search_call':
      return new ToolSearchCallItem(agent, raw);
    case 'tool_search_output':
      return new ToolSearchOutputItem(agent, raw);
    case 'compaction':
      return new CompactionItem(agent, raw);
    case 'computer_call':
    case 'shell_call':
    case 'local_shell_call':
    case 'apply_patch_call':
    case 'custom_tool_call':
    case 'mcp_approval_request':
    case 'program':
    case 'program_output':
      throw new ModelBehaviorError(`The model made a ${raw.type}, for which agent ${agent.name} has no tool.`);
    default:
      return undefined;
  }
}
