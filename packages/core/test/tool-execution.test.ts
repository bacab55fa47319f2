import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  RunAbortedError,
  RunState,
  runStreamed,
  tool,
  ToolCallError,
  UserError,
} from '../src/index.ts';
import type { AgentInputItem, FunctionTool, RunItem, RunOptions, ToolContext } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { idle, PlainSession, rejection, unhandledDuring } from './run-kit.ts';
import { symmetry } from './symmetry.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  resetDefaults();
});

const call = (name: string, args: object = {}) => toolCall(name, args, { callId: name });
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A tool that fails the run after so many milliseconds. */
const failing = (name: string, ms: number, thrown: unknown = new Error(name)) =>
  tool({
    name,
    failureErrorFunction: null,
    execute: async () => {
      await wait(ms);
      throw thrown;
    },
  });

/** A tool that ends when its signal is aborted, with that reason; it writes it down. */
const attentive = (name: string, reasons: unknown[]) =>
  tool({
    name,
    execute: (_args, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason);
          reject(signal.reason as Error);
        });
      }),
  });

/** A tool that never ends, whatever its signal says. */
const deaf = (name: string) => tool({ name, execute: () => new Promise(() => {}) });

const kindsAndIds = (items: readonly RunItem[]): string[] =>
  items.map((item) => {
    const kind = { tool_call_item: 'call', tool_call_output_item: 'output', tool_approval_item: 'waits' };
    const id = 'callId' in item ? ` ${item.callId}` : '';
    return `${kind[item.type as keyof typeof kind] ?? item.type}${id}`;
  });
const outputsIn = (input: readonly AgentInputItem[] = []): unknown[] =>
  input.flatMap((item) => (item.type === 'function_call_output' ? [item.output] : []));

