import { describe, expect, test } from 'vitest';
import { ModelBehaviorError } from '../base/errors.ts';
import { callIdentity } from './identity.ts';
import type { CallIdentity } from './identity.ts';
import { executedUncommitted, InvocationLedger } from './ledger.ts';
import type { CallToPlan, PlannedStatus } from './ledger.ts';

const fc = (call_id: string, args = '{"a":1}', more: object = {}): { call: object } => ({
  call: { type: 'function_call', call_id, name: 'refund', arguments: args, ...more },
});
const output = (call_id: string): object => ({ type: 'function_call_output', call_id, output: 'ok' });
const statuses = (ledger: InvocationLedger, ...calls: CallToPlan[]): PlannedStatus[] =>
  ledger.plan(calls).map(({ status }) => status);
const identityOf = ({ call }: { call: object }): CallIdentity => callIdentity(call)!;
const code = (run: () => unknown): unknown => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ModelBehaviorError);
    return (error as ModelBehaviorError).code;
  }
  return undefined;
};

describe('one id means one call', () => {
  const others: [string, CallToPlan][] = [
    ['other arguments', fc('c', '{"a":2}')],
    ['another tool', fc('c', '{"a":1}', { name: 'other' })],
    ['a tool in a namespace', fc('c', '{"a":1}', { namespace: 'crm' })],
    ['a handoff', { ...fc('c'), role: 'handoff' }],
    ['a shell call', { call: { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] } }, toolName: 'shell' }],
    [
      'a hosted request',
      { call: { type: 'mcp_approval_request', id: 'c', name: 'refund', server_label: 's', arguments: '{"a":1}' } },
    ],
    ['a call without identity', fc('c', String.raw`{"a":"\ud800"}`)],
  ];
  test.each(others)(
    'a used id for %s is refused, whichever is first, in one response or two [STATE-151, 169] [STATE#15]',
    (_name, other) => {
      for (const [first, second] of [
        [fc('c'), other],
        [other, fc('c')],
      ] as const) {
        expect(code(() => new InvocationLedger().plan([first, second]))).toBe('call_id_reused');
        const ledger = new InvocationLedger();
        ledger.plan([first]);
        expect(code(() => ledger.plan([fc('fresh'), second]))).toBe('call_id_reused');
        expect(ledger.status('fresh')).toBeUndefined();
      }
    },
  );

  test('the same call is planned again as often as needed, however its text is laid out', () => {
    const ledger = new InvocationLedger();
    expect(statuses(ledger, fc('c'), fc('d'))).toEqual(['new', 'new']);
    expect(statuses(ledger, fc('c', ' { "a": 1 } '), fc('d'))).toEqual(['new', 'new']);
  });

  test('a repeat inside one response is a duplicate [STATE-125] [TOOL-P5]', () => {
    expect(statuses(new InvocationLedger(), fc('c'), fc('d'), fc('c', '{ "a":1}'))).toEqual([
      'new',
      'new',
      'duplicate',
    ]);
  });

  test('an empty id is refused and nothing is planned [STATE-156] [TOOL-P4]', () => {
    for (const call of [
      fc(''),
      { call: { type: 'function_call', name: 'x', arguments: '{}' } },
      { call: { type: 'custom_tool_call', call_id: '', name: 'x', input: '' } },
    ]) {
      const ledger = new InvocationLedger();
      expect(code(() => ledger.plan([fc('c'), call]))).toBe('call_id_empty');
      expect(ledger.status('c')).toBeUndefined();
    }
  });

  test('a call without identity may run once, and is never confused with another of its id [STATE-157]', () => {
    const broken = fc('c', String.raw`{"a":"\ud800"}`);
    const ledger = new InvocationLedger();
    expect(ledger.plan([broken])).toEqual([{ callId: 'c', identity: undefined, status: 'new' }]);
    ledger.markCompleted('c');
    expect(statuses(ledger, structuredClone(broken))).toEqual(['completed']);
    expect(code(() => ledger.plan([fc('c', String.raw`{"a":"\udc00"}`)]))).toBe('call_id_reused');
    expect(code(() => new InvocationLedger().plan([broken, broken]))).toBe('call_id_reused');
    expect([...ledger.entries()]).toEqual([]);
  });
});

