import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  ModelBehaviorError,
  run,
  RunAbortedError,
  runStreamed,
  RunState,
  tool,
  ToolCallError,
} from '../index.ts';
import type {
  AgentOptions,
  FunctionTool,
  LogRecord,
  ResponseOutputItem,
  ResponseStreamEvent,
  RunItem,
  RunOptions,
  RunResultBase,
  RunStreamEvent,
} from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import {
  effectTool,
  idle,
  kindsOf,
  namesOf,
  PlainSession,
  readAll,
  rejection,
  unhandledDuring,
} from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

/** A completed search of the provider. */
const search = (id = 'ws_1'): ResponseOutputItem => ({
  type: 'web_search_call',
  id,
  status: 'completed',
  action: { type: 'search', query: 'q' },
});

const wires = (items: readonly RunItem[] | undefined): string =>
  (items ?? [])
    .map((item) => (item.type === 'tool_approval_item' ? 'waits' : kindsOf([item.rawItem as object])))
    .join(' ');

/** A tool that fails the run after some rounds of the event loop. */
const failing = (name: string, error: unknown, rounds = 0, needsApproval = false): FunctionTool<unknown> =>
  tool({
    name,
    needsApproval,
    failureErrorFunction: null,
    execute: async () => {
      await idle(rounds);
      throw error;
    },
  });

const batches = (writes: readonly unknown[][]): string[] => writes.map((batch) => kindsOf(batch as object[]));

/** What results, errors and states have in common. */
const seen = (of: Pick<RunResultBase, 'newItems' | 'toInputList'> & Partial<RunResultBase>): unknown[] => [
  wires(of.newItems),
  kindsOf(of.toInputList()),
  ...(of.rawResponses ? [of.rawResponses.length] : []),
];

describe('the data of a failed turn', () => {
  it('ends with the turn before when a tool failed alone: no item, no response, nothing stored [RUN-509, RUN-1802, RUN-1203]', async () => {
    const { plain } = await symmetry({
      setUp: ({ session }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t'), [text('hm'), toolCall('boom')]]),
          tools: [effectTool('t', []), failing('boom', new Error('b'))],
        }),
        input: 'go',
        options: { session: session('s') },
      }),
    });
    const data = getRunErrorDetails(plain.error);
    expect(data && seen(data)).toEqual(['fc fco', 'u fc fco', 1]);
    expect([data?.lastAgent.name, data?.context.usage.requests]).toEqual(['A', 2]);
    expect(batches(plain.writes)).toEqual(['u', 'fc fco']);
    // Its state knows more: the model is not asked for the turn again, and the call is in doubt.
    const state = getRunErrorState(plain.error) as RunState;
    expect([state.status, state.toJSON()['model_responses']]).toMatchObject(['interrupted', [{}, {}]]);
    expect(seen(state)).toEqual(['fc fco', 'u fc fco']);
    expect(kindsOf(state.toInputList({ mode: 'normalized' }))).toBe('u fc fco');
  });

  it('has the response where a part of its turn is kept; finished work of the provider is such a part [RUN-509, RUN-1802]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ session }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t'), [reasoning('r'), search(), toolCall('boom')]]),
          tools: [effectTool('t', []), failing('boom', new Error('b'))],
        }),
        input: 'go',
        options: { session: session('s') },
      }),
    });
    const data = getRunErrorDetails(plain.error);
    expect(data && seen(data)).toEqual(['fc fco reasoning web_search_call', 'u fc fco reasoning web_search_call', 2]);
    expect(batches(plain.writes)).toEqual(['u', 'fc fco', 'reasoning web_search_call']);
    expect(namesOf(streamed.events).filter((name) => name === 'tool_output')).toHaveLength(1);
  });

  it('does not have the response that could not be processed, nor its items [RUN-1802, RUN-402, RUN-1304]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ session }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t'), [search(), toolCall('nobody')]]),
          tools: [effectTool('t', [])],
        }),
        input: 'go',
        options: { session: session('s') },
      }),
    });
    const data = getRunErrorDetails(plain.error);
    expect(data && seen(data)).toEqual(['fc fco', 'u fc fco', 1]);
    expect(batches(plain.writes)).toEqual(['u', 'fc fco']);
    expect(getRunErrorState(plain.error)?.status).toBe('ready');
    expect(namesOf(streamed.events).at(-1)).toBe('R');
  });
});

