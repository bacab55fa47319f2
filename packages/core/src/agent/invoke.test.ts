import { describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { ModelBehaviorError, ToolCallError, UserError } from '../base/errors.ts';
import { createToolContext, RunContext } from '../state/context.ts';
import type { ToolContext } from '../state/context.ts';
import { Agent } from './agent.ts';
import { invokeFunctionTool } from './invoke-function-tool.ts';
import { invokeTool } from './invoke.ts';
import { toolInternals } from './tool-internals.ts';
import { tool } from './tool.ts';
import type { ToolErrorFunction } from './tool.ts';

const fixed = 'An error occurred while running the tool. Please try again.';

function contextOf(toolArguments: string, signal: AbortSignal = new AbortController().signal): ToolContext<never> {
  return createToolContext(new RunContext(undefined), {
    agent: new Agent({ name: 'Desk' }),
    toolCall: { type: 'function_call', call_id: 'c1', name: 'find', arguments: toolArguments },
    toolName: 'find',
    toolCallId: 'c1',
    toolArguments,
    signal,
    runKey: '0'.repeat(32),
  }) as ToolContext<never>;
}

const failing = (thrown: unknown, failureErrorFunction?: ToolErrorFunction<unknown> | null) =>
  tool({
    name: 'find',
    failureErrorFunction,
    execute: () => {
      throw thrown;
    },
  });

describe('one call of a tool', () => {
  test('gives the value of a body that is async or not [TOOL-F9]', async () => {
    const ctx = contextOf('{}');
    expect(await invokeTool(tool({ name: 'a', execute: () => ({ n: 1 }) }), ctx, '{}')).toEqual({ output: { n: 1 } });
    expect(await invokeTool(tool({ name: 'b', execute: async () => 'x' }), ctx, '{}')).toEqual({ output: 'x' });
    expect(await invokeTool(tool({ name: 'c', execute: () => undefined }), ctx, '{}')).toEqual({ output: undefined });
  });

  test('the body sees the validated value, the context the raw text [TOOL-F18]', async () => {
    const seen: unknown[] = [];
    const made = tool({
      name: 'find',
      parameters: z.object({ n: z.coerce.number().default(2) }),
      execute: (args, ctx) => void seen.push(args, ctx.toolArguments),
    });
    await made.onInvokeTool(contextOf('{"n":null}'), '{"n":null}');
    expect(seen).toEqual([{ n: 2 }, '{"n":null}']);
  });

  test('arguments that were read at the gate are not read again', async () => {
    const check = vi.fn<() => boolean>(() => true);
    const made = tool({ name: 'find', parameters: z.object({ n: z.number().refine(check) }), execute: ({ n }) => n });
    const parsed = toolInternals(made).parse('{"n":4}');
    expect(await invokeTool(made, contextOf('{"n":4}'), '{"n":4}', { parsed })).toEqual({ output: 4 });
    expect(check).toHaveBeenCalledTimes(1);
  });

  test('the default policy gives a fixed text, whatever was thrown [TOOL-F19]', async () => {
    for (const thrown of [
      new Error('x9-secret'),
      new UserError('x9-secret'),
      'x9-secret',
      undefined,
      { secret: 'x9-secret' },
    ]) {
      const { output, failure } = await invokeTool(failing(thrown), contextOf('{}'), '{}');
      expect(output).toBe(fixed);
      expect(failure?.handledBy).toBe('default');
      expect(failure?.error).toBeInstanceOf(Error);
    }
  });

  test('values that are no errors are wrapped [TOOL-F19]', async () => {
    const { failure } = await invokeTool(failing('plain words'), contextOf('{}'), '{}');
    expect(failure?.error).toMatchObject({ message: 'plain words', cause: 'plain words' });
  });

  test('arguments that do not fit are told by path and kind, broken JSON is not [TOOL-F19] [TOOL-F44]', async () => {
    const execute = vi.fn<() => void>();
    const made = tool({ name: 'find', parameters: z.object({ a: z.string(), b: z.number() }), execute });
    const wrong = await invokeTool(made, contextOf(''), '{"a":5}');
    expect(wrong.output).toBe(`${fixed} Invalid arguments: a: expected string; b: expected number`);
    expect(wrong.failure).toMatchObject({ handledBy: 'default', error: { name: 'ModelBehaviorError' } });
    for (const broken of ['{"n":', '[1]', ' '])
      expect((await invokeTool(made, contextOf(broken), broken)).output).toBe(fixed);
    expect(execute).not.toHaveBeenCalled();
  });

  test('a function of the tool makes the text, also of bad arguments [TOOL-F20]', async () => {
    const explain = vi.fn<ToolErrorFunction<unknown>>((_, error) => `sorry: ${error.message}`);
    expect(await invokeTool(failing(new Error('full'), explain), contextOf('{}'), '{}')).toEqual({
      output: 'sorry: full',
      failure: { error: new Error('full'), handledBy: 'custom' },
    });
    expect(explain.mock.calls[0]?.[0]).toBeInstanceOf(RunContext);
    expect((await invokeTool(failing(new Error('full'), explain), contextOf('['), '[')).output).toBe(
      'sorry: Invalid JSON input for tool find',
    );
  });

  test('a failure function that throws fails the run like null does [TOOL-F20] [TOOL-F21]', async () => {
    const second = new Error('second');
    const broken = invokeTool(
      failing(new Error('first'), () => {
        throw second;
      }),
      contextOf('{}'),
      '{}',
    );
    await expect(broken).rejects.toMatchObject({
      name: 'ToolCallError',
      message: 'Error running tool find: second',
      cause: second,
    });
    await expect(invokeTool(failing(new Error('x'), (() => 7) as never), contextOf('{}'), '{}')).rejects.toThrow(
      /`failureErrorFunction` must return the text/,
    );
  });

  test('null lets errors of ours pass and names the tool in others [TOOL-F21] [TOOL-F43] [TOOL-AC17]', async () => {
    const ours = new ModelBehaviorError('ours');
    await expect(invokeTool(failing(ours, null), contextOf('{}'), '{}')).rejects.toBe(ours);
    const cause = new Error('disk full');
    const error: unknown = await invokeTool(failing(cause, null), contextOf('{}'), '{}').catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ToolCallError);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ message: 'Error running tool find: disk full', toolName: 'find', cause });
    await expect(invokeTool(failing('words', null), contextOf('{}'), '{}')).rejects.toMatchObject({ cause: 'words' });
    await expect(invokeTool(failing(cause, null), contextOf('['), '[')).rejects.toBeInstanceOf(ModelBehaviorError);
  });

  test('async validation passes by the failure function [TOOL-F17]', async () => {
    const explain = vi.fn<() => string>(() => 'text');
    const made = tool({
      name: 'find',
      parameters: z.object({ a: z.string().refine(async () => true) }),
      failureErrorFunction: explain,
      execute: () => 1,
    });
    await expect(invokeTool(made, contextOf(''), '{"a":"x"}')).rejects.toBeInstanceOf(UserError);
    expect(explain).not.toHaveBeenCalled();
  });

  test('an abort error without an abort is an ordinary failure [TOOL-F25]', async () => {
    const explain = (_: RunContext, error: Error): string => error.message;
    expect((await invokeTool(failing(new DOMException('', 'AbortError'), explain), contextOf('{}'), '{}')).output).toBe(
      'Tool execution cancelled.',
    );
    expect(
      (await invokeTool(failing(new DOMException('own words', 'AbortError'), explain), contextOf('{}'), '{}')).output,
    ).toBe('own words');
  });

  test('after an abort no failure function is asked [TOOL-X7]', async () => {
    const explain = vi.fn<() => string>(() => 'text');
    const thrown = new Error('stopped');
    await expect(invokeTool(failing(thrown, explain), contextOf('{}', AbortSignal.abort()), '{}')).rejects.toBe(thrown);
    expect(explain).not.toHaveBeenCalled();
  });
});

