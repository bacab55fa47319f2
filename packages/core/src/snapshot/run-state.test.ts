import { inspect } from 'node:util';
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { resetAll } from '../base/reset.ts';
import { toUsage } from '../base/usage.ts';
import { MessageOutputItem, ReasoningItem } from '../items/items.ts';
import { contextInternals, RunContext } from '../state/context.ts';
import { copyRecord, newRecord } from '../state/copy.ts';
import { ToolApprovalItem } from '../state/decisions.ts';
import type { CallDecision, DecidedCall } from '../state/approvals.ts';
import { callIdentity } from '../state/identity.ts';
import { changed, minimalState, pythonState, pythonStateText } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf, RunState, stateOf } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
const restore = (file: string): Promise<RunState> =>
  RunState.fromString(desk, pythonStateText(file)) as Promise<RunState>;

afterEach(() => resetAll());

describe('what a state shows', () => {
  test.each<[string, unknown, string, string | undefined]>([
    ['before the first turn', minimalState(), 'ready', undefined],
    ['paused', pythonState('a1_function_interrupted.json'), 'interrupted', 'next_step_interruption'],
    [
      'cut, with an empty list',
      changed(pythonState('a1_function_interrupted.json'), 'current_step.data.interruptions', []),
      'interrupted',
      'next_step_interruption',
    ],
    ['after a turn', pythonState('f7_stream_cancel_after_turn.json'), 'ready', 'next_step_run_again'],
    ['finished', pythonState('a3_function_finished.json'), 'completed', undefined],
    ['marked', pythonState('b15_fresh_stream_terminal_append_failed.json'), 'unrecoverable', undefined],
    ['marked beside a session write', pythonState('b19_held_terminal_append_failed.json'), 'unrecoverable', undefined],
  ])('status and step of a run that is %s [STATE-149], [STATE#129]', async (_, json, status, step) => {
    const state = await RunState.fromJSON(desk, json);
    expect(state.status).toBe(status);
    expect(state.currentStep?.type).toBe(step);
    expect((await RunState.fromString(desk, state.toString())).status).toBe(status);
  });

  test('a run that has its output is completed, and shows the output until it is written down', () => {
    const record = newRecord({ agent: desk, context: undefined, input: 'hello', maxTurns: 10 });
    expect(stateOf(record).status).toBe('ready');
    record.step = { type: 'final_output', output: { ok: true } };
    expect(stateOf(record).status).toBe('completed');
    expect(stateOf(record).currentStep).toEqual({ type: 'next_step_final_output', output: { ok: true } });
    expect(stateOf(record).toJSON()['current_step']).toBeNull();
  });

  test('facts of the run are readable', async () => {
    const state = await restore('a4_gated_and_free_calls.json');
    expect(state.currentAgent).toBe(desk);
    expect(state.currentTurn).toBe(1);
    expect(state.maxTurns).toBe(10);
    expect(state.sessionId).toBeUndefined();
    expect(state.context).toBeInstanceOf(RunContext);
    expect(state.context.context).toEqual({ tenant: 't1' });
    expect(state.usage).toMatchObject({ requests: 1, inputTokens: 20, outputTokens: 5, totalTokens: 25 });
    expect((await restore('a10_max_turns_null.json')).maxTurns).toBeNull();
  });

  test('a waiting item is what it was: its class, its names, its call, its agent [IL-088], [STATE-150]', async () => {
    const state = await restore('a4_gated_and_free_calls.json');
    const [item, ...others] = state.interruptions;
    expect(others).toEqual([]);
    expect(item).toBeInstanceOf(ToolApprovalItem);
    expect(item).toMatchObject({
      type: 'tool_approval_item',
      name: 'refund_order',
      qualifiedName: 'refund_order',
      callId: 'call_a2',
      inDoubt: false,
    });
    expect(item?.agent).toBe(desk);
    expect(JSON.parse(item?.arguments ?? '')).toMatchObject({ order_id: 7 });
    expect(state.newItems).toContain(item);
  });

  test('a waiting call that had started is in doubt, one whose output is there is not', async () => {
    const state = await restore('f1_resumed_tool_failed.json');
    expect(state.interruptions.map(({ name, inDoubt }) => [name, inDoubt])).toEqual([['boom', true]]);
    const ledger = 'context.tool_invocations.call_a1';
    const started = changed(
      changed(pythonState('a1_function_interrupted.json'), `${ledger}.executed`, true),
      'original_input',
      [{ type: 'function_call_output', call_id: 'call_a1', output: 'x' }],
    );
    expect((await RunState.fromJSON(desk, started)).interruptions[0]?.inDoubt).toBe(false);
  });

  test('the conversation so far, in both modes and without waiting items [STATE-150], [IL-093]', async () => {
    const state = await restore('a4_gated_and_free_calls.json');
    const list = state.toInputList();
    expect(list.map((item) => ('type' in item ? item.type : (item as { role?: unknown }).role))).toEqual([
      'user',
      'assistant',
      'user',
      'reasoning',
      'function_call',
      'function_call',
      'function_call_output',
    ]);
    expect(state.toInputList({ mode: 'normalized' })).toEqual(list);
    expect(() => state.toInputList({ mode: 'short' as never })).toThrow(/preserve_all.*normalized/);
    expect(() => state.toInputList({ modus: 'normalized' } as never)).toThrow(/Unknown option 'modus'/);
  });

  test('ids of reasoning items are left out where the policy says so', async () => {
    const state = await RunState.fromJSON(
      desk,
      changed(pythonState('a4_gated_and_free_calls.json'), 'reasoning_item_id_policy', 'omit'),
    );
    expect(state.toInputList().find((item) => 'type' in item && item.type === 'reasoning')).not.toHaveProperty('id');
    expect(state.newItems.find((item) => item instanceof ReasoningItem)?.rawItem).toHaveProperty('id');
  });

  test('lists that were read are views: emptying one changes no state, and no state changes it [STATE-138], [STATE#70]', async () => {
    const state = await restore('a1_function_interrupted.json');
    const { interruptions, newItems } = state;
    (interruptions as unknown[]).length = 0;
    (newItems as unknown[]).length = 0;
    (state.getDecisions() as unknown[]).push({});
    expect(state.interruptions).toHaveLength(1);
    expect(state.newItems).toHaveLength(2);
    expect(state.getDecisions()).toEqual([]);
  });

  test('console.log shows where the run stands, and neither agents nor contents', async () => {
    const shown = inspect(await restore('a1_function_interrupted.json'), { depth: 10 });
    expect(shown).toMatch(/^RunState \{/);
    expect(shown).toContain("status: 'interrupted'");
    expect(shown).toContain("interruptions: [ 'refund_order' ]");
    expect(shown).not.toMatch(/tenant|arguments|instructions/);
  });

  test('there is no public constructor, and instanceof knows states of another copy of the package', async () => {
    expect(() => new (RunState as unknown as new () => RunState)().status).toThrow(TypeError);
    const state = await restore('a1_function_interrupted.json');
    expect(state).toBeInstanceOf(RunState);
    expect({ status: state.status }).not.toBeInstanceOf(RunState);
    expectTypeOf<RunState>().toExtend<RunState<unknown, unknown>>();
  });
});

describe('decisions', () => {
  const decisionFor = (context: RunContext, decided: DecidedCall): CallDecision | undefined => {
    const { approvals, ledger } = contextInternals(context);
    return approvals.decisionFor(decided, ledger);
  };
  const call = (state: RunState): DecidedCall => {
    const [item] = state.interruptions;
    const lookupKey = { kind: 'bare', name: 'refund_order' } as const;
    return { owner: desk, lookupKey, identity: callIdentity(item?.rawItem, lookupKey) };
  };

  test('approve, reject and decide answer the call, the last one counts, and all are on record', async () => {
    const state = await restore('a1_function_interrupted.json');
    const item = state.interruptions[0] as ToolApprovalItem;
    state.approve(item, { by: 'ann' });
    expect(decisionFor(state.context, call(state))).toEqual({ approved: true });
    state.reject(item, { message: 'not this one', note: 'too much' });
    expect(decisionFor(state.context, call(state))).toEqual({ approved: false, message: 'not this one' });
    state.decide(item, { type: 'approve', always: true });
    expect(
      state
        .getDecisions()
        .map(({ type, always, by, note, callId, path }) => ({ type, always, by, note, callId, path })),
    ).toEqual([
      { type: 'approve', always: false, by: 'ann', note: undefined, callId: 'call_a1', path: [] },
      { type: 'reject', always: false, by: undefined, note: 'too much', callId: 'call_a1', path: [] },
      { type: 'approve', always: true, by: undefined, note: undefined, callId: 'call_a1', path: [] },
    ]);
    const again = (await RunState.fromString(desk, state.toString())) as RunState;
    expect(again.getDecisions()).toEqual(state.getDecisions());
    expect(decisionFor(again.context, call(again))).toEqual({ approved: true });
  });

  test('the context decides for the state that it belongs to', async () => {
    const state = await restore('a1_function_interrupted.json');
    state.context.decide(state.interruptions[0] as ToolApprovalItem, { type: 'approve' });
    expect(state.getDecisions()).toHaveLength(1);
  });

  test('an item of another restore of the same text will do, and the other restore stays undecided [STATE-171], [IL-063]', async () => {
    const [one, two] = [await restore('a1_function_interrupted.json'), await restore('a1_function_interrupted.json')];
    one.approve(two.interruptions[0] as ToolApprovalItem);
    expect(decisionFor(one.context, call(one))).toEqual({ approved: true });
    expect(decisionFor(two.context, call(two))).toBeUndefined();
    expect(two.getDecisions()).toEqual([]);
  });

  test('copies of a record are states of their own [STATE-131, 132], [STATE#69], [IL-069]', async () => {
    const source = await restore('a1_function_interrupted.json');
    const [one, two] = [stateOf(copyRecord(recordOf(source))), stateOf(copyRecord(recordOf(source)))];
    const before = two.toString();
    one.reject(one.interruptions[0] as ToolApprovalItem);
    contextInternals(one.context).usage.add({ ...one.usage });
    expect(two.toString()).toBe(before);
    expect(source.toString()).toBe(before);
  });

  test('a decision of the older string map that names one call holds, a sticky one does not [STATE-146], [STATE#104]', async () => {
    const exact = await restore('0.22.0/a2_function_approved_once.json');
    expect(decisionFor(exact.context, call(exact))).toEqual({ approved: true });
    const sticky = await restore('0.22.0/e1_sticky_approve_and_exact_reject.json');
    const identities = sticky.interruptions.map((item) => ({ ...call(sticky), identity: callIdentity(item.rawItem) }));
    expect(identities.map((one) => decisionFor(sticky.context, one))).toEqual([
      undefined,
      { approved: false, message: 'not this one' },
    ]);
  });
});

describe('the text of a state', () => {
  test('has no white space, and is equal after a round trip but for what a reader adds [STATE#38]', async () => {
    const state = await restore('a1_function_interrupted.json');
    const text = state.toString();
    expect(text).toMatch(/^\{"\$schemaVersion":"1\.21",/);
    const again = await RunState.fromString(desk, text);
    expect(again.toString()).toBe(text);
    expect(again.toJSON()).toEqual(state.toJSON());
  });

  test('JSON.stringify of a state is that of its JSON: the key that it passes means defaults', async () => {
    const state = await restore('a1_function_interrupted.json');
    expect(JSON.parse(JSON.stringify({ state }))).toEqual({ state: state.toJSON() });
  });

  test('changing the JSON changes neither the state nor the next JSON [STATE-137]', async () => {
    const state = await restore('a1_function_interrupted.json');
    const before = state.toString();
    const json = state.toJSON() as unknown as Members & { generated_items: [{ raw_item: Members }] };
    json.generated_items[0].raw_item['arguments'] = '{}';
    (json.generated_items as unknown[]).length = 0;
    (json['context'] as { context: Members }).context['tenant'] = 'other';
    (json['model_responses'] as Members[])[0] = {};
    expect(state.toString()).toBe(before);
  });

  test('our own members are under one key, and a reader works without them [STATE-344], [STATE#95]', async () => {
    const record = newRecord({ agent: desk, context: null, input: 'hello', maxTurns: null, sessionId: 'chat-42' });
    const json = stateOf(record).toJSON() as Members;
    expect(json['agents_ts']).toEqual({ run_key: record.runKey, session_id: 'chat-42' });
    expect(record.runKey).toMatch(/^[0-9a-f]{32}$/);
    const again = await RunState.fromJSON(desk, json);
    expect(recordOf(again as RunState)).toMatchObject({ runKey: record.runKey, sessionId: 'chat-42' });
    const foreign = recordOf((await RunState.fromJSON(desk, changed(json, 'agents_ts', undefined))) as RunState);
    expect(foreign.sessionId).toBeUndefined();
    expect(foreign.runKey).toMatch(/^[0-9a-f]{32}$/);
    expect(foreign.runKey).not.toBe(record.runKey);
  });

  test.each([
    ['a text', 'x'],
    ['an empty session id', { session_id: '', run_key: 7, later: true }],
    ['a run key of another form', { run_key: '0123456789ABCDEF0123456789ABCDEF' }],
    ['expiries of another form', { expiries: { call_a1: 7 } }],
    ['expiries that are none', { expiries: 'x' }],
  ])('malformed additions are as good as none: %s [STATE#95]', async (_, additions) => {
    const state = await RunState.fromJSON(desk, {
      ...pythonState('a1_function_interrupted.json'),
      agents_ts: additions,
    });
    expect(state.sessionId).toBeUndefined();
    const written = (state.toJSON() as Members)['agents_ts'] as Members;
    expect(Object.keys(written)).toEqual(['run_key', 'expiries']);
    expect(written['run_key']).toMatch(/^[0-9a-f]{32}$/);
  });

  test('the time since which a call waits, and one at which it expires, survive', async () => {
    const expiries = { call_a1: { created_at: '2026-01-02T03:04:05.000Z', expires_at: '2026-01-03T03:04:05.000Z' } };
    const state = await RunState.fromJSON(desk, {
      ...pythonState('a1_function_interrupted.json'),
      agents_ts: { expiries },
    });
    expect(state.interruptions[0]?.createdAt).toBe('2026-01-02T03:04:05.000Z');
    expect((state.toJSON() as unknown as { agents_ts: Members }).agents_ts['expiries']).toEqual(expiries);
  });

  test('what is nested too deep to be read again is not written [STATE-402]', () => {
    let deep: unknown = 'end';
    for (let i = 0; i < 300; i++) deep = { deep };
    const init = { agent: desk, context: null, input: 'hello', maxTurns: 10 };
    const item = new MessageOutputItem(desk, { type: 'message', role: 'assistant', deep } as never);
    const response = { output: [{ deep }], usage: toUsage() };
    for (const record of [
      newRecord({ ...init, context: { deep } }),
      newRecord({ ...init, input: [{ role: 'user', content: deep } as never] }),
      Object.assign(newRecord(init), { sessionItems: [item] }),
      Object.assign(newRecord(init), { generatedItems: [item] }),
      Object.assign(newRecord(init), { modelResponses: [response] }),
    ]) {
      expect(() => stateOf(record).toString()).toThrow(expect.objectContaining({ code: 'json_too_large' }));
      expect(() => stateOf(record).toJSON()).toThrow(expect.objectContaining({ code: 'json_too_large' }));
    }
  });

  test('unknown options are refused', async () => {
    const state = await restore('a1_function_interrupted.json');
    expect(() => state.toString({ strict: true } as never)).toThrow(/strictContext/);
    expect(() => state.toJSON({ includeTracingApiKey: 'yes' } as never)).toThrow(/true or false/);
  });

  test('assistant messages of the input are written in the form of the API', () => {
    const input = [
      { role: 'assistant', content: 'hi' },
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'a' }], status: 'incomplete' },
    ];
    const json = stateOf(
      newRecord({ agent: desk, context: null, input: input as never, maxTurns: 10 }),
    ).toJSON() as Members;
    expect(json['original_input']).toEqual([
      { role: 'assistant', content: [{ type: 'output_text', text: 'hi' }], status: 'completed' },
      input[1],
      input[2],
    ]);
    expect(input[0]).toEqual({ role: 'assistant', content: 'hi' });
  });
});

