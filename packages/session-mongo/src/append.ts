import { versionConflict } from '@agents/core/session';
import type { HistoryOperationKey, HistoryWrite } from '@agents/core/session';
import { ObjectId } from 'mongodb';

import { checkSize } from './batches.ts';
import type { Scope } from './history.ts';
import { inLane } from './lane.ts';
import { batchesOf, batchKey, countOf, integer, PUT_ASIDE, versionOf } from './layout.ts';
import type { MessageDocument } from './layout.ts';
import { appliedVersion, versionAmong } from './operations.ts';
import { afterCommit, commit, isDuplicate } from './outcome.ts';
import { newestBatch, readState, readVersion } from './read.ts';
import type { State } from './read.ts';
import { firstDocument, reserve, reserveAt } from './reserve.ts';
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
    const known = key && versionAmong(place.session, key);
    if (known !== undefined) return known;
    return (await insert(scope, batchFor(scope, texts, place, key), place, key)).version;
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
    const known =
      key && isDuplicate(error)
        ? await appliedVersion(scope, key, { document: place.session, expired: false })
        : undefined;
    if (known === undefined) throw error;
    return { version: known, before: true };
  }
  return { version: versionOf(place.generation, batch) };
}

export function batchOf(
  { sessionId }: Scope,
  entries: readonly unknown[],
  { generation, last, expiresAt }: Pick<Reservation, 'generation' | 'last' | 'expiresAt'>,
): MessageDocument {
  return {
    _id: new ObjectId(),
    session_id: sessionId,
    seq: integer(last),
    generation: integer(generation),
    message_data: entries,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  };
}

/** That of an operation has an `_id` that is the same for whoever repeats it, and remembers the version after it. */
function batchFor(
  scope: Scope,
  texts: readonly string[],
  place: Reservation,
  key?: HistoryOperationKey,
): MessageDocument {
  const batch = batchOf(scope, texts, place);
  if (key === undefined) return batch;
  const version = versionOf(place.generation, batch);
  return {
    ...batch,
    _id: batchKey(place.session, key.id),
    operation: { digest: key.digest, version, at: new Date() },
  };
}

async function appendAt(
  scope: Scope,
  texts: readonly string[],
  ifVersion: string,
  key: HistoryOperationKey | undefined,
): Promise<string> {
  const state = await readState(scope);
  const known = key && (await appliedVersion(scope, key, state));
  if (known !== undefined) return known;
  const actual = await readVersion(scope, state);
  if (actual !== ifVersion) throw versionConflict(scope.sessionId, ifVersion, actual);
  const place = await reserveAt(scope, texts.length, state);
  if (place === undefined) throw versionConflict(scope.sessionId, ifVersion, await currentVersion(scope));
  const batch = batchFor(scope, texts, place, key);
  const inserted = await insert(scope, batch, place, key);
  if (inserted.before === true) return inserted.version;
  // A session that was made, or begun anew, for it has nothing else.
  const expected = place.generation === state.generation ? ifVersion : versionOf(place.generation);
  const found = await afterCommit(() => versionBehind(scope, batch._id, place));
  if (found === undefined || found === expected) return inserted.version;
  await afterCommit(() => scope.messages.deleteOne({ _id: batch._id }));
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
  const state = key === undefined ? await readState(scope) : await rememberingState(scope);
  const known = key && (await appliedVersion(scope, key, state));
  if (known !== undefined) return known;
  const version = await readVersion(scope, state);
  if (ifVersion !== undefined && version !== ifVersion) throw versionConflict(scope.sessionId, ifVersion, version);
  if (key !== undefined && state.document !== undefined) {
    const place = { generation: PUT_ASIDE, last: 0, expiresAt: state.document._kept_until };
    const memory = { ...batchOf(scope, [], place), _id: batchKey(state.document, key.id) };
    const operation = { digest: key.digest, version, at: new Date() };
    try {
      await commit(scope, () => scope.messages.insertOne({ ...memory, operation }));
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return (await appliedVersion(scope, key, state)) ?? version;
    }
  }
  return version;
}

/** Where there is no session, a document that is none (`isCleared`) remembers for it. */
async function rememberingState(scope: Scope): Promise<State> {
  const state = await readState(scope);
  if (state.document !== undefined) return state;
  const first = await firstDocument(scope, 0);
  // Batches that were there before it are a session.
  const mark = countOf(first._generation) === 0 ? first : { ...first, _cleared: integer(0) };
  try {
    await scope.sessions.insertOne(mark);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  return await readState(scope);
}

async function currentVersion(scope: Scope): Promise<string> {
  return await readVersion(scope, await readState(scope));
}
