import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { RunContext } from '../index.ts';
import type { LogRecord, RunOptions } from '../index.ts';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  MaxTurnsExceededError,
  ModelBehaviorError,
  ModelRefusalError,
  run,
  RunAbortedError,
  Runner,
  runStreamed,
  RunState,
  tool,
  ToolCallError,
  UserError,
} from '../index.ts';

import { bothForms, reasoning, refusal, resetDefaults, ScriptedModel, text, toolCall } from '../testing/index.ts';
import { symmetry } from '../../test/symmetry.ts';
import { user } from '../../test/run-kit.ts';

/** A tool that counts its calls. */
function counting(name: string, options: { needsApproval?: boolean; result?: unknown; log?: string[] } = {}) {
  const calls: unknown[] = [];
  const made = tool({
    name,
    parameters: z.object({ id: z.string().default('-') }),
    needsApproval: options.needsApproval ?? false,
    execute: (args) => {
      calls.push(args.id);
      options.log?.push(`${name} ${args.id}`);
      return options.result ?? 'ok';
    },
  });
  return { tool: made, calls };
}

describe('a run', () => {
  it('answers with the message, and keeps input, items and responses [RUN#1, RUN-102, 227, 601, 1201]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: () => {
        const model = new ScriptedModel(['hi']);
        return { agent: new Agent({ name: 'A', model }), input: 'test' };
      },
    });
    for (const { result } of [plain, streamed]) {
      expect(result?.status).toBe('completed');
      expect(result?.finalOutput).toBe('hi');
      expect(result?.input).toBe('test');
      expect(result?.newItems.map((item) => item.type)).toEqual(['message_output_item']);
      expect(result?.rawResponses).toHaveLength(1);
      expect(result?.lastAgent.name).toBe('A');
      expect(result?.toInputList()).toEqual([
        user('test'),
        expect.objectContaining({ type: 'message', role: 'assistant' }),
      ]);
      expect(result?.interruptions).toEqual([]);
    }
  });

  it('gives the model a list with the one user message [RUN#1, RUN-227]', async () => {
    const model = new ScriptedModel(['hi']);
    await run(new Agent({ name: 'A', model }), 'test');
    expect(model.calls[0]?.request.input).toEqual([user('test')]);
  });

  it('runs a tool once and asks the model again with call and output [RUN#2, RUN-401, 410, 507]', async () => {
    const inputs: unknown[] = [];
    const { plain } = await symmetry({
      setUp: ({ hooks }) => {
        const lookup = counting('lookup');
        const model = new ScriptedModel([
          toolCall('lookup', { id: '7' }),
          (call) => {
            inputs.push(call.request.input);
            return 'done';
          },
        ]);
        return { agent: new Agent({ name: 'A', model, tools: [lookup.tool] }), input: 'go', options: { hooks } };
      },
    });
    expect(plain.result?.newItems.map((item) => item.type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
      'message_output_item',
    ]);
    expect(inputs[0]).toEqual([
      user('go'),
      expect.objectContaining({ type: 'function_call', call_id: 'call_1' }),
      { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
    ]);
    expect(plain.result?.rawResponses).toHaveLength(2);
    expect(plain.result?.context.usage.requests).toBe(2);
    expect(plain.log).toEqual([
      'runStart A',
      'agentStart A',
      'llmStart A - 1',
      'llmEnd A 1',
      'toolStart lookup call_1',
      'toolEnd lookup call_1 "ok"',
      'llmStart A - 3',
      'llmEnd A 2',
      'agentEnd A "done"',
      'runEnd completed',
    ]);
  });

  it('ends with "" when a text agent gets an empty response [RUN#18, RUN-409, 1204]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({ agent: new Agent({ name: 'A', model: new ScriptedModel([[]]) }), input: 'x' }),
    });
    expect(plain.result?.status).toBe('completed');
    expect(plain.result?.finalOutput).toBe('');
  });

  it('asks again when a structured agent gets an empty response [RUN#17, RUN-409, 602, 605]', async () => {
    const { plain } = await symmetry({
      setUp: () => {
        const model = new ScriptedModel([[], '{"n":1}']);
        return {
          agent: new Agent({ name: 'A', model, outputType: z.object({ n: z.number(), m: z.string().default('d') }) }),
          input: 'x',
        };
      },
    });
    expect(plain.result?.finalOutput).toEqual({ n: 1, m: 'd' });
    expect(plain.result?.rawResponses).toHaveLength(2);
  });

  it('fails when the final text does not fit the output type, without its text in the message [RUN-604, 1902]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel(['secret no json']),
          outputType: z.object({ n: z.number() }),
        }),
        input: 'x',
      }),
    });
    expect(plain.error).toBeInstanceOf(ModelBehaviorError);
    expect((plain.error as Error).message).not.toContain('secret');
    expect((plain.error as ModelBehaviorError).runData).toBeUndefined();
  });

  it('turns a refusal into ModelRefusalError [RUN-603]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({ agent: new Agent({ name: 'A', model: new ScriptedModel([refusal('no')]) }), input: 'x' }),
    });
    expect(plain.error).toBeInstanceOf(ModelRefusalError);
    expect((plain.error as ModelRefusalError).refusal).toBe('no');
  });

  it('calls instructions once per turn with the context and the agent [TOOL-A7, RUN-401]', async () => {
    const seen: unknown[] = [];
    const model = new ScriptedModel([toolCall('lookup'), 'done']);
    const agent: Agent<{ who: string }> = new Agent({
      name: 'A',
      model,
      instructions: (ctx: RunContext<{ who: string }>, self) => {
        seen.push(self);
        return `Serve ${ctx.context.who}.`;
      },
      tools: [counting('lookup').tool],
    });
    await run(agent, 'x', { context: { who: 'Ana' } });
    expect(seen).toEqual([agent, agent]);
    expect(model.calls.map((call) => call.request.systemInstructions)).toEqual(['Serve Ana.', 'Serve Ana.']);
  });
});

