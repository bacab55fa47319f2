import { describe, expect, it, vi } from 'vitest';
import { RunAbortedError } from '../base/errors.ts';
import { toUsage } from '../base/usage.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { callModel } from '../models/call.ts';
import type { ModelRequest, ModelResponse } from '../models/model.ts';
import { synthesizeStream } from '../models/synthesize.ts';
import { addTraceProcessor } from '../tracing/processors.ts';
import type { Span } from '../tracing/types.ts';
import { withTrace } from '../tracing/with.ts';
import { reasoning, refusal, text, toolCall } from './builders.ts';
import { assertResponseStream } from './response-stream.ts';
import { modelRequest } from './request.ts';
import { ModelScriptError } from './script-error.ts';
import { ScriptedModel } from './scripted-model.ts';
import type { ModelStep } from './script.ts';

async function streamed(
  model: ScriptedModel,
  request: ModelRequest = modelRequest(),
): Promise<{ response: ModelResponse; events: ResponseStreamEvent[] }> {
  const events: ResponseStreamEvent[] = [];
  return { response: await callModel(model, request, (event) => events.push(event)), events };
}

describe('ScriptedModel', () => {
  it('answers one step per call, with counted ids, in both forms [MODEL-1101, 1103] [MODEL#78]', async () => {
    const steps = (): ModelStep[] => [
      'Hello there',
      [reasoning('Hm.'), toolCall('a', { x: 1 })],
      [toolCall('b', '{', { callId: 'mine' }), toolCall('c')],
      refusal('No.'),
    ];
    const plain = new ScriptedModel(steps(), { chunk: 'word' });
    const streaming = new ScriptedModel(steps(), { chunk: 'word' });
    for (let step = 0; step < 4; step++) {
      const answer = await plain.getResponse(modelRequest());
      const { response, events } = await streamed(streaming);
      assertResponseStream(events);
      expect(response).toEqual(answer);
    }
    const ids = plain.calls.length;
    expect(ids).toBe(4);
    const again = new ScriptedModel(steps());
    const outputs = [];
    while (again.remaining > 0) outputs.push(await again.getResponse(modelRequest()));
    expect(outputs.map((response) => response.responseId)).toEqual(['resp_1', 'resp_2', 'resp_3', 'resp_4']);
    expect(
      outputs
        .flatMap((response) => [...response.output] as { id?: string; call_id?: string }[])
        .map((item) => item.call_id ?? item.id),
    ).toEqual(['msg_1', 'rs_1', 'call_1', 'mine', 'call_2', 'msg_2']);
    expect(outputs[0]?.usage).toEqual(toUsage());
  });

  it('passes over counted ids that the input has already, so that scripts can follow each other [MODEL-1103]', async () => {
    const input: AgentInputItem[] = [];
    const ids: unknown[] = [];
    for (let script = 0; script < 2; script += 1) {
      const model = new ScriptedModel([
        'Hello',
        [reasoning('Hm.'), toolCall('a')],
        toolCall('b', {}, { callId: 'mine' }),
      ]);
      while (model.remaining > 0) {
        const { response } = await streamed(model, modelRequest({ input }));
        input.push(...(response.output as AgentInputItem[]));
        ids.push(
          ...(response.output as readonly { id?: string; call_id?: string }[]).map((item) => item.call_id ?? item.id),
        );
      }
    }
    expect(ids).toEqual(['msg_1', 'rs_1', 'call_1', 'mine', 'msg_2', 'rs_2', 'call_2', 'mine']);
  });

  it('fails for a call without a step, and for steps without a call [MODEL-1101] [MODEL#77]', async () => {
    const model = new ScriptedModel(['one', 'two']);
    await model.getResponse(modelRequest());
    expect(() => model.assertDone()).toThrow(
      expect.objectContaining({
        code: 'unconsumed_model_steps',
        name: 'ModelScriptError',
        message: expect.stringContaining('1 of 2'),
      }),
    );
    expect(() => {
      using scope = model;
      expect(scope.remaining).toBe(1);
    }).toThrow(ModelScriptError);
    await model.getResponse(modelRequest());
    model.assertDone();
    await expect(model.getResponse(modelRequest())).rejects.toMatchObject({
      code: 'unexpected_model_call',
      callIndex: 2,
      message: expect.stringContaining('call 3'),
    });
    expect(model.calls).toHaveLength(3);
  });

  it('records detached snapshots, with tools as they are [MODEL-1104]', async () => {
    const model = new ScriptedModel(['a', 'b', 'c']);
    const tools = [{ name: 'x' }] as never;
    const handoffs = [{ toolName: 'y' }] as never;
    const outputSchema = { name: 'o', schema: {}, strict: true };
    const content = [{ type: 'input_text' as const, text: 'before' }];
    const input: AgentInputItem[] = [{ role: 'user', content }];
    const modelSettings = { temperature: 1, metadata: { a: '1' } };
    const variables: Record<string, string> = { name: 'Ada' };
    const prompt = { id: 'p', variables };
    await model.getResponse(modelRequest({ input, tools, handoffs, outputSchema, modelSettings, prompt }));
    input.push({ role: 'user', content: 'after' });
    content[0] = { type: 'input_text', text: 'after' };
    Object.assign(modelSettings, { temperature: 0 });
    modelSettings.metadata.a = '2';
    variables['name'] = 'Eve';
    expect(model.calls[0]).toMatchObject({ index: 0, stream: false });
    const { request } = model.calls[0] ?? {};
    expect(request?.input).toEqual([{ role: 'user', content: [{ type: 'input_text', text: 'before' }] }]);
    expect(request?.modelSettings).toEqual({ temperature: 1, metadata: { a: '1' } });
    expect(request?.prompt).toEqual({ id: 'p', variables: { name: 'Ada' } });
    expect(
      [request?.tools, request?.handoffs, request?.outputSchema].map(
        (kept, index) => kept === [tools, handoffs, outputSchema][index],
      ),
    ).toEqual([true, true, true]);
    await expect(
      model.getResponse(modelRequest({ input: [{ role: 'user', content: () => 1 }] as never })),
    ).rejects.toThrow('input[0].content');
    expect([model.calls.length, model.remaining]).toEqual([1, 2]);
  });

  it('knows of a call before its step is asked, also of one that has no step [MODEL-1101]', async () => {
    const known: unknown[] = [];
    const model: ScriptedModel = new ScriptedModel([
      (call) => {
        known.push(model.calls.length, model.calls[0] === call, model.remaining);
        return new TypeError('down');
      },
    ]);
    await expect(streamed(model)).rejects.toThrow('down');
    await expect(streamed(model)).rejects.toMatchObject({ code: 'unexpected_model_call', callIndex: 1 });
    expect(known).toEqual([1, true, 0]);
    expect(model.calls.map((call) => [call.index, call.stream])).toEqual([
      [0, true],
      [1, true],
    ]);
  });

  it.each<[string, unknown, RegExp]>([
    ['a number', 7, /Step 2 is not a step/u],
    ['an item without type', [{}], /Step 2 has no output item at index 0/u],
    ['an unknown member', { outptu: 'x' }, /unknown member 'outptu' \(did you mean 'output'\?\)/u],
    ['a wrong chunk', { output: 'x', chunk: 0 }, /wrong 'chunk'/u],
    ['a negative delay', { delayMs: -1 }, /wrong 'delayMs'/u],
    ['failAfterEvents without error', { failAfterEvents: 1 }, /'failAfterEvents' without 'error'/u],
    ['error with events', { events: [], error: 'x' }, /no 'failAfterEvents'/u],
  ])('refuses %s and adds nothing [MODEL-1102]', (_name, step, message) => {
    const model = new ScriptedModel(['fine']);
    expect(() => model.add(toolCall('a'), step as ModelStep)).toThrow(ModelScriptError);
    expect(() => model.add(step as ModelStep)).toThrow(
      expect.objectContaining({ code: 'invalid_model_step', message: expect.stringMatching(message) }),
    );
    expect(model.remaining).toBe(1);
  });

  it('copies what it is given, and counts no id for refused steps [MODEL-1102]', async () => {
    const item = toolCall('a');
    const model = new ScriptedModel([item]);
    item.name = 'changed';
    expect(() => model.add(toolCall('x'), 7 as never)).toThrow(ModelScriptError);
    model.add(toolCall('b'));
    expect((await model.getResponse(modelRequest())).output).toMatchObject([{ name: 'a', call_id: 'call_1' }]);
    const second = await model.getResponse(modelRequest());
    expect(second.output).toMatchObject([{ name: 'b', call_id: 'call_2' }]);
  });

  it('copies what it is given in depth, and gives a copy of its own to each call [MODEL-1102, 1103]', async () => {
    const step = {
      output: [text('before')],
      usage: { inputTokens: 1, inputTokensDetails: { cachedTokens: 1, cacheWriteTokens: 0 } },
      rawUsage: { deep: { a: 1 } },
    };
    const preserving = modelRequest({ modelSettings: { preserveRawUsage: true } });
    const defaults = { inputTokens: 5, inputTokensDetails: { cachedTokens: 5, cacheWriteTokens: 0 } };
    const model = new ScriptedModel([step, 'x', 'y'], { usage: defaults });
    Object.assign(step.output[0]?.content[0] ?? {}, { text: 'after' });
    step.usage.inputTokens = 9;
    step.usage.inputTokensDetails.cachedTokens = 9;
    step.rawUsage.deep.a = 9;
    expect(await model.getResponse(preserving)).toMatchObject({
      output: [{ content: [{ text: 'before' }] }],
      usage: { inputTokens: 1, inputTokensDetails: { cachedTokens: 1 } },
      rawUsage: { deep: { a: 1 } },
    });
    const { usage } = await model.getResponse(modelRequest());
    // Frozen or copied: whatever a caller does with it stays with the caller.
    Reflect.set(usage, 'inputTokens', 77);
    Reflect.set(usage.inputTokensDetails, 'cachedTokens', 77);
    expect((await streamed(model)).response.usage).toMatchObject({
      inputTokens: 5,
      inputTokensDetails: { cachedTokens: 5 },
    });
  });

  it('asks functions, again for what they return, and fails with what they throw [MODEL-1105]', async () => {
    const seen = vi.fn<(index: number, stream: boolean) => void>();
    const model = new ScriptedModel([
      async (call) => {
        seen(call.index, call.stream);
        return () => ({ output: 'deep' });
      },
      () => {
        throw new RangeError('expectation');
      },
    ]);
    expect((await streamed(model)).response.output).toMatchObject([{ content: [{ text: 'deep' }] }]);
    expect(seen).toHaveBeenCalledWith(0, true);
    await expect(model.getResponse(modelRequest())).rejects.toBeInstanceOf(RangeError);
    const failure = new RangeError('expectation');
    model.add(
      async () => {
        throw failure;
      },
      async () => async () => [toolCall('a'), text('b')],
      () => failure,
      () => 7 as never,
    );
    await expect(streamed(model)).rejects.toBe(failure);
    expect((await model.getResponse(modelRequest())).output).toMatchObject([{ name: 'a' }, { type: 'message' }]);
    await expect(streamed(model)).rejects.toBe(failure);
    await expect(streamed(model)).rejects.toMatchObject({ code: 'invalid_model_step' });
  });

  it('gives ids, usage and facts as told, raw usage only when asked [MODEL-1103, 1106, 430]', async () => {
    const step = { output: 'x', usage: { requests: 0 }, responseId: null, requestId: 'req', rawUsage: { a: 1 } };
    const model = new ScriptedModel([step, step, step, step, 'y', 'y'], { usage: { inputTokens: 3 } });
    const plain = await model.getResponse(modelRequest());
    expect(plain).toMatchObject({ usage: { requests: 0 }, requestId: 'req' });
    expect(plain).not.toHaveProperty('responseId');
    expect(plain).not.toHaveProperty('rawUsage');
    const asked = modelRequest({ modelSettings: { preserveRawUsage: true } });
    expect((await model.getResponse(asked)).rawUsage).toEqual({ a: 1 });
    expect((await streamed(model, asked)).response).toEqual({
      ...plain,
      output: expect.anything(),
      rawUsage: { a: 1 },
    });
    const unasked = (await streamed(model)).response;
    expect(unasked).toEqual({ ...plain, output: expect.anything() });
    expect(unasked).not.toHaveProperty('rawUsage');
    expect((await model.getResponse(modelRequest())).usage).toMatchObject({ requests: 1, inputTokens: 3 });
    expect((await streamed(model)).response).toMatchObject({
      responseId: 'resp_2',
      usage: { requests: 1, inputTokens: 3 },
    });
  });

  it('throws errors at once, or after so many events [MODEL-1108]', async () => {
    const model = new ScriptedModel([
      new TypeError('a'),
      { error: 'b' },
      { output: 'x', error: new Error('c'), failAfterEvents: 2 },
      { error: 'd', failAfterEvents: 0 },
      { events: synthesizeStream({ output: [], usage: toUsage() }), error: 'e', failAfterEvents: 1 },
    ]);
    await expect(model.getResponse(modelRequest())).rejects.toThrow('a');
    await expect(streamed(model)).rejects.toBe('b');
    const events: unknown[] = [];
    await expect(callModel(model, modelRequest(), (event) => events.push(event.type))).rejects.toThrow('c');
    expect(events).toEqual(['response.created', 'response.in_progress']);
    await expect(streamed(model)).rejects.toBe('d');
    await expect(streamed(model)).rejects.toBe('e');
  });

  it('yields exact events as they are and closes their iterator, however it ends [MODEL-1109]', async () => {
    const closed = vi.fn<() => void>();
    const source = async function* (): AsyncGenerator<ResponseStreamEvent> {
      try {
        yield* synthesizeStream({ output: [text('x')], usage: toUsage({ totalTokens: 4 }), responseId: 'own' });
      } finally {
        closed();
      }
    };
    const model = new ScriptedModel([{ events: source() }, { events: source() }, { events: source() }]);
    expect((await streamed(model)).response).toMatchObject({ responseId: 'own', usage: { totalTokens: 4 } });
    expect((await model.getResponse(modelRequest())).responseId).toBe('own');
    for await (const _ of model.streamResponse(modelRequest())) break;
    expect(closed).toHaveBeenCalledTimes(3);
  });

  it('closes the iterator of exact events on abort, and tells of a failing close where nothing else failed [MODEL-1109]', async () => {
    const closed: string[] = [];
    const closing = new Error('close');
    const all = synthesizeStream({ output: [text('x')], usage: toUsage() });
    const source = (name: string): AsyncIterable<ResponseStreamEvent> => ({
      [Symbol.asyncIterator]() {
        let at = 0;
        return {
          next: async () => {
            const value = all[at++];
            return value === undefined ? { done: true, value } : { done: false, value };
          },
          return: async () => {
            closed.push(name);
            throw closing;
          },
        };
      },
    });
    const failure = new Error('step');
    const model = new ScriptedModel([
      { events: source('left') },
      { events: source('failed'), error: failure, failAfterEvents: 1 },
      { events: source('aborted') },
    ]);
    const leave = async (): Promise<void> => {
      for await (const _ of model.streamResponse(modelRequest())) break;
    };
    await expect(leave()).rejects.toBe(closing);
    await expect(streamed(model)).rejects.toBe(failure);
    const abort = new AbortController();
    const read = (async () => {
      for await (const _ of model.streamResponse(modelRequest({ signal: abort.signal }))) abort.abort();
    })();
    await expect(read).rejects.toBeInstanceOf(RunAbortedError);
    expect(closed).toEqual(['left', 'failed', 'aborted']);
  });

  it.each([
    ['word', ['One', ' two', ' three']],
    [4, ['One ', 'two ', 'thre', 'e']],
    [undefined, ['One two three']],
  ] as const)('splits text, arguments and reasoning: %s [MODEL-1108]', async (chunk, pieces) => {
    const spoken = 'One two three';
    const model = new ScriptedModel([
      { output: [reasoning(spoken), toolCall('a', spoken), refusal(spoken), text(spoken)], chunk },
    ]);
    const { events } = await streamed(model);
    const byItem: string[][] = [];
    for (const event of events) {
      if (!event.type.endsWith('.delta')) continue;
      const { output_index: index, delta } = event as { output_index: number; delta: string };
      (byItem[index] ??= []).push(delta);
    }
    expect(byItem).toEqual(Array(4).fill(pieces));
  });

  it('makes streams in the order of the grammar, whose events share nothing [MODEL-1107]', async () => {
    const model = new ScriptedModel([{ output: [reasoning('Hm.'), toolCall('a', { x: 1 }), text('Hi.')] }]);
    const events: ResponseStreamEvent[] = [];
    const { output } = await callModel(model, modelRequest(), (event) => events.push(event));
    expect(events.map((event) => event.type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    for (const event of events.slice(0, 2))
      expect(event).toMatchObject({ response: { status: 'in_progress', output: [], usage: null } });
    expect(events.filter((event) => event.type === 'response.output_item.added')).toMatchObject([
      { item: { status: 'in_progress', summary: [] } },
      { item: { status: 'in_progress', arguments: '' } },
      { item: { status: 'in_progress', content: [] } },
    ]);
    const owners = new Map<object, number>();
    const walk = (value: unknown, owner: number): void => {
      if (typeof value !== 'object' || value === null) return;
      expect(owners.get(value) ?? owner).toBe(owner);
      owners.set(value, owner);
      for (const member of Object.values(value)) walk(member, owner);
    };
    for (const [index, event] of events.entries()) walk(event, index);
    // What the reader is given stands in the terminal event, which is the last one.
    walk(output, events.length - 1);
  });

  it('makes complete streams of all kinds of items whose stream is known, in pieces [MODEL-1107] [MODEL#79]', async () => {
    const items = [
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [
          {
            type: 'output_text',
            text: 'a 😀 b',
            annotations: [{ type: 'file_path', file_id: 'f', index: 0 }],
            logprobs: [{ token: 'a', logprob: 0, bytes: [], top_logprobs: [] }],
          },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      {
        type: 'reasoning',
        id: 'r',
        summary: [{ type: 'summary_text', text: 'sum' }],
        content: [{ type: 'reasoning_text', text: 'deep' }],
      },
      {
        type: 'apply_patch_call',
        id: 'p',
        call_id: 'pc',
        status: 'completed',
        operation: { type: 'update_file', path: 'x', diff: '+a' },
      },
      { type: 'custom_tool_call', id: 'ct', call_id: 'cc', name: 'n', input: 'in' },
      { type: 'mcp_call', id: 'mc', name: 'n', server_label: 's', arguments: '{}', output: 'o' },
      { type: 'web_search_call', id: 'w', status: 'completed', action: { type: 'search', query: 'q' } },
    ] as unknown as ResponseOutputItem[];
    for (const chunk of [1, 2, 'word', undefined] as const) {
      const { response, events } = await streamed(new ScriptedModel([{ output: items, chunk }]));
      assertResponseStream(events);
      expect(response.output).toEqual(items);
      expect(
        events.map((event) => ('delta' in event && typeof event.delta === 'string' ? event.delta : '')).join(''),
      ).toContain('a 😀 b');
      expect(events.some((event) => 'delta' in event && event.delta === '\ud83d')).toBe(false);
    }
    const unknown = new ScriptedModel([{ output: [{ type: 'computer_call', id: 'x' } as never] }]);
    await expect(streamed(unknown)).rejects.toThrow(/computer_call.*exact events/u);
  });

  it('stops on abort: before the call, while it waits, between events [MODEL-120, 121, 1108]', async () => {
    const model = new ScriptedModel([
      { output: 'a', delayMs: 60_000 },
      { output: 'a b c', chunk: 'word', delayMs: 0 },
    ]);
    await expect(model.getResponse(modelRequest({ signal: AbortSignal.abort() }))).rejects.toBeInstanceOf(
      RunAbortedError,
    );
    expect(model.calls).toHaveLength(0);
    const waiting = new AbortController();
    const pending = model.getResponse(modelRequest({ signal: waiting.signal }));
    waiting.abort();
    await expect(pending).rejects.toBeInstanceOf(RunAbortedError);

    const running = new AbortController();
    setTimeout(() => running.abort(), 0);
    const events: string[] = [];
    const reading = (async () => {
      for await (const event of model.streamResponse(modelRequest({ signal: running.signal }))) {
        events.push(event.type);
        // The timer gets its turn between events: without that, a test of cancelling shows nothing.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    await expect(reading).rejects.toBeInstanceOf(RunAbortedError);
    expect(events.length).toBeLessThan(5);
  });

  it('lets timers run between events where a step has a delay, 0 included', async () => {
    const model = new ScriptedModel([{ output: 'word '.repeat(5000), chunk: 'word', delayMs: 0 }]);
    let events = 0;
    let seen = -1;
    const first = model.streamResponse(modelRequest());
    await first.next();
    setTimeout(() => (seen = events), 0);
    for await (const _ of first) events += 1;
    expect(seen).toBeGreaterThan(-1);
    expect(seen).toBeLessThan(events);
  });

  it('makes generation spans when asked, without data when told, and never changes what is thrown [MODEL-1111] [TRACE-N11]', async () => {
    const spans: Span[] = [];
    const remove = addTraceProcessor({ onSpanEnd: (span) => void spans.push(span) });
    try {
      await withTrace('t', async () => {
        const model = new ScriptedModel(['Hi.', 'Hi.', new TypeError('secret'), new TypeError('secret'), 'Hi.'], {
          trace: true,
          usage: { inputTokens: 2 },
        });
        await model.getResponse(modelRequest({ tracing: 'enabled', systemInstructions: 'Be.' }));
        await streamed(model, modelRequest({ tracing: 'enabled_without_data' }));
        await expect(model.getResponse(modelRequest({ tracing: 'enabled' }))).rejects.toThrow('secret');
        await expect(streamed(model, modelRequest({ tracing: 'enabled_without_data' }))).rejects.toThrow('secret');
        await model.getResponse(modelRequest({ tracing: 'disabled' }));
        await new ScriptedModel(['x']).getResponse(modelRequest({ tracing: 'enabled' }));
      });
    } finally {
      remove();
    }
    expect(spans.map((span) => span.type)).toEqual(['generation', 'generation', 'generation', 'generation']);
    const wire = spans.map((span) => span.toJSON());
    expect(wire[0]?.span_data).toMatchObject({
      model: 'scripted',
      input: [{ role: 'system', content: 'Be.' }, { role: 'user' }],
      output: [{ type: 'message' }],
      usage: { requests: 1, input_tokens: 2 },
    });
    expect(wire[1]?.span_data).toMatchObject({ input: null, output: null, usage: { input_tokens: 2 } });
    expect(wire[2]?.error).toEqual({ message: 'Error', data: { name: 'TypeError', message: 'secret' } });
    expect(JSON.stringify(wire[3])).not.toContain('secret');
  });
});
