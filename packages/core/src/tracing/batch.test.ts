import { spawn } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { traceProcessorContract } from '../testing/contracts/trace-processor.ts';
import { BatchTraceProcessor } from './batch.ts';
import { createSpan, createTrace } from './create.ts';
import { addTraceProcessor, setTraceProcessors } from './processors.ts';
import { flushTraces, setTracingDisabled, shutdownTracing } from './provider.ts';
import { wireRecord } from './wire-record.ts';
import { withSpan, withTrace } from './with.ts';
import type { BatchOptions } from './batch.ts';
import type { Span, Trace, TraceExporter } from './types.ts';

let lines: string[];

beforeEach(() => {
  lines = [];
  configureLogging({ sink: ({ level, message }) => lines.push(`${level} ${message}`) });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  resetAll();
});

/** An exporter whose calls are answered by hand. */
class HandExporter implements TraceExporter {
  readonly batches: (readonly (Trace | Span)[])[] = [];
  readonly options: Parameters<TraceExporter['export']>[1][] = [];
  readonly open: { resolve: () => void; reject: (error: Error) => void }[] = [];
  closed = 0;

  async export(items: readonly (Trace | Span)[], options: Parameters<TraceExporter['export']>[1]): Promise<void> {
    this.batches.push(items);
    this.options.push(options);
    await new Promise<void>((resolve, reject) => {
      this.open.push({ resolve, reject });
    });
  }
  async close(): Promise<void> {
    this.closed++;
  }
  get sizes(): number[] {
    return this.batches.map((batch) => batch.length);
  }
  async answer(index: number, error?: Error): Promise<void> {
    await vi.waitUntil(() => this.open.length > index);
    if (error === undefined) this.open[index]?.resolve();
    else this.open[index]?.reject(error);
  }
}

/** An exporter that takes everything at once. */
function quick(): TraceExporter & { batches: (readonly (Trace | Span)[])[] } {
  const batches: (readonly (Trace | Span)[])[] = [];
  return { batches, export: async (items) => void batches.push(items) };
}

function setUp(options: BatchOptions = {}): {
  exporter: HandExporter;
  processor: BatchTraceProcessor;
  add: (count: number) => void;
} {
  const exporter = new HandExporter();
  const processor = new BatchTraceProcessor(exporter, options);
  addTraceProcessor({});
  const trace = createTrace('t').start();
  const add = (count: number): void => {
    for (let i = 0; i < count; i++)
      processor.onSpanEnd(createSpan({ type: 'custom', name: `${i}` }, { parent: trace }) as Span);
  };
  return { exporter, processor, add };
}

it('queues a trace at its start and a span at its end, and exports them as they are by then [TRACE-B1, B11]', async () => {
  const exporter = quick();
  addTraceProcessor(new BatchTraceProcessor(exporter));
  withTrace('t', (trace) => {
    withSpan({ type: 'custom', name: 'a' }, () => withSpan({ type: 'custom', name: 'b' }, () => {}));
    expect(trace.endTimeMs).toBeUndefined();
  });
  expect(exporter.batches).toEqual([]);
  await flushTraces();
  expect(exporter.batches.flat().map((item) => (item.type === 'custom' ? item.spanData.name : item.type))).toEqual([
    'trace',
    'b',
    'a',
  ]);
  expect(exporter.batches.flat()[0]?.endTimeMs).toBeDefined();
});

it('writes nothing down before the export: what became of an item meanwhile is in its record [TRACE-B11]', async () => {
  const records: unknown[] = [];
  const exporter: TraceExporter = {
    export: async (items) => {
      for (const item of items) records.push(item.toJSON(), wireRecord(item));
    },
  };
  addTraceProcessor(new BatchTraceProcessor(exporter));
  const made = withTrace('t', () => withSpan({ type: 'custom', name: 'a', data: { n: 1 } }, (span) => span));
  // Behind its end: a late callback, a usage that a service tells afterwards.
  made.spanData.data = { n: 2 };
  await flushTraces();
  made.spanData.data = { n: 3 };
  const late = { span_data: { name: 'a', data: { n: 2 } } };
  expect(records).toMatchObject([{ object: 'trace' }, { object: 'trace' }, late, late]);
});