describe('limits of turns', () => {
  it('makes no model call and calls no hook with maxTurns 0 [RUN#8, RUN-703]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, log }) => {
        const model = new ScriptedModel([
          () => {
            log.push('model');
            return 'x';
          },
        ]);
        return {
          agent: new Agent({ name: 'A', model }),
          input: 'x',
          options: { maxTurns: 0, hooks, callModelInputFilter: ({ modelData }) => (log.push('filter'), modelData) },
        };
      },
    });
    expect(plain.error).toBeInstanceOf(MaxTurnsExceededError);
    expect((plain.error as Error).message).toBe('Max turns (0) exceeded');
    expect(plain.log).toEqual(['runStart A', 'runEnd failed']);
  });

  it('fails after exactly so many calls, with all outputs in the data of the error [RUN#6, RUN-703, 704, 705]', async () => {
    const { streamed } = await symmetry({
      setUp: () => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('lookup'), toolCall('lookup')]),
          tools: [counting('lookup').tool],
        }),
        input: 'x',
        options: { maxTurns: 2 },
      }),
    });
    expect((streamed.error as Error).message).toBe('Max turns (2) exceeded');
    const items = getRunErrorDetails(streamed.error)?.newItems ?? [];
    expect(items.map((item) => item.type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
      'tool_call_item',
      'tool_call_output_item',
    ]);
    expect(
      streamed.events.filter((event) => event.type === 'run_item_stream_event').map((event) => event.name),
    ).toEqual(['tool_called', 'tool_output', 'tool_called', 'tool_output']);
  });

  it('goes on from the state of the error with a higher limit, with exactly the call that was refused [RUN#9, RUN-110, 715]', async () => {
    const inputs: unknown[] = [];
    await symmetry({
      setUp: () => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([
            toolCall('lookup'),
            (call) => {
              inputs.push(call.request.input);
              return 'done';
            },
          ]),
          tools: [counting('lookup').tool],
        }),
        input: 'x',
        options: { maxTurns: 1 },
      }),
      goOn: async (outcome, go) => {
        const state = getRunErrorState(outcome.error);
        expect(state?.status).toBe('ready');
        const again = await go((outcome.error as MaxTurnsExceededError).runData?.lastAgent as never, state as never, {
          maxTurns: 3,
        });
        expect(again.result?.finalOutput).toBe('done');
        expect(again.result?.currentTurn).toBe(2);
        expect(again.result?.maxTurns).toBe(3);
        return again;
      },
    });
    expect(inputs[0]).toHaveLength(3);
    expect(inputs[1]).toEqual(inputs[0]);
  });

  it('has no limit with null [RUN#7, RUN-701]', async () => {
    const steps = Array.from({ length: 30 }, (_, index) => toolCall('lookup', { id: String(index) }));
    const result = await run(
      new Agent({ name: 'A', model: new ScriptedModel([...steps, 'end']), tools: [counting('lookup').tool] }),
      'x',
      { maxTurns: null },
    );
    expect(result.finalOutput).toBe('end');
    expect(result.currentTurn).toBe(31);
  });
});

