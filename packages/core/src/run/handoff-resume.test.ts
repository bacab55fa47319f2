import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Agent } from '../agent/agent.ts';
import { handoff, Handoff } from '../agent/handoff.ts';
import { AgentsError, getRunErrorState, ModelBehaviorError, UserError } from '../base/errors.ts';
import { resetAll } from '../base/reset.ts';
import { RunState } from '../snapshot/run-state.ts';
import { bothForms } from '../testing/forms.ts';
import { text, toolCall } from '../testing/builders.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';
import type { ModelStep } from '../testing/script.ts';
import { effectTool, kindsOf, logged, namesOf, PlainSession, readAll, rejection } from '../../test/run-kit.ts';
import type { Mock } from 'vitest';
import type { HandoffInputFilter } from '../agent/handoff.ts';
import type { RunHooks } from '../agent/hooks.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { runStreamed } from './run.ts';
import type { RunOptions } from './options.ts';

afterEach(() => resetAll());

const toB = (callId?: string) => toolCall('transfer_to_b', {}, callId === undefined ? {} : { callId });

interface Desk {
  readonly a: Agent;
  readonly b: Agent;
  readonly model: ScriptedModel;
  /** Tools, callbacks and hooks, as they were run. */
  readonly effects: string[];
}

/** Agent A with a free tool `t`, a gated one `g` and a handoff to B, whose callback may fail. */
function desk(steps: readonly ModelStep[], options: { fails?: () => boolean } = {}): Desk {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const b = new Agent({ name: 'B', model, hooks: { onStart: () => void effects.push('start B') } });
  const onHandoff = (): void => {
    effects.push('handoff');
    if (options.fails?.()) throw new Error('callback');
  };
  const a = new Agent({
    name: 'A',
    model,
    tools: [effectTool('t', effects), effectTool('g', effects, { needsApproval: true })],
    handoffs: [handoff(b, { onHandoff })],
    hooks: { onHandoff: () => void effects.push('hook') },
  });
  return { a, b, model, effects };
}

/** Beside a call of `name`, the model hands off with arguments that do not fit, once more, and then as it should. */
function misfitDesk(name: 't' | 'g'): Desk & { readonly onHandoff: Mock<() => void> } {
  const {
    a: plain,
    b,
    model,
    effects,
  } = desk([
    [toolCall(name), toolCall('transfer_to_b', { reason: 5 }), toB()],
    toolCall('transfer_to_b', { reason: 'late' }),
    'from B',
  ]);
  const onHandoff = vi.fn<() => void>();
  const a = plain.clone({ handoffs: [handoff(b, { inputType: z.object({ reason: z.string() }), onHandoff })] });
  return { a, b, model, effects, onHandoff };
}

/** What the second call of the model saw: kinds, then the texts of the two handoffs. */
function misfitAnswers(model: ScriptedModel): unknown[] {
  const input = model.calls[1]?.request.input ?? [];
  return [kindsOf(input), ...input.slice(-2).map((item) => (item as { output?: unknown }).output)];
}

const misfitTexts = [
  'Multiple handoffs detected, ignoring this one.',
  'The handoff was not taken. Please try again. Invalid arguments: reason: expected string',
];

/** The state itself, and what it is after it was written down. */
const forms = ['live', 'JSON'] as const;
const through = async (form: (typeof forms)[number], agent: Agent, state: RunState): Promise<RunState> =>
  form === 'live' ? state : await RunState.fromString(agent, state.toString());

const approveAll = (state: RunState): RunState => {
  for (const item of state.interruptions) state.approve(item);
  return state;
};

