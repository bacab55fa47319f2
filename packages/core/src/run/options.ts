import type { AnyAgent } from '../agent/agent.ts';
import type {
  AgentsError,
  MaxTurnsExceededError,
  ModelBehaviorError,
  ModelRefusalError,
  RunErrorDetails,
} from '../base/errors.ts';
import type { InputGuardrail, OutputGuardrail } from '../agent/guardrail.ts';
import type { HandoffHistoryMapper, HandoffInputFilter } from '../agent/handoff.ts';
import type { RunHooks } from '../agent/hooks.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Model, ModelProvider, ModelSettings } from '../models/model.ts';
import type { Session, SessionInputCallback, SessionSettings } from '../sessions/contract.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { RunContext } from '../state/context.ts';
import type { OnApproval } from '../state/decisions.ts';
import type { RunTraceOptions } from '../tracing/types.ts';
import { UserError } from '../base/errors.ts';
import { mergeSettings } from '../models/settings.ts';
import { supports } from '../sessions/contract.ts';

/** Text, input items, or a state to resume. */
export type RunInput = string | readonly AgentInputItem[] | RunState;

/**
 * Everything a run can be told, flat. `undefined` means "not given"; a call wins over its `Runner`, that over the defaults.
 * Unknown keys are a `UserError`.
 */
export interface RunOptions<C = unknown> extends RunTraceOptions {
  /** Your value, for every callback. Required by the type when the agent needs one. On resume it replaces the stored value. */
  context?: C | RunContext<C> | undefined;
  /** Loads history before and stores this run's items. `null`: on purpose without one, when the state remembers one. Not with server-managed ids. */
  session?: Session | null | undefined;
  sessionInputCallback?: SessionInputCallback | undefined;
  sessionSettings?: SessionSettings | undefined;
  /** `detect`: another writer between load and store is an error (`session_version_conflict`). Default `allow`. */
  sessionConcurrency?: 'allow' | 'detect' | undefined;
  /** Model calls over all segments. Default 10; `null`: no limit. */
  maxTurns?: number | null | undefined;
  /** Abort: `run` rejects with `RunAbortedError`, a stream ends as `cancelled`. */
  signal?: AbortSignal | undefined;
  hooks?: RunHooks<C> | undefined;

  // ---- model
  /** Wins over the agents' models. */
  model?: string | Model | undefined;
  modelProvider?: ModelProvider | undefined;
  /** Laid over the agents' settings; `null` members clear. */
  modelSettings?: ModelSettings | undefined;
  /** Changes what one model call sees, and nothing else. */
  callModelInputFilter?: CallModelInputFilter<C> | undefined;
  /** `omit` drops the ids of reasoning items wherever they become input. Default: the state's, else keep. */
  reasoningItemIdPolicy?: 'preserve' | 'omit' | undefined;
  /**
   * Continue a chain of responses that the provider keeps; requests carry only what is new. With `autoPreviousResponseId`
   * the run's first response begins one.
   */
  previousResponseId?: string | undefined;
  autoPreviousResponseId?: boolean | undefined;
  /** Continue a conversation that the provider keeps. Excludes `previousResponseId`. */
  conversationId?: string | undefined;

  // ---- guardrails and failures
  /** Run after the agent's own. */
  inputGuardrails?: readonly InputGuardrail<C>[] | undefined;
  outputGuardrails?: readonly OutputGuardrail<C>[] | undefined;
  /** Text kept in place of a tool output that an output guardrail blocked. Default `Output withheld by an output guardrail.` */
  outputGuardrailBlockedMessage?: string | ((args: BlockedMessageArgs<C>) => string | undefined) | undefined;
  // ---- handoffs
  /** For handoffs without a filter of their own. */
  handoffInputFilter?: HandoffInputFilter<C> | undefined;
  /** Give the next agent a summary instead of the raw history. Default `false`. */
  nestHandoffHistory?: boolean | undefined;
  handoffHistoryMapper?: HandoffHistoryMapper | undefined;
  /** Default `<CONVERSATION HISTORY>` and `</CONVERSATION HISTORY>`. */
  handoffHistoryMarkers?: { start: string; end: string } | undefined;

  /** Turn three failures into a final output. */
  errorHandlers?: RunErrorHandlers<C> | undefined;

  // ---- streams
  /** Adds events of turns and of tools' progress, and announces tool outputs as they come. Default `false`. */
  extendedEvents?: boolean | undefined;
  /** While more events than this wait for an attached reader, the model's stream is not pulled. Default: no limit. */
  eventBufferLimit?: number | undefined;

  // ---- tools and approvals
  toolExecution?: ToolExecutionOptions | undefined;
  /** Text for the model when a call is rejected, unknown or fails; `undefined` keeps the default. */
  toolErrorFormatter?: ToolErrorFormatter<C> | undefined;
  /** Default `raise_error`. */
  toolNotFoundBehavior?: 'raise_error' | 'return_error_to_model' | undefined;
  /** Two tools of one name: `warn` lets the last win. Default `warn`. */
  toolNameCollisionPolicy?: 'warn' | 'error' | undefined;
  /** Asked about each waiting call before the run pauses. */
  onApproval?: OnApproval<C> | undefined;
  /**
   * Calls that were started and whose end is unknown, on resume. `fail`: `call_executed_uncommitted`; `interrupt`: they
   * wait for `rerun`, `done` or `reject`; `retry`: they run again, with the same `ctx.idempotencyKey`. Default `fail`.
   */
  onInDoubt?: 'interrupt' | 'fail' | 'retry' | undefined;
}

