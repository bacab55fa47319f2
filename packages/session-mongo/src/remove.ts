import { emptied } from './clear.ts';
import { countOf, emptiedGeneration, integer, isCleared, sameGeneration } from './layout.ts';
import type { Collections, Count, StoredDocument } from './layout.ts';
import { removeBatches } from './lives.ts';
import type { Emptied, Life } from './lives.ts';
import { afterCommit } from './outcome.ts';
import { unchanged } from './reserve.ts';

/** What has to be known of a session to remove it. */
export type Removable = Life & Pick<StoredDocument, '_generation' | '_seq' | '_pops' | '_cleared'>;

/** The document of a session that has nothing any more. */
export interface Mark extends Emptied {
  /** Items ever reserved: more, when somebody uses it. */
  readonly seq: Count;
}

/** A session, or what a clear left of it, as it was read; one that was used meanwhile stays. */
export async function removeSession(collections: Collections, session: Removable): Promise<void> {
  await removeMarks(collections, await emptySessions(collections, [session]));
}

/**
 * Empties sessions that are as they were read: from then on they are none, whatever becomes of the rest
 * (`isCleared`). Some hundred at most: the commands name each.
 *
 * @returns those that this call emptied, and those that were none before; the others were used, or removed, meanwhile
 */
export async function emptySessions({ sessions }: Collections, read: readonly Removable[]): Promise<Mark[]> {
  const marks = read.filter(isCleared).map((one) => markOf(one, countOf(one._generation)));
  const full = read.filter((one) => !isCleared(one));
  if (full.length === 0) return marks;
  const now = new Date();
  const steps = full.map((one) => {
    const mark = markOf(one, emptiedGeneration(countOf(one._generation)));
    // What is written from now on is of a new session. The last use stays as it was: what a removal leaves is as old.
    const update = emptied(integer(mark.generation), { created_at: now });
    return { mark, updateOne: { filter: unchanged(one), update } };
  });
  const { matchedCount } = await sessions.bulkWrite(
    steps.map(({ updateOne }) => ({ updateOne })),
    { ordered: false },
  );
  const ours = steps.map(({ mark }) => mark);
  if (matchedCount === ours.length) return [...marks, ...ours];
  if (matchedCount === 0) return marks;
  // Which ones: no other call draws the same generations.
  const found = await afterCommit(() =>
    sessions
      .find({ _id: { $in: ours.map(({ _id }) => _id) } }, { projection: { session_id: 1, _generation: 1 } })
      .toArray(),
  );
  const generations = new Map(found.map(({ session_id, _generation }) => [session_id, countOf(_generation)]));
  return [...marks, ...ours.filter(({ session_id, generation }) => generations.get(session_id) === generation)];
}

function markOf({ _id, session_id, _seq }: Removable, generation: number): Mark {
  return { _id, session_id, generation, seq: _seq ?? integer(0) };
}

/** What the sessions had, then their documents, where nobody has begun anew. */
export async function removeMarks(collections: Collections, marks: readonly Mark[]): Promise<void> {
  if (marks.length === 0) return;
  await removeBatches(collections, marks);
  await collections.sessions.bulkWrite(
    marks.map(({ _id, generation, seq }) => ({
      deleteOne: { filter: { _id, _generation: sameGeneration(generation), _seq: seq, _cleared: seq } },
    })),
    { ordered: false },
  );
}