describe('order and caps', () => {
  /** A tool that counts how many of it run. */
  function counted(name: string, log: string[], counts: { running: number; most: number }) {
    return tool({
      name,
      parameters: z.object({ ms: z.number(), until: z.string().default('') }),
      execute: async ({ ms, until }, ctx) => {
        log.push(ctx.toolCallId);
        counts.running += 1;
        counts.most = Math.max(counts.most, counts.running);
        do await wait(ms);
        while (!['', ...log].includes(until));
        counts.running -= 1;
      },
    });
  }
  const five = [30, 5, 5, 20, 1].map((ms, index) => toolCall('work', { ms }, { callId: `c${index + 1}` }));

  bothForms((run, form) => {
    it(`calls start all at once, or so many at once, free places in their order (${form}) [TOOL-X1, TOOL-X2, TOOL-X26]`, async () => {
      for (const [cap, most] of [
        [undefined, 5],
        [null, 5],
        [2, 2],
        [1, 1],
      ] as const) {
        const log: string[] = [];
        const counts = { running: 0, most: 0 };
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([five, 'done']),
          tools: [counted('work', log, counts)],
        });
        const result = await run(agent, 'hi', { toolExecution: { maxFunctionToolConcurrency: cap } });
        expect([cap, counts.most, log]).toEqual([cap, most, ['c1', 'c2', 'c3', 'c4', 'c5']]);
        expect(result.newItems.filter((item) => item.type === 'tool_call_output_item')).toHaveLength(5);
      }
    });

    it(`a tool can have a cap of its own; it holds up no other tool, and nothing waits for ever (${form}) [TOOL-X2, TOOL-F6]`, async () => {
      const log: string[] = [];
      const [own, other] = [
        { running: 0, most: 0 },
        { running: 0, most: 0 },
      ];
      const tools = [counted('own', log, own).copyWith({ maxConcurrency: 1 }), counted('other', log, other)];
      const calls = ['own 1', 'own 2', 'other 3', 'own 4', 'other 5', 'other 6'].map((id) =>
        toolCall(id.split(' ')[0] ?? '', { ms: 5, ...(id === 'own 1' && { until: 'other 6' }) }, { callId: id }),
      );
      const agent = new Agent({ name: 'A', model: new ScriptedModel([calls, 'done']), tools });
      const result = await run(agent, 'hi', { toolExecution: { maxFunctionToolConcurrency: 3 } });
      expect(result.finalOutput).toBe('done');
      expect([own.most, other.most]).toEqual([1, 2]);
      // Of those that may start, the first in the order of the calls does.
      expect(log).toEqual(['own 1', 'other 3', 'other 5', 'other 6', 'own 2', 'own 4']);
    });

    it(`one call alone adds no timer and no turn of the event loop (${form}) [TOOL-X5]`, async () => {
      const timers = (['setTimeout', 'setImmediate', 'setInterval'] as const).map((name) => vi.spyOn(globalThis, name));
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([call('work'), 'done']),
        tools: [tool({ name: 'work', execute: () => 1 })],
      });
      const result = await run(agent, 'hi', { toolExecution: { maxFunctionToolConcurrency: 1 } });
      expect(result.finalOutput).toBe('done');
      for (const timer of timers) expect(timer).not.toHaveBeenCalled();
    });
  });

  it.each([0, -1, 1.5, Number.NaN, '2'])('a cap of %s is refused [TOOL-X2]', async (cap) => {
    const options = { toolExecution: { maxFunctionToolConcurrency: cap } } as RunOptions;
    expect(() => runStreamed(new Agent({ name: 'A', model: new ScriptedModel() }), 'hi', options)).toThrow(UserError);
  });

  it('results stand in the order of the calls, a waiting one in its place, unknown ones behind [TOOL-X4, TOOL-AC2]', async () => {
    const { streamed } = await symmetry({
      setUp: () => {
        const model = new ScriptedModel([
          [call('ghost'), call('slow'), call('gated'), call('rejected'), call('fast')],
          'done',
        ]);
        const tools = [
          tool({ name: 'slow', execute: () => wait(50) }),
          tool({ name: 'fast', execute: () => wait(5) }),
          tool({ name: 'gated', needsApproval: true, execute: () => 1 }),
          tool({ name: 'rejected', needsApproval: true, execute: () => 1 }),
        ];
        const onApproval: RunOptions['onApproval'] = (_ctx, { callId }) =>
          callId === 'rejected' ? { type: 'reject' } : undefined;
        return {
          agent: new Agent({ name: 'A', model, tools }),
          input: 'hi',
          options: { onApproval, toolNotFoundBehavior: 'return_error_to_model' },
        };
      },
    });
    expect(kindsAndIds(streamed.result?.newItems ?? []).slice(5)).toEqual([
      'output slow',
      'waits gated',
      'output rejected',
      'output fast',
      'output ghost',
    ]);
  });

  it('a resume runs what waited, and nothing again; results stand in the order of the calls [TOOL-X14, TOOL-X30, TOOL-X4]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ log }) => {
        const make = (name: string, needsApproval: boolean, ms = 0) =>
          tool({
            name,
            needsApproval,
            execute: async () => {
              log.push(name);
              await wait(ms);
              return name;
            },
          });
        const tools = [make('a', true, 20), make('b', false), make('c', true)];
        const model = new ScriptedModel([[call('a'), call('b'), call('c')], 'done']);
        return { agent: new Agent({ name: 'A', model, tools }), input: 'hi' };
      },
      goOn: async (first, go, { log }) => {
        expect(log).toEqual(['b']);
        expect(first.result?.interruptions.map((item) => item.callId)).toEqual(['a', 'c']);
        const state = first.result?.toState() as RunState;
        for (const item of state.interruptions) state.approve(item);
        return await go(first.result?.lastAgent as never, state);
      },
    });
    expect(streamed.log).toEqual(['b', 'a', 'c']);
    expect(outputsIn(streamed.result?.toInputList())).toEqual(['b', 'a', 'c']);
  });
});

