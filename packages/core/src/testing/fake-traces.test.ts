import { describe, expect, it } from 'vitest';
import { FakeOpenAI } from './fake-openai.ts';

const TRACE = { object: 'trace', id: 'trace_1', workflow_name: 'w', group_id: null, metadata: { tenant: 'acme' } };
const SPAN = {
  object: 'trace.span',
  id: 'span_1',
  trace_id: 'trace_1',
  parent_id: null,
  started_at: null,
  ended_at: null,
  span_data: { type: 'generation', input: [], usage: { input_tokens: 1, output_tokens: 2, details: {} } },
  error: null,
};
const HEADERS = { authorization: 'Bearer k', 'content-type': 'application/json', 'openai-beta': 'traces=v1' };

async function post(fake: FakeOpenAI, data: unknown, headers: Record<string, string> = HEADERS): Promise<number> {
  const body = JSON.stringify(data);
  return (await fake.fetch('https://fake.invalid/v1/traces/ingest', { method: 'POST', headers, body })).status;
}

describe('the ingest of traces', () => {
  it('keeps what was posted, in order, until the reset [TRACE-X1, X6]', async () => {
    const fake = new FakeOpenAI();
    expect(await post(fake, { data: [TRACE, SPAN] })).toBe(204);
    expect(await post(fake, { data: [{ ...SPAN, id: 'span_2' }] })).toBe(204);
    expect(fake.traces).toEqual([TRACE, SPAN, { ...SPAN, id: 'span_2' }]);
    fake.reset();
    expect(fake.traces).toEqual([]);
  });

  it.each([
    ['no data', {}],
    ['a record that is none', { data: [7] }],
    ['an object of another kind', { data: [{ object: 'session', id: 'x' }] }],
    ['no id', { data: [{ ...TRACE, id: '' }] }],
    ['an unknown member', { data: [{ ...SPAN, details: {} }] }],
    ['metadata that is no text', { data: [{ ...TRACE, metadata: { n: 1 } }] }],
    ['usage of a response', { data: [{ ...SPAN, span_data: { type: 'response', usage: {} } }] }],
    ['other usage of a generation', { data: [{ ...SPAN, span_data: { type: 'generation', usage: { requests: 1 } } }] }],
    ['a long output', { data: [{ ...SPAN, span_data: { type: 'function', output: 'x'.repeat(100_000) } }] }],
  ])('refuses %s, and keeps nothing of that batch', async (_name, body) => {
    const fake = new FakeOpenAI();
    expect(await post(fake, body)).toBe(400);
    expect(fake.traces).toEqual([]);
  });

  it('refuses large bodies, other methods, and requests without key or beta header', async () => {
    const fake = new FakeOpenAI({ apiKeys: ['k'] });
    const text = {
      data: Array.from({ length: 60 }, () => ({
        ...SPAN,
        span_data: { type: 'function', output: 'x'.repeat(99_000) },
      })),
    };
    expect(await post(fake, text)).toBe(413);
    expect(await post(fake, { data: [] }, { ...HEADERS, authorization: 'Bearer other' })).toBe(401);
    expect(await post(fake, { data: [] }, { authorization: 'Bearer k' })).toBe(400);
    const get = await fake.fetch('https://fake.invalid/v1/traces/ingest', { headers: HEADERS });
    expect(get.status).toBe(405);
  });

  it('takes everything that has an id when it is not strict', async () => {
    const fake = new FakeOpenAI({ strict: false });
    expect(await post(fake, { data: [{ ...SPAN, span_data: { type: 'response', usage: {} }, more: 1 }] })).toBe(204);
  });
});
