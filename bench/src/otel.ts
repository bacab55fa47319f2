import { context, trace } from '@opentelemetry/api';
import type { Attributes, Context, SpanKind } from '@opentelemetry/api';
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
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { msPerRunOfEach } from './clock.ts';
import { answer, question, toolArguments, toolName } from './task.ts';
import { agentOptions, toolOptions } from './peers/options.ts';

export interface OtelTimes {
  /** µs a run: the same spans, made by hand. */
  readonly bare: number;
  /** What the processor adds to a run whose spans are dropped. */
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
  const receiver = await Receiver.start();
  const spans = await recorded();
  const sdk = (): BasicTracerProvider =>
    new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: receiver.url }))] });
  const [bareSdk, ourSdk] = [sdk(), sdk()];
  let made = 0;
  const byHand = async (): Promise<void> => {
    for (let index = 0; index < RUNS; index += 1) makeAll(spans, bareSdk);
    made += RUNS * spans.length;
    await bareSdk.forceFlush();
  };
  const nothing = (): void => undefined;
  const dropped = runs({ onTraceStart: nothing, onSpanStart: nothing, onSpanEnd: nothing, onTraceEnd: nothing });
  const ours = runs(new OTelTraceProcessor({ tracerProvider: ourSdk, metrics: false }));
  const throughRuns = async (): Promise<void> => {
    await ours();
    made += RUNS * spans.length;
    await ourSdk.forceFlush();
  };
  const [bare = Number.NaN, without = Number.NaN, whole = Number.NaN] = await msPerRunOfEach(
    [byHand, dropped, throughRuns],
    ms,
  );
  const got = await receiver.stop();
  await Promise.all([bareSdk.shutdown(), ourSdk.shutdown()]);
  context.disable();
  const us = (perFlush: number): number => (perFlush * 1000) / RUNS;
  return { bare: us(bare), processor: Math.max(0, us(whole - without)), exported: got / made };
}

function runs(processor: TraceProcessor): () => Promise<void> {
  const agent = new Agent({ ...agentOptions, tools: [tool(toolOptions)] });
  return async () => {
    setTraceProcessors([processor]);
    for (let index = 0; index < RUNS; index += 1) {
      const model = new ScriptedModel([toolCall(toolName, toolArguments), answer], { trace: true });
      const { finalOutput } = await run(agent, question, { model });
      if (finalOutput !== answer) throw new Error(`A run gave ${finalOutput}.`);
    }
  };
}

interface Recorded {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** Its place in the list; parents come first. */
  readonly parent: number | undefined;
}

/** The spans of one run, as the processor makes them. */
async function recorded(): Promise<readonly Recorded[]> {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const once = runs(new OTelTraceProcessor({ tracerProvider, metrics: false }));
  await once();
  const finished = exporter.getFinishedSpans();
  const [last] = finished.slice(-1);
  const ofOne = finished.filter((span) => span.spanContext().traceId === last?.spanContext().traceId).toReversed();
  const places = new Map(ofOne.map((span, place) => [span.spanContext().spanId, place]));
  return ofOne.map((span) => ({
    name: span.name,
    kind: span.kind,
    attributes: span.attributes,
    parent: span.parentSpanContext && places.get(span.parentSpanContext.spanId),
  }));
}

function makeAll(spans: readonly Recorded[], provider: BasicTracerProvider): void {
  const tracer = provider.getTracer('by hand');
  const contexts: Context[] = [];
  const open = spans.map(({ name, kind, attributes, parent }) => {
    const at = (parent === undefined ? undefined : contexts[parent]) ?? context.active();
    const span = tracer.startSpan(name, { kind, attributes }, at);
    contexts.push(trace.setSpan(at, span));
    return span;
  });
  for (const span of open.toReversed()) span.end();
}

/** Counts spans of OTLP/JSON, outside of the thread that is measured. */
class Receiver {
  readonly url: string;
  readonly #worker: Worker;

  private constructor(worker: Worker, port: number) {
    this.#worker = worker;
    this.url = `http://127.0.0.1:${port}/v1/traces`;
  }

  static async start(): Promise<Receiver> {
    const worker = new Worker(SERVER, { eval: true });
    const [port] = (await once(worker, 'message')) as [number];
    return new Receiver(worker, port);
  }

  /** How many spans it got. */
  async stop(): Promise<number> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage('count');
    const [count] = (await once(this.#worker, 'message')) as [number];
    await this.#worker.terminate();
    return count;
  }
}

const SERVER = `
const { parentPort } = require('node:worker_threads');
let count = 0;
const server = require('node:http').createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    for (const { scopeSpans } of JSON.parse(Buffer.concat(chunks)).resourceSpans)
      for (const { spans } of scopeSpans) count += spans.length;
    response.setHeader('content-type', 'application/json').end('{}');
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
parentPort.on('message', () => parentPort.postMessage(count));
`;
