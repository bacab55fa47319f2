import { readFileSync } from 'node:fs';
import { env } from 'node:process';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, run, tool } from '@agents/core';
import { FakeOpenAI, resetDefaults, toolCall } from '@agents/core/testing';
import { OpenAIResponsesModel } from '@agents/core/openai';
import { shutdownTracing } from '@agents/core/tracing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { enableOTelTracing } from '../src/index.ts';
import type { OTelTraceOptions } from '../src/index.ts';
import { followContexts } from './kit.ts';
import { attributesOf, OtlpReceiver } from './otlp.ts';
import { datadog } from './recipes/datadog.ts';
import { grafana } from './recipes/grafana.ts';
import { honeycomb } from './recipes/honeycomb.ts';
import { langfuse } from './recipes/langfuse.ts';
import { logfire } from './recipes/logfire.ts';
import { phoenix } from './recipes/phoenix.ts';

// The recipes of the guide as they stand there, sent to a receiver in the place of each service. The names are those that the
// services document.

interface Recipe {
  readonly options: OTelTraceOptions;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** By span: attributes that the service reads. `true`: some value. */
  readonly reads: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

const json = expect.stringMatching(/^[[{"]/);
const native = {
  'invoke_workflow Agent workflow': {
    'gen_ai.operation.name': 'invoke_workflow',
    'gen_ai.conversation.id': 'thread-981',
  },
  'invoke_agent Triage': { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Triage' },
  'chat gpt-5.6-luna': {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5.6-luna',
    'gen_ai.response.model': 'gpt-5.6-luna',
    'gen_ai.usage.input_tokens': expect.any(Number),
    'gen_ai.usage.output_tokens': expect.any(Number),
  },
  'execute_tool lookup': {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'lookup',
    'gen_ai.tool.call.id': 'call_1',
  },
};
const recipes: Readonly<Record<string, Recipe>> = {
  langfuse: {
    options: langfuse,
    path: '/api/public/otel/v1/traces',
    headers: { authorization: 'Basic AUTH', 'x-langfuse-ingestion-version': '4' },
    reads: {
      'invoke_workflow Agent workflow': {
        'langfuse.trace.name': 'Agent workflow',
        'langfuse.observation.type': 'span',
        'langfuse.session.id': 'thread-981',
        'langfuse.observation.input': json,
        'langfuse.observation.output': json,
      },
      'invoke_agent Triage': { 'langfuse.observation.type': 'agent', 'langfuse.session.id': 'thread-981' },
      'chat gpt-5.6-luna': {
        'langfuse.observation.type': 'generation',
        'langfuse.observation.input': json,
        'langfuse.observation.output': json,
        'gen_ai.request.model': 'gpt-5.6-luna',
      },
      'execute_tool lookup': {
        'langfuse.observation.type': 'tool',
        'langfuse.observation.input': '{"id":"7"}',
        'langfuse.observation.output': '"paid"',
      },
    },
  },
  phoenix: {
    options: phoenix,
    path: '/s/SPACE/v1/traces',
    headers: { authorization: 'Bearer KEY' },
    reads: {
      'invoke_workflow Agent workflow': {
        'openinference.span.kind': 'CHAIN',
        'session.id': 'thread-981',
        'input.value': json,
        'output.value': json,
      },
      'invoke_agent Triage': { 'openinference.span.kind': 'AGENT', 'input.value': json, 'output.value': json },
      'chat gpt-5.6-luna': {
        'openinference.span.kind': 'LLM',
        'llm.model_name': 'gpt-5.6-luna',
        'llm.provider': 'openai',
        'llm.token_count.prompt': expect.any(Number),
        'llm.token_count.completion': expect.any(Number),
        'llm.token_count.total': expect.any(Number),
        'input.mime_type': 'application/json',
      },
      'execute_tool lookup': { 'openinference.span.kind': 'TOOL', 'tool.name': 'lookup', 'input.value': '{"id":"7"}' },
    },
  },
  logfire: {
    options: logfire,
    path: '/v1/traces',
    headers: { authorization: 'TOKEN' },
    reads: { ...native, 'invoke_agent Triage': { ...native['invoke_agent Triage'], 'logfire.msg': 'Agent Triage' } },
  },
  datadog: {
    options: datadog,
    path: '/v1/traces',
    headers: { 'dd-api-key': 'KEY', 'dd-otlp-source': 'llmobs' },
    reads: {
      ...native,
      'chat gpt-5.6-luna': {
        ...native['chat gpt-5.6-luna'],
        'gen_ai.input.messages': json,
        'gen_ai.output.messages': json,
      },
    },
  },
  honeycomb: { options: honeycomb, path: '/v1/traces', headers: { 'x-honeycomb-team': 'KEY' }, reads: native },
  grafana: { options: grafana, path: '/otlp/v1/traces', headers: { authorization: 'Basic AUTH' }, reads: native },
};

const ENDPOINT = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const HEADERS = 'OTEL_EXPORTER_OTLP_TRACES_HEADERS';
const guide = readFileSync(new URL('../../../docs/tracing/opentelemetry.md', import.meta.url), 'utf8');
const receiver = new OtlpReceiver();
let restore: () => void;

beforeAll(() => receiver.start());
afterAll(() => receiver.close());
beforeEach(() => {
  resetDefaults();
  restore = followContexts();
  receiver.spans.length = 0;
  receiver.requests.length = 0;
});
afterEach(() => {
  restore();
  resetDefaults();
  delete env[ENDPOINT];
  delete env[HEADERS];
});

/** Code and variables of a recipe in the guide. */
function inGuide(name: string): { readonly code: string; readonly endpoint: URL; readonly headers: string } {
  const [, variables = '', code = ''] =
    new RegExp(`\`\`\`sh\\n([^\`]*)\`\`\`\\n+<!-- recipe: ${name} -->\\n+\`\`\`ts\\n([^]*?)^\`\`\``, 'mu').exec(
      guide,
    ) ?? [];
  const value = (of: string): string => new RegExp(`^${of}=(.*)$`, 'mu').exec(variables)?.[1] ?? '';
  return { code, endpoint: new URL(value(ENDPOINT)), headers: value(HEADERS) };
}

describe('the recipe for', () => {
  it.each(Object.entries(recipes))('%s gives the names that it documents [TRACE-O38, O46]', async (name, recipe) => {
    const { code, endpoint, headers } = inGuide(name);
    expect(code).toBe(readFileSync(new URL(`recipes/${name}.ts`, import.meta.url), 'utf8'));
    env[ENDPOINT] = new URL(endpoint.pathname, receiver.url).href;
    env[HEADERS] = headers;
    const tracerProvider = new BasicTracerProvider({
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    });
    enableOTelTracing({ ...recipe.options, tracerProvider, metrics: false });

    const fake = new FakeOpenAI({ steps: [toolCall('lookup', { id: '7' }, { callId: 'call_1' }), 'It is paid.'] });
    const lookup = tool({ name: 'lookup', parameters: z.object({ id: z.string() }), execute: () => 'paid' });
    const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client({ maxRetries: 0 }) });
    await run(new Agent({ name: 'Triage', model, tools: [lookup] }), 'Where is order 7?', { groupId: 'thread-981' });
    await shutdownTracing();
    await tracerProvider.shutdown();

    expect(receiver.requests.length).toBeGreaterThan(0);
    for (const request of receiver.requests) {
      expect(request.path).toBe(recipe.path);
      expect(request.headers).toMatchObject(recipe.headers);
    }
    for (const [span, attributes] of Object.entries(recipe.reads)) {
      const found = receiver.spans.find((each) => each.name === span);
      expect(attributesOf(found?.attributes ?? []), span).toMatchObject(attributes);
    }
  });
});
