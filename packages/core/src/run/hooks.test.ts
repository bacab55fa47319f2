import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  getRunErrorDetails,
  getRunErrorState,
  handoff,
  MemorySession,
  run,
  RunAbortedError,
  runStreamed,
  tool,
} from '../index.ts';
import type { AgentHooks, AgentInputItem, Model, ModelResponse, RunHooks, RunState, ToolContext } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, kindsOf, logged, namesOf, PlainSession, readAll, rejection } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

/** An agent with the free tool `t` and the gated tool `g`, whose listing is seen. */
function desk(steps: ModelStep[], log: string[] = [], options: { hooks?: AgentHooks<never> } = {}): Agent {
  const t = tool({ name: 't', isEnabled: () => (log.push('listing'), true), execute: () => (log.push('t'), 'ok') });
  return new Agent({
    name: 'A',
    model: new ScriptedModel(
      steps.map((step) => () => {
        log.push('model');
        return step;
      }),
    ),
    tools: [t, effectTool('g', log, { needsApproval: true })],
    hooks: options.hooks as AgentHooks,
  });
}

const segmentHooks = (log: string[]): RunHooks => ({
  onRunStart: (_ctx, agent) => void log.push(`start ${agent.name}`),
  onRunEnd: (_ctx, outcome) => void log.push(`end ${outcome}`),
  onAgentStart: () => void log.push('agent start'),
});

