import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, getRunErrorState, RunState, tool } from '../index.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { bothForms } from '../testing/forms.ts';
import { toolCall } from '../testing/index.ts';
import type { FakeStep } from '../testing/index.ts';
import { kindsOf, rejection } from '../../test/run-kit.ts';
import { OpenAIResponsesModel } from './index.ts';

// What runs whose history the provider keeps put on the wire, through the real client.

async function setUp(
  steps: FakeStep[],
  { gated = false, strict = true } = {},
): Promise<{ fake: FakeOpenAI; agent: Agent }> {
  const fake = new FakeOpenAI({ steps, strict });
  const client = await fake.client({ maxRetries: 0 });
  const lookup = tool({
    name: 'lookup',
    parameters: z.object({}),
    needsApproval: gated,
    execute: () => 'found',
  });
  const model = new OpenAIResponsesModel('gpt-5.6-luna', { client });
  return { fake, agent: new Agent({ name: 'Desk', instructions: 'Be brief.', tools: [lookup], model }) };
}

function bodies(fake: FakeOpenAI): Record<string, unknown>[] {
  return fake.requests.map(({ body }) => body as Record<string, unknown>);
}

bothForms((runForm, form) => {
  describe(`runs whose history the Responses API keeps (${form})`, () => {
    it('chain their responses: each request names the one before, and instructions go with each [RUN#67, RUN-1502, 1503, 1510]', async () => {
      const { fake, agent } = await setUp([toolCall('lookup'), 'One.', 'Two.']);
      const first = await runForm(agent, 'a', { autoPreviousResponseId: true });
      const second = await runForm(agent, 'b', { previousResponseId: first.lastResponseId });
      expect(second.finalOutput).toBe('Two.');
      const [one, two, three] = bodies(fake);
      expect(bodies(fake).map(({ input }) => kindsOf(input as object[]))).toEqual(['u', 'fco', 'u']);
      expect(one).not.toHaveProperty('previous_response_id');
      expect(two?.['previous_response_id']).toBe(first.rawResponses[0]?.responseId);
      expect(three?.['previous_response_id']).toBe(first.rawResponses[1]?.responseId);
      for (const body of bodies(fake)) {
        expect(body).not.toHaveProperty('conversation');
        expect(body).toMatchObject({ instructions: 'Be brief.', tools: [{ name: 'lookup' }] });
      }
    });

    it('name their conversation, over a pause that is written down [RUN-1503, 1505]', async () => {
      const { fake, agent } = await setUp([toolCall('lookup'), 'Done.'], { gated: true, strict: false });
      const sent: Record<string, unknown>[] = [];
      // The fake API has no conversations.
      const client = new OpenAI({
        apiKey: 'test-key',
        baseURL: 'https://fake.invalid/v1',
        maxRetries: 0,
        fetch: async (url, init) => {
          const body = JSON.parse(init?.body as string) as Record<string, unknown>;
          sent.push({ ...body });
          delete body['conversation'];
          return await fake.fetch(url, { ...init, body: JSON.stringify(body) });
        },
      });
      const options = { model: new OpenAIResponsesModel('gpt-5.6-luna', { client }), conversationId: 'conv_1' };
      const paused = await runForm(agent, 'a', options);
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(agent, state, { model: options.model });
      expect(result.finalOutput).toBe('Done.');
      expect(sent.map(({ input, conversation }) => [kindsOf(input as object[]), conversation])).toEqual([
        ['u', 'conv_1'],
        ['fco', 'conv_1'],
      ]);
      for (const body of sent) expect(body).not.toHaveProperty('previous_response_id');
    });

    it('send the very same again after a failure of the API [RUN-1504]', async () => {
      const { fake, agent } = await setUp([toolCall('lookup'), { status: 500 }, 'Done.']);
      const error = await rejection(runForm(agent, 'a', { autoPreviousResponseId: true }));
      const result = await runForm(agent, getRunErrorState(error) as RunState);
      expect(result.finalOutput).toBe('Done.');
      const [, second, third] = bodies(fake);
      expect(third).toEqual(second);
      expect(kindsOf(third?.['input'] as object[])).toBe('fco');
    });
  });
});
