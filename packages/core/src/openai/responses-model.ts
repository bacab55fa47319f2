import type { OpenAI } from 'openai';
import { getDefaultModel } from '../agent/model-defaults.ts';
import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions } from '../base/options.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { abortError, throwIfAborted } from '../models/abort.ts';
import { failureOfResponse } from '../models/failure.ts';
import type { Model, ModelRequest, ModelResponse, ResponseMetadata } from '../models/model.ts';
import { plainCopy } from '../models/plain.ts';
import { callLog } from './call-log.ts';
import { checkClient, isOfficial, makeClient, once } from './client.ts';
import type { ClientSource } from './client.ts';
import { defaultApiKey, defaultClient } from './defaults.ts';
import { buildResponsesRequest } from './request.ts';
import { ResponseSpan } from './response-span.ts';
import { readServerStream } from './server-stream.ts';
import type { ServerStream, StreamObserver } from './server-stream.ts';
import { warnOfUnsent } from './unsent-settings.ts';

export interface OpenAIModelOptions {
  /** Default: that of `setOpenAIDefaults`, else one for the default key and the environment. */
  client?: OpenAI | undefined;
}
type Response = Extract<ResponseStreamEvent, { type: 'response.completed' }>['response'];

/**
 * A model of the Responses API, over HTTP. Errors of the client (`APIError` and the like) reach the caller as they are.
 * @throws UserError for an empty name and unknown options
 * @example
 * ```ts
 * const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: new OpenAI({ maxRetries: 0 }) });
 * ```
 */
export class OpenAIResponsesModel implements Model {
  readonly #name: string;
  /** Nobody named it: a prompt template may have another one. */
  #implicit = false;
  #client: ClientSource;
  #warned: Set<string> = new Set();

  constructor(name: string, options: OpenAIModelOptions = {}) {
    checkOptions(options, { client: checkClient }, 'OpenAIResponsesModel');
    if (typeof name !== 'string' || name.trim() === '')
      throw new UserError('OpenAIResponsesModel needs the name of a model.');
    this.#name = name;
    const { client } = options;
    this.#client = once(() => client ?? defaultClient() ?? makeClient({ apiKey: defaultApiKey() }));
  }

  /** A model of a provider, whose models share one client and warn together; without a name the default one. @internal */
  static withClient(name: string | undefined, client: ClientSource, warned: Set<string>): OpenAIResponsesModel {
    const model = new OpenAIResponsesModel(name ?? getDefaultModel());
    model.#implicit = name === undefined;
    model.#client = client;
    model.#warned = warned;
    return model;
  }

  /** The request body and options as they would be sent; does nothing else. @throws UserError */
  buildRequest(
    request: ModelRequest,
    stream = false,
  ): { body: Record<string, unknown>; options: Record<string, unknown> } {
    return buildResponsesRequest(this.#nameFor(request), request, stream);
  }

  #nameFor(request: ModelRequest): string | undefined {
    return this.#implicit && request.prompt !== undefined ? undefined : this.#name;
  }