it('drops new items when the queue is full, counts them, and warns once a minute [TRACE-B2, T31]', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const { exporter, processor, add } = setUp({
    maxQueueSize: 3,
    exportTriggerRatio: 1,
    scheduleDelayMs: 10,
    exportTimeoutMs: 600_000,
  });
  add(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(exporter.sizes).toEqual([1]);
  // What is being exported takes a place, too.
  add(4);
  expect(processor.stats).toEqual({ queued: 3, exported: 0, dropped: 2, failed: 0 });
  expect(lines).toEqual(
    ['warn The queue of traces is full or was closed: 2 traces and spans were dropped so far.'].map((line) =>
      line.replace('2', '1'),
    ),
  );
  await vi.advanceTimersByTimeAsync(59_000);
  add(1);
  expect(lines).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1001);
  add(1);
  expect(lines.at(-1)).toContain('4 traces and spans were dropped');
});

it('exports after the delay, and at once when the queue reaches its mark [TRACE-B3, B4, B5]', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const { exporter, add } = setUp({ maxQueueSize: 10, exportTriggerRatio: 0.5, scheduleDelayMs: 1000 });
  expect(vi.getTimerCount()).toBe(0);
  add(2);
  await vi.advanceTimersByTimeAsync(999);
  expect(exporter.sizes).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(exporter.sizes).toEqual([2]);
  exporter.open[0]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
  add(4);
  expect(exporter.sizes).toEqual([2]);
  add(1);
  expect(exporter.sizes).toEqual([2, 5]);
});

it('exports one batch at a time, in order, none too big [TRACE-B6]', async () => {
  const { exporter, processor, add } = setUp({ maxQueueSize: 10, maxBatchSize: 4, exportTriggerRatio: 0.1 });
  add(9);
  expect(exporter.sizes).toEqual([1]);
  await exporter.answer(0);
  await exporter.answer(1);
  await exporter.answer(2);
  await processor.forceFlush();
  expect(exporter.sizes).toEqual([1, 4, 4]);
  expect(exporter.batches.flat().map((item) => item.type === 'custom' && item.spanData.name)).toEqual([
    '0',
    '1',
    '2',
    '3',
    '4',
    '5',
    '6',
    '7',
    '8',
  ]);
});

it('flushes what is in flight and what was queued before, in batches; flushes share the work [TRACE-B7, T32, IL-103]', async () => {
  const { exporter, processor, add } = setUp({ maxQueueSize: 1000 });
  add(1);
  const first = processor.forceFlush();
  await vi.waitFor(() => expect(exporter.sizes).toEqual([1]));
  add(300);
  let done = 0;
  const flushes = [processor.forceFlush(), processor.forceFlush()].map((flush) => flush.then(() => done++));
  for (let i = 0; i < 4; i++) {
    expect(done).toBe(0);
    await exporter.answer(i);
  }
  await Promise.all([first, ...flushes]);
  expect(exporter.sizes).toEqual([1, 128, 128, 44]);
  expect(processor.stats).toEqual({ queued: 0, exported: 301, dropped: 0, failed: 0 });
});

it('loses the batch of a failing exporter, with one line, and goes on [TRACE-B8]', async () => {
  const { exporter, processor, add } = setUp({ maxBatchSize: 2 });
  add(3);
  const flushed = processor.forceFlush();
  await exporter.answer(0, new Error('secret'));
  await exporter.answer(1);
  await flushed;
  expect(processor.stats).toEqual({ queued: 0, exported: 1, dropped: 0, failed: 2 });
  expect(lines).toEqual(['error Export of 2 traces and spans failed (Error).']);
});

it('counts as failed what an exporter tells to be lost, without a line: the exporter has told of it [TRACE-B8]', async () => {
  const processor = new BatchTraceProcessor(
    { export: async (items) => ({ lost: items.length === 3 ? 2 : 7 }) },
    { maxBatchSize: 3 },
  );
  addTraceProcessor({});
  const trace = createTrace('t').start();
  for (let i = 0; i < 4; i++) processor.onSpanEnd(createSpan({ type: 'custom', name: 's' }, { parent: trace }));
  await processor.forceFlush();
  expect(processor.stats).toEqual({ queued: 0, exported: 1, dropped: 0, failed: 3 });
  expect(lines).toEqual([]);
});

