import type { OTelTraceOptions } from '@agents/tracing-otel';

// Datadog reads the GenAI names as they are.
export const datadog: OTelTraceOptions = { captureContent: true };
