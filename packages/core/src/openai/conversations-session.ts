import type { OpenAI } from 'openai';
import { checkOptions, kinds } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { decodeItem, encodeItems } from '../sessions/codec.ts';
import { partialAppend } from '../sessions/contract.ts';
import type { ItemPolicySession, SessionSettings } from '../sessions/contract.ts';
import { SessionError, SessionOutcomeUnknownError } from '../sessions/errors.ts';
import { checkBatch } from '../sessions/operations.ts';
import { checkSessionId, checkSessionSettings, resolveLimit } from '../sessions/settings.ts';
import { checkClient, makeClient, once } from './client.ts';
import type { ClientSource } from './client.ts';
import { idOf, itemForComparison, itemForModel, itemsForConversation } from './conversation-items.ts';
import { defaultApiKey, defaultClient } from './defaults.ts';

/** The most items that the service takes, or gives, at once. */
const CHUNK = 20;
const PAGE = 100;

type Items = Parameters<OpenAI['conversations']['items']['create']>[1]['items'];

/** An append of several chunks that broke off. */
interface Partial {
  /** All of the batch, as text. */
  readonly texts: readonly string[];
  /** Given by the service, of the chunks that it acknowledged. */
  readonly ids: readonly string[];
}

/**
 * A conversation kept by OpenAI, made on first need: `sessionId` is `undefined` until then. Clearing deletes it, and the
 * next use makes another one, with another id. An append of more than 20 items is sent in several requests: where one of
 * them fails, what was acknowledged stays (`session_outcome_unknown`).
 *
 * @param conversationId of a conversation that is there already
 * @throws UserError `session_id_invalid`, and for options of a wrong kind
 * @example
 * const session = new OpenAIConversationsSession();
 * await run(agent, 'My name is Ada.', { session });
 * console.log(await session.getSessionId()); // → conv_…
 */
