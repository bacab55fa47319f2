import { isObject } from '../base/json.ts';
import { usageToJSON } from '../base/usage.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { Usage } from '../models/model.ts';
import type { Json } from './json.ts';

/**
 * Members of usage details that `Usage` does not have (newer clients add some). They are kept by position, since
 * what a run adds comes behind.
 */
export interface UsageExtras extends JsonObject {
  readonly input?: JsonObject;
  readonly output?: JsonObject;
  readonly entries?: readonly (UsageExtras | null)[];
}

const known = { input: ['cached_tokens', 'cache_write_tokens'], output: ['reasoning_tokens'] } as const;

export function usageExtras(json: JsonValue | undefined): UsageExtras | undefined {
  if (!isObject(json)) return undefined;
  const {
    input_tokens_details: inputDetails,
    output_tokens_details: outputDetails,
    request_usage_entries: list,
  } = json as {
    input_tokens_details?: JsonValue;
    output_tokens_details?: JsonValue;
    request_usage_entries?: JsonValue;
  };
  const input = detailsExtras(inputDetails, known.input);
  const output = detailsExtras(outputDetails, known.output);
  const entries = Array.isArray(list) && list.length > 0 ? entriesExtras(list as readonly JsonValue[]) : undefined;
  if (input === undefined && output === undefined && entries === undefined) return undefined;
  return { ...(input && { input }), ...(output && { output }), ...(entries && { entries }) };
}

function entriesExtras(entries: readonly JsonValue[]): readonly (UsageExtras | null)[] | undefined {
  const extras = entries.map((entry) => usageExtras(entry) ?? null);
  return extras.some((extra) => extra !== null) ? extras : undefined;
}

export function writeUsage(usage: Usage, extras: UsageExtras | undefined): JsonObject {
  const json = usageToJSON(usage);
  return extras === undefined ? json : withExtras(json, extras);
}

function withExtras(json: JsonObject, extras: UsageExtras): JsonObject {
  const result: Json = { ...json };
  if (extras.input !== undefined)
    result['input_tokens_details'] = mergedDetails(json['input_tokens_details'], extras.input);
  if (extras.output !== undefined)
    result['output_tokens_details'] = mergedDetails(json['output_tokens_details'], extras.output);
  const entries = json['request_usage_entries'];
  if (extras.entries !== undefined && Array.isArray(entries)) {
    result['request_usage_entries'] = (entries as readonly JsonObject[]).map((entry, index) => {
      const more = extras.entries?.[index];
      return more ? withExtras(entry, more) : entry;
    });
  }
  return result;
}

/** Of a whole run the details stand in a list of one. */
function mergedDetails(details: JsonValue | undefined, extras: JsonObject): JsonValue {
  if (Array.isArray(details)) return [{ ...(details[0] as JsonObject), ...extras }];
  return { ...(details as JsonObject), ...extras };
}

function detailsExtras(details: JsonValue | undefined, names: readonly string[]): JsonObject | undefined {
  const object = (Array.isArray(details) ? details[0] : details) as JsonValue | undefined;
  if (!isObject(object)) return undefined;
  for (const key in object) {
    if (!names.includes(key))
      return Object.fromEntries(Object.entries(object).filter(([other]) => !names.includes(other)));
  }
  return undefined;
}
