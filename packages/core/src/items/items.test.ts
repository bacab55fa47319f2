import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import {
  HandoffCallItem,
  HandoffOutputItem,
  InputItem,
  McpApprovalRequestItem,
  MessageOutputItem,
  ReasoningItem,
  RunItemBase,
  ToolCallItem,
  ToolCallOutputItem,
  ToolSearchCallItem,
  ToolSearchOutputItem,
} from './items.ts';
import { convertedItem, itemsToInput } from './convert.ts';
import { messageText, outputText } from './read.ts';
import type { AgentInputItem, RunItem } from './items.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { ResponseOutputMessage } from './wire.ts';

const agent = { name: 'Desk', instructions: 'SECRET', tools: [] } as unknown as AnyAgent;
const other = { name: 'Billing', instructions: 'SECRET' } as unknown as AnyAgent;

const message = (...texts: (string | null)[]): ResponseOutputMessage =>
  ({
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: texts.map((text) => ({ type: 'output_text', text, annotations: [] })),
  }) as unknown as ResponseOutputMessage;
const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'refund', arguments: '{}' } as const;
const refusal = { ...message(), content: [{ type: 'refusal', refusal: 'no' }] } as ResponseOutputMessage;
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], created_by: 'server' } as never;
const waiting = { type: 'tool_approval_item', agent, rawItem: call } as unknown as RunItem;

describe('names and ids of calls', () => {
  test('a call that hands off has them like any call [RUN-1101]', () => {
    const item = new HandoffCallItem(agent, call);
    expect([item.toolName, item.callId]).toEqual(['refund', 'call_1']);
    expect(item.toJSON()).toMatchObject({ tool_name: 'refund', call_id: 'call_1' });
  });

  test('callId is call_id, else id, else undefined [RUN-1101]', () => {
    const id = (raw: object) => new ToolCallItem(agent, raw as never).callId;
    expect([id(call), id({ type: 'web_search_call', id: 'ws_1' }), id({ type: 'program', call_id: null })]).toEqual([
      'call_1',
      'ws_1',
      undefined,
    ]);
    expect(
      new ToolCallOutputItem(agent, { type: 'function_call_output', call_id: 'call_1', output: '' }, { output: 1 })
        .callId,
    ).toBe('call_1');
  });

  test('toolName is the name on the wire, of hosted calls that of their kind [RUN-1101]', () => {
    const name = (raw: object) => new ToolCallItem(agent, raw as never).toolName;
    expect(name(call)).toBe('refund');
    expect(name({ type: 'mcp_call', name: 'lookup' })).toBe('lookup');
    expect(['web_search_call', 'code_interpreter_call', 'shell_call', 'program'].map((type) => name({ type }))).toEqual(
      ['web_search', 'code_interpreter', 'shell', 'program'],
    );
  });
});

describe('texts', () => {
  test('messageText joins the text parts, of the item and of its wire object [RUN-1108]', () => {
    const raw = message('Hello ', null, 'you');
    expect(messageText(raw)).toBe('Hello you');
    expect(messageText(new MessageOutputItem(agent, raw))).toBe('Hello you');
    expect([messageText(refusal), messageText(message())]).toEqual(['', '']);
  });

  test('messageText and outputText take wire objects of input, too [RUN-1108]', () => {
    const parts = [{ type: 'input_text', text: 'a' }, { type: 'input_image' }, { type: 'input_text', text: 'b' }];
    const items = [
      { role: 'user', content: 'Hello' },
      { type: 'message', role: 'user', content: parts },
      call,
      { type: 'item_reference', id: 'msg_1' },
      { role: 'assistant', content: 'Hi, ' },
      message('you'),
      reasoning,
      new InputItem(agent, { role: 'user', content: 'staged' }, { inputId: '0' }),
    ] as (AgentInputItem | RunItem)[];
    expect(items.map((item) => messageText(item))).toEqual(['Hello', 'ab', '', '', 'Hi, ', 'you', '', 'staged']);
    expect(outputText(items)).toBe('Hi, you');
  });

  test('outputText joins the messages and leaves out everything else [RUN-1108]', () => {
    const items = [
      new MessageOutputItem(agent, message('a')),
      new ToolCallItem(agent, call),
      waiting,
      new MessageOutputItem(agent, message('b')),
    ];
    expect(outputText(items)).toBe('ab');
    expect(outputText([])).toBe('');
  });
});

describe('raw items', () => {
  test('are held as received, unknown members and parents of programs included [RUN-1111] [RUN-1112]', () => {
    const owned = { ...call, caller: { type: 'program', caller_id: 'p_1' }, brand_new: true } as const;
    expect(new ToolCallItem(agent, owned as never).rawItem).toBe(owned);
    const search = { type: 'tool_search_call', call_id: 't', arguments: { q: 1 } } as never;
    const loaded = { type: 'tool_search_output', call_id: 't', tools: [{ type: 'namespace', name: 'crm' }] } as never;
    expect(new ToolSearchCallItem(agent, search).rawItem).toBe(search);
    expect(new ToolSearchOutputItem(agent, loaded).rawItem).toBe(loaded);
    expect(itemsToInput([new ToolSearchCallItem(agent, search), new ToolSearchOutputItem(agent, loaded)])).toEqual([
      search,
      loaded,
    ]);
  });

  test('may be instances of classes [RUN-1111]', () => {
    class Message {
      type = 'message';
      content = [{ type: 'output_text', text: 'hi' }];
    }
    const item = new MessageOutputItem(agent, new Message() as never);
    expect(messageText(item)).toBe('hi');
    expect(item.toInputItem()).toEqual({ type: 'message', content: [{ type: 'output_text', text: 'hi' }] });
  });
});

