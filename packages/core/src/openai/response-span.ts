import type { OpenAI } from 'openai';
import type { ResponseStreamEvent } from '../items/wire.ts';
import type { ModelRequest, Usage } from '../models/model.ts';
import { responseDetails } from '../models/call-details.ts';
import { failModelSpan, showsData, startModelSpan, streamInSpan, usageToTrace } from '../models/span.ts';
import { tracedInput } from '../models/traced-input.ts';
import { addDetails, finishItem } from '../tracing/lifecycle.ts';
import { runInScope } from '../tracing/scope.ts';
import { setSensitive } from '../tracing/span.ts';
import type { ModelCallDetails, Span } from '../tracing/types.ts';
import { isOfficial, urlOf } from './client.ts';

type Response = Extract<ResponseStreamEvent, { type: 'response.completed' }>['response'];
type EventStream = AsyncGenerator<ResponseStreamEvent, void>;
interface Call {
  /** `undefined`: the prompt template's. */
  readonly name: string | undefined;
  readonly client: OpenAI;
  readonly stream: boolean;
}

/** The `response` span of one call; does nothing where nobody would see it. */
export class ResponseSpan {
  readonly #span: Span<'response'> | undefined;
  readonly #request: ModelRequest;
  readonly #call: Call;
  readonly #showsId: boolean;

  constructor(request: ModelRequest, call: Call) {
    this.#request = request;
    this.#call = call;
    const data = showsData(request);
    this.#span = startModelSpan(
      () => ({ type: 'response', ...(data ? { input: tracedInput(request.input) } : undefined) }),
      request,
      () => callDetails(call),
    );
    this.#showsId = this.#span !== undefined && !data && isOfficial(call.client);
  }

  /** A plain call inside the span, which ends with it. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    const span = this.#span;
    if (span === undefined) return call();
    try {
      return await runInScope(span, call);
    } catch (error) {
      this.fail(error);
      throw error;
    } finally {
      finishItem(span);
    }
  }

  /** The same for a stream. */
  stream(events: EventStream): AsyncGenerator<ResponseStreamEvent, unknown> {
    return this.#span === undefined ? events : streamInSpan(this.#span, this.#failing(events));
  }

  /** The terminal response, before the caller gets it, who may stop there. Without data the id alone, and only of OpenAI itself. */
  record(response: Response, usage: Usage): void {
    const span = this.#span;
    if (span === undefined) return;
    span.spanData.usage = usageToTrace(usage);
    if (showsData(this.#request)) setSensitive(span, 'response', response);
    else if (this.#showsId && isOfficial(this.#call.client)) span.spanData.responseId = response.id;
    addDetails<'response'>(span, responseDetails(response));
  }

  /** The transport's id of the request. */
  requestId(id: string | null | undefined): void {
    if (this.#span !== undefined && id) addDetails<'response'>(this.#span, { requestId: id });
  }

  /** The first error counts: what fails after it fails because of it. */
  fail(error: unknown): void {
    if (this.#span !== undefined && this.#span.error === undefined)
      failModelSpan(this.#span, this.#request, this.#call.stream, error);
  }

  async *#failing(events: EventStream): EventStream {
    try {
      return yield* events;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}

/** What processors may know of a call without seeing its data. */
function callDetails({ name, client, stream }: Call): ModelCallDetails {
  const url = urlOf(client.baseURL);
  return {
    provider: 'openai',
    api: 'responses',
    ...(name === undefined ? undefined : { requestModel: name }),
    stream,
    ...(url === undefined ? undefined : { serverAddress: url.hostname }),
    ...(url?.port ? { serverPort: Number(url.port) } : undefined),
  };
}
