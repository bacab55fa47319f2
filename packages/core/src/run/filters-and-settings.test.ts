import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  Agent,
  createTrace,
  run,
  RunContext,
  Runner,
  runStreamed,
  RunState,
  setTraceProcessors,
  tool,
  UserError,
  withTrace,
} from '../index.ts';
import type {
  AgentInputItem,
  CallModelInputFilter,
  Model,
  ModelProvider,
  ModelSettings,
  RunOptions,
} from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, kindsOf, logged, PlainSession, rejection, scriptedDesk, user } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  resetDefaults();
});

bothForms((runForm, form) => {
  describe(`ids of reasoning (${form})`, () => {
    const reasoningIds = (input: readonly AgentInputItem[]): string[] =>
      input.flatMap((item) => (item.type === 'reasoning' ? [item.id ?? 'none'] : []));
    const thinking = (): ReturnType<typeof scriptedDesk> =>
      scriptedDesk([reasoning('hm'), toolCall('t')], [reasoning('so'), toolCall('t')], 'done');

    it.each<[RunOptions['reasoningItemIdPolicy'], string[]]>([
      ['omit', ['none', 'none']],
      ['preserve', ['rs_1', 'rs_2']],
      [undefined, ['rs_1', 'rs_2']],
    ])('are in the input of later turns as the policy says: %s [RUN-210]', async (reasoningItemIdPolicy, ids) => {
      const { agent, model } = thinking();
      const result = await runForm(agent, 'go', { reasoningItemIdPolicy });
      expect(reasoningIds(model.calls[2]?.request.input ?? [])).toEqual(ids);
      expect(reasoningIds(result.toInputList())).toEqual(ids);
      expect(result.newItems.flatMap(({ rawItem }) => (rawItem.type === 'reasoning' ? [rawItem.id] : []))).toEqual([
        'rs_1',
        'rs_2',
      ]);
    });

    it('that a filter puts back are sent [RUN-226]', async () => {
      const { agent, model } = thinking();
      let put = 0;
      const result = await runForm(agent, 'go', {
        reasoningItemIdPolicy: 'omit',
        callModelInputFilter: ({ modelData }) => ({
          ...modelData,
          input: modelData.input.map((item) =>
            item.type === 'reasoning' ? { ...item, id: `back_${(put += 1)}` } : item,
          ),
        }),
      });
      expect(model.calls.map(({ request }) => reasoningIds(request.input))).toEqual([
        [],
        ['back_1'],
        ['back_2', 'back_3'],
      ]);
      expect(reasoningIds(result.toInputList())).toEqual(['none', 'none']);
    });
  });

  describe(`the input filter (${form})`, () => {
    it('is asked once per turn, just before onLlmStart, also in a resumed run [RUN-221, RUN-1418]', async () => {
      const log: string[] = [];
      const { agent, model } = scriptedDesk(toolCall('t'), toolCall('g'), 'done');
      const contexts = new Set<unknown>();
      const options: RunOptions = {
        callModelInputFilter: async ({ modelData, agent: asked, context }) => {
          log.push(`filter ${kindsOf(modelData.input)}`);
          expect(asked).toBe(agent);
          expect(context).toBeInstanceOf(RunContext);
          contexts.add(context);
          await idle(1);
          log.push('filtered');
          return modelData;
        },
        hooks: {
          onAgentStart: () => void log.push('agentStart'),
          onLlmStart: (ctx) => void (log.push('llmStart'), contexts.add(ctx)),
        },
      };
      const state = (await runForm(agent, 'go', options)).toState();
      expect(contexts.size).toBe(1);
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state, options);
      const turn = (items: string): string => `filter ${items} filtered llmStart`;
      expect(log.join(' ')).toBe(`agentStart ${turn('u')} ${turn('u fc fco')} agentStart ${turn('u fc fco fc fco')}`);
      expect(model.calls).toHaveLength(3);
    });

    it('changes nothing of what callbacks are told of their turn: `turnInput` is without it, from the model call to the tools [RUN-411, RUN-223]', async () => {
      const { agent, model } = scriptedDesk(toolCall('t'), 'done');
      const log: string[] = [];
      const see = (ctx: RunContext): void => void log.push(kindsOf(ctx.turnInput));
      await runForm(agent, 'go', {
        callModelInputFilter: ({ modelData }) => ({
          ...modelData,
          input: [user('other'), ...modelData.input.slice(-1)],
        }),
        hooks: { onLlmStart: see, onLlmEnd: see, onToolStart: see, onToolEnd: see, onAgentEnd: see },
      });
      expect(model.calls.map(({ request }) => kindsOf(request.input))).toEqual(['u u', 'u fco']);
      expect(log).toEqual([...Array<string>(4).fill('u'), ...Array<string>(3).fill('u fc fco')]);
    });

    it('counts by what it returns alone; what it does to its list changes nothing else [RUN-221, RUN-223, RUN-004]', async () => {
      const { agent, model } = scriptedDesk(toolCall('t'), 'done');
      const result = await runForm(agent, 'go', {
        callModelInputFilter: ({ modelData }) => {
          const kept = modelData.input.slice(0, 1);
          (modelData.input as AgentInputItem[]).length = 0;
          return { input: kept, instructions: 'Told by the filter.' };
        },
      });
      expect(model.calls.map(({ request }) => kindsOf(request.input))).toEqual(['u', 'u']);
      expect(model.calls[0]?.request.systemInstructions).toBe('Told by the filter.');
      expect(kindsOf(result.toInputList())).toBe('u fc fco m');
    });
  });
});

