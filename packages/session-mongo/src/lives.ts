import type { Filter } from 'mongodb';

import { countOf, integer, isCleared, PUT_ASIDE } from './layout.ts';
import type { Collections, MessageDocument, StoredDocument } from './layout.ts';

/** Batches that are named at once. */
export const PIECE = 500;

/**
 * A session from its making to its removal: the `_id` of its document is of this life alone. Within it generations only
 * grow; the next life of the same id may begin with any of them. So what changes or deletes batches, and may reach the server
 * late, names each of them, of a life that was still there when they had been read.
 */
export type Life = Pick<StoredDocument, '_id' | 'session_id'>;

type Found = Pick<MessageDocument, '_id' | 'session_id' | 'generation'>;

/** This batch, as long as it is where it was read. No batch of another life has its `_id` (`batchKey`). */
export function exactly({ _id, generation }: Pick<Found, '_id' | 'generation'>): Filter<MessageDocument> {
  // What is absent is equal to null.
  return { _id, generation: generation ?? null };
}

/** Batches that match, some at a time, of these lives or of older ones, each with what its session is like afterwards. */
export async function* piecesOf(
  { sessions, messages }: Collections,
  lives: readonly Life[],
  filter: Filter<MessageDocument>,
): AsyncGenerator<{ readonly batch: Found; readonly session: StoredDocument }[]> {
  const ids = lives.map(({ _id }) => _id);
  const check = async (piece: readonly Found[]) => {
    const found = sessions.find({ _id: { $in: ids } }, { projection: { session_id: 1, _seq: 1, _cleared: 1 } });
    const there = new Map((await found.toArray()).map((session) => [session.session_id, session]));
    return piece.flatMap((batch) => {
      const session = there.get(batch.session_id);
      return session === undefined ? [] : [{ batch, session }];
    });
  };
  let piece: Found[] = [];
  for await (const batch of messages.find<Found>(filter, {
    projection: { session_id: 1, generation: 1 },
    batchSize: PIECE,
  })) {
    piece.push(batch);
    if (piece.length < PIECE) continue;
    yield await check(piece);
    piece = [];
  }
  if (piece.length > 0) yield await check(piece);
}

/** A life of which a generation counts, or nothing any more. */
export interface Emptied extends Life {
  readonly generation: number;
}

/** Deletes the batches of the generations before, and what is remembered of operations. */
export async function removeBatches(collections: Collections, lives: readonly Emptied[]): Promise<void> {
  const before: Filter<MessageDocument> = {
    session_id: { $in: lives.map(({ session_id }) => session_id) },
    $or: lives.flatMap(({ session_id, generation }) => [
      { session_id, generation: { $lt: integer(generation) } },
      { session_id, generation: null },
    ]),
  };
  for await (const piece of piecesOf(collections, lives, before)) {
    // Where somebody goes on already, a batch that was put aside may be his.
    const dead = piece.filter(({ batch, session }) => countOf(batch.generation) !== PUT_ASIDE || isCleared(session));
    if (dead.length === 0) continue;
    const steps = dead.map(({ batch }) => ({ deleteOne: { filter: exactly(batch) } }));
    await collections.messages.bulkWrite(steps, { ordered: false });
  }
}
