/// <reference lib="esnext.disposable" />
import { UserError } from '../base/errors.ts';
import { isPlainObject } from '../base/json.ts';
import { encodeJson, JsonEncodeError } from '../base/json-encode.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { decodeItem, encodeItems } from './codec.ts';
import type { ManagedSession, Session, SessionSettings } from './contract.ts';
import { decodeRecord } from './decode.ts';
import { SessionClosedError, SessionError, SessionVersionConflictError } from './errors.ts';
import { checkSessionId, checkSessionSettings } from './settings.ts';
import { noSuchSession, sessionExists } from './store-backend.ts';
import type { SessionStoreBackend, StagedHistory } from './store-backend.ts';
import { exportLines, importItems } from './store-lines.ts';
import { pruneSessions } from './store-prune.ts';
import type { PruneOptions } from './store-prune.ts';
import { listPage, readQuery } from './store-query.ts';
import { isEnvelope, turnsOf, wholePairs } from './store-turns.ts';
import type { SessionInfo, SessionQuery, SessionStore } from './store.ts';

/** How a backend's store differs from others, beside its backend. */
export interface StoredSessionStoreSetup {
  /** Of the class, for messages: `RedisSessionStore`. */
  readonly name: string;
  /** Of the stored texts, as the sessions have it. Default compact, non-ASCII escaped. */
  readonly encoding?: { readonly style?: 'compact' | 'spaced'; readonly ascii?: boolean } | undefined;
}

/** Items of an import that are staged at once. */
const BATCH = 500;

/**
 * A store of sessions over a `SessionStoreBackend`: what all stores do in the same way. It checks arguments before anything
 * is sent, binds cursors to their query, cuts histories at turns, keeps pairs whole, reads and writes exports.
 *
 * @example
 * class MySessionStore extends StoredSessionStore<MySession> {
 *   constructor(options: { table: MyTable }) {
 *     super(new MyStore(options.table), { name: 'MySessionStore' });
 *   }
 * }
 */
export class StoredSessionStore<S extends Session = ManagedSession> implements SessionStore<S> {
  readonly #backend: SessionStoreBackend<S>;
  readonly #setup: StoredSessionStoreSetup;
  #closed = false;
  #closing: Promise<void> | undefined;

  constructor(backend: SessionStoreBackend<S>, setup: StoredSessionStoreSetup) {
    this.#backend = backend;
    this.#setup = setup;
  }

  session(sessionId: string, options?: { sessionSettings?: SessionSettings }): S {
    checkSessionId(sessionId);
    checkOptions(options, { sessionSettings: kinds.object }, `${this.#setup.name}.session()`);
    checkSessionSettings(options?.sessionSettings, `'sessionSettings' of ${this.#setup.name}.session()`);
    this.#checkOpen();
    return this.#backend.session(sessionId, options ?? {});
  }

