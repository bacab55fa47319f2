import type { AnyAgent } from '../agent/agent.ts';
import type { ToolOrigin } from '../agent/tool.ts';
import { isObject } from '../base/json.ts';
import {
  CompactionItem,
  HandoffCallItem,
  HandoffOutputItem,
  InputItem,
  McpApprovalRequestItem,
  McpApprovalResponseItem,
  McpListToolsItem,
  MessageOutputItem,
  ReasoningItem,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from '../items/items.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import type { ToolLookupKey } from '../state/record.ts';
import type { AgentGraph } from './agents.ts';
import { checkElementDepth, own } from './json.ts';

/** Facts of waiting items that stand elsewhere in the JSON. */
export interface WaitingFacts {
  readonly createdAt: (callId: string) => string | undefined;
  readonly inDoubt: (call: JsonObject) => boolean;
}

/** Reads items; what cannot be read is skipped (STATE-351). */
export class ItemReader {
  readonly #graph: AgentGraph;
  readonly #waiting: WaitingFacts;
  /** Why items were skipped, without what they held. */
  readonly skipped: Set<string> = new Set();

  constructor(graph: AgentGraph, waiting: WaitingFacts) {
    this.#graph = graph;
    this.#waiting = waiting;
  }

  /** @throws UserError `agent_identity_missing`, `json_too_large` */
  read(json: JsonValue | undefined): RunItem | undefined {
    checkElementDepth(json);
    if (!isObject(json)) return this.#skip('it is no object');
    const item: ItemJson = json;
    const { type, raw_item: raw } = item;
    if (typeof type !== 'string' || type === '') return this.#skip('it has no type');
    if (!isObject(raw)) return this.#skip('it has no raw_item');
    const agent = this.#agentOf(item, type);
    if (agent === undefined) return this.#skip('its agent is not reachable from the given one');
    return this.#make(type, agent, raw, item);
  }

  #make(type: string, agent: AnyAgent, raw: JsonObject, json: ItemJson): RunItem | undefined {
    switch (type) {
      case 'tool_call_item':
        return new ToolCallItem(agent, raw as never, {
          title: text(json.title),
          description: text(json.description),
          toolOrigin: readOrigin(json.tool_origin, raw),
        });
      case 'tool_call_output_item':
        return this.#makeOutput(agent, raw, json);
      case 'tool_approval_item':
        return this.#makeWaiting(agent, raw, json);
      case 'handoff_output_item':
        return this.#makeHandoffOutput(agent, raw, json);
      case 'input_item':
        return new InputItem(agent, raw as unknown as AgentInputItem, { inputId: text(json.input_id) ?? '' });
      case 'message_output_item':
        return new MessageOutputItem(agent, message(raw) as never);
      default: {
        const Plain = plainItems.get(type);
        return Plain === undefined ? this.#skip('its type is not known') : new Plain(agent, raw as never);
      }
    }
  }

  #makeOutput(agent: AnyAgent, raw: JsonObject, json: ItemJson): RunItem | undefined {
    if (!isValidOutput(raw)) return this.#skip('it is no valid output of a call');
    const { output, custom_data: customData } = json;
    return new ToolCallOutputItem(agent, raw as never, {
      output: output ?? null,
      toolOrigin: readOrigin(json.tool_origin, raw),
      customData: isObject(customData) ? customData : undefined,
    });
  }

  #makeWaiting(agent: AnyAgent, raw: JsonObject, json: ItemJson): ToolApprovalItem {
    return new ToolApprovalItem(agent, raw as never, {
      toolName: text(json.tool_name),
      namespace: text(json.tool_namespace),
      lookupKey: readLookupKey(json.tool_lookup_key),
      toolOrigin: readOrigin(json.tool_origin, raw),
      allowBareNameAlias: json.allow_bare_name_alias === true,
      inDoubt: this.#waiting.inDoubt(raw),
      createdAt: this.#waiting.createdAt(text(own(raw, 'call_id')) || text(own(raw, 'id')) || ''),
    });
  }

  #makeHandoffOutput(agent: AnyAgent, raw: JsonObject, json: ItemJson): RunItem | undefined {
    const sourceAgent = this.#graph.resolve(json.source_agent);
    const targetAgent = this.#graph.resolve(json.target_agent);
    if (sourceAgent === undefined || targetAgent === undefined)
      return this.#skip('an agent of its handoff is not reachable from the given one');
    return new HandoffOutputItem(agent, raw as never, { sourceAgent, targetAgent });
  }

  #agentOf(json: ItemJson, type: string): AnyAgent | undefined {
    const agent = this.#graph.resolve(json.agent);
    if (agent !== undefined || type !== 'handoff_output_item') return agent;
    return this.#graph.resolve(json.source_agent) ?? this.#graph.resolve(json.target_agent);
  }

  #skip(reason: string): undefined {
    this.skipped.add(reason);
    return undefined;
  }
}

