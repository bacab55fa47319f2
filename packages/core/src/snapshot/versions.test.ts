import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { contextInternals } from '../state/context.ts';
import { callIdentity } from '../state/identity.ts';
import type { LedgerEntry } from '../state/ledger.ts';
import { changed, minimalState, pythonState } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
const labels = Array.from({ length: 22 }, (_, minor) => `1.${minor}`);
const below = (minor: number): string[] => labels.slice(0, minor);

beforeEach(() => configureLogging({ level: 'silent' }));
afterEach(() => resetAll());

const call = (id: string, members: Members = {}): Members => ({
  type: 'function_call',
  call_id: id,
  name: 'refund_order',
  arguments: '{"order_id":7}',
  ...members,
});
const output = (id: string, type = 'function_call_output'): Members => ({ type, call_id: id, output: 'refunded' });
const item = (type: string, raw: Members, members: Members = {}): Members => ({
  type,
  raw_item: raw,
  agent: { name: 'Desk' },
  ...members,
});
const waiting = (raw: Members, members: Members = {}): Members => item('tool_approval_item', raw, members);
const ledgerOf = (state: RunState): LedgerEntry[] => [...contextInternals(state.context).ledger.entries()];
const restore = async (json: Members): Promise<RunState> => (await RunState.fromJSON(desk, json)) as RunState;

describe('every label is read', () => {
  test.each(labels)(
    '%s: the least state, written again, says the same in 1.21 and no more changes [STATE-341], [STATE#39]',
    async (label) => {
      const source = minimalState(label, {
        context: { context: { n: 1, t: 'x', f: 1.5, b: true, none: null } },
        current_turn: 3,
        max_turns: 7,
      });
      const written = (await restore(source)).toJSON() as Members;
      const { $schemaVersion: version, ...facts } = source;
      expect(version).toBe(label);
      expect(written).toMatchObject(facts);
      expect(written['$schemaVersion']).toBe('1.21');
      expect((await restore(written)).toJSON()).toEqual(written);
    },
  );

  test('members that may be absent have their defaults', async () => {
    const record = recordOf(await restore(minimalState('1.0')));
    expect(record).toMatchObject({
      generatedItems: [],
      sessionItems: [],
      modelResponses: [],
      processed: undefined,
      step: { type: 'none' },
      persistedItemCount: 0,
      pendingWrite: undefined,
      unrecoverable: false,
      reasoningItemIdPolicy: undefined,
      promptCacheKey: undefined,
      trace: undefined,
      foreign: {},
      decisions: [],
    });
  });

  test('values that older and newer writers had are kept [STATE#40]', async () => {
    const members = {
      conversation_id: 'conv_1',
      previous_response_id: 'resp_1',
      auto_previous_response_id: true,
      generated_prompt_cache_key: 'key',
      reasoning_item_id_policy: 'omit',
      pending_input: [{ role: 'user', content: 'also' }],
      tool_input_guardrail_results: [
        { guardrail: { type: 'tool_input', name: 'g' }, output: { outputInfo: { a: 1 }, behavior: { type: 'allow' } } },
      ],
    };
    expect((await restore(minimalState('1.21', members))).toJSON()).toMatchObject(members);
  });

  test('values of a wrong kind that mean nothing count as absent', async () => {
    const members = {
      generated_prompt_cache_key: 7,
      reasoning_item_id_policy: 'later',
      conversation_id: 7,
      tool_use_tracker: 'x',
    };
    expect((await restore(minimalState('1.21', members))).toJSON()).toMatchObject({
      generated_prompt_cache_key: null,
      reasoning_item_id_policy: null,
      conversation_id: null,
      tool_use_tracker: {},
    });
  });

  test('unknown members at the top are dropped, those of wire items stay [STATE-342]', async () => {
    const raw = { type: 'reasoning', id: 'rs', summary: [], later: { x: [1] } };
    const written = (
      await restore(minimalState('1.21', { later: 1, session_items: [item('reasoning_item', raw)] }))
    ).toJSON() as Members;
    expect(written).not.toHaveProperty('later');
    expect((written['session_items'] as Members[])[0]?.['raw_item']).toEqual(raw);
  });

  test('the oldest form of an interruption, and of an agent [STATE-351]', async () => {
    const json = minimalState('1.0', {
      current_agent: 'Desk',
      current_step: { type: 'next_step_interruption', interruptions: [{ ...waiting(call('c1')), agent: 'Desk' }] },
    });
    const state = await restore(json);
    expect(state.interruptions.map(({ callId, agent }) => [callId, agent])).toEqual([['c1', desk]]);
    expect(recordOf(state).step).toMatchObject({ responseAccepted: false, llmEndHooksStarted: true });
  });

  test('a program in the history needs 1.13', async () => {
    const json = minimalState('1.12', {
      session_items: [item('tool_call_item', call('c', { caller: { type: 'program', id: 'p' } }))],
    });
    await expect(restore(json)).rejects.toMatchObject({ code: 'schema_feature_mismatch' });
    await expect(restore({ ...json, $schemaVersion: '1.13' })).resolves.toBeInstanceOf(RunState);
  });
});