describe('the input filter', () => {
  it('trims requests; items, session, input and replay list are those of the whole run [RUN-223, RUN#62]', async () => {
    const requests: string[] = [];
    const { plain } = await symmetry({
      setUp: ({ session }) => {
        requests.length = 0;
        const see =
          (step: ModelStep): ModelStep =>
          ({ request }) => (requests.push(kindsOf(request.input)), step);
        const model = new ScriptedModel([see(toolCall('t')), see('done')]);
        return {
          agent: new Agent({ name: 'A', model, tools: [effectTool('t', [])] }),
          input: [user('one'), user('two')],
          options: {
            session: session('s'),
            callModelInputFilter: ({ modelData }) => ({ ...modelData, input: modelData.input.slice(-1) }),
          },
        };
      },
    });
    expect(requests).toEqual(['u', 'fco']);
    expect(plain.result?.newItems).toHaveLength(3);
    expect(plain.result?.input).toEqual([user('one'), user('two')]);
    expect(kindsOf(plain.result?.toInputList() ?? [])).toBe('u u fc fco m');
    expect(plain.writes.map((batch) => kindsOf(batch as object[]))).toEqual(['u u', 'fc fco', 'm']);
  });

  it('has its list without repeats: the newest content at the first place of a call, at the last of an output [RUN-224]', async () => {
    const { agent, model } = scriptedDesk('done');
    const call = (args: string) =>
      ({ type: 'function_call', call_id: 'c', name: 't', arguments: args }) as AgentInputItem;
    const output = (said: string) => ({ type: 'function_call_output', call_id: 'c', output: said }) as AgentInputItem;
    await run(agent, 'x', {
      callModelInputFilter: ({ modelData }) => ({
        ...modelData,
        input: [call('{}'), output('old'), user('same'), user('same'), call('{"a":1}'), output('new')],
      }),
    });
    expect(model.calls[0]?.request.input).toEqual([call('{"a":1}'), user('same'), user('same'), output('new')]);
  });

  it.each([
    ['nothing', undefined],
    ['an object without input', {}],
    ['a text', 'x'],
    ['instructions that are no text', { input: [], instructions: 5 }],
  ])('is refused when it returns %s: no model call, no onLlmStart [RUN-222, RUN#61]', async (_, returned) => {
    const { plain } = await symmetry({
      setUp: ({ hooks, log }) => ({
        agent: new Agent({ name: 'A', model: new ScriptedModel([() => (log.push('model'), 'x')]) }),
        input: 'go',
        options: { hooks, callModelInputFilter: (() => returned) as unknown as CallModelInputFilter<never> },
      }),
    });
    expect(plain.error).toBeInstanceOf(UserError);
    expect((plain.error as Error).message).toMatch(/callModelInputFilter must return/);
    expect(plain.log).toEqual(['runStart A', 'agentStart A', 'runEnd failed']);
  });

  it.each([true, false])(
    'that throws fails the run with its error, on the span too; its text only where data may be seen (%s) [RUN-222, RUN-1807]',
    async (sensitive) => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const own = new Error('secret of the filter');
      const { agent, model } = scriptedDesk('x');
      const error = await rejection(
        run(agent, 'go', { callModelInputFilter: () => Promise.reject(own), traceIncludeSensitiveData: sensitive }),
      );
      expect(error).toBe(own);
      expect(model.calls).toEqual([]);
      const turn = recorder.spans.find((span) => span.type === 'turn');
      expect(turn?.error?.message).toBe('Error in call_model_input_filter');
      expect(JSON.stringify(turn?.error).includes('secret')).toBe(sensitive);
    },
  );
});

