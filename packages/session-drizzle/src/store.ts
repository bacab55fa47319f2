import { mergeMetadata, SessionSchemaError, StoredSessionStore, versionConflict } from '@agents/core/session';
import type {
  SessionInfo,
  SessionPage,
  SessionPageResult,
  SessionSettings,
  SessionStoreBackend,
  StoredRecord,
} from '@agents/core/session';

import { DrizzleHistory, recordOf } from './history.ts';
import { checkIdFor, readOptions, TIMEOUT_MS } from './options.ts';
import type { Config, DrizzleSessionOptions } from './options.ts';
import { DrizzleSession } from './session.ts';
import { change, rows } from './statement.ts';
import { infoOf, metadataOf, StoreStatements } from './store-statements.ts';

/** Deleting many sessions lets others run this often. */
const YIELD_AFTER_MS = 15;
/** Rows of a fork or an export that are read at once. */
const PART = 500;

/**
 * The sessions of a database, Python's too: list, fork, metadata, retention, export and import. The database is yours and is
 * never closed.
 *
 * @throws UserError for options of a wrong kind
 * @example
 * const store = new DrizzleSessionStore({ db });
 * await run(agent, 'Hello!', { session: store.session('user-42') });
 * const { sessions } = await store.list({ prefix: 'user-', limit: 20 });
 */
export class DrizzleSessionStore extends StoredSessionStore<DrizzleSession> {
  constructor(options: DrizzleSessionOptions) {
    const config = readOptions(options, 'DrizzleSessionStore');
    super(new DrizzleStore(config, options), {
      name: 'DrizzleSessionStore',
      encoding: { ascii: config.ascii },
      timeoutMs: config.session.operationTimeoutMs ?? TIMEOUT_MS,
    });
  }
}

class DrizzleStore implements SessionStoreBackend<DrizzleSession> {
  readonly #config: Config;
  readonly #options: DrizzleSessionOptions;
  readonly #statements: StoreStatements;
  /** Of no session: for what concerns all of them. */
  readonly #shared: DrizzleHistory;

  constructor(config: Config, options: DrizzleSessionOptions) {
    this.#config = config;
    this.#options = { ...options };
    this.#statements = new StoreStatements(config.tables, config.dialect);
    this.#shared = this.history('');
  }

  session(id: string, { sessionSettings }: { readonly sessionSettings?: SessionSettings | undefined }): DrizzleSession {
    return new DrizzleSession(id, { ...this.#options, ...(sessionSettings !== undefined && { sessionSettings }) });
  }

  history(sessionId: string): DrizzleHistory {
    checkIdFor(this.#config.dialect, sessionId);
    return new DrizzleHistory(sessionId, this.#config, () => {});
  }

  async *parts(sessionId: string): AsyncGenerator<readonly StoredRecord[]> {
    const history = this.history(sessionId);
    const { newest, version } = await history.edge();
    if (newest === undefined) return;
    for (let after: unknown; ;) {
      const found = await history.query(this.#statements.oldest(sessionId, PART, newest, after));
      // Rows go from the newest on, and no id comes again: while this one is there, all before it are.
      if ((await history.query(this.#statements.isThere(newest))).length === 0)
        throw versionConflict(sessionId, version, (await history.read(0)).version);
      if (found.length > 0) yield found.map(recordOf);
      if (found.length < PART) return;
      after = found.at(-1)?.['id'];
    }
  }

  async list(page: SessionPage): Promise<SessionPageResult> {
    const { metadata } = await this.#shared.look();
    const found = await this.#shared.query(this.#statements.list(page, metadata));
    const last = found.length === page.limit ? found.at(-1) : undefined;
    const sessions = found.map(infoOf);
    return last === undefined ? { sessions } : { sessions, next: [String(last['stamp']), String(last['id'])] };
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    const { metadata } = await this.#shared.look();
    const [row] = await this.#shared.query(this.#statements.get(sessionId, metadata));
    // MySQL compares without the spaces at the end.
    return row?.['id'] === sessionId ? infoOf(row) : undefined;
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    const found = await this.#shared.look();
    const { dialect } = this.#shared;
    const statements = this.#statements;
    const gone = { sessions: 0, items: 0 };
    let since = performance.now();
    for (const sessionId of sessionIds) {
      // Each by itself, so that writers of others never wait for long.
      const items = await this.#shared.transaction(function* () {
        yield* dialect.lock(sessionId, false);
        const [row] = yield* rows(statements.idle(sessionId, idleSince));
        if (row?.['id'] !== sessionId) return undefined;
        yield* dialect.deleteMessages(sessionId, 'all');
        yield* dialect.deleteSession(sessionId, found);
        return Number(row['items']);
      });
      if (items !== undefined) {
        gone.sessions++;
        gone.items += items;
      }
      if (performance.now() - since < YIELD_AFTER_MS) continue;
      await new Promise<void>((resolve) => void setTimeout(resolve, 0));
      since = performance.now();
    }
    return gone;
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    checkIdFor(this.#config.dialect, sessionId);
    const { metadata } = await this.#shared.look();
    if (!metadata && Object.keys(patch).length > 0) throw this.#noMetadata(sessionId);
    const { dialect } = this.#shared;
    const statements = this.#statements;
    await this.#shared.transaction(function* () {
      yield* dialect.lock(sessionId, true);
      const added = statements.addSession(sessionId);
      if (added !== undefined) yield* change(added);
      if (!metadata) return;
      const [row] = yield* rows(statements.metadata(sessionId));
      const merged = mergeMetadata(metadataOf(row?.['data']), patch);
      for (const statement of statements.putMetadata(sessionId, merged && JSON.stringify(merged)))
        yield* change(statement);
    });
  }

  async check(): Promise<string[]> {
    const { sessions, messages, operations, metadata } = this.#config.tables.places;
    const found = await this.#shared.look();
    const [row] = await this.#shared.query(this.#statements.check());
    const orphans = Number(row?.['orphans']);
    const future = Number(row?.['future']);
    const zone = String(row?.['zone']);
    const advice: string[] = [];
    if (orphans > 0)
      advice.push(
        `${orphans} session${orphans === 1 ? ' has' : 's have'} rows in '${messages.name}' and none in '${sessions.name}': no list shows them, and the Python SDK can neither pop nor clear them. Insert their ids into '${sessions.name}', or delete their messages.`,
      );
    if (future > 0)
      advice.push(
        `${future} row${future === 1 ? '' : 's'} of '${messages.name}' ${future === 1 ? 'is' : 'are'} of the future: a clock is wrong, or clients use different time zones. Items come in the order of 'created_at'.`,
      );
    if (!/^(UTC|Etc\/UTC|GMT|Etc\/GMT|UCT|Zulu)$/i.test(zone))
      advice.push(
        `The time zone of the connection is '${zone}'. All clients of these tables have to use the same one, best UTC: the columns hold no zone, and a change of the clocks would put items into another order.`,
      );
    const missing = [...(found.operations ? [] : [operations.name]), ...(found.metadata ? [] : [metadata.name])];
    if (missing.length > 0)
      advice.push(
        `There is no table ${missing.map((name) => `'${name}'`).join(', and none ')}. A migration of the tables of @agents/session-drizzle/${this.#config.dialect} makes what is missing.`,
      );
    return advice;
  }

  #noMetadata(sessionId: string): SessionSchemaError {
    const { name } = this.#config.tables.places.metadata;
    return new SessionSchemaError(
      `Metadata needs the table '${name}', which is missing. Make it by a migration of the tables of @agents/session-drizzle/${this.#config.dialect}, or by createTables() of that module.`,
      { sessionId },
    );
  }
}
