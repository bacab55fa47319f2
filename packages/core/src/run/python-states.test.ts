import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, MaxTurnsExceededError, RunState, tool } from '../index.ts';
import type { AgentInputItem, RunOptions, RunResult } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { kindsOf, PlainSession, rejection, user } from '../../test/run-kit.ts';

// States that the Python SDK wrote go on here as they go on there: test/fixtures/python/README.md, whose rows these are.

type Json = Record<string, unknown>;

const folder = new URL('../../test/fixtures/python/', import.meta.url);
const load = (file: string): Json => JSON.parse(readFileSync(new URL(`${file}.json`, folder), 'utf8')) as Json;

afterEach(() => resetDefaults());

/** The agent of a file. `effects` gets each tool body that runs. */
function graph(name: 'Desk' | 'Lookup' | 'Plain' | 'Boom' | 'Boom free', model: ScriptedModel, effects: string[]) {
  const refund = tool({
    name: 'refund_order',
    parameters: z.object({ order_id: z.int(), note: z.string() }),
    needsApproval: true,
    execute: ({ order_id }) => {
      effects.push(`refund ${order_id}`);
      return `refunded ${order_id}`;
    },
  });
  const lookup = tool({
    name: 'lookup_order',
    parameters: z.object({ order_id: z.int() }),
    execute: ({ order_id }) => {
      effects.push(`lookup ${order_id}`);
      return { order_id, total: 12.5, note: 'Grüße 😊' };
    },
  });
  const boom = tool({
    name: name === 'Boom free' ? 'boom_free' : 'boom',
    parameters: z.object({ order_id: z.int() }),
    needsApproval: name === 'Boom',
    failureErrorFunction: null,
    execute: ({ order_id }) => {
      effects.push(`boom ${order_id}`);
      throw new Error('boom');
    },
  });
  const tools = {
    Desk: [refund, lookup],
    Lookup: [lookup],
    Plain: [],
    Boom: [boom, lookup],
    'Boom free': [boom, lookup],
  };
  return new Agent({ name: 'Desk', instructions: 'Help.', model, tools: tools[name] });
}

const refundCall = (order_id: number, note: string, callId: string) =>
  toolCall('refund_order', { order_id, note }, { callId });

const sessionB1: AgentInputItem[] = [
  user('Refund order 7'),
  {
    type: 'function_call',
    id: 'fc_b1',
    call_id: 'call_b1',
    name: 'refund_order',
    arguments: '{"order_id":7,"note":"x"}',
    status: 'completed',
  },
  {
    type: 'function_call',
    id: 'fc_b2',
    call_id: 'call_b2',
    name: 'lookup_order',
    arguments: '{"order_id":7}',
    status: 'completed',
  },
  { type: 'function_call_output', call_id: 'call_b2', output: "{'order_id': 7, 'total': 12.5, 'note': 'Grüße 😊'}" },
];
const stored: AgentInputItem = { type: 'function_call_output', call_id: 'call_b1', output: 'refunded 7' };
const sessionB12: AgentInputItem[] = [user('Refund order 7'), sessionB1[1] as AgentInputItem, stored];

interface Row {
  readonly file: string;
  readonly graph: Parameters<typeof graph>[0];
  /** On every waiting item. */
  readonly decide?: 'approve' | 'reject';
  readonly script: readonly ModelStep[];
  readonly session?: readonly AgentInputItem[];
  readonly expected: {
    readonly before: 'interrupted' | 'completed' | 'ready';
    readonly final?: string;
    readonly effects: readonly string[];
    /** Of the first model call. */
    readonly input?: string;
    /** Texts of outputs, by call id, in the last model call. */
    readonly outputs?: Readonly<Record<string, string>>;
    readonly log?: readonly string[];
    readonly stored?: string;
    readonly calls?: number;
    /** Ids of calls that wait afterwards. */
    readonly waits?: readonly string[];
  };
}

const a1 = {
  before: 'interrupted',
  final: 'Done.',
  effects: ['refund 7'],
  input: 'u fc fco',
  outputs: { call_a1: 'refunded 7' },
} as const;
const rejected = {
  before: 'interrupted',
  final: 'Done.',
  effects: [],
  input: 'u fc fco',
  outputs: { call_a1: 'Tool execution was not approved.' },
} as const;
const e1 = {
  before: 'interrupted',
  final: 'Done.',
  effects: ['refund 7', 'refund 9'],
  outputs: { call_e1: 'refunded 7', call_e2: 'not this one', call_e3: 'refunded 9' },
} as const;
const settled = {
  before: 'ready',
  final: 'Done.',
  effects: [],
  input: 'u fc fc fco fco',
  stored: 'u fc fc fco fco m',
} as const;
const afterLookup = { before: 'ready', final: 'Done.', effects: [], input: 'u fc fco' } as const;

