import type { ResponseOutputItem } from '../../items/wire.ts';
import { isObject } from '../../base/json.ts';
import { outputFor, prepareAnswer, ScriptIds } from '../script.ts';
import { errorBody, json } from './answers.ts';
import { ConversationStore } from './conversations.ts';
import type { Conversation } from './conversations.ts';
import type { RequestFaults } from './faults.ts';
import { ResponseStore } from './responses.ts';
import { brokenBody, sse } from './stream.ts';
import { TraceStore } from './traces.ts';
import { ApiRefusal } from './types.ts';
import type { Answer, FakeOpenAIOptions, FakeStep, RecordedRequest } from './types.ts';

type HttpStep = Extract<FakeStep, { status: number; body?: unknown }>;

/** What the API does and keeps: routes, responses, conversations, traces. What breaks on the way is not its matter. */
export class FakeService {
  readonly steps: FakeStep[] = [];
  readonly #options: FakeOpenAIOptions;
  readonly #responses = new ResponseStore();
  readonly #conversations: ConversationStore;
  readonly #traces: TraceStore;
  readonly #ids = new ScriptIds();

  constructor(options: FakeOpenAIOptions) {
    this.#options = options;
    this.#conversations = new ConversationStore(options.strict !== false);
    this.#traces = new TraceStore(options.strict !== false);
  }

  get traces(): readonly Record<string, unknown>[] {
    return this.#traces.records;
  }

  /** `text`: the body as it came. */
  async answer(
    request: RecordedRequest,
    key: string | undefined,
    text: string,
    faults: RequestFaults,
  ): Promise<Answer> {
    try {
      this.#authorize(key);
      return await this.#route(request, text, faults);
    } catch (error) {
      if (error instanceof ApiRefusal) return json(error.status, error.body);
      throw error;
    }
  }

  #authorize(key: string | undefined): void {
    if (key === undefined)
      throw new ApiRefusal("You didn't provide an API key.", { status: 401, code: 'invalid_api_key' });
    const { apiKeys } = this.#options;
    if (apiKeys !== undefined && !apiKeys.includes(key))
      throw new ApiRefusal('Incorrect API key provided.', { status: 401, code: 'invalid_api_key' });
  }

  async #route(request: RecordedRequest, text: string, faults: RequestFaults): Promise<Answer> {
    const { method, path } = request;
    if (path === '/v1/traces/ingest') return allow(method, { POST: () => this.#ingest(request, text) });
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

  #ingest(request: RecordedRequest, text: string): Answer {
    if (request.headers['openai-beta'] !== 'traces=v1')
      throw new ApiRefusal("Missing or wrong header: 'OpenAI-Beta'. It has to be 'traces=v1'.", {});
    this.#traces.add(request.body, new TextEncoder().encode(text).length);
    return { status: 204, headers: {}, body: '' };
  }

  /** Output items, an HTTP answer, or nothing when there are no steps. */
  async #nextStep(request: RecordedRequest): Promise<ResponseOutputItem[] | HttpStep | undefined> {
    let step = this.steps.shift();
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

function allow(
  method: string,
  handlers: Readonly<Record<string, () => Answer | Promise<Answer>>>,
): Answer | Promise<Answer> {
  const handler = handlers[method];
  if (handler === undefined) throw new ApiRefusal(`Not allowed to ${method} on this URL.`, { status: 405 });
  return handler();
}
