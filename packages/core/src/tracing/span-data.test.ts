import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor } from './processors.ts';
import { registerSpanType } from './span-data.ts';
import type { SpanInit, SpanType, Trace } from './types.ts';

let trace: Trace;

beforeEach(() => {
  configureLogging({ sink: () => {} });
  addTraceProcessor({});
  trace = createTrace('t').start();
});
afterEach(resetAll);

function wire<K extends SpanType>(init: SpanInit<K>): string {
  return JSON.stringify(createSpan(init, { parent: trace }).toJSON()?.span_data);
}

const usage = {
  inputTokens: 310,
  outputTokens: 42,
  cachedInputTokens: 128,
  cacheWriteInputTokens: 0,
  requests: 2,
  totalTokens: 352,
};

describe('wire forms, key for key [TRACE-S1]', () => {
  const cases: [string, SpanInit<SpanType>, string][] = [
    [
      'agent',
      {
        type: 'agent',
        name: 'Triage',
        handoffs: ['Refund agent'],
        tools: ['lookup_order', 'crm.find'],
        outputType: 'str',
      },
      '{"type":"agent","name":"Triage","handoffs":["Refund agent"],"tools":["lookup_order","crm.find"],"output_type":"str"}',
    ],
    [
      'task',
      { type: 'task', name: 'Refund desk', usage },
      '{"type":"custom","name":"task","data":{"sdk_span_type":"task","name":"Refund desk","usage":{"input_tokens":310,"output_tokens":42,"cached_input_tokens":128,"cache_write_input_tokens":0,"requests":2,"total_tokens":352}}}',
    ],
    [
      'turn',
      { type: 'turn', turn: 1, agentName: 'Triage', usage },
      '{"type":"custom","name":"turn","data":{"sdk_span_type":"turn","turn":1,"agent_name":"Triage","usage":{"input_tokens":310,"output_tokens":42,"cached_input_tokens":128,"cache_write_input_tokens":0}}}',
    ],
    [
      'turn without usage',
      { type: 'turn', turn: 2, agentName: 'A' },
      '{"type":"custom","name":"turn","data":{"sdk_span_type":"turn","turn":2,"agent_name":"A"}}',
    ],
    [
      'generation',
      {
        type: 'generation',
        input: [{ role: 'user', content: 'hi' }],
        model: 'gpt-4.1',
        modelConfig: { temperature: 0.2, top_p: null },
      },
      '{"type":"generation","input":[{"role":"user","content":"hi"}],"output":null,"model":"gpt-4.1","model_config":{"temperature":0.2,"top_p":null},"usage":null}',
    ],
    [
      'response',
      { type: 'response', responseId: 'resp_68a1' },
      '{"type":"response","response_id":"resp_68a1","usage":null}',
    ],
    [
      'function',
      { type: 'function', name: 'lookup_order', input: '{"id":7}', output: '{"status":"paid"}' },
      String.raw`{"type":"function","name":"lookup_order","input":"{\"id\":7}","output":"{\"status\":\"paid\"}","mcp_data":null}`,
    ],
    ['handoff', { type: 'handoff', fromAgent: 'Triage' }, '{"type":"handoff","from_agent":"Triage","to_agent":null}'],
    ['guardrail', { type: 'guardrail', name: 'no_pii' }, '{"type":"guardrail","name":"no_pii","triggered":false}'],
    [
      'custom',
      { type: 'custom', name: 'rank', data: { rows: 12 } },
      '{"type":"custom","name":"rank","data":{"rows":12}}',
    ],
    [
      'mcp_tools',
      { type: 'mcp_tools', server: 'files', result: ['read', 'write'] },
      '{"type":"mcp_tools","server":"files","result":["read","write"]}',
    ],
    [
      'transcription',
      { type: 'transcription' },
      '{"type":"transcription","input":{"data":"","format":"pcm"},"output":null,"model":null,"model_config":null}',
    ],
    [
      'speech',
      { type: 'speech' },
      '{"type":"speech","input":null,"output":{"data":"","format":"pcm"},"model":null,"model_config":null,"first_content_at":null}',
    ],
    ['speech_group', { type: 'speech_group' }, '{"type":"speech_group","input":null}'],
  ];
  it.each(cases)('%s', (_title, init, expected) => expect(wire(init)).toBe(expected));

  it('a whole span record [TRACE-M10]', () => {
    const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace, spanId: 'span_1', startTimeMs: 0 }).start();
    span.setError({ message: 'broken' });
    expect(JSON.stringify(span.toJSON())).toBe(
      `{"object":"trace.span","id":"span_1","trace_id":"${trace.traceId}","parent_id":null,"started_at":"1970-01-01T00:00:00.000000+00:00",` +
        '"ended_at":null,"span_data":{"type":"custom","name":"x","data":{}},"error":{"message":"broken","data":null}}',
    );
  });
});

