import type { OTelTraceOptions } from '@agents/tracing-otel';

const kinds: Readonly<Record<string, string>> = {
  agent: 'AGENT',
  response: 'LLM',
  generation: 'LLM',
  function: 'TOOL',
  handoff: 'TOOL',
  guardrail: 'GUARDRAIL',
};

export const phoenix: OTelTraceOptions = {
  captureContent: true,
  mapAttributes: (attributes, item) => {
    const { 'gen_ai.usage.input_tokens': prompt, 'gen_ai.usage.output_tokens': completion } = attributes;
    const input = attributes['gen_ai.input.messages'] ?? attributes['gen_ai.tool.call.arguments'];
    const output = attributes['gen_ai.output.messages'] ?? attributes['gen_ai.tool.call.result'];
    return {
      ...attributes,
      'openinference.span.kind': kinds[item.type] ?? 'CHAIN',
      'session.id': (item.type === 'trace' ? item : item.trace).groupId,
      'llm.model_name': attributes['gen_ai.response.model'] ?? attributes['gen_ai.request.model'],
      'llm.provider': attributes['gen_ai.provider.name'],
      'llm.token_count.prompt': prompt,
      'llm.token_count.completion': completion,
      'llm.token_count.total':
        typeof prompt === 'number' && typeof completion === 'number' ? prompt + completion : undefined,
      'tool.name': attributes['gen_ai.tool.name'],
      'input.value': input,
      'input.mime_type': input && 'application/json',
      'output.value': output,
      'output.mime_type': output && 'application/json',
    };
  },
};