describe('labels without a ledger have one rebuilt from history', () => {
  const history = (items: Members[], members: Members = {}): Members =>
    minimalState('1.14', { session_items: items, ...members });

  test('a call with its output is completed, with an output of another kind executed, alone unknown [STATE#45]', async () => {
    const items = [call('done'), call('odd'), call('open')].map((raw) => item('tool_call_item', raw));
    const outputs = [output('done'), { ...output('odd', 'custom_tool_call_output') }].map((raw) =>
      item('tool_call_output_item', raw, { output: 'x' }),
    );
    const rows = ledgerOf(await restore(history([...items, ...outputs])));
    const identity = callIdentity(call('done'));
    expect(rows).toEqual([
      {
        type: 'function_call',
        callId: 'done',
        approvalScope: identity?.approvalScope,
        fingerprint: identity?.fingerprint,
        executed: true,
        completed: true,
      },
      expect.objectContaining({ callId: 'odd', executed: true, completed: false }),
    ]);
  });

  test('calls of the input count too, those with conflicting occurrences do not', async () => {
    const input = [call('a'), output('a'), call('b'), output('b'), call('b', { arguments: '{}' })];
    expect(
      ledgerOf(await restore(minimalState('1.10', { original_input: input }))).map(({ callId }) => callId),
    ).toEqual(['a']);
  });

  test.each(below(15))('%s: a waiting call keeps a decision that names it [STATE#41]', async (label) => {
    const step = { type: 'next_step_interruption', data: { interruptions: [waiting(call('c1'))] } };
    const approvals = { refund_order: { approved: ['c1', 'gone'], rejected: [] } };
    const state = await restore(
      minimalState(label, {
        current_step: step,
        context: { approvals },
        session_items: [item('tool_call_item', call('c1'))],
      }),
    );
    const { approvals: map, ledger } = contextInternals(state.context);
    const lookupKey = { kind: 'bare', name: 'refund_order' } as const;
    expect(map.decisionFor({ owner: desk, lookupKey, identity: callIdentity(call('c1')) }, ledger)).toEqual({
      approved: true,
    });
    expect(map.decisionFor({ owner: desk, lookupKey, identity: callIdentity(call('gone')) }, ledger)).toBeUndefined();
  });

  test('a sticky decision on a native tool gets the scope of the waiting call, one on a function none [STATE-146]', async () => {
    const shell = { type: 'shell_call', call_id: 's1', action: { commands: ['ls'] } };
    const step = {
      type: 'next_step_interruption',
      data: { interruptions: [waiting(shell, { tool_name: 'shell' }), waiting(call('c1'))] },
    };
    const approvals = { shell: { approved: true, rejected: [] }, refund_order: { approved: true, rejected: [] } };
    const { named } = contextInternals(
      (await restore(minimalState('1.14', { current_step: step, context: { approvals } }))).context,
    ).approvals;
    expect(named.get('shell')?.stickyScope).toBe(callIdentity(shell, undefined, { toolName: 'shell' })?.approvalScope);
    expect(named.get('refund_order')?.stickyScope).toBeUndefined();
  });

  test('the ledger of a label that has none is not read', async () => {
    const json = changed(
      { ...pythonState('a1_function_interrupted.json'), $schemaVersion: '1.14' },
      'context.tool_invocations',
      'x',
    );
    await expect(restore(changed(json, 'context.function_tool_approvals', undefined))).resolves.toBeInstanceOf(
      RunState,
    );
  });
});

