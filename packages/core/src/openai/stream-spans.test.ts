import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { ModelBehaviorError } from '../base/errors.ts';
import { defineModel, getCurrentSpan, run, runStreamed, withTrace, Agent } from '../index.ts';
import type { Model, ModelRequest, Span } from '../index.ts';
import { callModel } from '../models/call.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { FakeOpenAI, InMemoryTraceProcessor, ScriptedModel, text } from '../testing/index.ts';
import { modelRequest } from '../testing/request.ts';
import { setTraceProcessors } from '../tracing.ts';
import { OpenAIResponsesModel } from './index.ts';
import { currentPlace } from '../../test/current-place.ts';
import { rejection } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => resetDefaults());

async function service(steps: ConstructorParameters<typeof FakeOpenAI>[0] = {}): Promise<{
  fake: FakeOpenAI;
  model: OpenAIResponsesModel;
}> {
  const fake = new FakeOpenAI(steps);
  return { fake, model: new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ maxRetries: 0 }) }) };
}
const modelSpan = (): Span<'response'> => recorder.spans.find((span) => span.type === 'response') as Span<'response'>;

/** Reads a model's stream inside a trace up to the first event of a kind, and gives the span as it stood when that was yielded. */
async function spanAt(model: Model, type: string, request: Partial<ModelRequest> = {}): Promise<Span<'response'>> {
  return await withTrace('t', async (trace) => {
    const stream = model.streamResponse(modelRequest({ tracing: 'enabled', traceParent: trace, ...request }));
    for await (const event of stream) {
      if (event.type !== type) continue;
      const { spanData, error } = modelSpan();
      return { spanData: { ...spanData }, error } as Span<'response'>;
    }
    throw new Error(`No event ${type}.`);
  });
}

describe('the span of a streamed call, for a reader who stops at the last event', () => {
  it('has usage and response when response.completed is read [MODEL-537] [TRACE-E7]', async () => {
    const { model } = await service({ steps: ['Hello'] });
    const { spanData, error } = await spanAt(model, 'response.completed');
    expect(spanData).toMatchObject({
      response: { id: 'resp_0001' },
      usage: { requests: 1, output_tokens: expect.any(Number) },
    });
    expect(error).toBeUndefined();
    expect(modelSpan().endTimeMs).toBeDefined();
  });

  it.each(['failed', 'incomplete'] as const)(
    'has error and usage when response.%s is read [MODEL-537] [TRACE-E7, T21]',
    async (status) => {
      const { model, fake } = await service({ steps: ['half'] });
      fake.inject({ kind: 'terminal', status });
      const { spanData, error } = await spanAt(model, `response.${status}`);
      expect(spanData.usage).toMatchObject({ requests: 1 });
      expect(error?.message).toBe('Error streaming response');
      expect(error?.data?.['error']).toContain(`response.${status}`);
    },
  );

  it('has the error when an error event is read [MODEL-537] [TRACE-E7]', async () => {
    const { model, fake } = await service({ steps: ['half'] });
    fake.inject({ kind: 'errorEvent', code: 'server_is_overloaded', afterEvents: 2 });
    const { error } = await spanAt(model, 'error');
    expect(error?.data?.['error']).toContain('server_is_overloaded');
  });

  it('keeps the provider’s failure when closing fails after it [TRACE-E3]', async () => {
    const failed = { type: 'response.failed', sequence_number: 0, response: { id: 'r', status: 'failed', output: [] } };
    const create = async (): Promise<unknown> => ({
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: failed }),
        return: () => Promise.reject(new Error('close')),
      }),
    });
    const client = { baseURL: 'https://x.test', responses: { create } };
    await rejection(
      withTrace('t', (trace) =>
        callModel(
          new OpenAIResponsesModel('m', { client: client as never }),
          modelRequest({ tracing: 'enabled', traceParent: trace }),
          () => {},
        ),
      ),
    );
    expect(modelSpan().error?.data?.['error']).toContain('response.failed');
  });
});

