/// <reference lib="esnext.disposable" />
import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { BoundedStore } from './bounded-store.ts';
import { encodeItems } from './codec.ts';
import type { ManagedSession, Session, SessionSettings } from './contract.ts';
import { SessionVersionConflictError } from './errors.ts';
import type { StoredRecord } from './history-backend.ts';
import { checkSessionId, checkSessionSettings } from './settings.ts';
import { checkBackend, checkSetup } from './setup.ts';
import { noSuchSession, sessionExists } from './store-backend.ts';
import type { SessionStoreBackend, StagedHistory } from './store-backend.ts';
import { forkedTexts } from './store-fork.ts';
import { exportLines, importItems } from './store-lines.ts';
import { pruneSessions } from './store-prune.ts';
import type { PruneOptions } from './store-prune.ts';
import { StoreLife } from './store-life.ts';
import { metadataOf } from './store-metadata.ts';
import { listPage, readQuery } from './store-query.ts';
import type { SessionInfo, SessionQuery, SessionStore } from './store.ts';
import { joinStore, StoredSession } from './stored-session.ts';

/** How a backend's store differs from others, beside its backend. */
export interface StoredSessionStoreSetup {
  /** Of the class, for messages: `RedisSessionStore`. */
  readonly name: string;
  /** Of the stored texts, as the sessions have it. Default compact, non-ASCII escaped. */
  readonly encoding?: { readonly style?: 'compact' | 'spaced'; readonly ascii?: boolean } | undefined;
  /** Of each call of the backend, in milliseconds; a fork or an import is many calls. Default: calls are not bounded. */
  readonly timeoutMs?: number | undefined;
}

/** Of a `SessionStoreBackend`. */
const METHODS = ['session', 'history', 'list', 'get', 'remove', 'setMetadata'] as const;
const OPTIONAL = ['parts', 'stage', 'sweep', 'check', 'close'] as const;
/** Items of an import that are staged at once, and characters of them. */
const BATCH = 500;
const BATCH_SIZE = 1024 * 1024;
type IfExists = 'fail' | 'append' | 'replace';

