import { describe, expect, it, vi } from 'vitest';
import { ModelBehaviorError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { reasoning, text, toolCall } from '../testing/builders.ts';
import { assertResponseStream } from '../testing/response-stream.ts';
import { modelRequest } from '../testing/request.ts';
import { callModel } from './call.ts';
import type { Model } from './model.ts';
import { defineModel } from './define.ts';
import { synthesizeStream } from './synthesize.ts';

const answer = {
  output: [reasoning('Hm.'), text('Hi.'), toolCall('f')],
  usage: toUsage({ requests: 3 }),
  responseId: 'r',
  requestId: 'q',
  rawUsage: { a: 1 },
};

describe('defineModel', () => {
  it('makes a stream of a model that only answers [MODEL-113] [MODEL#79]', async () => {
    const model = defineModel({ getResponse: async () => answer });
    const events: ResponseStreamEvent[] = [];
    const response = await callModel(model, modelRequest(), (event) => events.push(event));
    assertResponseStream(events);
    expect(response).toEqual(answer);
  });

  it('looks at an answer as a plain call does: usage may be missing, an output may not [MODEL-113, 101]', async () => {
    const model = (response: object): Model => defineModel({ getResponse: async () => response as never });
    const stream = (response: object): Promise<unknown> => callModel(model(response), modelRequest(), () => {});
    expect(await stream({ output: answer.output })).toEqual({ output: answer.output, usage: toUsage() });
    await expect(stream({})).rejects.toBeInstanceOf(ModelBehaviorError);
  });

  it('collects the answer of a model that only streams, and keeps its failures [MODEL-113]', async () => {
    const model = defineModel({
      async *streamResponse({ input }) {
        if (input.length === 0) throw new TypeError('empty');
        yield* synthesizeStream(answer);
        return { requestId: 'q', usage: answer.usage };
      },
    });
    expect(await model.getResponse(modelRequest())).toEqual({
      output: answer.output,
      usage: answer.usage,
      responseId: 'r',
      requestId: 'q',
    });
    await expect(model.getResponse(modelRequest({ input: [] }))).rejects.toBeInstanceOf(TypeError);
  });

  it('keeps the other methods bound, a complete model as it is, and refuses one without a form', async () => {
    class Own {
      readonly #closed = vi.fn<() => void>();
      getResponse = async (): Promise<typeof answer> => answer;
      async close(): Promise<void> {
        this.#closed();
      }
      get closed(): unknown {
        return this.#closed;
      }
    }
    const own = new Own();
    await defineModel(own).close?.();
    expect(own.closed).toHaveBeenCalledTimes(1);
    expect(defineModel(own)).not.toHaveProperty('onRunEnd');
    const complete = { getResponse: own.getResponse, streamResponse: vi.fn<Model['streamResponse']>() };
    expect(defineModel(complete as never)).toBe(complete);
    expect(() => defineModel({} as never)).toThrow('getResponse or streamResponse');
  });
});
