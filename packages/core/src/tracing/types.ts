/// <reference lib="esnext.disposable" />
import type { AgentInputItem } from '../items/items.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';

// ---- traces and spans

/** One run, or several under one `withTrace`. Ids are `trace_` + 32 hex; of a no-op trace `no-op`. */
export interface Trace {
  readonly type: 'trace';
  readonly traceId: string;
  readonly name: string;
  readonly groupId: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Epoch milliseconds with fraction. */
  readonly startTimeMs: number | undefined;
  readonly endTimeMs: number | undefined;
  /** Key for exporters that route by it; not enumerable, in no log and no JSON. */
  readonly apiKey: string | undefined;
  readonly isNoop: boolean;
  start(): this;
  /** Waits for runs of this trace that are still going before the end is emitted. */
  finish(): void;
  /** The wire record, made now; `undefined` for no-op traces. */
  toJSON(): TraceWire | undefined;
  /** Finishes; entering a scope is what `withTrace` does. */
  [Symbol.dispose](): void;
}

/** A step of a run, told apart by `type`: `if (span.type === 'function') span.spanData.name`. */
export type Span<K extends SpanType = SpanType> = { [T in K]: SpanOf<T> }[K];

/** The members of every span; `Span` is the union over all types. */
export interface SpanOf<K extends SpanType> {
  readonly type: K;
  readonly spanId: string;
  readonly traceId: string;
  /** `undefined` directly under the trace. */
  readonly parentId: string | undefined;
  readonly parent: Trace | Span;
  readonly trace: Trace;
  /** What is exported; may be changed until `finish()`. */
  readonly spanData: SpanDataMap[K];
  /** Facts for processors, set by the run; never part of the wire record. */
  readonly details: Readonly<SpanDetails<K>>;
  readonly error: SpanError | undefined;
  readonly startTimeMs: number | undefined;
  readonly endTimeMs: number | undefined;
  readonly isNoop: boolean;
  start(): this;
  finish(): void;
  setError(error: SpanError): void;
  toJSON(): SpanWire | undefined;
  [Symbol.dispose](): void;
}

export interface SpanError {
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>> | undefined;
}
export interface TraceWire {
  object: 'trace';
  id: string;
  workflow_name: string;
  group_id: string | null;
  metadata: Record<string, unknown> | null;
}
export interface SpanWire {
  object: 'trace.span';
  id: string;
  trace_id: string;
  parent_id: string | null;
  started_at: string | null;
  ended_at: string | null;
  span_data: { type: string; [key: string]: unknown };
  error: { message: string; data: Record<string, unknown> | null } | null;
  metadata?: Record<string, unknown>;
}

// ---- span types

/** Span types and their data. Add one by declaration merging and `registerSpanType`. */
export interface SpanDataMap {
  agent: {
    name: string;
    handoffs?: string[];
    tools?: string[];
    outputType?: string;
    metadata?: Record<string, unknown>;
  };
  task: { name: string; usage?: SpanUsage };
  turn: { turn: number; agentName: string; usage?: SpanUsage };
  generation: {
    input?: unknown[];
    output?: unknown[];
    model?: string;
    modelConfig?: Record<string, unknown>;
    usage?: Record<string, unknown>;
  };
  response: {
    response?: Extract<ResponseStreamEvent, { type: 'response.completed' }>['response'];
    /** Exported where the response itself must not be attached. */
    responseId?: string;
    input?: readonly AgentInputItem[];
    usage?: Record<string, unknown>;
  };
  function: { name: string; input?: string; output?: unknown; mcpData?: Record<string, unknown> };
  handoff: { fromAgent?: string; toAgent?: string };
  guardrail: { name: string; triggered?: boolean };
  custom: { name: string; data?: Record<string, unknown> };
  mcp_tools: { server?: string; result?: string[] };
  /** Speech types are read from traces that others wrote; nothing here makes them. */
  transcription: { input?: unknown; output?: string; model?: string; modelConfig?: Record<string, unknown> };
  speech: {
    input?: string;
    output?: unknown;
    model?: string;
    modelConfig?: Record<string, unknown>;
    firstContentAt?: string;
  };
  speech_group: { input?: string };
}
export type SpanType = keyof SpanDataMap;
export interface SpanUsage {
  requests?: number;
  inputTokens: number;
  outputTokens: number;
  totalTokens?: number;
  cachedInputTokens: number;
  cacheWriteInputTokens: number;
}

