import { Server } from 'node:net';
import OpenAI, { APIError, APIUserAbortError, BadRequestError, InternalServerError } from 'openai';
import { describe, expect, it, vi } from 'vitest';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { toolCall } from './builders.ts';
import { FakeOpenAI } from './fake-openai.ts';
import { assertResponseStream } from './response-stream.ts';

const body = { model: 'gpt-5.6-luna', input: 'Hello' } as const;

async function clientOf(fake: FakeOpenAI, maxRetries = 0): Promise<OpenAI> {
  return fake.client({ maxRetries, logLevel: 'off' });
}

async function read(
  stream: AsyncIterable<ResponseStreamEvent>,
): Promise<{ events: ResponseStreamEvent[]; error: unknown }> {
  const events: ResponseStreamEvent[] = [];
  try {
    for await (const event of stream) events.push(event);
  } catch (error) {
    return { events, error };
  }
  return { events, error: undefined };
}

describe('FakeOpenAI', () => {
  it('answers the real client from its steps, plain and streamed, with ids and headers of the service [MODEL-1201, 1202, 1206, 1207]', async () => {
    const fake = new FakeOpenAI({
      steps: ['One two.', [toolCall('a', { x: 1 })]],
      clock: { now: () => 5_000, monotonic: () => 0 },
    });
    const client = await clientOf(fake);
    const { data, response } = await client.responses.create(body).withResponse();
    expect(data).toMatchObject({
      id: 'resp_0001',
      created_at: 5,
      status: 'completed',
      output_text: 'One two.',
      model: 'gpt-5.6-luna',
    });
    expect([...response.headers.keys()]).toEqual(
      expect.arrayContaining(['x-request-id', 'openai-processing-ms', 'x-ratelimit-limit-requests']),
    );
    const { events } = await read(
      await client.responses.create({
        ...body,
        tools: [{ type: 'function', name: 'a', parameters: {}, strict: false }],
        stream: true,
      }),
    );
    assertResponseStream(events);
    expect(events.find((event) => event.type === 'response.function_call_arguments.delta')).toMatchObject({
      obfuscation: expect.stringMatching(/^x+$/u),
      item_id: 'fc_1',
    });
    expect(fake.requests).toMatchObject([
      { transport: 'http', method: 'POST', path: '/v1/responses', body, headers: { authorization: 'Bearer ***' } },
      { body: { stream: true } },
    ]);
    fake.assertDone();
  });

  it('answers the same steps with the same bytes, at the times of its clock [MODEL-1201]', async () => {
    const answers = async (): Promise<string[]> => {
      const fake = new FakeOpenAI({
        steps: ['One two three.', [toolCall('a', { x: 1 })], 'Four five six.'],
        clock: { now: () => 7_000, monotonic: () => 0 },
      });
      const tools = [{ type: 'function', name: 'a', parameters: {}, strict: false }];
      const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
      const url = 'https://fake.invalid/v1';
      const texts = [await (await fake.fetch(`${url}/models`, { headers })).text()];
      for (const stream of [false, true, true]) {
        const sent = { method: 'POST', headers, body: JSON.stringify({ ...body, tools, stream }) };
        texts.push(await (await fake.fetch(`${url}/responses`, sent)).text());
      }
      return texts;
    };
    const first = await answers();
    expect(await answers()).toEqual(first);
    for (const answer of first) {
      const times = [...answer.matchAll(/"created(?:_at)?":(\d+)/gu)].map(([, time]) => time);
      expect(new Set(times)).toEqual(new Set(['7']));
    }
  });

  it('asks nobody else, over fetch and over its server [MODEL-1201]', async () => {
    const elsewhere = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('the network was asked'));
    try {
      const fake = new FakeOpenAI({ steps: ['Hi.'] });
      expect((await (await clientOf(fake)).responses.create(body)).output_text).toBe('Hi.');
      expect(elsewhere).not.toHaveBeenCalled();
    } finally {
      elsewhere.mockRestore();
    }
  });

  it('records every request, those that it refuses too, and gives each answer an id of its own [MODEL-1202]', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['sk-secret'], steps: ['a', 'b', 'c'] });
    fake.inject({ kind: 'html', on: { nth: 6 } });
    fake.inject({ kind: 'status', status: 429, on: { nth: 7 } });
    await using server = await fake.listen();
    const authorization = 'Bearer sk-secret';
    const answers: Response[] = [];
    for (const at of ['https://fake.invalid/v1', server.baseURL]) {
      const ask = async (path: string, init: RequestInit, ask = at === server.baseURL ? fetch : fake.fetch) =>
        answers.push(await ask(`${at}${path}`, init));
      await ask('/models?limit=3&after=m', { headers: { authorization, 'x-own': '1' } });
      await ask('/responses', { method: 'POST', headers: { authorization }, body: JSON.stringify(body) });
      const streaming = JSON.stringify({ ...body, stream: true });
      await ask('/responses', { method: 'POST', headers: { authorization: 'Bearer sk-other' }, body: streaming });
      await ask('/nothing', { method: 'PUT', headers: { authorization }, body: '{"a"' });
    }
    await Promise.all(answers.map((answer) => answer.text()));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 401, 404, 200, 502, 429, 404]);
    const ids = answers.map((answer) => answer.headers.get('x-request-id'));
    expect(ids.every((id) => /^req_\d+$/u.test(id ?? ''))).toBe(true);
    expect(new Set(ids).size).toBe(answers.length);
    for (const { headers } of answers)
      for (const name of ['openai-processing-ms', 'x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests'])
        expect(headers.get(name)).toMatch(/^\d+$/u);
    const half = [
      {
        method: 'GET',
        path: '/v1/models',
        query: { limit: '3', after: 'm' },
        headers: { authorization: 'Bearer ***', 'x-own': '1' },
        body: undefined,
      },
      { method: 'POST', path: '/v1/responses', query: {}, body },
      { headers: { authorization: 'Bearer ***' }, body: { ...body, stream: true } },
      { method: 'PUT', path: '/v1/nothing', body: '{"a"' },
    ];
    expect(fake.requests).toMatchObject([...half, ...half].map((request) => ({ transport: 'http', ...request })));
    expect(JSON.stringify(fake.requests)).not.toContain('sk-');
  });

  it('pads deltas unless it is asked not to; both streams keep the grammar [MODEL-1207]', async () => {
    const client = await clientOf(new FakeOpenAI({ steps: ['One.', 'One.', 'One.'] }));
    const padded: (boolean | undefined)[][] = [];
    for (const options of [undefined, { include_obfuscation: true }, { include_obfuscation: false }]) {
      const more = options && { stream_options: options };
      const { events } = await read(await client.responses.create({ ...body, ...more, stream: true }));
      assertResponseStream(events);
      const deltas = events.filter((event) => event.type.endsWith('.delta'));
      padded.push([...new Set(deltas.map((event) => 'obfuscation' in event))]);
    }
    expect(padded).toEqual([[true], [true], [false]]);
  });

  it('listens where only programs of this machine can ask [MODEL-1201]', async () => {
    const listening = vi.spyOn(Server.prototype, 'listen');
    try {
      await using server = await new FakeOpenAI().listen();
      const address = (listening.mock.contexts[0] as Server).address();
      expect(address).toMatchObject({ address: '127.0.0.1', port: Number(new URL(server.baseURL).port) });
    } finally {
      listening.mockRestore();
    }
  });

  it('works as a server of this machine, for any HTTP client', async () => {
    const fake = new FakeOpenAI({ steps: ['Hi.', 'Hi there.'], models: ['m'] });
    await using server = await fake.listen();
    const client = new OpenAI({ apiKey: 'k', baseURL: server.baseURL, maxRetries: 0 });
    expect((await client.responses.create({ ...body, model: 'm' })).output_text).toBe('Hi.');
    const { events } = await read(await client.responses.create({ ...body, model: 'm', stream: true }));
    assertResponseStream(events);
    expect((await client.models.list()).data.map((model) => model.id)).toEqual(['m']);
    fake.inject({ kind: 'cut', afterEvents: 1 });
    fake.add('Hi.');
    const cut = await read(await client.responses.create({ ...body, model: 'm', stream: true }));
    expect(cut.events).toHaveLength(1);
    expect(cut.error).toBeInstanceOf(TypeError);
  });

  it('keeps responses, unless told not to, and goes on from them [MODEL-1204]', async () => {
    const fake = new FakeOpenAI({ steps: ['a', 'b', 'c'] });
    const client = await clientOf(fake);
    const kept = await client.responses.create(body);
    const gone = await client.responses.create({ ...body, store: false });
    expect((await client.responses.retrieve(kept.id)).id).toBe(kept.id);
    await expect(client.responses.retrieve(gone.id)).rejects.toMatchObject({ status: 404 });
    await client.responses.create({ ...body, previous_response_id: kept.id });
    await expect(client.responses.create({ ...body, previous_response_id: gone.id })).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    });
    await client.responses.delete(kept.id);
    await expect(client.responses.retrieve(kept.id)).rejects.toMatchObject({ status: 404 });
  });

  it('counts what a cache key has seen before as cached tokens', async () => {
    const client = await clientOf(new FakeOpenAI({ steps: ['a', 'b'] }));
    const ask = (text: string[]): Promise<{ usage?: { input_tokens_details: { cached_tokens: number } } }> =>
      client.responses.create({
        model: 'm',
        prompt_cache_key: 'k',
        input: text.map((content) => ({ role: 'user', content })),
      });
    expect((await ask(['one'])).usage?.input_tokens_details.cached_tokens).toBe(0);
    expect((await ask(['one', 'two'])).usage?.input_tokens_details.cached_tokens).toBeGreaterThan(0);
  });

  it('refuses wrong keys, paths, methods and bodies [MODEL-1203]', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['sk-1'] });
    const post = (path: string, init: RequestInit): Promise<Response> =>
      fake.fetch(`https://fake.invalid/v1${path}`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-1' },
        ...init,
      });
    expect((await post('/responses', { headers: {} })).status).toBe(401);
    const wrong = await post('/responses', { headers: { authorization: 'Bearer sk-2' } });
    expect([wrong.status, await wrong.json()]).toEqual([
      401,
      {
        error: {
          message: 'Incorrect API key provided.',
          type: 'invalid_request_error',
          param: null,
          code: 'invalid_api_key',
        },
      },
    ]);
    for (const [path, sent, status] of [
      ['/nothing', '{}', 404],
      ['/models', '{}', 405],
      ['/responses', '{"a"', 400],
      ['/responses', '[]', 400],
    ] as const) {
      const refused = await post(path, { body: sent });
      expect([refused.status, await refused.json()]).toEqual([
        status,
        { error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: null } },
      ]);
    }
    const open = new FakeOpenAI({ steps: ['x'] });
    const anyKey = { method: 'POST', headers: { authorization: 'Bearer any' }, body: JSON.stringify(body) };
    expect((await open.fetch('https://fake.invalid/v1/responses', anyKey)).status).toBe(200);
    expect((await open.fetch('https://fake.invalid/v1/models')).status).toBe(401);
  });

  const user = { role: 'user', content: 'x' };
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'c', output: 'x' };
  const strictTool = (parameters: object): object => ({ type: 'function', name: 'f', parameters, strict: true });
  it.each<[string, object, string | null]>([
    ['an unknown body member', { foo: 1 }, 'foo'],
    ['provider data', { input: [{ ...user, provider_data: {} }] }, 'input[0].provider_data'],
    ['created_by', { input: [{ ...call, created_by: 'x' }, output] }, 'input[0].created_by'],
    ['a wrapper member', { input: [{ ...user, rawItem: {} }] }, 'input[0].rawItem'],
    [
      'a placeholder id',
      { input: [{ role: 'assistant', type: 'message', id: '__fake_id__', content: 'x' }] },
      'input[0].id',
    ],
    ['an unknown kind of item', { input: [{ type: 'thing' }] }, 'input[0].type'],
    [
      'an unknown member of a part',
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'x', y: 1 }] }] },
      'input[0].content[0].y',
    ],
    [
      'two sources of a file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'a', file_url: 'b' }] }] },
      'input[0].content[0]',
    ],
    ['an output without its call', { input: [output] }, 'input'],
    ['a call without its output', { input: [call] }, 'input'],
    [
      'two items of one id',
      {
        input: [
          { ...user, id: 'msg_1' },
          { ...user, id: 'msg_1' },
        ],
      },
      'input',
    ],
    ['reasoning without what follows it', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }, user] }, 'input'],
    [
      'reasoning before a system message',
      {
        input: [
          { type: 'reasoning', id: 'rs_1', summary: [] },
          { role: 'system', content: 'x' },
        ],
      },
      'input',
    ],
    [
      'reasoning before a developer message',
      {
        input: [
          { type: 'reasoning', id: 'rs_1', summary: [] },
          { role: 'developer', content: 'x' },
        ],
      },
      'input',
    ],
    ['a tool choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    [
      'a tool choice of no tool',
      {
        tools: [strictTool({ type: 'object', properties: {}, required: [], additionalProperties: false })],
        tool_choice: { type: 'function', name: 'g' },
      },
      'tool_choice',
    ],
    [
      'a strict tool with an open object',
      { tools: [strictTool({ type: 'object', properties: {} })] },
      'tools[0].parameters',
    ],
    [
      'a strict tool with an optional member',
      {
        tools: [
          strictTool({
            type: 'object',
            properties: { a: { type: 'string' } },
            required: [],
            additionalProperties: false,
          }),
        ],
      },
      'tools[0].parameters',
    ],
    [
      'a strict format that is open further down',
      {
        text: {
          format: {
            type: 'json_schema',
            name: 'n',
            strict: true,
            schema: {
              type: 'object',
              properties: { a: { type: 'object', properties: {} } },
              required: ['a'],
              additionalProperties: false,
            },
          },
        },
      },
      'text.format.schema',
    ],
    ['a temperature out of range', { temperature: 3 }, 'temperature'],
  ])('refuses %s as the API does, unless it is not strict [MODEL-1205] [MODEL#80]', async (_name, extra, param) => {
    const refused = (await clientOf(new FakeOpenAI({ steps: ['no'] }))).responses.create({
      ...body,
      ...extra,
    } as never);
    await expect(refused).rejects.toBeInstanceOf(BadRequestError);
    await expect(refused).rejects.toMatchObject({ param });
    const lax = await (
      await clientOf(new FakeOpenAI({ steps: ['yes'], strict: false }))
    ).responses.create({ ...body, ...extra } as never);
    expect(lax.output_text).toBe('yes');
  });

  it('answers like the offline model when it has no steps [MODEL-1206]', async () => {
    const client = await clientOf(new FakeOpenAI());
    const tools = [
      {
        type: 'function' as const,
        name: 'lookup_order',
        description: 'Looks an order up',
        parameters: {
          type: 'object',
          properties: { orderId: { type: 'string' } },
          required: ['orderId'],
          additionalProperties: false,
        },
        strict: true,
      },
    ];
    const first = await client.responses.create({ model: 'm', input: 'Where is order 1042?', tools });
    expect(first.output).toMatchObject([
      { type: 'function_call', name: 'lookup_order', arguments: '{"orderId":"1042"}' },
    ]);
    const call = first.output[0] as OpenAI.Responses.ResponseFunctionToolCall;
    const second = await client.responses.create({
      model: 'm',
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: '{"id":"1042","status":"shipped"}' }],
      tools,
    });
    expect(second.output_text).toBe('Order 1042: status shipped.');
  });
});