describe('options', () => {
  it('of a runner may have the context; that of a call wins [RUN-103]', async () => {
    const seen: unknown[] = [];
    const agent = new Agent<{ tenant: string }>({
      name: 'A',
      model: new ScriptedModel(['one', 'two', 'three']),
      instructions: (ctx) => {
        seen.push(ctx.context.tenant);
        return '';
      },
    });
    const runner = new Runner({ context: { tenant: 'a' } });
    await runner.run(agent, 'x');
    await runner.run(agent, 'x', { context: { tenant: 'b' } });
    await runner.runStreamed(agent, 'x').completed;
    expect(seen).toEqual(['a', 'b', 'a']);
  });

  it('of a call win over those of the runner; undefined is not given; objects of settings merge per member [RUN-103]', async () => {
    const { agent, model } = scriptedDesk('one', 'two', 'three');
    const seen: unknown[] = [];
    const session = new PlainSession('s', [user('1'), user('2'), user('3')]);
    const runner = new Runner({
      maxTurns: 3,
      modelSettings: { temperature: 0.1, topP: 0.2, extraArgs: { a: 1, b: 1 } },
      sessionSettings: { limit: 2 },
      toolExecution: { maxFunctionToolConcurrency: 1 },
      hooks: { onRunStart: () => void seen.push('runner') },
    });
    const first = await runner.run(agent, 'x', {
      maxTurns: undefined,
      hooks: undefined,
      toolExecution: {},
      sessionSettings: {},
      session,
      modelSettings: { temperature: 0.5, topP: undefined, extraArgs: { b: 2 } },
    });
    expect([first.maxTurns, seen, session.log[0]]).toEqual([3, ['runner'], 'get(2)']);
    expect(model.calls[0]?.request.modelSettings).toMatchObject({
      temperature: 0.5,
      topP: 0.2,
      extraArgs: { a: 1, b: 2 },
    });
    const second = await runner.run(agent, 'x', {
      maxTurns: null,
      hooks: { onRunStart: () => void seen.push('call') },
    });
    expect([second.maxTurns, seen]).toEqual([null, ['runner', 'call']]);
    // The defaults are as they were, whatever calls laid over them.
    await runner.runStreamed(agent, 'x').completed;
    expect(seen.at(-1)).toBe('runner');
    expect(model.calls[2]?.request.modelSettings).toEqual({ temperature: 0.1, topP: 0.2, extraArgs: { a: 1, b: 1 } });
  });

  it('that are not known, or hold something else, are refused by name before anything starts [RUN-217, RUN-104, RUN-212, RUN-211]', async () => {
    const { agent, model } = scriptedDesk('x');
    const wrong: Record<string, unknown>[] = [
      { onApproval: 'yes' },
      { sessionConcurrency: 'lock' },
      { extendedEvents: 'yes' },
      { toolNameCollisionPolicy: 'first' },
      { toolNotFoundBehavior: 'ignore' },
      { reasoningItemIdPolicy: 'drop' },
      { callModelInputFilter: {} },
      { toolErrorFormatter: 'x' },
      { sessionInputCallback: [] },
      { modelProvider: {} },
    ];
    for (const options of wrong) {
      const [name] = Object.keys(options);
      const error = await rejection(run(agent, 'x', options as never));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain(`'${name}'`);
      expect(() => runStreamed(agent, 'x', options as never)).toThrow(UserError);
      expect(() => new Runner(options as never)).toThrow(UserError);
    }
    expect(model.calls).toEqual([]);
  });

  it('never change what the caller owns: input, options, agent, items of the model [RUN-004, RUN-1102]', async () => {
    const freeze = <T>(value: T): T => {
      if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
        Object.freeze(value);
        Object.values(value).forEach(freeze);
      }
      return value;
    };
    const output = freeze([{ ...toolCall('t', {}, { callId: 'c' }), created_by: 'x', status: null }]) as never;
    const answer = freeze([text('done')]);
    const raw = { getResponse: async () => ({ output: turn++ === 0 ? output : answer, usage: {} }) };
    let turn = 0;
    const input = freeze([user('one'), user('two')]);
    const agent = Object.freeze(
      new Agent({ name: 'A', model: raw as unknown as Model, tools: Object.freeze([effectTool('t', [])]) as never }),
    );
    const options = freeze({ modelSettings: { extraArgs: { a: 1 } }, maxTurns: 5, toolExecution: {} });
    const result = await run(agent, input, options);
    expect(result.finalOutput).toBe('done');
    expect(input).toHaveLength(2);
    expect(result.rawResponses[0]?.output).toEqual(output);
    expect(result.newItems[0]?.rawItem).toBe(output[0]);
    expect(result.newItems[0]?.rawItem).toMatchObject({ created_by: 'x', status: null });
  });
});

