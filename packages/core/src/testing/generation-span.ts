import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { toUsage } from '../base/usage.ts';
import type { ModelRequest, ModelResponse, ResponseMetadata } from '../models/model.ts';
import { failureToTrace } from '../models/abort.ts';
import { modelErrorType } from '../models/call-details.ts';
import { settingsToTrace } from '../models/settings.ts';
import { modelErrorTexts, showsData, startModelSpan, streamInSpan, usageToTrace } from '../models/span.ts';
import { tracedInput } from '../models/traced-input.ts';
import { addDetails, failSpan, finishItem } from '../tracing/lifecycle.ts';
import { runInScope } from '../tracing/scope.ts';
import { modelErrorText } from '../tracing/sensitive.ts';
import { setSensitive } from '../tracing/span.ts';
import type { Span } from '../tracing/types.ts';

type ModelStream = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;

/** Runs one plain call in a generation span of its own. */
export async function inGenerationSpan(
  model: string,
  request: ModelRequest,
  call: () => Promise<ModelResponse>,
): Promise<ModelResponse> {
  const span = start(model, request, false);
  if (span === undefined) return call();
  try {
    const response = await runInScope(span, call);
    record(span, request, response);
    return response;
  } catch (error) {
    fail(span, request, error);
    throw error;
  } finally {
    finishItem(span);
  }
}

/** The same for a stream. */
export function streamInGenerationSpan(model: string, request: ModelRequest, stream: ModelStream): ModelStream {
  // A generator: the span starts when somebody reads.
  return (async function* (): ModelStream {
    const span = start(model, request, true);
    return yield* span === undefined ? stream : streamInSpan(span, recorded(span, request, stream));
  })();
}

async function* recorded(span: Span<'generation'>, request: ModelRequest, stream: ModelStream): ModelStream {
  try {
    for (;;) {
      const step = await stream.next();
      if (step.done === true) {
        if (step.value?.usage !== undefined) span.spanData.usage = usageToTrace(step.value.usage);
        return step.value;
      }
      const event = step.value;
      // Before the consumer sees the event: it may stop there.
      if (event.type === 'response.completed')
        record(span, request, { output: event.response.output, usage: toUsage({ ...event.response.usage }) });
      yield event;
    }
  } catch (error) {
    fail(span, request, error);
    throw error;
  } finally {
    await stream.return(undefined);
  }
}

function start(model: string, request: ModelRequest, stream: boolean): Span<'generation'> | undefined {
  const data = showsData(request);
  return startModelSpan(
    () => {
      const modelConfig = settingsToTrace(request.modelSettings, data);
      return { type: 'generation', model, modelConfig, ...(data && { input: messagesOf(request) }) };
    },
    request,
    () => ({ requestModel: model, stream }),
  );
}

function messagesOf({ systemInstructions, input }: ModelRequest): unknown[] {
  const shown = tracedInput(input);
  return systemInstructions === undefined ? [...shown] : [{ role: 'system', content: systemInstructions }, ...shown];
}

function record(
  span: Span<'generation'>,
  request: ModelRequest,
  response: { output: readonly ResponseOutputItem[]; usage: ModelResponse['usage'] },
): void {
  if (showsData(request)) setSensitive(span, 'output', [...response.output]);
  span.spanData.usage = usageToTrace(response.usage);
}

/** What a scripted failure was; an aborted call did not fail. */
function fail(span: Span<'generation'>, request: ModelRequest, error: unknown): void {
  const failure = failureToTrace(request.signal, error);
  if (failure === undefined) return;
  addDetails<'generation'>(span, { errorType: modelErrorType(failure.error) });
  failSpan(span, {
    message: 'Error',
    data: { name: nameOf(failure.error), message: modelErrorText(failure.error, modelErrorTexts(span, request)) },
  });
}

function nameOf(error: unknown): string {
  try {
    return error instanceof Error ? error.name : typeof error;
  } catch {
    return 'Error';
  }
}