bothForms((runForm, form) => {
  describe(`work of the provider in a failed turn without tools (${form})`, () => {
    it('is kept and stored once; the state asks the model again behind it [RUN-509, RUN-305, RUN-1802]', async () => {
      const session = new PlainSession();
      const model = new ScriptedModel([[reasoning('r'), search(), text('first')], 'second']);
      const agent = new Agent({ name: 'A', model });
      const own = new Error('end');
      const error = await rejection(
        runForm(agent, 'go', { session, hooks: { onAgentEnd: () => Promise.reject(own) } }),
      );
      expect(error).toBe(own);
      const data = getRunErrorDetails(error);
      expect(data && seen(data)).toEqual(['reasoning web_search_call', 'u reasoning web_search_call', 1]);
      expect(session.kinds).toBe('u reasoning web_search_call');
      const live = getRunErrorState(error) as RunState;
      expect([live.status, live.currentStep?.type]).toEqual(['ready', 'next_step_run_again']);
      const result = await runForm(agent, await RunState.fromString(agent, live.toString()), { session });
      expect(result.finalOutput).toBe('second');
      expect(seen(result)).toEqual(['reasoning web_search_call m', 'u reasoning web_search_call m', 2]);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u reasoning web_search_call');
      expect(session.kinds).toBe('u reasoning web_search_call m');
    });

    it('is there without a session too: the state is ready for the next call, not over [RUN-305, RUN-509]', async () => {
      const agent = new Agent({ name: 'A', model: new ScriptedModel([[search(), text('first')], 'second']) });
      const error = await rejection(
        runForm(agent, 'go', { hooks: { onAgentEnd: () => Promise.reject(new Error('end')) } }),
      );
      const restored = await RunState.fromString(agent, String(getRunErrorState(error)));
      expect([restored.status, restored.currentStep?.type]).toEqual(['ready', 'next_step_run_again']);
      expect(kindsOf((await runForm(agent, restored)).toInputList())).toBe('u web_search_call m');
    });

    it('is stored also where the answer is no valid output [RUN-509, RUN-604]', async () => {
      const session = new PlainSession();
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[search(), text('no json')]]),
        outputType: z.object({ n: z.number() }),
      });
      expect(await rejection(runForm(agent, 'go', { session }))).toBeInstanceOf(ModelBehaviorError);
      expect(session.kinds).toBe('u web_search_call');
    });
  });

  describe(`a resumed pass that fails (${form})`, () => {
    /** Both calls of a response are approved; the first one runs, the second one fails. */
    const broken = async () => {
      const effects: string[] = [];
      const session = new PlainSession();
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([
          [toolCall('ok', {}, { callId: 'c1' }), toolCall('bad', {}, { callId: 'c2' })],
          'done',
        ]),
        tools: [effectTool('ok', effects, { needsApproval: true }), failing('bad', new Error('b'), 3, true)],
      });
      const state = (await runForm(agent, 'go', { session })).toState();
      for (const item of state.interruptions) state.approve(item);
      return { effects, session, agent, state };
    };
    const shown = ['fc fc waits waits fco', 'u fc fc fco', 1];

    it('shows the items of the pause and what it committed, on the error, its state and the state that was passed in [RUN-1802, STATE-140, STATE-212, STATE-150]', async () => {
      const { effects, session, agent, state } = await broken();
      const error = await rejection(runForm(agent, state, { session }));
      expect(error).toBeInstanceOf(ToolCallError);
      const data = getRunErrorDetails(error);
      expect(data && seen(data)).toEqual(shown);
      const left = getRunErrorState(error) as RunState;
      const restored = await RunState.fromString(agent, left.toString());
      for (const one of [left, state, restored]) {
        expect(seen(one)).toEqual(shown.slice(0, 2));
        // Committed and not yet delivered: the history of the session gets it with the pass that succeeds.
        expect(one.toJSON()['session_items']).toHaveLength(4);
        expect(one.toJSON()['generated_items']).toHaveLength(5);
      }
      expect([session.kinds, effects]).toEqual(['u fc fc', ['ok -']]);
    });
  });
});

