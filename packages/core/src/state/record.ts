import type { AnyAgent } from '../agent/agent.ts';
import type { InputGuardrailResult, OutputGuardrailResult, ToolGuardrailResult } from '../agent/guardrail.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { JsonObject, ResponseFunctionToolCall } from '../items/wire.ts';
import type { AgentToolRuns } from './agent-tool-runs.ts';
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
  /** Items that nested history moved into the input as they are: they are not told twice (RUN-1220). */
  ownedHistory: readonly OwnedItem[];
  /** One per accepted model call; the last one belongs to `processed`. */
  modelResponses: ModelResponse[];
  /** What the last response asked for; `undefined` between turns of a restored state without one. */
  processed: ProcessedResponse | undefined;

  step: Step;
  /** Paused runs of agent tools, which are written down with their calls; absent where no tool ever paused. */
  agentToolRuns?: AgentToolRuns | undefined;
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
  /** Where the results of a response begin whose end nobody knows yet: they are not public (STATE-230). */
  privateResults?: PrivateResults | undefined;
  /** Number of results of tools' output guardrails before those of the last response. */
  responseResults?: number | undefined;
  /** How many items filters of handoffs took out of `sessionItems`; positions of events count on behind them. */
  withdrawn?: number | undefined;
  /** Local work began before all input guardrails had accepted: a resume asks them first. */
  inputUnchecked?: true | undefined;
  /** No output of the last response is public before its end is known (STATE-127). Not written down. */
  withheld?: boolean | undefined;

  /** Where the provider keeps the history; absent where every request carries it. */
  serverManaged?: ServerManaged | undefined;

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

/** How the provider knows the history of a run. Never changed, only replaced. */
export interface ServerManaged {
  /** Of a conversation. A chain has none. */
  readonly conversationId?: string | undefined;
  /** Of a chain: its newest link. */
  readonly previousResponseId?: string | undefined;
  /** A chain begins with the first response. */
  readonly auto: boolean;
  /** What `callModelInputFilter` held back: places in the input and among the generated items. */
  readonly undelivered?: Undelivered | undefined;
}

export interface Undelivered {
  readonly input: readonly number[];
  readonly items: readonly number[];
}

/** What the last turn decided, without what can be derived. `none`: the run has its output, or has not begun. */
export type Step =
  | { readonly type: 'none' }
  | { readonly type: 'run_again' }
  /** Of the turn that handed off; the record's current agent is the new one already. Written down as `run_again`. */
  | { readonly type: 'handoff'; readonly newAgent: AnyAgent }
  | { readonly type: 'final_output'; readonly output: unknown }
  | {
      readonly type: 'interruption';
      /** Of the run itself; `waitingItems` has those of nested runs too. */
      readonly interruptions: readonly ToolApprovalItem[];
      /** The provider has the response in its history already: the model is never asked for it again. */
      readonly responseAccepted: boolean;
      readonly llmEndHooksStarted: boolean;
    };

/** An occurrence among the session items, and the object of the input that stands for it. */
export interface OwnedItem {
  readonly item: RunItem;
  readonly input: AgentInputItem;
}

/** What a response asked for: the items it became, and its function calls with the tools they meant. */
export interface ProcessedResponse {
  readonly newItems: readonly RunItem[];
  readonly toolsUsed: readonly string[];
  readonly functions: readonly ProcessedFunction[];
  /** Calls that hand off, in the order of the response; the first one counts. */
  readonly handoffs: readonly ProcessedHandoff[];
  /** Lists of `last_processed_response` whose subject is not built here, verbatim. */
  readonly foreign: JsonObject;
}

/** A function call of a response, and the tool that it meant. */
export interface ProcessedFunction {
  readonly call: ResponseFunctionToolCall;
  readonly tool: ToolDescriptor;
  /** Snapshot of the paused run of an agent tool, verbatim, where its agent could not be found. */
  readonly agentRunState?: JsonObject | undefined;
}

/** A call of a response that hands off, and the name of the handoff. */
export interface ProcessedHandoff {
  readonly call: ResponseFunctionToolCall;
  readonly toolName: string;
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

/** Results of guardrails in order of completion; restored ones have the guardrail's name alone, as live ones do. */
export interface GuardrailResultLists {
  input: InputGuardrailResult[];
  output: OutputGuardrailResult[];
  toolInput: ToolGuardrailResult[];
  toolOutput: ToolGuardrailResult[];
}

/** Numbers of results that are public. */
export interface PrivateResults {
  readonly toolInput: number;
  readonly toolOutput: number;
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
