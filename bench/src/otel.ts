import { context } from '@opentelemetry/api';
import type { Attributes, SpanKind, Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { Agent, run, setTraceProcessors, setTracingDisabled, tool } from '@agents/core';
import type { TraceProcessor } from '@agents/core';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import { OTelTraceProcessor } from '@agents/tracing-otel';
import { msPerRunOfEach } from './clock.ts';
import { answer, question, toolArguments, toolName } from './task.ts';
import { agentOptions, toolOptions } from './peers/options.ts';
import { TraceReceiver } from './trace-receiver.ts';

/** What is added to a run whose spans are dropped. */
export interface OtelTimes {
  /** µs a run, of the same spans made by hand behind it. */
  readonly bare: number;
  /** Of the processor. */
  readonly processor: number;
  /** The share of the spans made that the receiver got. */
  readonly exported: number;
}

/** As many runs as one flush passes on; few enough for the queue of the SDK. */
const RUNS = 20;

/**
 * CPU times of runs with one tool call as OpenTelemetry spans, flush included: the real SDK with its
 * batch processor and OTLP exporter, and a receiver in a thread of its own.
 */
export async function otelTimes(ms: number): Promise<OtelTimes> {
  // What was measured before in this process may have switched it off.
  setTracingDisabled(false);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const receiver = await TraceReceiver.start('otlp');
  const { root, count } = await recorded();
  const sdk = (): BasicTracerProvider =>
    new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: receiver.url }))] });
  const [bareSdk, ourSdk] = [sdk(), sdk()];
  let made = 0;
  const flushed = (play: () => Promise<void>, provider: BasicTracerProvider): (() => Promise<void>) => {
    return async () => {
      await play();
      made += RUNS * count;
      await provider.forceFlush();
    };
  };
  const nothing = (): void => undefined;
  const drop = { onTraceStart: nothing, onSpanStart: nothing, onSpanEnd: nothing, onTraceEnd: nothing };
  const tracer = bareSdk.getTracer('by hand');
  const [without = Number.NaN, byHand = Number.NaN, ours = Number.NaN] = await msPerRunOfEach(
    [
      runs(drop),
      // What made spans in a loop of its own would find its code and data in the caches of the processor, as no program does.
      flushed(
        runs(drop, () => make(tracer, root)),
        bareSdk,
      ),
      flushed(runs(new OTelTraceProcessor({ tracerProvider: ourSdk, metrics: false })), ourSdk),
    ],
    ms,
  );
  const got = await receiver.stop();
  await Promise.all([bareSdk.shutdown(), ourSdk.shutdown()]);
  context.disable();
  const us = (perFlush: number): number => (perFlush * 1000) / RUNS;
  return { bare: Math.max(0, us(byHand - without)), processor: Math.max(0, us(ours - without)), exported: got / made };
}

function runs(processor: TraceProcessor, after?: () => Promise<void>): () => Promise<void> {
  const agent = new Agent({ ...agentOptions, tools: [tool(toolOptions)] });
  return async () => {
    setTraceProcessors([processor]);
    for (let index = 0; index < RUNS; index += 1) {
      const model = new ScriptedModel([toolCall(toolName, toolArguments), answer], { trace: true });
      const { finalOutput } = await run(agent, question, { model });
      if (finalOutput !== answer) throw new Error(`A run gave ${finalOutput}.`);
      await after?.();
    }
  };
}

interface Recorded {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly children: Recorded[];
}

/** The spans of one run, as the processor makes them. */
async function recorded(): Promise<{ readonly root: Recorded; readonly count: number }> {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  await runs(new OTelTraceProcessor({ tracerProvider, metrics: false }))();
  const finished = exporter.getFinishedSpans();
  // Of the last run, in the order in which they end: the root last.
  const last = finished.at(-1)?.spanContext().traceId;
  const ofOne = finished.filter((span) => span.spanContext().traceId === last);
  const byId = new Map<string, Recorded>();
  for (const span of ofOne) {
    const { name, kind, attributes } = span;
    byId.set(span.spanContext().spanId, { name, kind, attributes, children: [] });
  }
  let root: Recorded | undefined;
  for (const span of ofOne) {
    const made = byId.get(span.spanContext().spanId);
    const parent = span.parentSpanContext && byId.get(span.parentSpanContext.spanId);
    if (parent === undefined) root = made;
    else if (made !== undefined) parent.children.push(made);
  }
  if (root === undefined) throw new Error('The run made no spans.');
  return { root, count: ofOne.length };
}

/** A span and those inside it, each the active one meanwhile: spans of instrumented libraries are to go under it. */
function make(tracer: Tracer, { name, kind, attributes, children }: Recorded): Promise<void> {
  return tracer.startActiveSpan(name, { kind, attributes }, async (span) => {
    for (const child of children) await make(tracer, child);
    span.end();
  });
}
