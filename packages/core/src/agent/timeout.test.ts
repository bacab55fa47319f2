import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { ToolTimeoutError, UserError } from '../base/errors.ts';
import { unhandledDuring } from '../../test/run-kit.ts';
import { invokeFunctionTool } from './invoke-function-tool.ts';
import { tool } from './tool.ts';
import type { ToolOptions } from './tool.ts';

type Options = Partial<ToolOptions<undefined, unknown, unknown>>;
const slow = (options: Options) => tool({ name: 'slow', execute: () => new Promise(() => {}), ...options });
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('options', () => {
  test.each<[Options, string]>([
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ timeoutMs: -1 }, 'timeoutMs'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs'],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 'timeoutMs'],
    [{ timeoutMs: 2147483648 }, 'timeoutMs'],
    [{ timeoutMs: '5' as never }, 'timeoutMs'],
    [{ timeoutBehavior: 'throw' as never }, 'timeoutBehavior'],
    [{ timeoutErrorFunction: 'sorry' as never }, 'timeoutErrorFunction'],
    [{ maxConcurrency: 0 }, 'maxConcurrency'],
    [{ maxConcurrency: 1.5 }, 'maxConcurrency'],
  ])('%o is refused by name, of tool and option [TOOL-F6]', (options, option) => {
    const named = expect.objectContaining({ message: expect.stringMatching(`'${option}' of tool slow`) });
    expect(() => slow(options)).toThrow(UserError);
    expect(() => slow(options)).toThrow(named);
    expect(() => tool({ name: 'slow', execute: () => 1 }).copyWith(options as never)).toThrow(option);
  });

  test('the shortest and the longest time are taken; a copy can have another [TOOL-F6] [TOOL-F5]', async () => {
    expect(slow({ timeoutMs: 2147483647 }).name).toBe('slow');
    expect(await invokeFunctionTool(slow({ timeoutMs: 0.5 }), {})).toBe("Tool 'slow' timed out after 0.0005 seconds.");
    const copy = slow({ timeoutMs: 2147483647 }).copyWith({ name: 'other', timeoutMs: 5 });
    expect(await invokeFunctionTool(copy, {})).toBe("Tool 'other' timed out after 0.005 seconds.");
  });
});

