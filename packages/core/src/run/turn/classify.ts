import type { AnyAgent } from '../../agent/agent.ts';
import type { FunctionTool } from '../../agent/tool.ts';
import type { ResponseFunctionToolCall, ResponseOutputItem } from '../../items/wire.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { ProcessedResponse, ToolLookupKey } from '../../state/record.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import {
  CompactionItem,
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

/** The tools that the model was offered, or would be today. */
export type ToolTable = ReadonlyMap<string, FunctionTool<never>>;

/** One function call of a response. `tool` is `undefined` when the agent has none of that name. */
export interface FunctionCall {
  readonly call: ResponseFunctionToolCall;
  readonly item: ToolCallItem;
  readonly tool: FunctionTool<never> | undefined;
  /** `undefined`: a call without a name. */
  readonly lookupKey: ToolLookupKey | undefined;
}

/** What a response asks for. */
export interface Classified {
  readonly items: readonly RunItem[];
  readonly calls: readonly FunctionCall[];
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
  const unknownTypes: string[] = [];
  for (const raw of response.output) {
    if (raw.type === 'function_call') {
      const call = newCall(agent, raw, tools);
      calls.push(call);
      items.push(call.item);
      continue;
    }
    const item = itemOf(raw, agent);
    if (item === undefined) unknownTypes.push(String((raw as { type?: unknown }).type));
    else items.push(item);
  }
  return { items, calls, unknownTypes };
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
): readonly FunctionCall[] {
  const calls = new Map<string, FunctionCall>();
  for (const item of processed.newItems) {
    if (item.type === 'tool_call_item' && item.rawItem.type === 'function_call')
      calls.set(item.rawItem.call_id, knownCall(item, item.rawItem, tools));
  }
  for (const { agent: owner, rawItem, toolOrigin } of waiting) {
    if (owner !== agent || rawItem.type !== 'function_call' || calls.has(rawItem.call_id)) continue;
    calls.set(rawItem.call_id, knownCall(new ToolCallItem(agent, rawItem, { toolOrigin }), rawItem, tools));
  }
  return [...calls.values()];
}

/** The response without the calls in `repeats`, and without the reasoning that led to them: an API refuses one without the other. */
export function withoutRepeats(classified: Classified, repeats: ReadonlySet<FunctionCall>): Classified {
  if (repeats.size === 0) return classified;
  const dropped = new Set<RunItem>([...repeats].map(({ item }) => item));
  const items: RunItem[] = [];
  for (const item of classified.items) {
    if (!dropped.has(item)) items.push(item);
    else while (items.at(-1)?.type === 'reasoning_item') items.pop();
  }
  return { ...classified, items, calls: classified.calls.filter((call) => !repeats.has(call)) };
}

/** The tool that a call means; one with a namespace never means a tool without. */
export function findTool(
  call: ResponseFunctionToolCall,
  agent: AnyAgent,
  tools: ToolTable,
): FunctionTool<never> | undefined {
  if (call.namespace) return undefined;
  return tools.get(call.name) ?? (call.name === jsonToolName ? jsonToolOf(agent) : undefined);
}

function newCall(agent: AnyAgent, call: ResponseFunctionToolCall, tools: ToolTable): FunctionCall {
  const tool = findTool(call, agent, tools);
  const item = new ToolCallItem(agent, call, {
    title: tool?.title,
    description: tool?.description || undefined,
    toolOrigin: tool?.origin,
  });
  return { call, item, tool, lookupKey: lookupKeyOf(call) };
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
