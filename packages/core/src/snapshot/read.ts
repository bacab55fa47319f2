import { Agent } from '../agent/agent.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import { kindOf } from '../base/options.ts';
import { isObject } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import { batchPosition } from '../sessions/operation-id.ts';
import type { ApprovalMap } from '../state/approvals.ts';
import { contextInternals, unwrapContext } from '../state/context.ts';
import { ownContext } from '../state/copy.ts';
import { InvocationLedger } from '../state/ledger.ts';
import type { LedgerEntry } from '../state/ledger.ts';
import type { StateRecord, Step, Undelivered } from '../state/record.ts';
import { agentGraph, checkLegacyIdentities } from './agents.ts';
import type { AgentGraph } from './agents.ts';
import { checkElementDepth, compact, own } from './json.ts';
import { readAdditions } from './read-agents-ts.ts';
import { decidedCalls } from './read-approvals.ts';
import { readContext } from './read-context.ts';
import type { RestoreContextOptions } from './read-context.ts';
import { readItems } from './read-items.ts';
import { keepNestedRuns, mirrorDecisions, readNestedRuns } from './read-nested-runs.ts';
import { malformed, parseText } from './read-json.ts';
import { callHistory, checkRows, readRows, rebuiltRows, unboundCalls, waitingScopes } from './read-ledger.ts';
import { readPendingWrite } from './read-pending-write.ts';
import { readGuardrailResults } from './read-guardrail-results.ts';
import { processedOf, readPrivateResults, readResponses } from './read-results.ts';
import { readTrace } from './read-trace.ts';
import { readSandbox } from './sandbox.ts';
import { readVersion } from './versions.ts';
import type { Version } from './versions.ts';

/** As `readRecord`, from text of at most `maxBytes`. @throws UserError also `json_too_large`, `json_parse` */
export function readText(agent: AnyAgent, text: string, maxBytes: number, options: RestoreContextOptions): StateRecord {
  return readRecord(agent, parseText(text, maxBytes), options);
}

/**
 * Reads a run from JSON that nobody else holds: its wire objects become the record's. Nothing of the text is executed, and
 * no message shows what it holds.
 *
 * @param agent the run's starting agent
 * @throws TypeError when `agent` is none; UserError the codes of STATE §16
 */
export function readRecord(agent: AnyAgent, state: unknown, options: RestoreContextOptions): StateRecord {
  if (!((agent as unknown) instanceof Agent))
    throw new TypeError(`The first argument of a restore is the run's starting agent, not ${kindOf(agent)}.`);
  const version = readVersion(state);
  const json = state as JsonObject;
  const unrecoverable = readMarker(json, version);
  const sandbox = readSandbox(own(json, 'sandbox'));
  const head = readHead(agent, json, version);
  const additions = readAdditions(own(json, 'agents_ts'));
  const step = readStep(own(json, 'current_step'));
  const rows = readRows(head.context, version);
  // The context that was given becomes this state's own; nested ones get their own over the same value.
  const nestedOptions = { ...options, context: unwrapContext(options.context) };
  const nested = readNestedRuns(
    head.processed,
    head.currentAgent,
    (inner, text) => readRecord(inner, text, nestedOptions),
    {
      strict: options.strictContext === true,
    },
  );
  const items = readItems({
    ...head,
    nestedItems: nested.waiting,
    state: json,
    version,
    rows: rows ?? [],
    interruptions: step.type === 'interruption' ? step.interruptions : undefined,
    createdAt: (callId) => additions.createdAt(callId),
  });
  const guardrailResults = readGuardrailResults(json, head.graph, head.currentAgent);
  const stored = readContext(head.context, head.graph, version, options);
  const responses = readResponses(own(json, 'model_responses'));
  const toolUse = readToolUse(own(json, 'tool_use_tracker'), head.graph);
  const record: StateRecord = {
    startingAgent: agent,
    currentAgent: head.currentAgent,
    context: stored.context,
    input: head.input,
    generatedItems: items.generated,
    sessionItems: items.session,
    ownedHistory: items.ownedHistory,
    modelResponses: responses.list,
    processed: head.processed && processedOf(head.processed, items, nested.records),
    step: step.type === 'interruption' ? { ...step, interruptions: items.interruptions } : step,
    currentTurn: head.currentTurn,
    maxTurns: head.maxTurns,
    persistedItemCount: head.persistedItemCount,
    // The marker is looked at first: beside it the record is neither checked nor settled (STATE-337).
    pendingWrite: unrecoverable
      ? undefined
      : readPendingWrite(own(json, 'pending_session_write'), version, head.currentTurn, step.type !== 'none'),
    unrecoverable,
    toolUse: toolUse.known,
    guardrailResults: guardrailResults.lists,
    privateResults: head.processed && readPrivateResults(head.processed, guardrailResults, version),
    serverManaged: readServerManaged(json, additions.undelivered),
    ...readSettings(json),
    runKey: additions.runKey ?? randomHex(16),
    sessionId: additions.sessionId,
    unprepared: additions.unprepared,
    inputUnchecked: additions.inputUnchecked,
    withdrawn: additions.withdrawn,
    responseResults: additions.responseResults,
    decisions: additions.decisions,
    foreign: compact({
      ...foreignMembers(json),
      sandbox,
      context: given(stored.foreign),
      model_responses: responses.extras,
      tool_use_tracker: given(toolUse.unknown),
      nested_interruptions: nested.unread ? given(items.unreachable) : undefined,
      agents_ts: given(additions.foreign),
    }),
    inUse: false,
  };
  // With the run's key the id of the append can be made again, and the session itself can say what became of it.
  if (record.pendingWrite && additions.runKey !== undefined)
    record.pendingWrite = { ...record.pendingWrite, position: batchPosition(record) };
  const ledger = readLedger(record, stored.approvals, rows);
  const { usage, approvals, toolInput } = stored;
  Object.assign(contextInternals(record.context), { usage, approvals, toolInput, ledger });
  keepNestedRuns(record, nested.records);
  if (!version.has('hostedApprovals')) mirrorDecisions(record);
  return ownContext(record);
}