bothForms((run, form) => {
  describe(`a call that fails the run (${form})`, () => {
    const agentOf = (tools: readonly FunctionTool[], calls = tools.map(({ name }) => call(name))) =>
      new Agent({ name: 'A', model: new ScriptedModel([calls]), tools });

    it('stops what runs, with the failure as reason; what had not started never does [TOOL-X6, TOOL-X27, TOOL-AC22, TOOL-F24]', async () => {
      const reasons: unknown[] = [];
      let started = 0;
      const queued = tool({ name: 'c', execute: () => ++started });
      const cause = new Error('a');
      const error = await rejection(
        run(agentOf([failing('a', 5, cause), attentive('b', reasons), queued]), 'hi', {
          toolExecution: { maxFunctionToolConcurrency: 2 },
        }),
      );
      expect(error).toMatchObject({ name: 'ToolCallError', toolName: 'a', cause });
      expect(reasons).toEqual([error]);
      await idle(5);
      expect(started).toBe(0);
      expect(JSON.stringify(getRunErrorState(error))).toContain('"executed":false');
    });

    it('keeps the body of a call from beginning whose start hooks still run [TOOL-X6, TOOL-Y16]', async () => {
      const log: string[] = [];
      const b = tool({ name: 'b', execute: () => void log.push('body') });
      const hooks: RunOptions['hooks'] = {
        onToolStart: async (ctx) => {
          if (ctx.toolCallId !== 'b') return;
          await wait(20);
          log.push('hook ended');
        },
      };
      expect(await rejection(run(agentOf([failing('a', 5), b]), 'hi', { hooks }))).toMatchObject({ toolName: 'a' });
      expect(log).toEqual(['hook ended']);
    });

    it('waits for siblings that were told to stop, 250 ms at most [TOOL-X6, TOOL-X28, TOOL-X12, RUN-512]', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      let ended = false;
      const outcome = rejection(run(agentOf([failing('a', 5), deaf('b')]), 'hi')).finally(() => (ended = true));
      await vi.advanceTimersByTimeAsync(5);
      await idle();
      await vi.advanceTimersByTimeAsync(249);
      await idle();
      expect(ended).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(await outcome).toMatchObject({ message: 'Error running tool a: a' });
      expect(vi.getTimerCount()).toBe(0);
    });

    it('waits no longer than they take [TOOL-X6]', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const log: string[] = [];
      const tidy = tool({
        name: 'b',
        execute: async (_args, { signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          await idle(3);
          log.push('tidied up');
        },
      });
      const outcome = rejection(run(agentOf([failing('a', 5), tidy]), 'hi'));
      await vi.advanceTimersByTimeAsync(5);
      await outcome;
      expect(log).toEqual(['tidied up']);
      expect(vi.getTimerCount()).toBe(0);
    });

    it('waits for each kind of sibling as long as it may take, not for one because of the other [TOOL-X6]', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const hooks: RunOptions['hooks'] = { onToolEnd: () => wait(5000) };
      const tidy = tool({
        name: 'c',
        execute: async (_args, { signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          await wait(150);
        },
      });
      let settled = false;
      const tools = [failing('a', 5), tool({ name: 'b', execute: () => 1 }), tidy];
      const outcome = rejection(run(agentOf(tools), 'hi', { hooks })).finally(() => (settled = true));
      await idle();
      await vi.advanceTimersByTimeAsync(5);
      await idle();
      await vi.advanceTimersByTimeAsync(149);
      await idle();
      expect(settled).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      await idle();
      expect(settled).toBe(true);
      await outcome;
    });

    it('takes nothing of a cancelled sibling: no failure function, no end hook, no output; late errors are no rejections [TOOL-X7]', async () => {
      const records: string[] = [];
      configureLogging({ level: 'debug', sink: ({ level, message }) => void records.push(`${level}: ${message}`) });
      const log: string[] = [];
      const late = (name: string, ms: number) =>
        tool({
          name,
          failureErrorFunction: () => {
            log.push(`failure of ${name}`);
            return 'text';
          },
          execute: async (_args, { signal }) => {
            await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
            await wait(ms);
            throw new Error(`x9-secret of ${name}`);
          },
        });
      const done = tool({
        name: 'done',
        execute: async (_args, { signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          return 'too late';
        },
      });
      const unhandled = await unhandledDuring(async () => {
        const hooks: RunOptions['hooks'] = { onToolEnd: (ctx) => void log.push(`end of ${ctx.toolCallId}`) };
        const error = await rejection(
          run(agentOf([late('b', 5), failing('a', 5), late('c', 320), done]), 'hi', { hooks }),
        );
        expect(error).toMatchObject({ message: 'Error running tool a: a' });
        expect(getRunErrorDetails(error)?.newItems).toEqual([]);
        await wait(150);
        expect(getRunErrorDetails(error)?.newItems).toEqual([]);
      });
      expect([log, unhandled]).toEqual([[], []]);
      expect(records.filter((line) => line.includes('failed after its turn had ended'))).toHaveLength(1);
      expect(records.join()).not.toContain('x9-secret');
    });

    it('lets siblings that have only to commit do so, 100 ms at most; their pairs are kept [TOOL-X29, TOOL-AC23, TOOL-X10, TOOL-Y10]', async () => {
      for (const [hookMs, ends] of [
        [40, true],
        [5000, false],
      ] as const) {
        vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
        const log: unknown[] = [];
        const quick = tool({ name: 'b', execute: () => 'b is done' });
        const signals: AbortSignal[] = [];
        const contexts: ToolContext[] = [];
        const hooks: RunOptions['hooks'] = {
          onToolEnd: async (ctx) => {
            if (ends) signals.push(ctx.signal);
            contexts.push(ctx);
            await wait(hookMs);
            log.push('hook ended');
          },
        };
        const session = new PlainSession();
        let settled = false;
        const outcome = rejection(run(agentOf([failing('a', 5), quick]), 'hi', { hooks, session })).finally(
          () => (settled = true),
        );
        // The first run with a session loads what it needs for that.
        while (contexts.length === 0) await idle(1);
        await vi.advanceTimersByTimeAsync(5);
        await idle(5);
        await vi.advanceTimersByTimeAsync(ends ? 40 : 99);
        await idle(10);
        expect(settled).toBe(ends);
        if (!ends) await vi.advanceTimersByTimeAsync(1);
        const error = await outcome;
        expect(error).toMatchObject({ message: 'Error running tool a: a' });
        expect(log).toEqual(ends ? ['hook ended'] : []);
        // Whether it looked at it before the failure or looks now.
        for (const signal of [...signals, contexts[0]?.signal]) expect(signal?.aborted).toBe(false);
        expect(kindsAndIds(getRunErrorDetails(error)?.newItems ?? [])).toEqual(['call b', 'output b']);
        expect(session.items).toMatchObject([
          { role: 'user' },
          { call_id: 'b' },
          { call_id: 'b', output: 'b is done' },
        ]);
        vi.useRealTimers();
      }
    });

    it('of a resumed turn leaves outputs that are there in the state, and no resume repeats them [TOOL-X29, TOOL-AC23, TOOL-P7]', async () => {
      let bodies = 0;
      let fails = true;
      const quick = tool({ name: 'b', needsApproval: true, execute: () => `b ${++bodies}` });
      const broken = tool({
        name: 'a',
        needsApproval: true,
        failureErrorFunction: null,
        execute: async () => {
          await wait(5);
          if (fails) throw new Error('a');
          return 'a';
        },
      });
      const agent = agentOf([broken, quick]);
      const log: string[] = [];
      const hooks: RunOptions['hooks'] = {
        onToolEnd: async (ctx) => {
          await wait(20);
          log.push(`end of ${ctx.toolCallId}`);
        },
      };
      const state = (await run(agent, 'hi')).toState();
      for (const item of state.interruptions) state.approve(item);
      const error = await rejection(run(agent, state, { hooks }));
      expect(error).toBeInstanceOf(ToolCallError);
      expect(log).toEqual(['end of b']);
      expect(outputsIn(state.toInputList())).toEqual(['b 1']);
      fails = false;
      const again = await rejection(run(agent, state, { hooks }));
      expect(again).toMatchObject({
        code: 'call_executed_uncommitted',
        message: expect.stringMatching(/was started, and no output was committed/),
      });
      expect(bodies).toBe(1);
    });

    it('alone leaves nothing of its turn; with finished siblings their pairs, in the order of the calls [TOOL-X10, TOOL-Z2]', async () => {
      const alone = await rejection(run(agentOf([failing('a', 1)]), 'hi'));
      expect(getRunErrorDetails(alone)?.newItems).toEqual([]);
      const quick = (name: string, ms: number) => tool({ name, execute: () => wait(ms) });
      const error = await rejection(run(agentOf([quick('b', 8), failing('a', 30), quick('c', 1), deaf('d')]), 'hi'));
      const details = getRunErrorDetails(error);
      expect(kindsAndIds(details?.newItems ?? [])).toEqual(['call b', 'call c', 'output b', 'output c']);
      expect(details).toMatchObject({
        input: 'hi',
        lastAgent: { name: 'A' },
        rawResponses: [{ responseId: 'resp_1' }],
      });
      expect(getRunErrorState(error)).toBeInstanceOf(RunState);
      expect(getRunErrorState(error)?.status).toBe('interrupted');
    });

    it('is wrapped with its name unless it is an error of ours, which passes [TOOL-Z2, RUN-508]', async () => {
      const ours = new UserError('ours');
      expect(await rejection(run(agentOf([failing('a', 1, ours)]), 'hi'))).toBe(ours);
      expect(await rejection(run(agentOf([failing('a', 1, 'words')]), 'hi'))).toMatchObject({
        message: 'Error running tool a: words',
        runData: { input: 'hi' },
      });
    });
  });

  describe(`several failures (${form})`, () => {
    const abortError = () => new DOMException('gone', 'AbortError');
    const run2 = async (tools: readonly FunctionTool[], options: RunOptions = {}) =>
      await rejection(
        run(
          new Agent({ name: 'A', model: new ScriptedModel([tools.map(({ name }) => call(name))]), tools }),
          'hi',
          options,
        ),
      );

    it('of one moment: the first in the order of the calls counts [TOOL-X8]', async () => {
      const boom = (name: string) =>
        tool({ name, failureErrorFunction: null, execute: () => Promise.reject(new Error(name)) });
      expect(await run2([boom('a'), boom('b')])).toMatchObject({ toolName: 'a' });
    });

    it('an abort error counts only when there is nothing else [TOOL-X8]', async () => {
      const aborts = tool({
        name: 'a',
        failureErrorFunction: () => {
          throw abortError();
        },
        execute: () => Promise.reject(new Error('a')),
      });
      const error = await run2([aborts]);
      expect(error).toBeInstanceOf(ToolCallError);
      const hooks: RunOptions['hooks'] = {
        onToolStart: async (ctx) => {
          if (ctx.toolCallId === 'a') throw abortError();
          await wait(10);
          throw new Error('hook of b');
        },
      };
      const both = await run2([deaf('a'), deaf('b')], { hooks });
      expect(both).toMatchObject({ message: 'hook of b' });
      const alone = await run2([deaf('a')], { hooks });
      expect(alone).toMatchObject({ name: 'AbortError' });
      expect(alone).not.toBeInstanceOf(RunAbortedError);
    });

    it('an error of a call that had only to commit outranks that of a tool [TOOL-X8]', async () => {
      const hooks: RunOptions['hooks'] = {
        onToolEnd: async () => {
          await wait(30);
          throw new Error('end hook of b');
        },
      };
      const quick = tool({ name: 'b', execute: () => 'b' });
      expect(await run2([failing('a', 5), quick], { hooks })).toMatchObject({ message: 'end hook of b' });
    });

    it('what the caller’s abort or the failure itself made of siblings does not hide it [TOOL-X8, TOOL-X27]', async () => {
      const reacts = tool({
        name: 'first',
        failureErrorFunction: null,
        execute: (_args, { signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('a reaction')))),
      });
      expect(await run2([reacts, failing('second', 5)])).toMatchObject({ toolName: 'second' });
      const controller = new AbortController();
      setTimeout(() => controller.abort('enough'), 5);
      const aborted = await run2([reacts, failing('second', 8)], { signal: controller.signal });
      expect(aborted).toBeInstanceOf(RunAbortedError);
      expect(aborted).toMatchObject({ cause: 'enough' });
    });
  });

  describe(`an abort by the caller (${form})`, () => {
    it('reaches every call; the run waits for none that ignores it [TOOL-X11, TOOL-F24]', async () => {
      const reasons: unknown[] = [];
      const controller = new AbortController();
      const tools = [attentive('a', reasons), attentive('b', reasons), deaf('c')];
      const agent = new Agent({ name: 'A', model: new ScriptedModel([tools.map(({ name }) => call(name))]), tools });
      setTimeout(() => controller.abort('enough'), 5);
      const error = await rejection(run(agent, 'hi', { signal: controller.signal }));
      expect(error).toMatchObject({ name: 'AbortError', cause: 'enough' });
      expect(reasons).toEqual([error, error]);
    }, 3000);
  });
});