it('a model’s span is current and open while the model works, and not current while an event is handled [MODEL-944] [TRACE-C6]', async () => {
  const within: string[] = [];
  const event = (type: string): unknown => ({
    type,
    sequence_number: 0,
    response: { id: 'r', status: 'completed', output: [] },
  });
  const events = [event('response.created'), event('response.completed')];
  const create = async (): Promise<unknown> => {
    within.push(currentPlace());
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          within.push(currentPlace());
          const value = events.shift();
          return value === undefined ? { done: true } : { done: false, value };
        },
        return: async () => ({ done: true }),
      }),
    };
  };
  const model = new OpenAIResponsesModel('m', {
    client: { baseURL: 'https://x.test', responses: { create } } as never,
  });
  const outside: (string | undefined)[] = [];
  await withTrace('t', async (trace) => {
    for await (const _ of model.streamResponse(modelRequest({ tracing: 'enabled', traceParent: trace })))
      outside.push(getCurrentSpan()?.type);
  });
  expect(within.slice(0, 3)).toEqual(['response', 'response', 'response']);
  expect(outside).toEqual([undefined, undefined]);
  const scripted = new ScriptedModel([() => (within.push(currentPlace()), 'hi')], { trace: true });
  await withTrace('t', async (trace) => {
    for await (const _ of scripted.streamResponse(modelRequest({ tracing: 'enabled', traceParent: trace })))
      expect(getCurrentSpan()).toBeUndefined();
  });
  expect(within.at(-1)).toBe('generation');
  expect(recorder.spans.filter(({ endTimeMs }) => endTimeMs === undefined)).toEqual([]);
});

it('a model’s span is current and open while the model makes a plain answer, and over with it [MODEL-944] [TRACE-C6]', async () => {
  const within: string[] = [];
  const create = async (): Promise<unknown> => {
    within.push(currentPlace());
    return { id: 'r', status: 'completed', output: [] };
  };
  const client = { baseURL: 'https://x.test', responses: { create } } as never;
  const scripted = new ScriptedModel([() => (within.push(currentPlace()), 'hi')], { trace: true });
  await withTrace('t', async (traceParent) => {
    for (const model of [new OpenAIResponsesModel('m', { client }), scripted]) {
      await model.getResponse(modelRequest({ tracing: 'enabled', traceParent }));
      expect(recorder.spans.at(-1)?.endTimeMs).toBeDefined();
    }
  });
  expect(within).toEqual(['response', 'generation']);
});

bothForms((runForm, form) => {
  describe(`a provider error that cannot be shown (${form})`, () => {
    it('reaches the caller as it is, whatever logs and spans make of it [MODEL-932] [TRACE-E5]', async () => {
      class Hostile extends Error {
        override get message(): string {
          throw new Error('no message');
        }
        override toString(): string {
          throw new Error('no text');
        }
      }
      for (const dontLogModelData of [true, false]) {
        configureLogging({ level: 'debug', dontLogModelData, sink: () => {} });
        const hostile = new Hostile();
        const create = (): never => {
          throw hostile;
        };
        const client = { baseURL: 'https://x.test', responses: { create } };
        const agent = new Agent({ name: 'A', model: new OpenAIResponsesModel('m', { client: client as never }) });
        expect(await rejection(runForm(agent, 'go'))).toBe(hostile);
        expect(modelSpan().error?.data).toEqual({ error: 'Unrenderable Hostile' });
      }
    });

    it('is not even looked at without sensitive data; the span has usage alone [MODEL#71] [TRACE-E4]', async () => {
      let looked = 0;
      const guarded = new Error('secret');
      for (const member of ['message', 'stack', 'cause', 'toString'] as const)
        Object.defineProperty(guarded, member, { get: () => (looked++, 'secret') });
      const client = { baseURL: 'https://x.test', responses: { create: () => Promise.reject(guarded) } };
      const failing = new Agent({ name: 'A', model: new OpenAIResponsesModel('m', { client: client as never }) });
      looked = 0;
      expect(await rejection(runForm(failing, 'go', { traceIncludeSensitiveData: false }))).toBe(guarded);
      expect(modelSpan().error?.data).toEqual({ error: 'Error details are redacted.' });
      expect(looked).toBe(0);
      recorder = new InMemoryTraceProcessor();
      setTraceProcessors([recorder]);
      const { model } = await service({ steps: ['secret answer'] });
      await runForm(new Agent({ name: 'A', model }), 'secret question', { traceIncludeSensitiveData: false });
      expect(Object.keys(modelSpan().spanData)).toEqual(['usage']);
      expect(modelSpan().toJSON()?.span_data).toMatchObject({ response_id: null, usage: { requests: 1 } });
      expect(JSON.stringify([modelSpan().toJSON(), modelSpan().spanData])).not.toContain('secret');
    });
  });

  it(`an answer without usage counts as one request without tokens (${form}) [TRACE-S9] [MODEL-410]`, async () => {
    const bare = defineModel({ getResponse: async () => ({ output: [text('hi')] }) as never });
    const usage = {
      requests: 1,
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    };
    const answer = { id: 'r', status: 'completed', output: [text('hi')] };
    const create = async ({ stream }: { stream?: boolean }): Promise<unknown> =>
      stream
        ? (async function* () {
            yield { type: 'response.completed', sequence_number: 0, response: answer };
          })()
        : answer;
    const client = { baseURL: 'https://x.test', responses: { create } };
    await runForm(new Agent({ name: 'A', model: new OpenAIResponsesModel('m', { client: client as never }) }), 'go');
    expect(modelSpan().spanData.usage).toEqual(usage);
    const scripted = new ScriptedModel([{ output: 'hi' }], { trace: true });
    await runForm(new Agent({ name: 'A', model: scripted }), 'go');
    const generation = recorder.spans.find((span) => span.type === 'generation') as Span<'generation'>;
    expect(generation.spanData.usage).toEqual(usage);
    expect((await runForm(new Agent({ name: 'A', model: bare }), 'go')).context.usage).toMatchObject({
      requests: 1,
      totalTokens: 0,
    });
  });
});

