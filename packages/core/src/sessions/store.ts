/// <reference lib="esnext.disposable" />
import type { ManagedSession, Session, SessionSettings } from './contract.ts';

/** Many sessions in one place: what an operator, or a page that lists conversations, needs and a run does not. */
export interface SessionStore<S extends Session = ManagedSession> extends AsyncDisposable {
  session(sessionId: string, options?: { sessionSettings?: SessionSettings }): S;
  /** Loads no items; pages stay stable while others write (Redis without an index: unordered, an entry may come twice). */
  list(query?: SessionQuery): Promise<{ sessions: SessionInfo[]; cursor?: string }>;
  /** With its count of items. `undefined`: there is no such session. */
  get(sessionId: string): Promise<SessionInfo | undefined>;
  /** With its metadata and what it remembers of operations. False: there was none. */
  delete(sessionId: string): Promise<boolean>;
  /**
   * Copies the items, not the metadata, in one step; `untilTurn` stops before that user message, from 1.
   *
   * @throws SessionError if `to` exists, there is no `from`, or its items are encrypted for its own id (`migrateSession`)
   */
  fork(from: string, to: string, options?: { untilTurn?: number }): Promise<S>;
  /** Merges; `null` removes a member. JSON. A session that does not exist is made, without items. */
  setMetadata(sessionId: string, patch: Record<string, unknown>): Promise<void>;
  /**
   * Deletes sessions that were not updated for `idleForMs`, or since `olderThan` (both given: for both); cuts the others to
   * their newest `maxItems`, from a user message on and never between a call and its output, which may leave some more.
   */
  prune(options: {
    idleForMs?: number;
    olderThan?: Date;
    maxItems?: number;
    /** Counts only. Default `false`. */
    dryRun?: boolean;
  }): Promise<{ sessions: number; items: number }>;
  /** NDJSON with count and hash, line by line, each with its line break. */
  export(sessionId: string): AsyncIterable<string>;
  /**
   * Lines of `export`, one each; becomes visible in one step when all were found good. Resolves to the count of items.
   * `ifExists`: default `fail`.
   *
   * @throws SessionError for what is no export, is cut off or was changed; if the session exists
   */
  import(
    sessionId: string,
    lines: AsyncIterable<string>,
    options?: { ifExists?: 'fail' | 'append' | 'replace' },
  ): Promise<number>;
  /** What an operator should change (eviction, time zone, tables); empty: nothing. */
  check(): Promise<string[]>;
  /** Of a store that made its client: final, waits for calls under way, lets go of the client. With a client or `db` that was handed in it does nothing. */
  close(): Promise<void>;
}

/** Default 50 per page, the last updated first. */
export interface SessionQuery {
  prefix?: string;
  /** Members that must be equal. */
  metadata?: Record<string, unknown>;
  /** At this time or later. */
  updatedAfter?: Date;
  /** Before this time. */
  updatedBefore?: Date;
  /** `updated`, `created`: the newest first; `id`: by its UTF-16 units or code points, as the store compares. */
  order?: 'updated' | 'created' | 'id';
  limit?: number;
  /** Of the page before; it belongs to the other conditions. */
  cursor?: string;
  withCount?: boolean;
}

export interface SessionInfo {
  sessionId: string;
  createdAt?: Date;
  updatedAt?: Date;
  expiresAt?: Date;
  itemCount?: number;
  metadata?: Record<string, unknown>;
}
