import { afterEach, describe, expect, it } from 'vitest';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  handoff,
  InputGuardrailTripwireTriggered,
  OutputGuardrailTripwireTriggered,
  RunState,
  runStreamed,
} from '../index.ts';
import type { FunctionTool, OutputGuardrail, RunOptions, ToolUseBehavior } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, kindsOf, PlainSession, readAll, rejection } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

// Writes that output guardrails withhold (STATE-127, 322…328).

const call = (name: string, id: string) => toolCall(name, { id }, { callId: id });
const WITHHELD = 'Output withheld by an output guardrail.';
const says = (trips: boolean): OutputGuardrail => ({ name: 'o', execute: () => ({ tripwireTriggered: trips }) });
const outputsOf = (items: readonly object[]): unknown[] =>
  items.flatMap((item) => (item as { output?: unknown }).output ?? []);

interface Options {
  readonly behavior?: ToolUseBehavior<unknown>;
  readonly trips?: boolean;
  readonly effects?: string[];
  readonly tools?: readonly FunctionTool<unknown>[];
}

/** The free tool `t`, the gated tool `g`, and an output guardrail; no tool of the list ends the run. */
function desk(steps: ModelStep[], options: Options = {}): Agent {
  const { behavior = { stopAtToolNames: ['other'] }, trips = false, effects = [], tools = [] } = options;
  return new Agent({
    name: 'A',
    model: new ScriptedModel(steps),
    tools: [
      effectTool('t', effects, { result: (id) => `out ${id}` }),
      effectTool('g', effects, { needsApproval: true, result: (id) => `out ${id}` }),
      ...tools,
    ],
    outputGuardrails: [says(trips)],
    toolUseBehavior: behavior,
  });
}

interface Held {
  readonly held?: boolean;
  readonly items: object[];
  readonly persisted_count: number;
  readonly current_response?: { readonly turn: number; readonly start: number };
}
const owed = (state: RunState): Held | undefined =>
  state.toJSON()['pending_session_write'] as unknown as Held | undefined;
const approve = (state: RunState): RunState => {
  for (const item of state.interruptions) state.approve(item);
  return state;
};