/** For the run of an agent tool; context, abort and approvals are the outer run's. */
export type NestedRunOptions<C> = Omit<RunOptions<C>, 'context' | 'signal' | 'onApproval' | 'onInDoubt'>;

export interface RunOptionsWithContext<C> extends RunOptions<C> {
  context: C | RunContext<C>;
}

// ---- callbacks of RunOptions

/** What a model call sees. As a filter gets it, its items are frozen: return others in place of those that are to change. */
export interface ModelInputData {
  readonly input: readonly AgentInputItem[];
  readonly instructions: string | undefined;
}

/** Returns what this call sees, e.g. `{ ...modelData, input: modelData.input.slice(-20) }`. Once per turn, not per retry; history, session and result are unaffected. */
export type CallModelInputFilter<C = unknown> = (args: {
  readonly modelData: ModelInputData;
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
}) => MaybePromise<ModelInputData>;

export interface ToolErrorArgs<out C = unknown> {
  readonly kind: 'approval_rejected' | 'tool_not_found' | 'tool_exception';
  readonly toolType: 'function';
  readonly toolName: string;
  readonly callId: string;
  readonly defaultMessage: string;
  /** Of `tool_exception`. */
  readonly error: Error | undefined;
  readonly context: RunContext<C>;
}
export type ToolErrorFormatter<C = unknown> = (args: ToolErrorArgs<C>) => MaybePromise<string | undefined>;

/** All that `outputGuardrailBlockedMessage` is told: nothing of the output, and nothing that the guardrail said of it. */
export interface BlockedMessageArgs<out C = unknown> {
  readonly defaultMessage: string;
  readonly guardrailName: string;
  readonly agent: AnyAgent;
  readonly context: RunContext<C>;
}

export interface ToolExecutionOptions {
  /** Function tools of one turn that run at once. Default `null`: all. */
  maxFunctionToolConcurrency?: number | null | undefined;
  /** Also run input guardrails before a person is asked. Default `false`. */
  preApprovalToolInputGuardrails?: boolean | undefined;
}

/**
 * A specific handler is asked first, `default` when it is absent or declines.
 * @example await run(agent, input, { errorHandlers: { maxTurns: () => ({ finalOutput: 'Sorry, I got stuck.' }) } })
 */
export interface RunErrorHandlers<in C = unknown> {
  maxTurns?: RunErrorHandler<C, MaxTurnsExceededError> | undefined;
  modelRefusal?: RunErrorHandler<C, ModelRefusalError> | undefined;
  /** The text did not fit `outputType`, which otherwise rejects the run; or there was none, where the model is otherwise asked again. */
  invalidFinalOutput?: RunErrorHandler<C, ModelBehaviorError> | undefined;
  default?: RunErrorHandler<C, AgentsError> | undefined;
}

/** Gives a final output, checked against `outputType`; `undefined` declines, and the error is thrown. What it throws fails the run. */
export type RunErrorHandler<C, E> = (args: {
  readonly error: E;
  readonly context: RunContext<C>;
  /** As it is now; of a refusal and of an unusable output with the response in question. */
  readonly runData: RunErrorDetails;
}) => MaybePromise<RunErrorHandlerResult | undefined | void>;

export interface RunErrorHandlerResult {
  /** Of an agent without `outputType` its text. */
  finalOutput: unknown;
  /** Add it as an assistant message to items and session. Default `true`. */
  includeInHistory?: boolean | undefined;
}

// ---- merging

/** The options of one segment after merging, with defaults where they do not depend on a state. */
export interface ResolvedOptions extends RunOptions<never> {
  readonly toolNotFoundBehavior: 'raise_error' | 'return_error_to_model';
  readonly toolNameCollisionPolicy: 'warn' | 'error';
}

/** Lays the options of a call over those of its runner: per member, `undefined` is not given. */
export function mergeRunOptions<C>(defaults: RunOptions<C>, call: RunOptions<C>): RunOptions<C> {
  const merged: Record<string, unknown> = { ...defaults };
  for (const [key, value] of Object.entries(call)) if (value !== undefined) merged[key] = value;
  if (defaults.modelSettings && call.modelSettings)
    merged.modelSettings = mergeSettings(defaults.modelSettings, call.modelSettings);
  if (defaults.toolExecution && call.toolExecution)
    merged.toolExecution = overlay(defaults.toolExecution, call.toolExecution);
  if (defaults.sessionSettings && call.sessionSettings)
    merged.sessionSettings = overlay(defaults.sessionSettings, call.sessionSettings);
  return merged;
}

function overlay<T extends object>(base: T, over: T): T {
  return { ...base, ...Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined)) };
}

/** @throws UserError `session_no_versions` */
export function resolveRunOptions(options: RunOptions<never>): ResolvedOptions {
  const { session, sessionConcurrency } = options;
  if (sessionConcurrency === 'detect' && session && !supports(session, 'versions'))
    throw new UserError(
      "sessionConcurrency 'detect' needs a session with versions (readHistory, appendIfVersion, replaceHistory), which this one has not. Leave out the option or use another session.",
      { code: 'session_no_versions' },
    );
  return {
    ...options,
    toolNotFoundBehavior: options.toolNotFoundBehavior ?? 'raise_error',
    toolNameCollisionPolicy: options.toolNameCollisionPolicy ?? 'warn',
  };
}
