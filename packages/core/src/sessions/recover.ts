import { UserError } from '../base/errors.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import type { StateRecord } from '../state/record.ts';
import type { Session } from './contract.ts';
import { SessionClosedError } from './errors.ts';
import { knownSessionId } from './settings.ts';

/**
 * What a resume checks before any effect (STATE-210, §11.2). A session whose id has to be asked for is compared later, in
 * `SessionWriter.settle`.
 *
 * @throws UserError `session_missing`, `session_write_wrong_session`
 * @throws SessionClosedError for a session that says so: what tools do could not be stored any more
 */
export function checkSessionForResume(record: StateRecord, session: Session | null | undefined): void {
  if (session === undefined && record.sessionId !== undefined) {
    throw new UserError(
      "This state belongs to a session. Pass the option 'session' to resume it, or 'session: null' to go on without reading or storing anything.",
      { code: 'session_missing' },
    );
  }
  if (session && (session as { readonly closed?: unknown }).closed === true)
    throw new SessionClosedError('The session was closed. Resume the state with an open one.', {
      sessionId: knownSessionId(session),
    });
  const pending = record.pendingWrite;
  if (pending === undefined) return;
  if (session === undefined || session === null) {
    if (!isHeld(pending)) throw wrongSession();
    return;
  }
  const id = knownSessionId(session);
  if (id !== undefined && id !== pending.sessionId) throw wrongSession();
}

export function wrongSession(): UserError {
  return new UserError(
    'This state has a pending session write, and it can only be resumed with the session that the write belongs to. Pass that session.',
    { code: 'session_write_wrong_session' },
  );
}

/** A batch that output guardrails withhold: it rides along until a turn claims it (STATE-322). */
export function isHeld(pending: PendingWrite): boolean {
  return pending.held !== undefined;
}

/**
 * What became of an append whose answer is missing, by the tail of the session: `tail` holds the digests of the newest
 * `before.length + batch.length` items. `ambiguous`: somebody else wrote, or the batch arrived in part, or equal items
 * make both answers possible.
 */
export function readOutcome(
  before: readonly string[],
  batch: readonly string[],
  tail: readonly string[],
): 'committed' | 'unchanged' | 'ambiguous' {
  const committed = equal(tail, [...before, ...batch]);
  const unchanged = before.length === 0 ? tail.length === 0 : equal(tail.slice(-before.length), before);
  if (committed === unchanged) return 'ambiguous';
  return committed ? 'committed' : 'unchanged';
}

/** For an acknowledged batch: whether the session still ends with it. */
export function stillThere(before: readonly string[], batch: readonly string[], tail: readonly string[]): boolean {
  return equal(tail, [...before, ...batch]);
}

export function ambiguous(): UserError {
  return new UserError(
    'The pending session write cannot be reconciled: the history of the session changed, or what it holds is ambiguous. Repair the session so that it ends either with or without the pending items, then resume this state again; its finished work must not be run anew.',
    { code: 'session_write_ambiguous' },
  );
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
