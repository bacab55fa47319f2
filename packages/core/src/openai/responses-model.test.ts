import { APIConnectionError, BadRequestError, RateLimitError } from 'openai';
import { describe, expect, it, vi } from 'vitest';
import { tool } from '../agent/tool.ts';
import { ModelBehaviorError, ModelStreamTruncatedError, RunAbortedError } from '../base/errors.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { callModel } from '../models/call.ts';
import type { ModelRequest, ModelResponse } from '../models/model.ts';
import { assertResponseStream } from '../testing/response-stream.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import type { FakeStep } from '../testing/fake/types.ts';
import { modelRequest } from '../testing/request.ts';
import { OpenAIResponsesModel } from './responses-model.ts';

async function setUp(
  steps: FakeStep[] = [],
  options: ConstructorParameters<typeof FakeOpenAI>[0] = {},
): Promise<{ fake: FakeOpenAI; model: OpenAIResponsesModel }> {
  const fake = new FakeOpenAI({ steps, ...options });
  const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ maxRetries: 0 }) });
  return { fake, model };
}

async function streamed(
  model: OpenAIResponsesModel,
  request: ModelRequest,
): Promise<{ response: ModelResponse; events: ResponseStreamEvent[] }> {
  const events: ResponseStreamEvent[] = [];
  return { response: await callModel(model, request, (event) => events.push(event)), events };
}

/** Reads a stream and gives what was thrown, with the events before it. */
async function failing(
  model: OpenAIResponsesModel,
  request: ModelRequest = modelRequest(),
): Promise<{ error: unknown; events: ResponseStreamEvent[] }> {
  const events: ResponseStreamEvent[] = [];
  try {
    for await (const event of model.streamResponse(request)) events.push(event);
  } catch (error) {
    return { error, events };
  }
  throw new Error('The stream did not fail.');
}

const lookup = tool({
  name: 'lookup',
  description: 'Looks up.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false },
  execute: () => '',
});

