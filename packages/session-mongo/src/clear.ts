import type { Document } from 'mongodb';

import type { Scope } from './history.ts';
import { countOf, emptiedGeneration, integer } from './layout.ts';
import type { Count, SessionDocument } from './layout.ts';
import { removeBatches } from './lives.ts';
import { commit } from './outcome.ts';
import { ignoringErrors } from './pop.ts';
import { newLife } from './reserve.ts';

/** The update by which a session is none any more (`isCleared`): of its generation there is nothing. */
export function emptied(
  generation: Count | Document,
  fields: Partial<Record<keyof SessionDocument, unknown>>,
): Document[] {
  const reserved = { $ifNull: ['$_seq', integer(0)] };
  return [
    { $set: { ...fields, _seq: reserved, _cleared: reserved, _generation: generation, _since: generation } },
    { $unset: ['metadata', '_operations', '_replaced'] },
  ];
}

/** The generation that counts from now on. */
export async function clear(scope: Scope): Promise<number> {
  const { sessions, sessionId, ttlMs } = scope;
  const now = new Date();
  const life = newLife(now, ttlMs);
  const update = emptied(
    // By a random number: the Python SDK begins each session of an id with 0, so one more may be what a former one had.
    { $add: [{ $ifNull: ['$_generation', integer(0)] }, integer(emptiedGeneration(0))] },
    {
      // What is written from now on is of a new session.
      created_at: now,
      updated_at: now,
      ...(life.expires_at && { expires_at: { $ifNull: ['$expires_at', life.expires_at] } }),
      ...(life._kept_until && { _kept_until: { $ifNull: ['$_kept_until', life._kept_until] } }),
    },
  );
  const cleared = await commit(scope, () =>
    sessions.findOneAndUpdate({ session_id: sessionId }, update, {
      upsert: true,
      returnDocument: 'after',
      projection: { session_id: 1, _generation: 1 },
    }),
  );
  if (cleared === null) return 0;
  const generation = countOf(cleared._generation);
  // What was reserved before and comes late stays invisible there.
  await ignoringErrors(removeBatches(scope, [{ ...cleared, generation }]));
  return generation;
}
