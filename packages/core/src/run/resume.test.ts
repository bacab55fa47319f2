import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  AgentsError,
  getRunErrorDetails,
  getRunErrorState,
  MaxTurnsExceededError,
  ModelBehaviorError,
  run,
  RunContext,
  runStreamed,
  RunState,
  tool,
  ToolCallError,
  UserError,
} from '../index.ts';
import type { AgentInputItem, AnyAgent, RunInput, RunOptions, RunResult } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, kindsOf, logged, namesOf, PlainSession, readAll, rejection, thrown } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

interface Refund {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly effects: string[];
}

/** An agent with the gated tool `refund` and the free tool `lookup`. */
function desk(...steps: ModelStep[]): Refund {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const tools = [
    effectTool('refund', effects, { needsApproval: true, result: (id) => `refunded ${id}` }),
    effectTool('lookup', effects, { result: (id) => `found ${id}` }),
  ];
  return { agent: new Agent({ name: 'Desk', model, tools }), model, effects };
}

const refund = (id: string, callId: string) => toolCall('refund', { id }, { callId });
const lookup = (id: string, callId: string) => toolCall('lookup', { id }, { callId });

/** Texts of the outputs that the model was given, by call id. */
function outputsIn(items: readonly AgentInputItem[]): Record<string, unknown> {
  return Object.fromEntries(
    items.flatMap((item) => (item.type === 'function_call_output' ? [[item.call_id, item.output]] : [])),
  );
}

function item(state: RunState, callId: string) {
  const found = state.interruptions.find((one) => one.callId === callId);
  if (!found) throw new Error(`${callId} does not wait.`);
  return found;
}

