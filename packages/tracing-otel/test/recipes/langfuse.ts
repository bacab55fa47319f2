import type { OTelTraceOptions } from '@agents/tracing-otel';

const types: Readonly<Record<string, string>> = {
  agent: 'agent',
  response: 'generation',
  generation: 'generation',
  function: 'tool',
  handoff: 'tool',
  guardrail: 'guardrail',
};

export const langfuse: OTelTraceOptions = {
  captureContent: true,
  mapAttributes: (attributes, item) => ({
    ...attributes,
    'langfuse.observation.type': types[item.type] ?? 'span',
    'langfuse.session.id': (item.type === 'trace' ? item : item.trace).groupId,
    ...(item.type === 'trace' && { 'langfuse.trace.name': item.name }),
    'langfuse.observation.input': attributes['gen_ai.input.messages'] ?? attributes['gen_ai.tool.call.arguments'],
    'langfuse.observation.output': attributes['gen_ai.output.messages'] ?? attributes['gen_ai.tool.call.result'],
  }),
};