bothForms((runForm, form) => {
  describe.each(forms)(`a handoff beside a call that waits (${form}, %s)`, (storage) => {
    test('is taken once, by the resume that has the last decision, after the tools [TOOL-HO41] [STATE#19] [STATE-124, 215]', async () => {
      const { a, b, model, effects } = desk([[text('x'), toB(), toolCall('g'), toolCall('t')], 'from B']);
      const paused = await runForm(a, 'Hi');
      expect([paused.status, effects, paused.lastAgent]).toEqual(['interrupted', ['t -'], a]);
      expect(kindsOf(paused.newItems.map(({ rawItem }) => rawItem as object))).toBe('m fc fc fc fc fco');
      const state = await through(storage, a, paused.toState());
      const again = await runForm(a, state);
      expect([again.status, effects]).toEqual(['interrupted', ['t -']]);
      const result = await runForm(a, approveAll(await through(storage, a, again.toState())));
      expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
      expect(effects).toEqual(['t -', 'g -', 'handoff', 'hook', 'start B']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u m fc fc fc fco fco fco');
      expect(result.newItems.filter(({ type }) => type === 'handoff_output_item')).toHaveLength(1);
    });

    test('and a rejection takes it likewise; tool-use behaviour does not end the run [STATE#111]', async () => {
      const { a, effects } = desk([[toolCall('g'), toB()], 'from B']);
      const stopping = a.clone({ toolUseBehavior: 'stop_on_first_tool' });
      const state = await through(storage, stopping, (await runForm(stopping, 'Hi')).toState());
      for (const item of state.interruptions) state.reject(item);
      const result = await runForm(stopping, state);
      expect([result.finalOutput, effects]).toEqual(['from B', ['handoff', 'hook', 'start B']]);
    });

    test('with a session: the pause stores the calls, the resume their outputs [RUN-1603, 1604]', async () => {
      const session = new PlainSession();
      const { a } = desk([[text('x'), toolCall('g'), toB()], 'from B']);
      const paused = await runForm(a, 'Hi', { session });
      await runForm(a, approveAll(await through(storage, a, paused.toState())), { session });
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual([
        'add[u]',
        'add[m fc fc]',
        'add[fco fco]',
        'add[m]',
      ]);
    });

    test.each(['before', 'after'] as const)(
      'whose turn cannot be stored (%s): the batch is repaired, the target goes on, nothing is repeated [IL-084] [STATE#26] [RUN-1610] [STATE-311, 312]',
      async (fault) => {
        const session = new PlainSession();
        const { a, b, model, effects } = desk([[text('x'), toolCall('g'), toB()], 'from B']);
        const paused = approveAll(await through(storage, a, (await runForm(a, 'Hi', { session })).toState()));
        session.faults.push(fault);
        const error = await rejection(runForm(a, paused, { session }));
        expect(error).toBe(session.error);
        expect(effects).toEqual(['g -', 'handoff', 'hook']);
        const failed = getRunErrorState(error) as RunState;
        expect([failed.currentAgent, failed.status]).toEqual([b, 'ready']);
        const result = await runForm(a, await through(storage, a, failed), { session });
        expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
        expect(effects).toEqual(['g -', 'handoff', 'hook', 'start B']);
        expect([session.kinds, model.calls.length]).toEqual(['u m fc fc fco fco m', 2]);
      },
    );

    test('of a fresh turn that cannot be stored, too [RUN-1610]', async () => {
      const session = new PlainSession();
      const { a, b, effects } = desk([[text('x'), toB()], 'from B']);
      session.faults.push(undefined, 'before');
      const error = await rejection(runForm(a, 'Hi', { session }));
      const failed = getRunErrorState(error) as RunState;
      expect(failed.currentAgent).toBe(b);
      const result = await runForm(a, await through(storage, a, failed), { session });
      expect([result.finalOutput, effects]).toEqual(['from B', ['handoff', 'hook', 'start B']]);
      expect(session.kinds).toBe('u m fc fco m');
    });

    test('whose callback failed is in doubt: it is not taken again unless the run is told to [STATE-139, 154]', async () => {
      let fails = true;
      const { a, b, model, effects } = desk([[text('x'), toolCall('t'), toB()], 'from B'], { fails: () => fails });
      const failed = getRunErrorState(await rejection(runForm(a, 'Hi'))) as RunState;
      expect([failed.status, failed.currentAgent, effects]).toEqual(['interrupted', a, ['t -', 'handoff']]);
      const state = await through(storage, a, failed);
      fails = false;
      for (const onInDoubt of ['fail', 'interrupt'] as const) {
        const refused = await rejection(runForm(a, await through(storage, a, failed), { onInDoubt }));
        expect(refused).toMatchObject({ code: 'call_executed_uncommitted' });
        expect((refused as Error).message).toMatch(/onInDoubt: 'retry'/);
        expect((refused as Error).message).not.toContain("'interrupt'");
      }
      const result = await runForm(a, state, { onInDoubt: 'retry' });
      expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
      expect(effects).toEqual(['t -', 'handoff', 'handoff', 'hook', 'start B']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u m fc fc fco fco');
    });

    test('whose arguments do not fit was not taken, and the state of the failed run tells the model [TOOL-HO11] [STATE-139]', async () => {
      const session = new PlainSession();
      const { a, b, model, effects, onHandoff } = misfitDesk('t');
      const error = await rejection(runForm(a, 'Hi', { session }));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Invalid arguments for handoff transfer_to_b');
      const failed = getRunErrorState(error) as RunState;
      expect([failed.status, onHandoff.mock.calls.length, effects]).toEqual(['interrupted', 0, ['t -']]);
      const result = await runForm(a, await through(storage, a, failed), { session });
      expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
      expect([onHandoff.mock.calls.length, effects]).toEqual([1, ['t -', 'hook', 'start B']]);
      expect(misfitAnswers(model)).toEqual(['u fc fc fc fco fco fco', ...misfitTexts]);
      expect(session.kinds).toBe('u fc fco fc fc fco fco fc fco m');
    });

    test('whose arguments do not fit, of a paused turn: the resume tells the model [TOOL-HO11]', async () => {
      const session = new PlainSession();
      const { a, b, model, effects, onHandoff } = misfitDesk('g');
      const paused = approveAll((await runForm(a, 'Hi', { session })).toState());
      const result = await runForm(a, await through(storage, a, paused), { session });
      expect([result.finalOutput, result.lastAgent]).toEqual(['from B', b]);
      expect([onHandoff.mock.calls.length, effects]).toEqual([1, ['g -', 'hook', 'start B']]);
      expect(misfitAnswers(model)).toEqual(['u fc fc fc fco fco fco', ...misfitTexts]);
      expect(session.kinds).toBe('u fc fc fc fco fco fco fc fco m');
    });

    test('of which there are several: the first wins [STATE-215]', async () => {
      const { a, b, model } = desk([[toolCall('g'), toB(), toolCall('transfer_to_c')], 'from B']);
      a.handoffs.push(new Agent({ name: 'C', model }));
      const state = approveAll(await through(storage, a, (await runForm(a, 'Hi')).toState()));
      const result = await runForm(a, state);
      expect(result.lastAgent).toBe(b);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fc fc fco fco fco');
      const outputs = (model.calls[1]?.request.input ?? [])
        .slice(-2)
        .map((item) => (item as { output?: unknown }).output);
      expect(outputs).toEqual(['Multiple handoffs detected, ignoring this one.', '{"assistant": "B"}']);
    });

    test('that the agent has not any more is not found, before anything runs or for the model [STATE §8.2]', async () => {
      const { a, effects } = desk([[toolCall('g'), toB()], 'done']);
      const paused = await runForm(a, 'Hi');
      a.handoffs.length = 0;
      const error = await rejection(runForm(a, approveAll(paused.toState())));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toBe('Tool transfer_to_b not found in agent A');
      expect(effects).toEqual([]);
      const told = approveAll(await through(storage, a, paused.toState()));
      const result = await runForm(a, told, { toolNotFoundBehavior: 'return_error_to_model' });
      expect([result.finalOutput, effects]).toEqual(['done', ['g -']]);
    });
  });

  describe(`other states with handoffs (${form})`, () => {
    test('a call that waits for a tool which is a handoff today is refused before anything runs [IL-076]', async () => {
      const { a, effects } = desk([[toolCall('g'), toolCall('t')]]);
      const text = (await runForm(a, 'Hi')).toState().toString();
      const target = new Agent({ name: 'B' });
      const onInvokeHandoff = vi.fn<() => Agent>(() => target);
      const escalate = new Handoff({ toolName: 'g', toolDescription: '', agentName: 'B', onInvokeHandoff });
      const later = new Agent({
        name: 'A',
        model: new ScriptedModel([]),
        tools: a.tools.slice(0, 1),
        handoffs: [escalate],
      });
      const error = await rejection(runForm(later, approveAll(await RunState.fromString(later, text))));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toMatch(/g \(call_1\).*agent A has a handoff of that name/);
      const undecided = await runForm(later, await RunState.fromString(later, text));
      expect(undecided.interruptions.map(({ callId }) => callId)).toEqual(['call_1']);
      expect([effects, onInvokeHandoff.mock.calls.length]).toEqual([['t -'], 0]);
    });

    test('two tools of one name under `error` are refused before anything runs [IL-076]', async () => {
      const { a, effects } = desk([toolCall('g')]);
      const text = (await runForm(a, 'Hi')).toState().toString();
      a.tools.push(effectTool('g', effects));
      const state = approveAll(await RunState.fromString(a, text));
      expect(await rejection(runForm(a, state, { toolNameCollisionPolicy: 'error' }))).toBeInstanceOf(UserError);
      expect(effects).toEqual([]);
    });

    test('a handoff that reuses the id of a call is refused, whoever approved that one [STATE#15] [STATE-151, 169]', async () => {
      const { a, effects } = desk([toolCall('g', {}, { callId: 'c' }), [toolCall('t'), toB('c')]]);
      const paused = await runForm(a, 'Hi');
      const error = await rejection(runForm(a, approveAll(paused.toState())));
      expect(error).toMatchObject({ code: 'call_id_reused' });
      expect(effects).toEqual(['g -']);
    });

    test('a run that handed off and ended goes on with the last agent, and its state says so [RUN-109, 111]', async () => {
      const { a, b, model } = desk([toB(), 'first', 'second']);
      const state = await RunState.fromString(a, (await runForm(a, 'Hi')).toState().toString());
      expect([state.currentAgent, state.status]).toEqual([b, 'completed']);
      const result = await runForm(a, state);
      expect([result.finalOutput, result.lastAgent]).toEqual(['second', b]);
      expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u fc fco m');
    });

    test('the identity of a handoff is that of the Python SDK [STATE-169] [STATE §5.3]', async () => {
      const model = new ScriptedModel([toolCall('transfer_to_billing', {}, { callId: 'call_d1' }), 'done']);
      const a = new Agent({ name: 'Desk', model, handoffs: [new Agent({ name: 'Billing', model })] });
      const json = (await runForm(a, 'Hi')).toState().toJSON() as unknown as {
        context: { tool_invocations: Record<string, object> };
        tool_use_tracker: object;
      };
      expect(json.context.tool_invocations['call_d1']).toEqual({
        type: 'function_call',
        approval_scope: '7b37a993c63ff0d0582c23679fd3a2bdeb2ab999469cde9c875343b340ab3eb7',
        fingerprint: 'd6e03448026efba55f214867abf7bc0967553c4b63b6b8e6219e304340d8881f',
        executed: true,
        completed: true,
      });
      expect(json.tool_use_tracker).toEqual({ Desk: ['transfer_to_billing'] });
    });

    test('a pause lists the handoffs of its response as the Python SDK does [STATE §12.5]', async () => {
      const { a } = desk([[toolCall('g'), toB('h')]]);
      const json = (await runForm(a, 'Hi')).toState().toJSON() as unknown as {
        last_processed_response: { handoffs: unknown[]; tools_used: unknown[] };
      };
      expect(json.last_processed_response).toMatchObject({
        tools_used: ['g', 'transfer_to_b'],
        handoffs: [
          {
            tool_call: { type: 'function_call', name: 'transfer_to_b', call_id: 'h' },
            handoff: { tool_name: 'transfer_to_b' },
          },
        ],
      });
    });

    test('agents of equal name: the second one goes on, whatever the order of the handoffs then [STATE#58] [STATE-373]', async () => {
      const model = new ScriptedModel([toolCall('transfer_to_second'), toolCall('g'), 'done']);
      const effects: string[] = [];
      const tools = [effectTool('g', effects, { needsApproval: true })];
      const graph = (turned: boolean): { a: Agent; second: Agent } => {
        const first = new Agent({ name: 'B', model, instructions: 'first', tools });
        const second = new Agent({ name: 'B', model, instructions: 'second', tools });
        const both = [handoff(first), handoff(second, { toolNameOverride: 'transfer_to_second' })];
        const a = new Agent({ name: 'A', model, handoffs: turned ? both.toReversed() : both });
        return { a, second };
      };
      const before = graph(false);
      const json = (await runForm(before.a, 'Hi')).toState().toString();
      const after = graph(true);
      const state = await RunState.fromString(after.a, json);
      expect(state.currentAgent).toBe(after.second);
      const result = await runForm(after.a, approveAll(state));
      expect([result.lastAgent, model.calls.at(-1)?.request.systemInstructions]).toEqual([after.second, 'second']);
    });

    test('an error of the target has the target and the items so far [RUN-1802]', async () => {
      const failure = new Error('model');
      const { a, b } = desk([toB(), { error: failure }]);
      const error = await rejection(runForm(a, 'Hi'));
      const state = getRunErrorState(error) as RunState;
      expect(state.currentAgent).toBe(b);
      expect(kindsOf(state.newItems.map(({ rawItem }) => rawItem as object))).toBe('fc fco');
      expect(error).not.toBeInstanceOf(AgentsError);
    });

    test.each<[string, object, RunOptions]>([
      ['the callback', { onHandoff: () => new Promise(() => {}) }, {}],
      ['the filter', { inputFilter: () => new Promise(() => {}) }, {}],
      ['a hook', {}, { hooks: { onHandoff: () => new Promise(() => {}) } }],
      ['`isEnabled`', { isEnabled: () => new Promise(() => {}) }, {}],
    ])('%s that never settles ends with the signal [RUN-512, 1417, 1418]', async (_, handoffOptions, options) => {
      const model = new ScriptedModel([toB()]);
      const a = new Agent({
        name: 'A',
        model,
        handoffs: [handoff(new Agent({ name: 'B', model }), handoffOptions)],
      });
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      const error = await rejection(runForm(a, 'Hi', { ...options, signal: controller.signal }));
      expect((error as Error).name).toBe('AbortError');
      expect((error as AgentsError).state?.currentAgent).toBe(a);
    });

    test('a predicate of a handoff that fails fails the run before the model is asked [TOOL-HO8] [TOOL-A24]', async () => {
      const failure = new Error('predicate');
      const model = new ScriptedModel([]);
      const isEnabled = (): boolean => {
        throw failure;
      };
      const a = new Agent({ name: 'A', model, handoffs: [handoff(new Agent({ name: 'B' }), { isEnabled })] });
      expect(await rejection(runForm(a, 'Hi'))).toBe(failure);
      expect(model.calls).toEqual([]);
    });

    test('what a filter does later to the lists that it was given or gave reaches nothing', async () => {
      const given: AgentInputItem[] = [{ role: 'user', content: 'instead' }];
      let kept: RunItem[] = [];
      const model = new ScriptedModel([[text('x'), toB()], toolCall('t'), 'done']);
      const b = new Agent({ name: 'B', model, tools: [effectTool('t', [])] });
      const inputFilter: HandoffInputFilter = ({ newItems }) => {
        kept = newItems.slice(0, 1);
        return { inputHistory: given, newItems: kept };
      };
      const a = new Agent({ name: 'A', model, handoffs: [handoff(b, { inputFilter })] });
      const hooks: RunHooks = {
        onAgentStart: (_, { name }) => {
          if (name === 'B') [given.length, kept.length] = [0, 0];
        },
      };
      const result = await runForm(a, 'Hi', { hooks });
      expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u m fc fco');
      expect(kindsOf(result.toInputList())).toBe('u m fc fco m');
    });

    test('an abort while the callback runs: nothing of the handoff is there, and it is in doubt [RUN-1413, 1418]', async () => {
      const controller = new AbortController();
      const model = new ScriptedModel([[toolCall('t'), toB()]]);
      const b = new Agent({ name: 'B', model });
      const onHandoff = (): Promise<void> => {
        controller.abort();
        return new Promise(() => {});
      };
      const a = new Agent({ name: 'A', model, tools: [effectTool('t', [])], handoffs: [handoff(b, { onHandoff })] });
      const error = (await rejection(runForm(a, 'Hi', { signal: controller.signal }))) as AgentsError;
      expect(error.name).toBe('AbortError');
      expect(error.state?.currentAgent).toBe(a);
      expect(error.runData?.newItems).toEqual([]);
      logged();
      expect(await rejection(runForm(a, error.state as RunState))).toMatchObject({ code: 'call_executed_uncommitted' });
    });
  });
});

test('a resumed turn tells of its outputs, the handoff and the new agent; a cancel there ends before the target [STATE-220] [STATE#78] [RUN-1306]', async () => {
  const { a, b, model } = desk([[toolCall('g'), toB()], 'from B']);
  const paused = runStreamed(a, 'Hi');
  await readAll(paused);
  const resumed = runStreamed(a, approveAll(paused.toState()));
  expect(namesOf(await readAll(resumed))).toEqual([
    'agent A',
    'tool_output',
    'handoff_occured',
    'agent B',
    'R',
    'message_output_created',
  ]);
  const cancelled = runStreamed(a, approveAll(paused.toState()));
  for await (const event of cancelled)
    if (event.type === 'run_item_stream_event' && event.name === 'tool_output')
      cancelled.cancel({ mode: 'after_turn' });
  expect([cancelled.status, cancelled.currentAgent, model.calls.length]).toEqual(['cancelled', b, 2]);
});

test('events of a handoff that could not be stored are delivered before the failure; its agent is not announced [RUN-705]', async () => {
  const session = new PlainSession();
  session.faults.push(undefined, 'before');
  const { a } = desk([[text('x'), toB()]]);
  const stream = runStreamed(a, 'Hi', { session });
  // Nobody reads until it has failed.
  await rejection(stream.completed);
  const names: string[] = [];
  const error = await rejection(
    (async () => {
      for await (const event of stream) names.push(...namesOf([event]));
    })(),
  );
  expect(error).toBe(session.error);
  expect(names).toEqual(['agent A', 'R', 'message_output_created', 'handoff_requested', 'handoff_occured']);
  // Later failures drop what was not read, as always.
  const later = desk([toB(), { error: new Error('model') }]);
  const failing = runStreamed(later.a, 'Hi');
  await rejection(failing.completed);
  expect(await rejection(readAll(failing))).toMatchObject({ message: 'model' });
});