describe('OpenAIResponsesModel', () => {
  it('gives output, usage, response id and request id of a plain answer, and the usage as it came when asked [MODEL-530, 431, 430]', async () => {
    const { model, fake } = await setUp(['Hello there.']);
    const response = await model.getResponse(modelRequest({ modelSettings: { preserveRawUsage: true } }));
    expect(response).toMatchObject({
      output: [{ type: 'message', content: [{ text: 'Hello there.' }] }],
      responseId: 'resp_0001',
      requestId: 'req_0001',
      usage: { requests: 1 },
    });
    expect(response.rawUsage).toEqual({
      input_tokens: expect.any(Number),
      output_tokens: expect.any(Number),
      total_tokens: response.usage.totalTokens,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    });
    expect(fake.requests[0]?.body).toMatchObject({ model: 'gpt-5.6-luna', tools: [] });
  });

  it('streams every event unchanged and gives the same response as the plain call [MODEL-535, 536, 107]', async () => {
    const { model } = await setUp(['Hello there, friend.']);
    const plain = await (await setUp(['Hello there, friend.'])).model.getResponse(modelRequest());
    const { response, events } = await streamed(model, modelRequest({ modelSettings: { preserveRawUsage: true } }));
    assertResponseStream(events);
    expect(events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta)).toEqual([
      'Hello',
      ' there,',
      ' friend.',
    ]);
    expect(response).toMatchObject({
      output: plain.output,
      usage: plain.usage,
      responseId: 'resp_0001',
      requestId: 'req_0001',
      rawUsage: { total_tokens: plain.usage.totalTokens },
    });
  });

  it('never changes the items it is given, and sends none of what other providers left [MODEL-503, 504] [MODEL#27]', async () => {
    const { model, fake } = await setUp(['ok']);
    const input = [
      { role: 'user', content: 'a' },
      { type: 'reasoning', id: 'x', summary: [], provider_data: { from: 'else' } },
      {
        type: 'message',
        role: 'assistant',
        id: '__fake_id__',
        status: 'completed',
        content: [{ type: 'output_text', text: 'b', annotations: [] }],
        provider_data: { model: 'm' },
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'lookup', arguments: '{}', created_by: 'server' },
      { type: 'function_call_output', call_id: 'c1', output: 'x', created_by: 'server' },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', provider_data: { x: 1 } },
    ] as never;
    const before = structuredClone(input);
    await model.getResponse(modelRequest({ input }));
    expect(input).toEqual(before);
    expect(fake.requests[0]?.body).toMatchObject({
      input: [
        { role: 'user', content: 'a' },
        {
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'b', annotations: [] }],
        },
        { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'lookup', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'x' },
      ],
    });
  });

  it('lets errors of the client pass as they are [MODEL-920]', async () => {
    const { model, fake } = await setUp();
    fake.inject({ kind: 'status', status: 429, headers: { 'retry-after': '2' } });
    await expect(model.getResponse(modelRequest())).rejects.toBeInstanceOf(RateLimitError);
    fake.inject({ kind: 'status', status: 400 });
    expect((await failing(model)).error).toBeInstanceOf(BadRequestError);
    fake.inject({ kind: 'refuse' });
    await expect(model.getResponse(modelRequest())).rejects.toBeInstanceOf(APIConnectionError);
    fake.inject({ kind: 'malformed' });
    await expect(model.getResponse(modelRequest())).rejects.toBeInstanceOf(SyntaxError);
  });

  it.each(['failed', 'incomplete'] as const)(
    'makes a %s response an error that has the response and its tokens, in both forms [MODEL-531, 538, 921] [MODEL#9]',
    async (status) => {
      const { model, fake } = await setUp(['half an', 'half an']);
      fake.inject({ kind: 'terminal', status, times: 2 });
      const plain = await model.getResponse(modelRequest()).catch((error: unknown) => error);
      const { error: streamedError, events } = await failing(model);
      for (const error of [plain, streamedError]) {
        expect(error).toBeInstanceOf(ModelBehaviorError);
        expect(error).toMatchObject({ status, response: { output: [{ type: 'message' }], usage: { requests: 1 } } });
        expect((error as ModelBehaviorError).response?.usage.totalTokens).toBeGreaterThan(0);
        expect((error as Error).message).toContain(status === 'failed' ? 'server_error' : 'max_output_tokens');
        expect((error as Error).message).not.toContain('half an');
        expect((error as Error).message).not.toContain('failed to generate');
      }
      expect((streamedError as ModelBehaviorError).incompleteDetails).toEqual(
        status === 'incomplete' ? { reason: 'max_output_tokens' } : undefined,
      );
      expect(events.at(-1)?.type).toBe(`response.${status}`);
    },
  );

  it.each(['flat', 'nested'] as const)(
    'yields a %s error event of the server and fails with its code [MODEL-541] [MODEL#8]',
    async (shape) => {
      const { model, fake } = await setUp(['Hello there']);
      fake.inject({ kind: 'errorEvent', code: 'server_is_overloaded', shape, afterEvents: 3 });
      const { error, events } = await failing(model);
      expect(events.at(-1)).toEqual({
        type: 'error',
        code: 'server_is_overloaded',
        message: 'The service reports server_is_overloaded.',
        param: null,
        sequence_number: 3,
      });
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toContain('server_is_overloaded');
      expect((error as ModelBehaviorError).responseError).toMatchObject({ code: 'server_is_overloaded' });
    },
  );

  it('knows a stream that ends without a terminal event, before and after its first one [MODEL-540] [MODEL#7]', async () => {
    const { model, fake } = await setUp(['Hello', 'Hello']);
    fake.inject({ kind: 'truncate', afterEvents: 2 });
    const late = await failing(model);
    expect(late.events).toHaveLength(2);
    expect(late.error).toBeInstanceOf(ModelStreamTruncatedError);
    expect(late.error).toMatchObject({ responseStarted: true });
    fake.inject({ kind: 'truncate', afterEvents: 0 });
    expect((await failing(model)).error).toMatchObject({ code: 'model_stream_truncated', responseStarted: false });
  });

  it('passes on what breaks the connection in mid-stream [MODEL-536]', async () => {
    const { model, fake } = await setUp(['Hello']);
    fake.inject({ kind: 'cut', afterEvents: 2 });
    const { error, events } = await failing(model);
    expect(events).toHaveLength(2);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ cause: { code: 'UND_ERR_SOCKET' } });
  });

  it('sends nothing after an abort, and rejects at once when aborted in flight or in mid-stream [MODEL-120, 121, 125] [MODEL#22]', async () => {
    const { model, fake } = await setUp();
    const aborted = AbortSignal.abort(new Error('stop'));
    await expect(model.getResponse(modelRequest({ signal: aborted }))).rejects.toBeInstanceOf(RunAbortedError);
    expect(fake.requests).toHaveLength(0);

    fake.inject({ kind: 'hang' });
    const waiting = new AbortController();
    const pending = model.getResponse(modelRequest({ signal: waiting.signal }));
    setTimeout(() => waiting.abort(new Error('enough')), 5);
    await expect(pending).rejects.toMatchObject({ name: 'AbortError', cause: { message: 'enough' } });

    const running = new AbortController();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const event of model.streamResponse(modelRequest({ signal: running.signal }))) {
        seen.push(event.type);
        if (seen.length === 3) running.abort();
      }
    })();
    await expect(reading).rejects.toBeInstanceOf(RunAbortedError);
    expect(seen).toHaveLength(3);
  });

  it('gives no answer after an abort, also of a client that answers all the same [MODEL-121]', async () => {
    const abort = new AbortController();
    const create = async (): Promise<unknown> => {
      abort.abort('enough');
      return { id: 'resp', status: 'completed', output: [], usage: null };
    };
    const client = { baseURL: 'https://x.test', responses: { create } } as never;
    const answer = new OpenAIResponsesModel('m', { client }).getResponse(modelRequest({ signal: abort.signal }));
    await expect(answer).rejects.toMatchObject({ name: 'AbortError', cause: 'enough' });
  });

  it('has the usage as the service gave it, detached from the client; what is no JSON is left out and fails nothing [MODEL-430]', async () => {
    const usage = { input_tokens: 3, output_tokens: 1, total_tokens: 4, more: { of: ['the service'] } };
    const answer = (given: object) => ({ id: 'resp', status: 'completed', output: [], usage: given });
    const modelOf = (given: object): OpenAIResponsesModel => {
      const create = async ({ stream }: { stream?: boolean }): Promise<unknown> =>
        stream
          ? (async function* () {
              yield { type: 'response.completed', sequence_number: 0, response: answer(given) };
            })()
          : answer(given);
      return new OpenAIResponsesModel('m', { client: { baseURL: 'https://x.test', responses: { create } } as never });
    };
    const request = modelRequest({ modelSettings: { preserveRawUsage: true } });
    const forms = [
      (model: OpenAIResponsesModel) => model.getResponse(request),
      async (model: OpenAIResponsesModel) => (await streamed(model, request)).response,
    ];
    for (const ask of forms) {
      const given = structuredClone(usage);
      const { rawUsage } = await ask(modelOf(given));
      given.more.of.push('changed later');
      expect(rawUsage).toEqual(usage);
      const response = await ask(modelOf({ ...usage, more: 1n }));
      expect([response.rawUsage, response.usage.totalTokens]).toEqual([undefined, 4]);
    }
  });

  it('closes the stream of the server once when its reader leaves, and does not wait for that [MODEL-122, 124]', async () => {
    const close = vi.fn<() => Promise<never>>(() => new Promise<never>(() => {}));
    const client = {
      baseURL: 'https://x.test',
      responses: {
        create: () =>
          Promise.resolve({
            [Symbol.asyncIterator]: () => ({
              next: async () => ({ done: false, value: { type: 'response.created', sequence_number: 0 } }),
              return: close,
            }),
          }),
      },
    };
    const model = new OpenAIResponsesModel('m', { client: client as never });
    for await (const event of model.streamResponse(modelRequest())) {
      expect(event.type).toBe('response.created');
      break;
    }
    expect(close).toHaveBeenCalledTimes(1);
  });

  it.each(['response.completed', 'response.failed', 'response.incomplete', 'error'])(
    'passes on nothing behind %s, also of a service that goes on [MODEL-106]',
    async (terminal) => {
      const response = {
        id: 'r',
        status: terminal.replace('response.', ''),
        output: [{ type: 'message', role: 'assistant', content: [] }],
      };
      const types = ['response.created', terminal, 'response.output_text.delta', 'response.completed'];
      const create = async (): Promise<unknown> => ({
        async *[Symbol.asyncIterator]() {
          for (const [index, type] of types.entries()) yield { type, sequence_number: index, response };
        },
      });
      const model = new OpenAIResponsesModel('m', {
        client: { baseURL: 'https://x.test', responses: { create } } as never,
      });
      const events: ResponseStreamEvent[] = [];
      const read = async (): Promise<unknown> => {
        for await (const event of model.streamResponse(modelRequest())) events.push(event);
        return undefined;
      };
      const error = await read().catch((thrown: unknown) => thrown);
      expect(error instanceof ModelBehaviorError).toBe(terminal !== 'response.completed');
      expect(events.map(({ type }) => type)).toEqual(['response.created', terminal]);
      expect(events.at(-1)).toMatchObject({ response: { output: response.output } });
    },
  );

  it('passes on nothing more after an abort, also of a client that goes on [MODEL-121]', async () => {
    let number = 0;
    const next = async (): Promise<unknown> => ({
      done: false,
      value: { type: 'response.in_progress', sequence_number: number++ },
    });
    const create = async (): Promise<unknown> => ({ [Symbol.asyncIterator]: () => ({ next }) });
    const model = new OpenAIResponsesModel('m', {
      client: { baseURL: 'https://x.test', responses: { create } } as never,
    });
    const abort = new AbortController();
    const stream = model.streamResponse(modelRequest({ signal: abort.signal }));
    await stream.next();
    abort.abort('enough');
    await expect(stream.next()).rejects.toMatchObject({ name: 'AbortError', cause: 'enough' });
  });

  it('lets the failure of the response win over a failing close [MODEL-123] [MODEL#92]', async () => {
    const failed = {
      type: 'response.failed',
      sequence_number: 0,
      response: { id: 'r', status: 'failed', output: [], error: { code: 'rate_limit_exceeded', message: 'm' } },
    };
    const client = {
      baseURL: 'https://x.test',
      responses: {
        create: async () => ({
          [Symbol.asyncIterator]: () => ({
            next: async () => ({ done: false, value: failed }),
            return: () => Promise.reject(new Error('close')),
          }),
        }),
      },
    };
    const { error } = await failing(new OpenAIResponsesModel('m', { client: client as never }));
    expect(error).toMatchObject({ code: 'model_behavior', responseError: { code: 'rate_limit_exceeded' } });
  });

  it('refuses impossible requests before the client is touched [MODEL-515, 526]', async () => {
    const { model, fake } = await setUp();
    await expect(model.getResponse(modelRequest({ modelSettings: { toolChoice: 'required' } }))).rejects.toMatchObject({
      code: 'user_error',
    });
    await expect(
      model.getResponse(modelRequest({ tools: [lookup as never], modelSettings: { toolChoice: 'other' } })),
    ).rejects.toThrow(/'other'.*lookup/u);
    await expect(model.getResponse(modelRequest({ input: [{ role: 'user', content: 1n }] as never }))).rejects.toThrow(
      'input[0].content is a bigint',
    );
    expect(fake.requests).toHaveLength(0);
  });

  it('goes on from a stored response; an unknown one is the error of the API [MODEL-505] [MODEL#4]', async () => {
    const { model, fake } = await setUp(['One.', 'Two.']);
    const first = await model.getResponse(modelRequest('a'));
    await model.getResponse(
      modelRequest({ input: [{ role: 'user', content: 'b' }], previousResponseId: first.responseId }),
    );
    expect(fake.requests[1]?.body).toMatchObject({ previous_response_id: 'resp_0001', input: [{ content: 'b' }] });
    await expect(model.getResponse(modelRequest({ previousResponseId: 'resp_x' }))).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    });
    expect(model.buildRequest(modelRequest({ previousResponseId: 'r', conversationId: 'c' })).body).toMatchObject({
      conversation: 'c',
    });
    expect(model.buildRequest(modelRequest({ previousResponseId: 'r', conversationId: 'c' })).body).not.toHaveProperty(
      'previous_response_id',
    );
  });

  it('tells the official host from all others [MODEL-903]', async () => {
    const fake = new FakeOpenAI();
    const at = async (baseURL: string): Promise<boolean> =>
      new OpenAIResponsesModel('m', { client: await fake.client({ baseURL }) }).supportsDefaultPromptCacheKey();
    expect(await at('https://api.openai.com/v1')).toBe(true);
    expect(await at('https://api.openai.com.evil.example/v1')).toBe(false);
    expect(await at('http://api.openai.com/v1')).toBe(false);
  });
});
