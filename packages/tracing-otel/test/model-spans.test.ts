import { context, SpanKind, trace as api } from '@opentelemetry/api';
import { SamplingDecision } from '@opentelemetry/sdk-trace-base';
import { Agent, run, tool } from '@agents/core';
import type { Model } from '@agents/core';
import type { FakeStep } from '@agents/core/testing';
import { OpenAIResponsesModel } from '@agents/core/openai';
import { bothForms, FakeOpenAI, reasoning, resetDefaults, text, toolCall } from '@agents/core/testing';
import { createSpan, withTrace } from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { followContexts, idOf, kindName, parentId, scripted, settled, statusOf, Telemetry } from './kit.ts';

let otel: Telemetry;
let restore: () => void;

beforeEach(() => {
  resetDefaults();
  restore = followContexts();
  otel = new Telemetry().use();
});
afterEach(async () => {
  restore();
  resetDefaults();
  await otel.close();
});

async function service(...steps: readonly FakeStep[]): Promise<Model> {
  const fake = new FakeOpenAI({ steps: [...steps] });
  return new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ maxRetries: 0 }) });
}
const lookup = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: () => 'paid' });

bothForms((runForm, form) => {
  describe(`the span of a model call (${form})`, () => {
    it('of the Responses API has what the conventions ask for and no content by default [TRACE-O9, O26, T54]', async () => {
      const agent = new Agent({
        name: 'Desk',
        instructions: 'MARK',
        model: await service([toolCall('lookup', { id: 'MARK' }, { callId: 'call_1' })], 'MARK'),
        modelSettings: { temperature: 0.2, topP: 0.9, maxTokens: 100, reasoning: { effort: 'low' } },
        tools: [lookup],
      });
      await runForm(agent, 'MARK', { groupId: 'thread-981' });
      const [first, second] = otel.named('chat gpt-5.6-luna');
      const {
        'server.port': port,
        'gen_ai.response.time_to_first_chunk': first_chunk,
        ...attributes
      } = settled(first?.attributes ?? {});
      expect(first?.kind).toBe(SpanKind.CLIENT);
      expect(attributes).toEqual({
        'agents.group_id': 'thread-981',
        'agents.span_type': 'response',
        'agents.turn': 1,
        'agents.request_id': expect.any(String),
        'gen_ai.agent.name': 'Desk',
        'gen_ai.conversation.id': 'thread-981',
        'gen_ai.operation.name': 'chat',
        'gen_ai.output.type': 'text',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.max_tokens': 100,
        'gen_ai.request.model': 'gpt-5.6-luna',
        'gen_ai.request.reasoning.level': 'low',
        'gen_ai.request.temperature': 0.2,
        'gen_ai.request.top_p': 0.9,
        'gen_ai.response.finish_reasons': ['tool_calls'],
        'gen_ai.response.id': 'resp_0001',
        'gen_ai.response.model': 'gpt-5.6-luna',
        'gen_ai.usage.input_tokens': expect.any(Number),
        'gen_ai.usage.output_tokens': expect.any(Number),
        'openai.api.type': 'responses',
        'server.address': 'fake.invalid',
        ...(form === 'streamed' && { 'gen_ai.request.stream': true }),
      });
      // The default one of its scheme.
      expect(port).toBeUndefined();
      expect(typeof first_chunk).toBe(form === 'streamed' ? 'number' : 'undefined');
      expect(second?.attributes['gen_ai.response.finish_reasons']).toEqual(['stop']);
      expect(otel.span('execute_tool lookup').attributes['gen_ai.tool.call.id']).toBe('call_1');
      expect(JSON.stringify(otel.spans.map(({ attributes: all, events }) => [all, events]))).not.toContain('MARK');
    });

    it('has prompts and answers where both switches allow it [TRACE-O27, T53]', async () => {
      otel = new Telemetry({ captureContent: true }).use();
      const make = async (): Promise<Agent> =>
        new Agent({
          name: 'Desk',
          instructions: 'Be kind.',
          model: await service([reasoning('look it up'), text('Hello.')]),
        });
      await runForm(await make(), 'Hi');
      await runForm(await make(), 'Hi', { traceIncludeSensitiveData: false });
      const [open, closed] = otel.named('chat gpt-5.6-luna').map(({ attributes }) => attributes);
      expect(JSON.parse(String(open?.['gen_ai.input.messages']))).toEqual([
        { role: 'user', parts: [{ type: 'text', content: 'Hi' }] },
      ]);
      expect(JSON.parse(String(open?.['gen_ai.system_instructions']))).toEqual([{ type: 'text', content: 'Be kind.' }]);
      expect(JSON.parse(String(open?.['gen_ai.output.messages']))).toEqual([
        {
          role: 'assistant',
          parts: [
            { type: 'reasoning', content: 'look it up' },
            { type: 'text', content: 'Hello.' },
          ],
          finish_reason: 'stop',
        },
      ]);
      expect(Object.keys(closed ?? {}).filter((name) => /messages|instructions|definitions/.test(name))).toEqual([]);
      const [, second] = otel.named('invoke_workflow Agent workflow');
      expect(JSON.stringify(second?.attributes)).not.toContain('Hi');
    });

    it.each([
      ['an HTTP status', { status: 500, body: { error: { message: 'down', code: 'x' } } }, '500'],
      ['a status of the user', { status: 401, body: { error: { message: 'no', code: 'invalid_api_key' } } }, '401'],
    ])('that failed has %s as its type [TRACE-O21]', async (_what, step, type) => {
      const agent = new Agent({ name: 'Desk', model: await service(step) });
      await expect(runForm(agent, 'Hi')).rejects.toBeInstanceOf(Error);
      const span = otel.span('chat gpt-5.6-luna');
      expect([statusOf(span), span.attributes['error.type']]).toEqual(['ERROR', type]);
      expect(span.status.message).toMatch(/^Error (getting|streaming) response$/);
    });

    it('that took too long says timeout [TRACE-O21, E8]', async () => {
      const model = scripted(() => new Promise(() => {}));
      await expect(
        runForm(new Agent({ name: 'Desk', model, modelSettings: { timeoutMs: 20 } }), 'Hi'),
      ).rejects.toBeInstanceOf(Error);
      const span = otel.span('chat scripted');
      expect([statusOf(span), span.attributes['error.type']]).toEqual(['ERROR', 'timeout']);
    });

    it('shows only what is new of a conversation, if asked to [TRACE-O31]', async () => {
      otel = new Telemetry({ captureContent: true, inputMessages: 'delta' }).use();
      const agent = new Agent({
        name: 'Desk',
        instructions: 'Be kind.',
        model: scripted([toolCall('lookup', { id: '7' }, { callId: 'call_1' })], 'done'),
        tools: [lookup],
      });
      await runForm(agent, 'Hi');
      const [first, second] = otel
        .named('chat scripted')
        .map(({ attributes }) => JSON.parse(String(attributes['gen_ai.input.messages'])) as { role: string }[]);
      expect(first?.map(({ role }) => role)).toEqual(['system', 'user']);
      expect(second).toEqual([
        { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1', response: 'paid' }] },
      ]);
    });

    it("is another instrumentation's where that makes them, and tokens are counted there [TRACE-O15, T58]", async () => {
      const chats = async (
        modelSpans: 'emit' | 'external',
      ): Promise<[number, string | undefined, number | undefined]> => {
        otel = new Telemetry({ modelSpans }).use();
        // One CLIENT span per call, as instrumentations of the client make them.
        const tracer = otel.tracers.getTracer('instrumentation');
        const model = scripted(() =>
          tracer.startActiveSpan('chat client', { kind: SpanKind.CLIENT }, (span) => (span.end(), 'done')),
        );
        await runForm(new Agent({ name: 'Desk', model }), 'Hi');
        const calls = otel.spans.filter((span) => kindName(span) === 'CLIENT');
        const parent = otel.spans.find((span) => idOf(span) === parentId(otel.span('chat client')));
        const tokens = (await otel.metrics()).get('gen_ai.client.inference.usage.input_tokens');
        return [calls.length, parent?.name, tokens?.dataPoints[0]?.value as number | undefined];
      };
      expect(await chats('external')).toEqual([1, 'invoke_agent Desk', undefined]);
      expect(await chats('emit')).toEqual([2, 'chat scripted', 80]);
    });
  });
});

describe('a model whose name is', () => {
  it('not known has a span without it [TRACE-O45]', () => {
    withTrace('t', () => {
      const span = createSpan({ type: 'response' }).start();
      Object.assign(span.details, { responseModel: 'gpt-x' });
      span.finish();
    });
    const chat = otel.span('chat');
    expect(chat.attributes['gen_ai.response.model']).toBe('gpt-x');
    expect(chat.attributes['gen_ai.request.model']).toBeUndefined();
  });

  it('known at the end only gets it then [TRACE-O9]', () => {
    withTrace('t', () => {
      const span = createSpan({ type: 'generation' }).start();
      span.spanData.model = 'late';
      span.finish();
    });
    expect(otel.span('chat late').attributes['gen_ai.request.model']).toBe('late');
  });

  it('known at the start is there for samplers, with provider and server [TRACE-O9]', async () => {
    const seen: Record<string, unknown>[] = [];
    otel = new Telemetry({
      sampler: {
        shouldSample: (_context, _traceId, _name, _kind, attributes) => {
          seen.push(attributes);
          return { decision: SamplingDecision.RECORD_AND_SAMPLED };
        },
        toString: () => 'seen',
      },
    }).use();
    await run(new Agent({ name: 'Desk', model: await service('done'), tools: [lookup] }), 'Hi', { groupId: 'g' });
    expect(seen).toMatchObject([
      { 'gen_ai.operation.name': 'invoke_workflow', 'agents.group_id': 'g' },
      { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Desk', 'agents.group_id': 'g' },
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-5.6-luna',
        'gen_ai.agent.name': 'Desk',
        'server.address': 'fake.invalid',
        'agents.group_id': 'g',
      },
    ]);
    expect(api.getSpan(context.active())).toBeUndefined();
  });
});
