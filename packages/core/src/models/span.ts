import type { Span, SpanInit } from '../tracing/types.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import type { ModelRequest, ResponseMetadata, Usage } from './model.ts';

const runInScope = <R>(_at: unknown, fn: () => R): R => fn();
const createSpan = <K extends ModelSpanType>(init: SpanInit<K>, _options?: unknown): Span<K> => ({ isNoop: true, spanData: init }) as unknown as Span<K>;
export { runInScope };

export type ModelSpanType = 'response' | 'generation';

/** The span of one model call, started; `undefined` when nobody would see it. Its maker finishes it. */
export function startModelSpan<K extends ModelSpanType>(init: SpanInit<K>, request: ModelRequest): Span<K> | undefined {
  if (request.tracing === 'disabled') return undefined;
  const span = createSpan(init, request.traceParent === undefined ? undefined : { parent: request.traceParent });
  return span.isNoop ? undefined : span.start();
}

/** Whether prompts, answers and error texts may be on the span. */
export function showsData(request: ModelRequest): boolean {
  return request.tracing === 'enabled';
}

/** Text of an error for a span; without data the error is not even stringified, its getters may be the user's. */
export function errorText(error: unknown, request: ModelRequest): string {
  if (!showsData(request)) return 'Error details are redacted.';
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return 'The error has no readable text.';
  }
}

/** `usage` of a model's span. */
export function usageToTrace(usage: Usage): Record<string, unknown> {
  return {
    requests: usage.requests,
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    input_tokens_details: { cached_tokens: usage.inputTokensDetails.cachedTokens, cache_write_tokens: usage.inputTokensDetails.cacheWriteTokens },
    output_tokens_details: { reasoning_tokens: usage.outputTokensDetails.reasoningTokens },
  };
}

export type ModelStream = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;

/** A stream whose span is current while the model advances, not while the consumer handles an event; finishes the span. */
export async function* streamInSpan(span: Span, stream: ModelStream): ModelStream {
  try {
    for (;;) {
      const step = await runInScope(span, () => stream.next());
      if (step.done === true) return step.value;
      yield step.value;
    }
  } finally {
    try {
      await runInScope(span, () => stream.return(undefined));
    } finally {
      span.finish();
    }
  }
}
