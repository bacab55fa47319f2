import { isObject } from '../../base/json.ts';
import type { Body } from './check-request.ts';
import { checkItems } from './check-input.ts';
import { ApiRefusal } from './types.ts';
import type { RecordedRequest } from './types.ts';

type Item = Readonly<Record<string, unknown>> & { readonly id: string };

const idPrefixes: Readonly<Record<string, string>> = {
  function_call: 'fc',
  function_call_output: 'fco',
  reasoning: 'rs',
};
const MOST_ITEMS = 20;

/** What the service keeps of one conversation. */
export class Conversation {
  readonly id: string;
  readonly createdAt: number;
  metadata: unknown;
  items: Item[] = [];
  /** A response is being made. */
  locked = false;

  constructor(id: string, createdAt: number, metadata: unknown) {
    this.id = id;
    this.createdAt = createdAt;
    this.metadata = metadata;
  }

  toJSON(): object {
    return { id: this.id, object: 'conversation', created_at: this.createdAt, metadata: this.metadata };
  }
}

/** `/v1/conversations`: makes and keeps conversations and their items. */
export class ConversationStore {
  readonly #conversations = new Map<string, Conversation>();
  #count = 0;
  readonly #isStrict: boolean;

  constructor(isStrict: boolean) {
    this.#isStrict = isStrict;
  }

  /** Of a response request; `undefined`: it names none. @throws ApiRefusal */
  of({ conversation, previous_response_id: previous }: Body): Conversation | undefined {
    if (conversation === undefined || conversation === null) return undefined;
    if (previous !== undefined && previous !== null)
      throw new ApiRefusal("Mutually exclusive parameters: 'previous_response_id' and 'conversation'.", {
        param: 'previous_response_id',
        code: 'mutually_exclusive_parameters',
      });
    const id = isObject(conversation) ? conversation['id'] : conversation;
    const found = this.#find(String(id));
    if (found.locked)
      throw new ApiRefusal('Another process is currently operating on this conversation.', {
        code: 'conversation_locked',
      });
    return found;
  }

  /** Input and output of a response that is complete. */
  append(conversation: Conversation, items: readonly object[]): readonly Item[] {
    const stored = items.map((item) => this.#stored(item as Item));
    conversation.items.push(...stored);
    return stored;
  }

  /** @returns the body of the answer @throws ApiRefusal */
  handle({ method, path, query, body }: RecordedRequest, now: number): object | undefined {
    const [, , , id, part, itemId, more] = path.split('/');
    if (more !== undefined || (part !== undefined && part !== 'items')) return undefined;
    const json = isObject(body) ? body : {};
    if (id === undefined) return method === 'POST' ? this.#create(json, now) : refuseMethod(method);
    const conversation = this.#find(decodeURIComponent(id));
    if (part === undefined) return this.#whole(conversation, method, json);
    if (itemId !== undefined) return this.#one(conversation, method, decodeURIComponent(itemId));
    if (method === 'GET') return listed(conversation, query);
    if (method !== 'POST') return refuseMethod(method);
    const added = this.append(conversation, this.#checked(json['items']));
    return page(added, false);
  }

  #create(body: Body, now: number): object {
    const items = body['items'] === undefined || body['items'] === null ? [] : this.#checked(body['items']);
    const conversation = new Conversation(this.#nextId('conv'), now, body['metadata'] ?? {});
    this.append(conversation, items);
    this.#conversations.set(conversation.id, conversation);
    return conversation;
  }

  #whole(conversation: Conversation, method: string, body: Body): object {
    if (method === 'POST') conversation.metadata = body['metadata'] ?? {};
    else if (method === 'DELETE') this.#conversations.delete(conversation.id);
    else if (method !== 'GET') refuseMethod(method);
    return method === 'DELETE' ? { id: conversation.id, object: 'conversation.deleted', deleted: true } : conversation;
  }

  #one(conversation: Conversation, method: string, itemId: string): object {
    const index = conversation.items.findIndex(({ id }) => id === itemId);
    const item = conversation.items[index];
    if (item === undefined) throw new ApiRefusal(`Conversation item with id '${itemId}' not found.`, { status: 404 });
    if (method === 'GET') return item;
    if (method !== 'DELETE') return refuseMethod(method);
    conversation.items.splice(index, 1);
    return conversation;
  }

  #find(id: string): Conversation {
    const found = this.#conversations.get(id);
    if (found === undefined)
      throw new ApiRefusal(`Conversation with id '${id}' not found.`, {
        status: 404,
        param: 'conversation',
        code: 'conversation_not_found',
      });
    return found;
  }

  #checked(items: unknown): readonly object[] {
    if (!Array.isArray(items))
      throw new ApiRefusal("Missing required parameter: 'items'.", {
        param: 'items',
        code: 'missing_required_parameter',
      });
    if (items.length > MOST_ITEMS)
      throw new ApiRefusal(
        `Invalid 'items': array too long. Expected an array with maximum length ${MOST_ITEMS}, but got an array with length ${items.length} instead.`,
        { param: 'items', code: 'array_above_max_length' },
      );
    if (this.#isStrict) checkItems(items, 'items');
    return items as object[];
  }

  /** Never one that a script gives. */
  #nextId(prefix: string): string {
    return `${prefix}_${String(++this.#count).padStart(4, '0')}`;
  }

  /** As the service keeps it: with an id of its own, text as parts. */
  #stored(given: Item): Item {
    const type = typeof given['type'] === 'string' ? given['type'] : 'message';
    const item = structuredClone({ ...given, type });
    const prefix = type === 'message' ? 'msg' : (idPrefixes[type] ?? 'item');
    const id = typeof given.id === 'string' ? given.id : this.#nextId(prefix);
    if (type !== 'message') return { ...item, id };
    const { role, content } = given;
    const part = role === 'assistant' ? { type: 'output_text', annotations: [], logprobs: [] } : { type: 'input_text' };
    return {
      ...item,
      id,
      status: 'completed',
      content: typeof content === 'string' ? [{ ...part, text: content }] : structuredClone(content),
    };
  }
}

function listed({ items }: Conversation, query: RecordedRequest['query']): object {
  const limit = Number(query['limit'] ?? 20);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new ApiRefusal("Invalid 'limit': expected an integer from 1 to 100.", { param: 'limit' });
  const ordered = query['order'] === 'asc' ? items : items.toReversed();
  const { after } = query;
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) throw new ApiRefusal(`Item '${after}' not found.`, { param: 'after' });
  return page(ordered.slice(from, from + limit), ordered.length > from + limit);
}

function page(data: readonly Item[], hasMore: boolean): object {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

function refuseMethod(method: string): never {
  throw new ApiRefusal(`Not allowed to ${method} on this URL.`, { status: 405 });
}
