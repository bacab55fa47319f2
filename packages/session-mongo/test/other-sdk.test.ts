import { registerHooks } from 'node:module';

import { convertJsSdkItems } from '@agents/core/session';
import type { AgentInputItem, AgentOutputItem, Model, ModelRequest, ModelResponse } from '@openai/agents';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';

import { MongoDBSession } from '../src/index.ts';
import { freshName, mongoUrl } from './mongo.ts';

// One of what it depends on has sources under the condition by which our packages are found.
const hooks = registerHooks({
  resolve: (specifier, context, next) =>
    context.parentURL?.includes('/node_modules/') === true
      ? next(specifier, { ...context, conditions: context.conditions.filter((condition) => condition !== 'source') })
      : next(specifier, context),
});
const { Agent, Runner, setTracingDisabled, tool, Usage } = await import('@openai/agents');
hooks.deregister();

let client: MongoClient;
const database = freshName();
beforeAll(() => {
  setTracingDisabled(true);
  client = new MongoClient(mongoUrl());
});
afterAll(async () => {
  await client.db(database).dropDatabase();
  await client.close();
});

/** Answers each call with the next of these. */
function scripted(outputs: readonly AgentOutputItem[]): { model: Model; requests: AgentInputItem[][] } {
  const requests: AgentInputItem[][] = [];
  const rest = [...outputs];
  const model: Model = {
    async getResponse(request: ModelRequest): Promise<ModelResponse> {
      requests.push(Array.isArray(request.input) ? [...request.input] : []);
      return { usage: new Usage(), output: [rest.shift()!] };
    },
    // oxlint-disable-next-line require-yield
    async *getStreamedResponse() {
      throw new Error('Nothing is streamed here.');
    },
  };
  return { model, requests };
}

const says = (text: string): AgentOutputItem => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

it('is the session of the runner of npm @openai/agents over three turns with a tool, and comes over to ours [SESS-393]', async () => {
  const { model, requests } = scripted([
    says('Hello Ada.'),
    { type: 'function_call', callId: 'call_1', name: 'weather', arguments: '{"city":"Rome"}', status: 'completed' },
    says('It is sunny in Rome.'),
    says('You are Ada.'),
  ]);
  const weather = tool({
    name: 'weather',
    description: 'The weather of a city.',
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  });
  const agent = new Agent({ name: 'A', model, tools: [weather] });
  const runner = new Runner();
  const inputs = ['I am Ada.', 'And the weather in Rome?', 'Who am I?'];
  const answers: unknown[] = [];
  for (const input of inputs) {
    // A new object for each turn, as a server makes them.
    const session = new MongoDBSession<AgentInputItem>('theirs', { client, database });
    answers.push((await runner.run(agent, input, { session })).finalOutput);
  }
  expect(answers).toEqual(['Hello Ada.', 'It is sunny in Rome.', 'You are Ada.']);
  // The last request has all that was said and done before.
  expect(requests.at(-1)).toHaveLength(7);
  const session = new MongoDBSession<object>('theirs', { client, database });
  const stored = await session.getItems();
  const kinds = stored.map(
    (item) => (item as { type?: string; role?: string }).type ?? (item as { role?: string }).role,
  );
  expect(kinds).toEqual([
    'message',
    'message',
    'message',
    'function_call',
    'function_call_result',
    'message',
    'message',
    'message',
  ]);
  const ours = convertJsSdkItems(stored);
  expect(ours[3]).toMatchObject({
    type: 'function_call',
    call_id: 'call_1',
    name: 'weather',
    arguments: '{"city":"Rome"}',
  });
  expect(ours[4]).toMatchObject({ type: 'function_call_output', call_id: 'call_1' });
});
