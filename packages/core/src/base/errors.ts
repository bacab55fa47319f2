import { brand } from './brand.ts';
import type { AgentsErrorCode, ModelBehaviorErrorCode, UserErrorCode } from './error-codes.ts';
import { defineInspect } from './inspect.ts';
import { attachData, attachedData, getRunErrorDetails, inspectError } from './run-data.ts';
import type { RunDataSource } from './run-data.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type {
  InputGuardrailResult,
  OutputGuardrailResult,
  ToolGuardrailFunctionOutput,
  ToolGuardrailResult,
} from '../agent/guardrail.ts';
import type { RunContext } from '../state/context.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { JsonObject } from '../items/wire.ts';

export { getRunErrorDetails, getRunErrorState } from './run-data.ts';

/** What a run had when it failed. */
export interface RunErrorDetails {
  readonly input: string | readonly AgentInputItem[];
  /** Of completed turns. */
  readonly newItems: readonly RunItem[];
  readonly rawResponses: readonly ModelResponse[];
  readonly lastAgent: AnyAgent;
  readonly context: RunContext;
  readonly inputGuardrailResults: readonly InputGuardrailResult[];
  readonly outputGuardrailResults: readonly OutputGuardrailResult[];
  readonly toolInputGuardrailResults: readonly ToolGuardrailResult[];
  readonly toolOutputGuardrailResults: readonly ToolGuardrailResult[];
  readonly traceId: string | undefined;
  toInputList(): AgentInputItem[];
}

/** What every constructor of an error takes besides the message. */
export interface AgentsErrorOptions<Code extends AgentsErrorCode = AgentsErrorCode> {
  code?: Code | undefined;
  cause?: unknown;
}

/** Base of all errors of these packages. `instanceof` also works over two installed copies. */
export class AgentsError extends Error {
  static {
    defineError(this, 'AgentsError');
    defineInspect(this, inspectError);
  }

  /** Stable, unlike the message: what programs compare. */
  readonly code: AgentsErrorCode;

  constructor(message: string, options: AgentsErrorOptions = {}) {
    // An own `cause` that is undefined would be shown as one.
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? 'agents_error';
  }

  /** Set when the error left a run; absent when data had to be redacted. */
  get runData(): RunErrorDetails | undefined {
    return getRunErrorDetails(this);
  }

  /** Where the run can go on: `run(agent, error.state, { context })`. Absent when it cannot. */
  get state(): RunState | undefined {
    return attachedData(this)?.state;
  }

  /** Name, code and message. */
  toJSON(): JsonObject {
    return { name: this.name, code: this.code, message: this.message };
  }
}

export class UserError extends AgentsError {
  static {
    defineError(this, 'UserError');
  }

  declare readonly code: UserErrorCode;

  constructor(message: string, options: AgentsErrorOptions<UserErrorCode> = {}) {
    super(message, { ...options, code: options.code ?? 'user_error' });
  }
}

/** A tool without failure function threw; `cause` is what it threw. */
export class ToolCallError extends UserError {
  static {
    defineError(this, 'ToolCallError');
  }

  declare readonly code: 'tool_call';
  readonly toolName: string;

  constructor(message: string, options: { toolName: string; cause?: unknown }) {
    super(message, { code: 'tool_call', cause: options.cause });
    this.toolName = options.toolName;
  }
}

/** A tool ran longer than its `timeoutMs`, and its `timeoutBehavior` is `raise_exception`. */
export class ToolTimeoutError extends AgentsError {
  static {
    defineError(this, 'ToolTimeoutError');
  }

  declare readonly code: 'tool_timeout';
  readonly toolName: string;
  readonly timeoutMs: number;

  constructor(message: string, options: { toolName: string; timeoutMs: number; cause?: unknown }) {
    super(message, { code: 'tool_timeout', cause: options.cause });
    this.toolName = options.toolName;
    this.timeoutMs = options.timeoutMs;
  }
}

/** First request without an API key. */
export class MissingCredentialsError extends UserError {
  static {
    defineError(this, 'MissingCredentialsError');
  }

  declare readonly code: 'missing_credentials';

  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, { code: 'missing_credentials', cause: options.cause });
  }
}

export class MaxTurnsExceededError extends AgentsError {
  static {
    defineError(this, 'MaxTurnsExceededError');
  }

  declare readonly code: 'max_turns_exceeded';
  readonly maxTurns: number;

  constructor(message: string, options: { maxTurns: number; cause?: unknown }) {
    super(message, { code: 'max_turns_exceeded', cause: options.cause });
    this.maxTurns = options.maxTurns;
  }
}

/** Members of a `ModelBehaviorError` that tell of a response which ended badly. */
export interface FailedResponse {
  response?: ModelResponse | undefined;
  status?: string | undefined;
  responseError?: unknown;
  incompleteDetails?: unknown;
}

export class ModelBehaviorError extends AgentsError {
  static {
    defineError(this, 'ModelBehaviorError');
  }

  declare readonly code: ModelBehaviorErrorCode;
  /** Of terminal failures: what came back before the end, usage included. */
  readonly response: ModelResponse | undefined;
  readonly status: string | undefined;
  /** The provider's own error. */
  readonly responseError: unknown;
  readonly incompleteDetails: unknown;

  constructor(message: string, options: AgentsErrorOptions<ModelBehaviorErrorCode> & FailedResponse = {}) {
    super(message, { code: options.code ?? 'model_behavior', cause: options.cause });
    // Not enumerable: a log line of the error must not carry what the model said.
    for (const key of ['response', 'status', 'responseError', 'incompleteDetails'] as const) {
      Object.defineProperty(this, key, {
        value: options[key],
        enumerable: key === 'status',
        writable: true,
        configurable: true,
      });
    }
  }
}