bothForms((runForm, form) => {
  describe(`hooks around a segment (${form})`, () => {
    it('run once: before listing, other hooks and model, and behind everything [RUN-216, RUN#87, RUN-306]', async () => {
      const log: string[] = [];
      await runForm(desk(['done'], log), 'go', { hooks: segmentHooks(log) });
      expect(log).toEqual(['start A', 'agent start', 'listing', 'model', 'end completed']);
    });

    it('run once in each segment of a paused run; the resume is told before it lists its tools [RUN-216, RUN#87]', async () => {
      const log: string[] = [];
      const agent = desk([toolCall('g')], log);
      const state = (await runForm(agent, 'go', { hooks: segmentHooks(log) })).toState();
      expect(log).toEqual(['start A', 'agent start', 'listing', 'model', 'end interrupted']);
      log.length = 0;
      await runForm(agent, state, { hooks: segmentHooks(log), onApproval: () => void log.push('asked') });
      expect(log).toEqual(['start A', 'listing', 'asked', 'end interrupted']);
    });

    it('do not run where the entry checks refuse the state [RUN-216, RUN#87, RUN-1613]', async () => {
      const log: string[] = [];
      const session = new PlainSession();
      session.faults.push(undefined, 'before');
      const agent = desk(['done'], log);
      const error = await rejection(runForm(agent, 'go', { session }));
      log.length = 0;
      const marked = getRunErrorState(error) as RunState;
      expect(await rejection(runForm(agent, marked, { session, hooks: segmentHooks(log) }))).toMatchObject({
        code: 'state_unrecoverable',
      });
      expect(log).toEqual([]);
    });

    it('are told of a failing run, and a failing start ends it with its error, told too [RUN-216, RUN#87, RUN-306]', async () => {
      const log: string[] = [];
      const down = new Error('down');
      expect(await rejection(runForm(desk([down], log), 'go', { hooks: segmentHooks(log) }))).toBe(down);
      expect(log.at(-1)).toBe('end failed');
      log.length = 0;
      const own = new Error('no start');
      const session = new PlainSession();
      const starting: RunHooks = {
        ...segmentHooks(log),
        onRunStart: () => {
          throw own;
        },
      };
      expect(await rejection(runForm(desk(['never'], log), 'go', { hooks: starting, session }))).toBe(own);
      expect(log).toEqual(['end failed']);
      expect(session.kinds).toBe('');
    });

    it('do not run where the preparation failed before them [RUN-216, RUN-1424]', async () => {
      const log: string[] = [];
      const session = new PlainSession();
      session.failReads = true;
      expect(await rejection(runForm(desk(['never'], log), 'go', { session, hooks: segmentHooks(log) }))).toBe(
        session.error,
      );
      expect(log).toEqual([]);
    });

    it('change nothing when the last one fails: one line in the log [RUN-216, RUN#87, RUN-306]', async () => {
      const records = logged();
      const hooks: RunHooks = { onRunEnd: () => Promise.reject(new Error('secret')) };
      const result = await runForm(desk(['done']), 'go', { hooks });
      expect(result.finalOutput).toBe('done');
      expect(records.map(({ level, message }) => [level, message.includes('onRunEnd')])).toEqual([['error', true]]);
      expect(JSON.stringify(records)).not.toContain('secret');
      const down = new Error('down');
      expect(await rejection(runForm(desk([down]), 'go', { hooks }))).toBe(down);
    });
  });

  describe(`hooks of one event (${form})`, () => {
    it('start together and are both awaited; the first failure counts [RUN-802]', async () => {
      const log: string[] = [];
      const of = (who: string, turns: number, error?: Error) => async (): Promise<void> => {
        log.push(`${who} begins`);
        await idle(turns);
        log.push(`${who} ends`);
        if (error) throw error;
      };
      const agent = desk(['done'], log, { hooks: { onLlmStart: of('agent', 1, new Error('of the agent')) } });
      const error = await rejection(
        runForm(agent, 'go', { hooks: { onLlmStart: of('run', 4, new Error('of the run')) } }),
      );
      expect((error as Error).message).toBe('of the agent');
      expect(log).toEqual(['listing', 'run begins', 'agent begins', 'agent ends', 'run ends']);
    });

    it('are both called when one throws at once [RUN-802]', async () => {
      const log: string[] = [];
      const own = new Error('at once');
      const agent = desk(['done'], [], { hooks: { onStart: () => void log.push('agent') } });
      const hooks: RunHooks = {
        onAgentStart: () => {
          throw own;
        },
      };
      expect(await rejection(runForm(agent, 'go', { hooks }))).toBe(own);
      expect(log).toEqual(['agent']);
    });
  });

  describe(`start hooks (${form})`, () => {
    it('run in the first turn, and again in the first model turn of a resumed segment [RUN-803]', async () => {
      const log: string[] = [];
      const agent = desk([toolCall('t'), toolCall('g', {}, { callId: 'c' }), toolCall('t'), 'done'], log, {
        hooks: { onStart: () => void log.push('own start') },
      });
      const hooks: RunHooks = { onAgentStart: () => void log.push('agent start') };
      const seen = (): string[] => log.filter((line) => line !== 'listing').splice(0);
      const state = (await runForm(agent, 'go', { hooks })).toState();
      expect(seen()).toEqual(['agent start', 'own start', 'model', 't', 'model']);
      log.length = 0;
      // A segment that only pauses again asks no model and starts nobody.
      expect((await runForm(agent, state, { hooks })).status).toBe('interrupted');
      expect(seen()).toEqual([]);
      log.length = 0;
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state, { hooks });
      expect(seen()).toEqual(['g -', 'agent start', 'own start', 'model', 't', 'model']);
    });

    it('see what the model is about to see; instructions and isEnabled see what they did to the context [RUN-804, RUN-411]', async () => {
      const log: unknown[] = [];
      const model = new ScriptedModel([toolCall('t'), 'done']);
      interface Flags {
        on: boolean;
      }
      const agent = new Agent({
        name: 'A',
        model,
        instructions: (ctx: { context: Flags }) => `on: ${ctx.context.on}`,
        tools: [
          tool({
            name: 't',
            isEnabled: (ctx: { context: Flags }) => ctx.context.on,
            execute: (_args, ctx: ToolContext<Flags>) => (log.push(kindsOf(ctx.turnInput)), 'ok'),
          }),
        ],
      });
      await runForm(agent, 'go', {
        context: { on: false },
        hooks: {
          onAgentStart: (ctx) => {
            log.push(kindsOf(ctx.turnInput));
            ctx.context.on = true;
          },
          onLlmStart: (ctx) => void log.push(kindsOf(ctx.turnInput)),
        },
      });
      expect(model.calls[0]?.request.systemInstructions).toBe('on: true');
      expect(model.calls[0]?.request.tools.map((one) => one.name)).toEqual(['t']);
      // Set anew in each turn; the tool of a turn sees what its model saw.
      expect(log).toEqual(['u', 'u', 'u', 'u fc fco']);
    });
  });

  describe(`hooks of model and tools (${form})`, () => {
    it('get exactly what is sent, and usage that counts the response [RUN-809, RUN-810]', async () => {
      const model = new ScriptedModel([toolCall('t'), 'done'], { usage: { inputTokens: 5, totalTokens: 5 } });
      const agent = new Agent({ name: 'A', instructions: 'Be brief.', model, tools: [effectTool('t', [])] });
      const sent: (readonly [string | undefined, readonly AgentInputItem[]])[] = [];
      const usage: number[][] = [];
      const responses: ModelResponse[] = [];
      const result = await runForm(agent, 'go', {
        callModelInputFilter: ({ modelData }) => ({ ...modelData, input: modelData.input.slice(-1) }),
        hooks: {
          onLlmStart: (_ctx, _agent, prompt, input) => void sent.push([prompt, input]),
          onLlmEnd: (ctx, _agent, response) => {
            usage.push([ctx.usage.requests, ctx.usage.inputTokens]);
            responses.push(response);
          },
        },
      });
      expect(sent).toEqual(model.calls.map(({ request }) => [request.systemInstructions, request.input]));
      expect(sent.map(([, input]) => input.length)).toEqual([1, 1]);
      expect(usage).toEqual([
        [1, 5],
        [2, 10],
      ]);
      responses.forEach((response, index) => expect(result.rawResponses[index]).toBe(response));
    });

    it('stand around the body: decision, start, body, output, end, with one context of the call [RUN-806, RUN-809]', async () => {
      const log: unknown[] = [];
      const value = { n: 21 };
      const contexts: unknown[] = [];
      const watch = (name: string) => (ctx: ToolContext, _agent: unknown, _tool: unknown, result?: unknown) => {
        contexts.push(ctx);
        log.push([name, ctx.toolCallId, ctx.toolArguments, ...(name.endsWith('end') ? [result === value] : [])]);
      };
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('gated', '{ "id": 1.0 }', { callId: 'c1' }), 'done']),
        tools: [
          tool({
            name: 'gated',
            needsApproval: () => (log.push('policy'), true),
            execute: (_args, ctx) => {
              contexts.push(ctx);
              log.push('body');
              return value;
            },
          }),
        ],
        hooks: { onToolStart: watch('own start'), onToolEnd: watch('own end') },
      });
      await runForm(agent, 'go', {
        onApproval: () => (log.push('decision'), { type: 'approve' }),
        hooks: { onToolStart: watch('start'), onToolEnd: watch('end') },
      });
      expect(log).toEqual([
        'policy',
        'decision',
        ['start', 'c1', '{ "id": 1.0 }'],
        ['own start', 'c1', '{ "id": 1.0 }'],
        'body',
        ['end', 'c1', '{ "id": 1.0 }', true],
        ['own end', 'c1', '{ "id": 1.0 }', true],
      ]);
      expect(new Set(contexts).size).toBe(1);
    });
  });
});

