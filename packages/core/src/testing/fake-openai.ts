import type { ClientOptions, OpenAI } from 'openai';
import { checkOptions, kinds } from '../base/options.ts';
import type { ResponseOutputItem } from '../items/wire.ts';
import type { Clock } from '../tracing/types.ts';
import { checkFault, FaultList, socketError } from './fake/faults.ts';
import type { RequestFaults } from './fake/faults.ts';
import { ConversationStore } from './fake/conversations.ts';
import type { Conversation } from './fake/conversations.ts';
import { readRequest, toResponse } from './fake/fetch.ts';
import { listen } from './fake/listen.ts';
import type { FakeServer } from './fake/listen.ts';
import { ResponseStore } from './fake/responses.ts';
import { brokenBody, sse } from './fake/stream.ts';
import { TraceStore } from './fake/traces.ts';
import { ApiRefusal } from './fake/types.ts';
import type { Answer, FakeStep, Fault, RecordedRequest } from './fake/types.ts';
import { ModelScriptError } from './script-error.ts';
import { isObject } from '../base/json.ts';
import { outputFor, prepareAnswer, ScriptIds } from './script.ts';
import { delay } from './wait.ts';

export interface FakeOpenAIOptions {
  steps?: Iterable<FakeStep> | undefined;
  /** Refuse what the API refuses. Default `true`. */
  strict?: boolean | undefined;
  /** Default: any key. */
  apiKeys?: readonly string[] | undefined;
  /** Names that `/v1/models` lists, and that alone may be asked. Default: any. */
  models?: readonly string[] | undefined;
  clock?: Clock | undefined;
}
type HttpRequest = Awaited<ReturnType<typeof readRequest>>;
type HttpStep = Extract<FakeStep, { status: number; body?: unknown }>;

/**
 * An OpenAI API without a network: `/v1/responses` (plain and as server-sent events) with `/compact`,
 * `/v1/conversations`, `/v1/models` and `/v1/traces/ingest`. Refuses what the real API refuses. Answers from its steps, and without steps like `OfflineModel`.
 * @example
 * ```ts
 * const fake = new FakeOpenAI({ steps: ['Hello.'] });
 * const model = new OpenAIResponsesModel('gpt-5.6-luna', { client: await fake.client() });
 * ```
 */
export class FakeOpenAI {
  readonly #options: FakeOpenAIOptions;
  #steps: FakeStep[] = [];
  #requests: RecordedRequest[] = [];
  #responses = new ResponseStore();
  #conversations: ConversationStore;
  #traces: TraceStore;
  #ids = new ScriptIds();
  readonly #faults = new FaultList();

  constructor(options: FakeOpenAIOptions = {}) {
    checkOptions(
      options,
      { steps: kinds.any, strict: kinds.boolean, apiKeys: kinds.array, models: kinds.array, clock: kinds.object },
      'FakeOpenAI',
    );
    this.#options = { ...options };
    this.#conversations = new ConversationStore(options.strict !== false);
    this.#traces = new TraceStore(options.strict !== false);
    this.add(...(options.steps ?? []));
  }

  /** For `new OpenAI({ fetch })`; works on every runtime. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = await readRequest(input, init);
    const answer = await this.#handle(request);
    return toResponse(answer, request.signal);
  };

  /** The real client, talking to this service; loads `openai`. */
  async client(options: ClientOptions = {}): Promise<OpenAI> {
    const { OpenAI: Client } = await import('openai');
    return new Client({
      apiKey: this.#options.apiKeys?.[0] ?? 'test-key',
      baseURL: 'https://fake.invalid/v1',
      // Faults are what a test asked for: no news.
      logLevel: 'off',
      ...options,
      fetch: this.fetch,
    });
  }

  /** On 127.0.0.1, default any port. Node-like runtimes. */
  listen(options: { port?: number } = {}): Promise<FakeServer> {
    checkOptions(options, ['port'], 'FakeOpenAI.listen()');
    return listen((request) => this.#handle(request), options.port ?? 0);
  }

  add(...steps: FakeStep[]): this {
    this.#steps.push(...steps);
    return this;
  }

  /** Breaks matching requests; returns the remover. @throws UserError for a fault that there is not */
  inject(fault: Fault): () => void {
    checkFault(fault);
    return this.#faults.add(fault);
  }

  get requests(): readonly RecordedRequest[] {
    return this.#requests;
  }

  /** Records of traces and spans that were posted to the ingest, in order. */
  get traces(): readonly Record<string, unknown>[] {
    return this.#traces.records;
  }

  /** @throws ModelScriptError `unconsumed_model_steps` */
  assertDone(): void {
    const { length } = this.#steps;
    if (length > 0)
      throw new ModelScriptError(
        `${length} steps of the fake service were not used (${this.#requests.length} requests were made).`,
        { code: 'unconsumed_model_steps' },
      );
  }

  /** Forgets steps, faults, requests, traces, stored responses and conversations. */
  reset(): void {
    this.#steps = [];
    this.#requests = [];
    this.#responses = new ResponseStore();
    this.#conversations = new ConversationStore(this.#options.strict !== false);
    this.#traces = new TraceStore(this.#options.strict !== false);
    this.#ids = new ScriptIds();
    this.#faults.clear();
  }

  async #handle(http: HttpRequest): Promise<Answer> {
    const request = record(http);
    this.#requests.push(request);
    const number = this.#requests.length;
    const faults = this.#faults.take(request);
    if (faults.breaking?.kind === 'refuse') throw socketError('fetch failed', 'ECONNREFUSED');
    if (faults.breaking?.kind === 'hang') await forever(http.signal);
    if (faults.delayMs > 0) await delay(faults.delayMs).then(() => http.signal?.throwIfAborted());
    const answer = faultAnswer(faults) ?? (await this.#answer(request, http, faults));
    return { ...answer, headers: { ...serviceHeaders(number), ...answer.headers } };
  }

  async #answer(request: RecordedRequest, http: HttpRequest, faults: RequestFaults): Promise<Answer> {
    try {
      this.#authorize(http.headers['authorization']);
      return await this.#route(request, http, faults);
    } catch (error) {
      if (error instanceof ApiRefusal) return json(error.status, error.body);
      throw error;
    }
  }

