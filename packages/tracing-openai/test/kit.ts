import { configureLogging } from '@agents/core';
import { FakeOpenAI } from '@agents/core/testing';
import { createSpan, createTrace, setTraceProcessors } from '@agents/core/tracing';
import type { Span, SpanInit, SpanType, Trace, TraceOptions } from '@agents/core/tracing';
import { OpenAITraceExporter } from '../src/index.ts';
import type { OpenAITraceExporterOptions } from '../src/index.ts';

/** Lines of the log from now on: `warn text`. */
export function logLines(): string[] {
  const lines: string[] = [];
  configureLogging({
    level: 'warn',
    sink: ({ level, message, data }) => lines.push(`${level} ${message}${typeof data === 'string' ? ` ${data}` : ''}`),
  });
  return lines;
}

/** A trace that is recorded, though nobody listens. */
export function trace(name = 'Agent workflow', options: TraceOptions = {}): Trace {
  setTraceProcessors([{}]);
  return createTrace(name, options).start();
}

/** A finished span under it. */
export function span<K extends SpanType>(init: SpanInit<K>, parent: Trace | Span = trace()): Span {
  const made = createSpan(init, { parent }) as Span;
  made.start().finish();
  return made;
}

export const custom = (data: Record<string, unknown>, parent?: Trace): Span =>
  span({ type: 'custom', name: 'c', data }, parent);

export interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: { readonly data: readonly Record<string, unknown>[] };
  /** Milliseconds on the monotonic clock. */
  readonly at: number;
}

/** An exporter that posts to a fake service, and what it posted, keys included. */
export function setUp(options: OpenAITraceExporterOptions = {}): {
  exporter: OpenAITraceExporter;
  fake: FakeOpenAI;
  sent: Sent[];
} {
  const fake = new FakeOpenAI();
  const sent: Sent[] = [];
  const exporter = new OpenAITraceExporter({
    apiKey: 'k0',
    baseDelayMs: 1,
    fetch: async (input, init) => {
      const url = input instanceof Request ? input.url : String(input);
      const body = JSON.parse(init?.body as string) as Sent['body'];
      sent.push({ url, headers: new Headers(init?.headers), body, at: performance.now() });
      return await fake.fetch(input, init);
    },
    ...options,
  });
  return { exporter, fake, sent };
}

/** `span_data` of the only span that was sent. */
export function onlyData(fake: FakeOpenAI): Record<string, unknown> {
  const [record] = fake.traces;
  return record?.['span_data'] as Record<string, unknown>;
}
