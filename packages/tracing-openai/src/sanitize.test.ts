import { configureLogging } from '@agents/core';
import { InMemoryTraceProcessor, resetDefaults } from '@agents/core/testing';
import { setTraceProcessors, wireRecord } from '@agents/core/tracing';
import type { Span, SpanInit, SpanWire, TraceWire } from '@agents/core/tracing';
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { custom, logLines, onlyData, setUp, span, trace } from '../test/kit.ts';
import { cleanJson } from './clean-json.ts';
import { cutFields, sanitized } from './sanitize.ts';
import { byteLength, truncated } from './truncate.ts';

afterEach(resetDefaults);

const COLLECTOR = 'https://collector.test/v1/traces/ingest';
const MAX = 100_000;
const bytes = (value: unknown): number => byteLength(JSON.stringify(value));

/** What becomes of one item at OpenAI's endpoint, and at another one. */
async function exported(
  make: () => Span,
): Promise<{ openai: Record<string, unknown>; other: Record<string, unknown> }> {
  const [openai, other] = [setUp(), setUp({ endpoint: COLLECTOR })];
  const item = make();
  await openai.exporter.export([item]);
  await other.exporter.export([item]);
  return {
    openai: onlyData(openai.fake),
    other: other.sent[0]?.body.data[0]?.['span_data'] as Record<string, unknown>,
  };
}

const generation = (init: Omit<SpanInit<'generation'>, 'type'>): Span => span({ type: 'generation', ...init });
const record = (data: Record<string, unknown>): SpanWire => ({
  ...(wireRecord(custom({})) as SpanWire),
  span_data: data as SpanWire['span_data'],
});
const dataOf = (wire: TraceWire | SpanWire): Record<string, unknown> => (wire as SpanWire).span_data;

describe('usage', () => {
  const usage = {
    requests: 1,
    input_tokens: 9,
    output_tokens: 3,
    total_tokens: 12,
    input_tokens_details: { cached_tokens: 4 },
  };

  it('of a generation has its other members in details, at OpenAI; elsewhere it stays [TRACE-X21, X23]', async () => {
    const { openai, other } = await exported(() => generation({ model: 'm', usage }));
    const { input_tokens, output_tokens, ...details } = usage;
    expect(openai['usage']).toEqual({ input_tokens, output_tokens, details });
    expect(other['usage']).toEqual(usage);
  });

  it('of other spans is not sent to OpenAI; that of tasks and turns is data of a custom span [TRACE-X20, X23]', async () => {
    const { openai, other } = await exported(() => span({ type: 'response', responseId: 'resp_1', usage }));
    expect(openai).toEqual({ type: 'response', response_id: 'resp_1' });
    expect(other).toEqual({ type: 'response', response_id: 'resp_1', usage });
    const tokens = { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, cacheWriteInputTokens: 0 };
    const turn = await exported(() => span({ type: 'turn', turn: 1, agentName: 'A', usage: tokens }));
    expect(turn.openai).toEqual(turn.other);
  });

  const cycle: Record<string, unknown> = { kept: 1 };
  cycle['self'] = cycle;
  it.each<[string, Record<string, unknown>, unknown]>([
    ['no counts', { requests: 1 }, undefined],
    ['a count that is true', { input_tokens: true, output_tokens: 1 }, undefined],
    ['a count that is NaN', { input_tokens: 1, output_tokens: Number.NaN }, undefined],
    ['a count that is a text', { input_tokens: '1', output_tokens: 1 }, undefined],
    ['counts alone', { input_tokens: 1, output_tokens: 2 }, { input_tokens: 1, output_tokens: 2 }],
    ['null members', { input_tokens: 1, output_tokens: 2, total_tokens: null }, { input_tokens: 1, output_tokens: 2 }],
    [
      'details, over which others are laid',
      { input_tokens: 1, output_tokens: 2, details: { a: 1, b: 1 }, b: 2 },
      { input_tokens: 1, output_tokens: 2, details: { a: 1, b: 2 } },
    ],
    [
      'details that are no object',
      { input_tokens: 1, output_tokens: 2, details: 'x' },
      { input_tokens: 1, output_tokens: 2 },
    ],
    [
      'what JSON cannot say inside',
      { input_tokens: 1, output_tokens: 2, more: cycle, n: Number.NaN, f: () => {} },
      { input_tokens: 1, output_tokens: 2, details: { more: { kept: 1 } } },
    ],
  ])('with %s [TRACE-X21, X24, T37]', (_name, given, expected) => {
    const wire = record({ type: 'generation', usage: given });
    const before = { ...given };
    expect(dataOf(sanitized(wire))['usage']).toEqual(expected);
    expect(wire.span_data['usage']).toBe(given);
    expect(given).toEqual(before);
  });
});