describe('the members of a stream', () => {
  it('show after a failure what the error shows [STATE-140, RUN-1423, RUN-1203]', async () => {
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([[toolCall('ok', {}, { callId: 'c1' }), toolCall('bad', {}, { callId: 'c2' })]]),
      tools: [effectTool('ok', [], { needsApproval: true }), failing('bad', new Error('b'), 3, true)],
    });
    const state = (await run(agent, 'go')).toState();
    for (const item of state.interruptions) state.approve(item);
    const stream = runStreamed(agent, state);
    const error = await rejection(readAll(stream));
    const data = getRunErrorDetails(error);
    expect(seen(stream)).toEqual(['fc fc waits waits fco', 'u fc fc fco', 1]);
    expect(data && seen(data)).toEqual(seen(stream));
    expect(stream.toInputList({ mode: 'normalized' })).toEqual(stream.toInputList());
  });

  it('hold finished work only after a cancel: of a turn that was cut neither items nor response [RUN-1413, RUN-1203, RUN-1406]', async () => {
    let begun: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (begun = resolve));
    const stuck = tool({ name: 'stuck', execute: () => (begun(), new Promise(() => undefined)) });
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([toolCall('t'), [toolCall('t'), toolCall('stuck')]]),
      tools: [effectTool('t', []), stuck],
    });
    const stream = runStreamed(agent, 'go');
    await running;
    await idle();
    // While the tools of the second turn run, the first one is what there is.
    expect(seen(stream)).toEqual(['fc fco', 'u fc fco', 1]);
    expect(stream.lastResponseId).toBe('resp_1');
    stream.cancel();
    expect(seen(stream)).toEqual(['fc fco', 'u fc fco', 1]);
    const error = await rejection(stream.completed);
    expect(error).toBeInstanceOf(RunAbortedError);
    const data = getRunErrorDetails(error);
    expect(data && seen(data)).toEqual(['fc fco', 'u fc fco', 1]);
    expect(stream.context.usage.requests).toBe(2);
  });
});

