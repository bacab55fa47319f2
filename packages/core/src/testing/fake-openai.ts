import type { ClientOptions, OpenAI } from 'openai';
import { checkOptions, kinds } from '../base/options.ts';
import { faultAnswer, serviceHeaders } from './fake/answers.ts';
import { checkFault, FaultList, socketError } from './fake/faults.ts';
import type { RequestFaults } from './fake/faults.ts';
import { readRequest, toResponse } from './fake/fetch.ts';
import { listen } from './fake/listen.ts';
import type { FakeServer } from './fake/listen.ts';
import { FakeService } from './fake/service.ts';
import type { Answer, FakeOpenAIOptions, FakeStep, Fault, RecordedRequest } from './fake/types.ts';
import { ModelScriptError } from './script-error.ts';
import { delay } from './wait.ts';

export type { FakeOpenAIOptions } from './fake/types.ts';

type HttpRequest = Awaited<ReturnType<typeof readRequest>>;

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
  readonly #faults = new FaultList();
  #service: FakeService;
  #requests: RecordedRequest[] = [];

  constructor(options: FakeOpenAIOptions = {}) {
    checkOptions(
      options,
      { steps: kinds.any, strict: kinds.boolean, apiKeys: kinds.array, models: kinds.array, clock: kinds.object },
      'FakeOpenAI',
    );
    this.#options = { ...options };
    this.#service = new FakeService(this.#options);
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
    this.#service.steps.push(...steps);
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
    return this.#service.traces;
  }

  /** @throws ModelScriptError `unconsumed_model_steps` */
  assertDone(): void {
    const { length } = this.#service.steps;
    if (length > 0)
      throw new ModelScriptError(
        `${length} steps of the fake service were not used (${this.#requests.length} requests were made).`,
        { code: 'unconsumed_model_steps' },
      );
  }

  /** Forgets steps, faults, requests, traces, stored responses and conversations. */
  reset(): void {
    this.#requests = [];
    this.#service = new FakeService(this.#options);
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

  #answer(request: RecordedRequest, { headers, text }: HttpRequest, faults: RequestFaults): Promise<Answer> {
    const key = /^Bearer\s+(\S+)$/iu.exec(headers['authorization'] ?? '')?.[1];
    return this.#service.answer(request, key, text, faults);
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

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}

/** No byte, until the caller gives up. */
function forever(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason as Error);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