bothForms((runForm, form) => {
  describe.each(['live', 'through JSON'])(`a paused run goes on (${form}, %s)`, (way) => {
    const stateOf = async (agent: AnyAgent, result: RunResult): Promise<RunState> =>
      way === 'live' ? result.toState() : await RunState.fromString(agent as Agent, result.toState().toString());

    it('waits for the decision, then runs the call once [STATE#1, RUN#4, RUN-502, 1005]', async () => {
      const { agent, model, effects } = desk(refund('7', 'c1'), 'done');
      const first = await runForm(agent, 'go');
      expect([first.status, first.finalOutput, effects]).toEqual(['interrupted', undefined, []]);
      expect(first.interruptions).toHaveLength(1);
      expect(first.interruptions[0]).toMatchObject({ name: 'refund', arguments: '{"id":"7"}', callId: 'c1' });
      expect(first.interruptions[0]?.agent).toBe(agent);
      const state = await stateOf(agent, first);
      state.approve(item(state, 'c1'));
      const second = await runForm(agent, state);
      expect([second.status, second.finalOutput, second.interruptions, effects]).toEqual([
        'completed',
        'done',
        [],
        ['refund 7'],
      ]);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco');
      expect(second.context.usage.requests).toBe(2);
      expect(second.currentTurn).toBe(2);
    });

    it('gives the model the default text for a rejection [STATE#2, STATE-111, 112]', async () => {
      const { agent, model, effects } = desk(refund('7', 'c1'), 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.reject(item(state, 'c1'));
      const result = await runForm(agent, state);
      expect([result.finalOutput, effects]).toEqual(['done', []]);
      expect(outputsIn(model.calls[1]?.request.input ?? [])).toEqual({ c1: 'Tool execution was not approved.' });
    });

    it('runs free calls at once; outputs stand in the order of the calls [STATE#3, STATE-121, 123]', async () => {
      const { agent, model, effects } = desk([refund('7', 'g'), lookup('7', 'f')], 'done');
      const first = await runForm(agent, 'go');
      expect(effects).toEqual(['lookup 7']);
      const state = await stateOf(agent, first);
      state.approve(item(state, 'g'));
      await runForm(agent, state);
      expect(effects).toEqual(['lookup 7', 'refund 7']);
      const sent = model.calls[1]?.request.input ?? [];
      expect(kindsOf(sent)).toBe('u fc fc fco fco');
      // What was committed before the pause stays where it is; what came later follows.
      expect(Object.keys(outputsIn(sent)).toSorted()).toEqual(['f', 'g']);
    });

    it('takes decisions one after the other, and asks the model when the last is made [STATE#4, STATE-214]', async () => {
      const { agent, model, effects } = desk([refund('1', 'c1'), refund('2', 'c2')], 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      const second = item(state, 'c2');
      state.approve(item(state, 'c1'));
      const between = await runForm(agent, state);
      expect(between.interruptions).toEqual([second]);
      expect(between.interruptions[0]).toBe(second);
      expect([model.calls.length, effects]).toEqual([1, ['refund 1']]);
      const next = await stateOf(agent, between);
      next.reject(item(next, 'c2'));
      await runForm(agent, next);
      expect(effects).toEqual(['refund 1']);
      const sent = model.calls[1]?.request.input ?? [];
      expect(kindsOf(sent)).toBe('u fc fc fco fco');
      expect(outputsIn(sent)).toEqual({ c1: 'refunded 1', c2: 'Tool execution was not approved.' });
    });

    it('stays where it is while nothing is decided, with one warning [STATE#5, RUN-115, STATE-214]', async () => {
      const { agent, model, effects } = desk(refund('7', 'c1'));
      const first = await runForm(agent, 'go');
      const records = logged();
      const again = await runForm(agent, await stateOf(agent, first));
      expect(again.interruptions.map((one) => one.callId)).toEqual(['c1']);
      expect(again.newItems.map((one) => one.type)).toEqual(['tool_call_item', 'tool_approval_item']);
      expect([model.calls.length, effects]).toEqual([1, []]);
      expect(records.map((record) => record.level)).toEqual(['warn']);
      expect(comparable(again.toState().toString())).toEqual(comparable(first.toState().toString()));
    });

    it('warns of each pause that is resumed undecided, whatever was decided in earlier ones; not where a call is decided, before or by the run [RUN-115]', async () => {
      const { agent } = desk(refund('1', 'c1'), [refund('2', 'c2'), refund('3', 'c3')], 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.approve(item(state, 'c1'));
      const records = logged();
      const second = await runForm(agent, state);
      expect(records).toEqual([]);
      await runForm(agent, await stateOf(agent, second));
      expect(records.map((record) => record.level)).toEqual(['warn']);
      const one = await stateOf(agent, second);
      one.reject(item(one, 'c2'));
      expect((await runForm(agent, one)).status).toBe('interrupted');
      const all = await runForm(agent, await stateOf(agent, second), { onApproval: () => ({ type: 'approve' }) });
      expect(all.status).toBe('completed');
      expect(records).toHaveLength(1);
    });

    it('lets a standing approval hold for later calls [STATE#10, STATE-163, 164]', async () => {
      const { agent, effects } = desk(refund('1', 'c1'), refund('2', 'c2'), 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.approve(item(state, 'c1'), { always: true });
      const result = await runForm(agent, state);
      expect([result.finalOutput, effects]).toEqual(['done', ['refund 1', 'refund 2']]);
    });

    it('lets an exact rejection beat a standing approval, with its own text [STATE#11, STATE-161, 165]', async () => {
      const { agent, model, effects } = desk([refund('1', 'c1'), refund('2', 'c2')], 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.approve(item(state, 'c1'), { always: true });
      state.reject(item(state, 'c2'), { message: 'not this one' });
      await runForm(agent, state);
      expect(effects).toEqual(['refund 1']);
      expect(outputsIn(model.calls[1]?.request.input ?? [])).toEqual({ c1: 'refunded 1', c2: 'not this one' });
    });

    it.each(['approve', 'reject'] as const)(
      'keeps the text of an exact rejection when a standing decision comes behind it: %s [STATE#11, STATE-163, STATE-165]',
      async (type) => {
        const { agent, model } = desk([refund('1', 'c1'), refund('2', 'c2'), refund('3', 'c3')], 'done');
        const state = await stateOf(agent, await runForm(agent, 'go'));
        state.reject(item(state, 'c2'), { message: 'not this one' });
        state.reject(item(state, 'c3'), { message: 'nor that' });
        state.decide(item(state, 'c1'), { type, always: true });
        await runForm(agent, state);
        const said = outputsIn(model.calls[1]?.request.input ?? []);
        expect([said['c2'], said['c3']]).toEqual(['not this one', 'nor that']);
      },
    );

    it('lets an exact approval beat a standing rejection, whose text later calls get [STATE#12, STATE-161, 165]', async () => {
      const { agent, model, effects } = desk([refund('1', 'c1'), refund('2', 'c2')], refund('3', 'c3'), 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.reject(item(state, 'c1'), { always: true, message: 'closed' });
      state.approve(item(state, 'c2'));
      const result = await runForm(agent, state);
      expect([result.finalOutput, effects]).toEqual(['done', ['refund 2']]);
      expect(outputsIn(model.calls[2]?.request.input ?? [])).toEqual({ c1: 'closed', c2: 'refunded 2', c3: 'closed' });
    });

    it('refuses an id that comes again with other arguments [STATE#13, STATE-151]', async () => {
      const { agent, effects } = desk(refund('1', 'c1'), refund('2', 'c1'));
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.approve(item(state, 'c1'), { always: true });
      const error = await rejection(runForm(agent, state));
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect(error).toMatchObject({ code: 'call_id_reused' });
      expect(effects).toEqual(['refund 1']);
    });

    it('does not repeat a finished call that the model repeats; neither item nor event comes of it [STATE#14, STATE-153]', async () => {
      const { agent, effects, model } = desk(refund('1', 'c1'), [reasoning('again'), refund('1', 'c1')], 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      state.approve(item(state, 'c1'));
      const result = await runForm(agent, state);
      expect([result.finalOutput, effects, model.calls.length]).toEqual(['done', ['refund 1'], 3]);
      expect(result.newItems.map((one) => one.type)).toEqual([
        'tool_call_item',
        'tool_approval_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
    });

    it('runs two identical calls of one id once [STATE#16, STATE-125]', async () => {
      const { agent, model, effects } = desk([refund('1', 'c1'), refund('1', 'c1')], 'done');
      const state = await stateOf(agent, await runForm(agent, 'go'));
      expect(state.interruptions).toHaveLength(1);
      state.approve(item(state, 'c1'));
      await runForm(agent, state);
      expect(effects).toEqual(['refund 1']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fco');
    });

    it('keeps the session of the pause apart: it has to be named again, or given up on purpose [RUN#97, RUN-114, STATE-210, SESS#99]', async () => {
      const { agent, model } = desk(refund('7', 'c1'), 'done', 'done');
      const session = new PlainSession('chat');
      const first = await runForm(agent, 'go', { session });
      session.log.length = 0;
      const decided = async (edit: (json: Record<string, unknown>) => void = () => undefined) => {
        const json: Record<string, unknown> = structuredClone(first.toState().toJSON());
        edit(json);
        const state =
          way === 'live' && json['agents_ts'] !== undefined ? first.toState() : await RunState.fromJSON(agent, json);
        state.approve(item(state, 'c1'));
        return state;
      };
      const state = await decided();
      expect(state.sessionId).toBe('chat');
      const refused = form === 'plain' ? await rejection(run(agent, state)) : thrown(() => runStreamed(agent, state));
      expect(refused).toBeInstanceOf(UserError);
      expect(refused).toMatchObject({ code: 'session_missing' });
      expect([session.log, model.calls.length]).toEqual([[], 1]);
      expect((await runForm(agent, state, { session: null })).finalOutput).toBe('done');
      expect([session.log, session.kinds]).toEqual([[], 'u fc']);
      expect((await runForm(agent, await decided((json) => delete json['agents_ts']))).finalOutput).toBe('done');
    });
  });

  describe(`a resumed run that fails (${form})`, () => {
    it('leaves a started call in doubt: it never just runs again [STATE#17, STATE-154]', async () => {
      let entered = 0;
      const boom = tool({
        name: 'boom',
        needsApproval: true,
        failureErrorFunction: null,
        execute: () => {
          entered += 1;
          throw new Error('boom');
        },
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('boom')]), tools: [boom] });
      const state = (await runForm(agent, 'go')).toState();
      for (const one of state.interruptions) state.approve(one);
      expect(await rejection(runForm(agent, state))).toBeInstanceOf(ToolCallError);
      expect(await rejection(runForm(agent, state))).toMatchObject({ code: 'call_executed_uncommitted' });
      expect(entered).toBe(1);
    });

    it('keeps what is committed when a hook fails after it; the rest runs once [STATE#18, STATE-212]', async () => {
      const { agent, model, effects } = desk([refund('1', 'c1'), refund('2', 'c2')], 'done');
      const state = (await runForm(agent, 'go')).toState();
      for (const one of state.interruptions) state.approve(one);
      let fails = true;
      const hooks: RunOptions['hooks'] = {
        onToolEnd: (ctx) => {
          if (ctx.toolCallId !== 'c2' || !fails) return;
          fails = false;
          throw new Error('hook');
        },
      };
      expect(await rejection(runForm(agent, state, { hooks }))).toMatchObject({
        message: expect.stringContaining('hook'),
      });
      const result = await runForm(agent, state, { hooks });
      expect([result.finalOutput, effects]).toEqual(['done', ['refund 1', 'refund 2']]);
      const sent = model.calls[1]?.request.input ?? [];
      expect(sent.flatMap((one) => (one.type === 'function_call_output' ? [one.call_id] : []))).toEqual(['c1', 'c2']);
      expect(result.newItems.filter((one) => one.type === 'tool_call_output_item')).toHaveLength(2);
    });

    it.each(['live', 'through JSON'])(
      'in a later turn leaves the state of that turn: its calls do not run again (%s) [STATE-136, STATE-139, RUN-516]',
      async (way) => {
        const effects: string[] = [];
        const boom = tool({
          name: 'boom',
          failureErrorFunction: null,
          execute: () => Promise.reject(new Error('boom')),
        });
        const model = new ScriptedModel([
          refund('1', 'c1'),
          [lookup('2', 'c2'), toolCall('boom', {}, { callId: 'c3' })],
        ]);
        const agent = new Agent({
          name: 'A',
          model,
          tools: [effectTool('refund', effects, { needsApproval: true }), effectTool('lookup', effects), boom],
        });
        const session = new PlainSession();
        const state = (await runForm(agent, 'go', { session })).toState();
        state.approve(item(state, 'c1'));
        const error = await rejection(runForm(agent, state, { session }));
        expect(getRunErrorDetails(error)?.newItems.map((one) => one.type)).toEqual([
          'tool_call_item',
          'tool_approval_item',
          'tool_call_output_item',
          'tool_call_item',
          'tool_call_output_item',
        ]);
        expect(session.kinds).toBe('u fc fco fc fco');
        const left = getRunErrorState(error) as RunState;
        const next = way === 'live' ? left : await RunState.fromString(agent, left.toString());
        expect([next.status, next.currentTurn]).toEqual(['interrupted', 2]);
        expect(await rejection(runForm(agent, next, { session }))).toMatchObject({ code: 'call_executed_uncommitted' });
        expect([effects, model.calls.length]).toEqual([['refund 1', 'lookup 2'], 2]);
      },
    );

    it('over the limit of turns goes on with a higher one; nothing was counted that was not asked [RUN#82, RUN-110, STATE-207, RUN-2001]', async () => {
      const { agent, effects } = desk(refund('7', 'c1'), 'done');
      const state = (await runForm(agent, 'go', { maxTurns: 1 })).toState();
      state.approve(item(state, 'c1'));
      const error = await rejection(runForm(agent, state));
      expect(error).toBeInstanceOf(MaxTurnsExceededError);
      const next = getRunErrorState(error) as RunState;
      expect([next.status, next.currentTurn]).toEqual(['ready', 1]);
      const result = await runForm(agent, next, { maxTurns: 5 });
      expect([result.finalOutput, effects]).toEqual(['done', ['refund 7']]);
      expect(result.toState().toJSON()['max_turns']).toBe(5);
    });
  });

  describe(`states (${form})`, () => {
    it('restored twice from one text are two runs [STATE#9, IL-063]', async () => {
      const { agent, model, effects } = desk(refund('7', 'c1'));
      const text = (await runForm(agent, 'go')).toState().toString();
      const results: RunResult[] = [];
      for (const answer of ['one', 'two']) {
        const state = await RunState.fromString(agent, text);
        state.approve(item(state, 'c1'));
        model.add(answer);
        results.push(await runForm(agent, state));
      }
      expect(results.map((result) => [result.finalOutput, result.context.usage.requests])).toEqual([
        ['one', 2],
        ['two', 2],
      ]);
      expect(effects).toEqual(['refund 7', 'refund 7']);
      expect(results[0]?.newItems).toHaveLength(4);
    });

    it('made from one result share nothing: deciding and running one changes neither the other nor the result [STATE#69, STATE-131, 132, IL-069]', async () => {
      const { agent } = desk(refund('7', 'c1'), 'done');
      const result = await runForm(agent, 'go');
      const [a, b] = [result.toState(), result.toState()];
      const before = [b.toString(), result.toState().toString()];
      a.approve(item(a, 'c1'), { always: true });
      await runForm(agent, a);
      expect(comparable(b.toString())).toEqual(comparable(before[0] ?? ''));
      expect(comparable(result.toState().toString())).toEqual(comparable(before[1] ?? ''));
      expect([
        result.status,
        result.newItems.length,
        result.rawResponses.length,
        result.context.usage.requests,
        result.interruptions.length,
      ]).toEqual(['interrupted', 2, 1, 1, 1]);
      logged();
      const again = await runForm(agent, b);
      expect([again.status, again.context.usage.requests]).toEqual(['interrupted', 1]);
    });

    it('that were passed in advance with their interrupted turn, and no later turn adds to their lists [STATE-135]', async () => {
      const { agent } = desk(refund('7', 'c1'), lookup('1', 'c2'), 'done');
      const state = (await runForm(agent, 'go')).toState();
      state.approve(item(state, 'c1'));
      const result = await runForm(agent, state);
      expect(result.newItems.map((one) => one.type)).toEqual([
        'tool_call_item',
        'tool_approval_item',
        'tool_call_output_item',
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
      expect(state.newItems.map((one) => one.type)).toEqual([
        'tool_call_item',
        'tool_approval_item',
        'tool_call_output_item',
      ]);
      expect(state.status).toBe('completed');
    });

    it.each(['live', 'through JSON'])(
      'that were passed in can be run again after a later turn failed (%s) [STATE-135]',
      async (way) => {
        const { agent, model, effects } = desk(
          refund('7', 'c1'),
          lookup('1', 'c2'),
          new Error('down'),
          lookup('1', 'c2'),
          'done',
        );
        const state = (await runForm(agent, 'go')).toState();
        state.approve(item(state, 'c1'));
        expect(await rejection(runForm(agent, state))).toMatchObject({ message: 'down' });
        expect(state.status).toBe('ready');
        const again = way === 'live' ? state : await RunState.fromString(agent, state.toString());
        const result = await runForm(agent, again);
        expect([result.finalOutput, model.calls.length]).toEqual(['done', 5]);
        // It stands where its interrupted turn ended: what came after is done again, as the model asks for it again.
        expect(effects).toEqual(['refund 7', 'lookup 1', 'lookup 1']);
        expect(kindsOf(result.toInputList())).toBe('u fc fco fc fco m');
      },
    );

    it('that were passed in share nothing with the result: their text can be restored, their decisions are their own [STATE-131, 132, RUN-1213]', async () => {
      const { agent } = desk([refund('1', 'c1'), refund('2', 'c2')], lookup('3', 'c3'), 'done');
      const state = (await runForm(agent, 'go')).toState();
      state.approve(item(state, 'c1'));
      const paused = await runForm(agent, state);
      const before = comparable(paused.toState().toString());
      state.approve(item(state, 'c2'));
      expect(comparable(paused.toState().toString())).toEqual(before);
      const done = await runForm(agent, state);
      expect(done.finalOutput).toBe('done');
      expect(comparable(paused.toState().toString())).toEqual(before);
      expect([paused.context.usage.requests, done.context.usage.requests, state.usage.requests]).toEqual([1, 3, 3]);
      const restored = await RunState.fromString(agent, state.toString());
      expect([restored.status, kindsOf(restored.toInputList())]).toEqual(['completed', 'u fc fc fco fco']);
    });

    it('of every kind come back equal from their text, as they are left by runs [STATE#38, STATE-341, STATE#129]', async () => {
      const session = new PlainSession();
      const boom = tool({ name: 'boom', failureErrorFunction: null, execute: () => Promise.reject(new Error('boom')) });
      const of = async (
        steps: ModelStep[],
        options: RunOptions = {},
        act: (stream: ReturnType<typeof runStreamed>) => void = () => undefined,
      ) => {
        const effects: string[] = [];
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel(steps),
          tools: [effectTool('refund', effects, { needsApproval: true }), effectTool('lookup', effects), boom],
        });
        if (form === 'plain') {
          const state = await run(agent, 'go', options).then(
            (result) => result.toState(),
            (error: unknown) => getRunErrorState(error) as RunState,
          );
          return { agent, state };
        }
        const stream = runStreamed(agent, 'go', options);
        act(stream);
        await readAll(stream).catch(() => undefined);
        await stream.completed.catch(() => undefined);
        return { agent, state: stream.toState() as RunState };
      };
      const cases: Record<string, { agent: Agent; state: RunState }> = {
        paused: await of([[text('wait'), reasoning('hm'), refund('1', 'c1'), lookup('2', 'c2')]], {
          context: { tenant: 't1' },
        }),
        completed: await of([lookup('1', 'c1'), 'done']),
        ready: await of([lookup('1', 'c1')], { maxTurns: 1 }),
        interrupted: await of([[lookup('1', 'c1'), toolCall('boom', {}, { callId: 'c2' })]]),
      };
      session.faults.push(undefined, 'before');
      cases['pending'] = await of([lookup('1', 'c1')], { session });
      session.faults.push(undefined, 'before');
      cases['unrecoverable'] = await of(['done'], { session });
      cases['fresh'] = await of([new Error('down')]);
      const statuses = {
        paused: 'interrupted',
        completed: 'completed',
        ready: 'ready',
        interrupted: 'interrupted',
        pending: 'ready',
        unrecoverable: 'unrecoverable',
        fresh: 'ready',
      };
      for (const [name, { agent, state }] of Object.entries(cases)) {
        expect([name, state.status]).toEqual([name, statuses[name as keyof typeof statuses]]);
        const json = state.toJSON();
        expect(json.$schemaVersion).toBe('1.21');
        const restored = await RunState.fromJSON(agent, json);
        expect(restored.toJSON()).toEqual(json);
        expect(restored.status).toBe(state.status);
        expect(restored.toInputList()).toEqual(state.toInputList());
        expect(restored.newItems.map((one) => one.type)).toEqual(state.newItems.map((one) => one.type));
      }
    });

    it('with hostile keys give no authority and change no prototype; their context arrives whole [STATE#72, STATE-403]', async () => {
      const seen: unknown[] = [];
      const model = new ScriptedModel([toolCall('who', {}, { callId: 'c1' }), 'done']);
      const who = tool({ name: 'who', needsApproval: true, execute: (_args, ctx) => void seen.push(ctx.context) });
      const agent = new Agent({ name: 'A', model, tools: [who] });
      const text = (await runForm(agent, 'go', { context: { tenant: 't1' } })).toState().toString();
      const yes = '{"approved":true,"rejected":[],"polluted":true}';
      const hostile = text
        .replace('"approvals":{}', `"approvals": {"__proto__": ${yes}, "constructor": ${yes}, "toString": ${yes}}`)
        .replace('"tenant":"t1"', '"tenant": "t1", "__proto__": {"polluted": true}');
      expect(hostile).not.toBe(text);
      const state = await RunState.fromString(agent, hostile);
      logged();
      const waiting = await runForm(agent, state);
      expect(waiting.interruptions).toHaveLength(1);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
      const next = await RunState.fromString(agent, waiting.toState().toString());
      next.approve(item(next, 'c1'));
      await runForm(agent, next);
      expect(Object.keys(seen[0] as object)).toEqual(['tenant', '__proto__']);
      expect((seen[0] as { polluted?: unknown }).polluted).toBeUndefined();
      expect(JSON.stringify(seen[0])).toContain('"__proto__":{"polluted":true}');
    });

    it('take decisions through items of the result, of the state and of another restore [STATE#70, STATE-171, STATE-138]', async () => {
      const { agent, effects } = desk(refund('1', 'c1'));
      const result = await runForm(agent, 'go');
      const text = result.toState().toString();
      const other = await RunState.fromString(agent, text);
      for (const from of [result, other]) {
        const state = await RunState.fromString(agent, text);
        state.approve(from.interruptions[0] as never);
        (state.interruptions as unknown[]).length = 0;
        expect(state.interruptions).toHaveLength(1);
        const model = new ScriptedModel(['done']);
        expect((await runForm(agent, state, { model })).finalOutput).toBe('done');
      }
      expect(effects).toEqual(['refund 1', 'refund 1']);
    });

    it('keep decisions and usage when the context is replaced [STATE#67, STATE-203, RUN-107]', async () => {
      const seen: unknown[] = [];
      const who = tool({ name: 'who', needsApproval: true, execute: (_args, ctx) => void seen.push(ctx.context) });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('who', {}, { callId: 'c1' }), 'done', 'done']),
        tools: [who],
      });
      const text = (await runForm(agent, 'go', { context: { tenant: 'old' } })).toState().toString();
      for (const context of [{ tenant: 'new' }, new RunContext({ tenant: 'wrapped' })]) {
        const state = await RunState.fromString(agent, text);
        state.approve(item(state, 'c1'));
        const result = await runForm(agent, state, { context });
        expect(result.context.usage.requests).toBe(2);
      }
      expect(seen).toEqual([{ tenant: 'new' }, { tenant: 'wrapped' }]);
    });
  });

  describe(`a tool that is gone when the run goes on (${form})`, () => {
    const paused = async () => {
      const { agent } = desk(refund('1', 'c1'));
      return (await runForm(agent, 'go')).toState().toString();
    };
    const later = (model: ScriptedModel) => new Agent({ name: 'Desk', model, tools: [] });

    it('fails an approved call, or tells the model, as the run says [STATE#64, RUN-514]', async () => {
      const text = await paused();
      const model = new ScriptedModel(['done']);
      const agent = later(model);
      const approved = async () => {
        const state = await RunState.fromString(agent, text);
        state.approve(item(state, 'c1'));
        return state;
      };
      expect(await rejection(runForm(agent, await approved()))).toBeInstanceOf(ModelBehaviorError);
      const result = await runForm(agent, await approved(), { toolNotFoundBehavior: 'return_error_to_model' });
      expect(result.finalOutput).toBe('done');
      expect(outputsIn(model.calls[0]?.request.input ?? [])).toEqual({ c1: "Tool 'refund' not found." });
    });

    it('keeps an undecided call waiting, and gives the text of a rejection [STATE#64]', async () => {
      const text = await paused();
      const model = new ScriptedModel(['done']);
      const agent = later(model);
      logged();
      expect(
        (await runForm(agent, await RunState.fromString(agent, text))).interruptions.map((one) => one.callId),
      ).toEqual(['c1']);
      const state = await RunState.fromString(agent, text);
      state.reject(item(state, 'c1'), { message: 'no' });
      await runForm(agent, state);
      expect(outputsIn(model.calls[0]?.request.input ?? [])).toEqual({ c1: 'no' });
    });
  });

  describe(`what a hook throws (${form})`, () => {
    const failing = (value: unknown) =>
      rejection(
        runForm(desk(lookup('1', 'c1'), 'x').agent, 'go', {
          hooks: {
            onLlmEnd: (ctx) => {
              if (ctx.usage.requests === 2) throw value;
            },
          },
        }),
      );

    it('leaves the run as the same object, with data that cannot be seen on it [RUN#100, RUN-1801, 1803, 1807]', async () => {
      const own = new Error('mine');
      const keys = Reflect.ownKeys(own);
      const error = await failing(own);
      expect(error).toBe(own);
      expect(Object.keys(own)).toEqual([]);
      expect(JSON.stringify(own)).toBe('{}');
      expect(
        Reflect.ownKeys(own).filter(
          (key) => !keys.includes(key) && Object.prototype.propertyIsEnumerable.call(own, key),
        ),
      ).toEqual([]);
      expect(getRunErrorDetails(own)?.newItems.map((one) => one.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
      ]);
      expect(getRunErrorState(own)?.status).toBe('ready');
    });

    it('carries the data of the last run that it left, when one object is thrown in several [RUN-1801, 1803]', async () => {
      const own = new Error('always the same');
      const failed = async (input: string) => {
        const { agent } = desk(own);
        expect(await rejection(runForm(agent, input))).toBe(own);
        return getRunErrorDetails(own)?.input;
      };
      expect([await failed('of Ana'), await failed('of Ben')]).toEqual(['of Ana', 'of Ben']);
    });

    it.each([
      { name: 'a frozen error', value: Object.freeze(new Error('frozen')) },
      { name: 'a text', value: 'just text' },
    ])('is wrapped when it is $name [RUN#100, RUN-1801]', async ({ value }) => {
      const error = await failing(value);
      expect(error).toBeInstanceOf(AgentsError);
      expect((error as AgentsError).cause).toBe(value);
      expect((error as AgentsError).runData?.newItems).toHaveLength(2);
      expect((error as AgentsError).state?.status).toBe('ready');
      expect(getRunErrorState(error)?.toJSON()['current_turn']).toBe(2);
    });
  });
});

describe('forms mixed', () => {
  it('give equal results, items, sessions and usage; a stream announces what is new [STATE#79, STATE-221]', async () => {
    const outcome = async (first: 'plain' | 'streamed', second: 'plain' | 'streamed') => {
      const { agent, effects } = desk([refund('1', 'c1'), lookup('2', 'c2')], 'done');
      const session = new PlainSession();
      const names: string[][] = [];
      const go = async (form: 'plain' | 'streamed', input: RunInput) => {
        if (form === 'plain') return await run(agent, input, { session });
        const stream = runStreamed(agent, input, { session });
        names.push(namesOf(await readAll(stream)).filter((name) => name !== 'R'));
        return await stream.completed;
      };
      const state = (await go(first, 'go')).toState();
      state.approve(item(state, 'c1'));
      const result = await go(second, state);
      return {
        names,
        view: [
          result.finalOutput,
          result.toInputList(),
          result.newItems.map((one) => one.type),
          session.items,
          session.log,
          result.context.usage,
          effects,
          comparable(result.toState().toString()),
        ],
      };
    };
    const plain = await outcome('plain', 'plain');
    const mixed = [
      await outcome('plain', 'streamed'),
      await outcome('streamed', 'plain'),
      await outcome('streamed', 'streamed'),
    ] as const;
    for (const { view } of mixed) expect(view).toEqual(plain.view);
    expect(mixed[0].names).toEqual([['agent Desk', 'tool_output', 'message_output_created']]);
    expect(mixed[1].names).toEqual([
      ['agent Desk', 'tool_called', 'tool_called', 'tool_approval_requested', 'tool_output'],
    ]);
    expect(mixed[2].names).toEqual([...mixed[1].names, ...mixed[0].names]);
  });
});

describe('a decision meanwhile', () => {
  it.each(['approve', 'reject'] as const)(
    'counts when it comes while the policy is asked: %s [STATE#55, STATE-103]',
    async (type) => {
      const effects: string[] = [];
      const states: RunState[] = [];
      let asked = 0;
      const gated = tool({
        name: 'gated',
        parameters: z.object({ id: z.string() }),
        needsApproval: async () => {
          asked += 1;
          for (const state of states) state.decide(item(state, 'c1'), { type });
          return true;
        },
        execute: () => void effects.push('ran'),
      });
      const model = new ScriptedModel([toolCall('gated', { id: '1' }, { callId: 'c1' }), 'done']);
      const agent = new Agent({ name: 'A', model, tools: [gated] });
      const paused = (await run(agent, 'go')).toState();
      states.push(paused);
      const result = await run(agent, paused);
      expect([result.finalOutput, effects, asked]).toEqual(['done', type === 'approve' ? ['ran'] : [], 2]);
    },
  );

  it('asks the policy about no call that is decided [STATE-224, IL-073]', async () => {
    let asked = 0;
    const gated = tool({ name: 'gated', needsApproval: () => (asked += 1) > 0, execute: () => 'ok' });
    const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('gated'), 'done']), tools: [gated] });
    const state = (await run(agent, 'go')).toState();
    for (const one of state.interruptions) state.approve(one);
    await run(agent, state);
    expect(asked).toBe(1);
  });
});

/** What is the same in two runs of one script. */
function comparable(text: string): unknown {
  const { agents_ts: own, trace: _, ...state } = JSON.parse(text) as Record<string, unknown>;
  const { run_key: __, decisions, ...rest } = own as Record<string, unknown>;
  const undated = Array.isArray(decisions)
    ? decisions.map((decision: object) => ({ ...decision, at: undefined }))
    : decisions;
  return { ...state, agents_ts: { ...rest, expiries: undefined, decisions: undated } };
}
