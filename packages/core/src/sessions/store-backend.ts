import type { MaybePromise } from '../agent/tool.ts';
import type { Session, SessionSettings } from './contract.ts';
import { SessionError } from './errors.ts';
import type { HistoryBackend, StoredRecord } from './history-backend.ts';
import type { SessionInfo } from './store.ts';

/** Which sessions a page of a list has. */
export interface SessionPage {
  /** `updated`, `created`: the newest first, equal ones by id; `id`: ascending. */
  readonly order: 'updated' | 'created' | 'id';
  readonly limit: number;
  /** `next` of the page before: what comes behind it. */
  readonly after?: readonly (string | number)[] | undefined;
  readonly prefix?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly updatedAfter?: Date | undefined;
  readonly updatedBefore?: Date | undefined;
  /** Whether `itemCount` is wanted. */
  readonly withCount: boolean;
}

export interface SessionPageResult {
  /** At most `limit`. Fewer, with a `next`, are fine. */
  readonly sessions: readonly SessionInfo[];
  /** Where the next page begins: sort key and id of the last entry, a scan cursor. `undefined`: there are no more. */
  readonly next?: readonly (string | number)[] | undefined;
}

/** A history on its way in, which nobody sees before `publish`. */
export interface StagedHistory {
  /** Called once at least, with no texts for a session of no items; parts come in their order, one after the other. */
  append(texts: readonly string[]): MaybePromise<void>;
  /**
   * All of it in one step: as a new session (`sessionExists` if there is one), in place of the history, or behind it. A
   * session of no items is one as well.
   */
  publish(how: 'create' | 'replace' | 'append'): MaybePromise<void>;
  /**
   * What was not published goes. It may come while a `publish` that gave no answer in time is still on its way: that one
   * then publishes all of it or nothing.
   */
  discard(): MaybePromise<void>;
}

/**
 * Many sessions in a store: what a backend has to give so that `StoredSessionStore` makes a store of sessions of it. Errors
 * of the driver pass through unchanged; those of a change are looked at with `outcomeUnknown` of the history.
 */
export interface SessionStoreBackend<S extends Session = Session> {
  session(sessionId: string, options: { readonly sessionSettings?: SessionSettings | undefined }): S;
  /** Over the client of the store; its `close` is not called. */
  history(sessionId: string): HistoryBackend;
  /**
   * Loads no items. The conditions of the page are applied again to what comes back, so that a backend may leave out those
   * that it cannot express; `order`, `limit` and `after` are its own.
   */
  list(page: SessionPage): MaybePromise<SessionPageResult>;
  /** With `itemCount`. */
  get(sessionId: string): MaybePromise<SessionInfo | undefined>;
  /**
   * Deletes these sessions, at most 500, with metadata and operations; `idleSince`: those alone that were not updated since
   * then. Tells how many sessions and items are gone.
   */
  remove(sessionIds: readonly string[], idleSince?: Date): MaybePromise<{ sessions: number; items: number }>;
  /**
   * Removes what stayed of sessions that are none any more, such as the mark of a clear, where nothing was done since then;
   * `prune` calls it. Default: nothing stays.
   */
  sweep?(idleSince: Date): MaybePromise<void>;
  /** Merges the patch (`mergeMetadata`) in one step. */
  setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): MaybePromise<void>;
  /**
   * The history from its oldest record on, in parts of some hundred records, so that a fork and an export hold no more than
   * that. Corrupt ones are among them. All is of one moment: what is appended after the first part was asked for is not in
   * it; if some of it is removed or replaced before it was read, throw `versionConflict`. Default: `history.read`, all at
   * once.
   */
  parts?(sessionId: string): AsyncIterable<readonly StoredRecord[]>;
  /** Default: collects in memory and is one write of `history`. */
  stage?: ((sessionId: string) => MaybePromise<StagedHistory>) | undefined;
  /** Default: nothing to change. */
  check?(): MaybePromise<string[]>;
  /** Lets go of a client of its own. Without it `close()` of the store does nothing. */
  close?: (() => MaybePromise<void>) | undefined;
}

/** Metadata after a patch, in which `null` removes a member. `undefined`: nothing is left. */
export function mergeMetadata(
  current: Readonly<Record<string, unknown>> | undefined,
  patch: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const merged = new Map(Object.entries(current ?? {}));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return merged.size === 0 ? undefined : Object.fromEntries(merged);
}

export function sessionExists(sessionId: string): SessionError {
  return new SessionError('The session exists already; nothing was changed. Take another id, or delete it first.', {
    sessionId,
  });
}

export function noSuchSession(sessionId: string): SessionError {
  return new SessionError('There is no session of this id.', { sessionId });
}