describe('settings of the model', () => {
  const settingsOf = async (agent: Agent, model: ScriptedModel, options: RunOptions): Promise<ModelSettings> => {
    await run(agent, 'x', options);
    return model.calls.at(-1)?.request.modelSettings ?? {};
  };

  it('are the agent`s with the run`s laid over them: null clears, undefined keeps, maps replace, extraArgs merge [RUN-202]', async () => {
    const model = new ScriptedModel(['1', '2']);
    const agent = new Agent({
      name: 'A',
      model,
      modelSettings: { temperature: 0.3, topP: 0.4, maxTokens: 9, metadata: { a: '1' }, extraArgs: { a: 1, b: 1 } },
    });
    expect(
      await settingsOf(agent, model, {
        modelSettings: { temperature: null, topP: undefined, metadata: { b: '2' }, extraArgs: { b: 2 } },
      }),
    ).toEqual({ topP: 0.4, maxTokens: 9, metadata: { b: '2' }, extraArgs: { a: 1, b: 2 } });
    expect(agent.modelSettings).toMatchObject({ temperature: 0.3, metadata: { a: '1' } });
    expect((await settingsOf(agent, model, {})).temperature).toBe(0.3);
  });

  it('that a model`s name implies follow the name that is used; what the agent says stays [RUN-202, RUN-201]', async () => {
    const model = new ScriptedModel(['1', '2', '3', '4']);
    const names: (string | undefined)[] = [];
    const modelProvider: ModelProvider = { getModel: (name) => (names.push(name), model) };
    const implied = new Agent({ name: 'A', model: 'gpt-5.5' });
    expect(await settingsOf(implied, model, { modelProvider })).toEqual({
      reasoning: { effort: 'none' },
      verbosity: 'low',
    });
    expect(model.calls[0]?.request.implicitSettings).toEqual(['reasoning', 'verbosity']);
    expect(await settingsOf(implied, model, { modelProvider, model: 'gpt-4.1' })).toEqual({});
    expect(
      await settingsOf(implied, model, { modelProvider, model: 'gpt-5', modelSettings: { verbosity: 'high' } }),
    ).toEqual({ reasoning: { effort: 'low' }, verbosity: 'high' });
    const said = new Agent({ name: 'A', model: 'gpt-5.5', modelSettings: { reasoning: { effort: 'high' } } });
    expect(await settingsOf(said, model, { modelProvider, model: 'gpt-4.1' })).toEqual({
      reasoning: { effort: 'high' },
    });
    expect(names).toEqual(['gpt-5.5', 'gpt-4.1', 'gpt-5', 'gpt-4.1']);
  });
});