describe('calls of tools', () => {
  it('fails on an unknown tool after onLlmEnd, and announces nothing of the response [RUN#36, RUN-402, 514, 1304]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ hooks }) => ({
        agent: new Agent({ name: 'A', model: new ScriptedModel([[text('hm'), toolCall('x')]]) }),
        input: 'go',
        options: { hooks },
      }),
    });
    expect(streamed.error).toBeInstanceOf(ModelBehaviorError);
    expect((streamed.error as Error).message).toBe('Tool x not found in agent A');
    expect(streamed.log).toContain('llmEnd A 1');
    expect(streamed.events.filter((event) => event.type === 'run_item_stream_event')).toEqual([]);
  });

  it('tells the model about an unknown tool when asked to, behind what the other calls gave [RUN#37, RUN-514, 241, TOOL-X4]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([[toolCall('x'), toolCall('lookup')], 'done']),
          tools: [counting('lookup').tool],
        }),
        input: 'go',
        options: {
          toolNotFoundBehavior: 'return_error_to_model',
          toolErrorFormatter: ({ kind, toolName }) => `${kind}: ${toolName}`,
        },
      }),
    });
    const outputs = plain.result?.newItems
      .filter((item) => item.type === 'tool_call_output_item')
      .map((item) => item.output);
    expect(outputs).toEqual(['ok', 'tool_not_found: x']);
  });

  it('refuses a call id that comes again with other arguments, before the second runs [RUN#38, RUN-406]', async () => {
    const calls: string[] = [];
    const { plain } = await symmetry({
      setUp: () => {
        calls.length = 0;
        return {
          agent: new Agent({
            name: 'A',
            model: new ScriptedModel([
              toolCall('lookup', { id: 'a' }, { callId: 'c1' }),
              toolCall('lookup', { id: 'b' }, { callId: 'c1' }),
            ]),
            tools: [counting('lookup', { log: calls }).tool],
          }),
          input: 'x',
        };
      },
    });
    expect((plain.error as ModelBehaviorError).code).toBe('call_id_reused');
    expect((plain.error as Error).message).toContain('c1');
    expect(calls).toEqual(['lookup a']);
  });

  it('runs an identical repeated call once, and asks the model again [RUN#39, RUN-406, STATE-153]', async () => {
    const calls: string[] = [];
    const { plain } = await symmetry({
      setUp: () => {
        calls.length = 0;
        const call = toolCall('lookup', { id: 'a' }, { callId: 'c1' });
        return {
          agent: new Agent({
            name: 'A',
            model: new ScriptedModel([call, [reasoning('again'), call], 'done']),
            tools: [counting('lookup', { log: calls }).tool],
          }),
          input: 'x',
        };
      },
    });
    expect(plain.result?.finalOutput).toBe('done');
    expect(calls).toEqual(['lookup a']);
    expect(plain.result?.newItems.map((item) => item.type)).toEqual([
      'tool_call_item',
      'tool_call_output_item',
      'message_output_item',
    ]);
  });

  it.each([
    { cap: undefined, together: 2 },
    { cap: 1, together: 1 },
  ])(
    'runs calls side by side, with a cap of $cap at most $together at once; outputs stay in call order [RUN#40, RUN-213, 507, TOOL-X25]',
    async ({ cap, together }) => {
      await symmetry({
        setUp: () => {
          let running = 0;
          let most = 0;
          const slow = (name: string, turns: number) =>
            tool({
              name,
              execute: async () => {
                running += 1;
                most = Math.max(most, running);
                for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve));
                running -= 1;
                return `${name} ${most}`;
              },
            });
          return {
            agent: new Agent({
              name: 'A',
              model: new ScriptedModel([[toolCall('a'), toolCall('b')], 'done']),
              tools: [slow('a', 5), slow('b', 1)],
            }),
            input: 'x',
            options: { toolExecution: { maxFunctionToolConcurrency: cap } },
          };
        },
        goOn: async (outcome) => {
          const outputs = outcome.result?.newItems.flatMap((item) =>
            item.type === 'tool_call_output_item' ? [item.output] : [],
          );
          expect(outputs).toEqual([`a ${together}`, `b ${together}`]);
          return outcome;
        },
      });
    },
  );

  it('gives the model a fixed text for a failing tool, and fails the run where the tool says so [RUN-508, 513, TOOL-F19, F21]', async () => {
    const boom = (failureErrorFunction: null | undefined) =>
      tool({
        name: 'boom',
        failureErrorFunction,
        execute: () => {
          throw new Error('secret');
        },
      });
    const soft = await symmetry({
      setUp: () => ({
        agent: new Agent({ name: 'A', model: new ScriptedModel([toolCall('boom'), 'done']), tools: [boom(undefined)] }),
        input: 'x',
      }),
    });
    expect(soft.plain.result?.newItems[1]?.rawItem).toMatchObject({
      output: 'An error occurred while running the tool. Please try again.',
    });
    const hard = await symmetry({
      setUp: () => ({
        agent: new Agent({ name: 'A', model: new ScriptedModel([toolCall('boom')]), tools: [boom(null)] }),
        input: 'x',
      }),
    });
    expect(hard.plain.error).toBeInstanceOf(ToolCallError);
    expect((hard.plain.error as ToolCallError).cause).toMatchObject({ message: 'secret' });
  });

  it('keeps what a sibling finished before another call failed, in data, session and events [RUN#86, RUN-509, 516, 705]', async () => {
    const { streamed } = await symmetry({
      setUp: ({ session }) => {
        const fast = tool({ name: 'fast', execute: () => 'quick' });
        const late = tool({
          name: 'late',
          failureErrorFunction: null,
          execute: async () => {
            await new Promise((resolve) => setTimeout(resolve, 5));
            throw new Error('late');
          },
        });
        const model = new ScriptedModel([[reasoning('r1'), toolCall('fast'), reasoning('r2'), toolCall('late')]]);
        return {
          agent: new Agent({ name: 'A', model, tools: [fast, late] }),
          input: 'x',
          options: { session: session('s') },
        };
      },
      goOn: async (outcome, go) => {
        const state = getRunErrorState(outcome.error);
        expect(state?.status).toBe('interrupted');
        const again = await go((outcome.error as ToolCallError).runData?.lastAgent as never, state as never, {
          session: null,
        });
        expect((again.error as ModelBehaviorError).code).toBe('call_executed_uncommitted');
        return outcome;
      },
    });
    expect(getRunErrorDetails(streamed.error)?.newItems.map((item) => item.type)).toEqual([
      'reasoning_item',
      'tool_call_item',
      'tool_call_output_item',
    ]);
    expect(streamed.writes.map((batch) => batch.map((item) => (item as { type?: string }).type ?? 'user'))).toEqual([
      ['user'],
      ['reasoning', 'function_call', 'function_call_output'],
    ]);
    expect(streamed.events.at(-1)).toMatchObject({ type: 'run_item_stream_event', name: 'tool_output' });
  });
});

