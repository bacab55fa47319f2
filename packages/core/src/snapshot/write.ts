import type { ModelResponse } from '../models/model.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { ProcessedFunction, StateRecord } from '../state/record.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { pausedRunOf, waitingItems } from '../state/agent-tool-runs.ts';
import { writeAdditions } from './agents-ts.ts';
import { agentGraph } from './agents.ts';
import type { AgentGraph } from './agents.ts';
import { writeContext } from './context-json.ts';
import type { ContextForeign } from './context-json.ts';
import type { ContextOptions } from './context-value.ts';
import { writeGuardrailResults } from './guardrail-results.ts';
import { ItemWriter } from './items.ts';
import { checkElementDepth, compact, own } from './json.ts';
import { historyRefs, responseOwnership, sessionIndexes } from './ownership.ts';
import { writePendingWrite } from './pending-write.ts';
import { writeProcessed } from './processed.ts';
import { writeTrace } from './trace.ts';
import { writeUsage } from './usage-json.ts';
import type { UsageExtras } from './usage-json.ts';
import { currentVersion } from './versions.ts';

export interface WriteOptions extends ContextOptions {
  readonly includeTracingApiKey?: boolean | undefined;
}

/** Runs of agent tools inside each other that are written and read (STATE-414). */
const maxNesting = 16;

/**
 * A run as JSON. The document shares its wire objects with the run, and the same item's JSON stands wherever the item does:
 * it is to be turned into text or copied, and never changed.
 *
 * @throws UserError `agent_identity_ambiguous`, `json_too_large`, and where the context cannot be written
 */
export function writeRecord(record: StateRecord, options: WriteOptions, depth = 0): JsonObject {
  const graph = agentGraph(record.startingAgent);
  const items = new ItemWriter(graph);
  const { foreign } = record;
  const responses = writeResponses(
    record.modelResponses,
    own(foreign, 'model_responses') as readonly (UsageExtras | null)[] | undefined,
  );
  const interruptions = writeInterruptions(record, items);
  return compact({
    $schemaVersion: currentVersion,
    current_turn: record.currentTurn,
    current_agent: graph.ref(record.currentAgent),
    original_input: writeInput(record.input),
    pending_input: own(foreign, 'pending_input') ?? [],
    model_responses: responses,
    context: writeContext(record.context, own(foreign, 'context') as ContextForeign | undefined, graph, options),
    tool_use_tracker: writeToolUse(record, graph),
    max_turns: record.maxTurns,
    no_active_agent_run: true,
    ...writeGuardrailResults(record.guardrailResults, graph),
    conversation_id: record.serverManaged?.conversationId ?? null,
    previous_response_id: record.serverManaged?.previousResponseId ?? null,
    auto_previous_response_id: record.serverManaged?.auto ?? false,
    reasoning_item_id_policy: record.reasoningItemIdPolicy ?? null,
    generated_prompt_cache_key: record.promptCacheKey ?? null,
    generated_items: items.writeAll(record.generatedItems),
    session_items: items.writeAll(record.sessionItems),
    generated_session_item_indexes: sessionIndexes(record.generatedItems, record.sessionItems),
    current_response_generated_item_ownership: responseOwnership(record),
    nested_history_owned_session_item_refs: historyRefs(record),
    current_step: writeStep(record, interruptions),
    last_model_response: responses.at(-1) ?? null,
    last_processed_response:
      record.processed === undefined
        ? null
        : writeProcessed(record.processed, {
            interruptions,
            items,
            publicToolOutputResults: record.privateResults?.toolOutput,
            nestedState: (entry) => writeNested(entry, record, options, depth + 1),
          }),
    current_turn_persisted_item_count: record.persistedItemCount,
    trace: record.trace === undefined ? null : writeTrace(record.trace, options.includeTracingApiKey === true),
    sandbox: own(foreign, 'sandbox'),
    // A reader that finds both refuses the state; the marker is what counts (STATE-337).
    pending_session_write:
      record.pendingWrite === undefined || record.unrecoverable ? undefined : writePendingWrite(record.pendingWrite),
    terminal_unrecoverable: record.unrecoverable ? true : undefined,
    agents_ts: writeAdditions(record),
  });
}

