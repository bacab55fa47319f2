import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { Agent } from '../agent/agent.ts';
import { handoff } from '../agent/handoff.ts';
import type { FunctionTool } from '../agent/tool.ts';
import { tool } from '../agent/tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ResponseFunctionToolCall, ResponseStreamEvent } from '../items/wire.ts';
import { callModel } from '../models/call.ts';
import type { ModelRequest } from '../models/model.ts';
import { modelRequest } from './request.ts';
import { OfflineModel } from './offline-model.ts';
import { assertResponseStream } from './response-stream.ts';

const lookup = tool({
  name: 'lookup_order',
  description: 'Look up an order by its number: status, carrier, delivery date.',
  parameters: z.object({ orderId: z.string() }),
  execute: () => '',
});
const refund = tool({
  name: 'refund_order',
  description: 'Refund an order. Money goes back to the customer.',
  parameters: z.object({ orderId: z.string(), reason: z.string() }),
  execute: () => '',
});
const weather = tool({
  name: 'get_weather',
  description: 'Weather of a city',
  parameters: z.object({ city: z.string(), unit: z.enum(['celsius', 'fahrenheit']).nullable() }),
  execute: () => '',
});
const time = tool({
  name: 'get_time',
  description: 'Local time',
  parameters: z.object({ city: z.string() }),
  execute: () => '',
});
const add = tool({
  name: 'add',
  description: 'Add two numbers',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: () => '',
});
const desk = [lookup, refund];

const user = (content: string): AgentInputItem => ({ role: 'user', content });
const made = (name: string, args: object, output: string, callId = name): AgentInputItem[] => [
  { type: 'function_call', call_id: callId, name, arguments: JSON.stringify(args) },
  { type: 'function_call_output', call_id: callId, output },
];

async function ask(
  input: AgentInputItem[] | string,
  tools: readonly FunctionTool<never, never>[] = desk,
  more: Partial<ModelRequest> = {},
): Promise<string | [string, unknown][]> {
  const items = typeof input === 'string' ? [user(input)] : input;
  const { output } = await new OfflineModel({ notice: false }).getResponse(
    modelRequest({ input: items, tools: tools, ...more }),
  );
  const [first] = output;
  if (first?.type === 'message') return (first.content[0] as { text: string }).text;
  return (output as ResponseFunctionToolCall[]).map((call) => [call.name, JSON.parse(call.arguments)]);
}

