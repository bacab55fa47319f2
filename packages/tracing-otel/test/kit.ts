import { context, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ReadableSpan, Sampler } from '@opentelemetry/sdk-trace-base';
import { setTraceProcessors } from '@agents/core/tracing';
import { ScriptedModel } from '@agents/core/testing';
import type { ModelStep } from '@agents/core/testing';
import { OTelTraceProcessor } from '../src/index.ts';
import type { OTelTraceOptions } from '../src/index.ts';

/** The real SDK with exporters that keep everything, and a processor of ours in front of it. */
export class Telemetry {
  readonly exporter: InMemorySpanExporter = new InMemorySpanExporter();
  readonly tracers: BasicTracerProvider;
  readonly processor: OTelTraceProcessor;
  readonly #metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #meters: MeterProvider;

  constructor(options: OTelTraceOptions & { readonly sampler?: Sampler | undefined } = {}) {
    const { sampler, ...own } = options;
    this.tracers = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.exporter)],
      ...(sampler && { sampler }),
    });
    const reader = new PeriodicExportingMetricReader({
      exporter: this.#metricExporter,
      exportIntervalMillis: 3_600_000,
    });
    this.#meters = new MeterProvider({ readers: [reader] });
    this.processor = new OTelTraceProcessor({ tracerProvider: this.tracers, meterProvider: this.#meters, ...own });
  }

  /** The only processor from now on. */
  use(): this {
    setTraceProcessors([this.processor]);
    return this;
  }

  /** In order of their end. */
  get spans(): readonly ReadableSpan[] {
    return this.exporter.getFinishedSpans();
  }

  /** The only one of its name, or the nth. */
  span(name: string, index?: number): ReadableSpan {
    const found = this.named(name);
    const span = found[index ?? 0];
    if (span === undefined || (index === undefined && found.length > 1))
      throw new Error(`${found.length} spans '${name}' of: ${this.spans.map((each) => each.name).join(', ')}`);
    return span;
  }

  named(name: string): readonly ReadableSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** One span a line, indented under its parent. */
  tree(): string {
    return treeOf(this.spans);
  }

  async metrics(): Promise<ReadonlyMap<string, MetricData>> {
    this.#metricExporter.reset();
    await this.#meters.forceFlush();
    const all = this.#metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return new Map(all.flatMap(({ metrics }) => metrics).map((metric) => [metric.descriptor.name, metric]));
  }

  async close(): Promise<void> {
    await Promise.all([this.tracers.shutdown(), this.#meters.shutdown()]);
  }
}

export function treeOf(spans: readonly ReadableSpan[], mark: (span: ReadableSpan) => string = () => ''): string {
  const ids = new Set(spans.map((span) => span.spanContext().spanId));
  const byStart = spans.toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1]);
  const lines: string[] = [];
  const add = (under: string | undefined, depth: number): void => {
    for (const span of byStart) {
      const parent = span.parentSpanContext?.spanId;
      if (under === undefined ? parent !== undefined && ids.has(parent) : parent !== under) continue;
      lines.push(`${'  '.repeat(depth)}${span.name}${mark(span)}`);
      add(span.spanContext().spanId, depth + 1);
    }
  };
  add(undefined, 0);
  return lines.join('\n');
}

export const parentId = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;
export const idOf = (span: ReadableSpan): string => span.spanContext().spanId;
export const traceIdOf = (span: ReadableSpan): string => span.spanContext().traceId;
export const statusOf = (span: ReadableSpan): string => SpanStatusCode[span.status.code];
export const kindName = (span: ReadableSpan): string => SpanKind[span.kind];

/** Without what differs from run to run. */
export function settled(attributes: Attributes): Attributes {
  const { 'agents.trace_id': _trace, 'agents.span_id': _span, ...others } = attributes;
  return others;
}

/** Makes contexts follow asynchronous calls, as an application does; gives the way back. */
export function followContexts(): () => void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return () => context.disable();
}

const usage = { requests: 1, inputTokens: 80, outputTokens: 12, totalTokens: 92 };

export const scripted = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { trace: true, usage });

/** Something that a test waits for. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
