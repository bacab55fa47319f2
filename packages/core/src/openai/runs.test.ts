import OpenAI, { BadRequestError } from 'openai';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import {
  Agent,
  configureLogging,
  getDefaultModelSettings,
  getRunErrorDetails,
  ModelBehaviorError,
  run,
  RunAbortedError,
  runStreamed,
  tool,
} from '../index.ts';
import type { ModelSettings, RunOptions, Span } from '../index.ts';
import { FakeOpenAI } from '../testing/fake-openai.ts';
import { bothForms } from '../testing/forms.ts';
import { OfflineModel, text, toolCall } from '../testing/index.ts';
import type { FakeStep } from '../testing/index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { addTraceProcessor } from '../tracing/processors.ts';
import { OpenAIResponsesModel, setOpenAIDefaults } from './index.ts';

const lookup = tool({
  name: 'lookup_order',
  description: 'Looks up an order: its status.',
  parameters: z.object({ orderId: z.string() }),
  execute: ({ orderId }) => ({ id: orderId, status: 'shipped' }),
});

async function setUp(steps: FakeStep[], baseURL?: string): Promise<{ fake: FakeOpenAI; agent: Agent }> {
  const fake = new FakeOpenAI({ steps });
  const client = await fake.client({ maxRetries: 0, ...(baseURL === undefined ? undefined : { baseURL }) });
  const model = new OpenAIResponsesModel('gpt-5.6-luna', { client });
  return { fake, agent: new Agent({ name: 'Desk', instructions: 'Be brief.', tools: [lookup], model }) };
}

afterEach(() => {
  vi.unstubAllEnvs();
  resetDefaults();
});

