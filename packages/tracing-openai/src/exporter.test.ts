import { configureLogging } from '@agents/core';
import { resetDefaults } from '@agents/core/testing';
import { BatchTraceProcessor, setTraceExportKey } from '@agents/core/tracing';
import type { Trace } from '@agents/core/tracing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { custom, logLines, setUp, span, trace } from '../test/kit.ts';
import type { Sent } from '../test/kit.ts';
import { OpenAITraceExporter } from './index.ts';
import type { OpenAITraceExporterOptions } from './index.ts';

let lines: string[];
beforeEach(() => {
  lines = logLines();
  for (const name of ['OPENAI_API_KEY', 'OPENAI_ORG_ID', 'OPENAI_PROJECT_ID']) vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  resetDefaults();
});

/** Status after status, then 204. */
function failing(...statuses: (number | { status: number; headers: Record<string, string> })[]) {
  const { fake, ...others } = setUp({ baseDelayMs: 1000 });
  for (const given of statuses)
    fake.inject({
      kind: 'status',
      ...(typeof given === 'number' ? { status: given } : given),
      body: { secret: 'body' },
    });
  return { fake, ...others };
}

/** Exports while the clock is moved by hand; the waits between the requests, in milliseconds. */
async function waits(exporter: OpenAITraceExporter, sent: readonly Sent[], options = {}): Promise<[number[], number]> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const state = { done: false };
  const work = exporter.export([trace()], options).finally(() => (state.done = true));
  while (!state.done) {
    await vi.advanceTimersByTimeAsync(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { lost } = await work;
  return [sent.slice(1).map(({ at }, index) => at - (sent[index]?.at ?? 0)), lost];
}

describe('a request', () => {
  it('is one POST of all records, with the headers of the ingest [TRACE-X1, X6]', async () => {
    const { exporter, sent, fake } = setUp({ organization: 'org_1', project: 'proj_1' });
    const t = trace('Refund desk', { groupId: 'g' });
    const s = custom({ rows: 1 }, t);
    expect(await exporter.export([t, s])).toEqual({ lost: 0 });
    expect(fake.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /v1/traces/ingest']);
    expect(sent[0]?.url).toBe('https://api.openai.com/v1/traces/ingest');
    expect(Object.fromEntries(sent[0]?.headers ?? [])).toEqual({
      authorization: 'Bearer k0',
      'content-type': 'application/json',
      'openai-beta': 'traces=v1',
      'openai-organization': 'org_1',
      'openai-project': 'proj_1',
    });
    expect(sent[0]?.body).toEqual({ data: [t.toJSON(), s.toJSON()] });
    expect(fake.traces).toHaveLength(2);
  });

  it('has organization and project of the environment, read at each export, and headers of the user over all [TRACE-X2]', async () => {
    const { exporter, sent } = setUp({ headers: { 'X-Team': 'a', 'OpenAI-Beta': 'traces=v1, more' } });
    await exporter.export([trace()]);
    vi.stubEnv('OPENAI_ORG_ID', 'org_env');
    vi.stubEnv('OPENAI_PROJECT_ID', 'proj_env');
    await exporter.export([trace()]);
    expect(sent.map(({ headers }) => [headers.get('openai-organization'), headers.get('openai-project')])).toEqual([
      [null, null],
      ['org_env', 'proj_env'],
    ]);
    expect([sent[0]?.headers.get('x-team'), sent[0]?.headers.get('openai-beta')]).toEqual(['a', 'traces=v1, more']);
  });

  it('is not made for nothing, nor for items without a record [TRACE-X5]', async () => {
    const { exporter, sent } = setUp();
    expect(await exporter.export([])).toEqual({ lost: 0 });
    const silent = { ...trace(), toJSON: () => undefined } as unknown as Trace;
    expect(await exporter.export([silent])).toEqual({ lost: 0 });
    expect(sent).toEqual([]);
  });

  it('goes nowhere else: a redirect is told and not followed [TRACE-X11]', async () => {
    const { exporter, sent } = failing({ status: 307, headers: { location: 'https://elsewhere.test/' } });
    expect(await exporter.export([trace()])).toEqual({ lost: 1 });
    expect(sent).toHaveLength(1);
    expect(lines).toEqual(['error Export of traces was refused: a redirect, which is not followed.']);
    const init: RequestInit[] = [];
    const own = new OpenAITraceExporter({
      apiKey: 'k',
      fetch: async (_input, given) => {
        init.push(given ?? {});
        return new Response(null, { status: 204 });
      },
    });
    await own.export([trace()]);
    expect(init[0]?.redirect).toBe('manual');
  });

  it('leaves no body unread [TRACE-X6]', async () => {
    let cancelled = 0;
    const fetch = async (): Promise<Response> =>
      new Response(new ReadableStream({ cancel: () => void cancelled++ }), { status: 202 });
    await new OpenAITraceExporter({ apiKey: 'k', fetch }).export([trace()]);
    expect(cancelled).toBe(1);
  });
});

describe('the key', () => {
  const keyOf = (sent: { headers: Headers } | undefined): string | null | undefined =>
    sent?.headers.get('authorization');

  it("is the trace's own, the option, core's, the environment's, read at each export [TRACE-X2, R4]", async () => {
    const { exporter, sent } = setUp({ apiKey: undefined });
    vi.stubEnv('OPENAI_API_KEY', 'env');
    await exporter.export([trace()]);
    setTraceExportKey('core');
    await exporter.export([trace()]);
    await exporter.export([span({ type: 'custom', name: 'c' }, trace('t', { apiKey: 'own' }))]);
    const option = setUp({ apiKey: 'option' });
    await option.exporter.export([trace()]);
    expect([...sent, ...option.sent].map(keyOf)).toEqual(['Bearer env', 'Bearer core', 'Bearer own', 'Bearer option']);
  });

  it('parts a batch: one request for each, in order, whatever becomes of the others [TRACE-X3, X29, T39]', async () => {
    const { exporter, sent, fake } = setUp();
    fake.inject({ kind: 'status', status: 400 });
    const [a, b, none] = [trace('a', { apiKey: 'k1' }), trace('b', { apiKey: 'k2' }), trace('none')];
    const items = [a, b, none, custom({ n: 1 }, b), custom({ n: 2 }, a), custom({ n: 3 }, none)];
    expect(await exporter.export(items)).toEqual({ lost: 2 });
    expect(sent.map((one) => [keyOf(one), one.body.data.map((record) => record['trace_id'] ?? record['id'])])).toEqual([
      ['Bearer k1', [a.traceId, a.traceId]],
      ['Bearer k2', [b.traceId, b.traceId]],
      ['Bearer k0', [none.traceId, none.traceId]],
    ]);
    const bodies = JSON.stringify(sent.map(({ body }) => body));
    for (const key of ['k0', 'k1', 'k2']) expect(bodies).not.toContain(`"${key}"`);
  });

  it('of an export that is under way stays [TRACE-X30]', async () => {
    setTraceExportKey('before');
    const { exporter, sent, fake } = setUp({ apiKey: undefined });
    fake.inject({ kind: 'status', status: 500 });
    const work = exporter.export([trace()]);
    setTraceExportKey('a');
    await work;
    await exporter.export([trace()]);
    expect(sent.map(keyOf)).toEqual(['Bearer before', 'Bearer before', 'Bearer a']);
  });

  it('that is missing skips the group, with one warning in the process that says what to do [TRACE-X4]', async () => {
    vi.resetModules();
    // Modules that are loaded anew have a log of their own.
    const warn = vi.spyOn(console, 'warn').mockImplementation((...line: unknown[]) => void lines.push(line.join(' ')));
    const anew = await import('./exporter.ts');
    const calls: unknown[] = [];
    const fetch = async (): Promise<Response> => {
      calls.push(1);
      return new Response(null, { status: 204 });
    };
    const [first, second] = [new anew.OpenAITraceExporter({ fetch }), new anew.OpenAITraceExporter({ fetch })];
    expect(await first.export([trace(), trace('t', { apiKey: 'own' })])).toEqual({ lost: 1 });
    await first.export([trace()]);
    await second.export([trace()]);
    expect(calls).toHaveLength(1);
    expect(lines).toHaveLength(1);
    warn.mockRestore();
    expect(lines[0]).toMatch(/.*setTraceExportKey.*setTracingDisabled/);
  });

  it('with characters that no header may have loses the group, and shows nowhere', async () => {
    const { exporter, sent } = setUp({ apiKey: 'marker\nkey' });
    expect(await exporter.export([trace(), trace('t', { apiKey: 'k1' })])).toEqual({ lost: 1 });
    expect(sent).toHaveLength(1);
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('marker');
  });
});

describe('what does not pass', () => {
  it.each([400, 401, 403, 404, 405, 422])(
    '%i is not repeated, and told with its status alone [TRACE-X7]',
    async (status) => {
      const { exporter, sent } = failing(status);
      expect(await exporter.export([trace()])).toEqual({ lost: 1 });
      expect(sent).toHaveLength(1);
      const hint =
        status === 401 || status === 403
          ? ' Check the key: it comes from traceApiKey of the run, the option apiKey, setTraceExportKey() or OPENAI_API_KEY.'
          : '';
      expect(lines).toEqual([`error Export of traces was refused: status ${status}.${hint}`]);
    },
  );

  it('shows its body only where the log may show data [TRACE-X7]', async () => {
    configureLogging({ dontLogModelData: false, dontLogToolData: false });
    await failing(400).exporter.export([trace()]);
    expect(lines).toEqual(['error Export of traces was refused: status 400. {"secret":"body"}']);
    configureLogging({ dontLogModelData: true });
    await failing(400).exporter.export([trace()]);
    expect(lines[1]).toBe('error Export of traces was refused: status 400.');
  });

  it('401 and 403 are told once in five minutes [TRACE-X7, T30]', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { exporter, sent } = failing(401, 401, 403, 401);
    const processor = new BatchTraceProcessor(exporter);
    for (let i = 0; i < 3; i++) {
      processor.onTraceStart(trace());
      await processor.forceFlush();
    }
    expect([sent.length, lines.length]).toEqual([3, 1]);
    expect(processor.stats).toEqual({ queued: 0, exported: 0, dropped: 0, failed: 3 });
    vi.advanceTimersByTime(5 * 60_000);
    await exporter.export([trace()]);
    expect(lines).toHaveLength(2);
  });
});

describe('what may pass', () => {
  it.each([408, 409, 425, 429, 500, 502, 503, 504, 599])('%i is repeated [TRACE-X8]', async (status) => {
    const { exporter, sent, fake } = setUp();
    fake.inject({ kind: 'status', status });
    expect(await exporter.export([trace()])).toEqual({ lost: 0 });
    expect([sent.length, lines]).toEqual([2, []]);
  });

  it('no connection is repeated, and so is a request that takes too long [TRACE-X8]', async () => {
    const { exporter, sent, fake } = setUp({ timeoutMs: 20 });
    fake.inject({ kind: 'refuse' });
    fake.inject({ kind: 'hang' });
    expect(await exporter.export([trace()])).toEqual({ lost: 0 });
    expect(sent).toHaveLength(3);
  });

  it('after 500, 500 the third attempt counts, about 1 s and 2 s later [TRACE-X28, X8]', async () => {
    const { exporter, sent } = failing(500, 500);
    const [[first = 0, second = 0], lost] = await waits(exporter, sent);
    expect(lost).toBe(0);
    expect(sent).toHaveLength(3);
    expect([first >= 1000 && first <= 1200, second >= 2000 && second <= 2300]).toEqual([true, true]);
  });

  it('503, 429 with a hint of 2 s, 202: about 1 s and 2 s, one batch exported [TRACE-T29]', async () => {
    const { exporter, sent } = failing(503, { status: 429, headers: { 'retry-after': '2' } });
    const [[first = 0, second = 0], lost] = await waits(exporter, sent);
    expect(lost).toBe(0);
    expect([first >= 1000 && first <= 1200, second >= 2000 && second <= 2300]).toEqual([true, true]);
  });

  it.each([
    ['seconds', { 'retry-after': '9' }, 9000],
    ['milliseconds', { 'retry-after-ms': '4000', 'retry-after': '20' }, 4000],
    ['a date', { 'retry-after': 'soon' }, 12_000],
    ['less than our own', { 'retry-after': '0' }, 1000],
    ['far too much', { 'retry-after': '600' }, 30_000],
    ['no number', { 'retry-after': 'later' }, 1000],
  ])('waits as the service asks, at most 30 s: %s [TRACE-X8, T69]', async (name, headers, expected) => {
    if (name === 'a date') headers = { 'retry-after': new Date(Date.now() + 12_000).toUTCString() };
    const { exporter, sent } = failing({ status: 429, headers });
    const [[first = 0]] = await waits(exporter, sent);
    // A date has whole seconds.
    expect(first).toBeGreaterThanOrEqual(expected - (name === 'a date' ? 1050 : 0));
    expect(first).toBeLessThanOrEqual(expected * 1.1 + 100);
  });

  it('is not repeated where the service says so: 409, 202 is two attempts, 429 with x-should-retry false is one [TRACE-T69, X8]', async () => {
    const passing = failing(409);
    await waits(passing.exporter, passing.sent);
    expect(passing.sent).toHaveLength(2);
    vi.useRealTimers();
    const refusing = failing({ status: 429, headers: { 'x-should-retry': ' False ' } });
    expect(await refusing.exporter.export([trace()])).toEqual({ lost: 1 });
    const down = failing({ status: 503, headers: { 'x-should-retry': 'false' } });
    expect(await down.exporter.export([trace()])).toEqual({ lost: 1 });
    expect([refusing.sent.length, down.sent.length]).toEqual([1, 1]);
  });

  it('is given up after maxAttempts, with one line [TRACE-X8]', async () => {
    const { exporter, sent, fake } = setUp({ maxAttempts: 4 });
    fake.inject({ kind: 'status', status: 503, times: 9 });
    expect(await exporter.export([trace(), custom({})])).toEqual({ lost: 2 });
    expect(sent).toHaveLength(4);
    expect(lines).toEqual(['error Export of traces was not taken in 4 attempts (status 503).']);
  });

  it('tells why there was no connection, by the code of the system alone [TRACE-X8, E14]', async () => {
    const cause = Object.assign(new Error('secret'), { code: 'ECONNREFUSED' });
    const send = async (): Promise<never> => {
      throw new TypeError('secret', { cause });
    };
    const exporter = new OpenAITraceExporter({ apiKey: 'key', fetch: send, maxAttempts: 1 });
    expect(await exporter.export([trace()])).toEqual({ lost: 1 });
    expect(lines).toEqual(['error Export of traces was not taken in 1 attempt (TypeError ECONNREFUSED).']);
  });

  it('no attempt begins after the deadline; a wait that would end after it is not begun [TRACE-X10]', async () => {
    const { exporter, sent } = failing(500, 500, 500);
    const [, lost] = await waits(exporter, sent, { deadlineMs: 1500 });
    expect([sent.length, lost]).toEqual([2, 1]);
    vi.useRealTimers();
    expect(await setUp().exporter.export([trace()], { deadlineMs: 0 })).toEqual({ lost: 1 });
    expect(lines.at(-1)).toContain('the time for it is over');
  });

  it('a stop ends a wait and a request at once [TRACE-X10]', async () => {
    for (const kind of ['hang', 'status'] as const) {
      const { exporter, sent, fake } = setUp({ baseDelayMs: 600_000 });
      fake.inject(kind === 'hang' ? { kind } : { kind, status: 500 });
      const controller = new AbortController();
      const work = exporter.export([trace()], { signal: controller.signal });
      await vi.waitFor(() => expect(sent).toHaveLength(1));
      await new Promise((resolve) => setTimeout(resolve, 5));
      controller.abort();
      expect(await work).toEqual({ lost: 1 });
      expect(sent).toHaveLength(1);
    }
  });
});

describe('a batch that is too large', () => {
  const sizes = (sent: readonly { body: { data: readonly unknown[] } }[]): number[] =>
    sent.map(({ body }) => body.data.length);

  it('is halved at 413 and sent in parts, in order [TRACE-X9]', async () => {
    const { exporter, sent, fake } = setUp();
    fake.inject({ kind: 'status', status: 413, times: 2 });
    const items = Array.from({ length: 5 }, (_, n) => custom({ n }));
    expect(await exporter.export(items)).toEqual({ lost: 0 });
    expect(sizes(sent)).toEqual([5, 3, 2, 1, 2]);
    expect(fake.traces.map((record) => (record['span_data'] as { data: unknown }).data)).toEqual(
      [0, 1, 2, 3, 4].map((n) => ({ n })),
    );
    expect(lines).toEqual([]);
  });

  it('of more than 5 MB is halved before anything is sent [TRACE-X9]', async () => {
    const { exporter, sent, fake } = setUp();
    const items = Array.from({ length: 8 }, () => custom({ text: 'é'.repeat(400_000) }));
    expect(await exporter.export(items)).toEqual({ lost: 0 });
    expect(sizes(sent)).toEqual([4, 4]);
    expect(fake.traces).toHaveLength(8);
  });

  it('of one is cut to a tenth, then lost with a warning; the others go [TRACE-X9]', async () => {
    const { exporter, sent, fake } = setUp();
    fake.inject({ kind: 'status', status: 413, on: { nth: 1 } });
    const long = span({ type: 'function', name: 'f', output: 'x'.repeat(90_000) });
    expect(await exporter.export([long])).toEqual({ lost: 0 });
    expect(JSON.stringify(sent[1]?.body.data[0]?.['span_data'])).toMatch(
      /^\{"type":"function","name":"f","input":null,"output":"x{9982}\.\.\. \[truncated\]"/,
    );
    expect(lines).toEqual([]);
    fake.inject({ kind: 'status', status: 413, times: 4 });
    expect(await exporter.export([long, trace()])).toEqual({ lost: 2 });
    expect(lines).toEqual(Array(2).fill('warn A trace or span is too large to be exported; it is lost.'));
    const huge = custom({ text: 'x'.repeat(5_100_000) });
    expect(await exporter.export([huge, trace()])).toEqual({ lost: 1 });
    expect(fake.traces.filter(({ object }) => object === 'trace')).toHaveLength(1);
  });
});

describe('the exporter', () => {
  it('refuses exports once it is closed, with one warning; what is under way ends [TRACE-X13]', async () => {
    const { exporter, sent, fake } = setUp();
    fake.inject({ kind: 'delay', ms: 5 });
    const work = exporter.export([trace()]);
    await exporter.close();
    expect(await work).toEqual({ lost: 0 });
    expect(await exporter.export([trace(), custom({})])).toEqual({ lost: 2 });
    await exporter.export([trace()]);
    expect(sent).toHaveLength(1);
    expect(lines).toHaveLength(1);
  });

  it.each([
    ['http://collector.test/ingest'],
    ['ftp://127.0.0.1/'],
    ['collector'],
    ['http://127.0.0.1.evil.test/'],
    ['http://user:marker@host.test/'],
  ])('takes no endpoint to which a key must not go: %s [TRACE-X12]', (endpoint) => {
    expect(() => new OpenAITraceExporter({ endpoint })).toThrow(/https URL/);
    expect(() => new OpenAITraceExporter({ endpoint })).not.toThrow(/marker/);
  });

  it.each(['https://collector.test/x', 'http://localhost:4000/', 'http://127.0.0.1:1/', 'http://[::1]:1/'])(
    'posts to %s, and to nothing that the environment says [TRACE-X12]',
    async (endpoint) => {
      vi.stubEnv('OPENAI_BASE_URL', 'https://elsewhere.test/v1');
      const urls: string[] = [];
      const fetch: NonNullable<OpenAITraceExporterOptions['fetch']> = async (input) => {
        urls.push(input instanceof Request ? input.url : String(input));
        return new Response(null, { status: 202 });
      };
      await new OpenAITraceExporter({ apiKey: 'k', endpoint, fetch }).export([trace()]);
      await new OpenAITraceExporter({ apiKey: 'k', fetch }).export([trace()]);
      expect(urls).toEqual([endpoint, 'https://api.openai.com/v1/traces/ingest']);
    },
  );

  it.each([
    [{ maxAttempt: 1 }, "Did you mean 'maxAttempts'"],
    [{ maxAttempts: 0 }, "'maxAttempts'"],
    [{ baseDelayMs: Number.NaN }, "'baseDelayMs'"],
    [{ timeoutMs: 0 }, "'timeoutMs'"],
    [{ apiKey: '' }, "'apiKey'"],
    [{ headers: { a: 1 } }, "'headers'"],
    [{ sanitize: 'yes' }, "'sanitize'"],
  ])('refuses unknown options and wrong kinds: %o', (options, message) => {
    expect(() => new OpenAITraceExporter(options as never)).toThrow(message);
  });
});
