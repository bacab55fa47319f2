import { isObject } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { StateRecord, StoredDecision } from '../state/record.ts';
import { compact, own } from './json.ts';
import { plainJson } from './plain.ts';

/**
 * `agents_ts`: what this SDK adds to the format (STATE-344). Python ignores and drops it; nothing here is needed to restore
 * or resume.
 */
export function writeAdditions(record: StateRecord): JsonObject {
  const foreign = own(record.foreign, 'agents_ts') as JsonObject | undefined;
  return compact({
    run_key: record.runKey,
    session_id: record.sessionId,
    unprepared: record.unprepared === true ? true : undefined,
    input_unchecked: record.inputUnchecked,
    withdrawn: record.withdrawn,
    undelivered: writeUndelivered(record),
    response_results: record.step.type === 'interruption' ? record.responseResults : undefined,
    run_id: foreign?.['run_id'],
    decisions: record.decisions.length > 0 ? record.decisions.map(writeDecision) : undefined,
    expiries: writeExpiries(record, foreign?.['expiries'] as JsonObject | undefined),
  });
}

function writeUndelivered({ serverManaged }: StateRecord): JsonObject | undefined {
  const held = serverManaged?.undelivered;
  return held && { input: [...held.input], items: [...held.items] };
}

function writeDecision(decision: StoredDecision): JsonObject {
  return compact({
    call_id: decision.callId,
    path: decision.path,
    tool_name: decision.toolName,
    type: decision.type,
    always: decision.always,
    at: decision.at,
    arguments: decision.arguments,
    original_arguments: decision.originalArguments,
    by: decision.by,
    note: decision.note,
    output: 'output' in decision ? plainJson(decision.output) : undefined,
    applied: decision.applied,
  });
}

function writeExpiries(record: StateRecord, stored: JsonObject | undefined): JsonObject | undefined {
  if (record.step.type !== 'interruption' || record.step.interruptions.length === 0) return undefined;
  return Object.fromEntries(
    record.step.interruptions.map((item) => {
      const expiresAt = stored === undefined ? undefined : expiryOf(own(stored, item.callId), 'expires_at');
      return [item.callId, compact({ created_at: item.createdAt, expires_at: expiresAt })];
    }),
  );
}

export function expiryOf(entry: JsonValue | undefined, key: 'created_at' | 'expires_at'): string | undefined {
  const value = isObject(entry) ? own(entry, key) : undefined;
  return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : undefined;
}