describe('how far a call got', () => {
  test('executed, then completed; a completed call is a replay [STATE-152, 153] [TOOL-P6]', () => {
    const ledger = new InvocationLedger();
    ledger.plan([fc('c')]);
    expect(ledger.status('c')).toMatchObject({ executed: false, completed: false });
    ledger.markExecuted('c');
    expect(statuses(ledger, fc('c'))).toEqual(['executed']);
    expect(ledger.isInDoubt('c')).toBe(true);
    ledger.markCompleted('c');
    expect(statuses(ledger, fc('c', '{"a": 1}'))).toEqual(['completed']);
    expect(ledger.isInDoubt('c')).toBe(false);
    expect(code(() => ledger.plan([fc('c', '{"a":2}')]))).toBe('call_id_reused');
  });

  test('the error for started calls names them and says what to do [STATE-154]', () => {
    const error = executedUncommitted([
      { name: 'pay', call_id: 'c1' },
      { name: 'pay', call_id: 'c2' },
    ]);
    expect(error.code).toBe('call_executed_uncommitted');
    expect(error.message).toMatch(
      /pay \(c1\), pay \(c2\) were started, and no output was committed.*onInDoubt.*start a new run/,
    );
  });
});

describe('history protects', () => {
  test('a completed call of the input is a replay, another call of its id is refused [STATE-155]', () => {
    const history = [{ role: 'user', content: 'x' }, fc('c').call, output('c'), fc('open').call];
    const ledger = new InvocationLedger();
    ledger.protect(history);
    expect(statuses(ledger, fc('c', '{ "a":1 }'), fc('open'), fc('new'))).toEqual(['completed', 'new', 'new']);
    // The history is what says so; a row would claim an output that a filter may drop.
    expect(ledger.status('c')).toBeUndefined();
    for (const other of [
      fc('c', '{"a":2}'),
      { call: { type: 'custom_tool_call', call_id: 'c', name: 'refund', input: '' } },
      fc('c', String.raw`{"a":"\ud800"}`),
    ]) {
      expect(code(() => ledger.plan([other]))).toBe('call_id_reused');
    }
  });

  test('run items count as the wire objects they hold, handoffs as handoffs [STATE-155]', () => {
    const ledger = new InvocationLedger();
    ledger.protect(
      [],
      [
        { rawItem: fc('c').call },
        { rawItem: output('c') },
        { rawItem: fc('h').call },
        { rawItem: output('h') },
      ].values(),
    );
    expect(statuses(ledger, fc('c'), { ...fc('h'), role: 'handoff' })).toEqual(['completed', 'completed']);
  });

  test('an output of another kind, or with the id only as its own, completes nothing', () => {
    const ledger = new InvocationLedger();
    ledger.protect([
      fc('c').call,
      { type: 'custom_tool_call_output', call_id: 'c', output: '' },
      { type: 'function_call_output', id: 'c', call_id: 'x', output: '' },
    ]);
    expect(statuses(ledger, fc('c'))).toEqual(['new']);
  });

  test('two different completed calls of one id are refused, equal ones are one [STATE-155]', () => {
    const equal = new InvocationLedger();
    equal.protect([fc('c').call, output('c'), fc('c', '{"a": 1}').call]);
    expect(statuses(equal, fc('d'))).toEqual(['new']);
    const different = new InvocationLedger();
    different.protect([fc('c').call, output('c')], [fc('c', '{"a":2}').call, output('c')]);
    expect(code(() => different.plan([fc('d')]))).toBe('call_id_reused');
  });

  test('history wins over a row that was not completed, and the row is corrected [STATE-159]', () => {
    const done = { ...data(fc('c')), executed: true, completed: false };
    const lost = { ...data(fc('d')), executed: true, completed: false };
    const ledger = new InvocationLedger([done, lost]);
    ledger.protect([fc('c').call, output('c')]);
    expect(ledger.isInDoubt('c')).toBe(false);
    expect(statuses(ledger, fc('c'), fc('d'))).toEqual(['completed', 'executed']);
    expect([...ledger.entries()]).toEqual([{ ...done, completed: true }, lost]);
  });

  test('a row that was decided for another call than the history holds is refused', () => {
    const ledger = new InvocationLedger([{ ...data(fc('c', '{"a":2}')), executed: false, completed: false }]);
    ledger.protect([fc('c').call, output('c')]);
    expect(code(() => ledger.plan([fc('c', '{"a":2}')]))).toBe('call_id_reused');
  });
});