describe('invokeFunctionTool', () => {
  const greet = tool({
    name: 'greet',
    parameters: z.object({ name: z.string() }),
    execute: ({ name }, ctx: ToolContext<{ greeting: string }>) =>
      `${ctx.context.greeting} ${name} (${ctx.toolCallId}, ${ctx.agent.name})`,
  });

  test('runs a tool without a run, with arguments as value or text [TOOL-C3]', async () => {
    const options = { context: { greeting: 'Hi' }, callId: 'c7' };
    expect(await invokeFunctionTool(greet, { name: 'Ana' }, options)).toBe('Hi Ana (c7, invokeFunctionTool)');
    expect(await invokeFunctionTool(greet, '{"name":"Ana"}', options)).toBe('Hi Ana (c7, invokeFunctionTool)');
    expect(await invokeFunctionTool(greet, '{}', options)).toBe(`${fixed} Invalid arguments: name: expected string`);
  });

  test('takes no signal that cannot fire', async () => {
    const given = invokeFunctionTool(tool({ name: 'see', execute: () => 1 }), {}, { signal: {} as never });
    await expect(given).rejects.toThrow("Option 'signal' of invokeFunctionTool must be an AbortSignal");
  });

  test('gives the signal and makes a call up [TOOL-C3]', async () => {
    const { signal } = new AbortController();
    const seen: ToolContext[] = [];
    await invokeFunctionTool(tool({ name: 'see', execute: (_, ctx) => void seen.push(ctx) }), {}, { signal });
    expect(seen[0]?.signal).toBe(signal);
    expect(seen[0]).toMatchObject({
      toolName: 'see',
      toolArguments: '{}',
      toolCall: { type: 'function_call', name: 'see', arguments: '{}' },
    });
    expect(seen[0]?.toolCallId).toMatch(/^call_[0-9a-f]{24}$/);
  });

  test('asks no approval, and refuses what is no tool and unknown options', async () => {
    expect(await invokeFunctionTool(tool({ name: 'gated', needsApproval: true, execute: () => 1 }), {})).toBe(1);
    await expect(invokeFunctionTool({ name: 'x' } as never, {})).rejects.toThrow(/made by `tool\(\)`/);
    await expect(
      invokeFunctionTool(greet, { name: 'x' }, { context: { greeting: '' }, callID: 'x' } as never),
    ).rejects.toThrow(/'callID'.*'callId'/);
  });
});
