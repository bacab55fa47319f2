import { describe, expect, it, vi } from 'vitest';
import { ModelBehaviorError, ModelStreamTruncatedError, RunAbortedError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { text } from '../testing/builders.ts';
import { modelRequest } from '../testing/request.ts';
import { callModel } from './call.ts';
import type { Model, ModelResponse, ResponseMetadata } from './model.ts';
import { synthesizeStream } from './synthesize.ts';

const never = (): never => {
  throw new Error('This form is not called.');
};
type Events = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;
const streaming = (streamResponse: () => Events): Model => ({ getResponse: never, streamResponse });
const read = (model: Model, onEvent: (event: ResponseStreamEvent) => void = () => {}): Promise<ModelResponse> =>
  callModel(model, modelRequest(), onEvent);
const answer = { output: [text('Hi.')], usage: toUsage({ inputTokens: 2, totalTokens: 2 }), responseId: 'r1' };
const event = (type: string, members: object = {}): ResponseStreamEvent =>
  ({ type, sequence_number: 0, ...members }) as never;

describe('callModel', () => {
  it('never opens a stream for a plain call, and takes plain data with output alone [MODEL-101, 112, 410]', async () => {
    const model = { getResponse: async () => ({ output: [] }), streamResponse: never } as unknown as Model;
    expect(await callModel(model, modelRequest())).toMatchObject({
      output: [],
      usage: { requests: 1, totalTokens: 0 },
    });
    await expect(callModel({ getResponse: async () => ({}) } as never, modelRequest())).rejects.toBeInstanceOf(
      ModelBehaviorError,
    );
  });

  it('names the missing form of a model before any call', async () => {
    const getResponse = vi.fn<Model['getResponse']>();
    await expect(read({ getResponse } as never)).rejects.toMatchObject({
      code: 'user_error',
      message: expect.stringContaining('streamResponse'),
    });
    await expect(callModel({ streamResponse: getResponse } as never, modelRequest())).rejects.toThrow('getResponse');
    expect(getResponse).not.toHaveBeenCalled();
  });

  it('passes every event on and takes id, usage and facts from the end; returned usage wins [MODEL-106, 107] [MODEL#93]', async () => {
    const two = toUsage({ requests: 2, totalTokens: 9, requestUsageEntries: [answer.usage, answer.usage] });
    const seen: string[] = [];
    const response = await read(
      streaming(async function* () {
        yield* synthesizeStream(answer);
        return { requestId: 'req', rawUsage: { x: 1 }, usage: two };
      }),
      (item) => seen.push(item.type),
    );
    expect(response).toMatchObject({
      output: [{ content: [{ text: 'Hi.' }] }],
      responseId: 'r1',
      requestId: 'req',
      rawUsage: { x: 1 },
      usage: { requests: 2, totalTokens: 9 },
    });
    expect(response.usage.requestUsageEntries).toHaveLength(2);
    expect(seen.at(-1)).toBe('response.completed');
    const bare = await read(
      streaming(async function* () {
        yield* synthesizeStream(answer);
      }),
    );
    expect(bare).toMatchObject({ usage: { requests: 1, inputTokens: 2 } });
    expect(bare).not.toHaveProperty('requestId');
  });

  it('takes the items of the stream, by index, where the terminal output is empty, and only there [MODEL-108] [RUN-1307]', async () => {
    const [a, b] = [text('a'), text('b')];
    const done = [
      event('response.output_item.done', { output_index: 1, item: b }),
      event('response.output_item.done', { output_index: 0, item: a }),
    ];
    const model = (output: unknown[]): Model =>
      streaming(async function* () {
        yield* done;
        yield event('response.completed', { response: { id: 'r', output } });
      });
    expect((await read(model([]))).output).toEqual([a, b]);
    expect((await read(model([b]))).output).toEqual([b]);
  });

  it('fails for a stream without an end [RUN-1308]', async () => {
    const model = streaming(async function* () {
      yield event('response.created');
    });
    await expect(read(model)).rejects.toBeInstanceOf(ModelStreamTruncatedError);
    await expect(read(model)).rejects.toThrow('no final response was produced');
  });

  it.each([
    [
      'response.failed',
      {
        response: {
          status: 'failed',
          output: [text('x')],
          usage: { total_tokens: 3 },
          error: { code: 'c', message: 'secret' },
        },
      },
    ],
    [
      'response.incomplete',
      {
        response: { status: 'incomplete', output: [], incomplete_details: { reason: 'c' }, usage: { total_tokens: 3 } },
      },
    ],
    ['error', { code: 'c', message: 'secret' }],
    ['error', { error: { code: 'c', message: 'secret' } }],
    ['response.error', { error: { code: 'c' } }],
  ])(
    'ends at %s with an error that says why, and closes the iterator once [RUN-1308] [MODEL-412, 921]',
    async (type, members) => {
      const closed = vi.fn<() => void>();
      const seen: string[] = [];
      const model = streaming(async function* () {
        try {
          yield event('response.created');
          yield event(type, members);
          yield event('response.created');
        } finally {
          closed();
          // What tearing down costs is nobody's answer.
          throw new Error('teardown'); // eslint-disable-line no-unsafe-finally
        }
      });
      const error = await read(model, (item) => seen.push(item.type)).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as Error).message).toMatch(/\bc\b/u);
      expect((error as Error).message).not.toContain('secret');
      const tokens = 'response' in members ? 3 : undefined;
      expect((error as ModelBehaviorError).response?.usage.totalTokens).toBe(tokens);
      expect(seen).toEqual(['response.created', type]);
      expect(closed).toHaveBeenCalledTimes(1);
    },
  );

  it('closes the stream when a listener throws, whose error stays [MODEL-122, 123]', async () => {
    const closed = vi.fn<() => void>();
    const model = streaming(async function* () {
      try {
        yield* synthesizeStream(answer);
      } finally {
        closed();
      }
    });
    await expect(
      read(model, () => {
        throw new Error('listener');
      }),
    ).rejects.toThrow('listener');
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it('sends nothing after an abort, and waits neither for a deaf model nor for its close [MODEL-120, 121, 124]', async () => {
    const untouched = vi.fn<() => never>();
    const aborted = modelRequest({ signal: AbortSignal.abort('why') });
    await expect(callModel({ getResponse: untouched, streamResponse: untouched }, aborted)).rejects.toMatchObject({
      name: 'AbortError',
      cause: 'why',
    });
    await expect(
      callModel({ getResponse: untouched, streamResponse: untouched }, aborted, () => {}),
    ).rejects.toBeInstanceOf(RunAbortedError);
    expect(untouched).not.toHaveBeenCalled();

    const controller = new AbortController();
    const events: unknown[] = [];
    let late: (() => void) | undefined;
    const deaf: Model = {
      getResponse: () => new Promise(() => {}),
      async *streamResponse() {
        yield event('response.created');
        await new Promise<void>((resolve) => (late = resolve));
        yield event('response.in_progress');
      },
    };
    const plain = callModel(deaf, modelRequest({ signal: controller.signal }));
    const streamed = callModel(deaf, modelRequest({ signal: controller.signal }), (item) => events.push(item));
    setTimeout(() => controller.abort(), 1);
    await expect(plain).rejects.toBeInstanceOf(RunAbortedError);
    await expect(streamed).rejects.toBeInstanceOf(RunAbortedError);
    late?.();
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(events).toHaveLength(1);
  });
});
