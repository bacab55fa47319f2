import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  configureLogging,
  MemorySession,
  OutputGuardrailTripwireTriggered,
  RunState,
  tool,
} from '../src/index.ts';
import type { AgentInputItem, RunOptions, RunResult, ToolUseBehavior } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { ScriptedModel, text, toolCall } from '../src/testing/index.ts';
import type { ModelStep } from '../src/testing/index.ts';
import { kindsOf, PlainSession, rejection } from './run-kit.ts';
import { pythonState, pythonStateText } from './states.ts';

// States that the Python edition wrote, gone on with as the README of the fixtures says.

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetDefaults());

interface Graph {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly effects: string[];
}

/** Agent `Desk` of the README: a gated and a free tool. */
function desk(...steps: ModelStep[]): Graph {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const refund = tool({
    name: 'refund_order',
    description: 'Refund an order.',
    parameters: z.object({ order_id: z.int(), note: z.string() }),
    needsApproval: true,
    execute: ({ order_id }) => {
      effects.push(`refund ${order_id}`);
      return `refunded ${order_id}`;
    },
  });
  return { agent: new Agent({ name: 'Desk', model, tools: [refund, lookup(effects)] }), model, effects };
}

const lookup = (effects: string[]) =>
  tool({
    name: 'lookup_order',
    description: 'Look an order up.',
    parameters: z.object({ order_id: z.int() }),
    execute: ({ order_id }) => {
      effects.push(`lookup ${order_id}`);
      return { order_id, total: 12.5, note: 'Grüße 😊' };
    },
  });

/** An agent without the gated tool. */
function plain(tools: 'lookup' | 'none', ...steps: ModelStep[]): Graph {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  return {
    agent: new Agent({ name: 'Desk', model, tools: tools === 'none' ? [] : [lookup(effects)] }),
    model,
    effects,
  };
}

/** `boom` throws, and its failures fail the run. */
function boom(name: 'boom' | 'boom_free', ...steps: ModelStep[]): Graph {
  const effects: string[] = [];
  const model = new ScriptedModel(steps);
  const broken = tool({
    name,
    parameters: z.object({ order_id: z.int() }),
    needsApproval: name === 'boom',
    failureErrorFunction: null,
    execute: () => {
      effects.push(name);
      throw new Error('boom');
    },
  });
  return { agent: new Agent({ name: 'Desk', model, tools: [broken, lookup(effects)] }), model, effects };
}

/** Agent `Billing` that `Desk` hands off to. */
function handedOff(...steps: ModelStep[]): Graph {
  const { agent, model, effects } = desk(...steps);
  const billing = new Agent({ name: 'Billing', model, tools: agent.tools.slice(0, 1) });
  return { agent: new Agent({ name: 'Desk', model: new ScriptedModel([]), handoffs: [billing] }), model, effects };
}

/** Agent `Billing` behind the tool `ask_billing` of `Desk`, with a model each. */
function nested(inner: ModelStep[], outer: ModelStep[]): Graph & { readonly inner: Graph } {
  const billing = desk(...inner);
  const expert = new Agent({ name: 'Billing', model: billing.model, tools: billing.agent.tools.slice(0, 1) });
  const model = new ScriptedModel(outer);
  const ask = expert.asTool({ toolName: 'ask_billing', toolDescription: 'Ask billing.' });
  const agent = new Agent({ name: 'Desk', model, tools: [ask] });
  return { agent, model, effects: billing.effects, inner: { ...billing, agent: expert } };
}

const refundCall = (order_id: number, note: string, callId: string) =>
  toolCall('refund_order', { order_id, note }, { callId });

type Decide = 'approve' | 'reject' | 'nothing';

async function restored(graph: Graph, file: string, decide: Decide = 'nothing'): Promise<RunState> {
  const state = await RunState.fromString(graph.agent, pythonStateText(`${file}.json`));
  for (const item of state.interruptions) {
    if (decide === 'approve') state.approve(item);
    if (decide === 'reject') state.reject(item);
  }
  return state;
}

