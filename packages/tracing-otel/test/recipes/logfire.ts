import type { OTelTraceOptions } from '@agents/tracing-otel';

export const logfire: OTelTraceOptions = {
  captureContent: true,
  // Logfire reads the GenAI names as they are; this is the line that its list shows.
  mapAttributes: (attributes, item) => ({
    ...attributes,
    ...(item.type === 'agent' && { 'logfire.msg': `Agent ${item.spanData.name}` }),
    ...(item.type === 'function' && { 'logfire.msg': `Tool ${item.spanData.name}` }),
  }),
};
