import { checkSession } from '../agent/session-shape.ts';
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import { pythonJson } from '../base/json-encode.ts';
import { getLogger } from '../base/logger.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { decodeItem, encodeItems } from './codec.ts';
import { contentDigest, hidesItems, partialAppend, supports } from './contract.ts';
import type { HistoryOperation, Session, SessionSettings, VersionedSession } from './contract.ts';
import { Envelopes } from './envelopes.ts';
import type { EncryptionOptions, Seen } from './envelopes.ts';
import { SessionError } from './errors.ts';
import { changeDigest, checkBatch, checkOperation, checkWriteOptions } from './operations.ts';
import { settled } from './settled.ts';
import { readSessionId, resolveLimit } from './settings.ts';

/** What the wrapped session gave, and its version where that was asked for. */
interface Window {
  readonly stored: readonly object[];
  readonly version?: string;
}
type Inner = Session<object>;
type Method = (...args: readonly unknown[]) => Promise<unknown>;

/**
 * Encrypts what another session stores: Fernet with a key per session id, as the Python SDK does it. Items that cannot be
 * read, were changed or are too old are left out of the history. It has the capabilities of the wrapped session, but for
 * compaction: wrap the encrypted session with that.
 *
 * By default items are forgotten 10 minutes after they were written: `ttlMs: null` keeps them.
 *
 * @throws UserError for wrong options, for what is no session, and for sessions that have to see what they store: those that
 *   compact, and conversations of OpenAI
 * @example
 * const session = new EncryptedSession(new SQLiteSession('user-42', 'chat.db'), { encryptionKey: key, ttlMs: null });
 */