describe('the log of all hooks', () => {
  it('of a tool turn and a final turn: each once where it belongs, equal in both forms [RUN#31, RUN-808, IL-122, RUN-401]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, log }) => ({
        agent: new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('t', {}, { callId: 'c1' }), 'done']),
          tools: [effectTool('t', [])],
          hooks: {
            onStart: () => void log.push('own start'),
            onLlmStart: () => void log.push('own llmStart'),
            onLlmEnd: () => void log.push('own llmEnd'),
            onToolStart: () => void log.push('own toolStart'),
            onToolEnd: () => void log.push('own toolEnd'),
            onEnd: (_ctx, _agent, output) => void log.push(`own end ${JSON.stringify(output)}`),
          },
        }),
        input: 'go',
        options: { hooks },
      }),
    });
    expect(plain.log).toEqual([
      'runStart A',
      'agentStart A',
      'own start',
      'llmStart A - 1',
      'own llmStart',
      'llmEnd A 1',
      'own llmEnd',
      'toolStart t c1',
      'own toolStart',
      'toolEnd t c1 "t ok"',
      'own toolEnd',
      'llmStart A - 3',
      'own llmStart',
      'llmEnd A 2',
      'own llmEnd',
      'agentEnd A "done"',
      'own end "done"',
      'runEnd completed',
    ]);
  });

  it('of a turn stands among all that a turn calls and tells, in the one order of acts [RUN-401, RUN-1307, RUN-1602]', async () => {
    const log: string[] = [];
    // What is told without being waited for is seen by its reader before the act that it follows is over.
    const act = async <T = void>(name: string, value?: T): Promise<T> => {
      await idle(2);
      log.push(name);
      return value as T;
    };
    const accepts = { tripwireTriggered: false, outputInfo: undefined };
    const script = new ScriptedModel([toolCall('t', {}, { callId: 'c1' }), 'done']);
    const model: Model = {
      getResponse: (request) => script.getResponse(request),
      async *streamResponse(request) {
        await act('model');
        return yield* script.streamResponse(request);
      },
    };
    const session = new PlainSession();
    const agent: Agent = new Agent({
      name: 'A',
      instructions: () => act('instructions', 'Be brief.'),
      model: 'm',
      tools: [tool({ name: 't', isEnabled: () => act('tools', true), execute: () => act('tool', 'ok') })],
      handoffs: [handoff(new Agent({ name: 'B' }), { isEnabled: () => act('handoffs', true) })],
      inputGuardrails: [
        { name: 'beside', execute: () => (log.push('guardrail beside the model'), accepts) },
        { name: 'before', runInParallel: false, execute: () => act('guardrail before it', accepts) },
      ],
    });
    const stream = runStreamed(agent, 'go', {
      session: {
        sessionId: 's',
        getItems: () => act('history', []),
        addItems: async (items) => {
          await session.addItems(items);
          await act(`session ${kindsOf(items)}`);
        },
        popItem: session.popItem,
        clearSession: session.clearSession,
      },
      modelProvider: { getModel: () => act('model of the name', model) },
      callModelInputFilter: ({ modelData }) => act('filter', modelData),
      hooks: {
        onRunStart: () => act('onRunStart'),
        onAgentStart: () => act('onAgentStart'),
        onLlmStart: () => act('onLlmStart'),
        onLlmEnd: () => act('onLlmEnd'),
        onToolStart: () => act('onToolStart'),
        onToolEnd: () => act('onToolEnd'),
        onAgentEnd: () => act('onAgentEnd'),
        onRunEnd: () => act('onRunEnd'),
      },
    });
    for await (const event of stream) log.push(...namesOf([event]));
    await stream.completed;
    const asking = ['tools', 'instructions', 'handoffs', 'model of the name', 'filter', 'onLlmStart'];
    expect(log).toEqual([
      'history',
      'onRunStart',
      'agent A',
      'guardrail before it',
      'guardrail beside the model',
      'onAgentStart',
      ...asking,
      'session u',
      'model',
      'R',
      'tool_called',
      'onLlmEnd',
      'tools',
      'onToolStart',
      'tool',
      'onToolEnd',
      'tool_output',
      'session fc fco',
      ...asking,
      'model',
      'R',
      'message_output_created',
      'onLlmEnd',
      'onAgentEnd',
      'session m',
      'onRunEnd',
    ]);
  });

  it('has no end of the agent where the run pauses, fails or is refused [RUN-610]', async () => {
    const log: string[] = [];
    const hooks: AgentHooks = { onEnd: () => void log.push('own end') };
    const ends: RunHooks = { onAgentEnd: () => void log.push('end') };
    const agent = (...steps: ModelStep[]): Agent =>
      new Agent({
        name: 'A',
        model: new ScriptedModel(steps),
        tools: [effectTool('g', [], { needsApproval: true })],
        hooks,
      });
    await run(agent(toolCall('g')), 'go', { hooks: ends });
    await rejection(run(agent(new Error('down')), 'go', { hooks: ends }));
    await rejection(run(agent(refusal('no')), 'go', { hooks: ends }));
    await rejection(run(agent(toolCall('nobody')), 'go', { hooks: ends }));
    await rejection(run(agent('x'), 'go', { hooks: ends, maxTurns: 0 }));
    expect(log).toEqual([]);
    await run(agent('x'), 'go', { hooks: ends });
    expect(log).toEqual(['end', 'own end']);
  });
});

