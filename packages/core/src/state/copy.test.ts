import { expect, test } from 'vitest';
import type { AnyAgent } from '../agent/agent.ts';
import { toUsage } from '../base/usage.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import { contextInternals } from './context.ts';
import { copyRecord, newRecord, separateContext } from './copy.ts';
import { ToolApprovalItem } from './decisions.ts';
import { nextStepOf } from './next-step.ts';
import type { StateRecord } from './record.ts';

const desk = { name: 'Desk' } as AnyAgent;
const user: AgentInputItem = { role: 'user', content: 'x' };
const call = { type: 'function_call', call_id: 'c1', name: 'refund', arguments: '{}' };

/** A paused run with something in every member. */
function paused(value: unknown = { tenant: 't1' }): StateRecord {
  const item = new ToolApprovalItem(desk, call as never);
  const record = newRecord({
    agent: desk,
    context: value,
    input: [user],
    maxTurns: null,
    sessionId: 's1',
    runKey: 'k'.repeat(32),
  });
  Object.assign(record, {
    generatedItems: [item],
    sessionItems: [item],
    modelResponses: [{ output: [], usage: toUsage() }],
    step: { type: 'interruption', interruptions: [item], responseAccepted: false, llmEndHooksStarted: true },
    currentTurn: 3,
    pendingWrite: {
      sessionId: 's1',
      items: [user],
      before: ['d'],
      persistedCount: 0,
      responseId: null,
      store: null,
      hasLocalToolOutputs: false,
      acknowledged: false,
    },
    toolUse: new Map([[desk, new Set(['refund'])]]),
    trace: { traceId: 't', workflowName: 'w', metadata: { a: 1 }, extra: {} },
    guardrailResults: {
      input: [{} as never],
      output: [{} as never],
      toolInput: [{} as never],
      toolOutput: [{} as never],
    },
    inUse: true,
  } satisfies Partial<StateRecord>);
  const { usage, ledger } = contextInternals(record.context);
  usage.add(toUsage({ inputTokens: 1, totalTokens: 3 }));
  ledger.plan([{ call }]);
  return record;
}

test('a new record has not begun', () => {
  const record = newRecord({ agent: desk, context: 1, input: 'x', maxTurns: 10 });
  expect(record).toMatchObject({
    startingAgent: desk,
    currentAgent: desk,
    input: 'x',
    step: { type: 'none' },
    currentTurn: 0,
    maxTurns: 10,
    decisions: [],
    inUse: false,
    sessionId: undefined,
  });
  expect(record.runKey).toMatch(/^[0-9a-f]{32}$/);
  expect(newRecord({ agent: desk, context: 1, input: 'x', maxTurns: 10 }).runKey).not.toBe(record.runKey);
  expect(record.context.context).toBe(1);
});

test('a copy carries everything over and shares what never changes [STATE-131, 134] [RUN-1213]', () => {
  const value = { tenant: 't1' };
  const record = paused(value);
  const copy = copyRecord(record);
  const { context, ...rest } = copy;
  const { context: original, ...expected } = record;
  expect(rest).toEqual({ ...expected, inUse: false });
  expect(context.context).toBe(value);
  expect(context.usage).toEqual(original.usage);
  expect(contextInternals(context).ledger.status('c1')).toMatchObject({ executed: false });
  expect(copy.generatedItems[0]).toBe(record.generatedItems[0]);
  expect(copy.modelResponses[0]).toBe(record.modelResponses[0]);
});