describe('decisions and rows', () => {
  test('a decision binds the id to its call before the call is planned [STATE-151]', () => {
    const ledger = new InvocationLedger();
    ledger.checkBinding(identityOf(fc('c')));
    ledger.bind(identityOf(fc('c')));
    expect(statuses(ledger, fc('c'))).toEqual(['new']);
    expect(ledger.isBound(identityOf(fc('c')))).toBe(true);
    expect(ledger.isBound(identityOf(fc('c', '{"a":2}')))).toBe(false);
    expect(code(() => ledger.checkBinding(identityOf(fc('c', '{"a":2}'))))).toBe('call_id_reused');
  });

  test('an unbound id stays unbound through planning and snapshots until it is decided again [STATE-361]', () => {
    const ledger = new InvocationLedger([], ['c']);
    expect(statuses(ledger, fc('c'))).toEqual(['new']);
    expect(ledger.isBound(identityOf(fc('c')))).toBe(false);
    expect([...ledger.entries()]).toEqual([]);
    const copy = ledger.copy();
    ledger.bind(identityOf(fc('c')));
    expect(ledger.isBound(identityOf(fc('c')))).toBe(true);
    expect(copy.isBound(identityOf(fc('c')))).toBe(false);
    expect([...ledger.entries()]).toEqual([{ ...data(fc('c')), executed: false, completed: false }]);
  });

  test('an unbound id whose row is of another call neither throws nor authorizes; once it ran it is as any other [STATE-361]', () => {
    const ledger = new InvocationLedger([{ ...data(fc('c', '{"a":2}')), executed: false, completed: false }], ['c']);
    expect(statuses(ledger, fc('c'))).toEqual(['new']);
    expect(ledger.isBound(identityOf(fc('c')))).toBe(false);
    const ended = new InvocationLedger([{ ...data(fc('c', '{"a":2}')), executed: false, completed: false }], ['c']);
    ended.protect([fc('c').call, output('c')]);
    expect(statuses(ended, fc('c'))).toEqual(['completed']);
    ledger.markExecuted('c');
    expect([...ledger.entries()]).toEqual([{ ...data(fc('c')), executed: true, completed: false }]);
    expect(code(() => ledger.plan([fc('c', '{"a":3}')]))).toBe('call_id_reused');
  });
});

test('a copy is independent in both directions [STATE-131, 132]', () => {
  const ledger = new InvocationLedger();
  ledger.plan([fc('c')]);
  const copy = ledger.copy();
  copy.markCompleted('c');
  ledger.plan([fc('d')]);
  expect(ledger.status('c')).toMatchObject({ executed: false, completed: false });
  expect(copy.status('d')).toBeUndefined();
});

function data(call: { call: object }): {
  type: CallIdentity['type'];
  callId: string;
  approvalScope: string;
  fingerprint: string;
} {
  const { type, callId, approvalScope, fingerprint } = identityOf(call);
  return { type, callId, approvalScope, fingerprint };
}
