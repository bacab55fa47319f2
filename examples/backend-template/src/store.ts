import { mergeMetadata, StoredSessionStore } from '@agents/core/session';
import type {
  SessionInfo,
  SessionPage,
  SessionPageResult,
  SessionSettings,
  SessionStoreBackend,
} from '@agents/core/session';

import type { Database, Document } from './database.ts';
import { changed, TemplateHistory } from './history.ts';
import { checkConnected, TemplateSession, TIMEOUT_MS } from './session.ts';

/** Lists, metadata, forks, retention, exports. Leave it out if nobody needs them: a session works without a store. */
export class TemplateSessionStore extends StoredSessionStore<TemplateSession> {
  constructor(options: { database: Database }) {
    checkConnected(options, undefined, 'TemplateSessionStore');
    super(new TemplateStore(options.database), { name: 'TemplateSessionStore', timeoutMs: TIMEOUT_MS });
  }
}

class TemplateStore implements SessionStoreBackend<TemplateSession> {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  session(sessionId: string, options: { readonly sessionSettings?: SessionSettings | undefined }): TemplateSession {
    return new TemplateSession(sessionId, { ...options, database: this.#database });
  }

  history(sessionId: string): TemplateHistory {
    return new TemplateHistory(sessionId, this.#database);
  }

  /** A page behind `after`: sort key and id of the last entry. The other conditions are checked by whoever called. */
  async list({ order, limit, after }: SessionPage): Promise<SessionPageResult> {
    const keyOf = ({ createdAt, updatedAt }: Document): number =>
      order === 'id' ? 0 : order === 'created' ? -createdAt : -updatedAt;
    const entries = [...(await this.#database.all())]
      .map(([id, document]) => ({ id, key: keyOf(document), document }))
      .toSorted((a, b) => a.key - b.key || compare(a.id, b.id));
    const [key, id] = after ?? [];
    const rest = entries.filter(
      (entry) => after === undefined || (entry.key - Number(key) || compare(entry.id, String(id))) > 0,
    );
    const page = rest.slice(0, limit);
    const last = rest.length > limit ? page.at(-1) : undefined;
    const sessions = page.map((entry) => infoOf(entry.id, entry.document));
    return last === undefined ? { sessions } : { sessions, next: [last.key, last.id] };
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    const document = await this.#database.get(sessionId);
    return document && infoOf(sessionId, document);
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    const gone = { sessions: 0, items: 0 };
    for (const sessionId of sessionIds) {
      await this.#database.update(sessionId, (document) => {
        // Somebody may have used it since it was listed.
        if (document === undefined || (idleSince && document.updatedAt >= idleSince.getTime())) return document;
        gone.sessions++;
        gone.items += document.texts.length;
        return undefined;
      });
    }
    return gone;
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#database.update(sessionId, (document) => {
      const session = document ?? changed(undefined, []);
      return { ...session, metadata: mergeMetadata(session.metadata, patch) };
    });
  }
}

function infoOf(sessionId: string, { createdAt, updatedAt, texts, metadata }: Document): SessionInfo {
  return {
    sessionId,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    itemCount: texts.length,
    ...(metadata && { metadata: structuredClone(metadata) }),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