describe('approvals', () => {
  const paused = {
    setUp: () => {
      const log: string[] = [];
      const gated = counting('refund', { needsApproval: true, log });
      return {
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('refund', { id: '7' }, { callId: 'c1' }), 'done']),
          tools: [gated.tool],
        }),
        input: 'x',
      };
    },
  };

  it.each(['as it is', 'through JSON'])(
    'pauses, and finishes once approved; the state goes on %s [RUN#4, RUN#5, STATE#1, RUN-502, 503]',
    async (way) => {
      const { streamed } = await symmetry({
        ...paused,
        goOn: async (first, go) => {
          expect(first.result?.status).toBe('interrupted');
          expect(first.result?.finalOutput).toBeUndefined();
          expect(first.result?.interruptions).toHaveLength(1);
          expect(first.result?.newItems.map((item) => item.type)).toEqual(['tool_call_item', 'tool_approval_item']);
          const agent = first.result?.lastAgent as never;
          let state = first.result?.toState() as RunState;
          if (way === 'through JSON') state = await RunState.fromString(agent, state.toString());
          for (const item of state.interruptions) state.approve(item);
          const second = await go(agent, state);
          expect(second.result?.finalOutput).toBe('done');
          expect(second.result?.context.usage.requests).toBe(2);
          return { ...second, events: [...first.events, ...second.events] };
        },
      });
      expect(streamed.result?.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_approval_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
      expect(streamed.result?.toInputList().map((item) => item.type ?? 'user')).toEqual([
        'user',
        'function_call',
        'function_call_output',
        'message',
      ]);
      const names = streamed.events.flatMap((event) =>
        event.type === 'run_item_stream_event'
          ? [event.name]
          : [event.type === 'agent_updated_stream_event' ? 'agent' : 'raw'],
      );
      expect(names.filter((name) => name !== 'raw')).toEqual([
        'agent',
        'tool_called',
        'tool_approval_requested',
        'agent',
        'tool_output',
        'message_output_created',
      ]);
    },
  );

  it('gives the model the rejection text and runs nothing [STATE-111, 112, TOOL-F36]', async () => {
    const { plain } = await symmetry({
      ...paused,
      goOn: async (first, go) => {
        const state = first.result?.toState() as RunState;
        for (const item of state.interruptions) state.reject(item, { message: 'not today' });
        return await go(first.result?.lastAgent as never, state);
      },
    });
    expect(plain.result?.newItems[2]?.rawItem).toEqual({
      type: 'function_call_output',
      call_id: 'c1',
      output: 'not today',
    });
  });

  it('pauses again with one warning when the decision was made on another state [RUN#98, RUN-115]', async () => {
    await symmetry({
      ...paused,
      goOn: async (first, go) => {
        const other = first.result?.toState() as RunState;
        for (const item of other.interruptions) other.approve(item);
        const again = await go(first.result?.lastAgent as never, first.result?.toState() as RunState);
        expect(again.result?.status).toBe('interrupted');
        expect(again.result?.interruptions.map((item) => item.callId)).toEqual(['c1']);
        expect(again.result?.newItems).toHaveLength(2);
        return again;
      },
    });
  });

  it('refuses a second run on a state that is in use, and leaves the first alone [RUN#81, RUN-113, STATE-209]', async () => {
    let release = (): void => undefined;
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('refund', {}, { callId: 'c1' }), 'done']),
      tools: [
        tool({
          name: 'refund',
          needsApproval: true,
          execute: () => new Promise<string>((resolve) => (release = () => resolve('ok'))),
        }),
      ],
    });
    const first = await run(agent, 'x');
    const state = first.toState();
    const restored = await RunState.fromString(agent, state.toString());
    for (const item of state.interruptions) state.approve(item);
    const going = run(agent, state);
    await expect(run(agent, state)).rejects.toMatchObject({ code: 'state_busy' });
    expect(() => runStreamed(agent, state)).toThrow(expect.objectContaining({ code: 'state_busy' }));
    await new Promise((resolve) => setImmediate(resolve));
    release();
    expect((await going).finalOutput).toBe('done');
    expect((await run(agent, restored)).status).toBe('interrupted');
  });
});

