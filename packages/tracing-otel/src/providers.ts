import { createNoopMeter, metrics, trace } from '@opentelemetry/api';
import type { MeterProvider, Tracer, TracerProvider } from '@opentelemetry/api';
import { Metrics } from './metrics.ts';
import type { Settings } from './options.ts';

const SCOPE = '@agents/tracing-otel';

/** The global provider stands before the real one, which may come later. */
interface Proxy {
  getDelegate(): TracerProvider;
  getDelegateTracer(name: string): Tracer | undefined;
}
interface Flushable {
  forceFlush?(): Promise<void>;
}

/** Where spans and metrics go, looked up when first needed; nothing is kept while no SDK is registered. */
export class Providers {
  readonly #settings: Settings;
  #tracer: Tracer | undefined;
  #metrics: Metrics | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** `undefined`: nobody would see a span. */
  get tracer(): Tracer | undefined {
    if (this.#tracer !== undefined) return this.#tracer;
    const provider = this.#settings.tracerProvider ?? trace.getTracerProvider();
    this.#tracer = isProxy(provider) ? provider.getDelegateTracer(SCOPE) : provider.getTracer(SCOPE);
    return this.#tracer;
  }

  /** `undefined`: nobody would see a metric. */
  get metrics(): Metrics | undefined {
    if (this.#metrics !== undefined || !this.#settings.metrics) return this.#metrics;
    const meter = this.#meterProvider().getMeter(SCOPE);
    if (meter !== createNoopMeter()) this.#metrics = new Metrics(meter);
    return this.#metrics;
  }

  /** Of both providers, where they can. @throws what they throw, after both were asked */
  async forceFlush(): Promise<void> {
    const provider = this.#settings.tracerProvider ?? trace.getTracerProvider();
    const tracers = (isProxy(provider) ? provider.getDelegate() : provider) as Flushable;
    const meters = this.#settings.metrics ? (this.#meterProvider() as Flushable) : undefined;
    const results = await Promise.allSettled([flush(tracers), flush(meters)]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #meterProvider(): MeterProvider {
    return this.#settings.meterProvider ?? metrics.getMeterProvider();
  }
}

async function flush(provider: Flushable | undefined): Promise<void> {
  await provider?.forceFlush?.();
}

function isProxy(provider: TracerProvider): provider is TracerProvider & Proxy {
  return 'getDelegateTracer' in provider && typeof provider.getDelegateTracer === 'function';
}
