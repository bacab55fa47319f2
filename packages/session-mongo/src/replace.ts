import { matchSuffix, SessionBusyError, suffixMismatch, versionConflict } from '@agents/core/session';
import type { HistoryOperationKey, HistoryWrite } from '@agents/core/session';
import type { Filter, ObjectId } from 'mongodb';

import { batchOf } from './append.ts';
import { checkSizes, chunksOf } from './batches.ts';
import type { Scope } from './history.ts';
import { batchesOf, countOf, entriesOf, integer, PUT_ASIDE, unusedGeneration, versionOf } from './layout.ts';
import type { MessageDocument, SessionDocument, StoredOperation } from './layout.ts';
import { exactly, PIECE } from './lives.ts';
import { appliedVersion, REMEMBER_LAST } from './operations.ts';
import { commit, isDuplicate, isInDoubt } from './outcome.ts';
import { ignoringErrors } from './pop.ts';
import { isCurrent, readState, readVersion, recordsOf } from './read.ts';
import { replacedHistory } from './replaced.ts';
import type { State } from './read.ts';
import { beginAnew, newLife, unchanged } from './reserve.ts';

/** Changes of others that a replacement of the end gives way to. */
const ATTEMPTS = 20;

type Replacement = Extract<HistoryWrite, { type: 'replace' | 'replace_suffix' }>;

/**
 * Writes the new history under a generation that nobody has, then makes it the one that counts by one update, if nobody
 * appended, popped, cleared or replaced meanwhile. The operation is remembered in the same update.
 */
export async function replace(
  scope: Scope,
  change: Replacement,
  key: HistoryOperationKey | undefined,
): Promise<string> {
  checkSizes(change.texts, scope.sessionId);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const state = await readState(scope);
    if (state.expired) {
      await beginAnew(scope, state);
      continue;
    }
    const known = key && (await appliedVersion(scope, key, state));
    if (known !== undefined) return known;
    const all = await allBatches(scope, state.generation);
    const old = all.filter((batch) => isCurrent(batch, state));
    const actual = versionOf(
      state.generation,
      old.findLast(({ message_data }) => entriesOf(message_data).length > 0),
    );
    if (change.ifVersion !== undefined && actual !== change.ifVersion)
      throw versionConflict(scope.sessionId, change.ifVersion, actual);
    const entries = change.type === 'replace' ? change.texts : withoutSuffix(old, change);
    const version = await publish(scope, state, entries, { key, upkeep: change.upkeep === true, old: all });
    if (version !== undefined) return version;
    // The end may still be what was expected; a whole history is replaced as it was read, or not at all.
    if (change.type === 'replace') {
      const after = await readState(scope);
      const replayed = key && (await appliedVersion(scope, key, after));
      if (replayed !== undefined) return replayed;
      throw versionConflict(scope.sessionId, actual, await readVersion(scope, after));
    }
  }
  throw new SessionBusyError('Others changed the history again and again; nothing was written. Try again.', {
    sessionId: scope.sessionId,
  });
}

/** What the history is after it. @throws UserError `session_suffix_mismatch` */
function withoutSuffix(
  old: readonly MessageDocument[],
  { expected, texts }: Extract<Replacement, { type: 'replace_suffix' }>,
): unknown[] {
  const records = recordsOf(old.toReversed());
  const matched = matchSuffix(records, expected);
  if (matched?.length !== expected.length) throw suffixMismatch();
  const gone = new Set(matched);
  const kept = old.flatMap(({ message_data }) => entriesOf(message_data)).filter((_, index) => !gone.has(index));
  return [...kept, ...texts];
}

/** Oldest first, with remainders of a life that is over. */
async function allBatches({ messages, sessionId }: Scope, generation: number): Promise<MessageDocument[]> {
  return await messages.find(batchesOf(sessionId, generation), { sort: { seq: 1 } }).toArray();
}

interface Publication {
  readonly key: HistoryOperationKey | undefined;
  readonly upkeep: boolean;
  /** What goes: remainders of a life that is over, too. */
  readonly old: readonly MessageDocument[];
}

