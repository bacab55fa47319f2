// 100,000 spans and a receiver that cannot be reached: `node --expose-gc load-child.ts <endpoint>`. Prints what became of them.
import { configureLogging } from '@agents/core';
import { addTraceProcessor, createSpan, createTrace } from '@agents/core/tracing';
import { enableOpenAITracing } from '../src/index.ts';

const SPANS = 100_000;
const MAX_QUEUE = 8192;
configureLogging({ level: 'silent' });
const collect = globalThis.gc as unknown as () => void;
const heap = async (): Promise<number> => {
  // References live until their task ends.
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    collect();
  }
  return process.memoryUsage().heapUsed;
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// What a full queue of these spans takes, by itself.
addTraceProcessor({});
const trace = createTrace('load').start();
const make = (n: number): ReturnType<typeof createSpan<'function'>> => {
  const span = createSpan(
    { type: 'function', name: 'lookup', input: `{"id":${n}}`, output: `result ${n}: ${'x'.repeat(200)}` },
    { parent: trace },
  );
  span.start();
  span.finish();
  return span;
};
make(0);
const before = await heap();
let kept: unknown[] | undefined = Array.from({ length: MAX_QUEUE }, (_, n) => make(n));
const full = (await heap()) - before;
kept.length = 0;
kept = undefined;

const processor = enableOpenAITracing({
  apiKey: 'k',
  endpoint: process.argv[2],
  baseDelayMs: 10,
  maxQueueSize: MAX_QUEUE,
});
for (let n = 0; n < 2000; n++) make(n);
await processor.forceFlush();
const base = await heap();
const first = processor.stats;
let most = 0;
for (let n = 0; n < SPANS; n++) {
  make(n);
  if (n % 1000 !== 0) continue;
  most = Math.max(most, processor.stats.queued);
  await turn();
}
const stats = processor.stats;
const used = await heap();
const made = SPANS;
const settled = (name: 'exported' | 'dropped' | 'failed'): number => stats[name] - first[name];
console.log(
  JSON.stringify({
    made,
    accounted: settled('exported') + settled('dropped') + settled('failed') + stats.queued,
    exported: stats.exported,
    dropped: stats.dropped,
    most,
    heapOfFullQueues: Number(((used - base) / full).toFixed(3)),
  }),
);
await processor.shutdown({ timeoutMs: 0 });
process.exit(0);