/** A stream ended without its terminal event. */
export class ModelStreamTruncatedError extends ModelBehaviorError {
  static {
    defineError(this, 'ModelStreamTruncatedError');
  }

  declare readonly code: 'model_stream_truncated';
  /** Something of the answer had already arrived. */
  readonly responseStarted: boolean;

  constructor(message: string, options: { responseStarted: boolean; cause?: unknown } & FailedResponse) {
    super(message, { ...options, code: 'model_stream_truncated' });
    this.responseStarted = options.responseStarted;
  }
}

export class ModelRefusalError extends AgentsError {
  static {
    defineError(this, 'ModelRefusalError');
  }

  declare readonly code: 'model_refusal';
  readonly refusal: string;

  constructor(message: string, options: { refusal: string; cause?: unknown }) {
    super(message, { code: 'model_refusal', cause: options.cause });
    this.refusal = options.refusal;
  }
}

/** One attempt of a model call took longer than `modelSettings.timeoutMs`. */
export class ModelTimeoutError extends AgentsError {
  static {
    defineError(this, 'ModelTimeoutError');
  }

  declare readonly code: 'model_timeout';
  readonly timeoutMs: number;

  constructor(message: string, options: { timeoutMs: number; cause?: unknown }) {
    super(message, { code: 'model_timeout', cause: options.cause });
    this.timeoutMs = options.timeoutMs;
  }
}

/** An input guardrail tripped. */
export class InputGuardrailTripwireTriggered extends AgentsError {
  static {
    defineError(this, 'InputGuardrailTripwireTriggered');
  }

  declare readonly code: 'input_guardrail_tripwire';
  readonly guardrailResult: InputGuardrailResult;

  constructor(message: string, options: { guardrailResult: InputGuardrailResult }) {
    super(message, { code: 'input_guardrail_tripwire' });
    this.guardrailResult = options.guardrailResult;
  }
}

/** An output guardrail tripped. */
export class OutputGuardrailTripwireTriggered extends AgentsError {
  static {
    defineError(this, 'OutputGuardrailTripwireTriggered');
  }

  declare readonly code: 'output_guardrail_tripwire';
  /** Sanitized when the blocked output was a tool's. */
  readonly guardrailResult: OutputGuardrailResult;

  constructor(message: string, options: { guardrailResult: OutputGuardrailResult }) {
    super(message, { code: 'output_guardrail_tripwire' });
    this.guardrailResult = options.guardrailResult;
  }
}

/** A guardrail of a tool's input answered `raise_exception`. */
export class ToolInputGuardrailTripwireTriggered extends AgentsError {
  static {
    defineError(this, 'ToolInputGuardrailTripwireTriggered');
  }

  declare readonly code: 'tool_input_guardrail_tripwire';
  readonly guardrail: { readonly name: string };
  readonly output: ToolGuardrailFunctionOutput;

  constructor(message: string, options: ToolGuardrailResult) {
    super(message, { code: 'tool_input_guardrail_tripwire' });
    this.guardrail = options.guardrail;
    this.output = options.output;
  }
}

/** A guardrail of a tool's output answered `raise_exception`. */
export class ToolOutputGuardrailTripwireTriggered extends AgentsError {
  static {
    defineError(this, 'ToolOutputGuardrailTripwireTriggered');
  }

  declare readonly code: 'tool_output_guardrail_tripwire';
  readonly guardrail: { readonly name: string };
  readonly output: ToolGuardrailFunctionOutput;

  constructor(message: string, options: ToolGuardrailResult) {
    super(message, { code: 'tool_output_guardrail_tripwire' });
    this.guardrail = options.guardrail;
    this.output = options.output;
  }
}

/** Whether a guardrail of whatever kind stopped the run. */
export function isTripwire(error: unknown): boolean {
  return (
    error instanceof InputGuardrailTripwireTriggered ||
    error instanceof OutputGuardrailTripwireTriggered ||
    error instanceof ToolInputGuardrailTripwireTriggered ||
    error instanceof ToolOutputGuardrailTripwireTriggered
  );
}

/** The run's `signal` fired (`cause` is its reason) or a stream was cancelled. `name` is `AbortError`. */
export class RunAbortedError extends AgentsError {
  static {
    defineError(this, 'RunAbortedError', 'AbortError');
  }

  declare readonly code: 'aborted';

  constructor(message = 'The run was aborted.', options: { cause?: unknown } = {}) {
    super(message, { code: 'aborted', cause: options.cause });
  }
}

/** The brand, and a `name` that minifiers can't change. Packages that add error classes keep the pattern with their own. @internal */
export function defineError(
  target: abstract new (...args: never[]) => Error,
  brandName: string,
  name: string = brandName,
): void {
  brand(target, brandName);
  Object.defineProperty(target.prototype, 'name', { value: name, writable: true, configurable: true });
}

/**
 * Puts a run's data on the error that leaves it, and returns what to throw: the same object, or an `AgentsError` with it
 * as `cause` when the thrown value can carry nothing (a primitive, a non-extensible object). Functions are called when
 * `runData` or `state` is first read, so freeze what they close over. An error of ours that has data keeps it: it comes
 * from a nested run, or is redacted. Objects of others may be thrown again and again; they carry the last run's.
 */
export function attachRunData(error: unknown, source: RunDataSource): unknown {
  if (attachData(error, source, error instanceof AgentsError)) return error;
  const wrapped = new AgentsError('The run failed: something was thrown that is no extensible object; see `cause`.', {
    cause: error,
  });
  attachData(wrapped, source, false);
  return wrapped;
}

/** Makes sure that the error never gets `runData` or `state` (RUN-1806); returns it. */
export function withoutRunData<E extends object>(error: E): E {
  attachData(error, { runData: undefined, state: undefined }, true);
  return error;
}
