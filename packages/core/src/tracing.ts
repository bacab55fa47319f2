// `@agents/core/tracing`: traces, spans and processors. The root re-exports what programs call (`withTrace`, `addTraceProcessor`, …).
export { BatchTraceProcessor } from './tracing/batch.ts';
export type { BatchOptions } from './tracing/batch.ts';
export { ConsoleTraceProcessor } from './tracing/console.ts';
export { createSpan, createTrace } from './tracing/create.ts';
export { dispatchSpan, dispatchTrace } from './tracing/dispatch.ts';
export { getTraceExportKey, setTraceExportKey } from './tracing/export-key.ts';
export { generateGroupId, generateSpanId, generateTraceId } from './tracing/ids.ts';
export { addTraceProcessor, setTraceProcessors } from './tracing/processors.ts';
export {
  configureTracing,
  flushTraces,
  getTraceProvider,
  setTracingDisabled,
  shutdownTracing,
} from './tracing/provider.ts';
export { getTraceContext, injectTraceHeaders, withRemoteTraceContext } from './tracing/remote.ts';
export type { RemoteTraceContext } from './tracing/remote.ts';
export { bindTraceContext, getCurrentSpan, getCurrentTrace, withTraceContext } from './tracing/scope.ts';
export { registerSpanType } from './tracing/span-data.ts';
export { wireRecord } from './tracing/wire-record.ts';
export { withSpan, withTrace } from './tracing/with.ts';
export type {
  Clock,
  FlushOptions,
  ModelCallDetails,
  RedactField,
  RunTraceOptions,
  Span,
  SpanDataMap,
  SpanDetails,
  SpanDetailsMap,
  SpanError,
  SpanInit,
  SpanOf,
  SpanOptions,
  SpanType,
  SpanUsage,
  SpanWire,
  Trace,
  TraceContextStorage,
  TraceExporter,
  TraceIdGenerator,
  TraceOptions,
  TraceProcessor,
  TraceProvider,
  TraceWire,
} from './tracing/types.ts';