describe('labels with a ledger have nothing rebuilt', () => {
  const approved = (): Members => pythonState('a2_function_approved_once.json');
  const decision = (state: RunState): unknown => {
    const { approvals, ledger } = contextInternals(state.context);
    const [first] = state.interruptions;
    return approvals.decisionFor(
      { owner: desk, lookupKey: { kind: 'bare', name: 'refund_order' }, identity: callIdentity(first?.rawItem) },
      ledger,
    );
  };

  test('a decision whose row is gone, or is of another call, has to be made again [STATE-361], [STATE#44]', async () => {
    expect(decision(await restore(approved()))).toEqual({ approved: true });
    for (const json of [
      changed(approved(), 'context.tool_invocations.call_a1', undefined),
      changed(approved(), 'context.tool_invocations.call_a1.fingerprint', '0'.repeat(64)),
    ]) {
      const state = await restore(json);
      expect(decision(state)).toBeUndefined();
      const [first] = state.interruptions;
      if (first !== undefined) state.approve(first);
      expect(decision(state)).toEqual({ approved: true });
    }
  });

  test('a decision whose row is gone is for no later call of that id either [STATE-361]', async () => {
    const state = await restore(changed(approved(), 'context.tool_invocations.call_a1', undefined));
    const { ledger } = contextInternals(state.context);
    const [first] = state.interruptions;
    ledger.plan([{ call: first?.rawItem as object }]);
    expect(decision(state)).toBeUndefined();
  });

  test('what history shows as finished is protected, whatever its row says [STATE-155, 159]', async () => {
    const { ledger } = contextInternals((await restore(pythonState('f2_fresh_stream_tool_failed.json'))).context);
    expect([ledger.isInDoubt('call_f3'), ledger.isInDoubt('call_f4')]).toEqual([false, true]);
    const input = [call('old'), output('old')];
    const { ledger: other } = contextInternals(
      (await restore(minimalState('1.21', { original_input: input }))).context,
    );
    expect(other.plan([{ call: call('old') }, { call: call('new') }]).map(({ status }) => status)).toEqual([
      'completed',
      'new',
    ]);
  });

  test('a decision that names an identity nobody has authorizes nothing when a call of that name comes [STATE-405]', async () => {
    const state = await restore(
      changed(approved(), 'current_step.data.interruptions.0.raw_item.arguments', '{"order_id":9,"note":"x"}'),
    );
    expect(decision(state)).toBeUndefined();
  });
});

test('a descriptor without lookup key means the tool that the call names', async () => {
  const functions = [
    { tool_call: call('a'), tool: { name: 'refund_order' } },
    { tool_call: call('b', { namespace: 'crm' }), tool: { name: 'refund_order', namespace: 'crm' } },
    { tool_call: call('c'), tool: {} },
    'x',
  ];
  const { processed } = recordOf(await restore(minimalState('1.4', { last_processed_response: { functions } })));
  expect(processed?.functions.map(({ tool }) => tool.lookupKey)).toEqual([
    { kind: 'bare', name: 'refund_order' },
    { kind: 'namespaced', namespace: 'crm', name: 'refund_order' },
  ]);
});