  async list(query?: SessionQuery): Promise<{ sessions: SessionInfo[]; cursor?: string }> {
    const page = readQuery(query, `${this.#setup.name}.list()`);
    this.#checkOpen();
    return await listPage(page, (part) => this.#backend.list(part));
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    checkSessionId(sessionId);
    this.#checkOpen();
    return await this.#backend.get(sessionId);
  }

  async delete(sessionId: string): Promise<boolean> {
    checkSessionId(sessionId);
    this.#checkOpen();
    return (await this.#backend.remove([sessionId])).sessions > 0;
  }

  async fork(from: string, to: string, options?: { untilTurn?: number }): Promise<S> {
    checkSessionId(from);
    checkSessionId(to);
    checkOptions(options, { untilTurn: kinds.integer(1) }, `${this.#setup.name}.fork()`);
    if (from === to) throw new UserError(`${this.#setup.name}.fork() needs two session ids.`);
    this.#checkOpen();
    const { records } = await this.#backend.history(from).read(undefined);
    if (records.length === 0 && (await this.#backend.get(from)) === undefined) throw noSuchSession(from);
    const texts = forkedTexts(from, records, options?.untilTurn);
    await this.#stage(to, async (staged) => {
      await staged.append(texts);
      await staged.publish('create');
    });
    return this.#backend.session(to, {});
  }

  async setMetadata(sessionId: string, patch: Record<string, unknown>): Promise<void> {
    checkSessionId(sessionId);
    const copy = metadataOf(patch, `${this.#setup.name}.setMetadata()`);
    this.#checkOpen();
    await this.#backend.setMetadata(sessionId, copy);
  }

  async prune(options: PruneOptions): Promise<{ sessions: number; items: number }> {
    this.#checkOpen();
    return await pruneSessions(this.#backend, options, `${this.#setup.name}.prune()`);
  }

  export(sessionId: string): AsyncIterable<string> {
    checkSessionId(sessionId);
    this.#checkOpen();
    return this.#export(sessionId);
  }

  async import(
    sessionId: string,
    lines: AsyncIterable<string>,
    options?: { ifExists?: 'fail' | 'append' | 'replace' },
  ): Promise<number> {
    checkSessionId(sessionId);
    checkOptions(options, { ifExists: kinds.oneOf('fail', 'append', 'replace') }, `${this.#setup.name}.import()`);
    if (typeof (lines as Partial<AsyncIterable<string>> | undefined)?.[Symbol.asyncIterator] !== 'function')
      throw new UserError(`${this.#setup.name}.import() takes lines as an AsyncIterable of strings.`);
    this.#checkOpen();
    const { ifExists = 'fail' } = options ?? {};
    // Looked at again when it becomes visible; now, so that nobody has to read a long file to hear it.
    if (ifExists === 'fail' && (await this.#backend.get(sessionId)) !== undefined) throw sessionExists(sessionId);
    return await this.#stage(sessionId, async (staged) => {
      let count = 0;
      let batch: object[] = [];
      const flush = async (): Promise<void> => {
        await staged.append(encodeItems(batch, sessionId, this.#setup.encoding));
        count += batch.length;
        batch = [];
      };
      for await (const item of importItems(sessionId, lines)) if (batch.push(item) === BATCH) await flush();
      await flush();
      await staged.publish(ifExists === 'fail' ? 'create' : ifExists);
      return count;
    });
  }

  async check(): Promise<string[]> {
    this.#checkOpen();
    return (await this.#backend.check?.()) ?? [];
  }

  async close(): Promise<void> {
    if (this.#backend.close === undefined) return;
    this.#closed = true;
    this.#closing ??= Promise.resolve(this.#backend.close());
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

  async *#export(sessionId: string): AsyncGenerator<string> {
    const { records } = await this.#backend.history(sessionId).read(undefined);
    const info = await this.#backend.get(sessionId);
    if (records.length === 0 && info === undefined) throw noSuchSession(sessionId);
    yield* exportLines({ sessionId, createdAt: info?.createdAt }, records);
  }

  async #stage<R>(sessionId: string, work: (staged: StagedHistory) => Promise<R>): Promise<R> {
    const staged = (await this.#backend.stage?.(sessionId)) ?? new CollectedHistory(sessionId, this.#backend);
    try {
      return await work(staged);
    } catch (error) {
      // What failed is what the caller has to hear, not that its remains could not be taken away too.
      await Promise.resolve(staged.discard()).catch(() => undefined);
      throw error;
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new SessionClosedError('The store of sessions was closed.');
  }
}

/** For backends without a stage of their own: one write at the end. */
class CollectedHistory implements StagedHistory {
  readonly #sessionId: string;
  readonly #backend: SessionStoreBackend;
  #texts: string[] = [];

  constructor(sessionId: string, backend: SessionStoreBackend) {
    this.#sessionId = sessionId;
    this.#backend = backend;
  }

  append(texts: readonly string[]): void {
    for (const text of texts) this.#texts.push(text);
  }

  async publish(how: 'create' | 'replace' | 'append'): Promise<void> {
    const history = this.#backend.history(this.#sessionId);
    const texts = this.#texts;
    if (texts.length === 0) await this.#publishEmpty(how);
    else if (how === 'append') await history.write({ type: 'append', texts });
    else if (how === 'replace') await history.write({ type: 'replace', texts });
    else {
      // First the version: what is written in between is noticed then.
      const { version } = await history.read(0);
      if ((await this.#backend.get(this.#sessionId)) !== undefined) throw sessionExists(this.#sessionId);
      try {
        await history.write({ type: 'replace', texts, ifVersion: version });
      } catch (error) {
        if (error instanceof SessionVersionConflictError) throw sessionExists(this.#sessionId);
        throw error;
      }
    }
  }

  discard(): void {
    this.#texts = [];
  }

  /** A session without items is made as one that has metadata and no items. */
  async #publishEmpty(how: 'create' | 'replace' | 'append'): Promise<void> {
    if (how === 'create' && (await this.#backend.get(this.#sessionId)) !== undefined)
      throw sessionExists(this.#sessionId);
    if (how === 'replace') await this.#backend.history(this.#sessionId).write({ type: 'replace', texts: [] });
    await this.#backend.setMetadata(this.#sessionId, {});
  }
}

/** @throws SessionError for encrypted items; UserError when there is no such turn */
function forkedTexts(
  sessionId: string,
  records: readonly { readonly text: string | undefined; readonly position: number }[],
  untilTurn: number | undefined,
): string[] {
  const valid = records.flatMap((record) => {
    const item = decodeRecord<object>(record);
    return item === undefined ? [] : [{ item, text: record.text ?? '' }];
  });
  const items = valid.map(({ item }) => item);
  if (items.some(isEnvelope))
    throw new SessionError(
      'The session holds encrypted items, which can be read under its own id alone; nothing was copied. Copy it with migrateSession() from one EncryptedSession to another.',
      { sessionId },
    );
  if (untilTurn === undefined) return valid.map(({ text }) => text);
  const turns = turnsOf(items);
  const end = turns[untilTurn - 1];
  if (end === undefined)
    throw new UserError(`The session has ${turns.length} user messages; there is no turn ${untilTurn} to stop before.`);
  const stays = wholePairs(items, end);
  return valid.slice(0, end).flatMap(({ text }, index) => (stays[index] === true ? [text] : []));
}

/** A copy of plain JSON. @throws UserError that names the member, never its value */
function metadataOf(patch: unknown, where: string): Record<string, unknown> {
  if (!isPlainObject(patch)) throw new UserError(`${where} takes a plain object, not ${kindOf(patch)}.`);
  try {
    return decodeItem<Record<string, unknown>>(encodeJson(patch)) ?? {};
  } catch (error) {
    if (!(error instanceof JsonEncodeError)) throw error;
    throw new UserError(`${where} takes JSON: member '${error.path}' ${error.problem}.`, { cause: error });
  }
}
