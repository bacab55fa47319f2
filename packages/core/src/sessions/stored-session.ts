/// <reference lib="esnext.disposable" />
import type { MaybePromise } from '../agent/tool.ts';
import { getLogger } from '../base/logger.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import type { AgentInputItem } from '../items/items.ts';
import { bounded, boundMs, OutOfTime } from './bounded.ts';
import { encodeItems } from './codec.ts';
import { contentDigest } from './contract.ts';
import type { HistoryOperation, ManagedSession, SessionOptions, SessionSettings } from './contract.ts';
import { decodeAll, decodeRecord } from './decode.ts';
import { SessionClosedError, SessionError, SessionOutcomeUnknownError } from './errors.ts';
import type {
  HistoryBackend,
  HistoryOperationKey,
  HistoryWrite,
  StoredHistory,
  StoredRecord,
} from './history-backend.ts';
import { changeDigest, checkBatch, checkOperation, checkWriteOptions } from './operations.ts';
import type { HistoryChange } from './operations.ts';
import { checkSessionId, checkSessionSettings, resolveLimit } from './settings.ts';
import { checkBackend, checkOpen, checkSetup } from './setup.ts';
import { StoreLife } from './store-life.ts';

/** Checks of `SessionOptions`, for the options of a backend. */
export const sessionOptionChecks: Readonly<Record<keyof SessionOptions, Check>> = {
  sessionSettings: kinds.object,
  operationTimeoutMs: boundMs,
  corruptItems: kinds.oneOf('skip', 'throw'),
  onCorruptItem: kinds.function,
};

/** How a backend's session differs from others, beside its backend. */
export interface StoredSessionSetup {
  /** Of the options, for messages: `RedisSession`. */
  readonly name: string;
  readonly options?: SessionOptions | undefined;
  /** Of the stored texts. Default compact, non-ASCII escaped. */
  readonly encoding?: { readonly style?: 'compact' | 'spaced'; readonly ascii?: boolean } | undefined;
  /** Default of `operationTimeoutMs`; `undefined`: calls are not bounded. */
  readonly timeoutMs?: number | undefined;
}

/** Of a `HistoryBackend`. */
const METHODS = ['read', 'write', 'pop', 'clear'] as const;
const OPTIONAL = ['ping', 'close', 'outcomeUnknown'] as const;

type ChangeKind = 'append' | 'replace' | 'pop' | 'clear';

const ended = (): void => undefined;

/** A session of a store ends with the store. */
export const joinStore: unique symbol = Symbol('joinStore');

/**
 * A session over a `HistoryBackend`: what all backends do in the same way. It checks arguments before anything is sent,
 * encodes within the call, keeps changes in their order, finds enough valid records, reports corrupt ones, bounds calls
 * in time and tells unknown outcomes from failures.
 *
 * @param open makes the backend, after the id and the options were found good
 * @throws UserError `session_id_invalid`, and for `SessionOptions`, a set-up or a backend of a wrong kind
 * @example
 * class MySession extends StoredSession {
 *   constructor(sessionId: string, options: SessionOptions & { table: MyTable }) {
 *     const { table, ...rest } = options;
 *     super(sessionId, (id) => new MyHistory(table, id), { name: 'MySession', options: rest });
 *   }
 * }
 */
