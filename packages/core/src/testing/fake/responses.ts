import { toUsage } from '../../base/usage.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../../items/wire.ts';
import { responseObject, synthesizeStream, usageToWire } from '../../models/synthesize.ts';
import { plan } from '../offline/plan.ts';
import { ScriptIds } from '../script.ts';
import { checkRequest } from './check-request.ts';
import type { Body } from './check-request.ts';
import { ApiRefusal } from './types.ts';
import type { Fault } from './types.ts';

type Loose = Record<string, unknown>;
type Terminal = Extract<Fault, { kind: 'terminal' }>;
/** A response that was made, and how it is streamed. */
export interface MadeResponse {
  readonly response: Loose;
  readonly events: () => Iterable<ResponseStreamEvent>;
}
/** A request that was not refused. */
export interface AcceptedRequest {
  readonly body: Body;
  /** Of this request; `items` begins with what was before. */
  readonly input: readonly object[];
  readonly items: readonly object[];
}
interface Stored {
  readonly response: Loose;
  readonly items: readonly object[];
}

/** `/v1/responses`: makes and keeps responses. */
export class ResponseStore {
  readonly #stored = new Map<string, Stored>();
  /** Input of the last request per cache key. */
  readonly #cached = new Map<unknown, string>();
  readonly #ids = new ScriptIds();
  #count = 0;

  /** @param kept items of the request's conversation @throws ApiRefusal */
  accept(
    body: Body,
    { strict, models, kept }: { strict: boolean; models: readonly string[] | undefined; kept: readonly object[] },
  ): AcceptedRequest {
    const before = kept.length > 0 ? kept : this.#before(body['previous_response_id']);
    if (strict) checkRequest(body, before, models);
    const input =
      typeof body['input'] === 'string'
        ? [{ role: 'user', content: body['input'] }]
        : ((body['input'] ?? []) as object[]);
    return { body, input, items: [...before, ...input] };
  }

