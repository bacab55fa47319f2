import type { AnyAgent } from '../agent/agent.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { JsonObject, ResponseFunctionToolCall } from '../items/wire.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunContext } from './context.ts';
import type { DecisionRecord, ToolApprovalItem } from './decisions.ts';
import type { PendingWrite } from './pending-write.ts';

/**
 * The record of a run: everything that must survive, and nothing else. `run/` moves it on, `snapshot/` writes it down and
 * reads it, `RunState` is the façade that users hold. Usage, approvals and the ledger of calls hang on its context.
 */
export interface StateRecord {
  /** Root of the graph in which names are resolved. */
  startingAgent: AnyAgent;
  currentAgent: AnyAgent;
  context: RunContext;

  /** What the segment started from: the caller's input, or history and new input prepared from a session. */
  input: string | readonly AgentInputItem[];
  /** Items that the model sees after the input. */
  generatedItems: RunItem[];
  /** Every item of the run, for people and sessions; the same objects as in `generatedItems` unless history was rewritten. */
  sessionItems: RunItem[];
  /** One per accepted model call; the last one belongs to `processed`. */
  modelResponses: ModelResponse[];
  /** What the last response asked for; `undefined` between turns of a restored state without one. */
  processed: ProcessedResponse | undefined;

  step: Step;
  currentTurn: number;
  /** `null`: no limit. */
  maxTurns: number | null;
  /** Items of the current turn that an acknowledged batch holds. */
  persistedItemCount: number;
  /** The batch that a session has not acknowledged. */
  pendingWrite: PendingWrite | undefined;
  /** Set around the terminal append (STATE-331): with it the state can never be run again. */
  unrecoverable: boolean;

  /** Names of tools that each agent used in this run. */
  toolUse: Map<AnyAgent, Set<string>>;
  guardrailResults: GuardrailResultLists;

  reasoningItemIdPolicy: 'preserve' | 'omit' | undefined;
  promptCacheKey: string | undefined;
  trace: TraceRecord | undefined;

  /** 32 hex digits, the same over all states of one lineage. */
  runKey: string;
  /** Session that the segments used. */
  sessionId: string | undefined;
  /** The run ended before its session was read and its input was owed to it: a resume still has to (STATE-321). */
  unprepared?: boolean | undefined;
  decisions: StoredDecision[];
  /** Members of the JSON whose subject is not built here; kept and written back verbatim. */
  foreign: JsonObject;

  /** The run that uses this object now (STATE-209). Not written down. */
  inUse: boolean;
}

/** What the last turn decided, without what can be derived. `none`: the run has its output, or has not begun. */
export type Step =
  | { readonly type: 'none' }
  | { readonly type: 'run_again' }
  | { readonly type: 'final_output'; readonly output: unknown }
  | {
      readonly type: 'interruption';
      readonly interruptions: readonly ToolApprovalItem[];
      readonly responseAccepted: boolean;
      readonly llmEndHooksStarted: boolean;
    };

/** What a response asked for: the items it became, and its function calls with the tools they meant. */
export interface ProcessedResponse {
  readonly newItems: readonly RunItem[];
  readonly toolsUsed: readonly string[];
  readonly functions: readonly ProcessedFunction[];
  /** Lists of `last_processed_response` whose subject is not built here, verbatim. */
  readonly foreign: JsonObject;
}

/** A function call of a response, and the tool that it meant. */
export interface ProcessedFunction {
  readonly call: ResponseFunctionToolCall;
  readonly tool: ToolDescriptor;
  /** Snapshot of the paused run of an agent tool, verbatim. */
  readonly agentRunState?: JsonObject | undefined;
}

/** How a snapshot names a function tool (camelCase on the wire too). */
export interface ToolDescriptor {
  readonly name: string;
  readonly qualifiedName?: string | undefined;
  readonly namespace?: string | undefined;
  readonly lookupKey?: ToolLookupKey | undefined;
  readonly description?: string | undefined;
  readonly paramsJsonSchema?: JsonObject | undefined;
}

/** Identity of a function tool inside one agent (TOOL §9.1). */
export type ToolLookupKey =
  | { readonly kind: 'bare'; readonly name: string }
  | { readonly kind: 'namespaced'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'deferred_top_level'; readonly name: string };

/** Results of guardrails as their JSON (STATE-356); the subject itself comes later, restored ones must not be lost. */
export interface GuardrailResultLists {
  input: JsonObject[];
  output: JsonObject[];
  toolInput: JsonObject[];
  toolOutput: JsonObject[];
}

/** What a paused run keeps of its trace (STATE §12.7). */
export interface TraceRecord {
  readonly traceId: string;
  readonly workflowName: string;
  readonly groupId?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly apiKey?: string | undefined;
  readonly apiKeyHash?: string | undefined;
  /** Carriers of processors and members of other writers, verbatim. */
  readonly extra: JsonObject;
}

/** A line of the audit trail, with what an answer to a call in doubt needs until a run has acted on it. */
export type StoredDecision = DecisionRecord & {
  /** Of `done`: what the call gave. */
  readonly output?: unknown;
  /** Of `rerun` and `done`: a run has acted on it. */
  readonly applied?: boolean | undefined;
};
