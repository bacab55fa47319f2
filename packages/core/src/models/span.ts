import { ModelBehaviorError } from '../base/errors.ts';
import { createSpan } from '../tracing/create.ts';
import { isSeen } from '../tracing/make.ts';
import { failureToTrace } from './abort.ts';
import { modelErrorType, requestDetails } from './call-details.ts';
import { addDetails, failSpan, finishItem, startItem } from '../tracing/lifecycle.ts';
import { runInScope } from '../tracing/scope.ts';
import { modelErrorText } from '../tracing/sensitive.ts';
import { errorTexts, spanInternals } from '../tracing/span.ts';
import type { TextFilter } from '../tracing/sensitive.ts';
import type { ModelCallDetails, Span, SpanInit } from '../tracing/types.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import type { ModelRequest, ResponseMetadata, Usage } from './model.ts';

export type ModelSpanType = 'response' | 'generation';
type ModelStream = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;

/**
 * The span of one model call, started; `undefined` when nobody would see it, and then nothing is asked for. Its maker
 * finishes it.
 *
 * @param init makes the data
 * @param call tells what the maker knows beside the request
 */
export function startModelSpan<K extends ModelSpanType>(
  init: () => SpanInit<K>,
  request: ModelRequest,
  call: () => ModelCallDetails,
): Span<K> | undefined {
  if (request.tracing === 'disabled' || !isSeen(request.traceParent)) return undefined;
  const made = createSpan(init(), request.traceParent === undefined ? undefined : { parent: request.traceParent });
  if (made.isNoop) return undefined;
  const span = made as Span as Span<ModelSpanType>;
  addDetails<ModelSpanType>(span, { ...requestDetails(span, request, showsData(request)), ...call() });
  return startItem(made as Span) as Span<K>;
}

/** Whether prompts, answers and error texts may be on the span. */
export function showsData(request: ModelRequest): boolean {
  return request.tracing === 'enabled';
}

/** The error of a model's span; an aborted call did not fail. Without data the error is not even stringified: its getters may be the user's. */
export function failModelSpan(span: Span, request: ModelRequest, stream: boolean, error: unknown): void {
  const failure = failureToTrace(request.signal, error);
  if (failure === undefined) return;
  addDetails(span, { errorType: modelErrorType(failure.error) });
  failSpan(span, {
    message: stream ? 'Error streaming response' : 'Error getting response',
    data: { error: failureText(failure.error, modelErrorTexts(span, request)) },
  });
}

/** What texts of a model's error go through; absent where they may show nothing. */
export function modelErrorTexts(span: Span, request: ModelRequest): TextFilter {
  return showsData(request) ? errorTexts(span) : undefined;
}

/** Of a failed response the provider's own words, which the error's message leaves out. */
function failureText(error: unknown, show: TextFilter): string {
  return modelErrorText(error, show, (text) => {
    if (!(error instanceof ModelBehaviorError)) return text;
    const { message } = (error.responseError ?? {}) as { message?: unknown };
    return typeof message === 'string' && !text.includes(message) ? `${text} ${message}` : text;
  });
}

/** `usage` of a model's span. */
export function usageToTrace(usage: Usage): Record<string, unknown> {
  return {
    requests: usage.requests,
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    input_tokens_details: {
      cached_tokens: usage.inputTokensDetails.cachedTokens,
      cache_write_tokens: usage.inputTokensDetails.cacheWriteTokens,
    },
    output_tokens_details: { reasoning_tokens: usage.outputTokensDetails.reasoningTokens },
  };
}

/** A stream whose span is current while the model advances, not while the consumer handles an event; finishes the span. */
export async function* streamInSpan(span: Span, stream: ModelStream): ModelStream {
  let open = true;
  let waiting = true;
  try {
    for (;;) {
      const step = await runInScope(span, () => stream.next());
      if (waiting) noteFirstChunk(span);
      waiting = false;
      if (step.done === true) {
        open = false;
        return step.value;
      }
      yield step.value;
    }
  } catch (error) {
    open = false;
    throw error;
  } finally {
    try {
      if (open) await runInScope(span, () => stream.return(undefined));
    } finally {
      finishItem(span);
    }
  }
}

function noteFirstChunk(span: Span): void {
  const now = spanInternals(span)?.time.now();
  if (now === undefined || span.startTimeMs === undefined) return;
  addDetails(span as Span<ModelSpanType>, { timeToFirstChunkMs: now - span.startTimeMs });
}