/** The paused run of a call, in its entry; one that nobody here could read stands as it was (STATE-241). */
function writeNested(
  { call, agentRunState }: ProcessedFunction,
  record: StateRecord,
  options: WriteOptions,
  depth: number,
): JsonObject | undefined {
  const nested = pausedRunOf(record, call)?.record;
  if (nested === undefined || nested === record) return agentRunState;
  if (depth > maxNesting)
    throw new UserError(
      `The run state is nested more than ${maxNesting} runs of agent tools deep. Hand off instead of asking an agent tool where agents call each other.`,
      { code: 'json_too_large' },
    );
  try {
    return writeRecord(nested, options, depth);
  } catch (error) {
    const isTooLarge = error instanceof UserError && error.code === 'json_too_large';
    if (options.strictContext === true || isTooLarge) throw error;
    getLogger('run_state').warn(
      `The paused run of an agent tool (call ${call.call_id}) cannot be written down: its call is in doubt when the state is restored.`,
    );
    return undefined;
  }
}

/** Assistant messages in the form of the Responses API, whatever form the caller gave. @throws UserError `json_too_large` */
function writeInput(input: string | readonly AgentInputItem[]): JsonValue {
  if (typeof input === 'string') return input;
  return (input as unknown as readonly JsonObject[]).map((item) => {
    checkElementDepth(item);
    return item['role'] === 'assistant' ? responsesMessage(item) : item;
  });
}

function responsesMessage(item: JsonObject): JsonObject {
  const { content, status } = item;
  if (typeof content !== 'string' && status !== undefined) return item;
  return {
    ...item,
    content: typeof content === 'string' ? [{ type: 'output_text', text: content }] : content,
    status: status === undefined ? 'completed' : status,
  };
}

function writeResponses(
  responses: readonly ModelResponse[],
  extras: readonly (UsageExtras | null)[] | undefined,
): JsonObject[] {
  return responses.map((response, index) => {
    const json = {
      usage: writeUsage(response.usage, extras?.[index] ?? undefined),
      output: response.output as unknown as readonly JsonValue[],
      response_id: response.responseId ?? null,
      request_id: response.requestId ?? null,
    };
    checkElementDepth(json);
    return json;
  });
}

/** The tracker's rows, with those of agents that are not reachable any more. */
function writeToolUse(record: StateRecord, graph: AgentGraph): JsonObject {
  const rows = new Map<string, JsonValue>(
    Object.entries((own(record.foreign, 'tool_use_tracker') ?? {}) as { [key: string]: JsonValue }),
  );
  for (const [agent, names] of record.toolUse) rows.set(graph.identityOf(agent) ?? agent.name, [...names]);
  return Object.fromEntries(rows);
}

/** All that wait, in nested runs too; those of nested runs whose agents are not reachable stand where they stood. */
function writeInterruptions(record: StateRecord, items: ItemWriter): readonly JsonObject[] {
  const { step, foreign } = record;
  if (step.type !== 'interruption') return [];
  const written = items.writeAll(waitingItems(record));
  const nested = own(foreign, 'nested_interruptions') as
    | readonly { readonly index: number; readonly item: JsonObject }[]
    | undefined;
  for (const { index, item } of nested ?? []) written.splice(index, 0, item);
  return written;
}

function writeStep({ step }: StateRecord, interruptions: readonly JsonObject[]): JsonValue {
  switch (step.type) {
    case 'none':
    case 'final_output':
      return null;
    case 'run_again':
    case 'handoff':
      return { type: 'next_step_run_again' };
    case 'interruption':
      return {
        type: 'next_step_interruption',
        data: {
          interruptions,
          response_accepted: step.responseAccepted,
          llm_end_hooks_started: step.llmEndHooksStarted,
        },
      };
    default:
      return step satisfies never;
  }
}
