import { isObject } from '../base/json.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { StoredDecision, Undelivered } from '../state/record.ts';
import { expiryOf } from './agents-ts.ts';
import { compact, own } from './json.ts';
import { malformed } from './read-json.ts';

/** What a state says in addition. */
export interface Additions {
  /** `undefined`: the text has none, or somebody dropped it. */
  readonly runKey: string | undefined;
  readonly sessionId: string | undefined;
  readonly unprepared: boolean;
  readonly inputUnchecked: true | undefined;
  readonly withdrawn: number | undefined;
  readonly responseResults: number | undefined;
  readonly undelivered: Undelivered | undefined;
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
  const responseResults = own(additions, 'response_results');
  const withdrawn = own(additions, 'withdrawn');
  const expiries = own(additions, 'expiries');
  const expiryList: JsonObject = isObject(expiries) ? expiries : {};
  return {
    runKey: typeof runKey === 'string' && /^[0-9a-f]{32}$/.test(runKey) ? runKey : undefined,
    sessionId: isName(sessionId) ? sessionId : undefined,
    unprepared: own(additions, 'unprepared') === true,
    inputUnchecked: own(additions, 'input_unchecked') === true ? true : undefined,
    withdrawn: isCount(withdrawn) ? withdrawn : undefined,
    responseResults: isCount(responseResults) ? responseResults : undefined,
    undelivered: readUndelivered(own(additions, 'undelivered')),
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

function readUndelivered(json: JsonValue | undefined): Undelivered | undefined {
  if (!isObject(json)) return undefined;
  const places = (key: 'input' | 'items'): number[] => {
    const list = own(json, key);
    return Array.isArray(list) ? (list as readonly JsonValue[]).filter(isCount) : [];
  };
  const held = { input: places('input'), items: places('items') };
  return held.input.length + held.items.length === 0 ? undefined : held;
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

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