const rows: readonly Row[] = [
  { file: 'a1_function_interrupted', graph: 'Desk', decide: 'approve', script: ['Done.'], expected: a1 },
  { file: 'a1_function_interrupted', graph: 'Desk', decide: 'reject', script: ['Done.'], expected: rejected },
  {
    file: 'a1_function_interrupted',
    graph: 'Desk',
    script: [],
    expected: { before: 'interrupted', effects: [], calls: 0, waits: ['call_a1'] },
  },
  { file: 'a2_function_approved_once', graph: 'Desk', script: ['Done.'], expected: a1 },
  {
    file: 'a2_function_approved_once',
    graph: 'Desk',
    script: [refundCall(7, 'é', 'call_a1'), 'Done.'],
    expected: { ...a1, calls: 2 },
  },
  {
    file: 'a3_function_finished',
    graph: 'Desk',
    script: ['More.'],
    expected: { before: 'completed', final: 'More.', effects: [], input: 'u fc fco m', calls: 1 },
  },
  {
    file: 'a4_gated_and_free_calls',
    graph: 'Desk',
    decide: 'approve',
    script: ['Done.'],
    expected: { before: 'interrupted', final: 'Done.', effects: ['refund 7'], input: 'u a u reasoning fc fc fco fco' },
  },
  { file: 'a7_function_interrupted_streamed', graph: 'Desk', decide: 'approve', script: ['Done.'], expected: a1 },
  { file: 'a7_function_interrupted_streamed', graph: 'Desk', decide: 'reject', script: ['Done.'], expected: rejected },
  { file: 'a10_max_turns_null', graph: 'Desk', decide: 'approve', script: ['Done.'], expected: a1 },
  { file: 'a10_max_turns_null', graph: 'Desk', decide: 'reject', script: ['Done.'], expected: rejected },
  {
    file: 'b1_session_interrupted_no_guardrail',
    graph: 'Desk',
    decide: 'approve',
    script: ['Done.'],
    session: sessionB1,
    expected: {
      before: 'interrupted',
      final: 'Done.',
      effects: ['refund 7'],
      log: ['get(2)', 'add[fco]', 'add[m]'],
      stored: 'u fc fc fco fco m',
    },
  },
  {
    file: 'b6_pending_write_append_failed',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB1,
    expected: { ...settled, log: ['get(3)', 'add[fco]', 'add[m]'] },
  },
  {
    file: 'b7_pending_write_reply_lost',
    graph: 'Desk',
    script: ['Done.'],
    session: [...sessionB1, stored],
    expected: { ...settled, log: ['get(3)', 'add[m]'] },
  },
  {
    file: 'b8_pending_write_tail_read_failed',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB1,
    expected: { ...settled, log: ['get(2)', 'add[fco]', 'add[m]'] },
  },
  {
    file: 'b8_pending_write_tail_read_failed',
    graph: 'Desk',
    script: ['Done.'],
    session: [...sessionB1, user('x')],
    expected: { ...settled, log: ['get(2)', 'add[fco]', 'add[m]'], stored: 'u fc fc fco u fco m' },
  },
  {
    file: 'b12_append_acknowledged_compaction_pending',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB12,
    expected: { before: 'ready', final: 'Done.', effects: [], log: ['get(3)', 'add[m]'], stored: 'u fc fco m' },
  },
  {
    file: 'b14_fresh_stream_append_failed',
    graph: 'Lookup',
    script: ['Done.'],
    session: [user('Look up order 7')],
    expected: { ...afterLookup, stored: 'u m' },
  },
  {
    file: 'e1_sticky_approve_and_exact_reject',
    graph: 'Desk',
    script: [refundCall(9, 'z', 'call_e3'), 'Done.'],
    expected: e1,
  },
  {
    file: 'e2_after_resume_finished',
    graph: 'Desk',
    script: [refundCall(9, 'z', 'call_e9'), 'More.'],
    expected: { before: 'completed', final: 'More.', effects: ['refund 9'] },
  },
  {
    file: 'e3_sticky_reject_and_exact_approve',
    graph: 'Desk',
    script: [refundCall(9, 'z', 'call_e3'), 'Done.'],
    expected: {
      before: 'interrupted',
      final: 'Done.',
      effects: ['refund 8'],
      outputs: { call_e1: 'refunds are closed', call_e2: 'refunded 8', call_e3: 'refunds are closed' },
    },
  },
  {
    file: 'e5_rejected_default_text',
    graph: 'Desk',
    script: ['Done.'],
    expected: {
      before: 'interrupted',
      final: 'Done.',
      effects: [],
      outputs: { call_e1: 'Tool execution was not approved.' },
    },
  },
  { file: 'f2_fresh_stream_tool_failed', graph: 'Boom free', script: ['Done.'], expected: afterLookup },
  {
    file: 'f2_fresh_stream_tool_failed',
    graph: 'Boom free',
    script: [toolCall('lookup_order', { order_id: 7 }, { callId: 'call_f3' }), 'Done.'],
    expected: { ...afterLookup, calls: 2 },
  },
  { file: 'f5_stream_model_failed_turn2', graph: 'Lookup', script: ['Done.'], expected: afterLookup },
  { file: 'f7_stream_cancel_after_turn', graph: 'Lookup', script: ['Done.'], expected: afterLookup },
  { file: '0.22.0/a2_function_approved_once', graph: 'Desk', script: ['Done.'], expected: a1 },
  {
    file: '0.22.0/e1_sticky_approve_and_exact_reject',
    graph: 'Desk',
    script: [],
    expected: { before: 'interrupted', effects: [], calls: 0, waits: ['call_e1'] },
  },
  { file: '0.22.3/a2_function_approved_once', graph: 'Desk', script: ['Done.'], expected: a1 },
  {
    file: '0.22.3/b6_pending_write_append_failed',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB1,
    expected: { ...settled, log: ['get(3)', 'add[fco]', 'add[m]'] },
  },
  {
    file: '0.22.3/b7_pending_write_reply_lost',
    graph: 'Desk',
    script: ['Done.'],
    session: [...sessionB1, stored],
    expected: { ...settled, log: ['get(3)', 'add[m]'] },
  },
  {
    file: '0.22.3/e3_sticky_reject_and_exact_approve',
    graph: 'Desk',
    script: [],
    expected: { before: 'interrupted', effects: ['refund 8'], calls: 0, waits: ['call_e1'] },
  },
  {
    file: '0.23.1/b6_pending_write_append_failed',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB1,
    expected: { ...settled, log: ['get(3)', 'add[fco]', 'add[m]'] },
  },
  {
    file: '0.23.1/b12_append_acknowledged_compaction_pending',
    graph: 'Desk',
    script: ['Done.'],
    session: sessionB12,
    expected: { before: 'ready', final: 'Done.', effects: [], log: ['get(3)', 'add[m]'], stored: 'u fc fco m' },
  },
  {
    file: '0.23.1/e1_sticky_approve_and_exact_reject',
    graph: 'Desk',
    script: [refundCall(9, 'z', 'call_e3'), 'Done.'],
    expected: e1,
  },
];