/** Facts by span type; sensitive ones are absent with `traceIncludeSensitiveData: false`. */
export interface SpanDetailsMap {
  agent: {
    input?: readonly AgentInputItem[];
    finalOutput?: unknown;
    sessionId?: string;
    conversationId?: string;
    previousResponseId?: string;
    agentIndex?: number;
  };
  task: { runId?: string; resumed?: boolean; streamed?: boolean; nested?: boolean };
  generation: ModelCallDetails;
  response: ModelCallDetails;
  function: {
    toolCallId?: string;
    toolType?: 'function' | 'computer' | 'shell' | 'apply_patch' | 'custom';
    toolDescription?: string;
    agentName?: string;
    isAgentTool?: boolean;
    approval?: 'none' | 'pending' | 'approved' | 'rejected';
    outcome?: 'ok' | 'error_handled' | 'error' | 'rejected' | 'interrupted' | 'cancelled';
  };
  handoff: { toolCallId?: string; toolName?: string };
  guardrail: { stage?: 'input' | 'output' | 'tool_input' | 'tool_output'; agentName?: string; parallel?: boolean };
}
export type SpanDetails<K extends SpanType> = (K extends keyof SpanDetailsMap ? SpanDetailsMap[K] : unknown) & {
  errorType?: string;
};
export interface ModelCallDetails {
  agentName?: string;
  turn?: number;
  /** From 1. */ attempt?: number;
  /** `openai`, `azure.ai.openai`, … */ provider?: string;
  api?: 'responses' | 'chat_completions';
  serverAddress?: string;
  serverPort?: number;
  requestModel?: string;
  requestParams?: Record<string, unknown>;
  stream?: boolean;
  systemInstructions?: string;
  toolDefinitions?: readonly unknown[];
  responseModel?: string;
  responseId?: string;
  finishReasons?: readonly string[];
  serviceTier?: string;
  requestId?: string;
  timeToFirstChunkMs?: number;
  conversationId?: string;
  previousResponseId?: string;
}

// ---- making them

export interface TraceOptions {
  /** Used as it is; the OpenAI dashboard shows only ids that begin with `trace_`. Default: a new one. */
  traceId?: string | undefined;
  groupId?: string | undefined;
  /** JSON values; copied and frozen. */
  metadata?: Record<string, unknown> | undefined;
  apiKey?: string | undefined;
  disabled?: boolean | undefined;
}
export interface SpanOptions {
  /** Default: the current span, else the current trace. */
  parent?: Trace | Span | undefined;
  spanId?: string | undefined;
  /** Epoch milliseconds, for spans that began before they were made. */
  startTimeMs?: number | undefined;
  disabled?: boolean | undefined;
}
export type SpanInit<K extends SpanType> = { type: K } & SpanDataMap[K];

// ---- runs

