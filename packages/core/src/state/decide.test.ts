import { describe, expect, test } from 'vitest';
import type { AnyAgent } from '../agent/agent.ts';
import { AgentsError } from '../base/errors.ts';
import { contextInternals } from './context.ts';
import { newRecord } from './copy.ts';
import { applyDecision } from './decide.ts';
import { ToolApprovalItem } from './decisions.ts';
import type { ApprovalItemFacts, Decision } from './decisions.ts';
import { callIdentity } from './identity.ts';
import { lookupKeyOf } from './lookup-key.ts';
import { InvocationLedger } from './ledger.ts';
import type { CallDecision } from './approvals.ts';
import type { StateRecord } from './record.ts';

const desk = { name: 'Desk' } as AnyAgent;
const other = { name: 'Desk' } as AnyAgent;
type Call = { type: string; call_id: string; name: string; arguments: string; namespace?: string };
const call = (call_id: string, args = '{"id":7}', more: object = {}): Call => ({
  type: 'function_call',
  call_id,
  name: 'refund',
  arguments: args,
  ...more,
});
const waiting = (
  raw: object,
  agent: AnyAgent = desk,
  facts: ApprovalItemFacts = { createdAt: 't' },
): ToolApprovalItem => new ToolApprovalItem(agent, raw as never, facts);

/** A run that pauses on these calls. */
function pausedOn(...items: ToolApprovalItem[]): StateRecord {
  const record = newRecord({ agent: desk, context: undefined, input: 'x', maxTurns: 10, runKey: 'k' });
  record.step = { type: 'interruption', interruptions: items, responseAccepted: false, llmEndHooksStarted: true };
  return record;
}

/** What the gate finds for a call of the running turn. */
function gate(record: StateRecord, raw: Call, owner: AnyAgent = desk): CallDecision | undefined {
  const { approvals, ledger } = contextInternals(record.context);
  const [planned] = ledger.plan([{ call: raw }]);
  return approvals.decisionFor({ owner, lookupKey: lookupKeyOf(raw)!, identity: planned?.identity }, ledger);
}

/** Everything that a decision may change, as text. */
function snapshot(record: StateRecord): unknown {
  const { approvals, ledger } = contextInternals(record.context);
  return structuredClone({
    functions: [...approvals.functions.values()].map((records) => [...records]),
    named: [...approvals.named],
    rows: [...ledger.entries()],
    decisions: record.decisions,
  });
}

const codeOf = (run: () => void): string | undefined => {
  try {
    run();
  } catch (error) {
    return error instanceof AgentsError ? `${error.name} ${error.code}` : String(error);
  }
  return undefined;
};

