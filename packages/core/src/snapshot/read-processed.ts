import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import type { RunItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { lookupKeyOf } from '../state/lookup-key.ts';
import type {
  ProcessedFunction,
  ProcessedHandoff,
  ProcessedResponse,
  StateRecord,
  ToolDescriptor,
} from '../state/record.ts';
import { compact, own } from './json.ts';
import type { Json } from './json.ts';
import { foreignLists } from './processed.ts';
import { readLookupKey } from './read-item.ts';
import { malformed } from './read-json.ts';

/** What `last_processed_response` says beside its items. */
export function readProcessed(
  json: JsonObject,
  newItems: readonly RunItem[],
  bindings: JsonObject,
  nested: ReadonlyMap<unknown, StateRecord>,
): ProcessedResponse {
  const foreign: Json = {};
  for (const key of foreignLists) {
    const list = own(json, key);
    if (Array.isArray(list) && list.length > 0) foreign[key] = list;
  }
  if (Object.keys(bindings).length > 0) foreign['mcp_tool_bindings'] = bindings;
  const toolsUsed = own(json, 'tools_used');
  return {
    newItems,
    toolsUsed: Array.isArray(toolsUsed) ? toolsUsed.filter((name) => typeof name === 'string') : [],
    functions: readFunctions(own(json, 'functions'), nested),
    handoffs: readHandoffs(own(json, 'handoffs')),
    foreign: compact(foreign),
  };
}

function readHandoffs(json: JsonValue | undefined): ProcessedHandoff[] {
  if (json === undefined) return [];
  if (!Array.isArray(json)) throw malformed('last_processed_response.handoffs', 'a list');
  return (json as readonly JsonValue[]).flatMap((entry) => {
    const call = isObject(entry) ? own(entry, 'tool_call') : undefined;
    const handoff = isObject(entry) ? own(entry, 'handoff') : undefined;
    const toolName = isObject(handoff) ? own(handoff, 'tool_name') : undefined;
    if (isObject(call) && typeof toolName === 'string') return [{ call: call as never, toolName }];
    getLogger('run_state').warn('A handoff of a run state names no call or no handoff and was skipped.');
    return [];
  });
}

function readFunctions(json: JsonValue | undefined, known: ReadonlyMap<unknown, StateRecord>): ProcessedFunction[] {
  if (json === undefined) return [];
  if (!Array.isArray(json)) throw malformed('last_processed_response.functions', 'a list');
  const functions: ProcessedFunction[] = [];
  for (const [index, entry] of (json as readonly JsonValue[]).entries()) {
    const call = isObject(entry) ? own(entry, 'tool_call') : undefined;
    const tool = isObject(entry) ? readDescriptor(own(entry, 'tool'), call) : undefined;
    if (!isObject(entry) || !isObject(call) || tool === undefined) {
      getLogger('run_state').warn('A function call of a run state names no call or no tool and was skipped.');
      continue;
    }
    const nested = own(entry, 'agent_run_state') ?? undefined;
    if (nested !== undefined && !isObject(nested))
      throw malformed(`last_processed_response.functions[${index}].agent_run_state`, 'an object');
    const unread = nested !== undefined && !known.has(entry);
    functions.push({ call: call as never, tool, ...(unread && { agentRunState: nested }) });
  }
  return functions;
}

/** Old labels have no lookup key; then the call's own names say which tool it meant. */
function readDescriptor(json: JsonValue | undefined, call: JsonValue | undefined): ToolDescriptor | undefined {
  if (!isObject(json)) return undefined;
  const text = (key: string): string | undefined => {
    const value = own(json, key);
    return typeof value === 'string' ? value : undefined;
  };
  const name = text('name');
  if (name === undefined) return undefined;
  const schema = own(json, 'paramsJsonSchema');
  return compact({
    name,
    namespace: text('namespace'),
    qualifiedName: text('qualifiedName'),
    lookupKey: readLookupKey(own(json, 'lookupKey')) ?? (isObject(call) ? lookupKeyOf(call as never) : undefined),
    description: text('description'),
    paramsJsonSchema: isObject(schema) ? schema : undefined,
  }) as unknown as ToolDescriptor;
}