bothForms((runForm, form) => {
  describe(`calls side by side, one of which fails (${form})`, () => {
    it('end within the grace, also with one that does not listen: its signal has fired, its late result is dropped [RUN#41, RUN-508, RUN-511, RUN-512, IL-134]', async () => {
      let finish: () => void = () => undefined;
      let signal: AbortSignal | undefined;
      const deaf = tool({
        name: 'deaf',
        execute: async (_args, ctx) => {
          signal = ctx.signal;
          await new Promise<void>((resolve) => (finish = resolve));
          throw new Error('late');
        },
      });
      const own = new Error('a');
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('deaf'), toolCall('a')]]),
        tools: [deaf, failing('a', own, 1)],
      });
      const unhandled = await unhandledDuring(async () => {
        const error = await rejection(runForm(agent, 'go'));
        expect(error).toMatchObject({ name: 'ToolCallError', toolName: 'a', cause: own });
        expect([signal?.aborted, signal?.reason]).toEqual([true, error]);
        const before = getRunErrorState(error)?.toString();
        finish();
        await idle();
        expect(getRunErrorState(error)?.toString()).toBe(before);
        expect(getRunErrorDetails(error)?.newItems).toEqual([]);
      });
      expect(unhandled).toEqual([]);
    });

    it('fail with what went wrong first, not with what a stopped sibling throws; abort errors count least [RUN-508, TOOL-X8]', async () => {
      const obedient = (name: string, error: () => Error): FunctionTool<unknown> =>
        tool({
          name,
          failureErrorFunction: null,
          execute: (_args, { signal }) =>
            new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(error()))),
        });
      const aborted = Object.assign(new Error('stopped'), { name: 'AbortError' });
      const play = async (steps: ResponseOutputItem[], tools: FunctionTool<unknown>[]): Promise<unknown> =>
        await rejection(runForm(new Agent({ name: 'A', model: new ScriptedModel([steps]), tools }), 'go'));
      const cause = new Error('cause');
      expect(
        await play(
          [toolCall('first'), toolCall('bad')],
          [obedient('first', () => new Error('stopped')), failing('bad', cause, 1)],
        ),
      ).toMatchObject({ cause });
      // Something that was merely aborted gives way to a failure, whenever that came.
      const late = await play([toolCall('odd'), toolCall('bad')], [failing('odd', aborted), failing('bad', cause, 1)]);
      expect([late, (late as Error).cause]).toContain(cause);
      expect(
        await play([toolCall('one'), toolCall('two')], [failing('one', cause), failing('two', new Error('second'))]),
      ).toMatchObject({ cause });
    });

    it('tell their model calls and tools of the caller`s abort [RUN-511, IL-135]', async () => {
      const controller = new AbortController();
      const signals: (AbortSignal | undefined)[] = [];
      const watching = tool({
        name: 'watching',
        execute: async (_args, ctx) => {
          signals.push(ctx.signal);
          controller.abort('enough');
          await idle();
          return 'ok';
        },
      });
      const model = new ScriptedModel([
        ({ request }) => {
          signals.push(request.signal);
          return toolCall('watching');
        },
      ]);
      const agent = new Agent({ name: 'A', model, tools: [watching] });
      const error = await rejection(runForm(agent, 'go', { signal: controller.signal }));
      expect(error).toBeInstanceOf(RunAbortedError);
      expect(signals.map((signal) => [signal?.aborted, signal?.reason])).toEqual([
        [true, error],
        [true, error],
      ]);
    });
  });

  describe(`usage of failures (${form})`, () => {
    const event = (type: string, members: object = {}): ResponseStreamEvent =>
      ({ type, sequence_number: 0, ...members }) as unknown as ResponseStreamEvent;
    const response = { id: 'resp_1', object: 'response', output: [text('half')] };
    const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10 };

    it.each(['incomplete', 'failed'])(
      'counts what a response that ended as %s had cost; the error has that response [RUN#88, RUN-1007, IL-124, IL-131]',
      async (status) => {
        const last = event(`response.${status}`, { response: { ...response, status, usage } });
        const model = new ScriptedModel([toolCall('t'), { events: [last] }]);
        const error = await rejection(runForm(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'go'));
        expect(error).toBeInstanceOf(ModelBehaviorError);
        expect((error as ModelBehaviorError).response?.output).toMatchObject([{ content: [{ text: 'half' }] }]);
        const total = { requests: 2, inputTokens: 7, outputTokens: 3, totalTokens: 10 };
        expect(getRunErrorDetails(error)?.context.usage).toMatchObject(total);
        expect(getRunErrorState(error)?.usage).toMatchObject(total);
      },
    );

    it('counts a request that was lost [RUN-1007]', async () => {
      const agent = new Agent({ name: 'A', model: new ScriptedModel([new Error('no line')]) });
      const error = await rejection(runForm(agent, 'go'));
      expect(getRunErrorDetails(error)?.context.usage).toMatchObject({ requests: 1, totalTokens: 0 });
    });
  });

  describe(`several faults (${form})`, () => {
    it('leave the run with the error of the loop; what fails on the way out is only logged [RUN-1422, RUN-306]', async () => {
      const records: LogRecord[] = [];
      configureLogging({ sink: (record) => void records.push(record) });
      const own = new Error('of the loop');
      const model = Object.assign(new ScriptedModel([own]), {
        onRunEnd: () => Promise.reject(new Error('of the model')),
      });
      const hooks = { onRunEnd: () => Promise.reject(new Error('of the hook')) };
      expect(await rejection(runForm(new Agent({ name: 'A', model }), 'go', { hooks }))).toBe(own);
      expect(records.map(({ level, message }) => [level, /failed while a run ended/.test(message)])).toEqual([
        ['error', true],
        ['error', true],
      ]);
    });
  });

  describe(`the span of the agent (${form})`, () => {
    it('names the failure of the run, except where a model`s behaviour has its own span error [RUN-307, TRACE-E1]', async () => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const fail = async (step: ResponseOutputItem | Error) => {
        recorder.clear();
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([step]),
          tools: [failing('boom', new Error('b'))],
        });
        await rejection(runForm(agent, 'go'));
        return Object.fromEntries(recorder.spans.map((span) => [span.type, span.error?.message]));
      };
      expect(await fail(new Error('down'))).toMatchObject({ agent: 'Error in agent run', turn: undefined });
      expect(await fail(toolCall('boom'))).toMatchObject({ agent: 'Error in agent run', function: expect.any(String) });
      expect(await fail(toolCall('nobody'))).toMatchObject({ agent: undefined, turn: 'Tool not found' });
    });
  });
});