/** The version afterwards. `undefined`: somebody else changed the history, and nothing was. */
async function publish(
  scope: Scope,
  state: State,
  entries: readonly unknown[],
  { key, upkeep, old }: Publication,
): Promise<string | undefined> {
  const { document } = state;
  const generation = unusedGeneration(state.generation);
  const now = new Date();
  const expiresAt = batchesExpireAt(scope, document, now);
  let last = countOf(document?._seq) - 1;
  const staged = chunksOf(entries).map((chunk) =>
    batchOf(scope, chunk, { generation, last: (last += chunk.length), expiresAt }),
  );
  const version = versionOf(generation, staged.at(-1));
  const fields = {
    ...publishedFields(scope, document, now, upkeep),
    _generation: integer(generation),
    _seq: integer(last + 1),
    _replaced: replacedHistory(state.generation, old),
  };
  try {
    if (staged.length > 0) await scope.messages.insertMany(staged);
    const operation = key && { id: key.id, digest: key.digest, version };
    const _id = await commit(scope, () => exchange(scope, state, fields, operation));
    if (_id !== undefined) {
      await ignoringErrors(retire(scope, _id, state.generation, old));
      return version;
    }
  } catch (error) {
    // It may count already.
    if (isInDoubt(error)) throw error;
    await ignoringErrors(discard(scope, generation));
    throw error;
  }
  await ignoringErrors(discard(scope, generation));
  return undefined;
}

/** When batches that are written now may go, at the earliest. */
export function batchesExpireAt(
  { ttlMs }: Pick<Scope, 'ttlMs'>,
  document: SessionDocument | undefined,
  now: Date,
): Date | undefined {
  return newLife(now, ttlMs)._kept_until ?? document?._kept_until;
}

/** Of the session's document when another history is published: what does not depend on that history. Upkeep is no use of a session. */
export function publishedFields(
  scope: Pick<Scope, 'sessionId' | 'ttlMs'>,
  document: SessionDocument | undefined,
  now: Date,
  upkeep = false,
): SessionDocument {
  const { expires_at } = newLife(now, scope.ttlMs);
  const keptUntil = batchesExpireAt(scope, document, now);
  return {
    session_id: scope.sessionId,
    ...(keptUntil !== undefined && { _kept_until: keptUntil }),
    ...((!upkeep || document === undefined) && {
      updated_at: now,
      ...(expires_at !== undefined && { expires_at }),
    }),
  };
}

/** Makes another generation count. Gives the `_id` of the session; `undefined`: it is not what it was. */
export async function exchange(
  { sessions }: Scope,
  { document }: State,
  fields: SessionDocument,
  operation: StoredOperation | undefined,
  matching: Filter<SessionDocument> = {},
): Promise<ObjectId | undefined> {
  if (document === undefined) {
    try {
      const first = { ...fields, created_at: new Date(), ...(operation && { _operations: [operation] }) };
      return (await sessions.insertOne(first)).insertedId;
    } catch (error) {
      if (isDuplicate(error)) return undefined;
      throw error;
    }
  }
  const { matchedCount } = await sessions.updateOne(
    { ...unchanged(document), ...matching },
    {
      $set: fields,
      $unset: { _cleared: '' },
      ...(operation && { $push: { _operations: { $each: [operation], $slice: -REMEMBER_LAST } } }),
    },
  );
  return matchedCount === 1 ? document._id : undefined;
}

/**
 * Removes the batches that were replaced, but for the memory of their operations. What is left of their generation was
 * inserted late, by somebody who had reserved before: it is put behind the new history.
 *
 * @param _id of the session: none that was made after this one was removed
 */
export async function retire(
  { sessions, messages, sessionId }: Scope,
  _id: ObjectId,
  generation: number,
  old: readonly Pick<MessageDocument, '_id' | 'generation' | 'operation'>[],
): Promise<void> {
  const aside = { $set: { generation: integer(PUT_ASIDE), message_data: [] } };
  for (let at = 0; at < old.length; at += PIECE) {
    const steps = old.slice(at, at + PIECE).map((batch) => {
      const filter = exactly(batch);
      return batch.operation === undefined ? { deleteOne: { filter } } : { updateOne: { filter, update: aside } };
    });
    await messages.bulkWrite(steps, { ordered: false });
  }
  for (const late of await messages.find(batchesOf(sessionId, generation)).toArray()) {
    const count = integer(entriesOf(late.message_data).length);
    // Nothing comes back after a clear.
    const place = await sessions.findOneAndUpdate(
      { _id, _generation: { $gt: integer(generation) }, _cleared: null },
      { $inc: { _seq: count } },
      { returnDocument: 'after', projection: { _generation: 1, _seq: 1 } },
    );
    if (place === null) return;
    const to = { generation: integer(countOf(place._generation)), seq: integer(countOf(place._seq) - 1) };
    await messages.updateOne(exactly(late), { $set: to });
  }
}

export async function discard({ messages, sessionId }: Scope, generation: number): Promise<void> {
  await messages.deleteMany(batchesOf(sessionId, generation));
}