describe('a call that takes too long', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test.each([
    [2000, '2'],
    [500, '0.5'],
    [1250, '1.25'],
    [20, '0.02'],
  ])('after %i ms: the model is told so, %s seconds [TOOL-F27]', async (timeoutMs, seconds) => {
    const output = invokeFunctionTool(slow({ timeoutMs }), {});
    await vi.advanceTimersByTimeAsync(timeoutMs + 1);
    expect(await output).toBe(`Tool 'slow' timed out after ${seconds} seconds.`);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is answered by the function of the tool [TOOL-F27]', async () => {
    const seen: unknown[] = [];
    const made = slow({
      timeoutMs: 50,
      timeoutErrorFunction: (ctx, error) => {
        seen.push(ctx.usage.requests, error);
        return `${error.toolName}: try again`;
      },
    });
    const output = invokeFunctionTool(made, {});
    await vi.advanceTimersByTimeAsync(51);
    expect(await output).toBe('slow: try again');
    expect(seen).toEqual([0, expect.any(ToolTimeoutError)]);
    expect(seen[1]).toMatchObject({ code: 'tool_timeout', toolName: 'slow', timeoutMs: 50, name: 'ToolTimeoutError' });
  });

  test('fails when the function throws or gives no text [TOOL-F27]', async () => {
    const cause = new Error('no text');
    const broken = invokeFunctionTool(slow({ timeoutMs: 5, timeoutErrorFunction: () => Promise.reject(cause) }), {});
    const other = invokeFunctionTool(slow({ timeoutMs: 5, timeoutErrorFunction: () => 7 as never }), {});
    const both = Promise.allSettled([broken, other]);
    await vi.advanceTimersByTimeAsync(6);
    expect(await both).toMatchObject([
      { reason: { name: 'ToolCallError', toolName: 'slow', cause } },
      { reason: { message: expect.stringContaining('`timeoutErrorFunction` must return the text') } },
    ]);
  });

  test('fails with raise_exception, whatever the failure function says [TOOL-F27] [TOOL-AC21]', async () => {
    const explain = vi.fn<() => string>(() => 'text');
    const made = slow({ timeoutMs: 1500, timeoutBehavior: 'raise_exception', failureErrorFunction: explain });
    const outcome = Promise.allSettled([invokeFunctionTool(made, {})]);
    await vi.advanceTimersByTimeAsync(1501);
    const [call] = await outcome;
    expect(call).toMatchObject({
      reason: { toolName: 'slow', timeoutMs: 1500, message: expect.stringMatching('1.5 ') },
    });
    expect((call as PromiseRejectedResult).reason).toBeInstanceOf(ToolTimeoutError);
    expect(explain).not.toHaveBeenCalled();
  });

  test('has its signal aborted, with the reason; what it does later is ignored [TOOL-F28] [TOOL-F24]', async () => {
    const seen: unknown[] = [];
    const made = slow({
      timeoutMs: 20,
      execute: (_args, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            seen.push(signal.reason);
            setTimeout(() => reject(new Error('too late')), 100);
          });
        }),
    });
    const unhandled = await unhandledDuring(async () => {
      vi.useRealTimers();
      expect(await invokeFunctionTool(made, {})).toBe("Tool 'slow' timed out after 0.02 seconds.");
      await wait(150);
    });
    expect(seen).toEqual([expect.any(ToolTimeoutError)]);
    expect(unhandled).toEqual([]);
  });

  test('the signal that the caller gave is not touched, and still stops the call [TOOL-F24]', async () => {
    const outer = new AbortController();
    const signals: AbortSignal[] = [];
    const made = slow({
      timeoutMs: 20,
      execute: (_args, { signal }) => {
        signals.push(signal);
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    });
    const first = invokeFunctionTool(made, {}, { signal: outer.signal });
    await vi.advanceTimersByTimeAsync(21);
    await first;
    expect([outer.signal.aborted, signals[0]?.aborted]).toEqual([false, true]);
    const second = Promise.allSettled([invokeFunctionTool(made, {}, { signal: outer.signal })]);
    outer.abort('stop');
    expect(await second).toEqual([{ status: 'rejected', reason: 'stop' }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('there is no limit for a call whose signal was aborted before it began: whoever aborted decides how long to wait', async () => {
    const made = slow({ timeoutMs: 20, execute: () => wait(50).then(() => 'rolled back') });
    const output = invokeFunctionTool(made, {}, { signal: AbortSignal.abort('stop') });
    await vi.advanceTimersByTimeAsync(51);
    expect(await output).toBe('rolled back');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('the limit covers arguments and body, not the function that explains a failure [TOOL-F26]', async () => {
    const parsing = tool({
      name: 'slow',
      timeoutMs: 20,
      parameters: z.object({ a: z.string().refine(() => vi.advanceTimersByTime(21)) }),
      execute: () => new Promise((resolve) => setTimeout(resolve, 5)),
    });
    const output = invokeFunctionTool(parsing, { a: 'x' });
    await vi.advanceTimersByTimeAsync(10);
    expect(await output).toBe("Tool 'slow' timed out after 0.02 seconds.");
    const explained = slow({
      timeoutMs: 20,
      execute: () => Promise.reject(new Error('full')),
      failureErrorFunction: (_ctx, error) => new Promise((resolve) => setTimeout(() => resolve(error.message), 500)),
    });
    const text = invokeFunctionTool(explained, {});
    await vi.advanceTimersByTimeAsync(501);
    expect(await text).toBe('full');
  });

  test.each(['value', 'error'])('a %s that comes in the tick of the deadline wins [TOOL-F29]', async (kind) => {
    const made = slow({
      timeoutMs: 20,
      execute: () =>
        new Promise((resolve, reject) =>
          setTimeout(() => (kind === 'value' ? resolve('in time') : reject(new Error('in time'))), 20),
        ),
      failureErrorFunction: (_ctx, error) => `failed ${error.message}`,
    });
    const output = invokeFunctionTool(made, {});
    await vi.advanceTimersByTimeAsync(21);
    expect(await output).toBe(kind === 'value' ? 'in time' : 'failed in time');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a TimeoutError of the tool’s own code is an ordinary failure [TOOL-F30]', async () => {
    for (const thrown of [
      new DOMException('The operation timed out.', 'TimeoutError'),
      new ToolTimeoutError('inner', { toolName: 'inner', timeoutMs: 1 }),
    ]) {
      const made = slow({
        timeoutMs: 20,
        execute: () => Promise.reject(thrown),
        timeoutErrorFunction: () => 'timeout',
        failureErrorFunction: (_ctx, error) => `failed: ${error.name}`,
      });
      expect(await invokeFunctionTool(made, {})).toBe(`failed: ${thrown.name}`);
    }
  });
});

describe('the timer', () => {
  test('is cleared whichever way the call ends [TOOL-F28]', async () => {
    vi.useFakeTimers();
    try {
      const limit = { timeoutMs: 60_000 };
      await invokeFunctionTool(slow({ ...limit, execute: () => 1 }), {});
      await invokeFunctionTool(slow({ ...limit, execute: () => Promise.reject(new Error('x')) }), {});
      await invokeFunctionTool(slow({ ...limit, failureErrorFunction: null, execute: () => 1 }), '[').catch(() => {});
      const later = z.object({ a: z.string().refine(async () => true) });
      const late = tool({ name: 'late', ...limit, parameters: later, execute: () => 1 });
      await expect(invokeFunctionTool(late, { a: 'x' })).rejects.toBeInstanceOf(UserError);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test('keeps a process alive no longer than its call runs, and as long [TOOL-F28]', async () => {
    const program = `
      import { invokeFunctionTool, tool } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)};
      const quick = tool({ name: 'quick', timeoutMs: 600_000, execute: () => 'quick' });
      const stuck = tool({ name: 'stuck', timeoutMs: 30, execute: () => new Promise(() => {}) });
      console.log(await invokeFunctionTool(quick, {}), await invokeFunctionTool(stuck, {}));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 30_000,
    });
    expect(stdout).toBe("quick Tool 'stuck' timed out after 0.03 seconds.\n");
  });
});