describe('conversion', () => {
  test('toInputItem gives a new object each time and leaves the raw item alone [RUN-1102]', () => {
    const raw = Object.freeze({ ...call, created_by: 'server', status: null });
    const item = new ToolCallItem(agent, raw as never);
    const first = item.toInputItem() as unknown as Record<string, unknown>;
    expect(first).toEqual({ ...call });
    first['name'] = 'changed';
    expect(item.toInputItem()).toEqual({ ...call });
    expect(convertedItem(item)).toEqual({ ...call });
  });

  test('one conversion for all: the public one, the kept one and lists give the same [RUN-1103]', () => {
    const items: RunItem[] = [
      new InputItem(agent, { role: 'user', content: 'x' }, { inputId: '0'.repeat(32) }),
      new MessageOutputItem(agent, message('a')),
      new ReasoningItem(agent, reasoning),
      new ToolCallItem(agent, { ...call, created_by: 'server' } as never),
      new ToolCallOutputItem(
        agent,
        { type: 'function_call_output', call_id: 'call_1', output: 'done' },
        { output: { big: 1 } },
      ),
      new McpApprovalRequestItem(agent, {
        type: 'mcp_approval_request',
        id: 'm',
        name: 'n',
        arguments: '{}',
        server_label: 's',
      }),
    ];
    const input = itemsToInput(items);
    expect(input).toEqual(items.map((item) => item.toInputItem()));
    expect(items.map((item) => convertedItem(item))).toEqual(input);
    expect(JSON.stringify(input)).not.toContain('created_by');
  });

  test('waiting calls are skipped in lists [RUN-1104]', () => {
    expect(itemsToInput([waiting, new ToolCallItem(agent, call)])).toEqual([call]);
  });

  test('the policy omit drops ids of reasoning from conversions only [RUN-251] [RUN-253]', () => {
    const items = [new ReasoningItem(agent, reasoning), new ToolCallItem(agent, call)];
    expect(itemsToInput(items, { reasoningIds: 'omit' })).toEqual([{ type: 'reasoning', summary: [] }, call]);
    expect(itemsToInput(items, { reasoningIds: 'preserve' })[0]).toEqual({
      type: 'reasoning',
      id: 'rs_1',
      summary: [],
    });
    expect(items[0]?.rawItem).toBe(reasoning);
  });

  test('converting changes nothing that equality of items sees', () => {
    const one = new ToolCallItem(agent, call);
    convertedItem(one);
    expect(one).toEqual(new ToolCallItem(agent, call));
    expect(Object.keys(one)).not.toContain('converted');
  });
});

describe('printing', () => {
  test('toJSON has type, agent name and raw item, without cycles [RUN-1110]', () => {
    const looped = { name: 'Desk', instructions: 'SECRET', handoffs: [] as unknown[] };
    looped.handoffs.push(looped);
    const item = new ToolCallItem(looped as unknown as AnyAgent, call, {
      title: 'Refund',
      toolOrigin: { type: 'function' } as never,
    });
    expect(JSON.parse(JSON.stringify(item))).toEqual({
      type: 'tool_call_item',
      agent: { name: 'Desk' },
      raw_item: call,
      tool_name: 'refund',
      call_id: 'call_1',
      title: 'Refund',
      tool_origin: { type: 'function' },
    });
    const handoff = new HandoffOutputItem(
      agent,
      { type: 'function_call_output', call_id: 'c', output: '' },
      { sourceAgent: agent, targetAgent: other },
    );
    expect(JSON.parse(JSON.stringify(handoff))).toMatchObject({
      source_agent: { name: 'Desk' },
      target_agent: { name: 'Billing' },
    });
  });

  test('values in memory that JSON cannot hold are not touched [RUN-1110]', () => {
    const output = { toJSON: vi.fn<() => void>(), big: 1n };
    const item = new ToolCallOutputItem(
      agent,
      { type: 'function_call_output', call_id: 'c', output: 'x' },
      { output, customData: { a: 1 } },
    );
    expect(JSON.parse(JSON.stringify(item))).toMatchObject({ call_id: 'c', custom_data: { a: 1 } });
    expect(output.toJSON).not.toHaveBeenCalled();
    expect(item.output).toBe(output);
  });

  test('inspect names agents and does not dump them [RUN-1216]', () => {
    const text = inspect([new ToolCallItem(agent, call)], { depth: 5, breakLength: Infinity });
    expect(text).toContain("tool_call_item { agent: 'Desk', rawItem: { type: 'function_call'");
    expect(text).toContain("name: 'refund'");
    expect(text).not.toContain('SECRET');
  });
});

test('items are told apart by type, and by class over copies of the package', async () => {
  expectTypeOf<Extract<RunItem, { type: 'tool_call_item' }>>().toEqualTypeOf<ToolCallItem>();
  vi.resetModules();
  const copy = await import('./items.ts');
  const foreign = new copy.ToolCallItem(agent, call);
  expect(foreign).toBeInstanceOf(ToolCallItem);
  expect(foreign).toBeInstanceOf(RunItemBase);
  expect(foreign).not.toBeInstanceOf(ToolCallOutputItem);
  expect(convertedItem(foreign)).toEqual(call);
});