const titled = rows.map((row) => ({
  ...row,
  title: [row.decide ?? 'as it is', row.session && `${row.session.length} items stored`, `${row.script.length} steps`]
    .filter(Boolean)
    .join(', '),
}));

function outputsIn(items: readonly AgentInputItem[]): Json {
  return Object.fromEntries(
    items.flatMap((item) => (item.type === 'function_call_output' ? [[item.call_id, item.output]] : [])),
  );
}

bothForms((runForm, form) => {
  const restore = async (file: string, name: Row['graph'], script: readonly ModelStep[]) => {
    const effects: string[] = [];
    const model = new ScriptedModel(script);
    const agent = graph(name, model, effects);
    return { effects, model, agent, state: await RunState.fromJSON(agent, load(file)) };
  };

  describe(`a state of the Python SDK (${form})`, () => {
    it.each(titled)('$file goes on as it does there: $title [STATE-531]', async (row) => {
      configureLogging({ level: 'error' });
      const { expected } = row;
      const { effects, model, agent, state } = await restore(row.file, row.graph, row.script);
      expect(state.status).toBe(expected.before);
      for (const item of state.interruptions) {
        if (row.decide === 'approve') state.approve(item);
        if (row.decide === 'reject') state.reject(item);
      }
      const session = row.session && new PlainSession('chat-42', row.session);
      const options: RunOptions = session ? { session } : {};
      const result = (await runForm(agent, state, options)) as RunResult;

      expect(result.finalOutput).toBe(expected.final);
      expect(effects).toEqual(expected.effects);
      expect(model.calls).toHaveLength(expected.calls ?? row.script.length);
      const input = kindsOf(model.calls[0]?.request.input ?? []);
      expect(input).toBe(expected.input ?? input);
      expect(outputsIn(model.calls.at(-1)?.request.input ?? [])).toMatchObject(expected.outputs ?? {});
      expect(result.interruptions.map((item) => item.callId)).toEqual(expected.waits ?? []);
      expect(session?.log).toEqual(expected.log ?? session?.log);
      expect(session?.kinds).toBe(expected.stored);
      expect(result.maxTurns).toBe(load(row.file)['max_turns']);
      expect(result.toState().toJSON()).not.toHaveProperty('pending_session_write');
    });

    it('holds the same whether Python streamed or not [STATE-221]', async () => {
      const [a1, a7] = [load('a1_function_interrupted'), load('a7_function_interrupted_streamed')];
      expect(a7).toEqual(a1);
    });

    it('gives its context to the tools, and shows what waits [STATE-150, STATE-203]', async () => {
      const { state } = await restore('a1_function_interrupted', 'Desk', []);
      expect(state.context.context).toEqual({ tenant: 't1' });
      expect(state.interruptions[0]).toMatchObject({
        name: 'refund_order',
        arguments: '{"order_id":7,"note":"é"}',
        callId: 'call_a1',
      });
      expect(kindsOf(state.toInputList())).toBe('u fc');
    });

    it('is refused another session for its pending write, and one that somebody else wrote to [STATE-210, STATE-316, RUN-1612]', async () => {
      for (const file of [
        'b6_pending_write_append_failed',
        'b7_pending_write_reply_lost',
        '0.22.3/b6_pending_write_append_failed',
      ]) {
        const { agent, model, state, effects } = await restore(file, 'Desk', []);
        for (const options of [{}, { session: null }, { session: new PlainSession('other', sessionB1) }])
          expect(await rejection(runForm(agent, state, options))).toMatchObject({
            code: 'session_write_wrong_session',
          });
        const session = new PlainSession('chat-42', [...sessionB1, user('x')]);
        expect(await rejection(runForm(agent, state, { session }))).toMatchObject({ code: 'session_write_ambiguous' });
        expect(session.kinds).toBe('u fc fc fco u');
        expect([model.calls.length, effects]).toEqual([0, []]);
      }
    });

    it('never appends again what was acknowledged [SESS-107]', async () => {
      const { agent, model, state } = await restore('b12_append_acknowledged_compaction_pending', 'Desk', []);
      const session = new PlainSession('chat-42', sessionB12.slice(0, 2));
      expect(await rejection(runForm(agent, state, { session }))).toMatchObject({ code: 'session_write_ambiguous' });
      expect([session.kinds, model.calls.length]).toEqual(['u fc', 0]);
    });

    it.each(['b15_fresh_stream_terminal_append_failed', '0.22.3/b15_fresh_stream_terminal_append_failed'])(
      '%s can never be resumed [STATE-332]',
      async (file) => {
        const { agent, model, state } = await restore(file, 'Plain', []);
        const session = new PlainSession('chat-42', [user('Go')]);
        for (let i = 0; i < 2; i += 1)
          expect(await rejection((async () => await runForm(agent, state, { session }))())).toMatchObject({
            code: 'state_unrecoverable',
          });
        expect([session.log, model.calls.length]).toEqual([[], 0]);
      },
    );

    it.each(['f1_resumed_tool_failed', '0.23.1/f1_resumed_tool_failed'])(
      '%s: a call that had started does not run again [STATE-154, STATE-139]',
      async (file) => {
        const { agent, model, state, effects } = await restore(file, 'Boom', []);
        expect(await rejection(runForm(agent, state))).toMatchObject({ code: 'call_executed_uncommitted' });
        expect([effects, model.calls.length]).toEqual([[], 0]);
      },
    );

    it('refuses a call whose start is in the ledger when the model makes it again [STATE#113, STATE-159]', async () => {
      const { agent, state, effects } = await restore('f2_fresh_stream_tool_failed', 'Boom free', [
        toolCall('boom_free', { order_id: 7 }, { callId: 'call_f4' }),
      ]);
      expect(await rejection(runForm(agent, state))).toMatchObject({ code: 'call_executed_uncommitted' });
      expect(effects).toEqual([]);
    });

    it('is at its limit of turns, and goes on with a higher one [RUN-110, STATE-202]', async () => {
      const { agent, model, state, effects } = await restore('f4_stream_max_turns', 'Lookup', ['Done.']);
      expect(await rejection(runForm(agent, state))).toBeInstanceOf(MaxTurnsExceededError);
      expect(model.calls).toHaveLength(0);
      const again = await RunState.fromJSON(agent, load('f4_stream_max_turns'));
      const result = await runForm(agent, again, { maxTurns: 5 });
      expect([result.finalOutput, effects]).toEqual(['Done.', []]);
    });

    it('lets a waiting call of an old label be decided again [STATE-146, STATE#104]', async () => {
      const { agent, state, effects } = await restore('0.22.0/e1_sticky_approve_and_exact_reject', 'Desk', [
        refundCall(9, 'z', 'call_e3'),
        'Done.',
      ]);
      configureLogging({ level: 'error' });
      const paused = (await runForm(agent, state)) as RunResult;
      const next = paused.toState();
      for (const item of next.interruptions) next.approve(item, { always: true });
      const result = await runForm(agent, next);
      expect([result.finalOutput, effects]).toEqual(['Done.', ['refund 7', 'refund 9']]);
      expect(outputsIn(result.toInputList())).toEqual({
        call_e1: 'refunded 7',
        call_e2: 'not this one',
        call_e3: 'refunded 9',
      });
    });
  });
});
