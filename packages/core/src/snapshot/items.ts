import type { ToolOrigin } from '../agent/tool.ts';
import type { RunItem } from '../items/items.ts';
import type { JsonObject } from '../items/wire.ts';
import { approvalInternals } from '../state/decisions.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { AgentGraph } from './agents.ts';
import { checkElementDepth } from './json.ts';
import type { Json } from './json.ts';
import { plainJson } from './plain.ts';

/** Writes items, each object once: the lists of a state hold the same ones up to four times. */
export class ItemWriter {
  readonly #graph: AgentGraph;
  readonly #written = new Map<RunItem, JsonObject>();

  constructor(graph: AgentGraph) {
    this.#graph = graph;
  }

  /** The item's JSON; the same object for the same item. @throws UserError `json_too_large` */
  write(item: RunItem): JsonObject {
    let json = this.#written.get(item);
    if (json === undefined) {
      json = {
        type: item.type,
        raw_item: item.rawItem as unknown as JsonObject,
        agent: this.#graph.ref(item.agent),
        ...factsOf(item, this.#graph),
      };
      checkElementDepth(json);
      this.#written.set(item, json);
    }
    return json;
  }

  writeAll(items: readonly RunItem[]): JsonObject[] {
    return items.map((item) => this.write(item));
  }
}

function factsOf(item: RunItem, graph: AgentGraph): Json {
  switch (item.type) {
    case 'input_item':
      return { input_id: item.inputId };
    case 'tool_call_item':
      return {
        tool_name: item.toolName,
        description: item.description,
        title: item.title,
        tool_origin: writeOrigin(item.toolOrigin),
      };
    case 'tool_call_output_item':
      return {
        output: plainJson(item.output),
        tool_origin: writeOrigin(item.toolOrigin),
        custom_data: isEmpty(item.customData) ? undefined : plainJson(item.customData),
      };
    case 'handoff_output_item':
      return { source_agent: graph.ref(item.sourceAgent), target_agent: graph.ref(item.targetAgent) };
    case 'tool_approval_item':
      return approvalFacts(item);
    default:
      return {};
  }
}

function approvalFacts(item: ToolApprovalItem): Json {
  const { toolName, namespace, lookupKey, allowBareNameAlias } = approvalInternals(item);
  return {
    tool_name: toolName,
    tool_namespace: namespace,
    tool_lookup_key: lookupKey && { ...lookupKey },
    tool_origin: writeOrigin(item.toolOrigin),
    allow_bare_name_alias: allowBareNameAlias ? true : undefined,
  };
}

function writeOrigin(origin: ToolOrigin | undefined): JsonObject | undefined {
  switch (origin?.type) {
    case 'mcp':
      return { type: 'mcp', mcp_server_name: origin.mcpServerName };
    case 'agent_as_tool':
      return { type: 'agent_as_tool', agent_name: origin.agentName, agent_tool_name: origin.agentToolName };
    default:
      return origin && { type: origin.type };
  }
}

function isEmpty(data: JsonObject | undefined): boolean {
  return data === undefined || Object.keys(data).length === 0;
}
