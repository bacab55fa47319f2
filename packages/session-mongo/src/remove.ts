import type { Filter } from 'mongodb';

import { countOf, integer, sameGeneration } from './layout.ts';
import type { Collections, SessionDocument } from './layout.ts';

/**
 * Removes a session that is as it was read and that matches: first its history, so that nothing of it shows again without
 * the document of the session; then that. False: it was used meanwhile.
 */
export async function removeSession(
  { sessions, messages }: Collections,
  { session_id, _generation, _seq }: SessionDocument,
  matching: Filter<SessionDocument> = {},
): Promise<boolean> {
  const emptied = await sessions.findOneAndUpdate(
    { session_id, _generation: _generation ?? null, _seq: _seq ?? null, ...matching },
    { $inc: { _generation: integer(1) }, $unset: { metadata: '', _operations: '' } },
    { returnDocument: 'after', projection: { _generation: 1 } },
  );
  if (emptied === null) return false;
  const generation = countOf(emptied._generation);
  const older = [{ generation: { $lt: integer(generation) } }, { generation: null }];
  await messages.deleteMany({ session_id, $or: older });
  await sessions.deleteOne({ session_id, _generation: sameGeneration(generation), _seq: _seq ?? null });
  return true;
}