describe('OfflineModel', () => {
  it.each<[string, [string, unknown][]]>([
    ['where is order 1042?', [['lookup_order', { orderId: '1042' }]]],
    ['Where is my order #A-1042, please?', [['lookup_order', { orderId: 'A-1042' }]]],
    [
      'please refund order 1042, it arrived broken',
      [['refund_order', { orderId: '1042', reason: 'it arrived broken' }]],
    ],
    [
      'Please refund order 1042. The mug arrived broken.',
      [['refund_order', { orderId: '1042', reason: 'The mug arrived broken' }]],
    ],
    [
      'Refund order 1042 because the lamp is broken',
      [['refund_order', { orderId: '1042', reason: 'the lamp is broken' }]],
    ],
    [
      'I want my money back for order 1042, it is broken',
      [['refund_order', { orderId: '1042', reason: 'it is broken' }]],
    ],
    [
      'Please give me back what I paid for order 1042, it is broken',
      [['refund_order', { orderId: '1042', reason: 'it is broken' }]],
    ],
    [
      'Please pay 7 euros back for order 1042, it is broken',
      [['refund_order', { orderId: '1042', reason: 'it is broken' }]],
    ],
    ['Track order 1001', [['lookup_order', { orderId: '1001' }]]],
  ])('picks the tool and fills its arguments for "%s" [MODEL-1304]', async (request, calls) => {
    expect(await ask(request)).toEqual(calls);
  });

  it('fills enums, numbers, names and quoted text by schema [MODEL-1304]', async () => {
    expect(await ask('What is the weather in New York in fahrenheit?', [weather])).toEqual([
      ['get_weather', { city: 'New York', unit: 'fahrenheit' }],
    ]);
    expect(await ask('weather for city: Oslo', [weather])).toEqual([['get_weather', { city: 'Oslo', unit: null }]]);
    expect(await ask('add 3 and -4.5', [add])).toEqual([['add', { a: 3, b: -4.5 }]]);
  });

  it('leaves out a tool that another one fits far better [MODEL-1304]', async () => {
    const clock = tool({
      name: 'get_time',
      description: 'Local time, for the hours of the weather report',
      parameters: z.object({ city: z.string() }),
      execute: () => '',
    });
    expect(await ask('What is the weather in Paris?', [clock, weather])).toEqual([
      ['get_weather', { city: 'Paris', unit: null }],
    ]);
  });

  it('calls several tools at once where several match, unless it may not [MODEL-1304]', async () => {
    const request = "What's the weather and the time in Paris?";
    expect(await ask(request, [weather, time])).toEqual([
      ['get_weather', { city: 'Paris', unit: null }],
      ['get_time', { city: 'Paris' }],
    ]);
    expect(await ask(request, [weather, time], { modelSettings: { parallelToolCalls: false } })).toHaveLength(1);
  });

  it('obeys toolChoice, once per request [MODEL-1304]', async () => {
    expect(await ask('where is order 1042?', desk, { modelSettings: { toolChoice: 'none' } })).toContain(
      'I can help with',
    );
    expect(await ask('1042, it is late', desk, { modelSettings: { toolChoice: 'refund_order' } })).toEqual([
      ['refund_order', { orderId: '1042', reason: 'it is late' }],
    ]);
    const required = { modelSettings: { toolChoice: 'required' } };
    expect(await ask('1042', [lookup], required)).toEqual([['lookup_order', { orderId: '1042' }]]);
    expect(
      await ask([user('1042'), ...made('lookup_order', { orderId: '1042' }, 'On its way.')], [lookup], required),
    ).toBe('On its way.');
  });

  it('asks back what is missing, and takes the answer together with the request [MODEL-1304]', async () => {
    const question = await ask('refund please');
    expect(question).toBe('To do that I still need: order id, reason.');
    expect(
      await ask([
        user('refund please'),
        { role: 'assistant', content: question as string },
        user('1042, it was broken'),
      ]),
    ).toEqual([['refund_order', { orderId: '1042', reason: 'it was broken' }]]);
  });

  it('asks for nothing more when what it looked up is not there [MODEL-1304]', async () => {
    const pay = tool({
      name: 'refund_order',
      description: 'Pays money back for an order.',
      parameters: z.object({ orderId: z.string(), amount: z.number() }),
      execute: () => '',
    });
    const request = user('Refund order 9999');
    expect(await ask([request], [lookup, pay])).toEqual([['lookup_order', { orderId: '9999' }]]);
    for (const output of [
      'Error: There is no order 9999.',
      'No such order',
      '[]',
      'null',
      '{"error":"not found"}',
      '',
    ]) {
      const text = await ask([request, ...made('lookup_order', { orderId: '9999' }, output)], [lookup, pay]);
      expect(text).not.toContain('I still need');
    }
    const found = made('lookup_order', { orderId: '9999' }, '{"orderId":"9999","status":"shipped"}');
    expect(await ask([request, ...found], [lookup, pay])).toBe('To do that I still need: amount.');
  });

  it('answers from real results, also from refusals and errors [MODEL-1304]', async () => {
    const shown = made(
      'lookup_order',
      { orderId: '1042' },
      '{"id":"1042","status":"shipped","carrier":"DHL","gift":true,"note":null}',
    );
    expect(await ask([user('where is order 1042?'), ...shown])).toBe('Order 1042: status shipped, carrier DHL, gift.');
    const request = user('please refund order 1042, it arrived broken');
    expect(await ask([request, ...made('refund_order', {}, '{"refunded":59.9}')])).toBe(
      'Done (refund order): refunded 59.9.',
    );
    expect(await ask([request, ...made('refund_order', {}, 'Tool execution was not approved.')])).toBe(
      'I could not refund order: Tool execution was not approved.',
    );
    expect(await ask([user('where is order 9?'), ...made('lookup_order', {}, '[]')])).toBe('Nothing was found.');
  });

  it('remembers the conversation: ids of earlier calls, and what the user said [MODEL-1304]', async () => {
    const before = [
      user('where is order 1042?'),
      ...made('lookup_order', { orderId: '1042' }, '{"id":"1042"}'),
      { role: 'assistant' as const, content: 'Order 1042.' },
    ];
    expect(await ask([...before, user('please refund it, it arrived broken')])).toEqual([
      ['refund_order', { orderId: '1042', reason: 'it arrived broken' }],
    ]);
    expect(await ask([user('My name is Ada.'), user('What is my name?')])).toBe('You said earlier: "My name is Ada."');
    expect(await ask('hello')).toMatch(/^I can help with: lookup order \(look up an order.*refund order/u);
  });

  it('gives an instance of the output schema, filled from results [MODEL-1304]', async () => {
    const schema = {
      type: 'object',
      properties: {
        status: { type: 'string' },
        level: { type: 'string', enum: ['low', 'high'] },
        items: { type: 'array', items: { type: 'string' } },
        count: { type: 'integer', minimum: 1 },
        note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      },
      required: ['status', 'level', 'items', 'count', 'note'],
    };
    const text = await ask(
      [user('where is order 1042?'), ...made('lookup_order', { orderId: '1042' }, '{"status":"shipped"}')],
      desk,
      { outputSchema: { name: 'x', schema, strict: true } },
    );
    expect(JSON.parse(text as string)).toEqual({ status: 'shipped', level: 'low', items: [], count: 1, note: null });
  });

  it('hands off to the agent that fits best, once per request, and not where a tool fits [MODEL-1304]', async () => {
    const billing = handoff(new Agent({ name: 'Billing', handoffDescription: 'Invoices and payments.' }));
    const parcels = handoff(new Agent({ name: 'Parcels', handoffDescription: 'Complaints about couriers.' }));
    const more = { handoffs: [billing, parcels] };
    expect(await ask('My invoice is wrong', desk, more)).toEqual([['transfer_to_billing', {}]]);
    expect(await ask('A complaint about your courier', desk, more)).toEqual([['transfer_to_parcels', {}]]);
    expect(await ask('Where is order 1042?', desk, more)).toEqual([['lookup_order', { orderId: '1042' }]]);
    expect(await ask('Good morning', desk, more)).toMatch(/^I can help/);
    const passedOn = [user('My invoice is wrong'), ...made('transfer_to_billing', {}, '{"assistant": "Billing"}')];
    expect(await ask(passedOn, desk, more)).toMatch(/^I can help/);
    expect(await ask('My invoice is wrong', desk, { ...more, modelSettings: { toolChoice: 'none' } })).toMatch(
      /^I can/,
    );
    const forced = { ...more, modelSettings: { toolChoice: 'transfer_to_parcels' } };
    expect(await ask('Good morning', desk, forced)).toEqual([['transfer_to_parcels', {}]]);
  });

  it('says what it is, streams word by word, counts by estimate, and gives the same answer each time [MODEL-1303, 1305]', async () => {
    const request = modelRequest({ input: [user('hello')], tools: desk });
    const events: ResponseStreamEvent[] = [];
    const model = new OfflineModel({ notice: false });
    const streamed = await callModel(model, request, (event) => events.push(event));
    assertResponseStream(events);
    expect(events.filter((event) => event.type === 'response.output_text.delta').length).toBeGreaterThan(10);
    const plain = await new OfflineModel({ notice: false }).getResponse(request);
    expect(streamed).toEqual(plain);
    expect(plain).toMatchObject({
      responseId: 'resp_offline_1',
      output: [{ provider_data: { model: 'offline', usage_estimated: true } }],
      usage: { requests: 1 },
    });
    expect(plain.usage.totalTokens).toBe(plain.usage.inputTokens + plain.usage.outputTokens);
    expect(plain.usage.inputTokens).toBeGreaterThan(20);
  });

  it('tells people once per process that no model is asked [MODEL-1303]', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    await new OfflineModel({ notice: false }).getResponse(modelRequest('hello'));
    expect(log).not.toHaveBeenCalled();
    await new OfflineModel().getResponse(modelRequest('hello'));
    await new OfflineModel().getResponse(modelRequest('hello'));
    expect(log).toHaveBeenCalledTimes(1);
    expect(log.mock.calls[0]?.[0]).toMatch(/^OfflineModel: .*OPENAI_API_KEY[^\n]*$/u);
    log.mockRestore();
    expect(() => new OfflineModel({ quiet: true } as never)).toThrow("Unknown option 'quiet'");
  });
});