describe('a decision', () => {
  test('on one call holds for that call alone', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    expect(gate(record, call('c1'))).toBeUndefined();
    applyDecision(record, item, { type: 'approve' });
    expect(gate(record, call('c1', '{ "id": 7 }'))).toEqual({ approved: true });
    expect(gate(record, call('c2'))).toBeUndefined();
  });

  test('with `always` holds for later calls of this tool by this agent [STATE-145] [STATE#10, 103]', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    applyDecision(record, item, { type: 'approve', always: true });
    expect(gate(record, call('c2', '{"id":8}'))).toEqual({ approved: true });
    expect(gate(record, call('c3'), other)).toBeUndefined();
    expect(gate(record, call('c4', '{}', { namespace: 'crm' }))).toBeUndefined();
  });

  test('that rejects carries its text [STATE#2, 12]', () => {
    const [one, two] = [waiting(call('c1')), waiting(call('c2'))];
    const record = pausedOn(one, two);
    applyDecision(record, one, { type: 'reject', message: 'closed', always: true });
    applyDecision(record, two, { type: 'approve' });
    expect([gate(record, call('c1')), gate(record, call('c2')), gate(record, call('c9'))]).toEqual([
      { approved: false, message: 'closed' },
      { approved: true },
      { approved: false, message: 'closed' },
    ]);
    applyDecision(record, one, { type: 'reject' });
    expect(gate(record, call('c1'))).toEqual({ approved: false, message: 'closed' });
    const plain = pausedOn(one);
    applyDecision(plain, one, { type: 'reject', message: '' });
    expect(gate(plain, call('c1'))).toEqual({ approved: false, message: undefined });
  });

  test('may be changed: the latest wins [STATE-175]', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    applyDecision(record, item, { type: 'approve' });
    applyDecision(record, item, { type: 'reject', message: 'no' });
    expect(gate(record, call('c1'))).toEqual({ approved: false, message: 'no' });
    applyDecision(record, item, { type: 'approve' });
    expect(gate(record, call('c1'))).toEqual({ approved: true });
  });

  test('after the call completed has no effect on it, a sticky one still holds for later calls [STATE-175]', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    applyDecision(record, item, { type: 'approve' });
    gate(record, call('c1'));
    const { ledger } = contextInternals(record.context);
    ledger.markCompleted('c1');
    applyDecision(record, item, { type: 'reject', always: true });
    expect(ledger.plan([{ call: call('c1') }])[0]?.status).toBe('completed');
    expect(gate(record, call('c2'))).toMatchObject({ approved: false });
  });

  test('leaves a line in the audit trail, of either kind [STATE-545]', () => {
    // As the model wrote it: what was decided on is told word by word.
    const asked = '{ "id" : 7.0 }';
    const item = waiting(call('c1', asked), desk, { namespace: 'crm', createdAt: 't' });
    const record = pausedOn(item);
    const at = Date.UTC(2026, 0, 5, 10, 3, 11);
    applyDecision(record, item, { type: 'approve', by: 'ana', note: 'fits', always: true }, () => at);
    applyDecision(record, item, { type: 'reject', message: 'no' }, () => at + 1000);
    expect(record.decisions).toEqual([
      {
        callId: 'c1',
        path: [],
        toolName: 'refund',
        type: 'approve',
        always: true,
        by: 'ana',
        note: 'fits',
        at: '2026-01-05T10:03:11.000Z',
        arguments: asked,
        originalArguments: undefined,
      },
      {
        callId: 'c1',
        path: [],
        toolName: 'refund',
        type: 'reject',
        always: false,
        by: undefined,
        note: undefined,
        at: '2026-01-05T10:03:12.000Z',
        arguments: asked,
        originalArguments: undefined,
      },
    ]);
  });

  test('may come before the call: it waits under the agent of the item [STATE-172]', () => {
    const record = newRecord({ agent: desk, context: undefined, input: 'x', maxTurns: 10 });
    applyDecision(record, waiting(call('c1'), other), { type: 'approve' });
    expect(gate(record, call('c1'), other)).toEqual({ approved: true });
    expect(gate(record, call('c1'))).toBeUndefined();
  });

  test('goes where the context of the run is asked to put it', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    record.context.decide(item, { type: 'approve' });
    expect(gate(record, call('c1'))).toEqual({ approved: true });
    expect(record.decisions).toHaveLength(1);
  });
});

describe('which call an item means', () => {
  test('a copy of the item decides the call of this state [STATE-171] [STATE#70]', () => {
    const record = pausedOn(waiting(call('c1')), waiting(call('c2')));
    applyDecision(record, waiting(call('c2', '{ "id":7}')), { type: 'approve' });
    expect([gate(record, call('c1')), gate(record, call('c2'))]).toEqual([undefined, { approved: true }]);
  });

  test('an item of another agent of that name decides nothing here [STATE-176]', () => {
    const record = pausedOn(waiting(call('c1')));
    applyDecision(record, waiting(call('c1'), other), { type: 'approve' });
    expect(gate(record, call('c1'))).toBeUndefined();
  });

  test('two waiting items of one call are refused, whichever is passed [STATE-173]', () => {
    const [one, two] = [waiting(call('c1')), waiting(call('c1'))];
    const record = pausedOn(one, two);
    const before = snapshot(record);
    for (const item of [one, two, waiting(call('c1'))]) {
      expect(codeOf(() => applyDecision(record, item, { type: 'approve' }))).toBe('UserError approval_ambiguous');
    }
    expect(snapshot(record)).toEqual(before);
  });

  test('an item without identity beside another candidate is refused [STATE-173]', () => {
    const broken = waiting(call('c1', String.raw`{"a":"\ud800"}`));
    const record = pausedOn(waiting(call('c1')), broken);
    expect(codeOf(() => applyDecision(record, broken, { type: 'approve' }))).toBe('UserError approval_ambiguous');
  });

  test('a call that history or the ledger knows under this id, but other, is refused [STATE-151] [STATE#43]', () => {
    const record = pausedOn(waiting(call('c1')));
    contextInternals(record.context).ledger.plan([{ call: call('c1') }]);
    const before = snapshot(record);
    expect(codeOf(() => applyDecision(record, waiting(call('c1', '{"id":8}')), { type: 'approve' }))).toBe(
      'ModelBehaviorError call_id_reused',
    );
    expect(snapshot(record)).toEqual(before);
  });

  test('deciding again binds an id that had lost its call [STATE-361] [STATE#44]', () => {
    const item = waiting(call('c1'));
    const record = pausedOn(item);
    contextInternals(record.context).ledger = new InvocationLedger([], ['c1']);
    contextInternals(record.context).approvals.functionRecord(desk, 'refund').approved = ['c1'];
    expect(gate(record, call('c1'))).toBeUndefined();
    applyDecision(record, item, { type: 'approve' });
    expect(gate(record, call('c1'))).toEqual({ approved: true });
  });

  test('a per-call decision on a deferred tool is kept under the bare name too, a sticky one is not [STATE-142] [STATE#51]', () => {
    const facts = {
      lookupKey: { kind: 'deferred_top_level', name: 'refund' },
      allowBareNameAlias: true,
      createdAt: 't',
    } as const;
    const item = waiting(call('c1', '{}', { namespace: 'refund' }), desk, facts);
    const record = pausedOn(item);
    const { approvals } = contextInternals(record.context);
    applyDecision(record, item, { type: 'approve', always: true });
    expect([...(approvals.functions.get(desk)?.keys() ?? [])]).toEqual(['deferred_top_level:refund']);
    applyDecision(record, item, { type: 'reject', message: 'no' });
    expect(approvals.isToolApproved('refund', 'c1')).toBe(false);
    expect(approvals.isToolApproved('refund', 'c2')).toBeUndefined();
  });
});