it('aborts an exporter that does not come back, and goes on [TRACE-B9]', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const { exporter, processor, add } = setUp({ maxBatchSize: 1, exportTimeoutMs: 100 });
  add(2);
  void processor.forceFlush();
  await vi.advanceTimersByTimeAsync(99);
  expect(exporter.options[0]?.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(exporter.options[0]?.signal.aborted).toBe(true);
  expect([exporter.sizes, processor.stats.failed]).toEqual([[1, 1], 1]);
});

it('drains everything at a shutdown without limit, closes the exporter, and ignores what comes later [TRACE-B10, IL-105]', async () => {
  const { exporter, processor, add } = setUp({ maxBatchSize: 2 });
  add(3);
  const down = processor.shutdown();
  await exporter.answer(0);
  await exporter.answer(1);
  await down;
  add(5);
  await processor.shutdown();
  await processor.forceFlush();
  expect([exporter.sizes, exporter.closed, processor.stats.queued]).toEqual([[2, 1], 1, 0]);
  expect(exporter.options[0]).not.toHaveProperty('deadlineMs');
});

it('ends a shutdown at its limit: the export is aborted, the rest counted as dropped [TRACE-B10, T33]', async () => {
  const { exporter, processor, add } = setUp({ maxBatchSize: 2 });
  add(5);
  await processor.shutdown({ timeoutMs: 20 });
  expect(exporter.options[0]?.signal.aborted).toBe(true);
  expect(exporter.options[0]?.deadlineMs).toBeLessThanOrEqual(20);
  expect(processor.stats).toMatchObject({ queued: 0, dropped: 3 });
  await vi.waitFor(() => expect(processor.stats.failed).toBe(2));
});

it('stops at the signal of a flush: the export is aborted, the rest stays queued [TRACE-P19, IL-107]', async () => {
  const { exporter, processor, add } = setUp({ maxBatchSize: 2 });
  add(5);
  const controller = new AbortController();
  const flushed = processor.forceFlush({ signal: controller.signal });
  await vi.waitFor(() => expect(exporter.sizes).toEqual([2]));
  controller.abort();
  await flushed;
  await vi.waitFor(() => expect(processor.stats).toEqual({ queued: 3, exported: 0, dropped: 0, failed: 2 }));
  expect(exporter.sizes).toEqual([2]);
});

it('exports on Workers without any timer: by size, by flush, or at the end of a trace by waitUntil [TRACE-B13, T64]', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  const work: Promise<unknown>[] = [];
  const [plain, kept] = [quick(), quick()];
  setTraceProcessors([
    new BatchTraceProcessor(plain),
    new BatchTraceProcessor(kept, { waitUntil: (promise) => work.push(promise) }),
  ]);
  withTrace('t', () => withSpan({ type: 'custom', name: 'a' }, () => {}));
  await Promise.all(work);
  expect([plain.batches.flat().length, kept.batches.flat().length]).toEqual([0, 2]);
  await flushTraces();
  expect(plain.batches.flat()).toHaveLength(2);
  expect(timers).not.toHaveBeenCalled();
  timers.mockRestore();
});

it('leaves out what the filter does not want, and what it cannot judge', async () => {
  const exporter = quick();
  addTraceProcessor(
    new BatchTraceProcessor(exporter, {
      filter: (item) => {
        if (item.type === 'custom' && item.spanData.name === 'bad') throw new Error('x');
        return item.type !== 'trace';
      },
    }),
  );
  withTrace('t', () => ['a', 'bad'].forEach((name) => withSpan({ type: 'custom', name }, () => {})));
  await flushTraces();
  expect(exporter.batches.flat()).toMatchObject([{ spanData: { name: 'a' } }]);
});

it('exports what is queued although tracing was disabled meanwhile [TRACE-T47, IL-110]', async () => {
  const exporter = quick();
  addTraceProcessor(new BatchTraceProcessor(exporter));
  withTrace('t', () => {});
  setTracingDisabled(true);
  await shutdownTracing();
  expect(exporter.batches.flat()).toHaveLength(1);
});

