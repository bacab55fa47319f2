import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  getRunErrorDetails,
  getRunErrorState,
  run,
  runStreamed,
  RunState,
  tool,
  UserError,
} from '../index.ts';
import type { AnyAgent, LogRecord, RunItem, RunOptions, RunResult } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import { effectTool, idle, kindsOf, namesOf, PlainSession, rejection, user } from '../../test/run-kit.ts';
import { changed } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';

afterEach(() => resetDefaults());

/** An agent with the gated tools `refund` and `book` and the free tool `lookup`. */
function desk(steps: readonly ModelStep[], more: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const tools = [
    effectTool('refund', effects, { needsApproval: true, result: (id) => `refunded ${id}` }),
    effectTool('book', effects, { needsApproval: true, result: (id) => `booked ${id}` }),
    effectTool('lookup', effects, { result: (id) => `found ${id}` }),
  ];
  return { agent: new Agent({ name: 'Desk', model, tools, ...more }) as Agent, model, effects };
}

const call = (name: string, callId: string, args: object = {}) => toolCall(name, args, { callId });

function approveAll(state: RunState): RunState {
  for (const item of state.interruptions) state.approve(item);
  return state;
}

const ways = ['live', 'through JSON'] as const;
const goOnFrom = async (way: (typeof ways)[number], agent: AnyAgent, result: RunResult): Promise<RunState> =>
  way === 'live' ? result.toState() : await RunState.fromString(agent as Agent, result.toState().toString());

/** `call a`, `output a`, `waits a`, else the type. */
const shown = (items: readonly RunItem[]): string[] =>
  items.map((item) => {
    switch (item.type) {
      case 'tool_call_item':
        return `call ${item.callId}`;
      case 'tool_call_output_item':
        return `output ${item.callId}`;
      case 'tool_approval_item':
        return `waits ${item.callId}`;
      default:
        return item.type;
    }
  });