describe('runs on the Responses API', () => {
  bothForms((runForm, form) => {
    it(`sends call and output back and ends with the answer (${form}) [MODEL#3, MODEL-101]`, async () => {
      const { fake, agent } = await setUp([toolCall('lookup_order', { orderId: '1042' }), 'It is on its way.']);
      const result = await runForm(agent, 'Where is 1042?');
      expect(result.finalOutput).toBe('It is on its way.');
      expect(fake.requests).toHaveLength(2);
      expect(fake.requests[0]?.body).toMatchObject({
        instructions: 'Be brief.',
        input: [{ role: 'user', content: 'Where is 1042?' }],
        tools: [{ name: 'lookup_order', strict: true }],
      });
      expect(fake.requests[1]?.body).toMatchObject({
        input: [
          { role: 'user' },
          { type: 'function_call', call_id: 'call_1' },
          { type: 'function_call_output', call_id: 'call_1', output: '{"id":"1042","status":"shipped"}' },
        ],
      });
      expect(result.rawResponses.length).toBe(2);
    });

    it(`counts the tokens of a failed response, whose error has its output (${form}) [MODEL#9, MODEL-412] [IL-131]`, async () => {
      const { fake, agent } = await setUp(['half']);
      fake.inject({ kind: 'terminal', status: 'incomplete' });
      const error = await runForm(agent, 'x').catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelBehaviorError);
      expect((error as ModelBehaviorError).response?.output).toMatchObject([{ content: [{ text: 'half' }] }]);
      expect(getRunErrorDetails(error)?.context.usage.totalTokens).toBe(
        (error as ModelBehaviorError).response?.usage.totalTokens,
      );
    });

    it(`lets the client's errors pass as they are (${form}) [MODEL-920]`, async () => {
      const { fake, agent } = await setUp([]);
      fake.inject({ kind: 'status', status: 400 });
      await expect(runForm(agent, 'x')).rejects.toBeInstanceOf(BadRequestError);
    });

    it(`fails without a key before anything is sent, and no other model steps in (${form}) [MODEL#2, MODEL-315]`, async () => {
      vi.stubEnv('OPENAI_API_KEY', '');
      vi.stubEnv('OPENAI_BASE_URL', '');
      const answered = vi.spyOn(OfflineModel.prototype, 'getResponse');
      const agent = new Agent({ name: 'Desk', model: 'gpt-5.6-luna' });
      await expect(runForm(agent, 'x')).rejects.toMatchObject({
        code: 'missing_credentials',
        message: expect.stringContaining('OfflineModel'),
      });
      expect(answered).not.toHaveBeenCalled();
    });

    it(`answers with the offline model from a real tool result (${form}) [MODEL#1, MODEL-1301, 1305]`, async () => {
      const agent = new Agent({ name: 'Desk', tools: [lookup], model: new OfflineModel({ notice: false }) });
      const result = await runForm(agent, 'Where is order 1042?');
      expect(result.finalOutput).toBe('Order 1042: status shipped.');
      expect(result.newItems.map((item) => item.type)).toEqual([
        'tool_call_item',
        'tool_call_output_item',
        'message_output_item',
      ]);
    });
  });

  bothForms((runForm, form) => {
    it(`leaves a failure that the client repeats to the client; one request counts (${form}) [MODEL#25]`, async () => {
      const fake = new FakeOpenAI({ steps: ['Hi.'] });
      fake.inject({ kind: 'status', status: 500, headers: { 'retry-after-ms': '1' } });
      const model = new OpenAIResponsesModel('m', { client: await fake.client() });
      const result = await runForm(new Agent({ name: 'A', model }), 'x');
      expect([result.finalOutput, fake.requests.length, result.context.usage.requests]).toEqual(['Hi.', 2, 1]);
    });

    it(`sends what suits the model that is used, unless the agent said otherwise (${form}) [MODEL#40, MODEL#41, MODEL-303, 207, TOOL-A15]`, async () => {
      const fake = new FakeOpenAI();
      setOpenAIDefaults({ client: await fake.client() });
      const defaults = getDefaultModelSettings('gpt-5');
      const sent = async (modelSettings?: ModelSettings, options: RunOptions = {}): Promise<unknown> => {
        await runForm(new Agent({ name: 'A', model: 'gpt-5', modelSettings }), 'x', options);
        const body = (fake.requests.at(-1)?.body ?? {}) as Record<string, unknown>;
        return {
          model: body['model'],
          reasoning: body['reasoning'],
          text: body['text'],
          temperature: body['temperature'],
        };
      };
      const implied = { reasoning: { effort: 'low' }, text: { verbosity: 'low' }, temperature: undefined };
      expect(defaults).toEqual({ reasoning: { effort: 'low' }, verbosity: 'low' });
      expect(await sent()).toEqual({ model: 'gpt-5', ...implied });
      const other = { model: 'gpt-4.1' };
      expect(await sent(undefined, other)).toEqual({ ...other, reasoning: undefined, text: undefined });
      expect(await sent(defaults, other)).toEqual({ ...other, ...implied });
      // Nothing is implied of a model object, whatever its name.
      const made = new OpenAIResponsesModel('gpt-5', { client: await fake.client() });
      expect(await sent(undefined, { model: made })).toEqual({ model: 'gpt-5', reasoning: undefined, text: undefined });
      // The run's settings lie over either.
      const over = { modelSettings: { temperature: 0.5, verbosity: 'high' as const } };
      expect(await sent(undefined, over)).toMatchObject({
        reasoning: { effort: 'low' },
        text: { verbosity: 'high' },
        temperature: 0.5,
      });
      expect(await sent({ temperature: 1, verbosity: null }, { ...over, ...other })).toEqual({
        ...other,
        reasoning: undefined,
        text: { verbosity: 'high' },
        temperature: 0.5,
      });
    });

    it(`keeps the usage as it came when asked, with exactly what was sent (${form}) [MODEL#61, MODEL-430]`, async () => {
      const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, invented_later: { x: null } };
      const answer = { id: 'resp_1', object: 'response', status: 'completed', output: [text('hi')], usage };
      const create = (body: { stream?: boolean }): unknown =>
        body.stream
          ? Promise.resolve(
              (async function* () {
                yield { type: 'response.completed', sequence_number: 0, response: answer };
              })(),
            )
          : Promise.resolve(answer);
      const client = { baseURL: 'https://x.test', responses: { create } } as never;
      const agent = new Agent({ name: 'A', model: new OpenAIResponsesModel('m', { client }) });
      const asked = await runForm(agent, 'x', { modelSettings: { preserveRawUsage: true } });
      expect(asked.rawResponses[0]?.rawUsage).toEqual(usage);
      expect(asked.rawResponses[0]?.usage).toMatchObject({ inputTokens: 1, outputTokens: 2, totalTokens: 3 });
      expect((await runForm(agent, 'x')).rawResponses[0]).not.toHaveProperty('rawUsage');
    });

    it(`logs no body, header or key of a failing run; with model data on its message and request id (${form}) [MODEL#70, MODEL-931, 933]`, async () => {
      const lines = async (dontLogModelData: boolean): Promise<string> => {
        const records: string[] = [];
        configureLogging({ level: 'debug', dontLogModelData, sink: (record) => records.push(JSON.stringify(record)) });
        const body = { error: { message: 'echo of the prompt', code: 'bad' } };
        const fake = new FakeOpenAI({ steps: [{ status: 400, body, headers: { 'x-secret': 'header value' } }] });
        const client = await fake.client({ apiKey: 'sk-secret', maxRetries: 0, logLevel: 'off' });
        const agent = new Agent({ name: 'A', model: new OpenAIResponsesModel('m', { client }) });
        await expect(runForm(agent, 'the prompt')).rejects.toBeInstanceOf(BadRequestError);
        return records.join('\n');
      };
      const redacted = await lines(true);
      expect(redacted).not.toBe('');
      for (const secret of ['echo', 'the prompt', 'header value', 'sk-secret']) expect(redacted).not.toContain(secret);
      const open = await lines(false);
      for (const shown of ['echo of the prompt', 'req_0001']) expect(open).toContain(shown);
      for (const secret of ['header value', 'sk-secret']) expect(open).not.toContain(secret);
    });
  });

  it('shows an abort in mid-stream as an abort, never as a short answer [MODEL#22]', async () => {
    const { fake, agent } = await setUp(['one two three four five']);
    fake.inject({ kind: 'slow', ms: 1 });
    const abort = new AbortController();
    const stream = runStreamed(agent, 'x', { signal: abort.signal });
    const texts: string[] = [];
    const reading = (async () => {
      for await (const event of stream) {
        if (event.type !== 'raw_response_event' || event.data.type !== 'response.output_text.delta') continue;
        texts.push(event.data.delta);
        abort.abort();
      }
    })();
    await reading;
    await expect(stream.completed).rejects.toBeInstanceOf(RunAbortedError);
    expect([texts.length, stream.status]).toEqual([1, 'cancelled']);
  });

  it('delivers the events before a failure, then the failure [MODEL#8] [RUN-1308]', async () => {
    const { fake, agent } = await setUp(['one two']);
    fake.inject({ kind: 'errorEvent', code: 'server_error', afterEvents: 4 });
    const types: string[] = [];
    const reading = (async () => {
      for await (const event of runStreamed(agent, 'x'))
        if (event.type === 'raw_response_event') types.push(event.data.type);
    })();
    await expect(reading).rejects.toMatchObject({
      code: 'model_behavior',
      message: expect.stringContaining('server_error'),
    });
    expect(types).toHaveLength(5);
    expect(types.at(-1)).toBe('error');
  });

  it('takes models by name from the default client, with one cache key for all turns of a run [MODEL-306, 901, 902]', async () => {
    const fake = new FakeOpenAI({ steps: [toolCall('lookup_order', { orderId: '1' }), 'Done.'] });
    setOpenAIDefaults({ client: await fake.client({ baseURL: 'https://api.openai.com/v1' }) });
    await run(new Agent({ name: 'Desk', tools: [lookup], model: 'gpt-5.6-luna' }), 'x', { groupId: 'g1' });
    const bodies = fake.requests.map((request) => request.body as Record<string, unknown>);
    expect(bodies.map((body) => body['prompt_cache_key'])).toEqual([
      bodies[0]?.['prompt_cache_key'],
      bodies[0]?.['prompt_cache_key'],
    ]);
    expect(bodies[0]).toMatchObject({
      prompt_cache_key: expect.stringMatching(/^agents-sdk:group:[0-9a-f]{32}$/u),
      reasoning: { effort: 'none' },
      text: { verbosity: 'low' },
    });
  });

  it('works with a client of the user against a server of its own', async () => {
    const fake = new FakeOpenAI();
    await using server = await fake.listen();
    const client = new OpenAI({ apiKey: 'k', baseURL: server.baseURL });
    const agent = new Agent({ name: 'Desk', tools: [lookup], model: new OpenAIResponsesModel('any', { client }) });
    expect((await run(agent, 'Where is order 1042?')).finalOutput).toBe('Order 1042: status shipped.');
  });
});