/** How often a fork is begun when its source is changed meanwhile. */
const ATTEMPTS = 5;

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
  /** The same, bounded in time. */
  readonly #store: BoundedStore<S>;
  readonly #setup: StoredSessionStoreSetup;
  readonly #life = new StoreLife();
  #closing: Promise<void> | undefined;

  /** @throws UserError for a set-up or a backend of a wrong kind */
  constructor(backend: SessionStoreBackend<S>, setup: StoredSessionStoreSetup) {
    checkSetup(setup, 'StoredSessionStore', ['name', 'encoding', 'timeoutMs']);
    checkBackend(backend, `SessionStoreBackend of ${setup.name}`, METHODS, OPTIONAL);
    this.#backend = backend;
    this.#store = new BoundedStore(backend, setup.timeoutMs);
    this.#setup = setup;
  }

  session(sessionId: string, options?: { sessionSettings?: SessionSettings }): S {
    checkSessionId(sessionId);
    checkOptions(options, { sessionSettings: kinds.object }, `${this.#setup.name}.session()`);
    checkSessionSettings(options?.sessionSettings, `'sessionSettings' of ${this.#setup.name}.session()`);
    this.#life.checkOpen();
    return this.#session(sessionId, options);
  }

  async list(query?: SessionQuery): Promise<{ sessions: SessionInfo[]; cursor?: string }> {
    const page = readQuery(query, `${this.#setup.name}.list()`);
    return await this.#life.call(() => listPage(page, (part) => this.#store.list(part)));
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    checkSessionId(sessionId);
    return await this.#life.call(() => this.#store.get(sessionId));
  }

  async delete(sessionId: string): Promise<boolean> {
    checkSessionId(sessionId);
    const gone = await this.#life.call(() => this.#store.remove([sessionId]));
    return gone.sessions > 0;
  }

  async fork(from: string, to: string, options?: { untilTurn?: number }): Promise<S> {
    checkSessionId(from);
    checkSessionId(to);
    checkOptions(options, { untilTurn: kinds.integer(1) }, `${this.#setup.name}.fork()`);
    if (from === to) throw new UserError(`${this.#setup.name}.fork() needs two session ids.`);
    await this.#life.call(() => this.#fork(from, to, options?.untilTurn));
    return this.#session(to);
  }

  async setMetadata(sessionId: string, patch: Record<string, unknown>): Promise<void> {
    checkSessionId(sessionId);
    const copy = metadataOf(patch, `${this.#setup.name}.setMetadata()`);
    await this.#life.call(() => this.#store.setMetadata(sessionId, copy));
  }

  async prune(options: PruneOptions): Promise<{ sessions: number; items: number }> {
    return await this.#life.call(() => pruneSessions(this.#store, options, `${this.#setup.name}.prune()`, this.#life));
  }

  export(sessionId: string): AsyncIterable<string> {
    checkSessionId(sessionId);
    this.#life.checkOpen();
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
    return await this.#life.call(() => this.#import(sessionId, lines, options?.ifExists ?? 'fail'));
  }

  async check(): Promise<string[]> {
    return await this.#life.call(() => this.#store.check());
  }

  async close(): Promise<void> {
    if (this.#backend.close === undefined) return;
    this.#closing ??= this.#life.end().then(() => this.#backend.close?.());
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

  /** Ends with the store. */
  #session(sessionId: string, options: { readonly sessionSettings?: SessionSettings } = {}): S {
    const session = this.#backend.session(sessionId, options);
    if (session instanceof StoredSession) session[joinStore](this.#life);
    return session;
  }

  async #fork(from: string, to: string, untilTurn: number | undefined): Promise<void> {
    const source = { sessionId: from, parts: () => this.#parts(from) };
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#stage(to, async (staged) => {
          for await (const texts of forkedTexts(source, untilTurn)) await staged.append(texts);
          await staged.publish('create');
        });
        return;
      } catch (error) {
        // Changed while it was read: nothing of it was seen by anybody.
        if (!(error instanceof SessionVersionConflictError) || attempt === ATTEMPTS) throw error;
      }
    }
  }

  async *#export(sessionId: string): AsyncGenerator<string> {
    const info = await this.#life.call(() => this.#store.get(sessionId));
    yield* exportLines({ sessionId, createdAt: info?.createdAt }, this.#life.steps(this.#parts(sessionId)));
  }

  async #import(sessionId: string, lines: AsyncIterable<string>, ifExists: IfExists): Promise<number> {
    // Looked at again when it becomes visible; now, so that nobody has to read a long file to hear it.
    if (ifExists === 'fail' && (await this.#store.get(sessionId)) !== undefined) throw sessionExists(sessionId);
    return await this.#stage(sessionId, async (staged) => {
      let count = 0;
      let batch: object[] = [];
      let batchSize = 0;
      const flush = async (): Promise<void> => {
        await staged.append(encodeItems(batch, sessionId, this.#setup.encoding));
        count += batch.length;
        batch = [];
        batchSize = 0;
      };
      for await (const { item, size } of importItems(sessionId, this.#life.whileOpen(lines))) {
        batch.push(item);
        batchSize += size;
        if (batch.length === BATCH || batchSize >= BATCH_SIZE) await flush();
      }
      await flush();
      await staged.publish(ifExists === 'fail' ? 'create' : ifExists);
      return count;
    });
  }

  /** @throws SessionError at the end, when there was nothing and there is no such session */
  async *#parts(sessionId: string): AsyncGenerator<readonly StoredRecord[]> {
    let count = 0;
    for await (const records of this.#store.parts(sessionId)) {
      count += records.length;
      yield records;
    }
    if (count === 0 && (await this.#store.get(sessionId)) === undefined) throw noSuchSession(sessionId);
  }

  async #stage<R>(sessionId: string, work: (staged: StagedHistory) => Promise<R>): Promise<R> {
    const staged = await this.#store.stage(sessionId);
    try {
      return await work(staged);
    } catch (error) {
      // What failed is what the caller has to hear, not that its remains could not be taken away too.
      await Promise.resolve(staged.discard()).catch(() => undefined);
      throw error;
    }
  }
}