describe('metadata of a trace', () => {
  it('are texts at OpenAI, and what they were for everybody else [TRACE-X22, T38]', async () => {
    const recorder = new InMemoryTraceProcessor();
    const { exporter, fake } = setUp();
    const metadata = { n: 1, o: { a: 1 }, s: 'x', no: null, gone: undefined, big: 1n, f: () => {} };
    const item = trace('t', { metadata });
    setTraceProcessors([recorder]);
    recorder.onTraceStart(item);
    await exporter.export([item]);
    expect(fake.traces[0]?.['metadata']).toEqual({ n: '1', o: '{"a":1}', s: 'x', big: '"1"' });
    expect(recorder.traces[0]?.metadata).toEqual(metadata);
    const other = setUp({ endpoint: COLLECTOR });
    await other.exporter.export([trace('t', { metadata: { n: 1, no: null } })]);
    expect(other.sent[0]?.body.data[0]?.['metadata']).toEqual({ n: 1, no: null });
  });
});

describe('thoughts of a model', () => {
  const input = [
    { role: 'user', content: [{ type: 'thinking', thinking: 'of the user' }], reasoning: 'of the user' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'marker' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'marker' },
        { type: 'redacted_thinking', data: 'marker' },
        { type: 'text', text: 'kept' },
      ],
      reasoning: 'marker',
      reasoning_content: 'marker',
      thinking: 'marker',
      thinking_blocks: [{ thinking: 'marker' }],
      tool_calls: [{ id: 'call_1' }],
    },
    { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"reasoning":"of the user"}' },
  ];
  const output = [
    { object: 'response', id: 'resp_1', output: [input[1], input[2]] },
    { object: 'other', output: [] },
  ];

  it('are not sent to OpenAI; texts, calls and the data of users are, and a processor sees all [TRACE-X31, T70]', async () => {
    const item = generation({ input, output });
    const { exporter, fake } = setUp();
    await exporter.export([item]);
    const sent = onlyData(fake);
    expect(JSON.stringify(sent)).not.toContain('marker');
    const message = { role: 'assistant', content: [{ type: 'text', text: 'kept' }], tool_calls: [{ id: 'call_1' }] };
    expect(sent['input']).toEqual([input[0], message, input[3]]);
    expect(sent['output']).toEqual([{ object: 'response', id: 'resp_1', output: [message] }, output[1]]);
    expect((item as Span<'generation'>).spanData.input).toBe(input);
    expect(JSON.stringify(input)).toContain('marker');
  });

  it('stay at other endpoints, and in spans of other types [TRACE-X31, X23]', async () => {
    expect((await exported(() => generation({ input }))).other['input']).toEqual(input);
    const data = { input, reasoning: 'x' };
    expect((await exported(() => custom(data))).openai['data']).toEqual(data);
  });
});

