import { versionConflict } from '@agents/core/session';
import type { HistoryOperationKey, HistoryWrite } from '@agents/core/session';
import { ObjectId } from 'mongodb';

import { checkSize } from './batches.ts';
import type { Scope } from './history.ts';
import { inLane } from './lane.ts';
import { batchesOf, countOf, integer, PUT_ASIDE, versionOf } from './layout.ts';
import type { MessageDocument } from './layout.ts';
import { named } from './lives.ts';
import { appliedVersion, versionAmong } from './operations.ts';
import { afterCommit, commit, isDuplicate } from './outcome.ts';
import { newestBatch, readState, readVersion } from './read.ts';
import { reserve, reserveAt } from './reserve.ts';
import type { Reservation } from './reserve.ts';

/**
 * Reserves numbers, then inserts the batch as one document: that is the moment at which it counts. The operation id is in
 * its `_id`, so that whoever repeats it meets the first one.
 */
export async function append(
  scope: Scope,
  { texts, ifVersion, upkeep }: HistoryWrite,
  key: HistoryOperationKey | undefined,
): Promise<string> {
  checkSize(texts, scope.sessionId);
  if (texts.length === 0) return await appendNothing(scope, ifVersion, key);
  const lane = JSON.stringify([scope.messages.namespace, scope.sessionId]);
  return await inLane(scope.client, lane, scope.timeoutMs, async () => {
    if (ifVersion !== undefined) return await appendAt(scope, texts, ifVersion, key);
    const place = await reserve(scope, texts.length, upkeep === true);
    const known = key && versionAmong(place.before, key);
    if (known !== undefined) return known;
    return (await insert(scope, batchOf(scope, texts, place, key), place, key)).version;
  });
}

/** The version of the batch; `before`: of the first time, where its operation was applied before. */
async function insert(
  scope: Scope,
  batch: MessageDocument,
  place: Reservation,
  key: HistoryOperationKey | undefined,
): Promise<{ version: string; before?: boolean }> {
  try {
    await commit(scope, () => scope.messages.insertOne(batch));
  } catch (error) {
    const known = key && isDuplicate(error) ? await appliedVersion(scope, key, place.before) : undefined;
    if (known === undefined) throw error;
    return { version: known, before: true };
  }
  return { version: versionOf(place.generation, batch) };
}

export function batchOf(
  { sessionId }: Scope,
  entries: readonly unknown[],
  { generation, last, expiresAt }: Pick<Reservation, 'generation' | 'last' | 'expiresAt'>,
  key?: HistoryOperationKey,
): MessageDocument {
  const batch = {
    session_id: sessionId,
    seq: integer(last),
    generation: integer(generation),
    message_data: entries,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  };
  if (key === undefined) return { _id: new ObjectId(), ...batch };
  const operation = {
    digest: key.digest,
    version: versionOf(generation, { seq: last, message_data: entries }),
    at: new Date(),
  };
  return { _id: key.id, ...batch, operation };
}

async function appendAt(
  scope: Scope,
  texts: readonly string[],
  ifVersion: string,
  key: HistoryOperationKey | undefined,
): Promise<string> {
  const state = await readState(scope);
  const known = key && (await appliedVersion(scope, key, state.document));
  if (known !== undefined) return known;
  const actual = await readVersion(scope, state);
  if (actual !== ifVersion) throw versionConflict(scope.sessionId, ifVersion, actual);
  const place = await reserveAt(scope, texts.length, state);
  if (place === undefined) throw versionConflict(scope.sessionId, ifVersion, await currentVersion(scope));
  const batch = batchOf(scope, texts, place, key);
  const inserted = await insert(scope, batch, place, key);
  if (inserted.before === true) return inserted.version;
  const isFirst = state.expired || state.document === undefined;
  const expected = isFirst ? versionOf(place.generation) : ifVersion;
  const found = await afterCommit(() => versionBehind(scope, batch._id, place));
  if (found === undefined || found === expected) return inserted.version;
  await afterCommit(() => scope.messages.deleteOne(named(batch)));
  throw versionConflict(scope.sessionId, ifVersion, found);
}

/**
 * What a batch stands behind: who had reserved before and inserted meanwhile stands between. `undefined`: the history was
 * cleared or replaced after it.
 *
 * @throws SessionVersionConflictError when somebody replaces the history and nobody can say whether the batch was in it
 */
async function versionBehind(
  scope: Scope,
  _id: MessageDocument['_id'],
  { generation, last }: Reservation,
): Promise<string | undefined> {
  const before = await newestBatch(scope, { ...batchesOf(scope.sessionId, generation), seq: { $lt: integer(last) } });
  const state = await readState(scope);
  if (state.generation === generation) return versionOf(generation, before);
  const batch = await scope.messages.findOne({ _id }, { projection: { generation: 1 } });
  if (batch === null || countOf(batch.generation) === PUT_ASIDE) return undefined;
  const now = await readVersion(scope, state);
  // As long as it is in the old history, whoever replaces that may take it along or put it behind the new one.
  if (countOf(batch.generation) === generation)
    throw versionConflict(scope.sessionId, versionOf(generation, before), now);
  return now;
}

/** Nothing but the memory of an operation, if there is one. */
async function appendNothing(
  scope: Scope,
  ifVersion: string | undefined,
  key: HistoryOperationKey | undefined,
): Promise<string> {
  const state = await readState(scope);
  const known = key && (await appliedVersion(scope, key, state.document));
  if (known !== undefined) return known;
  const version = await readVersion(scope, state);
  if (ifVersion !== undefined && version !== ifVersion) throw versionConflict(scope.sessionId, ifVersion, version);
  if (key !== undefined) {
    const memory = { ...batchOf(scope, [], { generation: PUT_ASIDE, last: 0, expiresAt: undefined }), _id: key.id };
    const operation = { digest: key.digest, version, at: new Date() };
    try {
      await commit(scope, () => scope.messages.insertOne({ ...memory, operation }));
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return (await appliedVersion(scope, key, state.document)) ?? version;
    }
  }
  return version;
}

async function currentVersion(scope: Scope): Promise<string> {
  return await readVersion(scope, await readState(scope));
}