/** What everything else is read with. */
interface Head {
  readonly graph: AgentGraph;
  readonly currentAgent: AnyAgent;
  readonly currentTurn: number;
  readonly maxTurns: number | null;
  readonly persistedItemCount: number;
  readonly input: string | readonly AgentInputItem[];
  readonly context: JsonObject;
  readonly processed: JsonObject | undefined;
}

function readHead(agent: AnyAgent, json: JsonObject, version: Version): Head {
  checkLegacyIdentities(agent, version);
  const graph = agentGraph(agent);
  const currentTurn = count(json, 'current_turn');
  const maxTurns = own(json, 'max_turns') === null ? null : count(json, 'max_turns');
  const persistedItemCount =
    own(json, 'current_turn_persisted_item_count') === undefined ? 0 : count(json, 'current_turn_persisted_item_count');
  const input = readInput(json);
  checkPrograms(json, version);
  const currentAgent = graph.resolve(own(json, 'current_agent'));
  if (currentAgent === undefined) {
    throw new UserError(
      "The run state's current agent is not reachable from the given agent. Pass the original starting agent, with the agents that it could reach.",
      { code: 'agent_missing' },
    );
  }
  const context = own(json, 'context');
  if (!isObject(context)) throw malformed('context', 'an object');
  const processed = own(json, 'last_processed_response') ?? undefined;
  if (processed !== undefined && !isObject(processed)) throw malformed('last_processed_response', 'an object or null');
  return { graph, currentAgent, currentTurn, maxTurns, persistedItemCount, input, context, processed };
}

function readSettings(json: JsonObject): Pick<StateRecord, 'reasoningItemIdPolicy' | 'promptCacheKey' | 'trace'> {
  const policy = own(json, 'reasoning_item_id_policy');
  return {
    reasoningItemIdPolicy: policy === 'preserve' || policy === 'omit' ? policy : undefined,
    promptCacheKey: text(own(json, 'generated_prompt_cache_key')),
    trace: readTrace(own(json, 'trace')),
  };
}

/** Marker of a run that can never go on (STATE-334). */
function readMarker(json: JsonObject, version: Version): boolean {
  const marker = own(json, 'terminal_unrecoverable') ?? undefined;
  if (marker === undefined) return false;
  if (marker === true && version.has('recovery')) return true;
  throw new UserError(
    'The terminal marker is invalid: terminal_unrecoverable of a run state is true or absent, from $schemaVersion 1.17 on.',
    { code: 'terminal_marker_invalid' },
  );
}

function count(json: JsonObject, key: string): number {
  const value = own(json, key);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw malformed(key, 'an integer of at least 0');
  return value;
}

function readInput(json: JsonObject): string | readonly AgentInputItem[] {
  const input = own(json, 'original_input');
  if (typeof input === 'string') return input;
  if (!Array.isArray(input) || !input.every(isObject))
    throw malformed('original_input', 'a string or a list of objects');
  input.forEach(checkElementDepth);
  return input as unknown as readonly AgentInputItem[];
}