test('nothing that happens to a copy reaches the original, nor the reverse [STATE-131, 132, 135]', () => {
  const untouched = paused();
  for (const direction of ['copy', 'original'] as const) {
    const record = paused();
    const copy = copyRecord(record);
    const [changed, other] = direction === 'copy' ? [copy, record] : [record, copy];
    change(changed);
    const { context, ...rest } = other;
    const { context: sample, ...expected } = untouched;
    expect({ ...rest, inUse: true }).toEqual({
      ...expected,
      generatedItems: rest.generatedItems,
      sessionItems: rest.sessionItems,
      step: rest.step,
    });
    expect(
      [rest.generatedItems, rest.sessionItems, other.step].map((list) => JSON.stringify(list).includes('later')),
    ).toEqual([false, false, false]);
    expect([rest.generatedItems.length, rest.sessionItems.length, nextStepOf(other.step)]).toMatchObject([
      1,
      1,
      { interruptions: { length: 1 } },
    ]);
    expect(context.usage).toEqual(sample.usage);
    expect(contextInternals(context).ledger.status('c1')).toMatchObject({ executed: false, completed: false });
    expect(contextInternals(context).approvals).toEqual(contextInternals(sample).approvals);
  }
});

/** Everything that a run, a decision or a session write does to a record. */
function change(record: StateRecord): void {
  const { usage, ledger } = contextInternals(record.context);
  if (record.step.type !== 'interruption') throw new Error('not paused');
  record.context.decide(record.step.interruptions[0]!, { type: 'approve', always: true });
  ledger.markCompleted('c1');
  usage.add(toUsage({ totalTokens: 9 }));
  (record.input as AgentInputItem[]).push(user);
  record.generatedItems.push({ type: 'later' } as unknown as RunItem);
  record.sessionItems.push({ type: 'later' } as unknown as RunItem);
  record.modelResponses.push({} as ModelResponse);
  record.toolUse.get(desk)?.add('other');
  for (const list of Object.values(record.guardrailResults) as object[][]) list.push({});
  record.pendingWrite!.acknowledged = true;
  (record.pendingWrite!.items as AgentInputItem[]).push(user);
  (record.pendingWrite!.before as string[]).push('e');
  (record.trace!.metadata as Record<string, unknown>)['a'] = 2;
  (record.step.interruptions as ToolApprovalItem[]).length = 0;
}

test('each record decides for itself: the result stays undecided [STATE-132] [STATE#69] [IL-069]', () => {
  const record = paused();
  const copies = [copyRecord(record), copyRecord(record)];
  const item = record.generatedItems[0] as ToolApprovalItem;
  copies[0]?.context.decide(item, { type: 'reject', message: 'no' });
  expect(copies.map((copy) => copy.decisions.length)).toEqual([1, 0]);
  expect(record.decisions).toEqual([]);
  record.context.decide(item, { type: 'approve' });
  expect(copies.map((copy) => copy.decisions.length)).toEqual([1, 0]);
  expect(copyRecord(record).decisions).toMatchObject([{ type: 'approve' }]);
});

test('the step as users see it; its list is a view [STATE-138] [IL-070]', () => {
  expect(nextStepOf({ type: 'none' })).toBeUndefined();
  expect(nextStepOf({ type: 'run_again' })).toEqual({ type: 'next_step_run_again' });
  expect(nextStepOf({ type: 'final_output', output: 7 })).toEqual({ type: 'next_step_final_output', output: 7 });
  const record = paused();
  const step = nextStepOf(record.step);
  expect(step).toEqual({ type: 'next_step_interruption', interruptions: [record.generatedItems[0]] });
  if (step?.type === 'next_step_interruption') (step.interruptions as ToolApprovalItem[]).length = 0;
  expect(nextStepOf(record.step)).toMatchObject({ interruptions: { length: 1 } });
});

test('a record that is given a context of its own decides by it, and not by the one that a run goes on with [STATE-135]', () => {
  const record = paused();
  const gone = record.context;
  separateContext(record);
  const { interruptions } = record.step as Extract<StateRecord['step'], { type: 'interruption' }>;
  record.context.decide(interruptions[0] as ToolApprovalItem, { type: 'approve' });
  expect(record.decisions).toMatchObject([{ callId: 'c1', type: 'approve' }]);
  expect(
    [contextInternals(record.context), contextInternals(gone)].map(({ approvals }) => approvals.functions.size),
  ).toEqual([1, 0]);
});