/** Trace settings of a run; members of `RunOptions`. */
export interface RunTraceOptions {
  /** Name of trace and task span. Default `Agent workflow`. */
  workflowName?: string | undefined;
  traceId?: string | undefined;
  /** Groups the traces of one conversation. */
  groupId?: string | undefined;
  /** Of the trace, as it is: nothing redacts it. */
  traceMetadata?: Record<string, unknown> | undefined;
  /** Nothing of this run is traced, also inside of a trace. Default `false`; for the process: `setTracingDisabled(true)`. */
  tracingDisabled?: boolean | undefined;
  /** `false`: no prompt, argument, output or error text in any span. Default: `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA`, else true. */
  traceIncludeSensitiveData?: boolean | undefined;
  /** Key that an exporter uses for this trace instead of its own. */
  traceApiKey?: string | undefined;
  /** Spans for the run and for each turn. Default `true`. */
  traceTaskAndTurnSpans?: boolean | undefined;
  /** Custom spans `session.load` and `session.save` for calls of the session. Default `false`. */
  traceSessionSpans?: boolean | undefined;
  /**
   * Called per sensitive field before it is set; `undefined` drops it, a throw too. The value may be a text, a list or an
   * object: what must be hidden everywhere has to be looked for inside. Not asked about: `workflowName`, `groupId`,
   * `traceMetadata`, names of agents and tools. Runs of agent tools have the function of the outer run.
   */
  traceRedact?: ((field: RedactField, value: unknown) => unknown) | undefined;
}
export interface RedactField {
  readonly spanType: SpanType;
  /**
   * Member of the span's data or details: `input`, `output`, `response`, `finalOutput`, `systemInstructions`,
   * `modelConfig.metadata`, `metadata` of agents, `data` of custom spans; `error` for texts of errors, `error.data` for
   * what an error had besides.
   */
  readonly field: string;
  readonly agentName?: string | undefined;
  readonly toolName?: string | undefined;
}

// ---- processors

export interface FlushOptions {
  /** One limit for all processors. Default: none. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Gets every trace and span, synchronously, in order of registration. A throw is logged and reaches nobody else. */
export interface TraceProcessor {
  onTraceStart?(trace: Trace): MaybePromise<void>;
  onTraceEnd?(trace: Trace): MaybePromise<void>;
  onSpanStart?(span: Span): MaybePromise<void>;
  onSpanEnd?(span: Span): MaybePromise<void>;
  forceFlush?(options?: FlushOptions): MaybePromise<void>;
  shutdown?(options?: FlushOptions): MaybePromise<void>;
  /** Flush at `beforeExit`, at most 5 s. Default `false`. */
  readonly needsExitFlush?: boolean;
  /** Runs a user callback in this processor's own context (OTel's active span). */
  bind?<R>(at: Trace | Span, fn: () => R): R;
  /** Adds headers for a call that is made inside `at`. */
  inject?(at: Trace | Span, carrier: Record<string, string>): void;
  /** What a paused run keeps of this trace, under `trace[carrierKey]` of its JSON; `onTraceResume` gets it back. */
  readonly carrierKey?: string;
  getCarrier?(trace: Trace): Record<string, string> | undefined;
  /** A trace goes on here that began in another segment or process. `carrier`: what was kept of it, or the headers that came with it. */
  onTraceResume?(trace: Trace, carrier: Record<string, string> | undefined): void;
}

export interface TraceExporter {
  /**
   * Rejects, or resolves with `lost`, when items did not arrive. A rejection counts all of them as failed and is logged;
   * with `lost` that many count as failed, and the exporter has told of it itself.
   *
   * @param options `signal`: stop; `deadlineMs`: what is left until the end of a shutdown
   */
  export(
    items: readonly (Trace | Span)[],
    options: { signal: AbortSignal; deadlineMs?: number },
  ): Promise<{ readonly lost: number } | void>;
  close?(): Promise<void>;
}

// ---- settings of the process

export interface TraceIdGenerator {
  traceId(): string;
  spanId(): string;
  groupId(): string;
}
/** Keeps the current scope over asynchronous calls; the value is opaque. */
export interface TraceContextStorage {
  getStore(): unknown;
  run<R>(store: unknown, fn: () => R): R;
}
export interface Clock {
  /** Epoch ms. */
  now(): number;
  /** Milliseconds; never goes back. */
  monotonic(): number;
}
/** What makes traces and spans; replace it to see or change all of them. */
export interface TraceProvider {
  createTrace(name: string, options?: TraceOptions): Trace;
  createSpan<K extends SpanType>(span: SpanInit<K>, options?: SpanOptions): Span<K>;
  forceFlush?(options?: FlushOptions): Promise<void>;
  shutdown?(options?: FlushOptions): Promise<void>;
}