describe('refused, and nothing changed', () => {
  const item = waiting(call('c1'));
  const malformed: [string, unknown][] = [
    ['no object', 'approve'],
    ['nothing', undefined],
    ['no type', { always: true }],
    ['an unknown type', { type: 'maybe' }],
    ['a standing answer about a call in doubt', { type: 'rerun', always: true }],
    ['done without what it gave', { type: 'done' }],
    ['an unknown member', { type: 'approve', alway: true }],
    ['edited arguments', { type: 'approve', arguments: '{}' }],
    ['a text for the model on an approval', { type: 'approve', message: 'ok' }],
    ['a wrong kind', { type: 'approve', always: 'true' }],
    ['a text that is none', { type: 'reject', message: 1 }],
  ];
  test.each(malformed)('a decision with %s [STATE-179] [STATE#126]', (_name, decision) => {
    const record = pausedOn(item);
    const before = snapshot(record);
    expect(codeOf(() => applyDecision(record, item, decision as Decision))).toBe('UserError user_error');
    expect(snapshot(record)).toEqual(before);
  });

  test('an unknown member is named with the nearest known one', () => {
    expect(() => applyDecision(pausedOn(item), item, { type: 'approve', alway: true } as Decision)).toThrow(
      /'alway'.*'always'/,
    );
  });

  const items: [string, unknown, string][] = [
    ['no item', undefined, 'UserError approval_not_item'],
    ['a call id', 'c1', 'UserError approval_not_item'],
    [
      'a look-alike',
      structuredClone({ type: item.type, rawItem: item.rawItem, agent: item.agent }),
      'UserError approval_not_item',
    ],
    ['an item without call id', waiting(call('')), 'ModelBehaviorError approval_call_id'],
    [
      'an item whose call has only an id of the provider',
      waiting({ type: 'function_call', id: 'fc', call_id: '', name: 'refund', arguments: '{}' }),
      'ModelBehaviorError approval_call_id',
    ],
    [
      'an item without any id',
      waiting({ type: 'function_call', name: 'refund', arguments: '{}' }),
      'ModelBehaviorError approval_call_id',
    ],
    [
      'an item without identity',
      waiting(call('c1', String.raw`{"a":"\ud800"}`)),
      'ModelBehaviorError approval_identity',
    ],
    [
      'an item without name',
      waiting({ type: 'function_call', call_id: 'c1', arguments: '{}' }),
      'ModelBehaviorError approval_identity',
    ],
    [
      'an item of a kind that is not built',
      waiting({ type: 'shell_call', call_id: 's1', action: {} }),
      'UserError user_error',
    ],
  ];
  test.each(items)('%s [STATE-166, 174]', (_name, given, code) => {
    const record = pausedOn(item);
    const before = snapshot(record);
    for (const decision of [{ type: 'approve' }, { type: 'reject', always: true }] as const) {
      expect(codeOf(() => applyDecision(record, given, decision))).toBe(code);
    }
    expect(snapshot(record)).toEqual(before);
  });

  test('a call that was started and has no known end cannot be approved, only rejected [STATE-178]', () => {
    const { type, callId, approvalScope, fingerprint } = callIdentity(call('c1'))!;
    const record = pausedOn(item);
    contextInternals(record.context).ledger = new InvocationLedger([
      { type, callId, approvalScope, fingerprint, executed: true, completed: false },
    ]);
    const before = snapshot(record);
    expect(codeOf(() => applyDecision(record, item, { type: 'approve' }))).toBe('UserError approval_in_doubt');
    expect(snapshot(record)).toEqual(before);
    applyDecision(record, item, { type: 'reject' });
    expect(gate(record, call('c1'))).toMatchObject({ approved: false });
  });
});
