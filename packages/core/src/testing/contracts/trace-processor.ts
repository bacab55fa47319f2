import type { MaybePromise } from '../../agent/tool.ts';
import { generateSpanId, generateTraceId } from '../../tracing/ids.ts';
import { LiveSpan } from '../../tracing/span.ts';
import { LiveTrace } from '../../tracing/trace.ts';
import type { Span, Trace, TraceProcessor } from '../../tracing/types.ts';
import { check, contractCase, same, skip } from './case.ts';
import type { ContractCase } from './case.ts';

/**
 * What every trace processor must stand, as cases for any test runner. `make` is called for each case.
 *
 * @example for (const c of traceProcessorContract(() => new MyProcessor())) it(c.title, (t) => c.run(t));
 */
export function traceProcessorContract(make: () => MaybePromise<TraceProcessor>): ContractCase[] {
  return CASES.map(([id, title, body]) =>
    contractCase(id, title, async () => {
      const processor = await make();
      try {
        await body(processor);
      } finally {
        await processor.shutdown?.();
      }
    }),
  );
}

const CASES: readonly [id: string, title: string, body: (processor: TraceProcessor) => Promise<void>][] = [
  ['TRACE-P6-a', 'takes ends whose starts it has not seen', endsWithoutStarts],
  ['TRACE-P6-b', 'takes starts without ends', startsWithoutEnds],
  ['TRACE-P6-c', 'keeps nothing of 100,000 spans that ended', noGrowth],
  ['TRACE-P6-d', 'leaves traces and spans as they are', leavesItemsAlone],
  ['TRACE-P6-e', 'takes concurrent flushes', concurrentFlushes],
  ['TRACE-P6-f', 'ignores events after its shutdown, and a second shutdown', afterShutdown],
  ['TRACE-P6-g', 'takes one span id in two traces', sameSpanId],
  ['TRACE-P6-h', 'leaves no rejection unhandled', noUnhandledRejection],
];

type Event = 'onTraceStart' | 'onTraceEnd' | 'onSpanStart' | 'onSpanEnd';

/** A trace with spans that began and ended; nobody else is told. */
function scene(spanId: string = generateSpanId()): { trace: Trace; parent: Span; child: Span } {
  const trace = new LiveTrace('contract', generateTraceId(), { groupId: 'group', metadata: { tenant: 'acme' } });
  const parent = new LiveSpan({
    type: 'agent',
    spanId,
    parent: trace,
    spanData: { name: 'Agent', tools: ['lookup'] },
    startTimeMs: undefined,
  });
  const child = new LiveSpan({
    type: 'function',
    spanId: generateSpanId(),
    parent,
    spanData: { name: 'lookup', input: '{"id":7}', output: { status: 'paid' } },
    startTimeMs: undefined,
  });
  for (const [index, item] of [trace, parent, child].entries()) {
    item.startTimeMs = 1_000_000 + index;
    item.endTimeMs = 1_000_100 - index;
  }
  child.setError({ message: 'Error running tool', data: { tool_name: 'lookup' } });
  return { trace, parent, child };
}

/** As core does it: a promise is not waited for, its rejection is caught. */
function send(processor: TraceProcessor, event: Event, item: Trace | Span): void {
  const method = processor[event] as ((given: Trace | Span) => MaybePromise<void>) | undefined;
  const result = method?.call(processor, item);
  if (result instanceof Promise) result.catch(() => {});
}

function sendAll(processor: TraceProcessor, { trace, parent, child }: ReturnType<typeof scene>): void {
  send(processor, 'onTraceStart', trace);
  send(processor, 'onSpanStart', parent);
  send(processor, 'onSpanStart', child);
  send(processor, 'onSpanEnd', child);
  send(processor, 'onSpanEnd', parent);
  send(processor, 'onTraceEnd', trace);
}