it('refuses impossible sizes [TRACE-B14]', () => {
  const bad: [BatchOptions, string][] = [
    [{ maxQueueSize: 0 }, "Option 'maxQueueSize' of BatchTraceProcessor must be a finite number above 0"],
    [{ maxBatchSize: -1 }, "Option 'maxBatchSize'"],
    [{ scheduleDelayMs: Number.NaN }, "Option 'scheduleDelayMs'"],
    [{ exportTimeoutMs: Number.POSITIVE_INFINITY }, "Option 'exportTimeoutMs'"],
    [
      { exportTriggerRatio: 0 },
      "Option 'exportTriggerRatio' of BatchTraceProcessor must be a number above 0 and at most 1",
    ],
    [{ exportTriggerRatio: 1.1 }, "Option 'exportTriggerRatio'"],
    [
      { maxQueueSize: 10, maxBatchSize: 11 },
      "Option 'maxBatchSize' of BatchTraceProcessor (11) is above 'maxQueueSize' (10).",
    ],
    [
      { maxQueueSizes: 1 } as BatchOptions,
      "Unknown option 'maxQueueSizes' of BatchTraceProcessor. Did you mean 'maxQueueSize'?",
    ],
  ];
  for (const [options, message] of bad) expect(() => new BatchTraceProcessor(quick(), options)).toThrow(message);
  expect(() => new BatchTraceProcessor({} as never)).toThrow("needs an exporter with a method 'export'");
});

it.for(traceProcessorContract(() => new BatchTraceProcessor({ export: async () => {} })))(
  '$title [TRACE-P6, B12]',
  { timeout: 60_000 },
  async (contractCase) => {
    await expect(contractCase.run()).resolves.toBeUndefined();
  },
);

it('keeps nothing of what was exported, the last batch included [TRACE-B12]', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const seen: WeakRef<object>[] = [];
  addTraceProcessor(new BatchTraceProcessor({ export: async () => {} }));
  for (let batch = 0; batch < 3; batch += 1) {
    withTrace('t', (trace) => {
      withSpan({ type: 'custom', name: 'x' }, (span) => void seen.push(new WeakRef(trace), new WeakRef(span)));
    });
    await flushTraces();
  }
  // References live until their task ends.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collect();
  expect(seen.filter((reference) => reference.deref() !== undefined)).toEqual([]);
});

/** Runs a program in a process of its own. */
async function processOf(program: string): Promise<{ code: number | null; output: string }> {
  const at = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href);
  const head = `
    import { BatchTraceProcessor } from ${at('./batch.ts')};
    import { addTraceProcessor } from ${at('./processors.ts')};
    import { withTrace } from ${at('./with.ts')};
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--conditions=source', '-e', head + program]);
  let output = '';
  child.stdout.on('data', (data) => (output += String(data)));
  child.stderr.on('data', (data) => (output += String(data)));
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  return { code, output };
}

it(
  'keeps no process alive by its timer, flushes at its end, and leaves its exit code alone [TRACE-B4, P19, T34]',
  { timeout: 30_000 },
  async () => {
    const { code, output } = await processOf(`
    const exporter = { export: async (items) => { await new Promise((resolve) => setTimeout(resolve, 20)); console.log('exported', items.length); } };
    addTraceProcessor(new BatchTraceProcessor(exporter, { scheduleDelayMs: 3_600_000 }));
    withTrace('t', () => {});
    process.exitCode = 7;
  `);
    expect([code, output]).toEqual([7, 'exported 1\n']);
  },
);

it('delays no process.exit [TRACE-P23]', { timeout: 30_000 }, async () => {
  const { code, output } = await processOf(`
    addTraceProcessor(new BatchTraceProcessor({ export: async () => console.log('exported') }));
    withTrace('t', () => {});
    process.exit(3);
  `);
  expect([code, output]).toEqual([3, '']);
});

it('leaves signals to the handlers of the user [TRACE-P24]', { timeout: 30_000 }, async () => {
  const { code, output } = await processOf(`
    addTraceProcessor(new BatchTraceProcessor({ export: async () => console.log('exported') }, { scheduleDelayMs: 3_600_000 }));
    withTrace('t', () => {});
    process.on('SIGTERM', () => {
      console.log('mine', process.listenerCount('SIGTERM'));
      setTimeout(() => process.exit(5), 50);
    });
    const alive = setInterval(() => {}, 1000);
    process.kill(process.pid, 'SIGTERM');
  `);
  expect([code, output]).toEqual([5, 'mine 1\n']);
});
