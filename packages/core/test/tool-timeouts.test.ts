import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent, getRunErrorDetails, tool, ToolTimeoutError } from '../src/index.ts';
import type { RunOptions, ToolOptions } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { setTraceProcessors } from '../src/tracing.ts';
import { rejection, unhandledDuring } from './run-kit.ts';
import { symmetry } from './symmetry.ts';

let recorder: InMemoryTraceProcessor;

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => {
  resetDefaults();
  vi.restoreAllMocks();
});

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
type Options = Partial<ToolOptions<undefined, unknown, unknown>>;

/** A tool that waits on its signal for ever, and writes down why it was aborted. */
function stuck(reasons: unknown[], options: Options = {}) {
  return tool({
    name: 'slow',
    timeoutMs: 20,
    execute: (_args, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason);
          reject(signal.reason as Error);
        });
      }),
    ...options,
  });
}

const spanOf = (name: string) =>
  recorder.spans.find((span) => span.type === 'function' && (span.spanData as { name?: string }).name === name);

describe('a tool that takes too long', () => {
  it('is told to the model as an ordinary output; hooks, custom data and session have the text [TOOL-AC20, TOOL-F27, TOOL-F23]', async () => {
    const text = "Tool 'slow' timed out after 0.02 seconds.";
    const { streamed } = await symmetry({
      setUp: ({ log, hooks, session }) => {
        const reasons: unknown[] = [];
        const slow = stuck(reasons, { failureErrorFunction: () => expect.unreachable() });
        const model = new ScriptedModel([
          toolCall('slow', {}, { callId: 'c1' }),
          () => {
            log.push(`aborted ${reasons.map((reason) => (reason as Error).name).join()}`);
            return 'done';
          },
        ]);
        return {
          agent: new Agent({ name: 'A', model, tools: [slow] }),
          input: 'x',
          options: { hooks, session: session('s'), toolErrorFormatter: () => expect.unreachable() },
        };
      },
    });
    expect(streamed.result?.finalOutput).toBe('done');
    expect(streamed.log).toContain('aborted ToolTimeoutError');
    expect(streamed.log).toContain(`toolEnd slow c1 ${JSON.stringify(text)}`);
    expect(streamed.writes[1]?.[1]).toEqual({ type: 'function_call_output', call_id: 'c1', output: text });
  });

  it('fails the run with raise_exception; what siblings finished is kept [TOOL-AC21, TOOL-F27, RUN-509]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ hooks, session }) => {
        const slow = stuck([], { timeoutBehavior: 'raise_exception', failureErrorFunction: () => 'text' });
        const model = new ScriptedModel([
          [toolCall('quick', {}, { callId: 'c1' }), toolCall('slow', {}, { callId: 'c2' })],
        ]);
        return {
          agent: new Agent({ name: 'A', model, tools: [tool({ name: 'quick', execute: () => 'ok' }), slow] }),
          input: 'x',
          options: { hooks, session: session('s') },
        };
      },
    });
    expect(streamed.error).toBeInstanceOf(ToolTimeoutError);
    expect(streamed.error).toMatchObject({ toolName: 'slow', timeoutMs: 20 });
    expect(getRunErrorDetails(streamed.error)?.newItems.map((item) => item.type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
    ]);
    expect(streamed.log.filter((line) => line.startsWith('toolEnd'))).toEqual(['toolEnd quick c1 "ok"']);
  });
});

