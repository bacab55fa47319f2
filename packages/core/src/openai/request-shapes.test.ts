import OpenAI from 'openai';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, run, runStreamed, tool } from '../index.ts';
import { FakeOpenAI } from '../testing/index.ts';
import { OpenAIResponsesModel } from './index.ts';

// The shapes of requests that runs send, against the fake service; with OPENAI_LIVE_TESTS=1 and a key against the real one,
// so that the two cannot drift apart unnoticed. What is asserted holds for both.

const isLive = process.env['OPENAI_LIVE_TESTS'] === '1' && process.env['OPENAI_API_KEY'] !== undefined;
const client = isLive ? new OpenAI() : await new FakeOpenAI().client();
const model = new OpenAIResponsesModel(process.env['OPENAI_LIVE_MODEL'] ?? 'gpt-5.6-luna', { client });
const timeout = isLive ? 60_000 : 5_000;

const lookup = tool({
  name: 'lookup_order',
  description: 'Looks up an order by its number: its status.',
  parameters: z.object({ orderId: z.string(), verbose: z.boolean().optional() }),
  execute: ({ orderId }) => ({ id: orderId, status: 'shipped' }),
});

it('the service takes text, instructions and settings, plain and streamed [MODEL-1209]', { timeout }, async () => {
  const agent = new Agent({
    name: 'A',
    instructions: 'Be brief.',
    model,
    modelSettings: { maxTokens: 200, metadata: { test: '1' }, store: false, verbosity: 'low' },
  });
  for (const result of [await run(agent, 'Say hello.'), await runStreamed(agent, 'Say hello.').completed]) {
    expect(result.finalOutput).not.toBe('');
    expect(result.rawResponses[0]).toMatchObject({
      responseId: expect.stringMatching(/^resp_/),
      requestId: expect.any(String),
      usage: { requests: 1, inputTokens: expect.any(Number) },
    });
    expect(result.context.usage.totalTokens).toBeGreaterThan(0);
  }
});

it(
  'the service takes tools, their calls and outputs back, and reasoning between them [MODEL-1209]',
  { timeout },
  async () => {
    const agent = new Agent({ name: 'A', instructions: 'Look orders up.', model, tools: [lookup] });
    const first = await run(agent, 'What is the status of order 1042?');
    expect(first.newItems.map((item) => item.type)).toContain('tool_call_output_item');
    expect(first.finalOutput).toContain('shipped');
    const second = await runStreamed(agent, [...first.toInputList(), { role: 'user', content: 'Once more?' }])
      .completed;
    expect(second.finalOutput).not.toBe('');
  },
);

it('the service takes output types, and answers in them [MODEL-1209]', { timeout }, async () => {
  const outputType = z.object({ city: z.string(), note: z.string().optional() });
  const agent = new Agent({ name: 'A', model, outputType });
  const { finalOutput } = await run(agent, 'city: Paris');
  expect(outputType.safeParse(finalOutput).success).toBe(true);
  const list = new Agent({ name: 'A', model, outputType: z.array(z.string()) });
  expect(Array.isArray((await run(list, 'Two colours.')).finalOutput)).toBe(true);
});

it('the service refuses what it refuses with status, code and request id [MODEL-1209]', { timeout }, async () => {
  const agent = new Agent({ name: 'A', model, modelSettings: { extraBody: { no_such_member: true } } });
  await expect(run(agent, 'Hi')).rejects.toMatchObject({ status: 400, requestID: expect.any(String) });
});
