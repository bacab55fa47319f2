import { afterEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { Agent } from '../agent/agent.ts';
import type { AnyAgent } from '../agent/agent.ts';
import { handoff, Handoff } from '../agent/handoff.ts';
import { tool } from '../agent/tool.ts';
import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { resetAll } from '../base/reset.ts';
import { RunState } from '../snapshot/run-state.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, refusal, text, toolCall } from '../testing/builders.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';
import type { ModelStep } from '../testing/script.ts';
import { effectTool, kindsOf, logged, namesOf, PlainSession, readAll, rejection, user } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';
import { runStreamed } from './run.ts';
import type { RunHooks } from '../agent/hooks.ts';
import type { RunOptions } from './options.ts';

afterEach(() => resetAll());

const to = (name: string, args: object | string = {}) => toolCall(`transfer_to_${name}`, args);

/** Agent A that hands off to B, whose models answer with these steps in turn. */
function pair(
  steps: readonly ModelStep[],
  options: { tools?: ReturnType<typeof effectTool>[]; b?: object; a?: object } = {},
): { a: Agent; b: Agent; model: ScriptedModel } {
  const model = new ScriptedModel(steps);
  const b = new Agent({ name: 'B', model, instructions: 'You are B.', ...options.b });
  const a = new Agent({
    name: 'A',
    model,
    instructions: 'You are A.',
    tools: options.tools ?? [],
    handoffs: [b],
    ...options.a,
  });
  return { a, b, model };
}

bothForms((runForm, form) => {
  describe(`a handoff (${form})`, () => {
    test('the next turn is the target: its instructions and tools, and the text that names it [RUN#3] [TOOL-AC4] [TOOL-HO12]', async () => {
      const look = effectTool('look', []);
      const { a, b, model } = pair([[text('One moment.'), to('b')], 'Hello from B'], { b: { tools: [look] } });
      const result = await runForm(a, 'Hi');
      expect(result.finalOutput).toBe('Hello from B');
      expect(result.lastAgent).toBe(b);
      const [first, second] = model.calls;
      expect(first?.request.handoffs.map(({ toolName }) => toolName)).toEqual(['transfer_to_b']);
      expect(second?.request.systemInstructions).toBe('You are B.');
      expect(second?.request.tools).toEqual([look]);
      expect(second?.request.handoffs).toEqual([]);
      expect(kindsOf(second?.request.input ?? [])).toBe('u m fc fco');
      expect(second?.request.input.at(-1)).toEqual({
        type: 'function_call_output',
        call_id: 'call_1',
        output: '{"assistant": "B"}',
      });
      expect(result.newItems.map(({ type, agent }) => `${agent.name} ${type}`)).toEqual([
        'A message_output_item',
        'A handoff_call_item',
        'A handoff_output_item',
        'B message_output_item',
      ]);
      expect(result.newItems[2]).toMatchObject({ sourceAgent: a, targetAgent: b });
    });

    test('the output text has the bytes of the Python SDK [TOOL-HO12] [TOOL-AC89]', async () => {
      const model = new ScriptedModel([toolCall('transfer_to_b_'), 'ok']);
      const a = new Agent({ name: 'A', model, handoffs: [new Agent({ name: 'Bé', model })] });
      logged();
      await runForm(a, 'Hi');
      expect(model.calls[1]?.request.input.at(-1)).toHaveProperty('output', '{"assistant": "B\\u00e9"}');
    });

    test('hooks, in order: of the handoff once, before those of the target; the end of the last agent alone [RUN#31] [RUN-805, 808, 610]', async () => {
      const log: string[] = [];
      const hooks: RunHooks = {
        onAgentStart: (_, { name }) => void log.push(`agentStart ${name}`),
        onAgentEnd: (_, { name }) => void log.push(`agentEnd ${name}`),
        onLlmStart: () => void log.push('llmStart'),
        onLlmEnd: () => void log.push('llmEnd'),
        onToolStart: () => void log.push('toolStart'),
        onToolEnd: () => void log.push('toolEnd'),
        onHandoff: (_, from, next) => void log.push(`handoff ${from.name} ${next.name}`),
      };
      const { a } = pair([toolCall('t'), to('b'), 'done'], { tools: [effectTool('t', [])] });
      await runForm(a, 'Hi', { hooks });
      expect(log).toEqual([
        'agentStart A',
        'llmStart',
        'llmEnd',
        'toolStart',
        'toolEnd',
        'llmStart',
        'llmEnd',
        'handoff A B',
        'agentStart B',
        'llmStart',
        'llmEnd',
        'agentEnd B',
      ]);
    });

    test('the hook of the agent that hands off is called with target and source; that of the target is not [RUN#32] [RUN-805] [TOOL-HO13]', async () => {
      const [ofA, ofB] = [vi.fn<(...args: unknown[]) => void>(), vi.fn<() => void>()];
      const { a, b } = pair([to('b'), 'done'], {
        a: { hooks: { onHandoff: ofA } },
        b: { hooks: { onHandoff: ofB } },
      });
      const result = await runForm(a, 'Hi');
      expect(ofA.mock.calls.map((args) => args.slice(1))).toEqual([[b, a]]);
      expect(ofA.mock.calls[0]?.[0]).toBe(result.context);
      expect(ofB).not.toHaveBeenCalled();
    });

    test('the hooks of run and agent start together; one that fails fails the run, before the target begins [TOOL-HO13] [RUN-802]', async () => {
      const failure = new Error('hook');
      let other = false;
      const { a, model } = pair([to('b'), 'done'], {
        a: {
          hooks: {
            onHandoff: async () => {
              await new Promise((resolve) => setTimeout(resolve, 5));
              other = true;
            },
          },
        },
      });
      expect(await rejection(runForm(a, 'Hi', { hooks: { onHandoff: () => Promise.reject(failure) } }))).toBe(failure);
      expect([other, model.calls.length]).toEqual([true, 1]);
    });

    test('of several the first is taken; the others are told that they are ignored, before its output [RUN#42] [RUN-504] [TOOL-HO10] [TOOL-AC34]', async () => {
      const model = new ScriptedModel([[to('b'), to('c')], 'from B']);
      const [b, c] = [new Agent({ name: 'B', model }), new Agent({ name: 'C', model })];
      const a = new Agent({ name: 'A', model, handoffs: [c, b] });
      const result = await runForm(a, 'Hi');
      expect(result.lastAgent).toBe(b);
      expect(result.newItems.map(({ type }) => type)).toEqual([
        'handoff_call_item',
        'handoff_call_item',
        'tool_call_output_item',
        'handoff_output_item',
        'message_output_item',
      ]);
      expect(result.newItems[2]?.rawItem).toEqual({
        type: 'function_call_output',
        call_id: 'call_2',
        output: 'Multiple handoffs detected, ignoring this one.',
      });
    });

    test('tools of the response run first, and the handoff beats what they would end the run with [RUN#43] [TOOL-HO9] [TOOL-P15] [RUN-501]', async () => {
      const effects: string[] = [];
      const onHandoff = vi.fn<() => void>(() => void effects.push('handoff'));
      const model = new ScriptedModel([[text('I pass you on.'), to('b'), toolCall('t')], 'from B']);
      const b = new Agent({ name: 'B', model });
      const a = new Agent({
        name: 'A',
        model,
        tools: [effectTool('t', effects)],
        handoffs: [handoff(b, { onHandoff })],
        toolUseBehavior: 'stop_on_first_tool',
      });
      const result = await runForm(a, 'Hi');
      expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
      expect(effects).toEqual(['t -', 'handoff']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u m fc fc fco fco');
      expect(result.newItems.map(({ type, agent }) => `${agent.name} ${type}`).slice(3, 5)).toEqual([
        'A tool_call_output_item',
        'A handoff_output_item',
      ]);
    });

    test('input that the model gives is validated and typed; the target waits for the callback [TOOL-AC35] [TOOL-HO11] [TOOL-HO47]', async () => {
      const log: unknown[] = [];
      const model = new ScriptedModel([to('b', { reason: 'late' }), 'done']);
      const b = new Agent({ name: 'B', model, hooks: { onStart: () => void log.push('B starts') } });
      const a = new Agent({
        name: 'A',
        model,
        handoffs: [
          handoff(b, {
            inputType: z.object({ reason: z.string(), urgent: z.boolean().default(false) }),
            onHandoff: async (_, input) => {
              await new Promise((resolve) => setTimeout(resolve, 20));
              log.push(input);
            },
          }),
        ],
      });
      await runForm(a, 'Hi');
      expect(log).toEqual([{ reason: 'late', urgent: false }, 'B starts']);
    });

    test.each([
      ['no arguments', '', /transfer_to_b expected input/],
      ['null', 'null', /transfer_to_b expected input/],
      ['no JSON', '{', /transfer_to_b/],
      ['other input', '{}', /transfer_to_b/],
    ])(
      '%s where input is needed: the model misbehaved [TOOL-AC36] [TOOL-HO11] [TOOL-HO50]',
      async (_, args, message) => {
        const onHandoff = vi.fn<() => void>();
        const model = new ScriptedModel([to('b', args)]);
        const b = new Agent({ name: 'B', model });
        const inputType = z.object({ reason: z.string() });
        const a = new Agent({ name: 'A', model, handoffs: [handoff(b, { inputType, onHandoff })] });
        const error = await rejection(runForm(a, 'Hi'));
        expect(error).toBeInstanceOf(ModelBehaviorError);
        expect((error as Error).message).toMatch(message);
        expect((error as Error).message).not.toContain('{');
        expect(onHandoff).not.toHaveBeenCalled();
      },
    );

    test('without an input type arguments mean nothing, also those that are no JSON [TOOL-HO11]', async () => {
      const { a } = pair([to('b', 'no JSON'), 'done']);
      expect((await runForm(a, 'Hi')).finalOutput).toBe('done');
    });

    test('an error of the callback is the error of the run, as it is [TOOL-HO16] [IL-138]', async () => {
      const failure = new Error('x');
      const model = new ScriptedModel([to('b', { reason: 'r' })]);
      const b = new Agent({ name: 'B', model });
      const a = new Agent({
        name: 'A',
        model,
        handoffs: [
          handoff(b, { inputType: z.object({ reason: z.string() }), onHandoff: () => Promise.reject(failure) }),
        ],
      });
      expect(await rejection(runForm(a, 'Hi'))).toBe(failure);
    });

    test('a handoff of one`s own picks the agent by context; one that picks none is told [TOOL-HO48] [TOOL-HO14] [TOOL-HO49]', async () => {
      const model = new ScriptedModel([toolCall('escalate'), 'done', toolCall('escalate')]);
      const [b, c] = [new Agent({ name: 'B', model }), new Agent({ name: 'C', model })];
      const escalate = new Handoff({
        toolName: 'escalate',
        toolDescription: 'Up.',
        agentName: 'either',
        onInvokeHandoff: (ctx) => (ctx.context === 'night' ? c : (undefined as never)),
      });
      const a = new Agent({ name: 'A', model, handoffs: [b, escalate] });
      expect((await runForm(a, 'Hi', { context: 'night' })).lastAgent).toBe(c);
      const error = await rejection(runForm(a, 'Hi', { context: 'day' }));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/agent A: .*escalate must return an Agent, not undefined/);
    });

    test('to itself is allowed, with start hooks again [TOOL-HO17] [RUN-803]', async () => {
      const starts: string[] = [];
      const { a } = pair([to('a'), 'done'], { a: { hooks: { onStart: () => void starts.push('A') } } });
      a.handoffs.push(a);
      const result = await runForm(a, 'Hi');
      expect([result.finalOutput, result.lastAgent, starts]).toEqual(['done', a, ['A', 'A']]);
    });

    test('and back: agents may form cycles, and nobody forgets a choice for another [TOOL-A19] [TOOL-AC31] [TOOL-X22, X23]', async () => {
      const model = new ScriptedModel([to('b'), to('a'), to('b'), 'done']);
      const modelSettings = { toolChoice: 'required' as const };
      const a: Agent = new Agent({ name: 'A', model, modelSettings });
      const b: Agent = new Agent({ name: 'B', model, modelSettings, handoffs: [a] });
      a.handoffs.push(b);
      const starts: string[] = [];
      await runForm(a, 'Hi', { hooks: { onAgentStart: (_, { name }) => void starts.push(name) } });
      expect(starts).toEqual(['A', 'B', 'A', 'B']);
      expect(model.calls.map((call) => call.request.modelSettings.toolChoice)).toEqual([
        'required',
        'required',
        undefined,
        undefined,
      ]);
      expect(modelSettings).toEqual({ toolChoice: 'required' });
    });

    test('turns count on over a handoff [TOOL-HO15]', async () => {
      const { a, b, model } = pair([to('b'), 'never']);
      const error = await rejection(runForm(a, 'Hi', { maxTurns: 1 }));
      expect(error).toMatchObject({ name: 'MaxTurnsExceededError', runData: { lastAgent: b } });
      expect(model.calls).toHaveLength(1);
    });

    test('the output is that of the last agent [TOOL-A25]', async () => {
      const { a } = pair([to('b'), 'plain text'], { a: { outputType: z.object({ n: z.number() }) } });
      expect((await runForm(a, 'Hi')).finalOutput).toBe('plain text');
      const structured = pair([to('b'), '{"n":1}'], { b: { outputType: z.object({ n: z.number() }) } });
      expect((await runForm(structured.a, 'Hi')).finalOutput).toEqual({ n: 1 });
      const wrong = pair([to('b'), 'no JSON'], { b: { outputType: z.object({ n: z.number() }) } });
      expect(await rejection(runForm(wrong.a, 'Hi'))).toBeInstanceOf(ModelBehaviorError);
    });

    test('a refusal beside it is not looked at [RUN-603] [TOOL-O12]', async () => {
      const { a, b } = pair([[refusal('no'), to('b')], 'done']);
      expect((await runForm(a, 'Hi')).lastAgent).toBe(b);
    });

    test('at the turn limit the output of a handler is that of the target`s type [RUN-708]', async () => {
      const { a } = pair([to('b')], { b: { outputType: z.object({ n: z.number() }) } });
      const errorHandlers = { maxTurns: () => ({ finalOutput: { n: 7 } }) };
      const result = await runForm(a, 'Hi', { maxTurns: 1, errorHandlers });
      expect([result.finalOutput, result.lastAgent.name]).toEqual([{ n: 7 }, 'B']);
    });

    test('ids of reasoning are left out for the target, in the session and in lists, and kept in items [RUN#63] [RUN-251, 252, 253]', async () => {
      const session = new PlainSession();
      const { a, model } = pair([[reasoning('why'), to('b')], 'done', 'more']);
      const result = await runForm(a, 'Hi', { session, reasoningItemIdPolicy: 'omit' });
      const ids = (items: readonly object[]): unknown[] =>
        items.flatMap((item) => ((item as { type?: string }).type === 'reasoning' ? ['id' in item] : []));
      expect(ids(model.calls[1]?.request.input ?? [])).toEqual([false]);
      expect([ids(session.items), ids(result.toInputList())]).toEqual([[false], [false]]);
      expect(ids(result.newItems.map(({ rawItem }) => rawItem as object))).toEqual([true]);
      const state = await RunState.fromString(a, result.toState().toString());
      await runForm(a, state, { session });
      expect(ids(model.calls[2]?.request.input ?? [])).toEqual([false]);
    });

    test('one that is switched off is not offered, and a call of it is not found [TOOL-HO8]', async () => {
      const model = new ScriptedModel([to('b')]);
      const b = new Agent({ name: 'B', model });
      const a = new Agent({ name: 'A', model, handoffs: [handoff(b, { isEnabled: () => false })] });
      const error = await rejection(runForm(a, 'Hi'));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Tool transfer_to_b not found in agent A');
      expect(model.calls[0]?.request.handoffs).toEqual([]);
    });

    test('a call with a namespace is no handoff [TOOL-P12]', async () => {
      const { a } = pair([toolCall('transfer_to_b', {}, { namespace: 'crm' })]);
      expect(((await rejection(runForm(a, 'Hi'))) as Error).message).toMatch(/not found in agent A/);
    });

    test('a tool with the name of a handoff loses, with one warning per run; under `error` the model is not asked [TOOL-AC45] [TOOL-I3, I4, I7] [TOOL-HO51]', async () => {
      const effects: string[] = [];
      const lines = logged();
      const model = new ScriptedModel([toolCall('t'), to('b'), 'done']);
      const b = new Agent({ name: 'B', model });
      const tools = [effectTool('transfer_to_b', effects), effectTool('t', effects)];
      const a = new Agent({ name: 'A', model, tools, handoffs: [b] });
      expect((await runForm(a, 'Hi')).lastAgent).toBe(b);
      expect(effects).toEqual(['t -']);
      expect(model.calls[0]?.request.tools.map(({ name }) => name)).toEqual(['t']);
      expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
      const error = await rejection(runForm(a, 'Hi', { toolNameCollisionPolicy: 'error' }));
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(/agent B and the tool transfer_to_b/);
      expect(model.calls).toHaveLength(3);
    });

    test('the same call again is no second handoff; another one with its id is an error [TOOL-P5, P6] [RUN-406]', async () => {
      const again = { ...to('b'), call_id: 'h1' };
      const onHandoff = vi.fn<() => void>();
      const model = new ScriptedModel([[again, again], [text('Back.'), again], 'unused', [again]]);
      const b: Agent = new Agent({ name: 'B', model });
      b.handoffs.push(handoff(b, { onHandoff }));
      const a = new Agent({ name: 'A', model, handoffs: [handoff(b, { onHandoff })] });
      logged();
      const result = await runForm(a, 'Hi');
      expect([result.finalOutput, onHandoff.mock.calls.length]).toEqual(['Back.', 1]);
      expect(result.newItems.map(({ type }) => type)).toEqual([
        'handoff_call_item',
        'handoff_output_item',
        'message_output_item',
      ]);
      const tools = [effectTool('t', [])];
      const other = pair([toolCall('t', {}, { callId: 'x' }), [{ ...to('b'), call_id: 'x' }]], { tools });
      expect(await rejection(runForm(other.a, 'Hi'))).toMatchObject({ code: 'call_id_reused' });
    });

    test('start hooks of the target change its context before its tools and instructions are asked for [RUN#93] [RUN-803, 401]', async () => {
      const log: string[] = [];
      const context = { open: false };
      const gate = tool({
        name: 'gate',
        isEnabled: (ctx) => {
          log.push('isEnabled');
          return (ctx.context as typeof context).open;
        },
        execute: () => 'x',
      });
      const model = new ScriptedModel([to('b'), 'done']);
      const b = new Agent({
        name: 'B',
        model,
        tools: [gate],
        instructions: () => {
          log.push('instructions');
          return 'B';
        },
        handoffs: [
          handoff(new Agent({ name: 'C' }), {
            isEnabled: () => {
              log.push('handoff isEnabled');
              return true;
            },
          }),
        ],
        hooks: {
          onStart: (ctx) => {
            log.push('start');
            (ctx.context as typeof context).open = true;
          },
        },
      });
      const a = new Agent({ name: 'A', model, handoffs: [b] });
      await runForm(a, 'Hi', { context });
      expect(log).toEqual(['start', 'isEnabled', 'instructions', 'handoff isEnabled']);
      expect(model.calls[1]?.request.tools).toEqual([gate]);
    });

    test('one batch per turn goes to the session, the pair of the handoff in it [RUN-1604] [SESS W2]', async () => {
      const session = new PlainSession();
      const { a } = pair([[reasoning('why'), text('x'), to('b')], 'done']);
      await runForm(a, 'Hi', { session });
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual([
        'add[u]',
        'add[reasoning m fc fco]',
        'add[m]',
      ]);
    });

    test('an item that a hook adds to the session is not in this run, and is there for the next one [IL-005]', async () => {
      const session = new PlainSession();
      const { a, b, model } = pair([to('b'), 'done', 'next']);
      const hooks: RunHooks = { onHandoff: () => session.addItems([user('aside')]) };
      await runForm(a, 'Hi', { session, hooks });
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco');
      expect(session.kinds).toBe('u u fc fco m');
      await runForm(b, 'More', { session });
      expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u u fc fco m u');
    });

    test.each<[string, object, RunOptions]>([
      ['the callback of a handoff', { onHandoff: () => Promise.reject(new Error('late')) }, {}],
      ['the filter of a handoff', { inputFilter: () => Promise.reject(new Error('late')) }, {}],
      ['a hook', {}, { hooks: { onHandoff: () => Promise.reject(new Error('late')) } }],
    ])(
      '%s fails after a tool: the pair of the tool is kept, and nothing of the handoff [RUN#92] [RUN-509]',
      async (_, handoffOptions, options) => {
        const session = new PlainSession();
        const effects: string[] = [];
        const model = new ScriptedModel([[text('x'), toolCall('t'), to('b')]]);
        const b = new Agent({ name: 'B', model });
        const a = new Agent({
          name: 'A',
          model,
          tools: [effectTool('t', effects)],
          toolUseBehavior: 'stop_on_first_tool',
          handoffs: [handoff(b, handoffOptions)],
        });
        expect(((await rejection(runForm(a, 'Hi', { ...options, session }))) as Error).message).toBe('late');
        expect(session.kinds).toBe('u fc fco');
        expect(effects).toEqual(['t -']);
      },
    );
  });
});

describe('both forms of a run with handoffs', () => {
  const graph = (log: string[], model: ScriptedModel, options: object = {}): Agent => {
    const tools = [effectTool('t', log), effectTool('g', log, { needsApproval: true })];
    const c = new Agent({ name: 'C', model, tools });
    const b = new Agent({ name: 'B', model, tools, handoffs: [c] });
    const onHandoff = (): void => void log.push('callback');
    return new Agent({ name: 'A', model, tools, handoffs: [handoff(b, { onHandoff, ...options }), c] });
  };
  const steps = (): ModelStep[] => [
    toolCall('t'),
    [reasoning('hm'), text('x'), toolCall('g'), to('b'), to('c')],
    [text('y'), toolCall('t')],
    [text('z'), to('c')],
    'done',
  ];

  test.each<[string, object, RunOptions<never>]>([
    ['nothing else', {}, {}],
    ['nested history', {}, { nestHandoffHistory: true }],
    ['a filter that drops items', { inputFilter: () => ({ newItems: [] }) }, {}],
    ['a filter of the model`s view', { inputFilter: () => ({ inputItems: [], preHandoffItems: [] }) }, {}],
    ['ids of reasoning left out', {}, { reasoningItemIdPolicy: 'omit', nestHandoffHistory: false }],
  ])('with %s differ in nothing but events [RUN-001, 002, 003]', async (_, handoffOptions, options) => {
    const { plain, streamed } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: graph(log, new ScriptedModel(steps()), handoffOptions),
        input: 'go',
        options: { ...options, hooks, session: session('s') },
      }),
      goOn: async ({ result }, go, { hooks, session }) => {
        const state = result?.toState() as RunState;
        for (const item of state.interruptions) state.approve(item);
        const agent = result?.newItems[0]?.agent as AnyAgent;
        return await go(agent, state, { ...options, hooks, session: session('s') });
      },
    });
    expect(plain.result?.finalOutput).toBe('done');
    expect(plain.log.filter((line) => line.startsWith('handoff') || line === 'callback')).toEqual([
      'callback',
      'handoff A B',
      'handoff B C',
    ]);
    expect(namesOf(streamed.events).filter((name) => name.startsWith('agent'))).toEqual([
      'agent A',
      'agent B',
      'agent C',
    ]);
  });

  test('a run that fails in a handoff, too [RUN-002]', async () => {
    const { plain } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: graph(log, new ScriptedModel([[text('x'), toolCall('t'), to('b')]]), {
          inputFilter: () => 'nothing',
        }),
        input: 'go',
        options: { hooks, session: session('s') },
      }),
    });
    expect(plain.error).toBeInstanceOf(UserError);
  });
});