describe('entry checks', () => {
  const agent = new Agent({ name: 'A', model: new ScriptedModel([]) });

  it('refuses unknown options by name, before anything starts [RUN#99, RUN-104]', async () => {
    const wrong = { maxTurn: 3 } as RunOptions;
    await expect(run(agent, 'x', wrong)).rejects.toThrow(/maxTurn/);
    expect(() => runStreamed(agent, 'x', wrong)).toThrow(UserError);
    expect(() => new Runner(wrong)).toThrow(/maxTurn/);
  });

  it('refuses what is no agent and no input [RUN-105]', async () => {
    await expect(run({ name: 'x' } as never, 'x')).rejects.toThrow(TypeError);
    await expect(run(agent, 5 as never)).rejects.toThrow(TypeError);
    expect(() => runStreamed(undefined as never, 'x')).toThrow(/undefined/);
  });

  it.each([
    { maxTurns: -1 },
    { maxTurns: 1.5 },
    { toolExecution: { maxFunctionToolConcurrency: 0 } },
    { toolNotFoundBehavior: 'x' },
    { session: 5 },
    { signal: {} },
  ])('refuses the wrong value %j [RUN-104, 211, 213]', async (options) => {
    await expect(run(agent, 'x', options as never)).rejects.toThrow(UserError);
  });
});

