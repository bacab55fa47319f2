import type { AnyBulkWriteOperation, Filter } from 'mongodb';

import { countOf, integer, sameGeneration } from './layout.ts';
import type { Collections, SessionDocument } from './layout.ts';

/** What has to be known of a session to remove it. */
export type Removable = Pick<SessionDocument, 'session_id' | '_generation' | '_seq'>;

/** @returns whether it was; false: it was used meanwhile */
export async function removeSession(collections: Collections, session: Removable): Promise<boolean> {
  return (await removeSessions(collections, [session])).has(session.session_id);
}

/**
 * Removes sessions that are as they were read and that match: first their histories, so that nothing of them shows again
 * without the documents of the sessions; then these. Some hundred at most: the commands name each.
 *
 * @returns the ids of those that were removed; the others were used meanwhile
 */
export async function removeSessions(
  collections: Collections,
  sessions: readonly Removable[],
  matching: Filter<SessionDocument> = {},
): Promise<Set<string>> {
  if (sessions.length === 0) return new Set();
  await collections.sessions.bulkWrite(
    sessions.map((one) => emptying(one, matching)),
    { ordered: false },
  );
  return await removeEmptied(collections, sessions, matching);
}

/** What was appended counts no more. */
function emptying(
  { session_id, _generation, _seq }: Removable,
  matching: Filter<SessionDocument>,
): AnyBulkWriteOperation<SessionDocument> {
  return {
    updateOne: {
      filter: { session_id, _generation: _generation ?? null, _seq: _seq ?? null, ...matching },
      update: { $inc: { _generation: integer(1) }, $unset: { metadata: '', _operations: '' } },
    },
  };
}

async function removeEmptied(
  { sessions, messages }: Collections,
  before: readonly Removable[],
  matching: Filter<SessionDocument>,
): Promise<Set<string>> {
  const read = new Map(before.map((one) => [one.session_id, one]));
  const found = await sessions
    .find(
      { session_id: { $in: [...read.keys()] }, ...matching },
      { projection: { session_id: 1, _generation: 1, _seq: 1 } },
    )
    .toArray();
  const emptied = found.filter(({ session_id, _generation, _seq }) => {
    const was = read.get(session_id);
    return countOf(_generation) === countOf(was?._generation) + 1 && countOf(_seq) === countOf(was?._seq);
  });
  const ids = emptied.map(({ session_id }) => session_id);
  if (ids.length === 0) return new Set();
  await messages.deleteMany({
    session_id: { $in: ids },
    $or: emptied.flatMap(({ session_id, _generation }) => [
      { session_id, generation: { $lt: integer(countOf(_generation)) } },
      { session_id, generation: null },
    ]),
  });
  await sessions.deleteMany({
    session_id: { $in: ids },
    $or: emptied.map(({ session_id, _generation, _seq }) => ({
      session_id,
      _generation: sameGeneration(countOf(_generation)),
      _seq: _seq ?? null,
    })),
  });
  return new Set(ids);
}