export class OpenAIConversationsSession implements ItemPolicySession {
  readonly sessionSettings: SessionSettings | undefined;
  readonly preserveReasoningItemIds = true;
  readonly #client: ClientSource;
  #id: string | undefined;
  #creating: Promise<string> | undefined;
  /** Ends when everything that was called before has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #partial: Partial | undefined;

  constructor(
    conversationId?: string,
    options: { client?: OpenAI | undefined; sessionSettings?: SessionSettings | undefined } = {},
  ) {
    checkOptions(options, { client: checkClient, sessionSettings: kinds.object }, 'OpenAIConversationsSession');
    checkSessionSettings(options.sessionSettings, "'sessionSettings' of OpenAIConversationsSession");
    if (conversationId !== undefined) checkSessionId(conversationId);
    const { client } = options;
    this.#id = conversationId;
    this.#client = once(() => client ?? defaultClient() ?? makeClient({ apiKey: defaultApiKey() }));
    this.sessionSettings = options.sessionSettings;
    const goOn = (items: readonly AgentInputItem[]): Promise<boolean> => this.#goOn(items);
    Object.defineProperty(this, partialAppend, { value: goOn });
  }

  get sessionId(): string | undefined {
    return this.#id;
  }

  /** Makes the conversation if there is none yet; callers at the same time share one. */
  async getSessionId(): Promise<string> {
    if (this.#id !== undefined) return this.#id;
    this.#creating ??= this.#create();
    return await this.#creating;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    const count = resolveLimit(limit, this.sessionSettings);
    return count === 0 ? [] : await this.#next(() => this.#read(count));
  }

  async addItems(items: readonly AgentInputItem[]): Promise<void> {
    const texts = this.#encode(items);
    if (texts.length > 0) await this.#next(() => this.#append(texts, []));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    return await this.#next(async () => {
      const [newest] = await this.#read(1);
      if (newest === undefined) return undefined;
      const id = idOf(newest);
      if (id === undefined)
        throw new SessionError('The newest item of the conversation has no id, so it cannot be deleted.', {
          sessionId: this.#id,
        });
      await this.#client().conversations.items.delete(id, { conversation_id: await this.getSessionId() });
      return newest;
    });
  }

  /** Deletes the conversation. Where that fails, the id stays. */
  async clearSession(): Promise<void> {
    await this.#next(async () => {
      const id = this.#id ?? (await this.#creating);
      if (id === undefined) return;
      await this.#client().conversations.delete(id);
      this.#id = undefined;
      this.#partial = undefined;
    });
  }

  prepareItemsForPersistence(items: readonly AgentInputItem[]): AgentInputItem[] {
    return itemsForConversation(items);
  }

  prepareHistoryItemForModelInput(item: AgentInputItem): AgentInputItem {
    return itemForModel(item);
  }

  normalizeForComparison(item: AgentInputItem): AgentInputItem {
    return itemForComparison(item);
  }

  /** Goes on with an append that broke off, if this very object began it and nobody wrote since (SESS-303). */
  async #goOn(items: readonly AgentInputItem[]): Promise<boolean> {
    const texts = this.#encode(items);
    return await this.#next(async () => {
      const partial = this.#partial;
      if (partial === undefined || partial.ids.length === 0 || !same(partial.texts, texts)) return false;
      const tail = await this.#read(partial.ids.length);
      if (!same(tail.map(idOf), partial.ids)) return false;
      await this.#append(texts, partial.ids);
      return true;
    });
  }

  async #create(): Promise<string> {
    try {
      return (this.#id = (await this.#client().conversations.create({})).id);
    } finally {
      // A failure is not kept: the next call tries again.
      this.#creating = undefined;
    }
  }

  /** Pages of the service, oldest first. */
  async #read(count: number | undefined): Promise<AgentInputItem[]> {
    const id = await this.getSessionId();
    const query = {
      order: count === undefined ? ('asc' as const) : ('desc' as const),
      limit: Math.min(count ?? PAGE, PAGE),
    };
    const items: AgentInputItem[] = [];
    for await (const item of this.#client().conversations.items.list(id, query)) {
      items.push(item as unknown as AgentInputItem);
      if (items.length === count) break;
    }
    return count === undefined ? items : items.toReversed();
  }

  /** @param acknowledged ids of items of the batch that are stored already */
  async #append(texts: readonly string[], acknowledged: readonly string[]): Promise<void> {
    const id = await this.getSessionId();
    const { items } = this.#client().conversations;
    const ids = [...acknowledged];
    this.#partial = undefined;
    // A request that the client repeats by itself could be stored twice.
    const options = texts.length > CHUNK ? { maxRetries: 0 } : undefined;
    for (let from = ids.length; from < texts.length; from += CHUNK) {
      const chunk = texts.slice(from, from + CHUNK).map((text) => decodeItem(text)) as unknown as Items;
      try {
        const { data } = await items.create(id, { items: chunk }, options);
        ids.push(...data.flatMap((item) => idOf(item) ?? []));
      } catch (error) {
        if (from === 0 && isAnswer(error)) throw error;
        this.#partial = { texts, ids };
        throw new SessionOutcomeUnknownError(
          from === 0
            ? 'The items may have been stored although the answer did not arrive.'
            : `The first ${from} of ${texts.length} items were stored, what became of the next ones is not known.`,
          { sessionId: id, operation: 'append', cause: error },
        );
      }
    }
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    // A failed call does not hold up the next one.
    this.#last = result.catch(() => undefined);
    return result;
  }

  #encode(items: readonly AgentInputItem[]): string[] {
    const checked = checkBatch(items, 'addItems()');
    // First as given: what is no item is refused, whatever would be left out of it.
    encodeItems(checked, this.#id, { ascii: false });
    return encodeItems(itemsForConversation(checked), this.#id, { ascii: false });
  }
}

/** The service refused the request, so it was not stored. */
function isAnswer(error: unknown): boolean {
  return typeof (error as { status?: unknown } | null | undefined)?.status === 'number';
}

function same(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
