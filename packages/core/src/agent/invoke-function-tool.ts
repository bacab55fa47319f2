import type { FunctionTool } from './tool.ts';
import { randomHex } from '../base/ids.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { createToolContext, RunContext } from '../state/context.ts';
import { Agent } from './agent.ts';
import { invokeTool } from './invoke.ts';
import { isFunctionTool } from './tool-internals.ts';

export type InvokeArgs<C, X = { callId?: string | undefined; signal?: AbortSignal | undefined }> = undefined extends C
  ? [options?: { context?: C } & X]
  : [options: { context: C } & X];

/**
 * Runs one tool without a run, for unit tests: validation, timeout and failure policy as in a run; no approval. A failure
 * that the tool answers with a text gives that text. `callId` is what the tool sees as `ctx.toolCallId`, default a random one.
 *
 * @throws ToolTimeoutError when it took too long and its `timeoutBehavior` is `raise_exception`
 * @throws UserError when what it returned does not fit its `outputSchema`; what fits is given as the schema makes it
 * @throws ToolCallError when the tool has `failureErrorFunction: null` and fails
 * @example expect(await invokeFunctionTool(weather, { city: 'Kyiv' })).toBe('mild')
 */
export async function invokeFunctionTool<C, A, R>(
  tool: FunctionTool<C, A, R>,
  args: NoInfer<A> | string,
  ...options: InvokeArgs<NoInfer<C>>
): Promise<R> {
  if (!isFunctionTool(tool)) throw new UserError('invokeFunctionTool: the first argument is a tool made by `tool()`.');
  const given = (options[0] ?? {}) as { context?: C; callId?: string; signal?: AbortSignal };
  checkOptions(
    given,
    { context: kinds.any, callId: kinds.nonEmptyString, signal: kinds.abortSignal },
    'invokeFunctionTool',
  );
  const argumentsJson = typeof args === 'string' ? args : (JSON.stringify(args) ?? '');
  const toolCallId = given.callId ?? `call_${randomHex(12)}`;
  const run = given.context instanceof RunContext ? given.context : new RunContext(given.context);
  const ctx = createToolContext(run, {
    agent: new Agent({ name: 'invokeFunctionTool' }),
    toolCall: { type: 'function_call', call_id: toolCallId, name: tool.name, arguments: argumentsJson },
    toolName: tool.name,
    toolCallId,
    toolArguments: argumentsJson,
    signal: () => given.signal ?? new AbortController().signal,
    runKey: randomHex(16),
  });
  return (await invokeTool(tool, ctx as never, argumentsJson)).output as R;
}
