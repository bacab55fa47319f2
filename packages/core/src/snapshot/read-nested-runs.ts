import type { AnyAgent } from '../agent/agent.ts';
import { isFunctionTool, toolInternals } from '../agent/tool-internals.ts';
import { isObject } from '../base/json.ts';
import { getLogger } from '../base/logger.ts';
import type { JsonObject, JsonValue, ResponseFunctionToolCall } from '../items/wire.ts';
import { agentToolRunsOf, nestedRuns, waitingItems } from '../state/agent-tool-runs.ts';
import { decideCall, emptyRecord } from '../state/approvals.ts';
import { contextInternals } from '../state/context.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { StateRecord } from '../state/record.ts';
import { own } from './json.ts';
import { malformed } from './read-json.ts';

/** Paused runs of agent tools in a snapshot. */
export interface ReadNestedRuns {
  /** By the entry of their call. */
  readonly records: ReadonlyMap<unknown, StateRecord>;
  /** What waits in them. */
  readonly waiting: readonly ToolApprovalItem[];
  /** Some could not be read: their agents are not there, or they are no states. They stay in the text as they are. */
  readonly unread: boolean;
}

/**
 * Reads the paused runs of a response's calls, each with the agent of its own tool as the root of names (STATE-241).
 * @throws UserError `state_malformed` for what is no object or nested too deep; with `strict` what a nested state is refused for
 */
export function readNestedRuns(
  processed: JsonObject | undefined,
  agent: AnyAgent,
  read: (agent: AnyAgent, state: JsonObject) => StateRecord,
  { strict }: { readonly strict: boolean },
): ReadNestedRuns {
  const records = new Map<unknown, StateRecord>();
  let unread = false;
  const functions = processed && own(processed, 'functions');
  for (const [index, entry] of (Array.isArray(functions) ? (functions as readonly JsonValue[]) : []).entries()) {
    const state = isObject(entry) ? (own(entry, 'agent_run_state') ?? undefined) : undefined;
    if (state === undefined) continue;
    if (!isObject(state)) throw malformed(`last_processed_response.functions[${index}].agent_run_state`, 'an object');
    checkNesting(state, 1);
    const record = readOne(agentOf(entry as JsonObject, agent), state, read, strict);
    if (record === undefined) unread = true;
    else records.set(entry, record);
  }
  return { records, waiting: [...records.values()].flatMap(waitingItems), unread };
}

function readOne(
  agent: AnyAgent | undefined,
  state: JsonObject,
  read: (agent: AnyAgent, state: JsonObject) => StateRecord,
  strict: boolean,
): StateRecord | undefined {
  if (agent === undefined) return undefined;
  try {
    return read(agent, state);
  } catch (error) {
    if (strict) throw error;
    getLogger('run_state').warn(
      'The paused run of an agent tool in a run state cannot be restored: its call counts as started and not finished.',
    );
    return undefined;
  }
}

/** The agent behind the tool that the entry's call means today; of tools of one name the last one counts, as in a run. */
function agentOf(entry: JsonObject, agent: AnyAgent): AnyAgent | undefined {
  const call = own(entry, 'tool_call');
  const name = isObject(call) ? own(call, 'name') : undefined;
  const tool = agent.tools.findLast((candidate) => isFunctionTool(candidate) && candidate.qualifiedName === name);
  return tool && toolInternals(tool).agentTool?.agent;
}

/** Gives the record its paused runs, each under the call of its items. */
export function keepNestedRuns(record: StateRecord, records: ReadNestedRuns['records']): void {
  if (records.size === 0) return;
  const runs = agentToolRunsOf(record);
  for (const [entry, nested] of records) {
    const call = own(entry as JsonObject, 'tool_call') as unknown as ResponseFunctionToolCall;
    const item = record.processed?.newItems.find(
      (candidate) => candidate.type === 'tool_call_item' && candidate.callId === call.call_id,
    );
    runs.record((item?.rawItem ?? call) as ResponseFunctionToolCall, { record: nested }, runs.scope);
  }
}

/**
 * Old writers kept decisions on calls of nested runs in the outer state: those on single calls go where they are looked up
 * (STATE-245, 146).
 */
export function mirrorDecisions(record: StateRecord): void {
  const { named } = contextInternals(record.context).approvals;
  if (named.size === 0) return;
  for (const { record: nested } of nestedRuns(record)) {
    for (const { name, callId } of waitingItems(nested)) {
      const decided = named.get(name);
      const approved = Array.isArray(decided?.approved) && decided.approved.includes(callId);
      const rejected = Array.isArray(decided?.rejected) && decided.rejected.includes(callId);
      if (decided === undefined || approved === rejected) continue;
      const { approvals } = contextInternals(nested.context);
      const mirror = approvals.named.get(name) ?? emptyRecord();
      approvals.named.set(name, mirror);
      decideCall(mirror, callId, approved, decided.rejectionMessages.get(callId));
    }
    mirrorDecisions(nested);
  }
}

const maxNesting = 16;

/** Paused runs of agent tools inside paused runs of agent tools (STATE-414). */
function checkNesting(state: JsonObject | undefined, depth: number): void {
  if (state === undefined) return;
  if (depth > maxNesting) throw malformed('last_processed_response', `nested at most ${maxNesting} runs deep`);
  const processed = own(state, 'last_processed_response');
  const functions = isObject(processed) ? own(processed, 'functions') : undefined;
  if (!Array.isArray(functions)) return;
  for (const entry of functions as readonly JsonValue[]) {
    const nested = isObject(entry) ? own(entry, 'agent_run_state') : undefined;
    if (isObject(nested)) checkNesting(nested, depth + 1);
  }
}
