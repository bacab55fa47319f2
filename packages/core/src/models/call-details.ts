import type { ResponseStreamEvent } from '../items/wire.ts';
import { AgentsError, ModelBehaviorError, ModelTimeoutError } from '../base/errors.ts';
import { errorTypeOf, fieldOf, redacted } from '../tracing/sensitive.ts';
import { spanInternals } from '../tracing/span.ts';
import type { ModelCallDetails, Span } from '../tracing/types.ts';
import type { ModelRequest } from './model.ts';
import { settingsToTrace } from './settings.ts';

type Response = Extract<ResponseStreamEvent, { type: 'response.completed' }>['response'];

/** What processors may know of a request beside the data of its span. Nothing of it is exported by us. */
export function requestDetails(span: Span, request: ModelRequest, data: boolean): ModelCallDetails {
  const { attempt, conversationId, previousResponseId, prompt } = request;
  const params = {
    // Generation spans have the settings as `modelConfig`.
    ...(span.type === 'response' && settingsToTrace(request.modelSettings, data)),
    ...(prompt !== undefined && { prompt: { id: prompt.id, version: prompt.version } }),
  };
  const details: ModelCallDetails = {
    attempt: attempt?.number ?? 1,
    ...(Object.keys(params).length > 0 && { requestParams: params }),
    ...(conversationId !== undefined && { conversationId }),
    ...(previousResponseId !== undefined && { previousResponseId }),
  };
  return data ? withTexts(span, request, details) : details;
}

/** What people wrote, as far as the run shows it. Definitions are made when somebody reads them. */
function withTexts(span: Span, request: ModelRequest, details: ModelCallDetails): ModelCallDetails {
  const policy = spanInternals(span)?.policy;
  // Generation spans show instructions as the first message.
  const { systemInstructions: given } = span.type === 'response' ? request : {};
  const instructions = policy === undefined ? given : redacted(policy, fieldOf(span, 'systemInstructions'), given);
  if (typeof instructions === 'string') details.systemInstructions = instructions;
  const { tools, handoffs } = request;
  if (tools.length + handoffs.length > 0)
    Object.defineProperty(span.details, 'toolDefinitions', {
      get: () => toolDefinitions({ tools, handoffs }),
      enumerable: true,
      configurable: true,
    });
  return details;
}

function toolDefinitions({ tools, handoffs }: Pick<ModelRequest, 'tools' | 'handoffs'>): unknown[] {
  return [
    ...tools.map((tool) =>
      tool.type === 'function'
        ? {
            type: tool.type,
            name: tool.qualifiedName,
            description: tool.description,
            parameters: tool.paramsJsonSchema,
          }
        : { type: (tool as { type: string }).type },
    ),
    ...handoffs.map(({ toolName, toolDescription, inputJsonSchema }) => ({
      type: 'function',
      name: toolName,
      description: toolDescription,
      parameters: inputJsonSchema,
    })),
  ];
}

/** Of a response what it says of itself. */
export function responseDetails(response: Response): ModelCallDetails {
  const { model, id, service_tier: serviceTier } = response;
  return {
    responseModel: model,
    responseId: id,
    finishReasons: [finishReason(response)],
    ...(typeof serviceTier === 'string' && { serviceTier }),
  };
}

function finishReason({ status, incomplete_details: incomplete, output }: Response): string {
  if (status === 'incomplete') return incomplete?.reason === 'content_filter' ? 'content_filter' : 'length';
  if (status !== undefined && status !== 'completed') return status === 'failed' ? 'error' : status;
  const isCall = ({ type }: { type: string }): boolean => type === 'function_call' || type === 'custom_tool_call';
  return output.some(isCall) ? 'tool_calls' : 'stop';
}

/** The HTTP status as text, else the provider's code, else the class; `timeout` when the time of the call was over. Never a text. */
export function modelErrorType(error: unknown): string {
  if (error instanceof ModelTimeoutError) return 'timeout';
  if (error instanceof ModelBehaviorError) {
    const { code } = (error.responseError ?? {}) as { code?: unknown };
    if (typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)) return code;
  }
  if (!(error instanceof AgentsError)) {
    try {
      const status: unknown = (error as { status?: unknown } | null | undefined)?.status;
      if (typeof status === 'number' && Number.isInteger(status)) return String(status);
    } catch {
      // A getter that throws: the class will do.
    }
  }
  return errorTypeOf(error);
}