export class StoredSession<T extends object = AgentInputItem> implements ManagedSession<T> {
  readonly sessionId: string;
  readonly sessionSettings: SessionSettings | undefined;
  readonly #backend: HistoryBackend;
  readonly #setup: StoredSessionSetup;
  readonly #timeoutMs: number | undefined;
  #closed = false;
  #closing: Promise<void> | undefined;
  /** Of a session that lets go of its client: what was called before is waited for. */
  readonly #own: StoreLife | undefined;
  /** Of the store that it is of. */
  #life: StoreLife | undefined;
  /** Ends when every change that was called before has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #warned = false;

  constructor(sessionId: string, open: (sessionId: string) => HistoryBackend, setup: StoredSessionSetup) {
    checkSessionId(sessionId);
    checkSetup(setup, 'StoredSession', ['name', 'options', 'encoding', 'timeoutMs']);
    const { options = {}, name, timeoutMs } = setup;
    checkOpen(open, name);
    checkOptions(options, sessionOptionChecks, name);
    checkSessionSettings(options.sessionSettings, `'sessionSettings' of ${name}`);
    this.sessionId = sessionId;
    this.sessionSettings = options.sessionSettings;
    this.#setup = setup;
    this.#timeoutMs = options.operationTimeoutMs ?? timeoutMs;
    this.#backend = open(sessionId);
    checkBackend(this.#backend, `HistoryBackend of ${name}`, METHODS, OPTIONAL);
    if (this.#backend.close !== undefined) this.#own = new StoreLife();
  }

  /** By `close()`, or with the store that the session is of. */
  get closed(): boolean {
    return this.#closed || this.#life?.closed === true;
  }

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  async getItems(limit?: number): Promise<T[]> {
    const count = resolveLimit(limit, this.sessionSettings);
    this.#checkOpen();
    return count === 0 ? [] : (await this.#read(count)).items;
  }

  async addItems(items: readonly T[]): Promise<void> {
    this.#checkOpen();
    const texts = this.#encode(checkBatch(items, 'addItems()'));
    if (texts.length > 0) await this.#write({ type: 'append', texts });
  }

  async popItem(): Promise<T | undefined> {
    this.#checkOpen();
    const skipped: StoredRecord[] = [];
    try {
      return await this.#change('pop', undefined, async () => {
        for (;;) {
          const record = await this.#backend.pop();
          if (record === undefined) return undefined;
          const item = decodeRecord<T>(record);
          if (item !== undefined) return item;
          skipped.push(record);
        }
      });
    } finally {
      for (const record of skipped) this.#report(record);
    }
  }

  async clearSession(): Promise<void> {
    this.#checkOpen();
    await this.#change('clear', undefined, () => this.#backend.clear());
  }

  async applyHistoryTransaction(operation: HistoryOperation<T>): Promise<void> {
    this.#checkOpen();
    const { operationId, transaction, digest } = checkOperation(operation);
    const key = (): HistoryOperationKey => ({ id: operationId, digest: digest ?? changeDigest(transaction) });
    if (transaction.type === 'append_items') {
      const texts = this.#encode(transaction.items);
      await this.#write({ type: 'append', texts, operation: key() });
      return;
    }
    const expected = this.#encode(transaction.expectedSuffix);
    const texts = this.#encode(transaction.replacement);
    await this.#write({ type: 'replace_suffix', expected, texts, operation: key() });
  }

  async readHistory(limit?: number): Promise<{ items: T[]; version: string }> {
    const count = resolveLimit(limit, this.sessionSettings);
    this.#checkOpen();
    return await this.#read(count);
  }

  async appendIfVersion(version: string, items: readonly T[], options?: { operationId?: string }): Promise<string> {
    this.#checkOpen();
    checkWriteOptions({ version }, ['version'], 'appendIfVersion()');
    checkWriteOptions(options, ['operationId'], 'appendIfVersion()');
    const texts = this.#encode(checkBatch(items, 'appendIfVersion()'));
    const operation = keyOf({ type: 'append_items', items }, options);
    return await this.#write({ type: 'append', texts, ifVersion: version, operation });
  }

  async replaceHistory(items: readonly T[], options?: { ifVersion?: string; operationId?: string }): Promise<string> {
    this.#checkOpen();
    checkWriteOptions(options, ['ifVersion', 'operationId'], 'replaceHistory()');
    const texts = this.#encode(checkBatch(items, 'replaceHistory()'));
    const operation = keyOf({ type: 'replace_history', items }, options);
    return await this.#write({ type: 'replace', texts, ifVersion: options?.ifVersion, operation });
  }

  async ping(): Promise<boolean> {
    this.#checkOpen();
    try {
      await this.#tracked(this.#bounded(() => (this.#backend.ping ? this.#backend.ping() : this.#backend.read(0))));
      return true;
    } catch {
      return false;
    }
  }

  /** Final from its first call; what was called before still ends, reads too. Does nothing for a client that was handed in. */
  async close(): Promise<void> {
    if (this.#own === undefined) return;
    this.#closed = true;
    this.#closing ??= this.#own.end().then(() => this.#backend.close?.());
    try {
      await this.#closing;
    } catch (error) {
      // Still closed; the next call tries again to let go of the client.
      this.#closing = undefined;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * For what a backend's session can do beside: runs after every change that was called before, and before those that are
   * called after it; bounded in time as they are.
   *
   * @throws SessionClosedError
   */
  protected async inOrder<R>(work: () => Promise<R>): Promise<R> {
    this.#checkOpen();
    const result = this.#tracked(this.#last.then(async () => await this.#bounded(work)));
    this.#last = result.catch(() => undefined);
    return await result;
  }

  /** For another object of the same conversation: it ends with the store that this one is of. */
  protected inSameStore<S extends StoredSession<T>>(session: S): S {
    if (this.#life !== undefined) session[joinStore](this.#life);
    return session;
  }

  /** @internal */
  [joinStore](life: StoreLife): void {
    this.#life = life;
  }

  // ---- reading

  /** The newest `count` valid items. Corrupt records do not count: the window grows until there are enough valid ones. */
  #read(count: number | undefined): Promise<{ items: T[]; version: string }> {
    return this.#tracked(this.#readNewest(count));
  }

  async #readNewest(count: number | undefined): Promise<{ items: T[]; version: string }> {
    await this.#last;
    let window = count;
    for (;;) {
      const { records, version }: StoredHistory = await this.#bounded(() => this.#backend.read(window));
      const { items, corrupt } = await decodeAll<T>(records);
      if (window !== undefined && count !== undefined && items.length < count && records.length >= window) {
        window = Math.max(2 * window, 16);
        continue;
      }
      const newest = corrupt.at(-1);
      if (newest && this.#setup.options?.corruptItems === 'throw') throw corruptError(this.sessionId, newest);
      for (const record of corrupt.toReversed()) this.#report(record);
      return { items: count === undefined ? items : items.slice(Math.max(0, items.length - count)), version };
    }
  }

  // ---- changing

  #write(change: HistoryWrite): Promise<string> {
    const operation = change.type === 'append' ? 'append' : 'replace';
    return this.#change(operation, change.operation?.id, () => this.#backend.write(change));
  }

  /** After everything that was called before. */
  #change<R>(operation: ChangeKind, operationId: string | undefined, work: () => MaybePromise<R>): Promise<R> {
    const result = this.#last.then(async () => {
      try {
        return await (this.#timeoutMs === undefined ? work() : this.#bounded(work));
      } catch (error) {
        throw this.#classified(error, operation, operationId);
      }
    });
    // A failed call does not hold up the next one.
    this.#last = result.then(ended, ended);
    return this.#tracked(result);
  }

  /** A failure, or an outcome that nobody knows. */
  #classified(error: unknown, operation: ChangeKind, operationId: string | undefined): unknown {
    if (!(error instanceof OutOfTime || this.#backend.outcomeUnknown?.(error) === true)) return error;
    const remedy = operationId === undefined ? 'Read the history to see.' : 'Repeat it with the same operation id.';
    return new SessionOutcomeUnknownError(
      `The ${operation} may have been stored although its answer did not arrive. ${remedy}`,
      { sessionId: this.sessionId, operation, operationId, cause: error },
    );
  }

  async #bounded<R>(work: () => R | Promise<R>): Promise<R> {
    return await bounded(this.#timeoutMs, this.sessionId, work);
  }

  #encode(items: readonly object[]): string[] {
    return encodeItems(items, this.sessionId, this.#setup.encoding);
  }

  /** Whoever closes, the session or its store, waits for it. */
  #tracked<R>(call: Promise<R>): Promise<R> {
    void this.#own?.track(call);
    return this.#life?.track(call) ?? call;
  }

  #checkOpen(): void {
    if (this.closed)
      throw new SessionClosedError('The session, or its store, was closed.', { sessionId: this.sessionId });
  }

  #report({ text, position }: StoredRecord): void {
    const onCorruptItem = this.#setup.options?.onCorruptItem;
    const reason = text === undefined ? 'not text' : 'not the JSON text of an object';
    const info = { sessionId: this.sessionId, position, reason };
    if (onCorruptItem !== undefined) {
      const failed = (): void => getLogger('session').warn('onCorruptItem failed; the record is skipped all the same.');
      // What a popped item is, or what was read, is settled: nobody waits for the callback, and its failure is its own.
      try {
        const answer: unknown = onCorruptItem(info);
        Promise.resolve(answer).catch(failed);
      } catch {
        failed();
      }
    } else if (!this.#warned) {
      this.#warned = true;
      getLogger('session').warn(
        'A stored record cannot be decoded and is skipped; further ones of this session are skipped in silence.',
        info,
      );
    }
  }
}

/** A wrapper that changes bytes gives the digest of the plain items, here too (SESS-036). */
function keyOf(
  change: HistoryChange,
  options: { readonly operationId?: string; readonly [contentDigest]?: string } | undefined,
): HistoryOperationKey | undefined {
  const id = options?.operationId;
  return id === undefined ? undefined : { id, digest: options?.[contentDigest] ?? changeDigest(change) };
}

function corruptError(sessionId: string, { position }: StoredRecord): SessionError {
  return new SessionError(
    `The record at position ${position} is not the JSON text of an object. Repair or delete it, or read with corruptItems: 'skip'.`,
    { sessionId },
  );
}