bothForms((runForm, form) => {
  describe(`the items of a turn (${form})`, () => {
    it('are those of the response as the model sent them, then outcomes in the order of the calls, a waiting one in its place [STATE-122]', async () => {
      const slow = tool({
        name: 'slow',
        execute: async () => {
          await idle(3);
          return 'slow';
        },
      });
      const { agent } = desk(
        [
          [
            reasoning('hm'),
            call('slow', 'a'),
            text('wait'),
            call('refund', 'b'),
            call('gone', 'x'),
            call('lookup', 'c'),
            call('book', 'd'),
          ],
        ],
        {},
      );
      agent.tools.push(slow);
      const result = await runForm(agent, 'go', { toolNotFoundBehavior: 'return_error_to_model' });
      expect(shown(result.newItems)).toEqual([
        'reasoning_item',
        'call a',
        'message_output_item',
        'call b',
        'call x',
        'call c',
        'call d',
        'output a',
        'waits b',
        'output c',
        'waits d',
        'output x',
      ]);
    });

    it.each(ways)(
      'that was decided: outcomes stand in the order of its calls, whichever way they came about (%s) [STATE-213]',
      async (way) => {
        const { agent, model, effects } = desk([
          [call('refund', 'a'), call('book', 'b'), call('gone', 'c'), call('refund', 'd'), call('book', 'e')],
          'done',
        ]);
        const gone = effectTool('gone', effects, { needsApproval: true });
        agent.tools.push(gone);
        const state = await goOnFrom(way, agent, await runForm(agent, 'go'));
        expect(state.interruptions.map((item) => item.callId)).toEqual(['a', 'b', 'c', 'd', 'e']);
        agent.tools.pop();
        for (const item of state.interruptions) {
          if (item.callId === 'b') state.reject(item, { message: 'no' });
          else if (item.callId !== 'e') state.approve(item);
        }
        const paused = await runForm(agent, state, { toolNotFoundBehavior: 'return_error_to_model' });
        expect(shown(paused.newItems)).toEqual([
          ...['a', 'b', 'c', 'd', 'e'].map((id) => `call ${id}`),
          ...['a', 'b', 'c', 'd', 'e'].map((id) => `waits ${id}`),
          ...['a', 'b', 'c', 'd'].map((id) => `output ${id}`),
        ]);
        const next = approveAll(await goOnFrom(way, agent, paused));
        await runForm(agent, next);
        expect(
          model.calls[1]?.request.input.flatMap((item) =>
            item.type === 'function_call_output' ? [`${item.call_id} ${item.output as string}`] : [],
          ),
        ).toEqual(['a refunded -', 'b no', "c Tool 'gone' not found.", 'd refunded -', 'e booked -']);
      },
    );
  });

  describe(`a turn that pauses (${form})`, () => {
    it('stops after its tools: no end of the agent, no tool use behaviour, no output [STATE-124]', async () => {
      const log: string[] = [];
      const { agent, model } = desk([[text('I will'), call('lookup', 'a'), call('refund', 'b')], 'done'], {
        toolUseBehavior: (_ctx, results) => {
          log.push(`behaviour ${results.length}`);
          return { isFinalOutput: true, finalOutput: 'by tools' };
        },
        hooks: { onEnd: () => void log.push('onEnd') },
      });
      const hooks = { onAgentEnd: () => void log.push('onAgentEnd'), onToolEnd: () => void log.push('onToolEnd') };
      const paused = await runForm(agent, 'go', { hooks });
      expect([paused.status, paused.finalOutput, log]).toEqual(['interrupted', undefined, ['onToolEnd']]);
      expect(paused.toState().toJSON()['current_step']).toMatchObject({ type: 'next_step_interruption' });
      const result = await runForm(agent, approveAll(paused.toState()), { hooks });
      expect([result.finalOutput, model.calls.length]).toEqual(['by tools', 1]);
      expect(log).toEqual(['onToolEnd', 'onToolEnd', 'behaviour 2', 'onAgentEnd', 'onEnd']);
    });
  });

  describe(`a decision (${form})`, () => {
    it('is made at once, and runs no code of the user [STATE-177]', async () => {
      const asked: string[] = [];
      const gated = tool({
        name: 'gated',
        parameters: z.object({ id: z.string().transform((id) => (asked.push('validated'), id)) }),
        needsApproval: () => asked.push('policy') > 0,
        isEnabled: () => asked.push('enabled') > 0,
        execute: () => asked.push('ran'),
      });
      const model = new ScriptedModel([
        [call('gated', 'a', { id: '1' }), call('gated', 'b', { id: '2' }), call('gated', 'c', { id: '3' })],
        'done',
      ]);
      const agent = new Agent({ name: 'A', model, tools: [gated] });
      const state = (await runForm(agent, 'go')).toState();
      asked.length = 0;
      const [a, b, c] = state.interruptions;
      if (!a || !b || !c) throw new Error('Three calls wait.');
      expect(state.approve(a)).toBeUndefined();
      expect(state.getDecisions()).toMatchObject([{ callId: 'a', type: 'approve' }]);
      state.reject(b, { message: 'no' });
      state.decide(c, { type: 'approve', always: true });
      expect(state.getDecisions()).toHaveLength(3);
      expect(asked).toEqual([]);
    });
  });

  describe.each(ways)(`a resume (${form}, %s)`, (way) => {
    it.each([
      { limit: 20, option: undefined, holds: 20, turns: 20 },
      { limit: 20, option: 3, holds: 3, turns: 3 },
      { limit: 20, option: null, holds: null, turns: 22 },
      { limit: null, option: undefined, holds: null, turns: 22 },
      { limit: null, option: 3, holds: 3, turns: 3 },
    ])(
      'counts on, under limit $holds: the run had $limit, the option is $option [STATE#77, STATE-202]',
      async ({ limit, option, holds, turns }) => {
        const lookups = Array.from({ length: 20 }, (_, index) => call('lookup', `more ${index}`));
        const { agent, model } = desk([call('refund', 'a'), ...lookups, 'done']);
        const state = approveAll(await goOnFrom(way, agent, await runForm(agent, 'go', { maxTurns: limit })));
        expect([state.currentTurn, state.maxTurns]).toEqual([1, limit]);
        const left = await runForm(agent, state, option === undefined ? {} : { maxTurns: option }).then(
          (result) => result.toState(),
          (error: unknown) => getRunErrorState(error),
        );
        expect([model.calls.length, left?.currentTurn, left?.status]).toEqual([
          turns,
          turns,
          turns === 22 ? 'completed' : 'ready',
        ]);
        expect([left, state].map((one) => one?.toJSON()['max_turns'])).toEqual([holds, holds]);
      },
    );

    it('continues the trace under the options that are given; a default name is no option [STATE-202]', async () => {
      const traces = new InMemoryTraceProcessor();
      setTraceProcessors([traces]);
      const { agent } = desk([call('refund', 'a'), call('refund', 'b'), call('refund', 'c'), 'done']);
      const first = {
        traceId: `trace_${'1'.repeat(32)}`,
        workflowName: 'Orders',
        groupId: 'g1',
        traceMetadata: { a: 1 },
      };
      let result: RunResult = await runForm(agent, 'go', first);
      const next = async (options: object): Promise<void> => {
        result = await runForm(agent, approveAll(await goOnFrom(way, agent, result)), options);
      };
      const stored = (): unknown => result.toState().toJSON()['trace'];
      const fields = { workflow_name: 'Orders', group_id: 'g1', metadata: { a: 1 } };
      expect(stored()).toMatchObject({ id: first.traceId, ...fields });
      await next({});
      expect(stored()).toMatchObject({ id: first.traceId, ...fields });
      await next({ workflowName: 'Agent workflow', groupId: 'g2' });
      expect(stored()).toMatchObject({ workflow_name: 'Orders', group_id: 'g2', metadata: { a: 1 } });
      await next({ workflowName: 'Returns', traceMetadata: { b: 2 }, traceId: `trace_${'2'.repeat(32)}` });
      expect(stored()).toMatchObject({
        id: `trace_${'2'.repeat(32)}`,
        workflow_name: 'Returns',
        group_id: 'g2',
        metadata: { b: 2 },
      });
    });

    it('keeps the policy for ids of reasoning, unless an option has another one [STATE-204]', async () => {
      const { agent, model } = desk([
        [reasoning('one'), call('refund', 'a')],
        [reasoning('two'), call('refund', 'b')],
        'done',
      ]);
      const ids = (index: number): unknown[] =>
        (model.calls[index]?.request.input ?? []).flatMap((item) => (item.type === 'reasoning' ? [item.id] : []));
      const first = await runForm(agent, 'go', { reasoningItemIdPolicy: 'omit' });
      const second = await runForm(agent, approveAll(await goOnFrom(way, agent, first)));
      expect(ids(1)).toEqual([undefined]);
      expect(second.toState().toJSON()['reasoning_item_id_policy']).toBe('omit');
      const state = approveAll(await goOnFrom(way, agent, second));
      const last = await runForm(agent, state, { reasoningItemIdPolicy: 'preserve' });
      expect(ids(2)).toEqual([expect.stringMatching(/^rs_/), expect.stringMatching(/^rs_/)]);
      expect([state, last.toState()].map((one) => one.toJSON()['reasoning_item_id_policy'])).toEqual([
        'preserve',
        'preserve',
      ]);
    });

    it('prepares nothing again: neither history nor input; the agent starts once [STATE-205]', async () => {
      const starts: string[] = [];
      const { agent, model } = desk([call('refund', 'a'), call('lookup', 'b'), 'done'], {
        hooks: { onStart: () => void starts.push('agent') },
      });
      const session = new PlainSession('s', [user('earlier')]);
      let merged = 0;
      const options: RunOptions & { session: PlainSession } = {
        session,
        hooks: { onAgentStart: () => void starts.push('run') },
        sessionInputCallback: (history, input) => {
          merged += 1;
          return [...history, ...input];
        },
      };
      const state = approveAll(await goOnFrom(way, agent, await runForm(agent, [user('go')], options)));
      expect([merged, starts]).toEqual([1, ['run', 'agent']]);
      session.items.unshift(user('written by somebody else'));
      session.log.length = 0;
      await runForm(agent, state, options);
      expect(merged).toBe(1);
      expect(starts).toEqual(['run', 'agent', 'run', 'agent']);
      expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u u fc fco');
      // A read for the place of the batch in the session is no read of the history for the model.
      expect(session.log.filter((entry) => entry === 'get')).toEqual([]);
    });

    it('goes on with a model call where nothing waits: after a turn, and after the end [STATE-206]', async () => {
      const { agent, model, effects } = desk([call('lookup', 'a'), 'first', 'second']);
      const error = await rejection(runForm(agent, 'go', { maxTurns: 1 }));
      const left = getRunErrorState(error) as RunState;
      expect(left.toJSON()['current_step']).toEqual({ type: 'next_step_run_again' });
      const ready = way === 'live' ? left : await RunState.fromString(agent, left.toString());
      const finished = await runForm(agent, ready, { maxTurns: 5 });
      expect([finished.finalOutput, effects]).toEqual(['first', ['lookup -']]);
      const state = await goOnFrom(way, agent, finished);
      expect(state.toJSON()['current_step']).toBeNull();
      const more = await runForm(agent, state);
      expect([more.finalOutput, effects]).toEqual(['second', ['lookup -']]);
      expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u fc fco m');
    });
  });

  describe(`a paused state without its response (${form})`, () => {
    it.each([
      ['model_responses', [], 'resume_no_response'],
      ['last_processed_response', null, 'resume_no_processed_response'],
    ])('is refused before anything runs: %s [STATE-206]', async (key, value, code) => {
      const { agent, model, effects } = desk([call('refund', 'a'), 'done']);
      const json = changed((await runForm(agent, 'go')).toState().toJSON(), key, value);
      const state = approveAll(await RunState.fromJSON(agent, json));
      const error = await rejection(runForm(agent, state));
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code });
      expect([effects, model.calls.length]).toEqual([[], 1]);
    });
  });

  describe(`stored results of guardrails (${form})`, () => {
    const stored = ['input', 'output', 'tool_input', 'tool_output'].map(
      (type) =>
        [
          `${type}_guardrail_results`,
          [
            {
              guardrail: { type, name: 'g' },
              output: type.startsWith('tool')
                ? { outputInfo: { checked: true }, behavior: { type: 'allow' } }
                : { tripwireTriggered: false, outputInfo: null },
              ...(type === 'output' && { agentOutput: 'text', agent: { name: 'Desk' } }),
            },
          ],
        ] as const,
    );
    const results = (state: RunState | undefined): unknown => {
      const json = state?.toJSON() as unknown as Members;
      return stored.map(([key]) => [key, json[key]]);
    };

    it('are there once, however often the run pauses, ends or fails, and before the session is asked [STATE-217, STATE-228]', async () => {
      const { agent, model } = desk([
        [call('refund', 'a'), call('refund', 'b')],
        call('refund', 'c'),
        call('lookup', 'd'),
        'done',
      ]);
      const session = new PlainSession();
      const first = (await runForm(agent, 'go', { session })).toState();
      const json = { ...(first.toJSON() as unknown as Members), ...Object.fromEntries(stored) };
      let state: RunState = await RunState.fromJSON(agent, json);
      // One of two is decided: it pauses in the same turn; then in a later one.
      state.approve(state.interruptions[0] as never);
      for (let i = 0; i < 2; i += 1) {
        const paused = await runForm(agent, state, { session });
        expect([paused.status, results(paused.toState())]).toEqual(['interrupted', stored]);
        state = approveAll(await RunState.fromString(agent, paused.toState().toString()));
      }
      session.faults.push('before');
      const error = await rejection(runForm(agent, state, { session }));
      expect(error).toBe(session.error);
      const left = getRunErrorState(error);
      expect([left?.status, left?.toJSON()['pending_session_write'] === undefined, results(left)]).toEqual([
        'ready',
        false,
        stored,
      ]);
      const next = await RunState.fromString(agent, String(left));
      const result = await runForm(agent, next, { session });
      expect([result.finalOutput, results(result.toState()), model.remaining]).toEqual(['done', stored, 0]);
    });
  });

  describe(`a turn of which one call failed (${form})`, () => {
    /** A is done, B throws. */
    async function failed(steps: readonly ModelStep[] = []) {
      const effects: string[] = [];
      const boom = tool({
        name: 'boom',
        failureErrorFunction: null,
        execute: async () => {
          effects.push('boom');
          // When its sibling has ended.
          await idle(5);
          throw new Error('boom');
        },
      });
      const model = new ScriptedModel([[call('lookup', 'a'), call('boom', 'b')], ...steps]);
      const agent = new Agent({ name: 'Desk', model, tools: [effectTool('lookup', effects), boom] });
      const session = new PlainSession();
      const error = await rejection(runForm(agent, 'u', { session }));
      return { agent, model, session, effects, error, state: getRunErrorState(error) as RunState };
    }

    it.each(ways)(
      'keeps the other one for items, session and state; it is never run again (%s) [STATE#112, STATE-139]',
      async (way) => {
        const { agent, model, session, effects, error, state } = await failed(['done']);
        expect(shown(getRunErrorDetails(error)?.newItems ?? [])).toEqual(['call a', 'output a']);
        expect([session.kinds, session.log.filter((entry) => entry.startsWith('add'))]).toEqual([
          'u fc fco',
          ['add[u]', 'add[fc fco]'],
        ]);
        const json = state.toJSON() as unknown as Members;
        expect(json['current_step']).toMatchObject({
          type: 'next_step_interruption',
          data: { interruptions: [], response_accepted: false, llm_end_hooks_started: true },
        });
        const of = async (): Promise<RunState> =>
          way === 'live' ? state : await RunState.fromString(agent, state.toString());
        expect(await rejection(runForm(agent, await of(), { session }))).toMatchObject({
          code: 'call_executed_uncommitted',
        });
        expect([model.calls.length, effects]).toEqual([1, ['lookup -', 'boom']]);
        const paused = await runForm(agent, await of(), { session, onInDoubt: 'interrupt' });
        expect(paused.interruptions.map((item) => item.callId)).toEqual(['b']);
        const next = paused.toState();
        next.reject(next.interruptions[0] as never);
        const result = await runForm(agent, next, { session });
        expect(result.finalOutput).toBe('done');
        expect(kindsOf(model.calls[1]?.request.input ?? [])).toBe('u fc fc fco fco');
        expect(session.kinds).toBe('u fc fco fc fco m');
        expect(session.items.flatMap((item) => ('call_id' in item ? [item.call_id] : []))).toEqual([
          'a',
          'a',
          'b',
          'b',
        ]);
        expect(effects).toEqual(['lookup -', 'boom']);
      },
    );

    it('as Python writes it, goes on behind the pair; neither call runs again when the model repeats it [STATE#113]', async () => {
      const { agent, session, state } = await failed();
      const ours = state.toJSON() as unknown as Members;
      const pair = (list: unknown): unknown[] =>
        (list as { raw_item: { call_id?: string } }[]).filter((item) => item.raw_item.call_id === 'a');
      const rows = (ours['context'] as Members)['tool_invocations'] as { [id: string]: Members };
      const python: Members = {
        ...ours,
        current_step: { type: 'next_step_run_again' },
        generated_items: pair(ours['generated_items']),
        session_items: pair(ours['session_items']),
        generated_session_item_indexes: [0, 1],
        current_response_generated_item_ownership: undefined,
        context: {
          ...(ours['context'] as Members),
          tool_invocations: Object.fromEntries(
            Object.entries(rows).map(([id, row]) => [id, { ...row, executed: true, completed: false }]),
          ),
        },
        agents_ts: undefined,
      };
      const resumed = async (...steps: ModelStep[]) => {
        const effects: string[] = [];
        const model = new ScriptedModel(steps);
        const tools = [effectTool('lookup', effects), effectTool('boom', effects)];
        const next = new Agent({ name: agent.name, model, tools });
        const restored = await RunState.fromJSON(next, structuredClone(python));
        const outcome = await runForm(next, restored, { session: new PlainSession('s', session.items) }).catch(
          (error: unknown) => error,
        );
        return { outcome, effects, input: kindsOf(model.calls[0]?.request.input ?? []), calls: model.calls.length };
      };
      const again = await resumed(call('lookup', 'a'), 'done');
      expect(again.outcome).toMatchObject({ finalOutput: 'done' });
      expect([again.input, again.effects, again.calls]).toEqual(['u fc fco', [], 2]);
      expect(shown((again.outcome as RunResult).newItems)).toEqual(['call a', 'output a', 'message_output_item']);
      const other = await resumed(call('boom', 'b'), 'done');
      expect(other.outcome).toMatchObject({ code: 'call_executed_uncommitted' });
      expect([other.input, other.effects, other.calls]).toEqual(['u fc fco', [], 1]);
    });
  });

  describe(`a state in use (${form})`, () => {
    it('is refused to a second run, which has no effect; the first one is unharmed [STATE#93, STATE-209]', async () => {
      let release = (): void => undefined;
      const open = new Promise<void>((resolve) => {
        release = resolve;
      });
      const hooks: string[] = [];
      const { agent, model, effects } = desk([call('refund', 'a'), () => open.then(() => 'done')]);
      const state = approveAll((await runForm(agent, 'go')).toState());
      const options = { hooks: { onRunStart: () => void hooks.push('start') } };
      const first = runForm(agent, state, options);
      while (model.calls.length < 2) await idle(1);
      for (const second of [() => run(agent, state, options), () => runStreamed(agent, state, options).completed]) {
        const error = await rejection((async () => await second())());
        expect(error).toBeInstanceOf(UserError);
        expect(error).toMatchObject({ code: 'state_busy' });
      }
      release();
      expect((await first).finalOutput).toBe('done');
      expect([model.calls.length, effects, hooks]).toEqual([2, ['refund -'], ['start']]);
    });
  });
});

