import type { AnyAgent } from '../agent/agent.ts';
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import { usageFromJSON } from '../base/usage.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { ModelResponse } from '../models/model.ts';
import { batchPosition } from '../sessions/operation-id.ts';
import { contextInternals } from '../state/context.ts';
import { ownContext } from '../state/copy.ts';
import { InvocationLedger } from '../state/ledger.ts';
import type { GuardrailResultLists, ProcessedResponse, StateRecord, Step } from '../state/record.ts';
import { readAdditions } from './agents-ts.ts';
import { agentGraph, checkLegacyIdentities } from './agents.ts';
import type { AgentGraph } from './agents.ts';
import { decidedCalls } from './approvals.ts';
import { readContext } from './context-json.ts';
import type { RestoreContextOptions } from './context-value.ts';
import { compact, isObject, malformed, own } from './json.ts';
import { callHistory, checkRows, readRows, rebuiltRows, unboundCalls, waitingScopes } from './ledger.ts';
import { readPendingWrite } from './pending-write.ts';
import { readProcessed } from './processed.ts';
import { readItems } from './read-items.ts';
import type { ReadItems } from './read-items.ts';
import { readSandbox } from './sandbox.ts';
import { readTrace } from './trace.ts';
import { usageExtras } from './usage-json.ts';
import { readVersion } from './versions.ts';
import type { Version } from './versions.ts';

/**
 * Reads a run from JSON that nobody else holds: its wire objects become the record's. Nothing of the text is executed, and
 * no message shows what it holds.
 *
 * @param agent the run's starting agent
 * @throws UserError the codes of STATE §16
 */
export function readRecord(agent: AnyAgent, state: unknown, options: RestoreContextOptions): StateRecord {
  const version = readVersion(state);
  const json = state as JsonObject;
  const unrecoverable = readMarker(json, version);
  const sandbox = readSandbox(own(json, 'sandbox'));
  checkLegacyIdentities(agent, version);
  const graph = agentGraph(agent);
  const currentTurn = count(json, 'current_turn');
  const maxTurns = own(json, 'max_turns') === null ? null : count(json, 'max_turns');
  const input = readInput(json);
  checkPrograms(json, version);
  const currentAgent = graph.resolve(own(json, 'current_agent'));
  if (currentAgent === undefined) {
    throw new UserError("The run state's current agent is not reachable from the given agent. Pass the original starting agent, with the agents that it could reach.", { code: 'agent_missing' });
  }
  const contextJson = own(json, 'context');
  if (!isObject(contextJson)) throw malformed('context', 'an object');
  const additions = readAdditions(own(json, 'agents_ts'));
  const rows = readRows(contextJson, version);
  const step = readStep(own(json, 'current_step'));
  const processedJson = own(json, 'last_processed_response') ?? undefined;
  if (processedJson !== undefined && !isObject(processedJson)) throw malformed('last_processed_response', 'an object or null');
  const items = readItems({
    state: json, version, graph, input, currentTurn, processed: processedJson, rows: rows ?? [],
    interruptions: step.type === 'interruption' ? step.interruptions : undefined,
    createdAt: additions.createdAt,
  });
  const guardrailResults = readGuardrailResults(json);
  const { context, foreign: foreignContext } = readContext(contextJson, graph, version, options);
  const responses = readResponses(own(json, 'model_responses'));
  const toolUse = readToolUse(own(json, 'tool_use_tracker'), graph);
  const record: StateRecord = {
    startingAgent: agent,
    currentAgent,
    context,
    input,
    generatedItems: items.generated,
    sessionItems: items.session,
    modelResponses: responses.list,
    processed: processedJson && processedOf(processedJson, items, guardrailResults, version),
    step: step.type === 'interruption' ? { ...step, interruptions: items.interruptions } : step,
    currentTurn,
    maxTurns,
    persistedItemCount: own(json, 'current_turn_persisted_item_count') === undefined ? 0 : count(json, 'current_turn_persisted_item_count'),
    pendingWrite: unrecoverable ? undefined : readPendingWrite(own(json, 'pending_session_write'), version, currentTurn, step.type !== 'none'),
    unrecoverable,
    toolUse: toolUse.known,
    guardrailResults: guardrailResults.lists,
    reasoningItemIdPolicy: policy(own(json, 'reasoning_item_id_policy')),
    promptCacheKey: text(own(json, 'generated_prompt_cache_key')),
    trace: readTrace(own(json, 'trace')),
    runKey: additions.runKey ?? randomHex(16),
    sessionId: additions.sessionId,
    decisions: additions.decisions,
    foreign: compact({
      ...foreignMembers(json),
      sandbox,
      context: given(foreignContext),
      model_responses: responses.extras,
      tool_use_tracker: given(toolUse.unknown),
      nested_history_owned_session_item_refs: given(items.historyRefs),
      nested_interruptions: hasNestedRun(processedJson) ? given(items.unreachable) : undefined,
      agents_ts: given(additions.foreign),
    }),
    inUse: false,
  };
  // With the run's key the id of the append can be made again, and the session itself can say what became of it.
  if (record.pendingWrite && additions.runKey !== undefined)
    record.pendingWrite = { ...record.pendingWrite, position: batchPosition(record) };
  bindCalls(record, rows);
  return ownContext(record);
}