async function endsWithoutStarts(processor: TraceProcessor): Promise<void> {
  const { trace, parent, child } = scene();
  send(processor, 'onSpanEnd', child);
  send(processor, 'onSpanEnd', parent);
  send(processor, 'onTraceEnd', trace);
  await processor.forceFlush?.();
}

async function startsWithoutEnds(processor: TraceProcessor): Promise<void> {
  const { trace, parent, child } = scene();
  send(processor, 'onTraceStart', trace);
  send(processor, 'onSpanStart', parent);
  send(processor, 'onSpanStart', child);
  await processor.forceFlush?.();
}

async function noGrowth(processor: TraceProcessor): Promise<void> {
  const collect = garbageCollector();
  if (collect === undefined) skip('this runtime cannot be asked to collect garbage');
  const seen: WeakRef<Span>[] = [];
  for (let i = 0; i < 34_000; i++) {
    const items = scene();
    if (i < 1000) seen.push(new WeakRef(items.child));
    sendAll(processor, items);
    if (i % 1000 === 999) await processor.forceFlush?.();
  }
  // References live until their task ends.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collect();
  const kept = seen.filter((reference) => reference.deref() !== undefined).length;
  check(kept < 100, `nothing to be kept of spans that ended and were flushed; ${kept} of 1000 are`);
}

async function leavesItemsAlone(processor: TraceProcessor): Promise<void> {
  const items = scene();
  const shown = (): unknown =>
    [items.trace, items.parent, items.child].map((item) => [item, { ...item }, item.toJSON()].map(plain));
  const before = shown();
  sendAll(processor, items);
  await processor.forceFlush?.();
  same(shown(), before, 'traces and spans after the processor saw them');
}

async function concurrentFlushes(processor: TraceProcessor): Promise<void> {
  sendAll(processor, scene());
  await Promise.all([processor.forceFlush?.(), processor.forceFlush?.(), processor.forceFlush?.()]);
}

async function afterShutdown(processor: TraceProcessor): Promise<void> {
  sendAll(processor, scene());
  await processor.shutdown?.();
  sendAll(processor, scene());
  await processor.forceFlush?.();
  await processor.shutdown?.();
}

async function sameSpanId(processor: TraceProcessor): Promise<void> {
  const [a, b] = [scene('span_of_both'), scene('span_of_both')];
  for (const { trace } of [a, b]) send(processor, 'onTraceStart', trace);
  for (const { parent } of [a, b]) send(processor, 'onSpanStart', parent);
  for (const { parent } of [a, b]) send(processor, 'onSpanEnd', parent);
  for (const { trace } of [b, a]) send(processor, 'onTraceEnd', trace);
  await processor.forceFlush?.();
}

async function noUnhandledRejection(processor: TraceProcessor): Promise<void> {
  const { process } = globalThis;
  if (typeof process?.on !== 'function') skip('this runtime does not tell of unhandled rejections');
  const unhandled: unknown[] = [];
  const listen = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', listen);
  try {
    sendAll(processor, scene());
    await Promise.allSettled([processor.forceFlush?.(), processor.shutdown?.()]);
    await new Promise((resolve) => setTimeout(resolve, 10));
  } finally {
    process.off('unhandledRejection', listen);
  }
  check(unhandled.length === 0, `every rejection to be handled; ${unhandled.length} were not`);
}

/** What is seen of a value, without parents and traces, which repeat. */
function plain(value: unknown): unknown {
  return JSON.stringify(value, (key, member: unknown) => (key === 'parent' || key === 'trace' ? undefined : member));
}

function garbageCollector(): (() => void) | undefined {
  const own = (globalThis as { gc?: () => void }).gc;
  if (own !== undefined) return own;
  try {
    const { process } = globalThis;
    process?.getBuiltinModule?.('node:v8').setFlagsFromString('--expose-gc');
    return process?.getBuiltinModule?.('node:vm').runInNewContext('gc') as (() => void) | undefined;
  } catch {
    return undefined;
  }
}
