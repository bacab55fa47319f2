import { afterEach, describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { resetAll } from '../base/reset.ts';
import { contextInternals } from '../state/context.ts';
import { callIdentity } from '../state/identity.ts';
import { pythonState, pythonStateText } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';

const desk = new Agent({ name: 'Desk' });

afterEach(() => {
  if ('polluted' in {}) throw new Error('Object.prototype was changed');
  resetAll();
});

describe('names that prototypes have', () => {
  const evil =
    '"__proto__": { "polluted": true, "approved": true }, "constructor": { "prototype": { "polluted": true } }, "toString": 1';
  const text = pythonStateText('a1_function_interrupted.json')
    .replace('"tenant": "t1"', `"tenant": "t1", ${evil}`)
    .replace(
      '"approvals": {}',
      '"approvals": { "__proto__": { "approved": true, "rejected": [] }, "constructor": { "approved": ["call_a1"], "rejected": [] } }',
    )
    .replace('"tool_use_tracker": {', '"tool_use_tracker": { "__proto__": ["f"], "constructor": ["g"],');

  test('stay data: they reach no prototype, and come back as they were [STATE-403], [STATE#72]', async () => {
    const source = JSON.parse(text) as { context: { context: object; approvals: object } };
    expect(Object.hasOwn(source.context.context, '__proto__')).toBe(true);
    const fromText = await RunState.fromString(desk, text);
    const fromValue = await RunState.fromJSON(desk, source);
    for (const state of [fromText, fromValue]) {
      const context = state.context.context as { tenant: string; polluted?: unknown };
      expect(context.polluted).toBeUndefined();
      expect(Object.getPrototypeOf(context)).toBe(Object.prototype);
      expect(Object.keys(context)).toEqual(['tenant', '__proto__', 'constructor', 'toString']);
      const written = JSON.parse(state.toString()) as typeof source & { tool_use_tracker: object };
      expect(JSON.stringify(written.context.context)).toBe(JSON.stringify(source.context.context));
      expect(JSON.stringify(written.context.approvals)).toBe(JSON.stringify(source.context.approvals));
      expect(Object.keys(written.tool_use_tracker)).toEqual(['__proto__', 'constructor', 'Desk']);
      expect(Object.keys(state.toJSON()['context'] as object)).toEqual(Object.keys(source.context));
    }
  });

  test('grant nothing: what an object inherits is no decision, no row, no agent [STATE-403, 405]', async () => {
    const state = (await RunState.fromString(desk, text)) as RunState;
    const { approvals, ledger } = contextInternals(state.context);
    for (const name of ['toString', 'constructor', '__proto__', 'hasOwnProperty']) {
      const call = { type: 'function_call', call_id: name, name, arguments: '{}' };
      expect(
        approvals.decisionFor({ owner: desk, lookupKey: { kind: 'bare', name }, identity: callIdentity(call) }, ledger),
      ).toBeUndefined();
      expect(ledger.status(name)).toBeUndefined();
    }
    await expect(
      RunState.fromJSON(desk, {
        ...pythonState('a1_function_interrupted.json'),
        current_agent: { name: 'constructor' },
      }),
    ).rejects.toMatchObject({ code: 'agent_missing' });
  });

  test('a member that only a prototype has is absent', async () => {
    const state = pythonState('a1_function_interrupted.json');
    const { max_turns: _, ...others } = state;
    await expect(
      RunState.fromString(desk, JSON.stringify({ ...others, __proto__: { max_turns: 5 } })),
    ).rejects.toMatchObject({ code: 'state_malformed' });
  });
});

test('a call id may be any text', async () => {
  const text = pythonStateText('a3_function_finished.json').replaceAll('call_a1', '__proto__');
  const json = JSON.parse(text) as { context: { tool_invocations: object } };
  // The row of the changed id no longer fits its digests, which do not cover the id.
  const state = await RunState.fromJSON(desk, json);
  expect(contextInternals(state.context).ledger.status('__proto__')).toMatchObject({ completed: true });
  expect(Object.keys((state.toJSON()['context'] as { tool_invocations: object }).tool_invocations)).toEqual([
    '__proto__',
  ]);
});

test('descriptors are data: nothing of them is used [STATE-404]', async () => {
  const text = pythonStateText('a1_function_interrupted.json').replaceAll('"Refund an order."', '"planted"');
  const { processed } = recordOf((await RunState.fromString(desk, text)) as RunState);
  expect(processed?.functions[0]?.tool).toMatchObject({ name: 'refund_order', description: 'planted' });
  expect(desk.tools).toEqual([]);
});
