import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { Agent, ModelBehaviorError, RunState, run, runStreamed, tool } from '../index.ts';
import type { Model, ResponseStreamEvent } from '../index.ts';
import { OpenAIResponsesModel } from '../openai/index.ts';
import { bothForms } from '../testing/forms.ts';

const message = (content: unknown) => ({ type: 'message', role: 'assistant', id: 'm', status: 'completed', content });
const hello = message([{ type: 'output_text', text: 'Hello.', annotations: [] }]);
const call = { type: 'function_call', call_id: 'c1', name: 'pay', arguments: '{}' };

/** A model of plain JavaScript: whatever it gives, in both forms. */
function modelOf(response: unknown): Model {
  return {
    getResponse: () => Promise.resolve(response as never),
    // oxlint-disable-next-line require-yield
    async *streamResponse() {
      yield { type: 'response.completed', response: { id: 'r', ...(response as object) } } as never;
    },
  };
}

const agentOf = (model: Model): Agent =>
  new Agent({ name: 'Desk', model, tools: [tool({ name: 'pay', needsApproval: true, execute: () => 'paid' })] });

bothForms((runForm, form) => {
  describe(`a response that no model can mean (${form})`, () => {
    it.each([
      ['null as an item', [null], 'null as output[0]'],
      // oxlint-disable-next-line no-sparse-arrays
      ['a hole', [hello, ,], 'undefined as output[1]'],
      ['holes only', Array.from({ length: 2 }), 'undefined as output[0]'],
      ['a number as an item', [hello, 5], '5 as output[1]'],
      ['a text for the content', [message('Hello.')], 'a string as output[0].content'],
      ['an object for the content', [message({})], 'an object as output[0].content'],
      ['null as a part', [message([null])], 'null as output[0].content[0]'],
      ['a text for the output', 'Hello.', undefined],
      ['an object for the output', {}, undefined],
    ])('%s is a ModelBehaviorError that names it [MODEL-101]', async (_name, output, text) => {
      const error: unknown = await runForm(agentOf(modelOf({ output })), 'go').catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toContain(text ?? 'The model answered');
    });
  });

  describe(`usage of a plain model (${form})`, () => {
    it.each([
      ['in part', { requests: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 }, 10],
      ['in words of the wire', { input_tokens: 10, output_tokens: 5, total_tokens: 15 }, 10],
      ['with counts that are none', { requests: 1, inputTokens: 10n, outputTokens: Number.NaN }, 0],
      ['null', null, 0],
      ['a text', 'x', 0],
    ])('%s is completed: the paused run can be written and read [MODEL-101, RUN-1007]', async (_name, usage, input) => {
      const agent = agentOf(modelOf({ output: [call], usage }));
      const paused = await runForm(agent, 'go');
      const restored = await RunState.fromString(agent, paused.toState().toString());
      expect([restored.usage.requests, restored.usage.inputTokens]).toEqual([1, input]);
      expect(restored.usage.inputTokensDetails.cachedTokens).toBe(0);
    });
  });
});

test('a model that answers without a promise works with a signal too [MODEL-101]', async () => {
  const model = { getResponse: () => ({ output: [hello] }) } as unknown as Model;
  for (const signal of [undefined, new AbortController().signal])
    expect((await run(agentOf(model), 'go', { signal })).finalOutput).toBe('Hello.');
});

describe('a stream that no model can mean', () => {
  const done = { type: 'response.completed', response: { id: 'r', output: [hello] } } as never as ResponseStreamEvent;
  const streamed = (streamResponse: () => unknown) =>
    runStreamed(agentOf({ ...modelOf(undefined), streamResponse: streamResponse as never }), 'go').completed;

  test.each([
    ['null', () => null, 'null for a stream'],
    ['a number', () => 5, '5 for a stream'],
    ['an object without events', () => ({}), 'without events'],
    ['steps that are none', () => ({ next: async () => 5 }), '5 as a step'],
    [
      'null as an event',
      async function* () {
        yield null;
      },
      'null as an event',
    ],
    [
      'the end without a response',
      async function* () {
        yield { type: 'response.completed' };
      },
      'has no output',
    ],
    [
      'a failure without a response',
      async function* () {
        yield { type: 'response.failed' };
      },
      'response.failed',
    ],
  ])('%s is a ModelBehaviorError that says so [MODEL-531]', async (_name, stream, text) => {
    const error: unknown = await streamed(stream).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelBehaviorError);
    expect((error as Error).message).toContain(text);
  });

  test.each(['incomplete', 'failed'])(
    'ends well with a response that is %s: it is no answer [MODEL-531, IL-131]',
    async (status) => {
      const end = { type: 'response.completed', response: { id: 'r', status, output: [hello] } };
      await expect(
        streamed(async function* () {
          yield end;
        }),
      ).rejects.toThrow(`status ${status}`);
    },
  );

  test('of another kind than a generator is read all the same [MODEL-101]', async () => {
    const iterable = {
      async *[Symbol.asyncIterator]() {
        yield done;
      },
    };
    let steps = 0;
    const iterator = { next: async () => (steps++ === 0 ? { done: false, value: done } : { done: true }) };
    for (const stream of [iterable, iterator]) expect((await streamed(() => stream)).finalOutput).toBe('Hello.');
  });
});

test.each(['<html>secret</html>', '', 'null', '{}'])(
  'a 200 that is no response (%j) is told without its text [MODEL-531]',
  async (body) => {
    const server = createServer((_request, response) => {
      response.setHeader('content-type', body.startsWith('<') ? 'text/html' : 'application/json');
      response.end(body);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const client = new OpenAI({
      apiKey: 'key',
      maxRetries: 0,
      baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    });
    const error: unknown = await run(agentOf(new OpenAIResponsesModel('gpt-5.6-luna', { client })), 'go').catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ModelBehaviorError);
    expect((error as Error).message).toMatch(/no response object|without an output/);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('secret');
  },
);
