import type { Attributes, Context, Counter, Histogram, Meter } from '@opentelemetry/api';
import type { Span, Trace } from '@agents/core/tracing';
import type { Failure } from './failure.ts';
import { addModelStart, responseModelOf, tokensOf } from './model-attributes.ts';
import type { ModelSpan } from './model-attributes.ts';
import { metricNames } from './metric-names.ts';
import type { MetricName } from './metric-names.ts';
import { common, genAi, operations } from './names.ts';

/** Names of agents and tools may come from data; more of them than this are one. */
const MAX_NAMES = 1000;
const OTHER = '_other';

/** Calls that one agent made. */
export interface Calls {
  model: number;
  tool: number;
}

/** Metrics of model calls, agents and tools. Instruments are made with their first value. */
export class Metrics {
  readonly #meter: Meter;
  readonly #counters = new Map<MetricName, Counter>();
  readonly #histograms = new Map<MetricName, Histogram>();
  readonly #agentNames = new Set<string>();
  readonly #toolNames = new Set<string>();

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  /** One attempt: its duration, and its tokens, which count here only. */
  model(span: ModelSpan, failure: Failure | undefined, context: Context): void {
    const attributes: Attributes = {};
    addModelStart(span, attributes);
    const responseModel = responseModelOf(span);
    if (responseModel !== undefined) attributes[genAi.responseModel] = responseModel;
    const perCall = withError(attributes, failure);
    this.#record(metricNames.duration, secondsOf(span), perCall, context);
    const first = span.details.timeToFirstChunkMs;
    if (first !== undefined) this.#record(metricNames.timeToFirstChunk, first / 1000, attributes, context);
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = tokensOf(span) ?? {};
    this.#record(metricNames.inputPerCall, input, perCall, context);
    this.#record(metricNames.outputPerCall, output, perCall, context);
    // Sums over all modalities: providers tell no more through the run.
    const used = { ...attributes, [genAi.tokenModality]: 'unknown' };
    this.#add(metricNames.inputTokens, input, used, context);
    this.#add(metricNames.outputTokens, output, used, context);
    this.#add(metricNames.cacheRead, cacheRead, used, context);
    this.#add(metricNames.cacheWrite, cacheWrite, used, context);
    this.#add(metricNames.reasoning, reasoning, used, context);
  }

  agent(span: Span<'agent'>, calls: Calls, failure: Failure | undefined, context: Context): void {
    const attributes = {
      [genAi.operation]: operations.agent,
      [genAi.agentName]: bounded(this.#agentNames, span.spanData.name),
    };
    this.#record(metricNames.agentDuration, secondsOf(span), withError(attributes, failure), context);
    this.#record(metricNames.agentInferenceCalls, calls.model, attributes, context);
    this.#record(metricNames.agentToolCalls, calls.tool, attributes, context);
  }

  /** The conventions count workflows among agents. */
  workflow(trace: Trace, context: Context): void {
    const attributes = {
      [genAi.operation]: operations.workflow,
      [genAi.agentName]: bounded(this.#agentNames, trace.name),
    };
    this.#record(metricNames.agentDuration, secondsOf(trace), attributes, context);
  }

  tool(span: Span<'function'>, failure: Failure | undefined, context: Context): void {
    const attributes = {
      [genAi.operation]: operations.tool,
      [genAi.toolName]: bounded(this.#toolNames, span.spanData.name),
    };
    this.#record(metricNames.toolDuration, secondsOf(span), withError(attributes, failure), context);
  }

  #record(metric: MetricName, value: number, attributes: Attributes, context: Context): void {
    let histogram = this.#histograms.get(metric);
    if (histogram === undefined) {
      const { name, unit, description, bounds = [] } = metric;
      const advice = { explicitBucketBoundaries: [...bounds] };
      histogram = this.#meter.createHistogram(name, { unit, description, advice });
      this.#histograms.set(metric, histogram);
    }
    histogram.record(value, attributes, context);
  }

  #add(metric: MetricName, value: number, attributes: Attributes, context: Context): void {
    let counter = this.#counters.get(metric);
    if (counter === undefined) {
      const { name, unit, description } = metric;
      counter = this.#meter.createCounter(name, { unit, description });
      this.#counters.set(metric, counter);
    }
    counter.add(value, attributes, context);
  }
}

function withError(attributes: Attributes, failure: Failure | undefined): Attributes {
  return failure === undefined ? attributes : { ...attributes, [common.errorType]: failure.errorType };
}

function secondsOf({ startTimeMs = 0, endTimeMs = startTimeMs }: Trace | Span): number {
  return Math.max(0, endTimeMs - startTimeMs) / 1000;
}

function bounded(names: Set<string>, name: string): string {
  if (names.has(name)) return name;
  if (names.size >= MAX_NAMES) return OTHER;
  names.add(name);
  return name;
}