describe('items that are read', () => {
  const read = async (items: unknown[]): Promise<readonly unknown[]> =>
    (await restore(minimalState('1.21', { session_items: items }))).newItems.map(({ type, rawItem }) => [
      type,
      rawItem,
    ]);

  test('a message without status, and one whose content is a text [STATE-351]', async () => {
    const plain = { type: 'message', role: 'assistant', content: [] };
    expect(
      await read([item('message_output_item', plain), item('message_output_item', { ...plain, content: 'hi' })]),
    ).toEqual([
      ['message_output_item', plain],
      ['message_output_item', { ...plain, content: [{ type: 'output_text', text: 'hi', annotations: [] }] }],
    ]);
  });

  test.each<[string, unknown]>([
    ['no object', 'x'],
    ['no type', { raw_item: {}, agent: { name: 'Desk' } }],
    ['an unknown type', item('later_item', {})],
    ['no raw item', { type: 'reasoning_item', agent: { name: 'Desk' } }],
    ['no agent', { type: 'reasoning_item', raw_item: {} }],
    ['an output without call id', item('tool_call_output_item', { type: 'function_call_output', output: 'x' })],
    [
      'an output that is a number',
      item('tool_call_output_item', { type: 'function_call_output', call_id: 'c', output: 7 }),
    ],
    [
      'a shell output with an empty call id',
      item('tool_call_output_item', { type: 'local_shell_call_output', call_id: '', output: 'x' }),
    ],
    [
      'a computer output that is a text',
      item('tool_call_output_item', { type: 'computer_call_output', call_id: 'c', output: 'x' }),
    ],
    [
      'a handoff whose target is gone',
      item('handoff_output_item', output('c'), { source_agent: { name: 'Desk' }, target_agent: { name: 'Gone' } }),
    ],
  ])('%s: skipped, and the others stay [STATE-351]', async (_, broken) => {
    expect(await read([item('reasoning_item', { id: 'a' }), broken, item('reasoning_item', { id: 'b' })])).toEqual([
      ['reasoning_item', { id: 'a' }],
      ['reasoning_item', { id: 'b' }],
    ]);
  });

  test('every kind comes back equal, with its facts', async () => {
    const raw = { type: 'x', id: 'r' };
    const kinds = [
      'reasoning_item',
      'handoff_call_item',
      'tool_search_call_item',
      'tool_search_output_item',
      'mcp_list_tools_item',
      'mcp_approval_request_item',
      'mcp_approval_response_item',
      'compaction_item',
    ];
    const items = [
      ...kinds.map((kind) => item(kind, raw)),
      item('input_item', { role: 'user', content: 'x' }, { input_id: 'a'.repeat(32) }),
      item('handoff_output_item', output('c'), { source_agent: { name: 'Desk' }, target_agent: { name: 'Desk' } }),
      item('tool_call_output_item', output('c'), {
        output: { a: [1, null] },
        tool_origin: { type: 'function' },
        custom_data: { b: 2 },
      }),
      item('tool_call_item', call('c'), {
        tool_name: 'refund_order',
        title: 'Refund',
        description: 'Refund an order.',
        tool_origin: { type: 'agent_as_tool', agent_name: 'B', agent_tool_name: 'ask' },
      }),
      waiting(call('c', { namespace: 'crm' }), {
        tool_name: 'refund_order',
        tool_namespace: 'crm',
        tool_lookup_key: { kind: 'namespaced', namespace: 'crm', name: 'refund_order' },
        tool_origin: { type: 'mcp', mcp_server_name: 's' },
        allow_bare_name_alias: true,
      }),
    ];
    const written = (await restore(minimalState('1.21', { session_items: items }))).toJSON() as Members;
    expect(written['session_items']).toEqual(items);
  });
});
