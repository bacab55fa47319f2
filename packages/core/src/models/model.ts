// Models: the interface that every model implements, settings, usage.
import type { AgentInputItem } from '../items/items.ts';
import type { Handoff } from '../agent/handoff.ts';
import type { Prompt } from '../agent/prompt.ts';
import type { JsonSchema, MaybePromise, Tool } from '../agent/tool.ts';
import type { Span, Trace } from '../tracing/types.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';

// ---- the interface

/** A model. Structural: any object with the two methods; `defineModel` completes one that has a single method. */
export interface Model {
  getResponse(request: ModelRequest): Promise<ModelResponse>;
  /** Wire events, in order, the last one `response.completed` with the whole output. Returns what events do not carry. */
  streamResponse(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;
  /** Whether a `prompt_cache_key` may be added to requests. Default `false`. */
  supportsDefaultPromptCacheKey?(): boolean;
  /** `false`: it takes no `previousResponseId` and no `conversationId`, so that nothing of a run is kept at its provider. Default `true`. */
  supportsServerManagedHistory?(): boolean;
  /** After each run that used the model; `owner` as in `request.attempt`. */
  onRunEnd?(owner: object): Promise<void>;
  close?(): Promise<void>;
}

/** One call. Models ignore members that they do not know, stop when `signal` aborts, and then throw. */
export interface ModelRequest {
  readonly systemInstructions?: string | undefined;
  /** A template at OpenAI that the request fills in. */
  readonly prompt?: Prompt | undefined;
  readonly input: readonly AgentInputItem[];
  /** Resolved: nothing is to be merged. */
  readonly modelSettings: ModelSettings;
  /** Settings that came from defaults of the model's name, not from the user. */
  readonly implicitSettings?: readonly (keyof ModelSettings)[] | undefined;
  readonly tools: readonly Tool<never>[];
  /** Function tools too on the wire, after all others. */
  readonly handoffs: readonly Handoff<never>[];
  /** Absent for text. */
  readonly outputSchema?: { readonly name: string; readonly schema: JsonSchema; readonly strict: boolean } | undefined;
  readonly previousResponseId?: string | undefined;
  readonly conversationId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly tracing: ModelTracing;
  /** Parent of the model's span where no scope is ambient. */
  readonly traceParent?: Trace | Span | undefined;
  /** Whose call this is, and which. */
  readonly attempt?: ModelAttempt | undefined;
}
export type ModelTracing = 'enabled' | 'enabled_without_data' | 'disabled';
/** `number` counts from 1, `owner` is the identity of the run. */
export interface ModelAttempt {
  readonly number: number;
  readonly owner: object;
  readonly disableProviderRetries: boolean;
}

/** Plain data. */
export interface ModelResponse {
  readonly output: readonly ResponseOutputItem[];
  readonly usage: Usage;
  /** Continues a chain (`previousResponseId`); absent without server state. */
  readonly responseId?: string | undefined;
  /** The transport's `x-request-id`. */
  readonly requestId?: string | undefined;
  /** The provider's usage as it came, with `preserveRawUsage`. */
  readonly rawUsage?: Readonly<Record<string, unknown>> | undefined;
}
export interface ResponseMetadata {
  requestId?: string | undefined;
  rawUsage?: Readonly<Record<string, unknown>> | undefined;
  /** Replaces the usage of `response.completed`; also for several requests behind one response. */
  usage?: Usage | undefined;
}
/** Finds models by name; `undefined` asks for its default. */
export interface ModelProvider {
  getModel(name?: string): MaybePromise<Model>;
  close?(): Promise<void>;
}

// ---- settings

/** `undefined` inherits, `null` clears. What a model cannot express is dropped with one warning. @throws UserError for unknown keys */
export interface ModelSettings {
  temperature?: number | null | undefined;
  topP?: number | null | undefined;
  frequencyPenalty?: number | null | undefined;
  presencePenalty?: number | null | undefined;
  /** A name means that tool. */
  toolChoice?:
    | 'auto'
    | 'required'
    | 'none'
    | (string & {})
    | { readonly serverLabel: string; readonly name: string }
    | null
    | undefined;
  parallelToolCalls?: boolean | null | undefined;
  truncation?: 'auto' | 'disabled' | null | undefined;
  maxTokens?: number | null | undefined;
  reasoning?: Reasoning | null | undefined;
  verbosity?: 'low' | 'medium' | 'high' | null | undefined;
  metadata?: Record<string, string> | null | undefined;
  store?: boolean | null | undefined;
  promptCacheRetention?: 'in_memory' | '24h' | null | undefined;
  promptCacheOptions?: { mode?: 'implicit' | 'explicit'; ttl?: string } | null | undefined;
  contextManagement?: readonly { type: string; compact_threshold?: number | null }[] | null | undefined;
  /** Usage in streams of Chat Completions. */
  includeUsage?: boolean | null | undefined;
  responseInclude?: readonly string[] | null | undefined;
  topLogprobs?: number | null | undefined;
  /** Milliseconds for one attempt, its stream included, counted while the SDK waits for the model. @throws ModelTimeoutError */
  timeoutMs?: number | null | undefined;
  preserveRawUsage?: boolean | null | undefined;
  /** Members of the request that have no setting, in the wire's words. @throws UserError on collisions */
  extraArgs?: Record<string, unknown> | null | undefined;
  extraBody?: Record<string, unknown> | null | undefined;
  extraQuery?: Record<string, unknown> | null | undefined;
  /** `null` removes a header. */
  extraHeaders?: Record<string, string | null> | null | undefined;
}

/** `{ effort, summary, … }`, the wire's object. */
export type Reasoning = NonNullable<
  Extract<ResponseStreamEvent, { type: 'response.completed' }>['response']['reasoning']
>;

// ---- usage

/** Tokens of one or more requests. */
export interface Usage {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly inputTokensDetails: { readonly cachedTokens: number; readonly cacheWriteTokens: number };
  readonly outputTokensDetails: { readonly reasoningTokens: number };
  /** One entry per request, where known. */
  readonly requestUsageEntries: readonly Omit<Usage, 'requests' | 'requestUsageEntries'>[];
}
