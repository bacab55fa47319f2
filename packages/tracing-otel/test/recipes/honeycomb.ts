import type { OTelTraceOptions } from '@agents/tracing-otel';

// Columns have the GenAI names; what is long is cut, and shown once.
export const honeycomb: OTelTraceOptions = { captureContent: true, maxContentLength: 8_000, inputMessages: 'delta' };