export class EncryptedSession<T extends object = AgentInputItem> implements Session<T> {
  readonly session: Inner;
  readonly #envelopes: Envelopes;
  readonly #options: EncryptionOptions;
  /** Ends when every change that was called before has ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(session: Session<object>, options: EncryptionOptions) {
    checkSession(session, 'The session of EncryptedSession');
    checkTakesEnvelopes(session);
    this.session = session;
    this.#envelopes = new Envelopes(options);
    this.#options = options;
    this.#exposeCapabilities();
  }

  get sessionId(): string | undefined {
    return this.session.sessionId;
  }

  get sessionSettings(): SessionSettings | undefined {
    return this.session.sessionSettings;
  }

  set sessionSettings(settings: SessionSettings | undefined) {
    (this.session as { sessionSettings?: SessionSettings | undefined }).sessionSettings = settings;
  }

  async getSessionId(): Promise<string> {
    return await this.#id();
  }

  async getItems(limit?: number, ctx?: RunContext): Promise<T[]> {
    const count = resolveLimit(limit, this.sessionSettings);
    if (count === 0) return (await this.#call('getItems', [0], ctx)) as T[];
    return (await this.#find(count, async (window) => ({ stored: await this.#readStored(window, ctx) }))).items;
  }

  async addItems(items: readonly T[], ctx?: RunContext): Promise<void> {
    const texts = this.#encode(checkBatch(items, 'addItems()'));
    await this.#inOrder(async () => await this.#call('addItems', [await this.#wrap(texts)], ctx));
  }

  /**
   * The newest item that can be read. What is too old or was never encrypted is removed on the way.
   *
   * @throws SessionError when no key opens the newest envelope: it stays where it is
   */
  async popItem(ctx?: RunContext): Promise<T | undefined> {
    return await this.#inOrder(async () => {
      for (;;) {
        const [stored] = await this.#readStored(1, ctx);
        if (stored === undefined) return undefined;
        const [seen] = await this.#envelopes.look([stored], await this.#id());
        if (seen?.kind === 'foreign')
          throw new SessionError(
            'The newest item is encrypted with another key, was changed, or is from the future; nothing was removed. Give its key, or clear the session.',
            { sessionId: this.sessionId },
          );
        const isGone = await this.#remove(stored, ctx);
        if (isGone && seen?.kind === 'item') return seen.item as T;
      }
    });
  }

  async clearSession(ctx?: RunContext): Promise<void> {
    await this.#inOrder(async () => await this.#call('clearSession', [], ctx));
  }

  /** @internal Envelopes of other keys, and what was never encrypted. */
  async [hidesItems](ctx: RunContext | undefined): Promise<boolean> {
    await this.#last;
    const stored = await this.#readStored(Number.MAX_SAFE_INTEGER, ctx);
    return (await this.#envelopes.look(stored, await this.#id())).some(stays);
  }

  // ---- the capabilities of the wrapped session, and no others (SESS-038)

  #exposeCapabilities(): void {
    const inner: Inner = this.session;
    const expose = (name: string, value: unknown): void => {
      Object.defineProperty(this, name, { value, configurable: true });
    };
    if (supports(inner, 'transactions')) expose('applyHistoryTransaction', this.#applyHistoryTransaction.bind(this));
    if (supports(inner, 'versions')) {
      expose('readHistory', this.#readHistory.bind(this));
      expose('appendIfVersion', this.#appendIfVersion.bind(this));
      expose('replaceHistory', this.#replaceHistory.bind(this));
    }
    if (supports(inner, 'runContext')) expose('acceptsRunContext', true);
    if (supports(inner, 'itemPolicy')) {
      for (const name of POLICY) if (inner[name] !== undefined) expose(name, forward(inner, name));
    }
    // In their turn: what was called before still has to be encrypted, what comes after finds the session closed.
    for (const name of ['ping', 'close', Symbol.asyncDispose] as const) {
      const method = forward(inner, name);
      if (typeof method !== 'function') continue;
      const value = async (): Promise<unknown> => await this.#inOrder(async () => await (method as Method)());
      Object.defineProperty(this, name, { value, configurable: true });
    }
    if ('closed' in inner) Object.defineProperty(this, 'closed', { get: () => (inner as { closed: unknown }).closed });
  }

  async #applyHistoryTransaction(operation: HistoryOperation<T>, ctx?: RunContext): Promise<void> {
    const { operationId, transaction, digest } = checkOperation(operation);
    const plain = digest ?? changeDigest(transaction);
    const apply = async (changed: HistoryOperation<object>['transaction']): Promise<void> => {
      const given: HistoryOperation<object> = { operationId, transaction: changed, [contentDigest]: plain };
      await this.#capability('applyHistoryTransaction')(given, ctx);
    };
    if (transaction.type === 'append_items') {
      const texts = this.#encode(transaction.items);
      await this.#inOrder(async () => await apply({ type: 'append_items', items: await this.#wrap(texts) }));
      return;
    }
    const expected = this.#encode(transaction.expectedSuffix);
    const texts = this.#encode(transaction.replacement);
    await this.#inOrder(async () => {
      const found = await this.#findSuffix(expected, ctx);
      const replacement = await this.#wrap(texts);
      await apply({
        type: 'replace_suffix',
        // Not found: it may have been replaced by this very operation, which the wrapped session knows. No stored envelope
        // is equal to a new one.
        expectedSuffix: found?.suffix ?? (await this.#wrap(expected)),
        replacement: [...(found?.kept ?? []), ...replacement],
      });
    });
  }

  async #readHistory(limit?: number, ctx?: RunContext): Promise<{ items: T[]; version: string }> {
    const count = resolveLimit(limit, this.sessionSettings);
    const read = async (window: number | undefined): Promise<Window> => {
      const history = (await this.#capability('readHistory')(window, ctx)) as { items: object[]; version: string };
      return { stored: history.items, version: history.version };
    };
    if (count === 0) return { items: [], version: (await read(0)).version ?? '' };
    const { items, version = '' } = await this.#find(count, read);
    return { items, version };
  }

  async #appendIfVersion(
    version: string,
    items: readonly T[],
    options?: { operationId?: string },
    ctx?: RunContext,
  ): Promise<string> {
    checkWriteOptions({ version }, ['version'], 'appendIfVersion()');
    checkWriteOptions(options, ['operationId'], 'appendIfVersion()');
    const texts = this.#encode(checkBatch(items, 'appendIfVersion()'));
    const given = withDigest(options, () => changeDigest({ type: 'append_items', items }));
    return await this.#inOrder(
      async () => (await this.#capability('appendIfVersion')(version, await this.#wrap(texts), given, ctx)) as string,
    );
  }

  async #replaceHistory(
    items: readonly T[],
    options?: Parameters<VersionedSession['replaceHistory']>[1],
    ctx?: RunContext,
  ): Promise<string> {
    checkWriteOptions(options, ['ifVersion', 'operationId'], 'replaceHistory()');
    const texts = this.#encode(checkBatch(items, 'replaceHistory()'));
    const given = withDigest(options, () => changeDigest({ type: 'replace_history', items }));
    return await this.#inOrder(
      async () => (await this.#capability('replaceHistory')(await this.#wrap(texts), given, ctx)) as string,
    );
  }

  // ---- reading

  /** Windows of the wrapped session, each twice the last, until enough of what they hold can be read (SESS-285). */
  async #find(
    count: number | undefined,
    read: (window: number | undefined) => Promise<Window>,
  ): Promise<{ items: T[]; version: string | undefined }> {
    await this.#last;
    let left = this.#options.maxScanItems ?? Number.MAX_SAFE_INTEGER;
    let window = this.#options.maxScanItems === undefined ? count : Math.min(count ?? left, left);
    for (;;) {
      const { stored, version } = await read(window);
      const seen = await this.#envelopes.look(stored, await this.#id());
      const items = seen.flatMap((one) => (one.kind === 'item' ? [one.item as T] : []));
      const isEnough = count !== undefined && items.length >= count;
      if (isEnough || window === undefined || stored.length < window) {
        if (seen.length > items.length) this.#tellSkipped(seen.length - items.length);
        return { items: count === undefined ? items : items.slice(Math.max(0, items.length - count)), version };
      }
      left -= window;
      const next = Math.min(2 * window, left);
      if (next <= window)
        throw new SessionError(
          `Reading stopped at the limit of stored items (option 'maxScanItems'): too many of the newest ones cannot be read. Raise it, or take them away.`,
          { sessionId: this.sessionId },
        );
      window = next;
    }
  }

  /**
   * The stored tail that holds these items, and what of it stays: envelopes that nobody here can read. What is too old goes
   * with it, and also where nothing else comes before it: at the head of the history.
   */
  async #findSuffix(
    expected: readonly string[],
    ctx: RunContext | undefined,
  ): Promise<{ suffix: readonly object[]; kept: readonly object[] } | undefined> {
    if (expected.length === 0) return { suffix: [], kept: [] };
    for (let window = expected.length; ; window = Math.max(2 * window, 16)) {
      const stored = await this.#readStored(window, ctx);
      const seen = await this.#envelopes.look(stored, await this.#id());
      const from = suffixStart(seen, expected);
      if (from === undefined) return undefined;
      const isAll = stored.length < window;
      const isOldBefore = seen.slice(0, Math.max(0, from)).every(({ kind }) => kind === 'expired');
      if (from >= 0 && (isAll || !isOldBefore)) {
        const start = isOldBefore ? 0 : from;
        const kept = stored.slice(start).filter((_, index) => stays(seen[start + index]));
        return { suffix: stored.slice(start), kept };
      }
      if (isAll) return undefined;
    }
  }

  #tellSkipped(count: number): void {
    getLogger('session').debug('Stored items that are too old, or cannot be read, were left out of a history.', {
      sessionId: this.sessionId,
      count,
    });
  }

  async #readStored(window: number | undefined, ctx: RunContext | undefined): Promise<readonly object[]> {
    return (await this.#call('getItems', window === undefined ? [] : [window], ctx)) as readonly object[];
  }

  // ---- changing

  /** Takes away exactly this newest item. False: others changed the history meanwhile, and it is looked at again. */
  async #remove(stored: object, ctx: RunContext | undefined): Promise<boolean> {
    if (supports(this.session, 'transactions')) {
      const transaction = { type: 'replace_suffix', expectedSuffix: [stored], replacement: [] } as const;
      const operation = { operationId: `pop-${randomHex(16)}`, transaction };
      try {
        await settled(async () => await this.#capability('applyHistoryTransaction')(operation, ctx));
        return true;
      } catch (error) {
        if ((error as { code?: unknown }).code === 'session_suffix_mismatch') return false;
        throw error;
      }
    }
    const popped = (await this.#call('popItem', [], ctx)) as object | undefined;
    if (popped === undefined || pythonJson(popped) === pythonJson(stored)) return popped !== undefined;
    // Another writer slipped in between; what it wrote goes back.
    await this.#call('addItems', [[popped]], ctx);
    return false;
  }

  async #wrap(texts: readonly string[]): Promise<object[]> {
    return await this.#envelopes.wrap(texts, await this.#id());
  }

  #encode(items: readonly object[]): string[] {
    return encodeItems(items, this.sessionId, { ascii: false });
  }

  async #id(): Promise<string> {
    const id = await readSessionId(this.session as unknown as Session);
    if (id === undefined) throw new SessionError('The wrapped session has no id, which the key is derived from.');
    return id;
  }

  /** After everything that was called before; a failed call does not hold up the next one. */
  #inOrder<R>(work: () => Promise<R>): Promise<R> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** One of the four methods, with the context only where it is wanted (SESS-032). */
  async #call(
    name: 'getItems' | 'addItems' | 'popItem' | 'clearSession',
    args: readonly unknown[],
    ctx: RunContext | undefined,
  ): Promise<unknown> {
    const method = (this.session[name] as Method).bind(this.session);
    if (!supports(this.session, 'runContext')) return await method(...args);
    const given = name === 'getItems' && args.length === 0 ? [undefined] : args;
    return await method(...given, ctx);
  }

  #capability(name: 'applyHistoryTransaction' | 'readHistory' | 'appendIfVersion' | 'replaceHistory'): Method {
    const inner = this.session as unknown as Record<string, Method>;
    return async (...args) => await inner[name]?.(...args);
  }
}