describe('response spans', () => {
  async function spansOf(
    steps: FakeStep[],
    work: (agent: Agent, fake: FakeOpenAI) => Promise<unknown>,
    baseURL?: string,
  ): Promise<Span[]> {
    const spans: Span[] = [];
    const remove = addTraceProcessor({ onSpanEnd: (span) => void spans.push(span) });
    const { agent, fake } = await setUp(steps, baseURL);
    await work(agent, fake).catch(() => {});
    remove();
    return spans.filter((span) => span.type === 'response');
  }

  let client: OpenAI;

  bothForms((runForm, form) => {
    it(`have response, input and usage, under the turn (${form}) [MODEL-940, 941, 942] [TRACE-N10]`, async () => {
      const [span] = await spansOf(['Hi.'], (agent) => runForm(agent, 'x'));
      expect(span?.parent.type).toBe('turn');
      expect(span?.toJSON()).toMatchObject({
        span_data: {
          type: 'response',
          response_id: 'resp_0001',
          usage: { requests: 1, output_tokens_details: { reasoning_tokens: 0 } },
        },
        error: null,
      });
      expect(span?.spanData).toMatchObject({ input: [{ content: 'x' }], response: { output: [{ type: 'message' }] } });
    });

    it(`keep usage alone without data, and the id only of OpenAI itself (${form}) [MODEL-941] [TRACE-E17]`, async () => {
      const [other] = await spansOf(['Hi.'], (agent) => runForm(agent, 'x', { traceIncludeSensitiveData: false }));
      expect(other?.toJSON()?.span_data).toMatchObject({ response_id: null, usage: { requests: 1 } });
      expect(other?.spanData).not.toHaveProperty('response');
      expect(other?.spanData).not.toHaveProperty('input');
      const [own] = await spansOf(
        ['Hi.'],
        (agent) => runForm(agent, 'x', { traceIncludeSensitiveData: false }),
        'https://api.openai.com/v1',
      );
      expect(own?.toJSON()?.span_data).toMatchObject({ response_id: 'resp_0001' });
    });

    it(`keep no id of a client that was elsewhere before the request, or is at the answer (${form}) [TRACE-E17]`, async () => {
      const official = 'https://api.openai.com/v1';
      for (const [before, after] of [
        [official, 'https://x.test/v1'],
        ['https://x.test/v1', official],
      ] as const) {
        const [span] = await spansOf([() => ((client.baseURL = after), 'Hi.')], async (_, fake) => {
          client = await fake.client({ baseURL: before });
          const model = new OpenAIResponsesModel('m', { client });
          return await runForm(new Agent({ name: 'A', model }), 'x', { traceIncludeSensitiveData: false });
        });
        expect(span?.toJSON()?.span_data).toMatchObject({ response_id: null, usage: { requests: 1 } });
      }
    });

    it(`name what went wrong, or that it may not be shown (${form}) [MODEL-943] [TRACE-T21]`, async () => {
      const fail = (agent: Agent, fake: FakeOpenAI, shown: boolean): Promise<unknown> => {
        fake.inject({
          kind: 'terminal',
          status: 'failed',
          details: { code: 'server_error', message: 'provider text' },
        });
        return runForm(agent, 'x', { traceIncludeSensitiveData: shown });
      };
      const message = form === 'plain' ? 'Error getting response' : 'Error streaming response';
      const [shown] = await spansOf(['Hi.'], (agent, fake) => fail(agent, fake, true));
      expect(shown?.error).toEqual({ message, data: { error: expect.stringContaining('provider text') } });
      expect(shown?.toJSON()?.span_data).toMatchObject({ usage: { requests: 1 } });
      const [hidden] = await spansOf(['Hi.'], (agent, fake) => fail(agent, fake, false));
      expect(hidden?.error).toEqual({ message, data: { error: 'Error details are redacted.' } });
    });
  });
});
