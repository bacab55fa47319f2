import type { OTelTraceOptions } from '@agents/tracing-otel';

// Tempo finds `{ span.gen_ai.agent.name = "Triage" }`; prompts stay out of it.
export const grafana: OTelTraceOptions = { captureContent: false };