describe('abort', () => {
  it('makes no call when the signal has fired already [RUN-112]', async () => {
    const model = new ScriptedModel(['x']);
    const agent = new Agent({ name: 'A', model });
    await expect(run(agent, 'x', { signal: AbortSignal.abort('why') })).rejects.toMatchObject({
      name: 'AbortError',
      cause: 'why',
    });
    const stream = runStreamed(agent, 'x', { signal: AbortSignal.abort() });
    for await (const _ of stream) expect.unreachable();
    expect(stream.status).toBe('cancelled');
    expect(model.calls).toHaveLength(0);
  });

  it('stops a running tool through its signal and leaves a state [RUN#60, RUN-1417]', async () => {
    const controller = new AbortController();
    let seen: unknown;
    const slow = tool({
      name: 'slow',
      execute: (_args, ctx) =>
        new Promise((_, reject) => {
          ctx.signal.addEventListener('abort', () => {
            seen = ctx.signal.reason;
            reject(new Error('stopped'));
          });
          controller.abort('enough');
        }),
    });
    const error = await run(
      new Agent({ name: 'A', model: new ScriptedModel([toolCall('slow')]), tools: [slow] }),
      'x',
      { signal: controller.signal },
    ).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(RunAbortedError);
    expect((error as RunAbortedError).name).toBe('AbortError');
    expect((error as RunAbortedError).cause).toBe('enough');
    expect(seen).toBe(error);
    expect((error as RunAbortedError).state?.status).toBe('interrupted');
  });
});

