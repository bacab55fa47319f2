import { describe, expect, test } from 'vitest';
import type { AnyAgent } from '../agent/agent.ts';
import { ApprovalMap, decideAlways, decideCall, emptyRecord } from './approvals.ts';
import type { ApprovalRecord, CallDecision } from './approvals.ts';
import { callIdentity } from './identity.ts';
import { lookupKeyOf } from './lookup-key.ts';
import type { CallIdentity } from './identity.ts';
import type { NamedFunction } from './lookup-key.ts';
import { InvocationLedger } from './ledger.ts';

const agent = (name: string): AnyAgent => ({ name }) as AnyAgent;
const desk = agent('Desk');
const call = (call_id: string, more: object = {}): NamedFunction =>
  ({ type: 'function_call', call_id, name: 'f', arguments: '{}', ...more }) as unknown as NamedFunction;
const identityOf = (callId: string, more: object = {}): CallIdentity => callIdentity(call(callId, more))!;

/** What `map` says about a call that was planned. */
function ask(
  map: ApprovalMap,
  wire: NamedFunction,
  owner: AnyAgent = desk,
  ledger = new InvocationLedger(),
): CallDecision | undefined {
  const [planned] = ledger.plan([{ call: wire }]);
  return map.decisionFor({ owner, lookupKey: lookupKeyOf(wire)!, identity: planned?.identity }, ledger);
}
const status = (map: ApprovalMap, callId: string): boolean | undefined => ask(map, call(callId))?.approved;

describe('one record', () => {
  const map = (change: (record: ApprovalRecord) => void): ApprovalMap => {
    const approvals = new ApprovalMap();
    change(approvals.functionRecord(desk, 'f'));
    return approvals;
  };

  test('an exact decision beats a sticky one in both directions [STATE-161] [IL-068]', () => {
    const approved = map((record) => {
      decideAlways(record, identityOf('a'), true);
      decideCall(record, 'b', false, 'not this one');
    });
    expect([status(approved, 'a'), status(approved, 'new')]).toEqual([true, true]);
    expect(ask(approved, call('b'))).toEqual({ approved: false, message: 'not this one' });
    const rejected = map((record) => {
      decideAlways(record, identityOf('a'), false, 'closed');
      decideCall(record, 'b', true);
    });
    expect([status(rejected, 'a'), status(rejected, 'b'), status(rejected, 'new')]).toEqual([false, true, false]);
  });

  test('a record that is sticky on both sides approves [STATE-161]', () => {
    const both = map((record) =>
      Object.assign(record, { approved: true, rejected: true, stickyScope: identityOf('a').approvalScope }),
    );
    expect(status(both, 'a')).toBe(true);
  });

  test('the latest decision on a call wins, its text with it [STATE-162]', () => {
    const record = emptyRecord();
    decideCall(record, 'a', true);
    decideCall(record, 'a', false, 'no');
    expect(record).toEqual({ approved: [], rejected: ['a'], rejectionMessages: new Map([['a', 'no']]) });
    decideCall(record, 'a', false, '');
    expect(record.rejectionMessages.size).toBe(0);
    decideCall(record, 'a', false, 'no');
    decideCall(record, 'a', true);
    decideCall(record, 'a', true);
    expect(record).toEqual({ approved: ['a'], rejected: [], rejectionMessages: new Map() });
  });

  test('records have the form that Python writes [STATE-162, 163, 346]', () => {
    const sticky = emptyRecord();
    decideAlways(sticky, identityOf('e1'), true);
    decideCall(sticky, 'e2', false, 'not this one');
    decideCall(sticky, 'e1', true);
    const scope = identityOf('e1').approvalScope;
    expect(sticky).toEqual({
      approved: true,
      rejected: ['e2'],
      rejectionMessages: new Map([['e2', 'not this one']]),
      stickyScope: scope,
      stickyRejectionMessage: undefined,
    });
    const closed = emptyRecord();
    decideAlways(closed, identityOf('e1'), false, 'refunds are closed');
    decideCall(closed, 'e2', true);
    expect(closed).toEqual({
      approved: ['e2'],
      rejected: true,
      rejectionMessages: new Map([['e1', 'refunds are closed']]),
      stickyRejectionMessage: 'refunds are closed',
      stickyScope: scope,
    });
  });

  test('a sticky decision replaces an earlier one and leaves what was said of other calls [STATE-163] [IL-068]', () => {
    const record = emptyRecord();
    decideCall(record, 'a', false, 'no');
    decideCall(record, 'b', false, 'not yet');
    decideAlways(record, identityOf('b'), true);
    expect(record).toMatchObject({
      approved: true,
      rejected: ['a'],
      rejectionMessages: new Map([['a', 'no']]),
      stickyRejectionMessage: undefined,
    });
    decideAlways(record, identityOf('c'), false, 'closed');
    expect(record).toMatchObject({ approved: false, rejected: true });
    const kept = map((own) => {
      decideCall(own, 'a', true);
      decideAlways(own, identityOf('b'), false);
    });
    expect([status(kept, 'a'), status(kept, 'b'), status(kept, 'other')]).toEqual([true, false, false]);
    const reversed = map((own) => {
      decideAlways(own, identityOf('a'), true);
      decideCall(own, 'a', false);
    });
    expect([status(reversed, 'a'), status(reversed, 'other')]).toEqual([false, true]);
  });

  test('texts: of the call, else the sticky one, none for an approved call [STATE-165]', () => {
    const closed = map((record) => {
      decideAlways(record, identityOf('a'), false, 'closed');
      record.rejectionMessages.set('b', 'own text');
      decideCall(record, 'ok', true);
    });
    expect(ask(closed, call('a'))).toEqual({ approved: false, message: 'closed' });
    expect(ask(closed, call('b'))).toEqual({ approved: false, message: 'own text' });
    expect(ask(closed, call('new'))).toEqual({ approved: false, message: 'closed' });
    expect(ask(closed, call('ok'))).toEqual({ approved: true });
  });
});

