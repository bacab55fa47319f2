// `@agents/tracing-otel`: runs as OpenTelemetry spans and metrics, by the current GenAI conventions.
export { enableOTelTracing } from './enable.ts';
export type { OTelTraceOptions } from './options.ts';
export { OTelTraceProcessor } from './processor.ts';