it('starts agents without handoffs and tools, custom spans with empty data [TRACE-S2, A13]', () => {
  expect(createSpan({ type: 'agent', name: 'A' }, { parent: trace }).spanData).toEqual({
    name: 'A',
    handoffs: [],
    tools: [],
  });
  const data = {};
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: trace }).spanData.data).toEqual({});
  expect(createSpan({ type: 'custom', name: 'x', data }, { parent: trace }).spanData.data).toBe(data);
});

it('takes every given member into the span data, and leaves the given object alone [TRACE-A2]', () => {
  const init = { type: 'function', name: 'f', input: '{}', output: 0, mcpData: { server: 's' } } as const;
  const span = createSpan(init, { parent: trace });
  expect(span.spanData).toEqual({ name: 'f', input: '{}', output: 0, mcpData: { server: 's' } });
  span.spanData.output = 'later';
  expect(init.output).toBe(0);
});

it('names the member that a span cannot be without [TRACE-A17]', () => {
  expect(() => createSpan({ type: 'agent' } as SpanInit<'agent'>)).toThrow(
    "A span of type 'agent' needs 'name', a string, not undefined.",
  );
  expect(() => createSpan({ type: 'turn', turn: '1', agentName: 'A' } as unknown as SpanInit<'turn'>)).toThrow(
    "needs 'turn', a number",
  );
  expect(() => createSpan('rank' as unknown as SpanInit<'custom'>)).toThrow('A span needs { type, … }, not a string.');
  expect(() => createSpan({ type: 'custom', name: 'x' }, { spanID: 'a' } as never)).toThrow(
    "Unknown option 'spanID' of createSpan(). Did you mean 'spanId'?",
  );
});

it('writes outputs of tools as text, whatever they are [TRACE-S7]', () => {
  const output = (value: unknown): unknown =>
    createSpan({ type: 'function', name: 'f', output: value }, { parent: trace }).toJSON()?.span_data['output'];
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  expect([undefined, null, '', 'text', 0, false, { a: 1 }, 10n, cycle].map(output)).toEqual([
    null,
    null,
    '',
    'text',
    '0',
    'false',
    '{"a":1}',
    '10',
    '[object Object]',
  ]);
});

it('exports the id of a response only where there is one, also an empty one [TRACE-S8]', () => {
  const response = (id: string): { response: never } => ({ response: { id } as never });
  expect(wire({ type: 'response' })).toBe('{"type":"response","response_id":null,"usage":null}');
  expect(wire({ type: 'response', ...response('') })).toBe('{"type":"response","response_id":"","usage":null}');
  expect(wire({ type: 'response', ...response('resp_1') })).toBe(
    '{"type":"response","response_id":"resp_1","usage":null}',
  );
});

const own = (init: object): SpanInit<'custom'> => init as SpanInit<'custom'>;

it('exports an unknown type as it is, with one warning [TRACE-S16]', () => {
  const lines: string[] = [];
  configureLogging({ sink: ({ message }) => lines.push(message) });
  for (let i = 0; i < 2; i++)
    expect(wire(own({ type: 'retrieval', index: 'docs', hits: 3n }))).toBe(
      '{"type":"retrieval","index":"docs","hits":"<unserializable>"}',
    );
  expect(lines).toHaveLength(1);
});

it('exports a registered type in its own form; the forms of this package are fixed [TRACE-S16]', () => {
  registerSpanType('retrieval' as 'custom', (data) => ({ index: (data as { index?: string }).index }));
  expect(wire(own({ type: 'retrieval', index: 'docs', hits: 3 }))).toBe('{"type":"retrieval","index":"docs"}');
  registerSpanType('retrieval' as 'custom', () => {
    throw new Error('no form');
  });
  expect(wire(own({ type: 'retrieval', index: 'docs' }))).toBe('{"type":"retrieval","index":"docs"}');
  expect(() => registerSpanType('agent', () => ({}))).toThrow("Span type 'agent' has a fixed wire form");
});

it('replaces what cannot be serialised and exports the rest [TRACE-S17]', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  const shared = { a: 1 };
  const data = {
    ok: [1],
    twice: [shared, shared],
    cycle,
    big: 1n,
    list: [1, 2n],
    nested: { deep: { bad: 1n } },
    throws: { toJSON: () => cycle },
    get bad(): never {
      throw new Error('getter');
    },
  };
  const span = createSpan({ type: 'custom', name: 'x', data }, { parent: trace });
  expect(JSON.parse(JSON.stringify(span))).toMatchObject({
    span_data: {
      name: 'x',
      data: {
        ok: [1],
        twice: [{ a: 1 }, { a: 1 }],
        cycle: '<unserializable>',
        big: '<unserializable>',
        list: '<unserializable>',
        nested: '<unserializable>',
        throws: '<unserializable>',
        bad: '<unserializable>',
      },
    },
  });
  span.setError({ message: 'e', data: { cycle } });
  expect(JSON.stringify(span)).toContain('"error":{"message":"e","data":{"cycle":"<unserializable>"}}');
});
