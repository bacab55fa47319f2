import { describe, expect, test } from 'vitest';
import type { AnyAgent } from '../agent/agent.ts';
import type { FunctionTool } from '../agent/tool.ts';
import { internal } from '../base/brand.ts';
import { AgentsError, ModelBehaviorError } from '../base/errors.ts';
import { RunItemBase } from '../items/items.ts';
import { approvalInternals, ToolApprovalItem } from './decisions.ts';
import type { ApprovalItemFacts } from './decisions.ts';

const desk = { name: 'Desk' } as AnyAgent;
const item = (raw: object, facts?: ApprovalItemFacts): ToolApprovalItem =>
  new ToolApprovalItem(desk, raw as never, facts);
const call = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'refund', arguments: '{"id":7}' };

describe('what an item says', () => {
  test('of a function call', () => {
    const waiting = item(call, { toolOrigin: { type: 'function' }, createdAt: '2026-01-05T10:00:00.000Z' });
    expect(waiting).toMatchObject({
      type: 'tool_approval_item',
      name: 'refund',
      qualifiedName: 'refund',
      arguments: '{"id":7}',
      callId: 'c1',
      toolOrigin: { type: 'function' },
      inDoubt: false,
      createdAt: '2026-01-05T10:00:00.000Z',
    });
    expect(waiting.agent).toBe(desk);
    expect(waiting.rawItem).toBe(call);
    expect(waiting).toBeInstanceOf(ToolApprovalItem);
    expect(waiting).toBeInstanceOf(RunItemBase);
    expect(Number.isFinite(Date.parse(item(call).createdAt))).toBe(true);
  });

  test('names: resolved, of the call, else its type; a made-up namespace is not shown', () => {
    expect(item({ type: 'shell_call', call_id: 'c', action: {} }, { toolName: 'bash' }).name).toBe('bash');
    expect(item({ type: 'x', tool_name: 'old' }).name).toBe('old');
    expect(item({ type: 'shell_call', call_id: 'c', action: {} }).name).toBe('shell_call');
    expect(item({}).name).toBe('unknown_tool');
    expect(item({ ...call, namespace: 'crm' }).qualifiedName).toBe('crm.refund');
    expect(item({ ...call, namespace: 'refund' }).qualifiedName).toBe('refund');
  });

  test('keys of a raw call come from its names; none when the namespace repeats the name', () => {
    expect(approvalInternals(item(call))).toMatchObject({
      toolName: 'refund',
      namespace: undefined,
      lookupKey: { kind: 'bare', name: 'refund' },
    });
    expect(approvalInternals(item({ ...call, namespace: 'crm' })).lookupKey).toEqual({
      kind: 'namespaced',
      namespace: 'crm',
      name: 'refund',
    });
    expect(approvalInternals(item({ ...call, namespace: 'refund' })).lookupKey).toBeUndefined();
    const given = { kind: 'deferred_top_level', name: 'refund' } as const;
    expect(
      approvalInternals(item({ ...call, namespace: 'refund' }, { lookupKey: given, allowBareNameAlias: true })),
    ).toMatchObject({ lookupKey: given, allowBareNameAlias: true });
    expect(
      approvalInternals(item({ type: 'custom_tool_call', call_id: 'c', name: 'sql', input: '' })).lookupKey,
    ).toBeUndefined();
  });

  test('arguments as text, and ids', () => {
    expect(item({ type: 'custom_tool_call', call_id: 'c', name: 'sql', input: 'select 1' }).arguments).toBe('select 1');
    // As the model wrote them: a person decides on these very words.
    expect(item({ ...call, arguments: '{ "id" : 7.0 }' }).arguments).toBe('{ "id" : 7.0 }');
    expect(item({ type: 'x', params: { a: 1 } }).arguments).toBe('{"a":1}');
    expect(item({ type: 'shell_call', action: { commands: ['ls'] } }).arguments).toBe('{"commands":["ls"]}');
    expect(item({ type: 'apply_patch_call', operation: { path: 'a' } }).arguments).toBe('{"path":"a"}');
    expect(item({ type: 'x' })).toMatchObject({ arguments: '', callId: '' });
    expect(item({ type: 'mcp_approval_request', id: 'r1', name: 'x', server_label: 's', arguments: '{}' }).callId).toBe(
      'r1',
    );
  });

  test('items of equal calls are two items [RUN-1105]', () => {
    expect(new Set([item(call), item(call)]).size).toBe(2);
  });

  test('JSON for logs and browsers has no cycle [RUN-1110]', () => {
    const owner = { name: 'Desk', self: undefined as unknown };
    owner.self = owner;
    const waiting = new ToolApprovalItem(owner as unknown as AnyAgent, call as never, {
      toolOrigin: { type: 'function' },
      createdAt: 't',
    });
    expect(JSON.parse(JSON.stringify(waiting))).toEqual({
      type: 'tool_approval_item',
      agent: { name: 'Desk' },
      raw_item: call,
      name: 'refund',
      qualified_name: 'refund',
      arguments: '{"id":7}',
      call_id: 'c1',
      tool_origin: { type: 'function' },
      in_doubt: false,
      created_at: 't',
    });
  });

  test('it is no model input [RUN-1104]', () => {
    expect(() => item(call).toInputItem()).toThrow(AgentsError);
    expect(() => item(call).toInputItem()).toThrow(/cannot be sent to the model/);
  });
});

describe('argumentsFor [STATE-148] [STATE#128]', () => {
  const tool = (
    name: string,
    parse: (json: string) => unknown,
    more: object = {},
  ): FunctionTool<never, { id: number }> =>
    ({ name, ...more, [internal]: { parse } }) as unknown as FunctionTool<never, { id: number }>;
  const parse = (json: string): unknown => ({ ok: true, value: { ...(JSON.parse(json) as object), filled: true } });

  test('gives a fresh, validated value for the tool of the call', () => {
    const waiting = item(call);
    expect(waiting.argumentsFor(tool('refund', parse))).toEqual({ id: 7, filled: true });
    expect(waiting.argumentsFor(tool('refund', parse))).not.toBe(waiting.argumentsFor(tool('refund', parse)));
  });

  test('gives nothing for another tool, also one of the same bare name', () => {
    const waiting = item(call);
    expect(waiting.argumentsFor(tool('other', parse))).toBeUndefined();
    expect(waiting.argumentsFor(tool('refund', parse, { namespace: { name: 'crm' } }))).toBeUndefined();
    expect(
      item({ type: 'custom_tool_call', call_id: 'c', name: 'refund', input: '' }).argumentsFor(tool('refund', parse)),
    ).toBeUndefined();
  });

  test('throws for arguments that do not fit, without showing them', () => {
    const cause = new Error('not a number');
    const waiting = item({ ...call, arguments: '{"id":"secret"}' });
    const failing = tool('refund', () => ({ ok: false, error: cause }));
    expect(() => waiting.argumentsFor(failing)).toThrow(ModelBehaviorError);
    expect(() => waiting.argumentsFor(failing)).toThrow(/^(?!.*secret).*'refund'/);
  });
});