/** Marker of a run that can never go on (STATE-334). */
function readMarker(json: JsonObject, version: Version): boolean {
  const marker = own(json, 'terminal_unrecoverable') ?? undefined;
  if (marker === undefined) return false;
  if (marker === true && version.has('recovery')) return true;
  throw new UserError('The terminal marker is invalid: terminal_unrecoverable of a run state is true or absent, from $schemaVersion 1.17 on.', { code: 'terminal_marker_invalid' });
}

function count(json: JsonObject, key: string): number {
  const value = own(json, key);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed(key, 'an integer of at least 0');
  return value;
}

function readInput(json: JsonObject): string | readonly AgentInputItem[] {
  const input = own(json, 'original_input');
  if (typeof input === 'string') return input;
  if (!Array.isArray(input) || !input.every(isObject)) throw malformed('original_input', 'a string or a list of objects');
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
  const wires = [own(json, 'original_input'), own(json, 'generated_items'), own(json, 'session_items')].flatMap((list) => (Array.isArray(list) ? (list as JsonValue[]) : []));
  if (wires.some((wire) => isProgram(wire) || (isObject(wire) && isProgram(own(wire, 'raw_item'))))) version.require('programmaticCalls', 'calls made by programs');
}

type ReadStep = Exclude<Step, { type: 'interruption' | 'final_output' }> | (Omit<Extract<Step, { type: 'interruption' }>, 'interruptions'> & { readonly interruptions: readonly JsonValue[] });

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
  return { type: 'interruption', interruptions, responseAccepted: flag('response_accepted', false), llmEndHooksStarted: flag('llm_end_hooks_started', true) };
}

function readResponses(json: JsonValue | undefined): { readonly list: ModelResponse[]; readonly extras: JsonValue | undefined } {
  if (json === undefined) return { list: [], extras: undefined };
  if (!Array.isArray(json)) throw malformed('model_responses', 'a list');
  const responses = json as readonly JsonValue[];
  const extras = responses.map((response) => (isObject(response) ? (usageExtras(own(response, 'usage')) ?? null) : null));
  const list = responses.map((response, index): ModelResponse => {
    const output = isObject(response) ? own(response, 'output') : undefined;
    if (!isObject(response) || !Array.isArray(output)) throw malformed(`model_responses[${index}]`, 'an object with a list of output items');
    const responseId = text(own(response, 'response_id'));
    const requestId = text(own(response, 'request_id'));
    return {
      output: output as ModelResponse['output'],
      usage: usageFromJSON(own(response, 'usage')),
      ...(responseId !== undefined && { responseId }),
      ...(requestId !== undefined && { requestId }),
    };
  });
  return { list, extras: extras.some((extra) => extra !== null) ? extras : undefined };
}