describe('events of a handoff', () => {
  test('the call is announced as one, then its output, then the new agent, before its first raw event [RUN-1301, 1305] [IL-125]', async () => {
    const { a, b } = pair([[text('x'), to('b'), to('b')], 'done']);
    const stream = runStreamed(a, 'Hi');
    const current: AnyAgent[] = [];
    const events = [];
    for await (const event of stream) {
      events.push(event);
      if (event.type === 'agent_updated_stream_event') current.push(stream.currentAgent);
    }
    expect(namesOf(events)).toEqual([
      'agent A',
      'R',
      'message_output_created',
      'handoff_requested',
      'handoff_requested',
      'tool_output',
      'handoff_occured',
      'agent B',
      'R',
      'message_output_created',
    ]);
    expect(current).toEqual([a, b]);
    const announced = events.flatMap((event) => (event.type === 'run_item_stream_event' ? [event.item] : []));
    expect(announced).toEqual([...stream.newItems]);
  });

  test('a stream that is cancelled after the turn of a handoff goes on with the target [RUN-1402, 1414]', async () => {
    const { a, b, model } = pair([to('b'), 'done']);
    const stream = runStreamed(a, 'Hi');
    for await (const event of stream)
      if (event.type === 'run_item_stream_event' && event.name === 'handoff_occured')
        stream.cancel({ mode: 'after_turn' });
    expect([stream.status, model.calls.length, stream.currentAgent]).toEqual(['cancelled', 1, b]);
    const state = stream.toState();
    expect([state.currentStep?.type, state.status, state.currentAgent]).toEqual(['next_step_handoff', 'ready', b]);
    const resumed = runStreamed(a, state);
    expect(namesOf(await readAll(resumed))[0]).toBe('agent B');
    expect(resumed.finalOutput).toBe('done');
  });
});