describe('what a decision covers', () => {
  test('a sticky one only its own scope and its own agent [STATE-145, 164] [IL-067]', () => {
    const map = new ApprovalMap();
    decideAlways(map.functionRecord(desk, 'f'), identityOf('a'), true);
    expect(ask(map, call('x'))).toEqual({ approved: true });
    expect(ask(map, call('x'), agent('Desk'))).toBeUndefined();
    map.functionRecord(desk, 'f').stickyScope = identityOf('a', { namespace: 'ns' }).approvalScope;
    expect(ask(map, call('x'))).toBeUndefined();
  });

  test('an exact one only the call that the ledger holds; for any other it is absent, not rejected [STATE-164, 361] [STATE#44]', () => {
    for (const approved of [true, false]) {
      const map = new ApprovalMap();
      decideCall(map.functionRecord(desk, 'f'), 'a', approved);
      expect(ask(map, call('a'), desk, new InvocationLedger([], ['a']))).toBeUndefined();
      const { type, callId, approvalScope, fingerprint } = identityOf('a', { arguments: '{"x":1}' });
      const other = new InvocationLedger(
        [{ type, callId, approvalScope, fingerprint, executed: false, completed: false }],
        ['a'],
      );
      expect(ask(map, call('a'), desk, other)).toBeUndefined();
    }
  });

  test('a sticky approval does not stand in for an exact rejection that cannot be bound [STATE-164]', () => {
    const map = new ApprovalMap();
    decideAlways(map.functionRecord(desk, 'f'), identityOf('b'), true);
    decideCall(map.functionRecord(desk, 'f'), 'a', false);
    expect(ask(map, call('a'), desk, new InvocationLedger([], ['a']))).toBeUndefined();
  });

  test('a call without identity matches nothing [STATE-157]', () => {
    const map = new ApprovalMap();
    const broken = call('a', { arguments: String.raw`"\ud800"` });
    decideAlways(map.functionRecord(desk, 'f'), identityOf('b'), true);
    decideCall(map.functionRecord(desk, 'f'), 'a', true);
    expect(ask(map, broken)).toBeUndefined();
  });

  test('a tool in a namespace never falls back to the bare one, nor the reverse [STATE-141] [STATE#50]', () => {
    const map = new ApprovalMap();
    decideAlways(map.functionRecord(desk, 'ns.f'), identityOf('a', { namespace: 'ns' }), true);
    expect(ask(map, call('x', { namespace: 'ns' }))).toEqual({ approved: true });
    expect(ask(map, call('y'))).toBeUndefined();
  });

  test('entries of old snapshots count for single calls of any agent and grant nothing else [STATE-146, 168]', () => {
    const map = new ApprovalMap();
    const old = emptyRecord();
    map.named.set('f', old);
    decideAlways(old, identityOf('s'), true);
    decideCall(old, 'no', false, 'old text');
    expect(ask(map, call('s'))).toBeUndefined();
    expect(ask(map, call('no'))).toEqual({ approved: false, message: 'old text' });
    expect(ask(map, call('no'), agent('Other'))).toEqual({ approved: false, message: 'old text' });
    // The owner's record goes before it, its text (none here) with it.
    decideCall(map.functionRecord(desk, 'f'), 'no', false);
    expect(ask(map, call('no'))).toEqual({ approved: false, message: undefined });
  });

  test('a deferred tool is also found under its old key [STATE-143]', () => {
    const map = new ApprovalMap();
    const old = emptyRecord();
    map.named.set('f.f', old);
    decideCall(old, 'a', true);
    expect(ask(map, call('a', { namespace: 'f' }))).toEqual({ approved: true });
    expect(ask(map, call('b', { namespace: 'f' }))).toBeUndefined();
  });

  test('names of prototype members are names like any other [STATE-403] [STATE#72]', () => {
    const map = new ApprovalMap();
    for (const name of ['toString', '__proto__', 'constructor']) {
      expect(ask(map, call('a', { name }))).toBeUndefined();
      expect(map.isToolApproved(name, 'a')).toBeUndefined();
    }
  });
});

