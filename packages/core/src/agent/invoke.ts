import type { ParsedArguments } from './arguments.ts';
import type { FunctionTool } from './tool.ts';
import type { ToolInternals } from './tool-internals.ts';
import type { ToolContext } from '../state/context.ts';
import { AgentsError, ToolCallError, UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { toolInternals } from './tool-internals.ts';

/** What came of one call of a tool. */
export interface ToolInvocation {
  /** The tool's value, or the text that a failure policy made of its failure. */
  readonly output: unknown;
  /** Set when the call failed and its policy made a text of it. */
  readonly failure?: ToolFailure;
}

export interface ToolFailure {
  readonly error: Error;
  /** `default`: the fixed text, which the run's formatter may replace; `custom`: the tool's `failureErrorFunction`. */
  readonly handledBy: 'default' | 'custom';
}

/** What a model reads of a failure unless somebody says otherwise: nothing of the exception. */
const failureText = 'An error occurred while running the tool. Please try again.';

/**
 * Runs one call of a tool: arguments, body, failure policy. The one place for that; decisions, hooks, spans and the
 * output item are around it.
 *
 * @param parsed its arguments, where somebody has read them already
 * @throws what the failure policy lets through; what the tool threw once its signal is aborted; UserError for a schema that validates asynchronously
 */
export async function invokeTool(
  tool: FunctionTool<never, never>,
  ctx: ToolContext<never>,
  argumentsJson: string,
  parsed?: ParsedArguments,
): Promise<ToolInvocation> {
  const internals = toolInternals(tool);
  const args = parsed ?? internals.parse(argumentsJson);
  if (!args.ok) return await failed(tool, internals, ctx, args.error, args.issues);
  try {
    return { output: await internals.execute(args.value as never, ctx) };
  } catch (error) {
    // A cancelled call has nobody left who reads a text.
    if (ctx.signal.aborted) throw error;
    return await failed(tool, internals, ctx, error, '');
  }
}

async function failed(
  tool: FunctionTool<never, never>,
  internals: ToolInternals,
  ctx: ToolContext<never>,
  thrown: unknown,
  issues: string,
): Promise<ToolInvocation> {
  const { failureErrorFunction } = internals;
  if (failureErrorFunction === null) throw failureOf(tool, thrown);
  const error = asError(thrown);
  if (failureErrorFunction === undefined) {
    const output = issues === '' ? failureText : `${failureText} Invalid arguments: ${issues}`;
    return { output, failure: { error, handledBy: 'default' } };
  }
  let output: unknown;
  try {
    output = await failureErrorFunction(ctx, error);
  } catch (second) {
    throw failureOf(tool, second);
  }
  if (typeof output !== 'string')
    throw new UserError(
      `tool ${tool.name}: \`failureErrorFunction\` must return the text for the model, not ${kindOf(output)}.`,
      { cause: error },
    );
  return { output, failure: { error, handledBy: 'custom' } };
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
