import type { ParsedArguments } from './arguments.ts';
import type { FunctionTool, MaybePromise } from './tool.ts';
import type { ToolInternals } from './tool-internals.ts';
import type { ToolContext } from '../state/context.ts';
import type { ToolTimeout } from './timeout.ts';
import type { ToolTimeoutError } from '../base/errors.ts';
import { AgentsError, ToolCallError, UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { withCallSignal } from '../state/context.ts';
import { inTime, timeoutError, tooLate } from './timeout.ts';
import { toolInternals } from './tool-internals.ts';

/** What came of one call of a tool. */
export interface ToolInvocation {
  /** The tool's value, or the text for the model in place of its failure. */
  readonly output: unknown;
  /** The value as JSON, of a tool with an `outputSchema`. */
  readonly text?: string;
  /** Set when the call failed and a text was made of it. */
  readonly failure?: ToolFailure;
}

export interface ToolFailure {
  readonly error: Error;
  /**
   * `default`: the fixed text, which the run's formatter may replace; `custom`: the tool's `failureErrorFunction`;
   * `timeout`: the call took too long.
   */
  readonly handledBy: 'default' | 'custom' | 'timeout';
  /** The arguments could not be used; the body did not begin. */
  readonly ofArguments?: true;
}

export interface InvokeOptions {
  /** The call's arguments, where somebody has read them already. */
  readonly parsed?: ParsedArguments | undefined;
  /** Aborts the signal that `ctx` has. Default: the body gets a context whose signal follows that one. */
  readonly abort?: ((reason: unknown) => void) | undefined;
  /** Runs in place of the tool's own body. */
  readonly body?: ((args: unknown, ctx: ToolContext<never>) => Promise<unknown>) | undefined;
}

/** What a model reads of a failure unless somebody says otherwise: nothing of the exception. */
const failureText = 'An error occurred while running the tool. Please try again.';

/**
 * Runs one call of a tool: arguments, body, time limit, failure policy. The one place for that; decisions, hooks, spans
 * and the output item are around it.
 *
 * @throws what the failure policy lets through; what the tool threw once its signal is aborted; ToolTimeoutError where the tool asks for it; UserError for a schema that validates asynchronously
 */
export async function invokeTool(
  tool: FunctionTool<never, never>,
  outer: ToolContext<never>,
  argumentsJson: string,
  { parsed, abort, body }: InvokeOptions = {},
): Promise<ToolInvocation> {
  const internals = toolInternals(tool);
  const { timeout, parse, execute } = internals;
  const limited = timeout === undefined || abort !== undefined ? { ctx: outer, abort } : withAbort(outer);
  const { ctx } = limited;
  let begun = false;
  let issues: string | undefined;
  const start = (): unknown => {
    const args = parsed ?? parse(argumentsJson);
    if (!args.ok) {
      ({ issues } = args);
      throw args.error;
    }
    begun = true;
    return (body ?? execute)(args.value as never, ctx);
  };
  let output: unknown;
  try {
    output = await (timeout === undefined ? start() : inTime(timeout.ms, ctx.signal, start));
  } catch (thrown) {
    if (issues !== undefined) return await failed(tool, ctx, thrown, issues);
    // A cancelled call has nobody left who reads a text.
    if (!begun || ctx.signal.aborted) throw thrown;
    return await failed(tool, ctx, thrown);
  }
  if (timeout === undefined || output !== tooLate) return given(internals, ctx, output);
  const error = timeoutError(tool.name, timeout);
  limited.abort?.(error);
  return await timedOut(tool, ctx, error, timeout);
}

/** @throws the error itself where the tool asks for it */
async function timedOut(
  tool: FunctionTool<never, never>,
  ctx: ToolContext<never>,
  error: ToolTimeoutError,
  { behavior, errorFunction }: ToolTimeout,
): Promise<ToolInvocation> {
  if (behavior === 'raise_exception') throw error;
  const output = errorFunction
    ? await textFrom(tool, 'timeoutErrorFunction', error, () => errorFunction(ctx, error))
    : error.message;
  return { output, failure: { error, handledBy: 'timeout' } };
}

/** A value that does not fit what the tool declares is the program's mistake: no failure policy answers it (TOOL-R9). @throws UserError */
function given({ readResult }: ToolInternals, ctx: ToolContext<never>, output: unknown): ToolInvocation {
  if (readResult === undefined) return { output };
  try {
    const { value, text } = readResult(output);
    return { output: value, text };
  } catch (error) {
    // A call that was told to stop gives what it has, and nobody reads it: why it was stopped is what counts.
    if (ctx.signal.aborted) return { output };
    throw error;
  }
}

function withAbort(outer: ToolContext<never>): {
  readonly ctx: ToolContext<never>;
  readonly abort: (reason: unknown) => void;
} {
  const own = new AbortController();
  return {
    ctx: withCallSignal(outer, AbortSignal.any([outer.signal, own.signal])),
    abort: (reason) => own.abort(reason),
  };
}

/** @param issues what is wrong with the arguments, which cannot run; else the body threw */
async function failed(
  tool: FunctionTool<never, never>,
  ctx: ToolContext<never>,
  thrown: unknown,
  issues?: string,
): Promise<ToolInvocation> {
  const { failureErrorFunction } = toolInternals(tool);
  if (failureErrorFunction === null) throw failureOf(tool, thrown);
  const error = asError(thrown);
  if (failureErrorFunction === undefined) {
    const output = issues ? `${failureText} Invalid arguments: ${issues}` : failureText;
    return { output, failure: { error, handledBy: 'default', ...(issues !== undefined && { ofArguments: true }) } };
  }
  const output = await textFrom(tool, 'failureErrorFunction', error, () => failureErrorFunction(ctx, error));
  return { output, failure: { error, handledBy: 'custom' } };
}

/** @throws what the function throws, with the tool's name; UserError when it gives no text */
async function textFrom(
  tool: FunctionTool<never, never>,
  option: string,
  cause: Error,
  ask: () => MaybePromise<string>,
): Promise<string> {
  let text: unknown;
  try {
    text = await ask();
  } catch (second) {
    throw failureOf(tool, second);
  }
  if (typeof text === 'string') return text;
  throw new UserError(`tool ${tool.name}: \`${option}\` must return the text for the model, not ${kindOf(text)}.`, {
    cause,
  });
}

/** What fails the run: errors of ours as they are, others with the tool's name. */
function failureOf(tool: FunctionTool<never, never>, thrown: unknown): AgentsError {
  if (thrown instanceof AgentsError) return thrown;
  return new ToolCallError(`Error running tool ${tool.name}: ${asError(thrown).message}`, {
    toolName: tool.name,
    cause: thrown,
  });
}

function asError(thrown: unknown): Error {
  if (!(thrown instanceof Error)) return new Error(textOf(thrown), { cause: thrown });
  if (thrown.message === '' && thrown.name === 'AbortError')
    return new Error('Tool execution cancelled.', { cause: thrown });
  return thrown;
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return 'something was thrown that has no text';
  }
}