describe('a cancel of the stream', () => {
  it('aborts the signals of running calls, with a reason that tells [TOOL-F24]', async () => {
    const reasons: unknown[] = [];
    const slow = attentive('a', reasons);
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel([call('a')]), tools: [slow] }), 'hi');
    setTimeout(() => stream.cancel({ mode: 'immediate' }), 5);
    await stream.completed.catch(() => {});
    expect(reasons).toEqual([expect.any(RunAbortedError)]);
  });

  it('after the turn leaves the calls of the turn alone [TOOL-F24]', async () => {
    const signals: AbortSignal[] = [];
    const slow = tool({
      name: 'a',
      execute: async (_args, { signal }) => {
        signals.push(signal);
        stream.cancel({ mode: 'after_turn' });
        await wait(5);
        return signal.aborted;
      },
    });
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel([call('a')]), tools: [slow] }), 'hi');
    expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
    expect(stream.newItems.at(-1)).toMatchObject({ output: false });
    expect(signals[0]?.aborted).toBe(false);
  });
});

describe('a tool that does not look at its signal', () => {
  beforeEach(() => configureLogging({ level: 'silent' }));

  it('goes on when the run has ended; nothing comes of it [TOOL-X12, TOOL-X7]', async () => {
    let ended = false;
    const slow = tool({
      name: 'b',
      execute: async () => {
        await wait(400);
        ended = true;
        return 'late';
      },
    });
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([[call('a'), call('b')]]),
      tools: [failing('a', 1), slow],
    });
    const error = await rejection(runStreamed(agent, 'hi').completed);
    const before = JSON.stringify(getRunErrorState(error));
    expect(ended).toBe(false);
    await wait(300);
    expect(ended).toBe(true);
    expect(JSON.stringify(getRunErrorState(error))).toBe(before);
    expect(before).not.toContain('late');
  });
});
