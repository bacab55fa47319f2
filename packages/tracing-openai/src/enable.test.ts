import { Agent, flushTraces, run } from '@agents/core';
import { FakeOpenAI, resetDefaults, ScriptedModel, traceProcessorContract } from '@agents/core/testing';
import { BatchTraceProcessor, setTraceProcessors, shutdownTracing } from '@agents/core/tracing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { logLines, setUp, trace } from '../test/kit.ts';
import { enableOpenAITracing, OpenAITraceExporter } from './index.ts';

afterEach(async () => {
  await shutdownTracing();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  resetDefaults();
});

const agent = (): Agent => new Agent({ name: 'A', model: new ScriptedModel(['hi'], { trace: true }) });

describe('tracing to OpenAI', () => {
  it('begins with the call that turns it on, whatever is imported and in the environment [TRACE-T66, D-1]', async () => {
    const fake = new FakeOpenAI();
    vi.stubEnv('OPENAI_API_KEY', 'sk-env');
    vi.stubGlobal('fetch', fake.fetch);
    await run(agent(), 'hi');
    await flushTraces();
    expect(fake.requests).toEqual([]);
    enableOpenAITracing();
    await run(agent(), 'hi');
    expect(fake.requests).toEqual([]);
    await flushTraces();
    expect(fake.requests).toHaveLength(1);
    expect(fake.traces.map((record) => record['object'])).toEqual(['trace', ...Array<string>(4).fill('trace.span')]);
  });

  it('is turned on once: later calls give the first processor, until the shutdown', async () => {
    const fake = new FakeOpenAI();
    const options = { apiKey: 'k', fetch: fake.fetch };
    const first = enableOpenAITracing(options);
    expect(enableOpenAITracing()).toBe(first);
    await run(agent(), 'hi');
    await flushTraces();
    expect(fake.traces).toHaveLength(5);
    expect(first.stats).toEqual({ queued: 0, exported: 5, dropped: 0, failed: 0 });
    // Taken out meanwhile, it comes back.
    setTraceProcessors([]);
    expect(enableOpenAITracing()).toBe(first);
    await run(agent(), 'hi');
    await shutdownTracing();
    expect(fake.traces).toHaveLength(10);
    const second = enableOpenAITracing(options);
    expect(second).not.toBe(first);
    await run(agent(), 'hi');
    await flushTraces();
    expect(fake.traces).toHaveLength(15);
  });

  it('takes options of the exporter and of its queue, and no others', async () => {
    expect(() => enableOpenAITracing({ maxQueSize: 1 } as never)).toThrow("Did you mean 'maxQueueSize'");
    expect(() => enableOpenAITracing({ endpoint: 'http://elsewhere.test' })).toThrow(/https/);
    expect(() => enableOpenAITracing({ maxBatchSize: 0 })).toThrow('maxBatchSize');
    const fake = new FakeOpenAI();
    enableOpenAITracing({ apiKey: 'k', fetch: fake.fetch, maxBatchSize: 2, filter: (item) => item.type !== 'turn' });
    await run(agent(), 'hi');
    await flushTraces();
    expect(fake.requests.map(({ body }) => (body as { data: unknown[] }).data.length)).toEqual([2, 2]);
  });

  it('counts what did not arrive as failed', async () => {
    const lines = logLines();
    const { exporter, fake } = setUp({ maxAttempts: 1 });
    fake.inject({ kind: 'status', status: 503 });
    const processor = new BatchTraceProcessor(exporter);
    processor.onTraceStart(trace());
    await processor.forceFlush();
    expect(processor.stats).toEqual({ queued: 0, exported: 0, dropped: 0, failed: 1 });
    expect(lines).toHaveLength(1);
  });
});

describe('contract of a batch processor with this exporter [TRACE-P6]', () => {
  const make = (): BatchTraceProcessor =>
    new BatchTraceProcessor(
      new OpenAITraceExporter({ apiKey: 'k', fetch: async () => new Response(null, { status: 204 }) }),
    );
  it.for(traceProcessorContract(make))('$title', async (contractCase) => {
    await expect(contractCase.run()).resolves.toBeUndefined();
  });
});
