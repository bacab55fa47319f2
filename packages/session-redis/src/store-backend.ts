import { mergeMetadata } from '@agents/core/session';
import type {
  SessionInfo,
  SessionPage,
  SessionPageResult,
  SessionSettings,
  SessionStoreBackend,
  StagedHistory,
  StoredRecord,
} from '@agents/core/session';

import { adviceFor } from './advice.ts';
import { AnswerLost, connect, shared } from './connection.ts';
import type { Connection } from './connection.ts';
import { RedisHistory, wrongType } from './history.ts';
import { StoreIndex } from './index-key.ts';
import { infoOf, metadataOf, metadataText } from './info.ts';
import { keysOf } from './keys.ts';
import { changesBy } from './options.ts';
import type { Config } from './options.ts';
import { scanPage } from './scan.ts';
import { historyParts } from './parts.ts';
import { ofStore, RedisSession, setupOf } from './session.ts';
import type { StoreParts } from './session.ts';
import { RedisStage } from './stage.ts';

/** Sessions under one prefix. */
export class RedisStore implements SessionStoreBackend<RedisSession> {
  readonly #config: Config;
  readonly #connection: Connection;
  readonly #parts: StoreParts;
  readonly #index: StoreIndex | undefined;
  /** Without scripts what is imported is collected in memory. */
  readonly stage: ((sessionId: string) => StagedHistory) | undefined;
  readonly close: (() => Promise<void>) | undefined;

  constructor(config: Config, index: boolean) {
    const connection = connect(config.target);
    this.#config = config;
    this.#connection = connection;
    const ordered = index ? new StoreIndex(connection, config) : undefined;
    this.#index = ordered;
    this.#parts = { config, connection: shared(connection), written: ordered && ((id) => ordered.note(id)) };
    if (config.scripting === 'lua') this.stage = (id) => new RedisStage(id, setupOf(id, this.#parts));
    this.close = connection.close?.bind(connection);
  }

  session(
    sessionId: string,
    { sessionSettings }: { readonly sessionSettings?: SessionSettings | undefined },
  ): RedisSession {
    const { config } = this.#parts;
    const session = { ...config.session, ...(sessionSettings && { sessionSettings }) };
    const parts: StoreParts = { ...this.#parts, config: { ...config, session } };
    return new RedisSession(sessionId, { [ofStore]: parts } as never);
  }

  history(sessionId: string): RedisHistory {
    return new RedisHistory(sessionId, setupOf(sessionId, this.#parts));
  }

  parts(sessionId: string): AsyncIterable<readonly StoredRecord[]> {
    return historyParts(setupOf(sessionId, this.#parts));
  }

  async list(page: SessionPage): Promise<SessionPageResult> {
    const place = page.after ?? [];
    if (this.#index !== undefined && place[0] !== 'scan') {
      const part = await this.#index.page(page);
      // Behind what the index has comes what it does not have.
      return part.next === undefined ? { ...part, next: ['scan', 0, '0'] } : part;
    }
    return await scanPage(this.#connection, this.#config, page, this.#index);
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    const keys = keysOf(sessionId, this.#config.keys);
    return await this.#connection.use((client) => infoOf(client, keys, true));
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    // What they send goes out together, on a cluster to the nodes that have them.
    const removed = await settled(sessionIds.map(async (id) => await this.history(id).remove(idleSince?.getTime())));
    const gone = { sessions: 0, items: 0 };
    for (const items of removed) {
      if (items === undefined) continue;
      gone.sessions++;
      gone.items += items;
    }
    return gone;
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    const keys = keysOf(sessionId, this.#config.keys);
    const { scripting, ttlMs } = this.#config;
    const changes = changesBy(scripting);
    for (;;) {
      const before = await this.#connection.use((client) => metadataOf(client, keys));
      const after = mergeMetadata(metadataText(before), patch);
      const request = {
        sessionId,
        ttlMs,
        before,
        after: after === undefined ? '' : JSON.stringify(after),
      };
      const outcome = await this.#connection.use((client) => changes.setMetadata(client, keys, request));
      if (outcome.what === 'type') throw wrongType(outcome, sessionId);
      // `changed`: somebody else set metadata meanwhile.
      if (outcome.what === 'changed') continue;
      await this.#index?.note(sessionId, 'new');
      return;
    }
  }

  async check(): Promise<string[]> {
    return await this.#connection.use(adviceFor);
  }
}

/** The results, when all have ended. @throws AnswerLost when any of them was lost; else the first error */
async function settled<R>(work: readonly Promise<R>[]): Promise<R[]> {
  const failed: unknown[] = [];
  const results = await Promise.all(work.map((one) => one.catch((error: unknown) => void failed.push(error))));
  if (failed.length > 0) throw failed.find((error) => error instanceof AnswerLost) ?? failed[0];
  return results as R[];
}