describe('two runs at once', () => {
  it('do not see each other [RUN#80, RUN-005]', async () => {
    const seen: unknown[] = [];
    const who = tool({
      name: 'who',
      needsApproval: (ctx: RunContext<string>) => ctx.context === 'b',
      execute: (_a, ctx) => void seen.push(ctx.context),
    });
    const script = () =>
      new ScriptedModel([toolCall('who', {}, { callId: 'c1' }), 'done'], { usage: { inputTokens: 1, totalTokens: 1 } });
    const agent = new Agent({ name: 'A', tools: [who] });
    const [a, b] = await Promise.all([
      run(agent, 'x', { context: 'a', model: script() }),
      run(agent, 'y', { context: 'b', model: script() }),
    ]);
    expect(a.finalOutput).toBe('done');
    expect(a.newItems).toHaveLength(3);
    expect(a.context.usage.requests).toBe(2);
    expect(b.status).toBe('interrupted');
    expect(b.context.usage.requests).toBe(1);
    expect(seen).toEqual(['a']);
  });
});

bothForms((runForm, form) =>
  describe(`status (${form})`, () => {
    it('is completed with an output, interrupted with a waiting call [RUN#96, RUN-1225]', async () => {
      const done = await runForm(new Agent({ name: 'A', model: new ScriptedModel(['hi']) }), 'x');
      expect([done.status, done.finalOutput, done.interruptions.length]).toEqual(['completed', 'hi', 0]);
      const waits = await runForm(
        new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t')]),
          tools: [counting('t', { needsApproval: true }).tool],
        }),
        'x',
      );
      expect([waits.status, waits.finalOutput, waits.interruptions.length]).toEqual(['interrupted', undefined, 1]);
      await expect(
        runForm(new Agent({ name: 'A', model: new ScriptedModel([new Error('down')]) }), 'x'),
      ).rejects.toThrow('down');
    });
  }),
);

describe('slips that are told at once', () => {
  const agent = new Agent({ name: 'A', model: new ScriptedModel([]) });

  it('a session without its methods, naming the first that is missing', async () => {
    await expect(run(agent, 'x', { session: {} as never })).rejects.toThrow(/session.*getItems is missing/);
  });

  it('the text of a state in place of the state', async () => {
    const text = (await run(new Agent({ name: 'A', model: new ScriptedModel(['hi']) }), 'x')).toState().toString();
    await expect(run(agent, text)).rejects.toThrow(/RunState\.fromString/);
    expect(() => runStreamed(agent, text)).toThrow(UserError);
  });

  it('a state of a run that began with another agent', async () => {
    const gated = new Agent({
      name: 'First',
      model: new ScriptedModel([toolCall('t')]),
      tools: [counting('t', { needsApproval: true }).tool],
    });
    const state = (await run(gated, 'x')).toState();
    await expect(run(agent, state)).rejects.toMatchObject({ code: 'agent_missing' });
    expect((await run(gated.clone({}), state)).status).toBe('interrupted');
  });

  it('words in place of the options of a decision', async () => {
    const gated = new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('t')]),
      tools: [counting('t', { needsApproval: true }).tool],
    });
    const state = (await run(gated, 'x')).toState();
    const [item] = state.interruptions;
    expect(() => state.reject(item as never, 'too late' as never)).toThrow(/state\.reject\(\) must be an object/);
    expect(() => state.approve(item as never, { alwyas: true } as never)).toThrow(/always/);
    expect(state.getDecisions()).toEqual([]);
  });
});

describe('a tool that throws', () => {
  it('is told to the developer by name and kind, and with its error where the log may show it [RUN-1901, TOOL-F19]', async () => {
    const lines: LogRecord[] = [];
    const boom = tool({
      name: 'boom',
      execute: () => {
        throw new RangeError('secret');
      },
    });
    const go = () =>
      run(new Agent({ name: 'A', model: new ScriptedModel([toolCall('boom'), 'done']), tools: [boom] }), 'x');
    configureLogging({ sink: (line) => void lines.push(line) });
    await go();
    expect(lines).toMatchObject([{ level: 'warn', logger: 'openai.agents.tools' }]);
    expect(lines[0]?.message).toMatch(/boom failed: RangeError/);
    expect(JSON.stringify(lines)).not.toContain('secret');
    configureLogging({ dontLogToolData: false });
    await go();
    expect(lines[1]?.data).toMatchObject({ message: 'secret' });
    resetDefaults();
  });
});
