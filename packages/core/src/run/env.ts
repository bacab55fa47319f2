import type { FunctionTool } from '../agent/tool.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { Model, ModelAttempt, Usage } from '../models/model.ts';
import type { RunContext, ToolContext } from '../state/context.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { StateRecord } from '../state/record.ts';
import type { Span, Trace } from '../tracing/types.ts';
import type { SessionWriter } from '../sessions/persist.ts';
import type { Control } from './control.ts';
import type { RunExtendedStreamEvent, RunStreamEvent } from './events.ts';
import type { ResolvedOptions } from './options.ts';
import type { InputCheck } from './input-check.ts';
import type { ServerHistory } from './server-history.ts';
import type { SessionEffect } from './session-span.ts';
import type { RunSpans } from './spans.ts';
import type { ModelInput } from './turn/model-input.ts';

/** An effect of the loop: a model call, a tool's body, a read or an append of the session. */
export type Effect =
  | { readonly kind: 'model'; readonly turn: number; readonly agentName: string }
  | { readonly kind: 'tool'; readonly toolName: string; readonly callId: string }
  | SessionEffect;

/** What the run of an agent tool has of the run around it. */
export interface Nesting {
  /** The span of the call, under which everything goes. */
  readonly parent: Trace | Span;
  /** Ids of the agent tools' calls around it, outermost first. */
  readonly path: readonly string[];
  /** What names the outermost run in idempotency keys. */
  readonly runKey: string;
  /** Structured arguments of the call. */
  readonly toolInput: unknown;
  readonly asked: Set<ToolApprovalItem> | undefined;
  countUsage(usage: Usage): void;
}

/** One call of an agent tool. */
export interface AgentToolCall {
  readonly tool: FunctionTool<never>;
  readonly call: ResponseFunctionToolCall;
  /** As its schema gives them; of a call whose run goes on again nobody reads them. */
  readonly args: unknown;
  readonly context: ToolContext<never>;
  /** Of the run that made the call. */
  readonly record: StateRecord;
  readonly env: RunEnv;
}

/** Gives the tool's output, or `paused`. @throws what the nested run failed with */
export type RunAgentTool = (call: AgentToolCall) => Promise<unknown>;

/** Stands for the output of a call whose nested run waits for decisions; the registry of the run has it. */
export const paused: unique symbol = Symbol('paused');

/**
 * What one segment has beside its record: where events go, how effects are done, how it is stopped. Nothing in here
 * survives; what must is in the record.
 */
export interface RunEnv {
  readonly options: ResolvedOptions;
  readonly context: RunContext;
  readonly control: Control;
  readonly spans: RunSpans;
  /** Sink of a stream; absent for a plain run. */
  readonly emit: ((event: RunStreamEvent) => void) | undefined;
  /** The same, where the run has `extendedEvents`. */
  readonly extended: ((event: RunExtendedStreamEvent) => void) | undefined;
  /** Of a stream with `eventBufferLimit`: what model events wait for; `undefined`: there is room. */
  readonly room: (() => Promise<void> | undefined) | undefined;
  /** The one way to an effect (law 5). */
  readonly step: <T>(effect: Effect, execute: () => Promise<T>) => Promise<T>;
  /** The one writer of the session; there once the input is prepared. */
  session: SessionWriter | undefined;
  /** Models that were used, told of the run's end with its identity. */
  readonly models: Set<Model>;
  readonly owner: object;
  readonly attempt: ModelAttempt;
  /** Of the run of an agent tool: what it has of the run around it. */
  readonly nesting: Nesting | undefined;
  /** Runs the agent behind a tool; the runner puts it here, since the loop that it drives is above. */
  readonly nested: RunAgentTool | undefined;
  /** Waiting calls of nested runs that `onApproval` was asked about in this segment already. */
  asked: Set<ToolApprovalItem> | undefined;
  /** What the model sees, kept converted over the turns; of a history that the provider keeps, what it does not know. */
  modelInput: ModelInput;
  /** Where the provider keeps the history. */
  server: ServerHistory | undefined;
  /** Input guardrails of the turn that goes on; absent where there are none, and behind the first turn. */
  inputCheck: InputCheck | undefined;
  /** The agent has become active and its start hooks have not run yet. */
  startHooksDue: boolean;
  /** Events that a reader has not taken yet are delivered before the failure. */
  deliverQueued: boolean;
  /** The setting `store` of the last request, for whoever compacts the session. */
  storeSetting: boolean | undefined;
  /** Counts what a model call used, here and in the runs around. */
  countUsage(usage: Usage): void;
  /** Key under which the provider keeps the prefix of the run's prompts. */
  cacheKey(): string;
  /** Warns at most once per run and key. */
  warnOnce(key: string, message: string): void;
}