/** What the real client does with faults of the service: the models rely on each of these. F11 and F12 are of transports that are not built. */
describe('FakeOpenAI faults, seen by the client [MODEL-1209]', () => {
  it('F1: an error event makes the stream throw an APIError without status', async () => {
    const fake = new FakeOpenAI({ steps: ['a', 'a'] });
    const client = await clientOf(fake);
    for (const shape of ['flat', 'nested'] as const) {
      fake.inject({ kind: 'errorEvent', code: 'overloaded', shape });
      const { events, error } = await read(await client.responses.create({ ...body, stream: true }));
      expect(events).toHaveLength(1);
      expect(error).toBeInstanceOf(APIError);
      expect(error).toMatchObject({ status: undefined, code: 'overloaded' });
    }
  });

  it('F2: a cut socket is a TypeError that is no APIError', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    fake.inject({ kind: 'cut' });
    const { error } = await read(await (await clientOf(fake)).responses.create({ ...body, stream: true }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } });
  });

  it('F3: a clean end without terminal event just ends the iteration', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    fake.inject({ kind: 'truncate', afterEvents: 2 });
    const { events, error } = await read(await (await clientOf(fake)).responses.create({ ...body, stream: true }));
    expect([events.length, error]).toEqual([2, undefined]);
  });

  it('F4: an abort ends a stream silently, before headers it throws APIUserAbortError', async () => {
    const fake = new FakeOpenAI({ steps: ['a b c d'] });
    const client = await clientOf(fake);
    const abort = new AbortController();
    let count = 0;
    for await (const _ of await client.responses.create({ ...body, stream: true }, { signal: abort.signal }))
      if (++count === 2) abort.abort();
    expect(count).toBe(2);
    fake.inject({ kind: 'hang' });
    const pending = client.responses.create(body, { signal: AbortSignal.timeout(5) });
    await expect(pending).rejects.toBeInstanceOf(APIUserAbortError);
  });

  it('F5: broken JSON is a SyntaxError, in a body and in a frame', async () => {
    const fake = new FakeOpenAI({ steps: ['a', 'a'] });
    const client = await clientOf(fake, 2);
    fake.inject({ kind: 'malformed' });
    await expect(client.responses.create(body)).rejects.toBeInstanceOf(SyntaxError);
    fake.inject({ kind: 'malformed' });
    expect((await read(await client.responses.create({ ...body, stream: true }))).error).toBeInstanceOf(SyntaxError);
    expect(fake.requests).toHaveLength(2);
  });

  it('F6 to F8: names of errors, absent request ids, additions to a response', async () => {
    const fake = new FakeOpenAI({ steps: ['a', { status: 500, headers: { 'x-request-id': '' } }] });
    const client = await clientOf(fake);
    const response = await client.responses.create(body);
    expect(Object.keys(response)).toContain('output_text');
    expect(Object.keys(response)).not.toContain('_request_id');
    expect(response).toHaveProperty('_request_id', 'req_0001');
    await expect(client.responses.create(body)).rejects.toMatchObject({ name: 'Error' });
    const silent = new FakeOpenAI({ steps: ['a', { status: 500 }] });
    const withoutIds = new OpenAI({
      apiKey: 'test-key',
      maxRetries: 0,
      fetch: async (url, init) => {
        const answer = await silent.fetch(url, init);
        const headers = new Headers(answer.headers);
        headers.delete('x-request-id');
        return new Response(answer.body, { status: answer.status, headers });
      },
    });
    expect((await withoutIds.responses.create(body).withResponse()).request_id).toBeNull();
    await expect(withoutIds.responses.create(body)).rejects.toMatchObject({ requestID: null });
  });

  it('F9: the client retries by itself, as the service says', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    const client = await clientOf(fake, 2);
    fake.inject({ kind: 'status', status: 503, headers: { 'retry-after-ms': '1' }, times: 2 });
    expect((await client.responses.create(body)).output_text).toBe('a');
    expect(fake.requests).toHaveLength(3);
    fake.inject({ kind: 'status', status: 503, headers: { 'x-should-retry': 'false' } });
    await expect(client.responses.create(body)).rejects.toBeInstanceOf(InternalServerError);
    expect(fake.requests).toHaveLength(4);
  });

  it('F10: headers of a request replace those of the client, null removes one', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    const client = await fake.client({ defaultHeaders: { 'x-a': '1' } });
    await client.responses.create(body, { headers: { 'User-Agent': 'me', 'x-a': null } });
    expect(fake.requests[0]?.headers['user-agent']).toBe('me');
    expect(fake.requests[0]?.headers).not.toHaveProperty('x-a');
  });

  it('applies faults in order, to the nth request that fits, as often as told, until removed [MODEL-1208]', async () => {
    const fake = new FakeOpenAI({ steps: ['a', 'b', 'c'] });
    const client = await clientOf(fake);
    fake.inject({ kind: 'status', status: 418, on: { method: 'GET', path: '/v1/models' } });
    fake.inject({ kind: 'html', on: { path: /responses/u, nth: 2 } });
    const remove = fake.inject({ kind: 'status', status: 400 });
    remove();
    expect((await client.responses.create(body)).output_text).toBe('a');
    await expect(client.responses.create(body)).rejects.toMatchObject({ status: 502 });
    expect((await client.responses.create(body)).output_text).toBe('b');
    await expect(client.models.list()).rejects.toMatchObject({ status: 418 });
    await client.models.list();
    fake.inject({ kind: 'delay', ms: 20 });
    fake.inject({ kind: 'slow', ms: 2 });
    let ticked = false;
    setTimeout(() => (ticked = true), 5);
    await read(await client.responses.create({ ...body, stream: true }));
    expect(ticked).toBe(true);
  });

  it('answers with each fault once, plain and streamed, over fetch and over its server [MODEL-1208]', async () => {
    const fake = new FakeOpenAI();
    await using server = await fake.listen();
    const clients = [
      await clientOf(fake),
      new OpenAI({ apiKey: 'k', baseURL: server.baseURL, maxRetries: 0, logLevel: 'off' }),
    ];
    for (const [index, client] of clients.entries())
      for (const stream of [false, true]) {
        const ask = async (): Promise<unknown> => {
          const answer = await client.responses.create({ ...body, stream });
          if (!(Symbol.asyncIterator in answer)) return { response: answer };
          const { events, error } = await read(answer);
          if (error !== undefined) throw error as Error;
          return events.at(-1);
        };
        const isFetch = index === 0;
        fake.inject({ kind: 'refuse', on: { nth: 1 } });
        // Whoever listens cannot refuse: the socket is cut before an answer.
        await expect(ask()).rejects.toMatchObject({ name: 'Error', message: 'Connection error.' });
        for (const status of ['failed', 'incomplete'] as const) {
          const details =
            status === 'failed' ? { code: 'server_error', message: 'm' } : { reason: 'max_output_tokens' };
          fake.inject({ kind: 'terminal', status, details });
          const member = status === 'failed' ? 'error' : 'incomplete_details';
          expect(await ask()).toMatchObject({ response: { status, [member]: details } });
        }
        const headers = { 'retry-after': '7', 'retry-after-ms': '7000', 'x-should-retry': 'true' };
        fake.inject({ kind: 'status', status: 429, headers });
        const limited = await ask().catch((error: unknown) => error as APIError);
        expect(limited).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
        expect(Object.fromEntries((limited as APIError).headers ?? [])).toMatchObject(headers);
        fake.inject({ kind: 'html' });
        await expect(ask()).rejects.toMatchObject({ status: 502, headers: expect.anything() });
        fake.inject({ kind: 'cut' });
        await expect(ask()).rejects.toThrow(isFetch || stream ? /terminated|Connection error/u : /./u);
        expect(await ask()).toMatchObject({ response: { status: 'completed' } });
      }
  });

  it('keeps faults for later that have to wait: one breaks a request, the first that fits; waits add up [MODEL-1208]', async () => {
    const fake = new FakeOpenAI({ steps: ['a', 'b'] });
    const client = await clientOf(fake);
    fake.inject({ kind: 'html' });
    fake.inject({ kind: 'status', status: 418, times: 2 });
    fake.inject({ kind: 'status', status: 409, on: { nth: 2 } });
    fake.inject({ kind: 'terminal', status: 'failed' });
    const seen: unknown[] = [];
    for (let request = 0; request < 7; request++)
      seen.push(
        await client.responses.create(body).then(
          ({ status }) => status,
          (error: unknown) => (error as APIError).status,
        ),
      );
    expect(seen).toEqual([502, 418, 418, 409, 'failed', 'completed', 'completed']);
    const late = new FakeOpenAI({ steps: ['a'] });
    for (const ms of [30, 40]) late.inject({ kind: 'delay', ms });
    late.inject({ kind: 'status', status: 418 });
    const waits = vi.spyOn(globalThis, 'setTimeout');
    try {
      await expect((await clientOf(late)).responses.create(body)).rejects.toMatchObject({ status: 418 });
      expect(waits.mock.calls.map(([, ms]) => ms)).toContain(70);
    } finally {
      waits.mockRestore();
    }
  });

  it('removes a fault, and lets one that has no end go on [MODEL-1208]', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    const client = await clientOf(fake);
    const remove = fake.inject({ kind: 'status', status: 418, times: Infinity });
    for (let request = 0; request < 3; request++)
      await expect(client.responses.create(body)).rejects.toMatchObject({ status: 418 });
    remove();
    expect((await client.responses.create(body)).output_text).toBe('a');
  });

  it('throws what is left, and forgets everything on reset', async () => {
    const fake = new FakeOpenAI({ steps: ['a'] });
    expect(() => fake.assertDone()).toThrow('1 steps of the fake service were not used');
    fake.reset();
    fake.assertDone();
    expect(() => new FakeOpenAI({ key: 'x' } as never)).toThrow("Unknown option 'key'");
  });
});
