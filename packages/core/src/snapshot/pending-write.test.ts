import { describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { changed, minimalState, pythonState } from '../../test/states.ts';
import type { Members } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });
const digest = 'a'.repeat(64);
const item = { type: 'function_call_output', call_id: 'call_7', output: 'receipt-7' };
const base: Members = { session_id: 'chat-42', items: [item], before: [digest], persisted_count: 1 };
const full: Members = { ...base, response_id: 'resp_1', store: false, has_local_tool_outputs: true };
const exchange = { item_digests: ['d'], reasoning_item_id_policy: null };
const held: Members = {
  ...base,
  before: null,
  held: true,
  response_id: 'resp_1',
  store: null,
  reasoning_item_id_policy: 'omit',
  current_response: { turn: 2, start: 1 },
};
const state = (write: unknown, members: Members = {}): Members =>
  minimalState('1.21', {
    current_turn: 2,
    current_step: { type: 'next_step_run_again' },
    pending_session_write: write,
    ...members,
  });
const restore = async (json: Members): Promise<RunState> => (await RunState.fromJSON(desk, json)) as RunState;

describe('a pending session write', () => {
  test.each<[string, Members]>([
    ['settled before it began', { ...full, before: null }],
    ['with a tail', full],
    ['of an empty session', { ...full, before: [] }],
    ['acknowledged', { ...full, append_acknowledged: true }],
    ['with what compaction needs', { ...full, compaction_model_exchange: exchange }],
    ...(['omit', 'preserve'] as const).map((policy): [string, Members] => [
      `with what compaction needs, ids of reasoning by '${policy}'`,
      { ...full, compaction_model_exchange: { ...exchange, reasoning_item_id_policy: policy } },
    ]),
    ['of a session without a name', { ...full, session_id: '' }],
    ['held', held],
  ])('%s: read and written again, equal [STATE-317, 318, SESS#82]', async (_, write) => {
    const restored = await restore(state(write));
    expect(restored.toJSON()['pending_session_write']).toEqual(write);
    const known = write['compaction_model_exchange'] as typeof exchange | undefined;
    expect(recordOf(restored).pendingWrite?.exchange?.reasoningItemIdPolicy).toBe(known?.reasoning_item_id_policy);
    expect(recordOf(restored).pendingWrite).toMatchObject({
      sessionId: write['session_id'],
      before: write['before'],
      acknowledged: write['append_acknowledged'] === true,
    });
  });

  test('absent and null are none, and a settled one leaves no key', async () => {
    for (const write of [undefined, null]) {
      const restored = await restore(state(write));
      expect(recordOf(restored).pendingWrite).toBeUndefined();
      expect(restored.toJSON()).not.toHaveProperty('pending_session_write');
    }
  });

  test('the four base members are enough; what is missing is unknown', async () => {
    expect(recordOf(await restore(state(base, { $schemaVersion: '1.17' }))).pendingWrite).toEqual({
      sessionId: 'chat-42',
      items: [item],
      before: [digest],
      persistedCount: 1,
      responseId: null,
      store: null,
      hasLocalToolOutputs: false,
      acknowledged: false,
    });
  });

  test('of a state that can never be run is neither looked at nor written again [STATE-337], [STATE#115]', async () => {
    const restored = await restore(state('broken', { terminal_unrecoverable: true, current_step: null }));
    expect(restored.status).toBe('unrecoverable');
    expect(restored.toJSON()).toMatchObject({ terminal_unrecoverable: true });
    expect(restored.toJSON()).not.toHaveProperty('pending_session_write');
    expect((await restore(pythonState('b19_held_terminal_append_failed.json'))).status).toBe('unrecoverable');
  });

  test('of a run that became unrecoverable is not written', async () => {
    const live = await restore(state(full));
    recordOf(live).unrecoverable = true;
    expect(live.toJSON()).toMatchObject({ terminal_unrecoverable: true });
    expect(live.toJSON()).not.toHaveProperty('pending_session_write');
  });

  const without = (write: Members, key: string): Members => changed(write, key, undefined);
  test.each<[string, unknown]>([
    ['a text', 'x'],
    ['a list', [base]],
    ['no session', without(full, 'session_id')],
    ['a session that is a number', { ...full, session_id: 7 }],
    ['no items', without(full, 'items')],
    ['an empty list of items', { ...full, items: [] }],
    ['items that are texts', { ...full, items: ['x'] }],
    ['no tail', without(full, 'before')],
    ['a tail that is a text', { ...full, before: digest }],
    ['a tail of other texts', { ...full, before: ['x'] }],
    ['a tail in upper case', { ...full, before: ['A'.repeat(64)] }],
    ['no count', without(full, 'persisted_count')],
    ['a negative count', { ...full, persisted_count: -1 }],
    ['a fraction as count', { ...full, persisted_count: 0.5 }],
    ['a response id that is a number', { ...full, response_id: 7 }],
    ['store as a text', { ...full, store: 'true' }],
    ['a flag that is null', { ...full, has_local_tool_outputs: null }],
    ['an acknowledgement that is 1', { ...full, append_acknowledged: 1 }],
    ['an acknowledgement before the append began', { ...full, before: null, append_acknowledged: true }],
    ['an exchange with another member', { ...full, compaction_model_exchange: { ...exchange, x: 1 } }],
    ['an exchange without digests', { ...full, compaction_model_exchange: { reasoning_item_id_policy: null } }],
    [
      'an exchange of an unknown policy',
      { ...full, compaction_model_exchange: { ...exchange, reasoning_item_id_policy: 'x' } },
    ],
    ['held as a text', { ...held, held: 'true' }],
    ['held with a tail', { ...held, before: [] }],
    ['held without a response', without(held, 'current_response')],
    ['not held with a response', { ...full, current_response: { turn: 1, start: 0 } }],
    ['not held with a policy', { ...full, held: false, reasoning_item_id_policy: null }],
    ['a response of a later turn', { ...held, current_response: { turn: 3, start: 0 } }],
    ['a response beyond the items', { ...held, current_response: { turn: 2, start: 2 } }],
    ['a response with another member', { ...held, current_response: { turn: 2, start: 0, x: 1 } }],
    ['an unknown member', { ...full, later: 1 }],
  ])('%s: refused [STATE-318], [STATE#121]', async (_, write) => {
    const error = await restore(state(write)).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ name: 'UserError', code: 'session_write_invalid' });
    expect((error as Error).message).toContain('pending Session write');
  });

  test.each<[string, Members, Members]>([
    ['under 1.16', base, { $schemaVersion: '1.16' }],
    ['a member of 1.18 under 1.17', { ...base, store: null }, { $schemaVersion: '1.17' }],
    ['a held one under 1.18', held, { $schemaVersion: '1.18' }],
    ['of a run that has ended', full, { current_step: null }],
  ])('%s: refused [STATE-318], [STATE#121]', async (_, write, members) => {
    await expect(restore(state(write, members))).rejects.toMatchObject({ code: 'session_write_invalid' });
  });
});
