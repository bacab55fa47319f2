import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { usageFromJSON } from '../base/usage.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { ModelResponse } from '../models/model.ts';
import type { PrivateResults, ProcessedResponse, StateRecord } from '../state/record.ts';
import { checkElementDepth, own } from './json.ts';
import type { ReadGuardrailResults } from './read-guardrail-results.ts';
import type { ReadItems } from './read-items.ts';
import { malformed } from './read-json.ts';
import { readProcessed } from './read-processed.ts';
import { usageExtras } from './usage-json.ts';
import type { UsageExtras } from './usage-json.ts';
import type { Version } from './versions.ts';

export function readResponses(json: JsonValue | undefined): {
  readonly list: ModelResponse[];
  readonly extras: JsonValue | undefined;
} {
  if (json === undefined) return { list: [], extras: undefined };
  if (!Array.isArray(json)) throw malformed('model_responses', 'a list');
  const list: ModelResponse[] = [];
  const extras: (UsageExtras | null)[] = [];
  let hasExtras = false;
  (json as readonly JsonValue[]).forEach((response, index) => {
    checkElementDepth(response);
    const { output, usage, response_id, request_id } = (isObject(response) ? response : {}) as ResponseJson;
    if (!Array.isArray(output)) throw malformed(`model_responses[${index}]`, 'an object with a list of output items');
    const responseId = text(response_id);
    const requestId = text(request_id);
    const read: Writable<ModelResponse> = { output: output as ModelResponse['output'], usage: usageFromJSON(usage) };
    if (responseId !== undefined) read.responseId = responseId;
    if (requestId !== undefined) read.requestId = requestId;
    list.push(read);
    const extra = usageExtras(usage);
    extras.push(extra ?? null);
    hasExtras ||= extra !== undefined;
  });
  return { list, extras: hasExtras ? extras : undefined };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface ResponseJson {
  readonly output?: JsonValue;
  readonly usage?: JsonValue;
  readonly response_id?: JsonValue;
  readonly request_id?: JsonValue;
}

/** Where results of a response begin that are not public yet (STATE-347). @throws UserError `guardrail_boundary_invalid` */
export function readPrivateResults(
  json: JsonObject,
  guardrails: ReadGuardrailResults,
  version: Version,
): PrivateResults | undefined {
  const start = own(json, 'tool_output_guardrail_result_start') ?? undefined;
  if (start === undefined) return undefined;
  version.require('guardrailBoundary', 'a boundary of guardrail results');
  const { toolInput, toolOutput } = guardrails.lists;
  const fits = typeof start === 'number' && Number.isSafeInteger(start) && start >= 0 && start <= toolOutput.length;
  if (!fits || guardrails.droppedToolOutput) {
    throw new UserError(
      'tool_output_guardrail_result_start of a run state does not fit the stored results of guardrails.',
      { code: 'guardrail_boundary_invalid' },
    );
  }
  return { toolInput: toolInput.length, toolOutput: start };
}

/** @param nested paused runs by their entries in the list of functions */
export function processedOf(
  json: JsonObject,
  items: ReadItems,
  nested: ReadonlyMap<unknown, StateRecord>,
): ProcessedResponse {
  const bindings = own(json, 'mcp_tool_bindings') ?? {};
  if (!isObject(bindings) || own(json, 'mcp_tool_bindings') === null)
    throw malformed('last_processed_response.mcp_tool_bindings', 'an object');
  // A call whose entry says nothing usable counts as unbound.
  const valid = Object.entries(bindings).filter(([, binding]) => {
    if (!Array.isArray(binding) || binding.length !== 3) return false;
    const [server, tool, index] = binding as readonly JsonValue[];
    return typeof server === 'string' && typeof tool === 'string' && (index === null || Number.isInteger(index));
  });
  return readProcessed(json, items.newItems, Object.fromEntries<JsonValue | undefined>(valid), nested);
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