describe('a hook that throws', () => {
  const own = new Error('mine');
  const throwing = (): never => {
    throw own;
  };

  it('before the model call: no call, no end of the agent [RUN#34, RUN-402, RUN-610]', async () => {
    for (const name of ['onLlmStart', 'onAgentStart'] as const) {
      const { plain } = await symmetry({
        setUp: ({ hooks, session, log }) => ({
          agent: desk(['never'], log),
          input: 'go',
          options: { hooks: { ...hooks, [name]: throwing }, session: session('s') },
        }),
      });
      expect(plain.error).toBe(own);
      expect(plain.log.filter((line) => /model|llmEnd|agentEnd/.test(line))).toEqual([]);
      expect(plain.log.at(-1)).toBe('runEnd failed');
      expect(plain.writes).toEqual([]);
      expect(getRunErrorState(plain.error)?.currentTurn).toBe(0);
    }
  });

  it('after the model call: the response is as if it had not come; a resume asks again [RUN-402, STATE-136]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: desk([toolCall('t')], log),
        input: 'go',
        options: { hooks: { ...hooks, onLlmEnd: throwing }, session: session('s') },
      }),
    });
    expect(plain.error).toBe(own);
    expect(plain.log).not.toContain('t');
    expect(getRunErrorDetails(plain.error)).toMatchObject({ newItems: [], rawResponses: [] });
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u']);
    expect(getRunErrorState(plain.error)?.status).toBe('ready');
  });

  it('at the end of the agent: nothing of a final message is stored [RUN#35, RUN-609, RUN-509]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: desk([toolCall('t'), 'done'], log),
        input: 'go',
        options: { hooks: { ...hooks, onAgentEnd: throwing }, session: session('s') },
      }),
    });
    expect(plain.error).toBe(own);
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'fc fco']);
    expect(getRunErrorDetails(plain.error)?.newItems).toHaveLength(2);
    expect(getRunErrorDetails(plain.error)?.rawResponses).toHaveLength(1);
    expect(getRunErrorState(plain.error)?.status).toBe('ready');
  });

  it('at the end of an agent that its tools ended: their pairs are stored [RUN-609, RUN#92]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: desk([toolCall('t')], log).clone({ toolUseBehavior: 'stop_on_first_tool' }),
        input: 'go',
        options: { hooks: { ...hooks, onAgentEnd: throwing }, session: session('s') },
      }),
    });
    expect(plain.error).toBe(own);
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u', 'fc fco']);
    expect(getRunErrorDetails(plain.error)?.newItems).toHaveLength(2);
    expect(getRunErrorDetails(plain.error)?.rawResponses).toHaveLength(1);
  });

  it('around a tool is a failure of that tool: siblings are told to stop, finished ones are kept [RUN-510, RUN-508]', async () => {
    for (const name of ['onToolStart', 'onToolEnd'] as const) {
      let stopped: unknown;
      const { plain } = await symmetry({
        setUp: ({ hooks, log }) => ({
          agent: new Agent({
            name: 'A',
            model: new ScriptedModel([[toolCall('slow'), toolCall('t')]]),
            tools: [
              tool({
                name: 'slow',
                execute: (_args, { signal }) =>
                  new Promise((_resolve, reject) => {
                    signal.addEventListener('abort', () => {
                      stopped = signal.reason;
                      reject(new Error('stopped'));
                    });
                  }),
              }),
              effectTool('t', log),
            ],
          }),
          input: 'go',
          options: {
            hooks: {
              ...hooks,
              [name]: async (ctx: ToolContext<never>) => {
                await idle();
                if (ctx.toolName === 't') throw own;
              },
            },
          },
        }),
      });
      expect(plain.error).toBe(own);
      expect(stopped).toBe(own);
      expect(plain.log.includes('t -')).toBe(name === 'onToolEnd');
      // What was committed before the hook failed is kept; a call that never ran is not.
      expect(getRunErrorDetails(plain.error)?.newItems.map((item) => item.type)).toEqual(
        name === 'onToolEnd' ? ['tool_call_item', 'tool_call_output_item'] : [],
      );
    }
  });
});

