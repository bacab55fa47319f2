import type { JsonObject } from '../items/wire.ts';
import type { ProcessedFunction, ProcessedResponse } from '../state/record.ts';
import type { ItemWriter } from './items.ts';
import { compact, own } from './json.ts';
import type { Json } from './json.ts';

/** Lists of subjects that are not built here: kept as they are. */
export const foreignLists = [
  'computer_actions',
  'custom_tool_actions',
  'local_shell_actions',
  'shell_actions',
  'apply_patch_actions',
  'mcp_approval_requests',
] as const;

/** What is written of a response beside itself. */
export interface ProcessedParts {
  /** Those of the step. */
  readonly interruptions: readonly JsonObject[];
  readonly items: ItemWriter;
  readonly publicToolOutputResults: number | undefined;
  /** The paused run of a call's agent tool. */
  readonly nestedState: (entry: ProcessedFunction) => JsonObject | undefined;
}

/** `last_processed_response` (STATE §12.5). */
export function writeProcessed(processed: ProcessedResponse, parts: ProcessedParts): JsonObject {
  const { foreign } = processed;
  const { interruptions, items, publicToolOutputResults, nestedState } = parts;
  const json: Json = {
    new_items: items.writeAll(processed.newItems),
    tools_used: processed.toolsUsed,
    functions: processed.functions.map((entry) => writeFunction(entry, nestedState(entry))),
    handoffs: processed.handoffs.map(({ call, toolName }) => ({
      tool_call: call as unknown as JsonObject,
      handoff: { tool_name: toolName },
    })),
  };
  for (const key of foreignLists) json[key] = own(foreign, key) ?? [];
  json['interruptions'] = interruptions;
  json['mcp_tool_bindings'] = own(foreign, 'mcp_tool_bindings') ?? {};
  json['tool_output_guardrail_result_start'] = publicToolOutputResults;
  return compact(json);
}

function writeFunction({ call, tool }: ProcessedFunction, nestedState: JsonObject | undefined): JsonObject {
  const descriptor = compact({
    name: tool.name,
    namespace: tool.namespace,
    qualifiedName: tool.qualifiedName === tool.name ? undefined : tool.qualifiedName,
    lookupKey: tool.lookupKey && { ...tool.lookupKey },
    description: tool.description,
    paramsJsonSchema: tool.paramsJsonSchema,
  });
  return compact({ tool_call: call as unknown as JsonObject, tool: descriptor, agent_run_state: nestedState });
}
