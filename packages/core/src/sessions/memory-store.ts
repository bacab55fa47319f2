import type { SessionSettings } from './contract.ts';
import { MemoryHistory, memoryEncoding, MemorySession, sharedHistory } from './memory.ts';
import type { SharedHistory } from './memory.ts';
import { mergeMetadata } from './store-backend.ts';
import type { SessionPage, SessionPageResult, SessionStoreBackend } from './store-backend.ts';
import { StoredSessionStore } from './stored-store.ts';
import type { SessionInfo } from './store.ts';

/**
 * Sessions in this object, for tests and as the reference of what a store does. Sessions of one id share their history.
 *
 * @example
 * const store = new MemorySessionStore();
 * await run(agent, 'My name is Ada.', { session: store.session('ada') });
 * const { sessions } = await store.list({ withCount: true });
 */
export class MemorySessionStore extends StoredSessionStore<MemorySession> {
  constructor() {
    super(new MemoryStore(), { name: 'MemorySessionStore', encoding: memoryEncoding });
  }
}

interface Entry {
  readonly history: MemoryHistory;
  metadata?: Record<string, unknown> | undefined;
}

export class MemoryStore implements SessionStoreBackend<MemorySession> {
  /** Of all ids that were asked for; a session exists once something was written. */
  readonly #entries = new Map<string, Entry>();

  session(sessionId: string, options: { readonly sessionSettings?: SessionSettings | undefined }): MemorySession {
    const shared: { sessionSettings?: SessionSettings | undefined } & SharedHistory = {
      ...options,
      [sharedHistory]: this.#entry(sessionId).history,
    };
    return new MemorySession(sessionId, shared);
  }

  history(sessionId: string): MemoryHistory {
    return this.#entry(sessionId).history;
  }

  list({ order, limit, after }: SessionPage): SessionPageResult {
    const key = ({ createdAt, updatedAt }: SessionInfo): number =>
      order === 'id' ? 0 : -((order === 'created' ? createdAt : updatedAt)?.getTime() ?? 0);
    const sorted = this.#infos().toSorted((a, b) => key(a) - key(b) || compare(a.sessionId, b.sessionId));
    const [time, id] = after ?? [];
    const rest = sorted.filter(
      (info) => after === undefined || (key(info) - Number(time) || compare(info.sessionId, String(id))) > 0,
    );
    const sessions = rest.slice(0, limit);
    const last = rest.length > limit ? sessions.at(-1) : undefined;
    return last === undefined ? { sessions } : { sessions, next: [key(last), last.sessionId] };
  }

  get(sessionId: string): SessionInfo | undefined {
    const entry = this.#entries.get(sessionId);
    return entry && infoOf(sessionId, entry);
  }

  remove(sessionIds: readonly string[], idleSince?: Date): { sessions: number; items: number } {
    const gone = { sessions: 0, items: 0 };
    for (const sessionId of sessionIds) {
      const info = this.get(sessionId);
      if (info === undefined || (idleSince !== undefined && (info.updatedAt ?? idleSince) >= idleSince)) continue;
      this.#entries.get(sessionId)?.history.clear();
      gone.sessions++;
      gone.items += info.itemCount ?? 0;
    }
    return gone;
  }

  setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): void {
    const entry = this.#entry(sessionId);
    entry.history.touch();
    entry.metadata = mergeMetadata(entry.metadata, patch);
  }

  close(): void {}

  #entry(sessionId: string): Entry {
    const known = this.#entries.get(sessionId);
    if (known !== undefined) return known;
    const entry: Entry = { history: new MemoryHistory(sessionId, [], () => void (entry.metadata = undefined)) };
    this.#entries.set(sessionId, entry);
    return entry;
  }

  #infos(): SessionInfo[] {
    return [...this.#entries].flatMap(([sessionId, entry]) => infoOf(sessionId, entry) ?? []);
  }
}

/** `undefined`: nothing was written yet, or it was cleared. */
function infoOf(sessionId: string, { history, metadata }: Entry): SessionInfo | undefined {
  const { createdAt, updatedAt, count } = history;
  if (createdAt === undefined) return undefined;
  return {
    sessionId,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt ?? createdAt),
    itemCount: count,
    ...(metadata !== undefined && { metadata: structuredClone(metadata) }),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