describe('hooks of a run that is stopped', () => {
  it('do not start any more, wherever the cancel comes; what runs is awaited no longer [RUN-1412, RUN-306]', async () => {
    const places = ['response.created', 'response.completed', 'tool_called', 'tool_output'];
    // A model that answers at once has less room between the event and what follows it.
    for (const [place, delayMs] of places.flatMap((one) => [[one, 0] as const, [one, undefined] as const])) {
      const log: string[] = [];
      const model = new ScriptedModel([
        { output: [toolCall('t')], delayMs },
        { output: [text('done')], delayMs },
      ]);
      let cancelled = false;
      const late = (name: string) => (): void => void (cancelled && log.push(name));
      const stream = runStreamed(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'go', {
        hooks: {
          onAgentStart: late('agentStart'),
          onLlmStart: late('llmStart'),
          onLlmEnd: late('llmEnd'),
          onToolStart: late('toolStart'),
          onToolEnd: late('toolEnd'),
          onAgentEnd: late('agentEnd'),
          onRunEnd: (_ctx, outcome) => void log.push(`runEnd ${outcome}`),
        },
      });
      for await (const event of stream) {
        const name = event.type === 'raw_response_event' ? event.data.type : 'name' in event ? event.name : '';
        if (name !== place) continue;
        stream.cancel();
        cancelled = true;
      }
      expect(await rejection(stream.completed)).toBeInstanceOf(RunAbortedError);
      expect([place, log]).toEqual([place, ['runEnd cancelled']]);
    }
  });

  it.each(['plain', 'streamed'])(
    'do not start, and no model is asked, from whatever moment on the run is aborted; what never left is not counted (%s) [RUN-1412, RUN-1007, RUN-2001]',
    async (form) => {
      for (let moment = 0; moment < 180; moment += 1) {
        const controller = new AbortController();
        const { signal } = controller;
        const late: string[] = [];
        const watch = (name: string) => (): void => void (signal.aborted && late.push(name));
        let requests = 0;
        const ask = (step: ModelStep) => (): ModelStep => {
          watch('model')();
          requests += 1;
          return step;
        };
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([ask(toolCall('t')), ask('done')]),
          tools: [effectTool('t', [])],
        });
        const options = {
          signal,
          session: moment % 2 === 0 ? new MemorySession() : null,
          hooks: {
            onRunStart: watch('runStart'),
            onAgentStart: watch('agentStart'),
            onLlmStart: watch('llmStart'),
            onLlmEnd: watch('llmEnd'),
            onToolStart: watch('toolStart'),
            onToolEnd: watch('toolEnd'),
            onAgentEnd: watch('agentEnd'),
          },
        };
        const running = form === 'plain' ? run(agent, 'go', options) : runStreamed(agent, 'go', options).completed;
        const outcome = running.catch((error: unknown) => error);
        for (let tick = 0; tick < moment; tick += 1) await Promise.resolve();
        controller.abort();
        const error = await outcome;
        expect([moment, late]).toEqual([moment, []]);
        if (!(error instanceof RunAbortedError)) continue;
        expect([moment, error.runData?.context.usage.requests]).toEqual([moment, requests]);
        expect([moment, error.state?.currentTurn]).toEqual([moment, requests]);
      }
    },
  );

  it('end with `cancelled` for a signal; the caller`s signal has no listener left, however the run ended [RUN-306, RUN-216]', async () => {
    const ends: string[] = [];
    const hooks: RunHooks = { onRunEnd: (_ctx, outcome) => void ends.push(outcome) };
    const scripts: ModelStep[][] = [['done'], [toolCall('g')], [new Error('down')], [() => new Promise(() => {})]];
    for (const steps of scripts) {
      for (const form of ['plain', 'streamed']) {
        const controller = new AbortController();
        const { signal } = controller;
        let listeners = 0;
        const add = signal.addEventListener.bind(signal);
        const remove = signal.removeEventListener.bind(signal);
        signal.addEventListener = (...args: Parameters<typeof add>) => ((listeners += 1), add(...args));
        signal.removeEventListener = (...args: Parameters<typeof remove>) => ((listeners -= 1), remove(...args));
        const agent = desk(steps);
        const running: Promise<unknown> =
          form === 'plain' ? run(agent, 'go', { hooks, signal }) : readAll(runStreamed(agent, 'go', { hooks, signal }));
        const over = running.catch(() => undefined);
        await idle();
        if (typeof steps[0] === 'function') controller.abort();
        await over;
        await idle();
        expect(listeners).toBe(0);
      }
    }
    expect(ends).toEqual([
      'completed',
      'completed',
      'interrupted',
      'interrupted',
      'failed',
      'failed',
      'cancelled',
      'cancelled',
    ]);
  });
});
