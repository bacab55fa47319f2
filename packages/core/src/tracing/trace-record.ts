import { sha256Hex } from '../base/digest.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
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
    extra: extraOf(trace, stored),
  };
}

/** Members of other writers, without those that the trace has values for now, and what the processors add. */
function extraOf(trace: Trace, stored: TraceRecord | undefined): JsonObject {
  const extra: Record<string, JsonValue | undefined> = { ...stored?.extra };
  if (trace.groupId !== undefined) delete extra['group_id'];
  if (Object.keys(trace.metadata).length > 0) delete extra['metadata'];
  return isRecording(trace) ? { ...extra, ...carriersOf(trace) } : extra;
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
