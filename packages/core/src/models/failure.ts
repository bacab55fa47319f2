import { ModelBehaviorError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import type { ModelResponse } from './model.ts';

/** The members of a wire response that a failure is read from. */
interface FailedResponse {
  readonly id?: string | undefined;
  readonly status?: string | undefined;
  readonly output?: readonly ResponseOutputItem[] | undefined;
  readonly usage?: object | null | undefined;
  readonly error?: unknown;
  readonly incomplete_details?: unknown;
}

/** Of a plain answer that is not a completed response; `undefined` when it is one. A missing status counts as completed. */
export function failureOfResponse(response: FailedResponse): ModelBehaviorError | undefined {
  const { status } = response;
  if (status === undefined || status === null || status === 'completed') return undefined;
  return terminalFailure('response', response);
}

/** Of a stream's event that ends the response without an answer; `undefined` for every other event. */
export function failureOfEvent(event: ResponseStreamEvent): ModelBehaviorError | undefined {
  switch (event.type as string) {
    // A service that says `completed` of a response that is not gave no answer either.
    case 'response.completed':
      return failureOfResponse((event as { response?: FailedResponse | null }).response ?? {});
    case 'response.failed':
    case 'response.incomplete':
      return terminalFailure(event.type, (event as { response?: FailedResponse | null }).response ?? {});
    case 'error':
    case 'response.error':
      return errorEventFailure(event as unknown as Record<string, unknown>);
    default:
      return undefined;
  }
}

/** Why a failed call has no answer, as data on the error; the message has no word of the model's output. */
function terminalFailure(what: string, response: FailedResponse): ModelBehaviorError {
  const parts = [`status ${response.status ?? 'unknown'}`];
  const code = memberOf(response.error, 'code');
  if (code !== undefined) parts.push(`error code ${code}`);
  const reason = memberOf(response.incomplete_details, 'reason');
  if (reason !== undefined) parts.push(`reason ${reason}`);
  return new ModelBehaviorError(
    `The model gave no usable answer: ${what}, ${parts.join(', ')}.${providerText(response.error)}`,
    {
      response: partialResponse(response),
      status: response.status,
      responseError: response.error ?? undefined,
      incompleteDetails: response.incomplete_details ?? undefined,
    },
  );
}

function errorEventFailure(event: Record<string, unknown>): ModelBehaviorError {
  const error = typeof event['error'] === 'object' && event['error'] !== null ? event['error'] : event;
  const code = memberOf(error, 'code');
  const text = `The model's stream ended with an error event${code === undefined ? '' : `, error code ${code}`}.${providerText(error)}`;
  return new ModelBehaviorError(text, { status: 'failed', responseError: error });
}

function partialResponse(response: FailedResponse): ModelResponse {
  return {
    output: response.output ?? [],
    usage: toUsage(response.usage),
    ...(response.id ? { responseId: response.id } : undefined),
  };
}

/** The provider's own words may repeat what it was sent, so they need model-data logging. */
function providerText(error: unknown): string {
  const message = getLogger().dontLogModelData ? undefined : memberOf(error, 'message');
  return message === undefined ? '' : ` ${message}`;
}

function memberOf(value: unknown, key: string): string | undefined {
  const member = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof member === 'string' || typeof member === 'number' ? String(member) : undefined;
}