describe('a stream of a resumed run', () => {
  it.each(ways)(
    'that is cancelled on the output of the resumed call makes no further model call (%s) [STATE#78, STATE-220]',
    async (way) => {
      const { agent, model, effects } = desk([call('refund', 'a'), 'done']);
      const state = approveAll(await goOnFrom(way, agent, await run(agent, 'go')));
      const stream = runStreamed(agent, state);
      const events = [];
      const agents = [];
      for await (const event of stream) {
        events.push(event);
        if (event.type === 'run_item_stream_event' && event.name === 'tool_output') {
          agents.push(stream.currentAgent);
          // Whatever is not told to wait would run now.
          await idle(5);
          stream.cancel({ mode: 'after_turn' });
        }
      }
      expect(namesOf(events)).toEqual(['agent Desk', 'tool_output']);
      expect(agents).toEqual([agent]);
      expect([stream.status, model.calls.length, effects]).toEqual(['cancelled', 1, ['refund -']]);
      const rest = await run(agent, stream.toState());
      expect([rest.finalOutput, effects]).toEqual(['done', ['refund -']]);
    },
  );
});

describe('what a resume logs', () => {
  it('is nothing where all went well', async () => {
    const records: LogRecord[] = [];
    configureLogging({ sink: (record) => void records.push(record) });
    const { agent } = desk([call('refund', 'a'), 'done']);
    await run(agent, approveAll((await run(agent, 'go')).toState()));
    expect(records).toEqual([]);
  });
});