const POLICY = [
  'normalizeForComparison',
  'prepareHistoryItemForModelInput',
  'prepareItemsForPersistence',
  'preserveReasoningItemIds',
] as const;

/** Wrapped in the wrong order nothing would be compacted, or stored, and nobody would be told why. */
function checkTakesEnvelopes(session: Inner): void {
  if (supports(session, 'compaction'))
    throw new UserError(
      'EncryptedSession cannot wrap a session that compacts: it would see nothing but encrypted items. Wrap the encrypted session with it: new OpenAICompactionSession(new EncryptedSession(session, …)).',
    );
  if (partialAppend in session)
    throw new UserError(
      'EncryptedSession cannot wrap a conversation that OpenAI keeps: the service takes no encrypted items. Wrap another session.',
    );
}

function forward(inner: object, name: string | symbol): unknown {
  const value: unknown = (inner as Record<string | symbol, unknown>)[name];
  return typeof value === 'function' ? (value as Method).bind(inner) : value;
}

/** Other keys than those of the same items, and their texts, are known by the digest of the plain items. */
function withDigest<O extends { operationId?: string }>(options: O | undefined, digest: () => string): O | undefined {
  if (options?.operationId === undefined) return options;
  return { ...options, [contentDigest]: (options as { [contentDigest]?: string })[contentDigest] ?? digest() };
}

/** Where in the tail the expected items begin. -1: more of it has to be seen. `undefined`: the newest readable ones are others. */
function suffixStart(seen: readonly Seen[], expected: readonly string[]): number | undefined {
  let wanted = expected.length - 1;
  for (let index = seen.length - 1; index >= 0; index--) {
    const one = seen[index];
    if (one?.kind !== 'item') continue;
    if (pythonJson(one.item) !== pythonJson(decodeItem<object>(expected[wanted] ?? ''))) return undefined;
    if (wanted === 0) return index;
    wanted--;
  }
  return -1;
}

function stays(seen: Seen | undefined): boolean {
  return seen?.kind === 'foreign' || seen?.kind === 'plain';
}