/** The format's own names. They are read as members, which is faster than by key: a snapshot holds items by the thousand. */
interface ItemJson {
  readonly type?: JsonValue;
  readonly raw_item?: JsonValue;
  readonly agent?: JsonValue;
  readonly title?: JsonValue;
  readonly description?: JsonValue;
  readonly tool_name?: JsonValue;
  readonly tool_namespace?: JsonValue;
  readonly tool_lookup_key?: JsonValue;
  readonly tool_origin?: JsonValue;
  readonly allow_bare_name_alias?: JsonValue;
  readonly output?: JsonValue;
  readonly custom_data?: JsonValue;
  readonly input_id?: JsonValue;
  readonly source_agent?: JsonValue;
  readonly target_agent?: JsonValue;
}

type PlainItem = new (agent: AnyAgent, rawItem: never) => RunItem;

/** Items that are nothing but an agent and a wire object. */
const plainItems: ReadonlyMap<string, PlainItem> = new Map<string, PlainItem>([
  ['reasoning_item', ReasoningItem],
  ['handoff_call_item', HandoffCallItem],
  ['tool_search_call_item', ToolSearchCallItem],
  ['tool_search_output_item', ToolSearchOutputItem],
  ['mcp_list_tools_item', McpListToolsItem],
  ['mcp_approval_request_item', McpApprovalRequestItem],
  ['mcp_approval_response_item', McpApprovalResponseItem],
  ['compaction_item', CompactionItem],
]);

/** Old writers left the content of an assistant message as a string. */
function message(raw: JsonObject): JsonObject {
  const { content, role } = raw as { content?: JsonValue; role?: JsonValue };
  return typeof content === 'string' && role === 'assistant'
    ? { ...raw, content: [{ type: 'output_text', text: content, annotations: [] }] }
    : raw;
}

function isValidOutput(raw: JsonObject): boolean {
  const { type, output, call_id: callId } = raw as { type?: JsonValue; output?: JsonValue; call_id?: JsonValue };
  const hasCallId = typeof callId === 'string' && callId !== '';
  switch (type) {
    case 'function_call_output':
      return hasCallId && (typeof output === 'string' || Array.isArray(output));
    case 'computer_call_output':
      return hasCallId && isObject(output);
    case 'local_shell_call_output':
      // The API names this one by `id`; what our loop and Python write has the call's id too.
      return hasCallId && typeof output === 'string';
    default:
      return true;
  }
}

const functionOrigin: ToolOrigin = Object.freeze({ type: 'function' });

function readOrigin(origin: JsonValue | undefined, raw: JsonObject): ToolOrigin | undefined {
  if (!isObject(origin)) return undefined;
  const type = own(origin, 'type');
  if (type === 'function') return functionOrigin;
  const agentName = text(own(origin, 'agent_name'));
  const agentToolName = text(own(origin, 'agent_tool_name'));
  const mcpServerName = text(own(origin, 'mcp_server_name'));
  switch (type) {
    case 'mcp':
      // Python does not write the name on the server; that of the call is it unless the server's tools have a prefix.
      return mcpServerName === undefined
        ? undefined
        : { type: 'mcp', mcpServerName, mcpToolName: text(own(raw, 'name')) ?? '' };
    case 'agent_as_tool':
      return agentName === undefined
        ? undefined
        : { type: 'agent_as_tool', agentName, agentToolName: agentToolName ?? '' };
    default:
      return undefined;
  }
}

export function readLookupKey(json: JsonValue | undefined): ToolLookupKey | undefined {
  if (!isObject(json)) return undefined;
  const name = text(own(json, 'name'));
  const kind = own(json, 'kind');
  if (name === undefined) return undefined;
  if (kind === 'bare' || kind === 'deferred_top_level') return { kind, name };
  const namespace = text(own(json, 'namespace'));
  return kind === 'namespaced' && namespace !== undefined ? { kind, namespace, name } : undefined;
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
