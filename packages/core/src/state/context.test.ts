import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import type { AnyAgent } from '../agent/agent.ts';
import { UserError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import type { ToolCallWire } from '../items/wire.ts';
import type { Span, Trace } from '../tracing/types.ts';
import {
  contextInternals,
  createToolContext,
  idempotencyKey,
  RunContext,
  ToolContext,
  unwrapContext,
} from './context.ts';
import type { ToolContextInit } from './context.ts';
import type { ToolApprovalItem } from './decisions.ts';

const toolCall = {
  type: 'function_call',
  call_id: 'c1',
  name: 'refund',
  arguments: '{"secret":"pin 1234"}',
} as ToolCallWire;
const init = (over: Partial<ToolContextInit> = {}): ToolContextInit => ({
  agent: { name: 'Desk' } as AnyAgent,
  toolCall,
  toolName: 'refund',
  toolCallId: 'c1',
  toolArguments: '{"secret":"pin 1234"}',
  signal: new AbortController().signal,
  runKey: 'a'.repeat(32),
  ...over,
});

describe('RunContext', () => {
  test('holds the value by reference and starts with nothing', () => {
    const value = { tenant: 't1' };
    const context = new RunContext(value);
    expect(context.context).toBe(value);
    expect(context.usage).toMatchObject({ requests: 0, totalTokens: 0 });
    expect(context.turnInput).toEqual([]);
    expect([context.toolInput, context.trace, context.span]).toEqual([undefined, undefined, undefined]);
  });

  test('of a context given as context only the value counts [RUN-106]', () => {
    const value = { tenant: 't1' };
    expect(unwrapContext(new RunContext(value))).toBe(value);
    expect(unwrapContext(createToolContext(new RunContext(value), init()))).toBe(value);
    expect(unwrapContext(value)).toBe(value);
    expect(unwrapContext(undefined)).toBeUndefined();
  });

  test('a new value replaces only the value [STATE-203]', () => {
    const context = new RunContext<unknown>('old');
    const internals = contextInternals(context);
    internals.usage.add(toUsage({ totalTokens: 3 }));
    const { approvals, ledger } = internals;
    internals.value = 'new';
    expect(context.context).toBe('new');
    expect(context.usage.totalTokens).toBe(3);
    expect(contextInternals(context)).toMatchObject({ approvals, ledger });
  });

  test('usage is read-only data that is replaced, not changed [RUN-1001]', () => {
    const context = new RunContext(undefined);
    const before = context.usage;
    contextInternals(context).usage.add(toUsage({ totalTokens: 3 }));
    expect(before.totalTokens).toBe(0);
    expect(context.usage.totalTokens).toBe(3);
    expect(Object.isFrozen(context.usage)).toBe(true);
  });

  test('decides through its run, and says so when it has none', () => {
    const context = new RunContext(undefined);
    const item = {} as ToolApprovalItem;
    expect(() => context.decide(item, { type: 'approve' })).toThrow(UserError);
    const decide = vi.fn<() => void>();
    contextInternals(context).decide = decide;
    context.decide(item, { type: 'approve' });
    createToolContext(context, init()).decide(item, { type: 'reject' });
    expect(decide.mock.calls).toEqual([
      [item, { type: 'approve' }],
      [item, { type: 'reject' }],
    ]);
  });

  test('is recognised over package copies, and a tool context is a run context', () => {
    const tool = createToolContext(new RunContext(1), init());
    expect(tool).toBeInstanceOf(ToolContext);
    expect(tool).toBeInstanceOf(RunContext);
    expect(new RunContext(1)).not.toBeInstanceOf(ToolContext);
    expect({ [Symbol.for('@agents/core/brand/RunContext')]: true }).toBeInstanceOf(RunContext);
  });
});

describe('ToolContext', () => {
  test('shares everything with the run but the call [TOOL-C1]', () => {
    const run = new RunContext({ tenant: 't1' });
    const tool = createToolContext(run, init());
    const internals = contextInternals(run);
    expect(contextInternals(tool)).toBe(internals);
    internals.usage.add(toUsage({ totalTokens: 3 }));
    internals.turnInput = [{ role: 'user', content: 'x' }];
    internals.value = { tenant: 't2' };
    expect(tool.usage).toBe(run.usage);
    expect(tool.turnInput).toBe(run.turnInput);
    expect(tool.context).toEqual({ tenant: 't2' });
  });

  test('tells about the call [TOOL-C2, C3]', () => {
    const own = init({ toolNamespace: 'crm', attempt: 2 });
    const tool = createToolContext(new RunContext(undefined), own);
    expect(tool).toMatchObject({
      toolName: 'refund',
      toolNamespace: 'crm',
      toolCallId: 'c1',
      toolArguments: '{"secret":"pin 1234"}',
      attempt: 2,
    });
    expect(tool.toolCall).toBe(toolCall);
    expect(tool.agent).toBe(own.agent);
    const plain = createToolContext(new RunContext(undefined), init());
    expect([plain.attempt, plain.toolNamespace]).toEqual([1, undefined]);
  });

  test('has its own span, else that of the run, and the trace of the run [TRACE-C10]', () => {
    const run = new RunContext(undefined);
    const [trace, outer, inner] = [{} as Trace, {} as Span, {} as Span];
    Object.assign(contextInternals(run), { trace, span: outer });
    expect(createToolContext(run, init({ span: inner })).span).toBe(inner);
    const tool = createToolContext(run, init());
    expect(tool.span).toBe(outer);
    expect(tool.trace).toBe(trace);
  });

  test('makes its signal once, when it is read', () => {
    const { signal } = new AbortController();
    const make = vi.fn<() => AbortSignal>(() => signal);
    const tool = createToolContext(new RunContext(undefined), init({ signal: make }));
    expect(make).not.toHaveBeenCalled();
    expect([tool.signal, tool.signal]).toEqual([signal, signal]);
    expect(make).toHaveBeenCalledTimes(1);
    expect(createToolContext(new RunContext(undefined), init({ signal })).signal).toBe(signal);
  });

  test('has a key that is equal for every attempt and different for every other call [STATE-509] [STATE#89]', () => {
    const key = (over: Partial<ToolContextInit> = {}): string =>
      createToolContext(new RunContext(Math.random()), init(over)).idempotencyKey;
    expect(key()).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(key({ attempt: 2, path: [] })).toBe(key());
    const keys = [
      key(),
      key({ toolCallId: 'c2' }),
      key({ runKey: 'b'.repeat(32) }),
      key({ path: ['c1'] }),
      key({ path: ['a', 'b'] }),
      key({ path: ['a","b'] }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(idempotencyKey('a'.repeat(32), [], 'c1')).toBe(key());
  });
});

test('neither JSON nor a log shows the value or the arguments [TOOL-C6]', () => {
  const run = new RunContext<Record<string, unknown>>({ password: 'hunter2' });
  run.context['self'] = run;
  contextInternals(run).turnInput = [{ role: 'user', content: 'pin 1234' }];
  const tool = createToolContext(run, init({ toolNamespace: 'crm' }));
  for (const context of [run, tool]) {
    const text = [
      JSON.stringify(context),
      inspect(context),
      inspect({ nested: [context] }, { depth: 9 }),
      context[Symbol.for('nodejs.util.inspect.custom') as never],
    ].join();
    expect(text).toContain('usage');
    expect(text).not.toMatch(/hunter2|pin 1234/);
  }
  expect(tool.toJSON()).toMatchObject({
    type: 'tool_context',
    agent: { name: 'Desk' },
    toolName: 'refund',
    toolNamespace: 'crm',
    toolCallId: 'c1',
    attempt: 1,
  });
});