const inputOf = ({ model }: Graph, call = 0): string => kindsOf(model.calls[call]?.request.input ?? []);
const outputsOf = (items: readonly object[]): Record<string, unknown> =>
  Object.fromEntries(
    items.flatMap((item) => {
      const { type, call_id: id, output } = item as { type?: string; call_id?: string; output?: unknown };
      return type === 'function_call_output' ? [[id, output]] : [];
    }),
  );
const sentOutputs = ({ model }: Graph): Record<string, unknown> => outputsOf(model.calls[0]?.request.input ?? []);
const facts = ({ effects, model }: Graph, { status, finalOutput }: RunResult): unknown => ({
  status,
  finalOutput,
  effects,
  calls: model.calls.length,
});
const done = (effects: string[], finalOutput = 'Done.', calls = 1): unknown => ({
  status: 'completed',
  finalOutput,
  effects,
  calls,
});

const user = { role: 'user', content: 'Refund order 7' };
const callB1 = {
  type: 'function_call',
  id: 'fc_b1',
  call_id: 'call_b1',
  name: 'refund_order',
  arguments: '{"order_id":7,"note":"x"}',
  status: 'completed',
};
const callB2 = {
  type: 'function_call',
  id: 'fc_b2',
  call_id: 'call_b2',
  name: 'lookup_order',
  arguments: '{"order_id":7}',
  status: 'completed',
};
const outputB2 = {
  type: 'function_call_output',
  call_id: 'call_b2',
  output: "{'order_id': 7, 'total': 12.5, 'note': 'Grüße 😊'}",
};
const outputB1 = { type: 'function_call_output', call_id: 'call_b1', output: 'refunded 7' };
const sessions: { readonly [name: string]: readonly object[] } = {
  u: [user],
  b1: [user, callB1, callB2, outputB2],
  'b1+': [user, callB1, callB2, outputB2, outputB1],
  b12: [user, callB1, outputB1],
  look: [{ role: 'user', content: 'Look up order 7' }],
  go: [{ role: 'user', content: 'Go' }],
};
const chat = (name: string, id = 'chat-42'): PlainSession =>
  new PlainSession(id, sessions[name] as readonly AgentInputItem[]);