describe('isToolApproved', () => {
  test('two owners with a sticky record answer nothing; the one with an exact decision does [STATE-167]', () => {
    const map = new ApprovalMap();
    decideAlways(map.functionRecord(desk, 'f'), identityOf('a'), true);
    expect(map.isToolApproved('f', 'x')).toBe(true);
    decideAlways(map.functionRecord(agent('Other'), 'f'), identityOf('a'), false);
    expect(map.isToolApproved('f', 'x')).toBeUndefined();
    decideCall(map.functionRecord(desk, 'f'), 'x', false);
    expect(map.isToolApproved('f', 'x')).toBe(false);
    expect(map.isToolApproved('g', 'x')).toBeUndefined();
  });

  test('a hosted query goes first, the string map last [STATE-167]', () => {
    const map = new ApprovalMap();
    const record = emptyRecord();
    decideCall(record, 'r', true);
    map.named.set('f', emptyRecord());
    decideCall(map.named.get('f')!, 'r', false);
    expect(map.isToolApproved('f', 'r')).toBe(false);
    map.hosted.push({ identity: { type: 'query', tool_name: 'f', request_id: 'r' }, record });
    expect(map.isToolApproved('f', 'r')).toBe(true);
    expect(map.isToolApproved('f', 'other')).toBeUndefined();
  });
});

test('a copy is independent, records of every kind included [STATE-131]', () => {
  const map = new ApprovalMap();
  decideCall(map.functionRecord(desk, 'f'), 'a', false, 'no');
  map.named.set('shell', emptyRecord());
  map.hosted.push({ identity: { type: 'request', request_id: 'r' }, record: emptyRecord() });
  const copy = map.copy();
  expect(copy).toEqual(map);
  decideCall(copy.functionRecord(desk, 'f'), 'a', true);
  decideCall(copy.named.get('shell')!, 's', true);
  decideCall(copy.hosted[0]!.record, 'r', true);
  copy.functionRecord(agent('Other'), 'f');
  expect(map.functionRecord(desk, 'f')).toEqual({
    approved: [],
    rejected: ['a'],
    rejectionMessages: new Map([['a', 'no']]),
  });
  expect([map.functions.size, map.named.get('shell')?.approved, map.hosted[0]?.record.approved]).toEqual([1, [], []]);
});