describe('tools of one name', () => {
  const double = (said: string) => tool({ name: 'same', execute: () => said });
  const agentWith = (...steps: ModelStep[]): { agent: Agent; model: ScriptedModel } => {
    const model = new ScriptedModel(steps);
    return { agent: new Agent({ name: 'A', model, tools: [double('first'), double('last')] }), model };
  };

  it('are warned of once per run and name; the last one is offered and runs [RUN-212, RUN-1904]', async () => {
    const records = logged();
    for (let runs = 1; runs <= 2; runs += 1) {
      const { agent, model } = agentWith(toolCall('same'), toolCall('same'), 'done');
      const result = await run(agent, 'go');
      expect(model.calls[0]?.request.tools).toHaveLength(1);
      expect(result.newItems.flatMap((item) => (item.type === 'tool_call_output_item' ? [item.output] : []))).toEqual([
        'last',
        'last',
      ]);
      expect(records.map(({ level }) => level)).toEqual(Array.from({ length: runs }, () => 'warn'));
    }
  });

  it('fail the run before its model call when it says so [RUN-212]', async () => {
    const { agent, model } = agentWith('never');
    const error = await rejection(run(agent, 'go', { toolNameCollisionPolicy: 'error' }));
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toMatch(/tool and tool.*same/);
    expect(model.calls).toEqual([]);
  });
});

describe('the session`s history', () => {
  it('is limited and combined once, when it is loaded; a resume does neither [RUN-215, RUN-114, RUN-1601]', async () => {
    const session = new PlainSession('s', [user('1'), user('2')]);
    const seen: string[] = [];
    const { agent, model } = scriptedDesk(toolCall('g'), 'done');
    const options: RunOptions = {
      session,
      sessionSettings: { limit: 1 },
      sessionInputCallback: (history, input) => {
        seen.push(`${kindsOf(history)} + ${kindsOf(input)}`);
        return [...history, ...input];
      },
    };
    const state = (await run(agent, 'go', options)).toState();
    expect(kindsOf(model.calls[0]?.request.input ?? [])).toBe('u u');
    for (const item of state.interruptions) state.approve(item);
    session.log.length = 0;
    await run(agent, state, options);
    expect(seen).toEqual(['u + u']);
    expect(session.log.filter((line) => line === 'get(1)')).toEqual([]);
    expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u u fc fco');
  });

  it('fails the run when the callback gives no list, before a model is asked [RUN-215, RUN-1601]', async () => {
    const { agent, model } = scriptedDesk('never');
    const error = await rejection(
      run(agent, 'go', { session: new PlainSession(), sessionInputCallback: (() => 'x') as never }),
    );
    expect(error).toBeInstanceOf(UserError);
    expect(model.calls).toEqual([]);
  });
});