function readToolUse(json: JsonValue | undefined, graph: AgentGraph): { readonly known: StateRecord['toolUse']; readonly unknown: JsonObject } {
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

interface ReadGuardrailResults {
  readonly lists: GuardrailResultLists;
  /** Whether an entry of the results of tools' output guardrails had to be dropped. */
  readonly droppedToolOutput: boolean;
}

function readGuardrailResults(json: JsonObject): ReadGuardrailResults {
  const read = (key: string, type: string): JsonObject[] => {
    const results = own(json, key) ?? [];
    if (!Array.isArray(results)) throw malformed(key, 'a list');
    return (results as readonly JsonValue[]).filter((result): result is JsonObject => {
      const guardrail = isObject(result) ? own(result, 'guardrail') : undefined;
      return isObject(guardrail) && own(guardrail, 'type') === type;
    });
  };
  const toolOutput = read('tool_output_guardrail_results', 'tool_output');
  const stored = own(json, 'tool_output_guardrail_results');
  return {
    lists: { input: read('input_guardrail_results', 'input'), output: read('output_guardrail_results', 'output'), toolInput: read('tool_input_guardrail_results', 'tool_input'), toolOutput },
    droppedToolOutput: Array.isArray(stored) && stored.length !== toolOutput.length,
  };
}

function processedOf(json: JsonObject, items: ReadItems, guardrails: ReadGuardrailResults, version: Version): ProcessedResponse {
  const start = own(json, 'tool_output_guardrail_result_start') ?? undefined;
  if (start !== undefined) {
    version.require('guardrailBoundary', 'a boundary of guardrail results');
    const fits = typeof start === 'number' && Number.isSafeInteger(start) && start >= 0 && start <= guardrails.lists.toolOutput.length;
    if (!fits || guardrails.droppedToolOutput) {
      throw new UserError('tool_output_guardrail_result_start of a run state does not fit the stored results of guardrails.', { code: 'guardrail_boundary_invalid' });
    }
  }
  const bindings = own(json, 'mcp_tool_bindings') ?? {};
  if (!isObject(bindings) || own(json, 'mcp_tool_bindings') === null) throw malformed('last_processed_response.mcp_tool_bindings', 'an object');
  // A call whose entry says nothing usable counts as unbound.
  const valid = Object.entries(bindings).filter(([, binding]) => {
    if (!Array.isArray(binding) || binding.length !== 3) return false;
    const [server, tool, index] = binding as readonly JsonValue[];
    return typeof server === 'string' && typeof tool === 'string' && (index === null || Number.isInteger(index));
  });
  return readProcessed(json, items.newItems, Object.fromEntries(valid) as JsonObject);
}

function hasNestedRun(processed: JsonObject | undefined): boolean {
  const functions = processed && own(processed, 'functions');
  return Array.isArray(functions) && (functions as readonly JsonValue[]).some((entry) => isObject(entry) && isObject(own(entry, 'agent_run_state')));
}

/** Members whose subject is not built here, where they say anything. */
function foreignMembers(json: JsonObject): { [key: string]: JsonValue | undefined } {
  const pending = own(json, 'pending_input') ?? [];
  if (!Array.isArray(pending)) throw malformed('pending_input', 'a list');
  return {
    pending_input: given(pending),
    conversation_id: text(own(json, 'conversation_id')),
    previous_response_id: text(own(json, 'previous_response_id')),
    auto_previous_response_id: own(json, 'auto_previous_response_id') === true ? true : undefined,
  };
}

/** The ledger: rows as they stand or as history shows them, checked against it, and the decisions that they bind. */
function bindCalls(record: StateRecord, rows: ReturnType<typeof readRows>): void {
  const internals = contextInternals(record.context);
  const { approvals } = internals;
  const waiting = record.step.type === 'interruption' ? record.step.interruptions : [];
  const history = callHistory(record.input, record.sessionItems, record.generatedItems);
  if (rows === undefined) {
    for (const [name, scope] of waitingScopes(waiting)) {
      const named = approvals.named.get(name);
      if (named !== undefined && (named.approved === true || named.rejected === true)) named.stickyScope ??= scope;
    }
  } else {
    checkRows(rows, history);
  }
  const ledgerRows = rows ?? rebuiltRows(history, waiting);
  internals.ledger = new InvocationLedger(ledgerRows, unboundCalls(ledgerRows, decidedCalls(approvals), waiting));
  internals.ledger.protect(typeof record.input === 'string' ? [] : record.input, record.sessionItems, record.generatedItems);
}

function policy(value: JsonValue | undefined): 'preserve' | 'omit' | undefined {
  return value === 'preserve' || value === 'omit' ? value : undefined;
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Nothing where there is nothing to keep. */
function given<T extends object>(value: T): JsonValue | undefined {
  return Object.keys(value).length === 0 ? undefined : (value as JsonValue);
}