describe('fields', () => {
  it('of a list are cut inside: the largest first, all messages stay; elsewhere nothing is cut [TRACE-X15, X26, T36, IL-104]', async () => {
    const [system, user] = ['s'.repeat(90_000), 'u'.repeat(50_000)];
    const input = [
      { role: 'system', content: system },
      { role: 'user', content: user },
    ];
    const { openai, other } = await exported(() =>
      generation({ input, output: [{ role: 'assistant', content: 'x' }] }),
    );
    const [first, second] = openai['input'] as { role: string; content: string }[];
    expect(bytes(openai['input'])).toBeLessThanOrEqual(MAX);
    expect(bytes(openai['input'])).toBeGreaterThan(MAX - 20);
    expect(first?.content).toMatch(/^s+\.\.\. \[truncated\]$/);
    expect([first?.role, second]).toEqual(['system', input[1]]);
    expect(openai['output']).toEqual([{ role: 'assistant', content: 'x' }]);
    expect(other['input']).toEqual(input);
  });

  it('that are one text end with a mark, measured as it is written [TRACE-X16, X25]', () => {
    for (const unit of ['"', '\\', '\n', '\u0001', 'é', '漢', '😀', 'x']) {
      const wire = record({ type: 'function', name: 'f', output: unit.repeat(300_000) });
      const output = dataOf(cutFields(wire, MAX))['output'] as string;
      expect(output.endsWith('... [truncated]')).toBe(true);
      expect(bytes(output)).toBeLessThanOrEqual(MAX);
      expect(bytes(output)).toBeGreaterThan(MAX - 2 * bytes(unit));
      expect(output.replace('... [truncated]', '').replaceAll(unit, '')).toBe('');
    }
  });

  it('that fit are untouched, to the byte [TRACE-X14, X15]', () => {
    const fits = record({ type: 'function', name: 'f', input: 'x'.repeat(MAX - 2), output: 'ok' });
    expect(cutFields(fits, MAX)).toBe(fits);
    const above = record({ type: 'function', name: 'f', input: 'x'.repeat(MAX - 1), output: 'ok' });
    expect(bytes(dataOf(cutFields(above, MAX))['input'])).toBeLessThanOrEqual(MAX);
  });

  it.each<[number, string]>([
    [19, 'a... [truncated]'],
    [18, '... [truncated]'],
    [17, '... [truncated]'],
    [16, ''],
    [3, ''],
  ])('of %i bytes hold %j of a long text [TRACE-X16]', (budget, expected) => {
    expect(truncated('a'.repeat(50), budget)).toBe(expected);
  });

  it('cut no pair of surrogates apart [TRACE-X16]', () => {
    for (let budget = 20; budget < 60; budget++) {
      const text = truncated('😀'.repeat(50), budget) as string;
      expect(text).not.toMatch(/\p{Surrogate}/u);
      expect(bytes(text)).toBeLessThanOrEqual(budget);
    }
  });

  it('lose members for which nothing is left; in lists these leave null, so that the others keep their places [TRACE-X17]', () => {
    expect(truncated({ a: 'x'.repeat(40), b: 12_345, c: true }, 12)).toEqual({ c: true });
    expect(truncated([1, 'x'.repeat(90), [2, 'y'.repeat(90)], 3], 30)).toEqual([1, 'x... [truncated]', null, 3]);
    expect(truncated([1, ['y'.repeat(90), 2], 3], 20)).toEqual([1, ['', 2], 3]);
    expect(
      truncated(
        Array.from({ length: 100 }, () => 7),
        20,
      ),
    ).toEqual([null, null, null]);
  });

  it('that JSON cannot say are noted with their class and size [TRACE-X18, X19]', () => {
    const shown = (value: unknown): unknown =>
      dataOf(sanitized(record({ type: 'function', name: 'f', output: value })))['output'];
    expect(shown(() => {})).toEqual({ truncated: true, original_type: 'function', preview: '<function truncated>' });
    expect(shown(Number.NaN)).toMatchObject({ original_type: 'number' });
    expect(truncated(new Map([[1, 2]]), 1)).toEqual({});
    const long = { m: new Map([[1, 2]]), text: 'x'.repeat(500) };
    expect(truncated(long, 200)).toMatchObject({ m: { original_type: 'Map', preview: '<Map len=1 truncated>' } });
  });

  it('of any data fit afterwards, keep their kind, and never change the span [TRACE-X14, X15, X17, X18]', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 2, max: 120 }), (value, budget) => {
        const before = JSON.stringify(value);
        const cut = truncated(value, budget);
        expect(JSON.stringify(value)).toBe(before);
        // A number or a flag has no shorter form.
        fc.pre((typeof value === 'object' && value !== null) || typeof value === 'string');
        expect([typeof cut, Array.isArray(cut)]).toEqual([typeof value, Array.isArray(value)]);
        expect(bytes(cut)).toBeLessThanOrEqual(budget);
        expect(cut === value).toBe(bytes(value) <= budget);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a record', () => {
  it('that needs no change is passed on as it is; a changed one shares the rest [TRACE-X14]', () => {
    const plain = record({ type: 'function', name: 'f', input: '{}', output: 'ok' });
    expect(sanitized(plain)).toBe(plain);
    const input = [{ role: 'user', content: 'hi' }];
    const wire = record({ type: 'generation', input, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } });
    const changed = sanitized(wire);
    expect(changed).not.toBe(wire);
    expect(dataOf(changed)['input']).toBe(input);
    const own = trace('t', { metadata: { a: 'x' } });
    const traceWire = wireRecord(own) as TraceWire;
    expect(sanitized(traceWire)).toBe(traceWire);
  });
});

