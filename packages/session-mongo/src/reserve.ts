import { SessionBusyError } from '@agents/core/session';
import { ObjectId } from 'mongodb';
import type { Filter } from 'mongodb';

import type { Scope } from './history.ts';
import { batchesOf, countOf, integer, sameGeneration, unusedGeneration } from './layout.ts';
import type { MessageDocument, SessionDocument, StoredDocument } from './layout.ts';
import { exactly, piecesOf } from './lives.ts';
import { isDuplicate } from './outcome.ts';
import { readState } from './read.ts';
import type { State } from './read.ts';

/** Looks at a session that others make, or that ends, in the same moment. */
const ATTEMPTS = 10;

/** Numbers for a batch, in a generation. */
export interface Reservation {
  readonly generation: number;
  /** The number of its last item. */
  readonly last: number;
  readonly expiresAt: Date | undefined;
  /** The session as it was, or as it was made. */
  readonly session: StoredDocument;
}

/** Makes the session where there is none, and begins anew where its life is over. */
export async function reserve(scope: Scope, count: number, upkeep: boolean): Promise<Reservation> {
  const { sessions, sessionId, ttlMs } = scope;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const now = new Date();
    const before = await sessions.findOneAndUpdate(
      { session_id: sessionId, expires_at: { $not: { $lte: now } } },
      { $set: { ...(!upkeep && { updated_at: now }), ...lifeFrom(now, ttlMs) }, $inc: { _seq: integer(count) } },
      { returnDocument: 'before', projection: { metadata: 0 } },
    );
    if (before !== null) return await placeOf(scope, before, count, now);
    const made = await makeSession(scope, count);
    if (made !== undefined) return made;
    // Somebody made the session in the same moment; or its life is over.
    const state = await readState(scope);
    if (state.expired) await beginAnew(scope, state);
  }
  throw new SessionBusyError('Others made and removed the session again and again; nothing was written. Try again.', {
    sessionId,
  });
}

/** As long as the session is as it was read. `undefined`: it is not. */
export async function reserveAt(scope: Scope, count: number, state: State): Promise<Reservation | undefined> {
  const { sessions, ttlMs } = scope;
  const { document } = state;
  if (state.expired) return (await beginAnew(scope, state)) ? await reserve(scope, count, false) : undefined;
  if (document === undefined) return await makeSession(scope, count);
  const now = new Date();
  const before = await sessions.findOneAndUpdate(
    unchanged(document),
    { $set: { updated_at: now, ...lifeFrom(now, ttlMs) }, $inc: { _seq: integer(count) } },
    { returnDocument: 'before', projection: { metadata: 0 } },
  );
  return before === null ? undefined : await placeOf(scope, before, count, now);
}

/** `undefined`: there is one. */
async function makeSession(scope: Scope, count: number): Promise<Reservation | undefined> {
  const first = await firstDocument(scope, count);
  try {
    await scope.sessions.insertOne(first);
  } catch (error) {
    if (isDuplicate(error)) return undefined;
    throw error;
  }
  return await placeOf(scope, { ...first, _seq: 0 }, count, new Date());
}

/** Of a session that is made now. */
export async function firstDocument(
  scope: Pick<Scope, 'messages' | 'sessionId' | 'ttlMs'>,
  count: number,
): Promise<StoredDocument> {
  const now = new Date();
  return {
    _id: new ObjectId(),
    session_id: scope.sessionId,
    created_at: now,
    updated_at: now,
    _seq: integer(count),
    _generation: integer(await firstGeneration(scope)),
    ...newLife(now, scope.ttlMs),
  };
}

/**
 * Another one each time: no version of a session that was removed fits the next one of its id, and nobody sees what is left
 * of it. But batches may be there that count without a document of their session, of the first generation.
 */
async function firstGeneration({ messages, sessionId }: Pick<Scope, 'messages' | 'sessionId'>): Promise<number> {
  const counting: Filter<MessageDocument> = { ...batchesOf(sessionId, 0), expires_at: { $exists: false } };
  const there = await messages.findOne(counting, { projection: { _id: 1 } });
  return there === null ? unusedGeneration() : 0;
}

/** Matches the session as long as nobody reserved, popped, cleared, replaced or removed since. */
export function unchanged({
  _id,
  _generation,
  _seq,
  _pops,
}: Pick<StoredDocument, '_id' | '_generation' | '_seq' | '_pops'>): Filter<SessionDocument> {
  // What is absent is equal to null.
  return { _id, _generation: _generation ?? null, _seq: _seq ?? null, _pops: _pops ?? null };
}

/** A session whose life is over becomes one that was just made. False: somebody else was first. */
export async function beginAnew(
  { sessions, ttlMs }: Pick<Scope, 'sessions' | 'ttlMs'>,
  { document, generation }: State,
): Promise<boolean> {
  if (document?.expires_at === undefined) return false;
  const now = new Date();
  const life = newLife(now, ttlMs);
  const begun = integer(unusedGeneration(generation));
  const { modifiedCount } = await sessions.updateOne(
    { _id: document._id, expires_at: document.expires_at, _generation: document._generation ?? null },
    {
      $set: { created_at: now, _generation: begun, _since: begun, ...life },
      $unset: {
        ...(life.expires_at === undefined && { expires_at: '', _kept_until: '' }),
        metadata: '',
        _operations: '',
      },
    },
  );
  return modifiedCount === 1;
}

async function placeOf(scope: Scope, session: StoredDocument, count: number, now: Date): Promise<Reservation> {
  const generation = countOf(session._generation);
  const last = countOf(session._seq) + count - 1;
  if (scope.ttlMs === undefined) return { generation, last, expiresAt: session._kept_until, session };
  const kept = session._kept_until?.getTime() ?? 0;
  const until = keptUntil(now, scope.ttlMs);
  if (kept < now.getTime() + 1.5 * scope.ttlMs) await keepBatches(scope, session._id, generation, until);
  return { generation, last, expiresAt: new Date(Math.max(kept, until.getTime())), session };
}

/** Batches live longer than their session, so that not each append has to touch all of them. */
async function keepBatches(scope: Scope, _id: ObjectId, generation: number, until: Date): Promise<void> {
  const { sessions, messages, sessionId } = scope;
  const life = { _id, session_id: sessionId };
  const update = { $max: { expires_at: until } };
  for await (const piece of piecesOf(scope, [life], batchesOf(sessionId, generation)))
    if (piece.length > 0)
      await messages.bulkWrite(
        piece.map(({ batch }) => ({ updateOne: { filter: exactly(batch), update } })),
        { ordered: false },
      );
  await sessions.updateOne({ _id, _generation: sameGeneration(generation) }, { $max: { _kept_until: until } });
}

function keptUntil(now: Date, ttlMs: number): Date {
  return new Date(now.getTime() + 2 * ttlMs);
}

/** Of a session that begins now. */
export function newLife(now: Date, ttlMs: number | undefined): { expires_at?: Date; _kept_until?: Date } {
  return { ...lifeFrom(now, ttlMs), ...(ttlMs !== undefined && { _kept_until: keptUntil(now, ttlMs) }) };
}

/** Of a session that is made now, in a document that is there. */
export function newTimes(ttlMs: number | undefined): Pick<SessionDocument, 'created_at' | 'updated_at' | 'expires_at'> {
  const now = new Date();
  return { created_at: now, updated_at: now, ...newLife(now, ttlMs) };
}

function lifeFrom(now: Date, ttlMs: number | undefined): { expires_at?: Date } {
  return ttlMs === undefined ? {} : { expires_at: new Date(now.getTime() + ttlMs) };
}