bothForms((run, form) => {
  const go = (graph: Graph, state: RunState, options: RunOptions = {}): Promise<RunResult> =>
    run(graph.agent, state, options);

  describe(`a pause of Python (${form}) [STATE-531]`, () => {
    it.each(['a1_function_interrupted', 'a7_function_interrupted_streamed', 'a10_max_turns_null'])(
      '%s: approved, the call runs once',
      async (file) => {
        const graph = desk('Done.');
        const state = await restored(graph, file, 'approve');
        expect(facts(graph, await go(graph, state))).toEqual(done(['refund 7']));
        expect(inputOf(graph)).toBe('u fc fco');
        expect(state.maxTurns).toBe(file.startsWith('a10') ? null : 10);
      },
    );

    it.each(['a1_function_interrupted', 'a7_function_interrupted_streamed', 'a10_max_turns_null'])(
      '%s: rejected, the model gets the default text',
      async (file) => {
        const graph = desk('Done.');
        expect(facts(graph, await go(graph, await restored(graph, file, 'reject')))).toEqual(done([]));
        expect(inputOf(graph)).toBe('u fc fco');
        expect(sentOutputs(graph)).toEqual({ call_a1: 'Tool execution was not approved.' });
      },
    );

    it('undecided, it is the same pause, and the model is not called', async () => {
      const graph = desk();
      const result = await go(graph, await restored(graph, 'a1_function_interrupted'));
      expect(facts(graph, result)).toEqual({ status: 'interrupted', finalOutput: undefined, effects: [], calls: 0 });
      expect(result.interruptions.map(({ callId }) => callId)).toEqual(['call_a1']);
      expect(result.newItems).toHaveLength(2);
    });

    it('a7: Python wrote the same when it streamed, and shows what a person has to know [STATE-150]', async () => {
      expect(pythonState('a7_function_interrupted_streamed.json')).toEqual(pythonState('a1_function_interrupted.json'));
      const state = await restored(desk(), 'a7_function_interrupted_streamed');
      expect(state.context.context).toEqual({ tenant: 't1' });
      expect(state.interruptions[0]).toMatchObject({ name: 'refund_order', arguments: '{"order_id":7,"note":"é"}' });
      expect(kindsOf(state.toInputList())).toBe('u fc');
    });

    it.each(['a2_function_approved_once', '0.22.0/a2_function_approved_once', '0.22.3/a2_function_approved_once'])(
      '%s: the decision of Python holds',
      async (file) => {
        const graph = desk('Done.');
        expect(facts(graph, await go(graph, await restored(graph, file)))).toEqual(done(['refund 7']));
      },
    );

    it('a2: the same call once more is dropped', async () => {
      const graph = desk(refundCall(7, 'é', 'call_a1'), 'Done.');
      expect(facts(graph, await go(graph, await restored(graph, 'a2_function_approved_once')))).toEqual(
        done(['refund 7'], 'Done.', 2),
      );
    });

    it('a4: beside a free call that ran already', async () => {
      const graph = desk('Done.');
      expect(facts(graph, await go(graph, await restored(graph, 'a4_gated_and_free_calls', 'approve')))).toEqual(
        done(['refund 7']),
      );
      expect(inputOf(graph)).toBe('u a u reasoning fc fc fco fco');
      expect(Object.keys(sentOutputs(graph)).toSorted()).toEqual(['call_a2', 'call_a3']);
    });
  });

  describe(`decisions of Python that hold for later calls (${form})`, () => {
    it.each(['e1_sticky_approve_and_exact_reject', '0.23.1/e1_sticky_approve_and_exact_reject'])(
      '%s: a later call runs, the rejected one has its text',
      async (file) => {
        const graph = desk(refundCall(9, 'z', 'call_e3'), 'Done.');
        expect(facts(graph, await go(graph, await restored(graph, file)))).toEqual(
          done(['refund 7', 'refund 9'], 'Done.', 2),
        );
        expect(sentOutputs(graph)).toEqual({ call_e1: 'refunded 7', call_e2: 'not this one' });
      },
    );

    it('e2: also after the run had ended', async () => {
      const graph = desk(refundCall(9, 'z', 'call_e9'), 'More.');
      expect(facts(graph, await go(graph, await restored(graph, 'e2_after_resume_finished')))).toEqual(
        done(['refund 9'], 'More.', 2),
      );
    });

    it('e3: a rejection for all but one', async () => {
      const graph = desk(refundCall(9, 'z', 'call_e3'), 'Done.');
      const result = await go(graph, await restored(graph, 'e3_sticky_reject_and_exact_approve'));
      expect(facts(graph, result)).toEqual(done(['refund 8'], 'Done.', 2));
      expect(outputsOf(result.toInputList())).toEqual({
        call_e1: 'refunds are closed',
        call_e2: 'refunded 8',
        call_e3: 'refunds are closed',
      });
    });

    it('e5: a rejection without text', async () => {
      const graph = desk('Done.');
      expect(facts(graph, await go(graph, await restored(graph, 'e5_rejected_default_text')))).toEqual(done([]));
      expect(Object.values(sentOutputs(graph))).toEqual(['Tool execution was not approved.']);
    });

    it('0.22.0/e1: of labels without owners they grant nothing, and the call waits again', async () => {
      const graph = desk();
      const result = await go(graph, await restored(graph, '0.22.0/e1_sticky_approve_and_exact_reject'));
      expect(facts(graph, result)).toEqual({ status: 'interrupted', finalOutput: undefined, effects: [], calls: 0 });
      expect(result.interruptions.map(({ callId }) => callId)).toEqual(['call_e1']);
      const again = desk('Done.');
      const state = await RunState.fromJSON(again.agent, result.toState().toJSON());
      for (const item of state.interruptions) state.approve(item);
      expect(facts(again, await go(again, state as RunState))).toEqual(done(['refund 7']));
      expect(sentOutputs(again)).toEqual({ call_e1: 'refunded 7', call_e2: 'not this one' });
    });

    it('0.22.3/e3: likewise a rejection for all', async () => {
      const graph = desk();
      const result = await go(graph, await restored(graph, '0.22.3/e3_sticky_reject_and_exact_approve'));
      expect(facts(graph, result)).toEqual({
        status: 'interrupted',
        finalOutput: undefined,
        effects: ['refund 8'],
        calls: 0,
      });
      expect(result.interruptions.map(({ callId }) => callId)).toEqual(['call_e1']);
    });
  });

  describe(`a handoff before the state was written (${form})`, () => {
    it.each(['d1_handoff_then_interrupted', '0.22.0/d1_handoff_then_interrupted'])(
      '%s: the target goes on, the handoff is not repeated [STATE-211, 312]',
      async (file) => {
        const graph = handedOff('Refunded.');
        const result = await run(graph.agent, await restored(graph, file, 'approve'));
        expect(facts(graph, result)).toEqual(done(['refund 7'], 'Refunded.'));
        expect(inputOf(graph)).toBe('u m fc fco fc fco');
        expect(result.lastAgent.name).toBe('Billing');
      },
    );

    it('d2: a finished one goes on with the history', async () => {
      const graph = handedOff('More.');
      const result = await run(graph.agent, await restored(graph, 'd2_handoff_finished'));
      expect(facts(graph, result)).toEqual(done([], 'More.'));
      expect(inputOf(graph)).toBe('u m fc fco fc fco m');
    });

    it.each(['d3_nested_history_then_interrupted', '0.22.3/d3_nested_history_then_interrupted'])(
      '%s: what nested history moved into the input is there once [STATE-353] [RUN-1220] [TOOL-AC41]',
      async (file) => {
        const graph = handedOff('Refunded.');
        const result = await run(graph.agent, await restored(graph, file, 'approve'));
        expect(facts(graph, result)).toEqual(done(['refund 7'], 'Refunded.'));
        expect(inputOf(graph)).toBe('a m a fc fco');
        expect(kindsOf(result.toInputList())).toBe('a m a fc fco fc fco m');
        const refs = (state: RunState): unknown => state.toJSON()['nested_history_owned_session_item_refs'];
        expect(refs(result.toState())).toEqual(pythonState(`${file}.json`)['nested_history_owned_session_item_refs']);
      },
    );
  });

  describe(`an agent tool that was paused (${form})`, () => {
    const files = ['c1_nested_interrupted', 'c2_nested_approved'];
    const olderFiles = ['0.22.0/c2_nested_approved', '0.22.3/c2_nested_approved', '0.23.1/c2_nested_approved'];

    it.each([...files, ...olderFiles])('%s: goes on inside, once decided [STATE-241, 245, 531]', async (file) => {
      const graph = nested(['Refunded.'], ['All done.']);
      const state = await restored(graph, file, file.startsWith('c1') ? 'approve' : 'nothing');
      expect(state.interruptions).toMatchObject([{ name: 'refund_order', agent: { name: 'Billing' } }]);
      const result = await run(graph.agent, state);
      expect(facts(graph, result)).toEqual(done(['refund 7'], 'All done.'));
      expect([inputOf(graph), inputOf(graph.inner)]).toEqual(['u fc fco', 'u fc fco']);
      // Each request once: the two before the pause, and those since.
      expect(result.context.usage.requests).toBe(4);
    });

    it('c1: tells the nested model of a rejection; waits while nothing is decided', async () => {
      const graph = nested(['Refunded.'], ['All done.']);
      const rejected = await run(graph.agent, await restored(graph, 'c1_nested_interrupted', 'reject'));
      expect(facts(graph, rejected)).toEqual(done([], 'All done.'));
      expect(sentOutputs(graph.inner)).toEqual({ call_in: 'Tool execution was not approved.' });

      const waiting = nested([], []);
      const state = await restored(waiting, 'c1_nested_interrupted');
      const result = await run(waiting.agent, state);
      expect(facts(waiting, result)).toEqual({ status: 'interrupted', finalOutput: undefined, effects: [], calls: 0 });
      expect(result.interruptions).toEqual(state.interruptions);
      expect(waiting.inner.model.calls).toHaveLength(0);
    });

    it('c3: is over when the run is', async () => {
      const graph = nested([], ['More.']);
      const result = await run(graph.agent, await restored(graph, 'c3_nested_finished'));
      expect(facts(graph, result)).toEqual(done([], 'More.'));
      expect(graph.inner.model.calls).toHaveLength(0);
    });

    it('c1: is written again so that Python goes on with it: the nested state under its call', async () => {
      const graph = nested(['Refunded.'], ['All done.']);
      const state = await restored(graph, 'c1_nested_interrupted', 'approve');
      const json = state.toJSON() as never as {
        last_processed_response: { functions: { agent_run_state: { context: object } }[] };
        context: { function_tool_approvals?: unknown };
      };
      expect(json.last_processed_response.functions[0]?.agent_run_state.context).toMatchObject({
        function_tool_approvals: [
          { agent: { name: 'Billing' }, tool_key: 'refund_order', decision: { approved: ['call_in'] } },
        ],
      });
      expect(json.context.function_tool_approvals).toBeUndefined();
    });
  });

  describe(`a run of Python that had ended, or stopped between turns (${form})`, () => {
    it('a3: goes on with the history', async () => {
      const graph = desk('More.');
      expect(facts(graph, await go(graph, await restored(graph, 'a3_function_finished')))).toEqual(done([], 'More.'));
      expect(inputOf(graph)).toBe('u fc fco m');
    });

    it('c3, f10: what came later than this version is kept', async () => {
      for (const file of ['c3_nested_finished', 'f10_guardrail_results_finished']) {
        const graph = plain('none', 'More.');
        const result = await go(graph, await restored(graph, file));
        expect(facts(graph, result)).toEqual(done([], 'More.'));
        expect(result.toState().toJSON()['input_guardrail_results']).toEqual(
          pythonState(`${file}.json`)['input_guardrail_results'],
        );
      }
    });

    it.each(['f5_stream_model_failed_turn2', 'f7_stream_cancel_after_turn'])(
      '%s: the model is asked, the tool is not run again',
      async (file) => {
        const graph = plain('lookup', 'Done.');
        expect(facts(graph, await go(graph, await restored(graph, file)))).toEqual(done([]));
        expect(inputOf(graph)).toBe('u fc fco');
      },
    );

    it('f4: a limit that was reached, and one that is given', async () => {
      const graph = plain('lookup', 'Done.');
      await expect(go(graph, await restored(graph, 'f4_stream_max_turns'))).rejects.toMatchObject({
        code: 'max_turns_exceeded',
      });
      expect(facts(graph, await go(graph, await restored(graph, 'f4_stream_max_turns'), { maxTurns: 5 }))).toEqual(
        done([]),
      );
    });

    it('f1: a call that had started is not run again, and the model is not asked', async () => {
      const graph = boom('boom', 'Done.');
      await expect(go(graph, await restored(graph, 'f1_resumed_tool_failed'))).rejects.toMatchObject({
        code: 'call_executed_uncommitted',
      });
      expect([graph.effects, graph.model.calls.length]).toEqual([[], 0]);
    });

    it('f2: the sibling that was kept counts as completed, the call that had failed is refused', async () => {
      const graph = boom('boom_free', 'Done.');
      expect(facts(graph, await go(graph, await restored(graph, 'f2_fresh_stream_tool_failed')))).toEqual(done([]));
      const replay = boom('boom_free', toolCall('lookup_order', { order_id: 7 }, { callId: 'call_f3' }), 'Done.');
      expect(facts(replay, await go(replay, await restored(replay, 'f2_fresh_stream_tool_failed')))).toEqual(
        done([], 'Done.', 2),
      );
      const again = boom('boom_free', toolCall('boom_free', { order_id: 7 }, { callId: 'call_f4' }));
      await expect(go(again, await restored(again, 'f2_fresh_stream_tool_failed'))).rejects.toMatchObject({
        code: 'call_executed_uncommitted',
      });
      expect(again.effects).toEqual([]);
    });
  });

  describe(`a run of Python with a session (${form})`, () => {
    it('b1: what was not stored yet is added, once and in order', async () => {
      const graph = desk('Done.');
      const session = chat('b1');
      expect(
        facts(
          graph,
          await go(graph, await restored(graph, 'b1_session_interrupted_no_guardrail', 'approve'), { session }),
        ),
      ).toEqual(done(['refund 7']));
      expect([session.kinds, session.log]).toEqual(['u fc fc fco fco m', ['get(2)', 'add[fco]', 'add[m]']]);
    });

    it('b1: a session of ours', async () => {
      const graph = desk('Done.');
      const session = new MemorySession('chat-42');
      await session.addItems(sessions['b1'] as never);
      const result = await go(graph, await restored(graph, 'b1_session_interrupted_no_guardrail', 'approve'), {
        session,
      });
      expect(kindsOf(await session.getItems())).toBe('u fc fc fco fco m');
      expect(result.toState().toJSON()).not.toHaveProperty('pending_session_write');
    });

    it.each<[string, string, string[]]>([
      ['b6_pending_write_append_failed', 'b1', ['get(3)', 'add[fco]', 'add[m]']],
      ['0.22.3/b6_pending_write_append_failed', 'b1', ['get(3)', 'add[fco]', 'add[m]']],
      ['0.23.1/b6_pending_write_append_failed', 'b1', ['get(3)', 'add[fco]', 'add[m]']],
      ['b7_pending_write_reply_lost', 'b1+', ['get(3)', 'add[m]']],
      ['0.22.3/b7_pending_write_reply_lost', 'b1+', ['get(3)', 'add[m]']],
      // Where the run stands in the session is not known there, and is looked for once (STATE-304).
      ['b8_pending_write_tail_read_failed', 'b1', ['get(2)', 'get(256)', 'add[fco]', 'add[m]']],
      ['b12_append_acknowledged_compaction_pending', 'b12', ['get(3)', 'add[m]']],
      ['0.23.1/b12_append_acknowledged_compaction_pending', 'b12', ['get(3)', 'add[m]']],
    ])('%s: settled before the model is asked', async (file, name, log) => {
      const graph = desk('Done.');
      const session = chat(name);
      expect(facts(graph, await go(graph, await restored(graph, file), { session }))).toEqual(done([]));
      expect(session.log).toEqual(log);
      expect(session.kinds).toBe(name === 'b12' ? 'u fc fco m' : 'u fc fc fco fco m');
    });

    /** Desk with the output guardrail `no_secrets`, and a tool that may end the run. */
    const guarded = (
      behavior: ToolUseBehavior<unknown>,
      steps: ModelStep[],
      options: { trips?: boolean; store?: boolean } = {},
    ): Graph => {
      const graph = desk(...steps);
      const agent = graph.agent.clone({
        outputGuardrails: [
          {
            name: 'no_secrets',
            execute: () => ({ tripwireTriggered: options.trips === true, outputInfo: { checked: true } }),
          },
        ],
        toolUseBehavior: behavior,
        ...(options.store === undefined ? {} : { modelSettings: { store: options.store } }),
      });
      return { ...graph, agent };
    };

    it('b2: a held write is stored with the end of the run, by a tool output that guardrails let pass', async () => {
      for (const [decision, finalOutput] of [
        ['approve', 'refunded 7'],
        ['reject', 'Tool execution was not approved.'],
      ] as const) {
        const graph = guarded('stop_on_first_tool', []);
        const session = chat('u');
        const result = await go(graph, await restored(graph, 'b2_held_pending_write', decision), { session });
        expect(facts(graph, result)).toEqual(done(decision === 'approve' ? ['refund 7'] : [], finalOutput, 0));
        expect(session.log).toEqual(['get(5)', 'add[fc fc fco fco]']);
        expect(session.items.map((item) => (item as { call_id?: string }).call_id)).toEqual([
          undefined,
          'call_b1',
          'call_b2',
          'call_b2',
          'call_b1',
        ]);
        expect(result.toState().toJSON()).not.toHaveProperty('pending_session_write');
        expect(result.outputGuardrailResults).toHaveLength(1);
      }
    });

    it('b2: without the session it is dropped, with another one refused, and data-free when the guardrail trips', async () => {
      let graph = guarded('stop_on_first_tool', []);
      const result = await go(graph, await restored(graph, 'b2_held_pending_write', 'approve'));
      expect(facts(graph, result)).toEqual(done(['refund 7'], 'refunded 7', 0));
      expect(result.toState().toJSON()).not.toHaveProperty('pending_session_write');
      graph = guarded('stop_on_first_tool', []);
      const refused = go(graph, await restored(graph, 'b2_held_pending_write', 'approve'), {
        session: chat('u', 'other'),
      });
      expect([((await rejection(refused)) as { code?: string }).code, graph.effects]).toEqual([
        'session_write_wrong_session',
        [],
      ]);
      graph = guarded('stop_on_first_tool', [], { trips: true });
      const session = chat('u');
      const error = await rejection(go(graph, await restored(graph, 'b2_held_pending_write', 'approve'), { session }));
      expect(error).toBeInstanceOf(OutputGuardrailTripwireTriggered);
      expect(session.kinds).toBe('u fc fc fco fco');
      const withheld = 'Output withheld by an output guardrail.';
      expect(outputsOf(session.items)).toEqual({ call_b1: withheld, call_b2: withheld });
    });

    it('b3, b4: a held write that was settled; one that ends with a further turn, or a further pause', async () => {
      let graph = guarded('stop_on_first_tool', ['More.']);
      let session = chat('b1+');
      expect((await go(graph, await restored(graph, 'b3_held_settled_finished'), { session })).finalOutput).toBe(
        'More.',
      );
      expect(session.log.filter((line) => line.startsWith('add'))).toEqual(['add[m]']);

      graph = guarded({ stopAtToolNames: ['other'] }, ['Done.'], { store: false });
      session = chat('u');
      let result = await go(graph, await restored(graph, 'b4_held_store_false', 'approve'), { session });
      expect(facts(graph, result)).toEqual(done(['refund 7']));
      expect(session.log).toEqual(['get(3)', 'add[fc fco]', 'add[m]']);

      graph = guarded({ stopAtToolNames: ['other'] }, [refundCall(8, 'y', 'call_b3')], { store: false });
      session = chat('u');
      result = await go(graph, await restored(graph, 'b4_held_store_false', 'approve'), { session });
      expect([result.status, session.kinds]).toEqual(['interrupted', 'u fc fco']);
      expect(result.toState().toJSON()['pending_session_write']).toMatchObject({
        held: true,
        store: false,
        items: [{ type: 'function_call', call_id: 'call_b3' }],
        current_response: { turn: 2, start: 0 },
      });
    });

    it('f10: stored results of guardrails are kept, the new output result follows; the input is not judged again', async () => {
      const log: string[] = [];
      const graph = desk('More.');
      const agent = graph.agent.clone({
        inputGuardrails: [
          { name: 'polite', runInParallel: false, execute: () => (log.push('polite'), { tripwireTriggered: false }) },
        ],
        outputGuardrails: [
          { name: 'no_secrets', execute: () => ({ tripwireTriggered: false, outputInfo: { checked: true } }) },
        ],
      });
      const polite = { ...graph, agent };
      const state = await restored(polite, 'f10_guardrail_results_finished');
      const result = await go(polite, state);
      expect([result.finalOutput, log]).toEqual(['More.', []]);
      expect(result.inputGuardrailResults).toEqual([
        { guardrail: { name: 'polite' }, output: { tripwireTriggered: false, outputInfo: { score: 0.5 } } },
      ]);
      expect(result.outputGuardrailResults.map(({ agentOutput, agent: owner }) => [agentOutput, owner.name])).toEqual([
        ['Hello', 'Desk'],
        ['More.', 'Desk'],
      ]);
    });

    it('b6: without the session, with another one, and after another writer it is refused', async () => {
      const refused = async (options: RunOptions): Promise<unknown> => {
        const graph = desk('Done.');
        const error = await rejection(go(graph, await restored(graph, 'b6_pending_write_append_failed'), options));
        expect([graph.effects, graph.model.calls.length]).toEqual([[], 0]);
        return (error as { code?: string }).code;
      };
      expect(await refused({})).toBe('session_write_wrong_session');
      expect(await refused({ session: chat('b1', 'other') })).toBe('session_write_wrong_session');
      const session = chat('b1');
      session.items.push({ role: 'user', content: 'another writer' });
      expect(await refused({ session })).toBe('session_write_ambiguous');
      expect(session.items).toHaveLength(5);
    });

    it('b8: an append that never began is made behind what somebody else added', async () => {
      const graph = desk('Done.');
      const session = chat('b1');
      session.items.push({ role: 'user', content: 'another writer' });
      const state = await restored(graph, 'b8_pending_write_tail_read_failed');
      expect(facts(graph, await go(graph, state, { session }))).toEqual(done([]));
      expect(session.kinds).toBe('u fc fc fco u fco m');
    });

    it('b12: what was acknowledged is never added again, also when it is gone [SESS-107]', async () => {
      const graph = desk();
      const session = chat('b12');
      session.items.pop();
      const state = await restored(graph, 'b12_append_acknowledged_compaction_pending');
      await expect(go(graph, state, { session })).rejects.toMatchObject({ code: 'session_write_ambiguous' });
      expect([session.kinds, graph.model.calls.length]).toEqual(['u fc', 0]);
    });

    it('b14: what Python lost stays lost, and nothing is stored twice', async () => {
      const graph = plain('lookup', 'Done.');
      const session = chat('look');
      expect(
        facts(graph, await go(graph, await restored(graph, 'b14_fresh_stream_append_failed'), { session })),
      ).toEqual(done([]));
      expect([inputOf(graph), session.kinds]).toEqual(['u fc fco', 'u m']);
    });

    it.each([
      'b15_fresh_stream_terminal_append_failed',
      '0.22.3/b15_fresh_stream_terminal_append_failed',
      'b19_held_terminal_append_failed',
    ])('%s: refused each time, before the session is touched', async (file) => {
      const graph = plain('none', text('x'));
      const state = await restored(graph, file);
      const session = chat('u');
      for (let i = 0; i < 2; i++)
        await expect(go(graph, state, { session })).rejects.toMatchObject({ code: 'state_unrecoverable' });
      expect([session.log, graph.model.calls.length]).toEqual([[], 0]);
    });
  });

  it(`what comes later than this version is refused before any effect (${form})`, async () => {
    for (const file of [
      'a5_pending_input',
      'e8_hosted_mcp_interrupted',
      'e6_shell_patch_custom_interrupted',
      'g1_local_mcp_interrupted',
    ]) {
      const graph = desk('Done.');
      const state = await restored(graph, file);
      await expect(go(graph, state, { session: null })).rejects.toMatchObject({ name: 'UserError' });
      expect([graph.effects, graph.model.calls.length]).toEqual([[], 0]);
    }
  });
});