  /** `/v1/responses/compact`: the messages of the user, and one item that stands for the rest. @throws ApiRefusal */
  compact(body: Body, createdAt: number): Loose {
    const { input } = body;
    const before = this.#before(body['previous_response_id']);
    if (input === undefined && body['previous_response_id'] === undefined)
      throw new ApiRefusal("Missing required parameter: 'input'.", {
        param: 'input',
        code: 'missing_required_parameter',
      });
    const given = typeof input === 'string' ? [{ role: 'user', content: input }] : ((input ?? []) as object[]);
    const items = [...before, ...given] as Loose[];
    const users = items
      .filter(({ role }) => role === 'user')
      .map((item) => ({ id: this.#ids.next('msg'), status: 'completed', ...item, type: 'message' }));
    const id = `resp_${String(++this.#count).padStart(4, '0')}`;
    const compaction = {
      id: `cmp_${String(this.#count).padStart(4, '0')}`,
      type: 'compaction',
      encrypted_content: `compacted ${items.length - users.length} items`,
    };
    return {
      id,
      object: 'response.compaction',
      created_at: createdAt,
      output: [...users, compaction],
      usage: usageToWire(this.#usage(body, items, [compaction])),
    };
  }

  /** Without `output` it is what the offline model would answer. */
  create(
    { body, items }: AcceptedRequest,
    given: readonly ResponseOutputItem[] | undefined,
    createdAt: number,
    terminal: Terminal | undefined,
  ): MadeResponse {
    const output = given ?? this.#offline(body, items);
    const responseId = `resp_${String(++this.#count).padStart(4, '0')}`;
    const usage = this.#usage(body, items, output);
    const shell = responseObject({ responseId }, { ...echo(body), created_at: createdAt });
    const response = ending({ ...shell, status: 'completed', output, usage: usageToWire(usage) }, terminal);
    if (body['store'] !== false) this.#stored.set(responseId, { response, items: [...items, ...output] });
    const streamed = { output, usage, responseId };
    return {
      response,
      events: () => eventsOf(synthesizeStream(streamed, { chunk: 'word', response: shell }), response, body),
    };
  }

  get(id: string): Loose {
    return this.#find(id).response;
  }

  delete(id: string): Loose {
    this.#find(id);
    this.#stored.delete(id);
    return { id, object: 'response', deleted: true };
  }

  #find(id: string): Stored {
    const found = this.#stored.get(id);
    if (found === undefined) throw new ApiRefusal(`Response with id '${id}' not found.`, { status: 404 });
    return found;
  }

  #before(given: unknown): readonly object[] {
    if (given === undefined || given === null) return [];
    const id = typeof given === 'string' ? given : JSON.stringify(given);
    const found = this.#stored.get(id);
    if (found === undefined)
      throw new ApiRefusal(`Previous response with id '${id}' not found.`, {
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      });
    return found.items;
  }

  #offline(body: Body, items: readonly object[]): ResponseOutputItem[] {
    const format = (body['text'] as Body | undefined)?.['format'] as Body | undefined;
    const tools = ((body['tools'] ?? []) as Body[])
      .filter((tool) => tool['type'] === 'function')
      .map((tool) => ({
        name: String(tool['name']),
        description: typeof tool['description'] === 'string' ? tool['description'] : '',
        parameters: (tool['parameters'] ?? {}) as Body,
      }));
    const isHandoff = ({ name }: { name: string }): boolean => name.startsWith('transfer_to_');
    const next = plan({
      items,
      tools: tools.filter((tool) => !isHandoff(tool)),
      handoffs: tools.filter(isHandoff),
      toolChoice: body['tool_choice'],
      parallel: body['parallel_tool_calls'] !== false,
      outputSchema: format?.['type'] === 'json_schema' ? (format['schema'] as Body) : undefined,
    });
    if (next.type === 'text')
      return [
        {
          id: this.#ids.next('msg'),
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: next.text, annotations: [], logprobs: [] }],
        },
      ];
    return next.calls.map(({ name, args }) => ({
      type: 'function_call',
      id: this.#ids.next('fc'),
      call_id: this.#ids.next('call'),
      name,
      arguments: JSON.stringify(args),
      status: 'completed',
    }));
  }

  /** About four characters a token; what a cache key has seen before counts as cached. */
  #usage(body: Body, items: readonly object[], output: readonly object[]): ReturnType<typeof toUsage> {
    const text = JSON.stringify([body['instructions'] ?? null, body['tools'] ?? [], items]).slice(0, -1);
    const key = body['prompt_cache_key'];
    const before = key === undefined ? undefined : this.#cached.get(key);
    if (key !== undefined) this.#cached.set(key, text.slice(0, -1));
    const tokens = (characters: number): number => Math.ceil(characters / 4);
    const inputTokens = tokens(text.length);
    const outputTokens = tokens(JSON.stringify(output).length);
    const cachedTokens = before !== undefined && text.startsWith(before) ? tokens(before.length) : 0;
    return toUsage({
      inputTokens,
      outputTokens,
      totalTokens: inputTokens + outputTokens,
      inputTokensDetails: { cachedTokens, cacheWriteTokens: 0 },
    });
  }
}

const echoed =
  'instructions metadata model parallel_tool_calls temperature tool_choice tools top_p max_output_tokens previous_response_id prompt_cache_key reasoning store text top_logprobs truncation'.split(
    ' ',
  );

function echo(body: Body): Loose {
  return Object.fromEntries(echoed.flatMap((key) => (body[key] === undefined ? [] : [[key, body[key]]])));
}

function ending(response: Loose, terminal: Terminal | undefined): Loose {
  if (terminal === undefined) return response;
  if (terminal.status === 'failed')
    return {
      ...response,
      status: 'failed',
      error: terminal.details ?? { code: 'server_error', message: 'The model failed to generate a response.' },
    };
  return { ...response, status: 'incomplete', incomplete_details: terminal.details ?? { reason: 'max_output_tokens' } };
}

/** As the service sends them: the last one may tell a failure, deltas are padded. */
function* eventsOf(events: Iterable<ResponseStreamEvent>, response: Loose, body: Body): Generator<ResponseStreamEvent> {
  const padded = (body['stream_options'] as Body | undefined)?.['include_obfuscation'] !== false;
  for (const event of events) {
    if (event.type === 'response.completed')
      yield {
        ...event,
        type: `response.${String(response['status'])}`,
        response: structuredClone(response),
      } as unknown as ResponseStreamEvent;
    else if (padded && event.type.endsWith('.delta'))
      yield { ...event, obfuscation: 'x'.repeat(8 - (event.sequence_number % 8)) } as ResponseStreamEvent;
    else yield event;
  }
}