bothForms((runForm, form) => {
  describe.each(['live', 'through JSON'])(`a pause under output guardrails (${form}, %s)`, (way) => {
    const next = async (agent: Agent, state: RunState): Promise<RunState> =>
      way === 'live' ? state : await RunState.fromString(agent, state.toString());

    it('holds the write in the state; the resume stores each call before its output, in one append [STATE#76, STATE#105, STATE-127, STATE-322, STATE-324]', async () => {
      const session = new PlainSession();
      const agent = desk([call('g', 'c1'), 'done']);
      const paused = await runForm(agent, 'Hi', { session });
      const state = await next(agent, paused.toState());
      expect([session.kinds, owed(state)]).toEqual([
        'u',
        expect.objectContaining({
          held: true,
          before: null,
          persisted_count: 1,
          current_response: { turn: 1, start: 0 },
          reasoning_item_id_policy: null,
        }),
      ]);
      expect(state.toJSON()['current_turn_persisted_item_count']).toBe(0);
      session.log.length = 0;
      const done = await runForm(agent, approve(state), { session });
      expect([done.finalOutput, session.kinds]).toEqual(['done', 'u fc fco m']);
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual(['add[fc fco]', 'add[m]']);
      expect(owed(done.toState())).toBeUndefined();
    });

    it.each([false, true])(
      'a tool output that ends the run: stored with the held calls, data-free after a trip (%s) [STATE#106, STATE-219, STATE-324, STATE-325, RUN-929]',
      async (trips) => {
        const session = new PlainSession();
        const agent = desk([[call('g', 'c1'), call('t', 'c2')]], { behavior: 'stop_on_first_tool', trips });
        const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
        session.log.length = 0;
        const outcome = await runForm(agent, approve(state), { session }).then(
          ({ finalOutput }) => finalOutput,
          (error: unknown) => (error instanceof OutputGuardrailTripwireTriggered ? 'trip' : error),
        );
        expect(outcome).toBe(trips ? 'trip' : 'out c1');
        expect(session.kinds).toBe('u fc fc fco fco');
        expect(session.log.filter((line) => line.startsWith('add'))).toEqual(['add[fc fc fco fco]']);
        expect(outputsOf(session.items)).toEqual(trips ? [WITHHELD, WITHHELD] : ['out c2', 'out c1']);
        expect(owed(state)).toBeUndefined();
      },
    );

    it('of a response that cannot be rebuilt goes as a whole when its output is blocked [STATE-325, RUN-923, RUN-927]', async () => {
      const session = new PlainSession();
      const agent = desk([[reasoning('think'), call('g', 'c1'), call('t', 'c2')]], {
        behavior: 'stop_on_first_tool',
        trips: true,
      });
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      expect(await rejection(runForm(agent, approve(state), { session }))).toBeInstanceOf(
        OutputGuardrailTripwireTriggered,
      );
      expect(session.kinds).toBe('u');
    });

    it('grows while the run goes on without its session, and ends in the order of the calls [STATE#107, STATE-323, STATE-327]', async () => {
      const session = new PlainSession();
      const agent = desk([call('g', 'c1'), call('g', 'c2'), 'done']);
      let state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      const second = await runForm(agent, approve(state), { session: null });
      state = await next(agent, second.toState());
      expect([session.kinds, owed(state)?.current_response]).toEqual(['u', { turn: 2, start: 2 }]);
      expect(kindsOf(owed(state)?.items ?? [])).toBe('fc fco fc');
      const done = await runForm(agent, approve(state), { session });
      expect([done.finalOutput, session.kinds]).toEqual(['done', 'u fc fco fc fco m']);
      expect(session.items.flatMap((item) => (item as { call_id?: string }).call_id ?? [])).toEqual([
        'c1',
        'c1',
        'c2',
        'c2',
      ]);
    });

    it('of a turn that ended without the session is stored before the next model call [STATE-327, STATE-323]', async () => {
      const session = new PlainSession();
      let stored = '';
      const agent = desk([
        call('g', 'c1'),
        new Error('down'),
        () => {
          stored = session.kinds;
          return 'done';
        },
      ]);
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      const error = await rejection(runForm(agent, approve(state), { session: null }));
      const left = await next(agent, getRunErrorState(error) as RunState);
      expect([left.status, owed(left)?.held, kindsOf(owed(left)?.items ?? [])]).toEqual(['ready', true, 'fc fco']);
      const done = await runForm(agent, left, { session });
      expect([done.finalOutput, stored, session.kinds]).toEqual(['done', 'u fc fco', 'u fc fco m']);
    });

    it('grows under the policy that it began with [STATE-322, STATE-323]', async () => {
      const session = new PlainSession();
      const agent = desk([[reasoning('think'), call('g', 'c1'), call('g', 'c2')], 'done']);
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      state.approve(state.interruptions[0] as never);
      const again = await runForm(agent, state, { session, reasoningItemIdPolicy: 'omit' });
      const items = owed(again.toState())?.items ?? [];
      expect([kindsOf(items), (items[0] as { id?: string }).id]).toEqual(['reasoning fc fc fco', expect.any(String)]);
    });

    it('with another session it is refused; a run without one drops it at its end [STATE#108, STATE-326, STATE-327]', async () => {
      const session = new PlainSession();
      const effects: string[] = [];
      const agent = desk([call('g', 'c1'), 'done'], { effects });
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      approve(state);
      const other = await rejection(
        (async () => await runForm(agent, state, { session: new PlainSession('other') }))(),
      );
      expect([(other as { code?: string }).code, effects]).toEqual(['session_write_wrong_session', []]);
      const done = await runForm(agent, state, { session: null });
      expect([done.finalOutput, session.kinds, owed(done.toState())]).toEqual(['done', 'u', undefined]);
    });

    it('a pass that fails keeps it, with what was committed folded in [STATE#108, STATE#116, STATE-140, STATE-323]', async () => {
      const session = new PlainSession();
      const effects: string[] = [];
      const fails = effectTool('f', effects, {
        needsApproval: true,
        failureErrorFunction: null,
        result: () => {
          throw new Error('boom');
        },
      });
      const agent = desk([[call('g', 'c1'), call('f', 'c2')]], { tools: [fails] });
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      const error = await rejection(runForm(agent, approve(state), { session: null }));
      expect(error).toMatchObject({ code: 'tool_call' });
      const left = getRunErrorState(error) as RunState;
      expect(owed(left)).toMatchObject({ held: true, current_response: { turn: 1, start: 0 } });
      expect(kindsOf(owed(left)?.items ?? [])).toBe('fc fc fco');
      // Nothing of it is public: a guardrail may yet withhold it (RUN-1802).
      expect(getRunErrorDetails(error)?.newItems.map(({ type }) => type)).not.toContain('tool_call_output_item');
    });

    it('with recovered outputs a guardrail that throws leaves everything as it is, and is asked again [STATE#116, STATE-230, RUN-913]', async () => {
      const session = new PlainSession();
      const effects: string[] = [];
      let verdict: () => { tripwireTriggered: boolean } = () => {
        throw new Error('no verdict');
      };
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([call('g', 'c1')]),
        tools: [effectTool('g', effects, { needsApproval: true, result: () => 'out' })],
        outputGuardrails: [{ name: 'o', execute: () => verdict() }],
        toolUseBehavior: 'stop_on_first_tool',
      });
      let state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      const broken: RunOptions = {
        session,
        hooks: {
          onToolEnd: () => {
            throw new Error('hook');
          },
        },
      };
      let error = await rejection(runForm(agent, approve(state), broken));
      expect(error).toMatchObject({ message: 'hook' });
      state = await next(agent, getRunErrorState(error) as RunState);
      expect(kindsOf(owed(state)?.items ?? [])).toBe('fc fco');
      error = await rejection(runForm(agent, state, { session }));
      expect([(error as Error).message, session.kinds]).toEqual(['no verdict', 'u']);
      state = await next(agent, getRunErrorState(error) as RunState);
      expect(state.status).toBe('interrupted');
      verdict = () => ({ tripwireTriggered: false });
      const done = await runForm(agent, state, { session });
      expect([done.finalOutput, session.kinds, effects]).toEqual(['out', 'u fc fco', ['g c1']]);
      expect(done.outputGuardrailResults).toHaveLength(1);
    });

    it('one that was made without a session still owes the calls to the session of the resume [STATE-328]', async () => {
      const session = new PlainSession();
      const agent = desk([[call('g', 'c1'), call('t', 'c2')], 'done']);
      const state = await next(agent, (await runForm(agent, 'Hi')).toState());
      expect(owed(state)).toBeUndefined();
      await runForm(agent, approve(state), { session });
      expect(session.kinds).toBe('fc fc fco fco m');
    });

    it('a claimed batch whose append fails is owed like any other, and settled before the model is asked [STATE-324, STATE-317]', async () => {
      const session = new PlainSession();
      const effects: string[] = [];
      const agent = desk([call('g', 'c1'), 'done'], { effects });
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      session.faults.push('before');
      const error = await rejection(runForm(agent, approve(state), { session }));
      expect(error).toBe(session.error);
      const left = await next(agent, getRunErrorState(error) as RunState);
      expect(owed(left)?.held).toBeUndefined();
      expect(kindsOf(owed(left)?.items ?? [])).toBe('fc fco');
      const done = await runForm(agent, left, { session });
      expect([done.finalOutput, session.kinds, effects]).toEqual(['done', 'u fc fco m', ['g c1']]);
    });

    it('at the turn limit a handler drops it [STATE-326]', async () => {
      const session = new PlainSession();
      const agent = desk([call('g', 'c1')]);
      const state = await next(agent, (await runForm(agent, 'Hi', { session })).toState());
      const done = await runForm(agent, approve(state), {
        session: null,
        maxTurns: 1,
        errorHandlers: { maxTurns: () => ({ finalOutput: 'stop' }) },
      });
      expect([done.finalOutput, owed(done.toState())]).toEqual(['stop', undefined]);
    });
  });

  describe(`a state under output guardrails (${form})`, () => {
    const secondTurn = async (): Promise<{ agent: Agent; state: RunState }> => {
      const agent = desk([call('t', 'c0'), call('g', 'c1'), 'done'], { behavior: 'run_llm_again' });
      return { agent, state: (await runForm(agent, 'Hi')).toState() };
    };

    it('whose response is known goes on; one whose response is not is refused before any effect [STATE#120, STATE-218, STATE-345]', async () => {
      const { agent, state } = await secondTurn();
      const json = JSON.parse(state.toString()) as { [key: string]: unknown };
      const key = 'current_response_generated_item_ownership';
      const shifted = { ...(json[key] as object), start: 0 };
      const { agents_ts: _, ...older }: { [key: string]: unknown } = { ...json, $schemaVersion: '1.16' };
      for (const broken of [{ ...json, [key]: undefined }, { ...json, [key]: shifted }, older]) {
        const { [key]: own, ...rest } = JSON.parse(JSON.stringify(broken)) as typeof json;
        const restored = await RunState.fromJSON(agent, own === undefined ? rest : { ...rest, [key]: own });
        expect(await rejection(runForm(agent, approve(restored)))).toMatchObject({
          code: 'resume_output_guardrail_boundary',
        });
      }
      const restored = await RunState.fromString(agent, state.toString());
      expect((await runForm(agent, approve(restored))).finalOutput).toBe('done');
    });

    it('without guardrails an unknown response goes on; a pass of it that fails behind an output can never be repeated [STATE-336, STATE-218, RUN-1613]', async () => {
      const bare = new Agent({
        name: 'A',
        model: new ScriptedModel([call('t', 'c0'), call('g', 'c1'), 'done']),
        tools: [effectTool('t', []), effectTool('g', [], { needsApproval: true })],
      });
      const json = JSON.parse((await runForm(bare, 'Hi')).toState().toString()) as { [key: string]: unknown };
      const { current_response_generated_item_ownership: _, ...unknown } = json;
      const failing: RunOptions = {
        hooks: {
          onToolEnd: () => {
            throw new Error('hook');
          },
        },
      };
      for (const [state, status] of [
        [unknown, 'unrecoverable'],
        [json, 'interrupted'],
      ] as const) {
        const restored = approve(await RunState.fromJSON(bare, state));
        const left = getRunErrorState(await rejection(runForm(bare, restored, failing)));
        expect(left?.status).toBe(status);
      }
      const done = await runForm(bare, approve(await RunState.fromJSON(bare, unknown)));
      expect([done.finalOutput, done.toState().status]).toEqual(['done', 'completed']);
    });

    it('whose items are in the session already is refused with a tool that may end the run; without the session it goes on [STATE-218, RUN-929]', async () => {
      const session = new PlainSession();
      const bare = new Agent({
        name: 'A',
        model: new ScriptedModel([call('g', 'c1')]),
        tools: [effectTool('g', [], { needsApproval: true, result: () => 'out' })],
        toolUseBehavior: 'stop_on_first_tool',
      });
      const state = approve((await runForm(bare, 'Hi', { session })).toState());
      const outputGuardrails = [says(false)];
      expect(await rejection(runForm(bare, state, { session, outputGuardrails }))).toMatchObject({
        code: 'resume_output_guardrail_boundary',
      });
      const done = await runForm(bare, state, { session: null, outputGuardrails });
      expect([done.finalOutput, done.toState().toJSON()['current_turn_persisted_item_count']]).toEqual(['out', 0]);
    });

    it('a failing fresh turn whose output may yet be withheld keeps nothing in public [STATE#112, RUN#91, RUN-509]', async () => {
      const session = new PlainSession();
      const fails = effectTool('f', [], {
        failureErrorFunction: null,
        result: () => {
          throw new Error('boom');
        },
      });
      const agent = desk([[call('t', 'c1'), call('f', 'c2')], 'done'], {
        tools: [fails],
        behavior: 'stop_on_first_tool',
      });
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect([getRunErrorDetails(error)?.newItems, session.kinds]).toEqual([[], 'u']);
    });

    it('after a handoff whose run an input guardrail then stopped can never go on: its guardrails would be passed by [STATE#117, STATE-336, RUN-1613]', async () => {
      configureLogging({ level: 'silent' });
      const make = (): { agent: Agent; session: PlainSession } => {
        let open = (): void => undefined;
        const opened = new Promise<void>((resolve) => {
          open = resolve;
        });
        const b = new Agent({ name: 'B', model: new ScriptedModel([]) });
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([toolCall('transfer_to_b', {}, { callId: 'h1' })]),
          handoffs: [handoff(b, { onHandoff: () => open() })],
          inputGuardrails: [
            {
              name: 'late',
              execute: async () => {
                await opened;
                return { tripwireTriggered: true };
              },
            },
          ],
        });
        return { agent, session: new PlainSession() };
      };
      const { agent, session } = make();
      const error = await rejection(runForm(agent, 'Hi', { session }));
      expect(error).toBeInstanceOf(InputGuardrailTripwireTriggered);
      const details = getRunErrorDetails(error);
      expect([details?.newItems.map(({ type }) => type), details?.lastAgent.name, session.kinds]).toEqual([
        ['handoff_call_item', 'handoff_output_item'],
        'A',
        'u',
      ]);
      const state = getRunErrorState(error) as RunState;
      const streamed = make();
      const stream = runStreamed(streamed.agent, 'Hi', { session: streamed.session });
      await rejection(readAll(stream));
      for (const one of [state, await RunState.fromString(agent, state.toString()), stream.toState()]) {
        expect(one.status).toBe('unrecoverable');
        expect(await rejection((async () => await runForm(agent, one, { session }))())).toMatchObject({
          code: 'state_unrecoverable',
        });
      }
    });
  });
});