bothForms((run, form) => {
  describe(`a tool that takes too long (${form})`, () => {
    it('may end whenever it likes: nothing comes of it any more [TOOL-F45, TOOL-F28]', async () => {
      let ended = 0;
      const slow = tool({
        name: 'slow',
        timeoutMs: 20,
        execute: async () => {
          await wait(200);
          ended += 1;
          throw new Error('late');
        },
      });
      const ends: unknown[] = [];
      const hooks: RunOptions['hooks'] = { onToolEnd: (_ctx, _agent, _tool, result) => void ends.push(result) };
      const unhandled = await unhandledDuring(async () => {
        const model = new ScriptedModel([toolCall('slow'), 'done']);
        const result = await run(new Agent({ name: 'A', model, tools: [slow] }), 'x', { hooks });
        expect(result.newItems).toHaveLength(3);
        await wait(250);
        expect(result.newItems).toHaveLength(3);
      });
      expect([ended, ends, unhandled]).toEqual([1, ["Tool 'slow' timed out after 0.02 seconds."], []]);
    });

    it('is marked as cancelled in its span, with a text or without [TOOL-F27]', async () => {
      const other = stuck([], { name: 'other', timeoutBehavior: 'raise_exception' });
      const model = new ScriptedModel([toolCall('slow'), toolCall('other')]);
      await rejection(run(new Agent({ name: 'A', model, tools: [stuck([]), other] }), 'x'));
      for (const [name, outcome] of [
        ['slow', 'error_handled'],
        ['other', 'error'],
      ] as const) {
        expect(spanOf(name)?.error).toEqual({
          message: 'Tool execution cancelled',
          data: { tool_name: name, error: `Tool '${name}' timed out after 0.02 seconds.` },
        });
        expect(spanOf(name)?.details).toMatchObject({ outcome, errorType: 'ToolTimeoutError' });
      }
    });

    it('is measured from the start of its body to its end: guardrails and start hooks are before and behind it [TOOL-F26]', async () => {
      const started = vi.spyOn(globalThis, 'setTimeout');
      const cleared = vi.spyOn(globalThis, 'clearTimeout');
      const log: string[] = [];
      /** Limits of the tool that began, and those that are over. */
      const note = (where: string): void => {
        const limits = started.mock.results.filter((_, index) => started.mock.calls[index]?.[1] === 60_000);
        const over = limits.filter(({ value }) => cleared.mock.calls.some(([timer]) => timer === value));
        log.push(`${where} ${limits.length} ${over.length}`);
      };
      const judge = (where: string) => ({
        name: where,
        execute: async () => {
          await wait(2);
          note(where);
          return { behavior: { type: 'allow' as const } };
        },
      });
      const quick = tool({
        name: 'quick',
        timeoutMs: 60_000,
        inputGuardrails: [judge('input')],
        outputGuardrails: [judge('output')],
        execute: async () => {
          await wait(2);
          note('body');
          return 'in time';
        },
      });
      const model = new ScriptedModel([toolCall('quick'), 'done']);
      const hooks: RunOptions['hooks'] = {
        onToolStart: async () => {
          await wait(2);
          note('start');
        },
        onToolEnd: () => note('end'),
      };
      const result = await run(new Agent({ name: 'A', model, tools: [quick] }), 'x', { hooks });
      expect(result.newItems[1]).toMatchObject({ output: 'in time' });
      expect(log).toEqual(['input 0 0', 'start 0 0', 'body 1 0', 'output 1 1', 'end 1 1']);
    });

    it('leaves no timer behind when a sibling fails the run first [TOOL-F28, RUN-512]', async () => {
      const started = vi.spyOn(globalThis, 'setTimeout');
      const cleared = vi.spyOn(globalThis, 'clearTimeout');
      const reasons: unknown[] = [];
      const boom = tool({ name: 'boom', failureErrorFunction: null, execute: () => Promise.reject(new Error('boom')) });
      const model = new ScriptedModel([[toolCall('slow'), toolCall('deaf'), toolCall('boom')]]);
      const deaf = tool({ name: 'deaf', timeoutMs: 60_000, execute: () => new Promise(() => {}) });
      const error = await rejection(
        run(new Agent({ name: 'A', model, tools: [stuck(reasons, { timeoutMs: 60_000 }), deaf, boom] }), 'x'),
      );
      expect(error).toMatchObject({ message: 'Error running tool boom: boom' });
      expect(reasons).toEqual([error]);
      const limits = started.mock.results.filter((_, index) => started.mock.calls[index]?.[1] === 60_000);
      expect(limits).toHaveLength(2);
      for (const { value } of limits) expect(cleared).toHaveBeenCalledWith(value);
    });
  });
});
