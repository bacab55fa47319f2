import type { Span, SpanUsage } from './types.ts';

/**
 * Writes the usage of a task or a turn to its span, and that of anything else into the span's `metadata`. Usage of which
 * every count is zero says nothing and is not written (TRACE-S6).
 */
export function writeUsage(span: Span, usage: Required<SpanUsage>): void {
  const { requests, inputTokens, outputTokens, totalTokens, cachedInputTokens, cacheWriteInputTokens } = usage;
  const tokens = { inputTokens, outputTokens, cachedInputTokens, cacheWriteInputTokens };
  if (requests === 0 && totalTokens === 0 && Object.values(tokens).every((count) => count === 0)) return;
  if (span.type === 'task') span.spanData.usage = { ...usage };
  else if (span.type === 'turn') span.spanData.usage = tokens;
  else {
    const data = span.spanData as { metadata?: Record<string, unknown> };
    data.metadata = { ...data.metadata, usage: inWireWords(usage) };
  }
}

function inWireWords(usage: Required<SpanUsage>): Record<string, number> {
  return {
    requests: usage.requests,
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_input_tokens: usage.cacheWriteInputTokens,
  };
}