  #authorize(header: string | undefined): void {
    const key = /^Bearer\s+(\S+)$/iu.exec(header ?? '')?.[1];
    if (key === undefined)
      throw new ApiRefusal("You didn't provide an API key.", { status: 401, code: 'invalid_api_key' });
    const { apiKeys } = this.#options;
    if (apiKeys !== undefined && !apiKeys.includes(key))
      throw new ApiRefusal('Incorrect API key provided.', { status: 401, code: 'invalid_api_key' });
  }

  async #route(request: RecordedRequest, http: HttpRequest, faults: RequestFaults): Promise<Answer> {
    const { method, path } = request;
    if (path === '/v1/traces/ingest') return allow(method, { POST: () => this.#ingest(request, http) });
    const id = /^\/v1\/responses\/([^/]+)$/u.exec(path)?.[1];
    if (path === '/v1/models') return allow(method, { GET: () => json(200, this.#models()) });
    if (path === '/v1/responses/compact') return allow(method, { POST: () => this.#compact(request) });
    if (path === '/v1/responses') return allow(method, { POST: () => this.#create(request, faults) });
    if (id !== undefined)
      return allow(method, {
        GET: () => json(200, this.#responses.get(id)),
        DELETE: () => json(200, this.#responses.delete(id)),
      });
    if (/^\/v1\/conversations(?:\/|$)/u.test(path)) {
      const answer = this.#conversations.handle(request, this.#now());
      if (answer !== undefined) return json(200, answer);
    }
    throw new ApiRefusal(`Invalid URL (${method} ${path})`, { status: 404 });
  }

  #models(): object {
    const names = this.#options.models ?? ['gpt-5.6-luna'];
    return {
      object: 'list',
      data: names.map((id) => ({ id, object: 'model', created: this.#now(), owned_by: 'fake' })),
    };
  }

  async #create(request: RecordedRequest, faults: RequestFaults): Promise<Answer> {
    const body = bodyOf(request);
    const conversation = this.#conversations.of(body);
    if (conversation === undefined) return (await this.#respond(request, faults, body)).answer;
    conversation.locked = true;
    try {
      const { answer, exchange } = await this.#respond(request, faults, body, conversation);
      const add = (): void => {
        if (exchange) this.#conversations.append(conversation, exchange);
      };
      if (typeof answer.body !== 'string') return { ...answer, body: whenComplete(answer.body, add, unlock) };
      add();
      unlock();
      return answer;
    } catch (error) {
      unlock();
      throw error;
    }
    function unlock(): void {
      if (conversation) conversation.locked = false;
    }
  }

  async #respond(
    request: RecordedRequest,
    faults: RequestFaults,
    body: Readonly<Record<string, unknown>>,
    conversation?: Conversation,
  ): Promise<{ answer: Answer; exchange?: readonly object[] }> {
    const { breaking } = faults;
    const isStream = body['stream'] === true;
    const accepted = this.#responses.accept(body, {
      strict: this.#options.strict !== false,
      models: this.#options.models,
      kept: conversation?.items ?? [],
    });
    const next = await this.#nextStep(request);
    if (next !== undefined && 'status' in next)
      return { answer: json(next.status, next.body ?? errorBody(next.status), next.headers) };
    const made = this.#responses.create(
      accepted,
      next,
      this.#now(),
      breaking?.kind === 'terminal' ? breaking : undefined,
    );
    if (conversation) made.response['conversation'] = { id: conversation.id };
    const output = made.response['status'] === 'completed' ? (made.response['output'] as object[]) : undefined;
    const exchange = output && [...accepted.input, ...output];
    const done = (answer: Answer): { answer: Answer; exchange?: readonly object[] } =>
      exchange ? { answer, exchange } : { answer };
    if (isStream)
      return done({
        status: 200,
        headers: { 'content-type': 'text/event-stream; charset=utf-8' },
        body: sse(made.events(), faults),
      });
    if (breaking?.kind === 'errorEvent') {
      const error = { message: `The service reports ${breaking.code}.`, type: 'server_error', param: null };
      return { answer: json(500, { error: { ...error, code: breaking.code } }) };
    }
    const text = JSON.stringify(made.response);
    const isBroken = breaking !== undefined && ['cut', 'truncate', 'malformed'].includes(breaking.kind);
    return done({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: isBroken ? brokenBody(text, faults) : text,
    });
  }

  #compact(request: RecordedRequest): Answer {
    const body = bodyOf(request);
    if (typeof body['model'] !== 'string')
      throw new ApiRefusal("Missing required parameter: 'model'.", {
        param: 'model',
        code: 'missing_required_parameter',
      });
    return json(200, this.#responses.compact(body, this.#now()));
  }

  #ingest(request: RecordedRequest, { text }: HttpRequest): Answer {
    if (request.headers['openai-beta'] !== 'traces=v1')
      throw new ApiRefusal("Missing or wrong header: 'OpenAI-Beta'. It has to be 'traces=v1'.", {});
    this.#traces.add(request.body, new TextEncoder().encode(text).length);
    return { status: 204, headers: {}, body: '' };
  }

  /** Output items, an HTTP answer, or nothing when there are no steps. */
  async #nextStep(request: RecordedRequest): Promise<ResponseOutputItem[] | HttpStep | undefined> {
    let step = this.#steps.shift();
    while (typeof step === 'function') step = await step(request);
    if (step === undefined) return undefined;
    if (typeof step === 'object' && 'status' in step && !('type' in step)) return step;
    const answer = prepareAnswer(
      typeof step === 'string' || Array.isArray(step)
        ? (step as string | ResponseOutputItem[])
        : [step as ResponseOutputItem],
      'A step of the fake service',
      this.#ids,
    );
    const { input } = (isObject(request.body) ? request.body : {}) as { input?: unknown };
    const items = outputFor(answer, Array.isArray(input) ? input.filter(isObject) : [], this.#ids);
    return items.map((item) =>
      item.type === 'function_call' && item.id === undefined ? { id: this.#ids.next('fc'), ...item } : item,
    );
  }

  #now(): number {
    return Math.floor((this.#options.clock?.now() ?? Date.now()) / 1000);
  }
}

function record({ method, url, headers, text }: HttpRequest): RecordedRequest {
  const { authorization } = headers;
  return {
    transport: 'http',
    method: method.toUpperCase(),
    path: url.pathname.replace(/\/+$/u, ''),
    query: Object.fromEntries(url.searchParams),
    headers: {
      ...headers,
      ...(authorization === undefined
        ? undefined
        : { authorization: authorization.replace(/(?<=^\S+\s+)\S+$/u, '***') }),
    },
    body: parsed(text),
  };
}

/** @throws ApiRefusal */
function bodyOf({ body }: RecordedRequest): Readonly<Record<string, unknown>> {
  if (!isObject(body)) throw new ApiRefusal('We could not parse the JSON body of your request.', {});
  return body;
}

/** `complete` before the client learns of it, `end` in any case. */
async function* whenComplete(
  chunks: AsyncIterable<string | Error>,
  complete: () => void,
  end: () => void,
): AsyncGenerator<string | Error> {
  try {
    for await (const chunk of chunks) {
      if (typeof chunk === 'string' && chunk.startsWith('event: response.completed')) {
        complete();
        end();
      }
      yield chunk;
    }
  } finally {
    end();
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}

function allow(
  method: string,
  handlers: Readonly<Record<string, () => Answer | Promise<Answer>>>,
): Answer | Promise<Answer> {
  const handler = handlers[method];
  if (handler === undefined) throw new ApiRefusal(`Not allowed to ${method} on this URL.`, { status: 405 });
  return handler();
}

function faultAnswer({ breaking }: RequestFaults): Answer | undefined {
  if (breaking?.kind === 'status')
    return json(breaking.status, breaking.body ?? errorBody(breaking.status), breaking.headers);
  if (breaking?.kind === 'html')
    return {
      status: 502,
      headers: { 'content-type': 'text/html' },
      body: '<html><body><h1>502 Bad Gateway</h1></body></html>',
    };
  return undefined;
}

function errorBody(status: number): object {
  const codes: Readonly<Record<number, string>> = {
    401: 'invalid_api_key',
    429: 'rate_limit_exceeded',
    500: 'server_error',
    503: 'server_is_overloaded',
  };
  return {
    error: {
      message: `The service answers with status ${status}.`,
      type: status === 429 ? 'requests' : status >= 500 ? 'server_error' : 'invalid_request_error',
      param: null,
      code: codes[status] ?? null,
    },
  };
}

function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

function serviceHeaders(number: number): Record<string, string> {
  return {
    'x-request-id': `req_${String(number).padStart(4, '0')}`,
    'openai-processing-ms': '1',
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-remaining-requests': '9999',
  };
}

/** No byte, until the caller gives up. */
function forever(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason as Error);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