it('a failure while the stream is opened closes the answer first [MODEL-542]', async () => {
  const order: string[] = [];
  const body = { cancel: async () => void order.push('closed') };
  const create = (): unknown =>
    Object.assign(Promise.resolve({}), {
      withResponse: async () => ({ data: { no: 'stream' }, request_id: 'req', response: { body } }),
    });
  const client = { baseURL: 'https://x.test', responses: { create } };
  const stream = new OpenAIResponsesModel('m', { client: client as never }).streamResponse(modelRequest());
  const error = await stream.next().catch((thrown: unknown) => (order.push('thrown'), thrown));
  expect(error).toBeInstanceOf(ModelBehaviorError);
  expect(order).toEqual(['closed', 'thrown']);
});

it('a stream that is left before its end gives nothing but what its events carried [MODEL-114]', async () => {
  let returned = false;
  const model: Model = {
    getResponse: () => Promise.reject(new Error('not called')),
    async *streamResponse() {
      try {
        yield { type: 'response.created', sequence_number: 0 } as never;
        await new Promise((resolve) => setTimeout(resolve, 0));
        yield { type: 'response.in_progress', sequence_number: 1 } as never;
        return { requestId: 'req', usage: { requests: 9 } as never };
      } finally {
        returned = true;
      }
    },
  };
  const stop = new AbortController();
  const stream = runStreamed(new Agent({ name: 'A', model }), 'go', { signal: stop.signal });
  const seen: string[] = [];
  for await (const event of stream) {
    if (event.type !== 'raw_response_event') continue;
    seen.push(event.data.type);
    stop.abort();
  }
  await rejection(stream.completed);
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect([seen, returned]).toEqual([['response.created'], true]);
  expect([stream.rawResponses, stream.context.usage.totalTokens]).toEqual([[], 0]);
  const failing: Model = {
    ...model,
    async *streamResponse() {
      yield { type: 'response.created', sequence_number: 0 } as never;
      throw new Error('down');
    },
  };
  const failed = runStreamed(new Agent({ name: 'A', model: failing }), 'go');
  await rejection(failed.completed);
  expect([failed.rawResponses, failed.context.usage.requests]).toEqual([[], 1]);
});

it('models ignore members of a request that they do not know [MODEL-102]', async () => {
  const { model, fake } = await service({ steps: ['hi', 'hi', 'hi'] });
  const later = modelRequest({
    inventedLater: { deep: [1] },
    handoffs: [],
    attempt: { number: 1, owner: {}, x: 1 },
  } as never);
  const known = modelRequest({ attempt: { number: 1, owner: {}, disableProviderRetries: false } });
  await model.getResponse(later);
  await model.getResponse(known);
  expect(fake.requests[0]?.body).toEqual(fake.requests[1]?.body);
  await callModel(new ScriptedModel(['a']), later);
  await callModel(new ScriptedModel(['a']), later, () => {});
  const seen: unknown[] = [];
  const passing = defineModel({
    getResponse: async (request) => (
      seen.push((request as { inventedLater?: unknown }).inventedLater),
      { output: [text('a')] } as never
    ),
  });
  await run(new Agent({ name: 'A', model: passing }), 'go');
  expect(seen).toEqual([undefined]);
});