  /** True for the OpenAI API itself. */
  supportsDefaultPromptCacheKey(): boolean {
    return isOfficial(this.#client());
  }

  /** @throws UserError before anything is sent, MissingCredentialsError without a key, ModelBehaviorError for answers that did not complete */
  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    throwIfAborted(request.signal);
    const { body, options } = this.buildRequest(request);
    warnOfUnsent(this.#name, request.modelSettings, this.#warned);
    const client = this.#client();
    const span = new ResponseSpan(request, { name: this.#nameFor(request), client, stream: false });
    callLog.started(body);
    try {
      const answer = await span.run(() =>
        this.#answer(client, body, { ...options, signal: request.signal }, request, span),
      );
      callLog.answered(answer);
      return answer;
    } catch (error) {
      callLog.failed(error);
      throw error;
    }
  }

  async #answer(
    client: OpenAI,
    body: object,
    options: object,
    request: ModelRequest,
    span: ResponseSpan,
  ): Promise<ModelResponse> {
    const response = await unlessAborted(
      request.signal,
      async () => (await client.responses.create(body, options)) as Response,
    );
    throwIfAborted(request.signal);
    const usage = toUsage({ ...response.usage });
    span.record(response, usage);
    span.requestId(requestIdOf(response));
    const failure = failureOfResponse(response);
    if (failure !== undefined) throw failure;
    return {
      output: response.output,
      usage,
      ...(response.id ? { responseId: response.id } : undefined),
      ...metadataOf(request, requestIdOf(response), response.usage),
    };
  }

  /** Every event of the server, as it is; then the failure, if the response failed. @throws as `getResponse`, ModelStreamTruncatedError */
  streamResponse(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void> {
    return this.#stream(request);
  }

  async *#stream(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void> {
    const { signal } = request;
    throwIfAborted(signal);
    const { body, options } = this.buildRequest(request, true);
    warnOfUnsent(this.#name, request.modelSettings, this.#warned);
    const client = this.#client();
    const span = new ResponseSpan(request, { name: this.#nameFor(request), client, stream: true });
    let requestId: string | null | undefined;
    let usage: Response['usage'];
    const start = async (): Promise<ServerStream> => {
      const opened = await openStream(client, body, { ...options, signal });
      ({ requestId } = opened);
      span.requestId(requestId);
      return opened.stream;
    };
    const observer: StreamObserver = {
      ended: ({ response }) => {
        usage = response.usage;
        if (response.status === 'completed') callLog.answered({ output: response.output, responseId: response.id });
        span.record(response, toUsage({ ...usage }));
      },
      failed: (error) => span.fail(error),
    };
    callLog.started(body);
    try {
      yield* span.stream(readServerStream(start, observer, signal));
    } catch (error) {
      callLog.failed(error);
      throw error;
    }
    return metadataOf(request, requestId, usage);
  }
}

/** A model of a provider, whose models share one client; without a name the default one. */
export function modelWithClient(
  name: string | undefined,
  client: ClientSource,
  warned: Set<string>,
): OpenAIResponsesModel {
  return OpenAIResponsesModel.withClient(name, client, warned);
}

interface OpenedStream {
  readonly stream: ServerStream;
  readonly requestId: string | null | undefined;
}
type PendingStream = PromiseLike<ServerStream> & {
  withResponse?(): Promise<{
    data: ServerStream;
    request_id: string | null;
    response: { body: ReadableStream | null };
  }>;
};

/** Custom clients may give the bare stream, without what belongs to the HTTP answer. */
async function openStream(client: OpenAI, body: object, options: object): Promise<OpenedStream> {
  const pending = client.responses.create(body as never, options) as unknown as PendingStream;
  const { data, request_id, response } =
    typeof pending.withResponse === 'function'
      ? await pending.withResponse()
      : { data: await pending, request_id: undefined, response: undefined };
  if (typeof (data as Partial<ServerStream> | undefined)?.[Symbol.asyncIterator] === 'function')
    return { stream: data, requestId: request_id };
  response?.body?.cancel().catch(() => {});
  throw new ModelBehaviorError('The client gave no stream of events for a streamed request.');
}

/** The client's own abort error becomes that of all models. */
async function unlessAborted<T>(signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (signal?.aborted) throw abortError(signal);
    throw isMisreading(error) ? noResponse(error) : error;
  }
}

/** The client looks for members where there are none; a `TypeError` of the network says other things (MODEL-812). */
function isMisreading(error: unknown): error is TypeError {
  return error instanceof TypeError && /'in' operator|properties of|not an object|not iterable/i.test(error.message);
}

/** Of an answer that is none, a proxy's page say: what the client throws has no class of its own, and may quote the page. */
function noResponse(error: Error): ModelBehaviorError {
  return new ModelBehaviorError(
    'The service answered with something that is no response object. Is the base URL right, and is there a proxy on the way?',
    getLogger().dontLogModelData ? {} : { cause: error },
  );
}

function metadataOf(
  request: ModelRequest,
  requestId: string | null | undefined,
  usage: object | null | undefined,
): Pick<ModelResponse, 'requestId' | 'rawUsage'> {
  const rawUsage = request.modelSettings.preserveRawUsage === true ? snapshot(usage) : undefined;
  return { ...(requestId ? { requestId } : undefined), ...(rawUsage === undefined ? undefined : { rawUsage }) };
}

/** The client hides it on the response. */
function requestIdOf(response: object): string | null | undefined {
  return (response as { readonly ['_request_id']?: string | null })['_request_id'];
}

/** What JSON cannot hold is no reason to fail a call. */
function snapshot(usage: object | null | undefined): Record<string, unknown> | undefined {
  try {
    return usage ? (plainCopy(usage, 'usage') as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
