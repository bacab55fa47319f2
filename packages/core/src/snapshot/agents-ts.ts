import { isObject } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { StateRecord, StoredDecision } from '../state/record.ts';
import { compact, malformed, own } from './json.ts';
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
    run_id: foreign?.['run_id'],
    decisions: record.decisions.length > 0 ? record.decisions.map(writeDecision) : undefined,
    expiries: writeExpiries(record, foreign?.['expiries'] as JsonObject | undefined),
  });
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

/** What a state says in addition. */
export interface Additions {
  /** `undefined`: the text has none, or somebody dropped it. */
  readonly runKey: string | undefined;
  readonly sessionId: string | undefined;
  readonly unprepared: boolean;
  readonly decisions: StoredDecision[];
  createdAt(callId: string): string | undefined;
  /** Members of subjects that are not built here. */
  readonly foreign: JsonObject;
}

/** Malformed members are as good as absent, but for decisions. @throws UserError `state_malformed` */
export function readAdditions(json: JsonValue | undefined): Additions {
  const additions: JsonObject = isObject(json) ? json : {};
  const runKey = own(additions, 'run_key');
  const sessionId = own(additions, 'session_id');
  const runId = own(additions, 'run_id');
  const expiries = own(additions, 'expiries');
  const expiryList: JsonObject = isObject(expiries) ? expiries : {};
  return {
    runKey: typeof runKey === 'string' && /^[0-9a-f]{32}$/.test(runKey) ? runKey : undefined,
    sessionId: isName(sessionId) ? sessionId : undefined,
    unprepared: own(additions, 'unprepared') === true,
    decisions: readDecisions(own(additions, 'decisions')),
    createdAt: (callId) => expiryOf(own(expiryList, callId), 'created_at'),
    foreign: compact({
      run_id: isName(runId) ? runId : undefined,
      expiries: Object.values(expiryList).some((entry) => expiryOf(entry, 'expires_at') !== undefined)
        ? expiryList
        : undefined,
    }),
  };
}

function readDecisions(json: JsonValue | undefined): StoredDecision[] {
  if (json === undefined) return [];
  if (!Array.isArray(json)) throw malformed('agents_ts.decisions', 'a list');
  return (json as readonly JsonValue[]).map((decision, index) => {
    if (!isObject(decision)) throw malformed(`agents_ts.decisions[${index}]`, 'an object');
    return readDecision(decision, `agents_ts.decisions[${index}]`);
  });
}

const decisionTypes = ['approve', 'reject', 'rerun', 'done'];

function readDecision(json: JsonObject, path: string): StoredDecision {
  const text = (key: string): string => {
    const value = own(json, key);
    if (typeof value !== 'string') throw malformed(`${path}.${key}`, 'a string');
    return value;
  };
  const optionalText = (key: string): string | undefined => (own(json, key) === undefined ? undefined : text(key));
  const callPath = own(json, 'path');
  const always = own(json, 'always');
  if (!Array.isArray(callPath) || !callPath.every((id) => typeof id === 'string'))
    throw malformed(`${path}.path`, 'a list of call ids');
  if (typeof always !== 'boolean') throw malformed(`${path}.always`, 'true or false');
  if (!decisionTypes.includes(text('type'))) throw malformed(`${path}.type`, decisionTypes.join(', '));
  const output = own(json, 'output');
  return {
    callId: text('call_id'),
    path: callPath,
    toolName: text('tool_name'),
    type: text('type') as StoredDecision['type'],
    always,
    by: optionalText('by'),
    note: optionalText('note'),
    at: text('at'),
    arguments: text('arguments'),
    originalArguments: optionalText('original_arguments'),
    ...(output !== undefined && { output }),
    ...(own(json, 'applied') === true && { applied: true }),
  };
}

function expiryOf(entry: JsonValue | undefined, key: 'created_at' | 'expires_at'): string | undefined {
  const value = isObject(entry) ? own(entry, key) : undefined;
  return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
