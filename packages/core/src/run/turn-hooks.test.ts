import { afterEach, describe, expect, it } from 'vitest';
import { Agent, getCurrentSpan, getRunErrorState, run, RunAbortedError, runStreamed, RunState } from '../index.ts';
import type { RunHooks, RunOptions } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms, InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import { addTraceProcessor } from '../tracing/processors.ts';
import { effectTool, logged, PlainSession, rejection } from '../../test/run-kit.ts';

// Hooks at the end of turns, and of runs that fail.

afterEach(() => resetDefaults());

const call = (name: string, callId: string) => toolCall(name, {}, { callId });

bothForms((runForm, form) => {
  describe(`onTurnEnd (${form})`, () => {
    it('runs once a turn is in the session and before the next model call, with what it decided [RUN-812]', async () => {
      const session = new PlainSession();
      const b = new Agent({ name: 'B', model: new ScriptedModel(['done']) });
      const model = new ScriptedModel([[call('t', 'c1')], [call('transfer_to_b', 'h1')]]);
      const a = new Agent({ name: 'A', model, tools: [effectTool('t', [])], handoffs: [b] });
      const log: unknown[] = [];
      const hooks: RunHooks = {
        onTurnEnd: (ctx, { turn, agent, step }) =>
          void log.push([turn, agent.name, step, session.kinds, model.calls.length, ctx.usage.requests]),
        onHandoff: () => void log.push('handoff'),
        onAgentEnd: () => void log.push('agent end'),
        onRunEnd: () => void log.push('run end'),
      };
      await runForm(a, 'go', { session, hooks });
      expect(log).toEqual([
        [1, 'A', 'next_step_run_again', 'u fc fco', 1, 1],
        'handoff',
        [2, 'A', 'next_step_handoff', 'u fc fco fc fco', 2, 2],
        'agent end',
        [3, 'B', 'next_step_final_output', 'u fc fco fc fco m', 2, 3],
        'run end',
      ]);
    });

    it('has a state that goes on behind the turn, as it was then, and nothing is done twice [RUN-812]', async () => {
      const effects: string[] = [];
      const b = new Agent({ name: 'B', model: new ScriptedModel(['done', 'again', 'and again']) });
      const model = new ScriptedModel([
        [call('t', 'c1')],
        [call('transfer_to_b', 'h1')],
        [call('transfer_to_b', 'h2')],
      ]);
      const a = new Agent({ name: 'A', model, tools: [effectTool('t', effects)], handoffs: [b] });
      const states: RunState[] = [];
      const hooks: RunHooks = { onTurnEnd: (_ctx, { toState }) => void states.push(toState()) };
      await runForm(a, 'go', { hooks });
      const [first, second, third] = states;
      if (!first || !second || !third) throw new Error('three turns');
      expect(
        states.map((state) => [state.currentTurn, state.status, state.newItems.length, state.currentAgent?.name]),
      ).toEqual([
        [1, 'ready', 2, 'A'],
        [2, 'ready', 4, 'B'],
        [3, 'completed', 5, 'B'],
      ]);
      const fromFirst = await runForm(a, first);
      const fromSecond = await runForm(a, await RunState.fromString(a, second.toString()));
      expect([fromFirst.finalOutput, fromSecond.finalOutput, effects.length]).toEqual(['again', 'and again', 1]);
    });

    it('runs for a turn that pauses, and again when its resume ends it [RUN-812]', async () => {
      const model = new ScriptedModel([[call('g', 'c1')], 'done']);
      const a = new Agent({ name: 'A', model, tools: [effectTool('g', [], { needsApproval: true })] });
      const log: unknown[] = [];
      const hooks: RunHooks = {
        onTurnEnd: (_ctx, { turn, step, toState }) => void log.push([turn, step, toState().interruptions.length]),
      };
      const paused = await runForm(a, 'go', { hooks });
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      await runForm(a, state, { hooks });
      expect(log).toEqual([
        [1, 'next_step_interruption', 1],
        [1, 'next_step_run_again', 0],
        [2, 'next_step_final_output', 0],
      ]);
    });

    it('runs under the span of the agent, when that of the turn is closed [RUN-812]', async () => {
      const processor = new InMemoryTraceProcessor();
      addTraceProcessor(processor);
      const a = new Agent({
        name: 'A',
        model: new ScriptedModel([[call('t', 'c1')], 'done']),
        tools: [effectTool('t', [])],
      });
      const spans: unknown[] = [];
      const hooks: RunHooks = {
        onTurnEnd: async (ctx) => {
          await Promise.resolve();
          spans.push([
            ctx.span?.type,
            getCurrentSpan()?.type,
            processor.spans.filter(({ type }) => type === 'turn').length,
          ]);
        },
      };
      await runForm(a, 'go', { hooks, tracingDisabled: false });
      expect(spans).toEqual([
        ['agent', 'agent', 1],
        ['agent', 'agent', 2],
      ]);
    });

    it('fails the run when it fails, which goes on behind the turn [RUN-812]', async () => {
      const effects: string[] = [];
      const model = new ScriptedModel([[call('t', 'c1')], 'done']);
      const a = new Agent({ name: 'A', model, tools: [effectTool('t', effects)] });
      const error = await rejection(
        runForm(a, 'go', {
          hooks: {
            onTurnEnd: () => {
              throw new Error('hook');
            },
          },
        }),
      );
      expect(error).toMatchObject({ message: 'hook' });
      expect(model.calls).toHaveLength(1);
      const result = await runForm(a, getRunErrorState(error) as RunState);
      expect([result.finalOutput, effects]).toEqual(['done', ['t -']]);
    });

    it('does not run for a turn that fails [RUN-812]', async () => {
      let ended = 0;
      const a = new Agent({ name: 'A', model: new ScriptedModel([{ error: new Error('down') }]) });
      await rejection(runForm(a, 'go', { hooks: { onTurnEnd: () => void (ended += 1) } }));
      expect(ended).toBe(0);
    });
  });

  describe(`onError (${form})`, () => {
    const failing = (error: unknown): Agent => new Agent({ name: 'A', model: new ScriptedModel([{ error }]) });

    it('runs once for a run that fails, with the error that it fails with, before the run has ended [RUN-812]', async () => {
      const log: unknown[] = [];
      const failure = new Error('down');
      const agent = failing(failure);
      const error = await rejection(
        runForm(agent, 'go', {
          hooks: {
            onError: async (ctx, at, thrown) => {
              await Promise.resolve();
              log.push([
                'error',
                at === agent,
                thrown === failure,
                ctx.usage.requests,
                getRunErrorState(thrown) !== undefined,
              ]);
            },
            onRunEnd: (_ctx, outcome) => void log.push(outcome),
          },
        }),
      );
      expect(error).toBe(failure);
      expect(log).toEqual([['error', true, true, 1, true], 'failed']);
    });

    it('runs for what fails before the run has begun, its session for one [RUN-812]', async () => {
      const session = new PlainSession();
      session.failReads = true;
      const seen: unknown[] = [];
      const error = await rejection(
        runForm(failing('x'), 'go', { session, hooks: { onError: (_c, _a, e) => void seen.push(e) } }),
      );
      expect(seen).toEqual([error]);
    });

    it('is not told of a run that ends well or is aborted [RUN-812]', async () => {
      const seen: unknown[] = [];
      const hooks: RunHooks = { onError: (_c, _a, error) => void seen.push(error) };
      await runForm(new Agent({ name: 'A', model: new ScriptedModel(['ok']) }), 'go', { hooks });
      const controller = new AbortController();
      const model = new ScriptedModel([{ output: 'x', delayMs: 60_000 }]);
      const options: RunOptions = {
        signal: controller.signal,
        hooks: { ...hooks, onLlmStart: () => void setImmediate(() => controller.abort()) },
      };
      const cut = await rejection(
        form === 'plain'
          ? run(new Agent({ name: 'A', model }), 'go', options)
          : runStreamed(new Agent({ name: 'A', model }), 'go', options).completed,
      );
      expect(cut).toBeInstanceOf(RunAbortedError);
      expect(seen).toEqual([]);
    });

    it('that fails itself is logged, and the error of the run stands [RUN-812]', async () => {
      const records = logged({ level: 'error' });
      const failure = new Error('down');
      const error = await rejection(
        runForm(failing(failure), 'go', {
          hooks: {
            onError: () => {
              throw new Error('hook');
            },
          },
        }),
      );
      expect(error).toBe(failure);
      expect(records.filter(({ message }) => message.includes('onError'))).toHaveLength(1);
    });
  });
});