/** Calls made by programs came with 1.13; older labels cannot have them. */
function checkPrograms(json: JsonObject, version: Version): void {
  if (version.has('programmaticCalls')) return;
  const isProgram = (wire: JsonValue | undefined): boolean => {
    if (!isObject(wire)) return false;
    const caller = own(wire, 'caller');
    const type = own(wire, 'type');
    return type === 'program' || type === 'program_output' || (isObject(caller) && own(caller, 'type') === 'program');
  };
  const wires = [own(json, 'original_input'), own(json, 'generated_items'), own(json, 'session_items')].flatMap(
    (list) => (Array.isArray(list) ? (list as JsonValue[]) : []),
  );
  if (wires.some((wire) => isProgram(wire) || (isObject(wire) && isProgram(own(wire, 'raw_item')))))
    version.require('programmaticCalls', 'calls made by programs');
}

type ReadStep =
  | Exclude<Step, { type: 'interruption' | 'final_output' }>
  | (Omit<Extract<Step, { type: 'interruption' }>, 'interruptions'> & { readonly interruptions: readonly JsonValue[] });

function readStep(json: JsonValue | undefined): ReadStep {
  if (json === undefined || json === null) return { type: 'none' };
  const type = isObject(json) ? own(json, 'type') : undefined;
  if (!isObject(json) || (type !== 'next_step_run_again' && type !== 'next_step_interruption')) {
    throw malformed('current_step', 'null, next_step_run_again or next_step_interruption');
  }
  if (type === 'next_step_run_again') return { type: 'run_again' };
  // The oldest layout had the list in the step itself.
  const data = own(json, 'data');
  const interruptions = own(isObject(data) ? data : json, 'interruptions') ?? [];
  if (!Array.isArray(interruptions)) throw malformed('current_step.data.interruptions', 'a list');
  const flag = (key: string, absent: boolean): boolean => {
    const value = (isObject(data) ? own(data, key) : undefined) ?? absent;
    if (typeof value !== 'boolean') throw malformed(`current_step.data.${key}`, 'true or false');
    return value;
  };
  return {
    type: 'interruption',
    interruptions,
    responseAccepted: flag('response_accepted', false),
    llmEndHooksStarted: flag('llm_end_hooks_started', true),
  };
}

function readToolUse(
  json: JsonValue | undefined,
  graph: AgentGraph,
): { readonly known: StateRecord['toolUse']; readonly unknown: JsonObject } {
  const known: StateRecord['toolUse'] = new Map();
  const unknown = new Map<string, JsonValue>();
  for (const [identity, names] of isObject(json) ? Object.entries(json) : []) {
    if (!Array.isArray(names)) continue;
    const tools = names.filter((name) => typeof name === 'string');
    const agent = graph.byIdentity(identity);
    if (agent === undefined) unknown.set(identity, tools);
    else known.set(agent, new Set(tools));
  }
  return { known, unknown: Object.fromEntries(unknown) };
}

/** Members whose subject is not built here, where they say anything. */
function foreignMembers(json: JsonObject): { [key: string]: JsonValue | undefined } {
  const pending = own(json, 'pending_input') ?? [];
  if (!Array.isArray(pending)) throw malformed('pending_input', 'a list');
  return {
    pending_input: given(pending),
  };
}

function readServerManaged(json: JsonObject, undelivered: Undelivered | undefined): StateRecord['serverManaged'] {
  const conversationId = text(own(json, 'conversation_id'));
  const previousResponseId = text(own(json, 'previous_response_id'));
  const auto = own(json, 'auto_previous_response_id') === true;
  if (conversationId === undefined && previousResponseId === undefined && !auto) return undefined;
  return { conversationId, previousResponseId, auto, undelivered };
}

/** Rows as they stand or as history shows them, checked against it, and the decisions that they bind. */
function readLedger(
  record: StateRecord,
  approvals: ApprovalMap,
  rows: readonly LedgerEntry[] | undefined,
): InvocationLedger {
  const waiting = record.step.type === 'interruption' ? record.step.interruptions : [];
  const { input, sessionItems, generatedItems } = record;
  if (rows === undefined) {
    for (const [name, scope] of waitingScopes(waiting)) {
      const named = approvals.named.get(name);
      if (named !== undefined && (named.approved === true || named.rejected === true)) named.stickyScope ??= scope;
    }
  } else {
    checkRows(rows, input, sessionItems, generatedItems);
  }
  const known = rows ?? rebuiltRows(callHistory(input, sessionItems, generatedItems), waiting);
  const ledger = new InvocationLedger(known, unboundCalls(known, decidedCalls(approvals), waiting));
  ledger.protect(typeof input === 'string' ? [] : input, sessionItems, generatedItems);
  return ledger;
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Nothing where there is nothing to keep. */
function given<T extends object>(value: T): JsonValue | undefined {
  return Object.keys(value).length === 0 ? undefined : (value as JsonValue);
}