describe('values that JSON cannot say', () => {
  const broken = (): Record<string, unknown> => {
    const data: Record<string, unknown> = {
      n: Number.NaN,
      big: 10n,
      text: 'a\ud800b',
      kept: { deep: [1, Number.POSITIVE_INFINITY] },
    };
    data['cycle'] = { data };
    return data;
  };
  const cleaned = { big: '10', text: 'a?b', kept: { deep: [1] }, cycle: {} };

  it('are cleaned at any endpoint, with one warning; their batch is sent with them [TRACE-X32, T71]', async () => {
    for (const endpoint of [undefined, COLLECTOR]) {
      const lines = logLines();
      const { exporter, sent } = setUp({ endpoint });
      const t = trace();
      await exporter.export([t, custom(broken(), t), custom({ fine: true }, t)]);
      expect(sent).toHaveLength(1);
      expect(sent[0]?.body.data.map((one) => (one['span_data'] as { data?: unknown } | undefined)?.data)).toEqual([
        undefined,
        cleaned,
        { fine: true },
      ]);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain('JSON cannot say');
    }
  });

  it('are dates as texts, notes for binary data, maps and sets, nothing for functions and what throws [TRACE-X19]', () => {
    const thrower = {
      get bad(): never {
        throw new Error('getter');
      },
      good: 1,
    };
    expect(
      cleanJson({
        date: new Date(0),
        noDate: new Date(Number.NaN),
        bytes: new Uint8Array(3),
        buffer: new ArrayBuffer(2),
        map: new Map([[1, 2]]),
        set: new Set([1]),
        f: () => {},
        s: Symbol('s'),
        json: { toJSON: () => ({ a: Number.NaN, b: 1 }) },
        broken: {
          toJSON() {
            throw new Error('toJSON');
          },
        },
        list: [1, () => {}, 2n],
        thrower,
      }),
    ).toEqual({
      date: '1970-01-01T00:00:00.000Z',
      noDate: null,
      bytes: { truncated: true, original_type: 'Uint8Array', preview: '<Uint8Array len=3 truncated>' },
      buffer: { truncated: true, original_type: 'ArrayBuffer', preview: '<ArrayBuffer len=2 truncated>' },
      map: { truncated: true, original_type: 'Map', preview: '<Map len=1 truncated>' },
      set: { truncated: true, original_type: 'Set', preview: '<Set len=1 truncated>' },
      json: { b: 1 },
      list: [1, '2'],
      thrower: { good: 1 },
    });
    expect(cleanJson(Number.NaN)).toBeUndefined();
  });

  it('do not end an export, however deep, odd or hostile they are [TRACE-X32, S17]', async () => {
    let deep: unknown = 1;
    for (let i = 0; i < 20_000; i++) deep = [deep];
    const hostile = {
      get bad(): never {
        throw new Error('getter');
      },
      toJSON: () => hostile,
    };
    const proto = JSON.parse('{"__proto__":{"polluted":1},"n":1}') as Record<string, unknown>;
    const { exporter, fake } = setUp();
    configureLogging({ level: 'silent' });
    const items = [
      custom({ deep }),
      custom({ hostile }),
      custom({ ...proto, n: Number.NaN }),
      custom({ b: new Uint8Array(9) }),
    ];
    expect(await exporter.export(items)).toEqual({ lost: 0 });
    expect(fake.traces).toHaveLength(4);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(fake.traces[3]?.['span_data']).toMatchObject({
      data: {
        b: { original_type: 'Uint8Array' },
      },
    });
  });

  it('are halves of pairs alone, too [TRACE-X32]', async () => {
    for (const endpoint of [undefined, COLLECTOR]) {
      const lines = logLines();
      const { exporter, sent } = setUp({ endpoint });
      await exporter.export([custom({ text: 'a\ud800b', 'key\udc00': '😀' })]);
      expect(sent[0]?.body.data[0]?.['span_data']).toMatchObject({ data: { text: 'a?b', 'key?': '😀' } });
      expect(lines).toHaveLength(1);
    }
  });

  it('are not seen in texts that only look like them', async () => {
    const lines = logLines();
    const { exporter, fake } = setUp();
    const data = { text: String.raw`a \ud800 b`, pair: '😀', nothing: null };
    await exporter.export([custom(data)]);
    expect(onlyData(fake)['data']).toEqual(data);
    expect(lines).toEqual([]);
  });
});