describe('the reader of a failing stream', () => {
  const slowly = async (
    stream: AsyncIterable<RunStreamEvent>,
  ): Promise<{ events: RunStreamEvent[]; error: unknown }> => {
    const events: RunStreamEvent[] = [];
    const error = await rejection(
      (async () => {
        for await (const event of stream) {
          events.push(event);
          await idle(20);
        }
      })(),
    );
    return { events, error };
  };

  it('gets the error, and after that only the end; events that it had not taken are dropped [RUN-1421, RUN-705]', async () => {
    const session = new PlainSession();
    session.faults.push(undefined, 'before');
    const stream = runStreamed(new Agent({ name: 'A', model: new ScriptedModel(['done']) }), 'go', { session });
    const { events, error } = await slowly(stream);
    expect(error).toBe(session.error);
    // The first event was there before the run failed.
    expect(namesOf(events)).toEqual(['agent A']);
    expect(await readAll(stream)).toEqual([]);
    expect([stream.status, stream.error]).toEqual(['failed', error]);
  });

  it('gets the events up to the one that says how the response failed [RUN-705, RUN-1308]', async () => {
    const last = { type: 'response.failed', sequence_number: 1, response: { id: 'r', status: 'failed', output: [] } };
    const events = [{ type: 'response.created', sequence_number: 0, response: { id: 'r', output: [] } }, last] as never;
    const slow = await slowly(runStreamed(new Agent({ name: 'A', model: new ScriptedModel([{ events }]) }), 'go'));
    expect(slow.error).toBeInstanceOf(ModelBehaviorError);
    expect(namesOf(slow.events, { raw: true })).toEqual(['agent A', 'response.created', 'response.failed']);
  });

  it('gets what was kept of the failing turn, however slowly it reads [RUN-705, RUN-1421]', async () => {
    const agent = new Agent({
      name: 'A',
      model: new ScriptedModel([[toolCall('t'), toolCall('boom')]]),
      tools: [effectTool('t', []), failing('boom', new Error('b'), 2)],
    });
    const { events, error } = await slowly(runStreamed(agent, 'go'));
    expect(error).toBeInstanceOf(ToolCallError);
    expect(namesOf(events)).toEqual(['agent A', 'R', 'tool_called', 'tool_called', 'tool_output']);
  });
});

bothForms((runForm, form) => {
  describe(`what a callback of the user throws (${form})`, () => {
    const down = new Error('down');
    const fails = (): never => {
      throw down;
    };
    const rejects = (): Promise<never> => Promise.reject(down);
    const t = tool({ name: 't', execute: () => 'ok' });
    const nowhere = Object.assign(new PlainSession(), { getItems: rejects });
    const cases: readonly [string, Partial<AgentOptions>, RunOptions][] = [
      ['instructions', { instructions: fails }, {}],
      ['instructions, later', { instructions: rejects }, {}],
      ['instructions beside a prompt', { instructions: rejects, prompt: { id: 'p' } }, {}],
      ['prompt', { prompt: rejects }, {}],
      ['isEnabled', { tools: [t.copyWith({ isEnabled: fails })] }, {}],
      ['getModel', { model: 'm' }, { modelProvider: { getModel: fails } }],
      ['callModelInputFilter', {}, { callModelInputFilter: rejects }],
      ['sessionInputCallback', {}, { session: new PlainSession(), sessionInputCallback: fails }],
      ['getItems', {}, { session: nowhere }],
      ['onRunStart', {}, { hooks: { onRunStart: fails } }],
      ['onStart', { hooks: { onStart: rejects } }, {}],
      ['onLlmStart', {}, { hooks: { onLlmStart: fails } }],
    ];
    it.each(cases)(
      'rejects the run as it is, and no model is asked: %s [TOOL-A22, RUN-402]',
      async (_, own, options) => {
        const model = new ScriptedModel(['never said']);
        const agent = new Agent({ name: 'A', model, tools: [t], ...own });
        expect(await rejection(runForm(agent, 'x', options))).toBe(down);
        expect(model.calls).toEqual([]);
      },
    );

    it.each([
      ['toolUseBehavior', { toolUseBehavior: rejects }, {}],
      ['onLlmEnd', {}, { hooks: { onLlmEnd: fails } }],
      ['onToolStart', {}, { hooks: { onToolStart: fails } }],
      ['onToolEnd', { hooks: { onToolEnd: rejects } }, {}],
    ] satisfies typeof cases)(
      'rejects the run as it is, and no model is asked again: %s [TOOL-Y15]',
      async (_, own, options) => {
        const model = new ScriptedModel([toolCall('t'), 'never said']);
        const agent = new Agent({ name: 'A', model, tools: [t], ...own });
        expect(await rejection(runForm(agent, 'x', options))).toBe(down);
        expect(model.calls).toHaveLength(1);
      },
    );
  });
});