describe('options of tracing', () => {
  it('count where the run opens its own trace, and not inside another one; a resume takes them from the state [RUN-208, RUN-309]', async () => {
    const recorder = new InMemoryTraceProcessor();
    setTraceProcessors([recorder]);
    const own = { workflowName: 'Refunds', traceId: `trace_${'1'.repeat(32)}`, groupId: 'g1', traceMetadata: { a: 1 } };
    const { agent } = scriptedDesk(toolCall('g'), 'done', 'inside');
    const first = await run(agent, 'go', own);
    expect(first.trace).toMatchObject({ name: 'Refunds', traceId: own.traceId, groupId: 'g1' });
    const state = first.toState();
    for (const item of state.interruptions) state.approve(item);
    const second = await run(agent, state);
    expect(second.trace).toMatchObject({ name: 'Refunds', traceId: own.traceId, groupId: 'g1' });
    expect(new Set(recorder.traces.map((trace) => trace.traceId)).size).toBe(1);
    recorder.clear();
    await withTrace('outer', async () => {
      const result = await run(agent, 'go', own);
      expect(result.trace?.name).toBe('outer');
    });
    expect(recorder.traces.map((trace) => trace.name)).toEqual(['outer']);
    expect(createTrace('other').traceId).not.toBe(own.traceId);
  });

  it('without sensitive data spans have no inputs and outputs, and the run is the same [RUN-207, RUN-1903]', async () => {
    const play = async (options: RunOptions) => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const model = new ScriptedModel([toolCall('t', { id: 'secret' }), 'done'], { trace: true });
      const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [], { result: () => 'secret' })] });
      const result = await run(agent, 'secret', options);
      return { spans: JSON.stringify(recorder.spans.map((span) => span.toJSON())), items: result.toInputList() };
    };
    const open = await play({});
    const closed = await play({ traceIncludeSensitiveData: false });
    expect([open.spans.includes('secret'), closed.spans.includes('secret')]).toEqual([true, false]);
    expect(closed.items).toEqual(open.items);
  });

  it('have their default from the environment at the time of the run; so have the flags of the log at its first line [RUN-231, RUN-207]', async () => {
    const seen = async (): Promise<boolean> => {
      const recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const { agent } = scriptedDesk(toolCall('t', { id: 'secret' }), 'done');
      await run(agent, 'x');
      return JSON.stringify(recorder.spans.map((span) => span.toJSON())).includes('secret');
    };
    for (const [value, shown] of [
      [' YES ', true],
      ['on', true],
      ['0', false],
      ['', false],
      ['nonsense', false],
    ] as const) {
      vi.stubEnv('OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA', value);
      expect([value, await seen()]).toEqual([value, shown]);
    }
    vi.stubEnv('OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA', undefined);
    expect(await seen()).toBe(true);
    vi.stubGlobal('process', undefined);
    const { agent } = scriptedDesk('no process');
    expect((await run(agent, 'x')).finalOutput).toBe('no process');
    vi.unstubAllGlobals();
  });

  it('are read from the environment by no import [RUN-231]', async () => {
    vi.resetModules();
    const read: string[] = [];
    const env = new Proxy(process.env, {
      get: (target, key) => {
        if (String(key).startsWith('OPENAI')) read.push(String(key));
        return Reflect.get(target, key) as unknown;
      },
    });
    const spy = vi.spyOn(process, 'env', 'get').mockReturnValue(env);
    const core = await import('../index.ts');
    expect(read).toEqual([]);
    const agent = new core.Agent({ name: 'A', model: new ScriptedModel(['x']) });
    await core.run(agent, 'x');
    core.getLogger().debug('x');
    expect(read).toContain('OPENAI_AGENTS_DONT_LOG_MODEL_DATA');
    spy.mockRestore();
  });
});

it('a state that was restored is resumed with its current agent; the argument is the root of the graph [RUN-109]', async () => {
  const first = scriptedDesk(toolCall('g'), 'of the state');
  const other = scriptedDesk('of the argument');
  const state = (await run(first.agent, 'go')).toState();
  for (const item of state.interruptions) state.approve(item);
  const restored = await RunState.fromString(other.agent, state.toString());
  const result = await run(first.agent, state);
  expect([result.finalOutput, result.lastAgent]).toEqual(['of the state', first.agent]);
  // Names are resolved in the graph that the text was restored with.
  const second = await run(other.agent, restored);
  expect([second.finalOutput, second.lastAgent]).toEqual(['of the argument', other.agent]);
});