it('onTurnEnd does not start in a run that was cancelled while its turn was stored [RUN-812, 1412]', async () => {
  const session = new PlainSession();
  const { addItems } = session;
  session.addItems = async (items) => {
    if (items.length > 1) stream.cancel();
    await addItems(items);
  };
  const a = new Agent({
    name: 'A',
    model: new ScriptedModel([[call('t', 'c1')], 'done']),
    tools: [effectTool('t', [])],
  });
  let ended = 0;
  const stream = runStreamed(a, 'go', { session, hooks: { onTurnEnd: () => void (ended += 1) } });
  expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
  expect([ended, session.kinds]).toEqual([0, 'u fc fco']);
});

it.each<[string, unknown, RegExp]>([
  ['those of an agent', { onStart() {} }, /agent\.hooks/],
  ['a number', 5, /5/],
])(
  'hooks of a run that are none are a TypeError before anything starts: %s [RUN#33, RUN-105, 801]',
  async (_, hooks, message) => {
    const model = new ScriptedModel(['x']);
    const a = new Agent({ name: 'A', model });
    const error = await rejection(run(a, 'go', { hooks } as never));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toMatch(message);
    expect(() => runStreamed(a, 'go', { hooks } as never)).toThrow(TypeError);
    expect(model.calls).toEqual([]);
  },
);
