import { UserError } from '@agents/core';
import { checkStoreUrl, mergeMetadata, StoredSessionStore } from '@agents/core/session';
import type {
  SessionInfo,
  SessionPage,
  SessionPageResult,
  SessionSettings,
  SessionStoreBackend,
  StoredRecord,
} from '@agents/core/session';

import { readOptions, storeConnection } from './arguments.ts';
import type { Config, OfStore } from './arguments.ts';
import { clearSession } from './branch.ts';
import { retryBusy } from './busy.ts';
import { acquire } from './connection.ts';
import type { Connection } from './connection.ts';
import type { Database } from './driver.ts';
import { SQLiteHistory } from './history.ts';
import type { SQLiteSessionOptions } from './options.ts';
import { SQLiteSession } from './session.ts';
import { SQLiteStage } from './stage.ts';
import { StoreStatements, timeText } from './store-statements.ts';

/** A write transaction of prune ends after this time, so that other writers get their turn. */
const TURN_MS = 30;

/**
 * The sessions of a file, Python's too. They share the connection of the store: `close()` of a session does nothing, that of
 * the store ends all of them. With `:memory:` they live as long as the store.
 *
 * @throws UserError `session_name_invalid`, and for options of a wrong kind
 * @example
 * const store = new SQLiteSessionStore('chat.db');
 * await run(agent, 'Hello!', { session: store.session('user-42') });
 * const { sessions } = await store.list({ prefix: 'user-', limit: 20 });
 * await store.close();
 */
export class SQLiteSessionStore extends StoredSessionStore<SQLiteSession> {
  constructor(options?: string | URL | SQLiteSessionOptions) {
    super(new SQLiteStore(readOptions(options, 'SQLiteSessionStore')), {
      name: 'SQLiteSessionStore',
      encoding: { style: 'spaced' },
    });
  }

  /**
   * `sqlite:chat.db`: what follows `sqlite:` is the path, taken as it is.
   *
   * @throws UserError
   */
  static open(url: string): SQLiteSessionStore {
    const path = checkStoreUrl(url, ['sqlite'], 'SQLiteSessionStore.open()').slice('sqlite:'.length);
    if (/^\/\/(?!\/)|[?#]/.test(path))
      throw new UserError(
        'SQLiteSessionStore.open() takes sqlite:<path>, without a host, a query or a fragment: sqlite:chat.db, sqlite:/var/lib/chat.db.',
      );
    return new SQLiteSessionStore({ path });
  }
}

class SQLiteStore implements SessionStoreBackend<SQLiteSession> {
  readonly #config: Config;
  readonly #connection: Connection;
  readonly #statements = new WeakMap<Database, StoreStatements>();
  readonly close: (() => void) | undefined;

  constructor(config: Config) {
    this.#config = config;
    this.#connection = acquire(config);
    const isOwn = config.target === 'memory' || 'path' in config.target;
    this.close = isOwn ? () => this.#connection.release() : undefined;
  }

  session(
    sessionId: string,
    { sessionSettings }: { readonly sessionSettings?: SessionSettings | undefined },
  ): SQLiteSession {
    const { names, busyTimeoutMs, session } = this.#config;
    const options: SQLiteSessionOptions & OfStore = {
      ...session,
      ...(sessionSettings !== undefined && { sessionSettings }),
      busyTimeoutMs,
      sessionsTable: names.sessions,
      messagesTable: names.messages,
      [storeConnection]: this.#connection,
    };
    return new SQLiteSession(sessionId, options);
  }

  history(sessionId: string): SQLiteHistory {
    return new SQLiteHistory(sessionId, this.#config, this.#connection);
  }

  parts(sessionId: string): AsyncIterable<readonly StoredRecord[]> {
    return this.history(sessionId).parts();
  }

  async list(page: SessionPage): Promise<SessionPageResult> {
    return await this.#query((statements) => statements.list(page));
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    return await this.#query((statements) => statements.get(sessionId));
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    const gone = { sessions: 0, items: 0 };
    const limit = idleSince && timeText(idleSince);
    for (let at = 0; at < sessionIds.length;) {
      const start = performance.now();
      const done = await this.#transaction((statements) => {
        const removed = { sessions: 0, items: 0 };
        let next = at;
        do {
          const sessionId = sessionIds[next++] ?? '';
          const info = statements.get(sessionId);
          if (info === undefined || (limit !== undefined && !(timeText(info.updatedAt ?? new Date()) < limit)))
            continue;
          clearSession(this.#connection, this.#config.names, sessionId);
          removed.sessions++;
          removed.items += info.itemCount ?? 0;
        } while (next < sessionIds.length && performance.now() - start < TURN_MS);
        return { removed, next };
      });
      gone.sessions += done.removed.sessions;
      gone.items += done.removed.items;
      at = done.next;
      if (at < sessionIds.length) await new Promise<void>((resolve) => void setImmediate(resolve));
    }
    return gone;
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    const { names } = this.#config;
    await this.#transaction((statements) => {
      this.#connection.statements(names).touch(sessionId, true);
      const merged = mergeMetadata(statements.get(sessionId)?.metadata, patch);
      statements.putMetadata(sessionId, merged && JSON.stringify(merged));
    });
  }

  stage(sessionId: string): SQLiteStage {
    const { names, busyTimeoutMs } = this.#config;
    return new SQLiteStage(
      this.history(sessionId),
      async (work) => await retryBusy(busyTimeoutMs, sessionId, () => work(this.#connection.database(names))),
    );
  }

  async check(): Promise<string[]> {
    const { names } = this.#config;
    return await this.#query((statements, database) => {
      const advice: string[] = [];
      const { journal_mode: mode } = database.prepare('PRAGMA journal_mode').get() as { journal_mode: unknown };
      if (mode !== 'wal' && mode !== 'memory')
        advice.push(
          `The journal mode is '${String(mode)}': readers and writers wait for each other. On a local disk use 'PRAGMA journal_mode = WAL'.`,
        );
      const orphans = statements.orphans();
      if (orphans > 0)
        advice.push(
          `${orphans} session${orphans === 1 ? ' has' : 's have'} rows in '${names.messages}' and none in '${names.sessions}': no list shows them and no prune finds them. Insert their ids into '${names.sessions}', or delete their messages.`,
        );
      return advice;
    });
  }

  async #transaction<R>(work: (statements: StoreStatements) => R): Promise<R> {
    return await this.#query((statements) => this.#connection.transaction(() => work(statements)));
  }

  async #query<R>(work: (statements: StoreStatements, database: Database) => R): Promise<R> {
    const { names, busyTimeoutMs } = this.#config;
    return await retryBusy(busyTimeoutMs, undefined, () => {
      const database = this.#connection.database(names);
      const statements = this.#statements.get(database) ?? new StoreStatements(database, names);
      this.#statements.set(database, statements);
      return work(statements, database);
    });
  }
}
