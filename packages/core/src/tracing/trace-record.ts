import { sha256Hex } from '../base/digest.ts';
import { isObject } from '../base/json.ts';
import type { JsonObject } from '../items/wire.ts';
import type { TraceRecord } from '../state/record.ts';
import { isNoop } from './noop.ts';
import { carriersOf } from './processors.ts';
import { isRecording } from './trace.ts';
import type { Trace } from './types.ts';

/**
 * What a state keeps of the trace of its run: the trace's own data and what the processors want back on a resume. An
 * untraced segment changes nothing of `stored`.
 */
export function traceRecordOf(trace: Trace, stored: TraceRecord | undefined): TraceRecord | undefined {
  if (isNoop(trace)) return stored;
  const same = stored?.traceId === trace.traceId ? stored : undefined;
  return {
    traceId: trace.traceId,
    workflowName: trace.name,
    groupId: trace.groupId,
    metadata: Object.keys(trace.metadata).length === 0 ? undefined : trace.metadata,
    apiKey: trace.apiKey,
    // A segment without the key does not make the state forget that there was one.
    apiKeyHash: trace.apiKey === undefined ? same?.apiKeyHash : undefined,
    extra: { ...stored?.extra, ...(isRecording(trace) ? carriersOf(trace) : undefined) },
  };
}

/** Member `trace` of a state's JSON. Without `includeKey` a key leaves its SHA-256 (TRACE-R5). */
export function traceRecordToJSON(record: TraceRecord | undefined, includeKey: boolean = false): JsonObject | null {
  if (record === undefined) return null;
  const { traceId, workflowName, groupId, metadata, apiKey, extra } = record;
  const hash = apiKey === undefined ? record.apiKeyHash : sha256Hex(apiKey);
  return {
    object: 'trace',
    id: traceId,
    workflow_name: workflowName,
    ...(groupId === undefined ? undefined : { group_id: groupId }),
    ...(metadata === undefined ? undefined : { metadata: metadata as JsonObject }),
    ...(includeKey && apiKey !== undefined ? { tracing_api_key: apiKey } : undefined),
    ...(hash === undefined ? undefined : { tracing_api_key_hash: hash }),
    ...extra,
  };
}

/** Reads what `traceRecordToJSON` and Python write; anything without an id is no trace. Unknown members are kept. */
export function traceRecordFromJSON(json: unknown): TraceRecord | undefined {
  if (!isObject(json)) return undefined;
  const {
    object: _object,
    id,
    trace_id,
    workflow_name,
    group_id,
    metadata,
    tracing_api_key,
    tracing_api_key_hash,
    ...extra
  } = json;
  const traceId = text(id) ?? text(trace_id);
  if (traceId === undefined) return undefined;
  return {
    traceId,
    workflowName: text(workflow_name) ?? DEFAULT_WORKFLOW,
    groupId: text(group_id),
    metadata: isObject(metadata) ? metadata : undefined,
    apiKey: text(tracing_api_key),
    apiKeyHash: text(tracing_api_key_hash),
    extra: extra as JsonObject,
  };
}

export const DEFAULT_WORKFLOW = 'Agent workflow';

/** Whether a resumed run with these settings goes on with the trace of `stored` (TRACE-R6). */
export function continues(stored: TraceRecord, now: Omit<TraceRecord, 'extra' | 'apiKeyHash'>): boolean {
  return (
    stored.traceId === now.traceId &&
    stored.workflowName === now.workflowName &&
    stored.groupId === now.groupId &&
    sameJson(stored.metadata ?? {}, now.metadata ?? {}) &&
    sameKey(stored, now.apiKey)
  );
}

function sameKey({ apiKey, apiKeyHash }: TraceRecord, key: string | undefined): boolean {
  if (apiKey !== undefined) return apiKey === key;
  if (apiKeyHash === undefined || key === undefined) return apiKeyHash === key;
  return apiKeyHash === sha256Hex(key);
}

/** Deep equality of JSON values, whatever the order of keys. */
function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
