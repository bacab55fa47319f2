import type { ToolFailure } from '../../agent/invoke.ts';
import type { ResponseFunctionToolCall } from '../../items/wire.ts';
import type { RunEnv } from '../env.ts';
import type { ToolErrorArgs, ToolErrorFormatter } from '../options.ts';
import { className, getLogger } from '../../base/logger.ts';
import { qualifiedNameOf } from '../../state/lookup-key.ts';

/** What the model reads of a call that a person refused: their message, else the run's formatter, else a fixed text. */
export async function rejectionText(
  env: RunEnv,
  call: ResponseFunctionToolCall,
  message: string | undefined,
): Promise<string> {
  return message ?? (await format(env, call, 'approval_rejected', 'Tool execution was not approved.'));
}

/** What the model reads of a call to a tool that the agent does not have. */
export async function notFoundText(env: RunEnv, call: ResponseFunctionToolCall): Promise<string> {
  return await format(env, call, 'tool_not_found', `Tool '${call.name}' not found.`);
}

/** What the model reads of a failure that the tool has no function of its own for. */
export async function exceptionText(
  env: RunEnv,
  call: ResponseFunctionToolCall,
  defaultMessage: string,
  error: Error,
): Promise<string> {
  return await format(env, call, 'tool_exception', defaultMessage, error);
}

/** The model gets no details and the run goes on, so this line is all that tells of a fault in a tool, or in an agent's run. */
export function tellDeveloper({ name }: ResponseFunctionToolCall, { error, ofArguments }: ToolFailure): void {
  const log = getLogger('tools');
  // They are the model's fault, and it is told of them.
  if (ofArguments) log.debug(`The arguments for the tool ${name} do not fit.`);
  else if (log.dontLogToolData)
    log.warn(
      `The tool ${name} failed: ${className(error)}. The error is shown here after configureLogging({ dontLogToolData: false }); a failureErrorFunction of the tool gets it.`,
    );
  else log.warn(`The tool ${name} threw.`, error);
}

/** Asks `toolErrorFormatter`. Whatever it does, the run goes on: without a usable text the default stands. */
async function format(
  env: RunEnv,
  call: ResponseFunctionToolCall,
  kind: ToolErrorArgs['kind'],
  defaultMessage: string,
  error?: Error,
): Promise<string> {
  const formatter = env.options.toolErrorFormatter as ToolErrorFormatter | undefined;
  if (formatter === undefined) return defaultMessage;
  try {
    const text: unknown = await env.control.race(
      formatter({
        kind,
        toolType: 'function',
        toolName: qualifiedNameOf(call.name, call.namespace),
        callId: call.call_id,
        defaultMessage,
        error,
        context: env.context,
      }),
    );
    if (typeof text === 'string') return text;
    if (text !== undefined)
      getLogger().error('`toolErrorFormatter` must return a string or undefined; the default text is used.');
  } catch {
    env.control.throwIfAborted();
    getLogger().error('`toolErrorFormatter` failed; the default text is used.');
  }
  return defaultMessage;
}