describe('the key of the trace export', () => {
  const record = (): ReturnType<typeof newRecord> => {
    const fresh = newRecord({ agent: desk, context: null, input: 'hello', maxTurns: 10 });
    fresh.trace = {
      traceId: 'trace_1',
      workflowName: 'Agent workflow',
      groupId: 'g',
      metadata: { a: 1 },
      apiKey: 'sk-planted',
      extra: { carrier: 'x' },
    };
    return fresh;
  };

  test('is written as a digest, and itself on request alone [STATE-407], [STATE#74]', async () => {
    const plain = stateOf(record()).toJSON()['trace'] as Members;
    expect(JSON.stringify(plain)).not.toContain('sk-planted');
    expect(plain).toMatchObject({
      object: 'trace',
      id: 'trace_1',
      workflow_name: 'Agent workflow',
      group_id: 'g',
      metadata: { a: 1 },
      carrier: 'x',
    });
    expect(plain['tracing_api_key_hash']).toMatch(/^[0-9a-f]{64}$/);
    const full = stateOf(record()).toJSON({ includeTracingApiKey: true });
    expect(full['trace']).toEqual({ ...plain, tracing_api_key: 'sk-planted' });
    const again = await RunState.fromJSON(desk, full);
    expect(recordOf(again as RunState).trace).toMatchObject({
      apiKey: 'sk-planted',
      apiKeyHash: plain['tracing_api_key_hash'],
      extra: { carrier: 'x' },
    });
    expect(again.toJSON()['trace']).toEqual(plain);
  });

  test('a digest alone survives, with members of other writers', async () => {
    const trace = {
      object: 'trace',
      trace_id: 't',
      workflow_name: 'w',
      group_id: null,
      metadata: null,
      tracing_api_key_hash: 'ab',
      baggage: [1],
    };
    const state = await RunState.fromJSON(desk, minimalState('1.21', { trace }));
    const { trace_id: id, ...others } = trace;
    expect(state.toJSON()['trace']).toEqual({ ...others, id });
  });
});
