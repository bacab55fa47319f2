import type { StoredRecord } from '@agents/core/session';

import type { Scope } from './history.ts';
import { batchesOf, countOf, entriesOf, integer, PUT_ASIDE, sameGeneration } from './layout.ts';
import type { MessageDocument } from './layout.ts';
import { wentBefore } from './replaced.ts';
import { afterCommit, commit } from './outcome.ts';
import { isCurrent, readState } from './read.ts';

/** Operations of emptied batches that are remembered: the last ones in any case, the others for a day. */
const REMEMBER_LAST = 64;
const REMEMBER_MS = 24 * 60 * 60 * 1000;

/** Without the newest entry; old documents have but one. */
const shortened = [
  {
    $set: {
      message_data: {
        $cond: [
          { $isArray: '$message_data' },
          { $slice: ['$message_data', { $subtract: [{ $size: '$message_data' }, 1] }] },
          [],
        ],
      },
      _popped: { $add: [{ $ifNull: ['$_popped', integer(0)] }, integer(1)] },
    },
  },
];

/** One update takes the newest entry: nobody else gets it. Then it is looked whether the generation still counts. */
export async function pop(
  scope: Scope,
  guess: number | undefined,
): Promise<{ record: StoredRecord | undefined; generation: number }> {
  const { messages, sessionId } = scope;
  for (let generation = guess ?? (await readState(scope)).generation; ;) {
    const claimed = await commit(scope, () =>
      messages.findOneAndUpdate({ ...batchesOf(sessionId, generation), message_data: { $ne: [] } }, shortened, {
        sort: { seq: -1 },
        returnDocument: 'before',
        projection: { seq: 1, operation: 1, expires_at: 1, _popped: 1, message_data: { $slice: -2 } },
      }),
    );
    const counts = claimed === null ? undefined : await afterCommit(() => confirm(scope, generation, claimed));
    if (claimed !== null && counts === generation) {
      const rest = entriesOf(claimed.message_data);
      if (rest.length === 1) await removeEmpty(scope, generation, claimed);
      return { record: recordOf(claimed, rest.at(-1)), generation };
    }
    // It was cleared, or replaced with what was taken: that belongs to nobody any more. Operations are remembered all the same.
    if (claimed !== null && claimed.operation === undefined)
      await ignoringErrors(messages.deleteOne({ _id: claimed._id, message_data: [] }));
    const state = await readState(scope);
    if (state.expired || state.generation === generation) return { record: undefined, generation };
    generation = state.generation;
  }
}

/**
 * Counts the pop, so that a replacement under way notices it. Gives the generation if it counts, or if the item was taken
 * from it before it was replaced.
 */
async function confirm(scope: Scope, generation: number, claimed: MessageDocument): Promise<number | undefined> {
  const { matchedCount } = await scope.sessions.updateOne(
    {
      session_id: scope.sessionId,
      _generation: sameGeneration(generation),
      expires_at: { $not: { $lte: new Date() } },
    },
    { $inc: { _pops: 1 } },
  );
  if (matchedCount === 1) return generation;
  const state = await readState(scope);
  if (wentBefore(claimed, generation, state.document?._replaced)) return generation;
  // Batches may be older than documents of sessions, or what is left of one.
  return state.document === undefined && state.generation === generation && isCurrent(claimed, state)
    ? generation
    : undefined;
}

/** Nobody sees empty batches; what stays after a failure is removed by the next pop that empties one. */
async function removeEmpty(scope: Scope, generation: number, { seq, operation }: MessageDocument): Promise<void> {
  const { messages, sessionId } = scope;
  const empty = { ...batchesOf(sessionId, generation), message_data: [], seq: { $gte: integer(countOf(seq)) } };
  const work: Promise<unknown>[] = [ignoringErrors(messages.deleteMany({ ...empty, operation: { $exists: false } }))];
  if (operation !== undefined)
    work.push(
      ignoringErrors(
        messages.updateMany({ ...empty, operation: { $exists: true } }, { $set: { generation: integer(PUT_ASIDE) } }),
      ),
      ignoringErrors(forgetOld(scope)),
    );
  await Promise.all(work);
}

async function forgetOld({ messages, sessionId }: Scope): Promise<void> {
  const aside = batchesOf(sessionId, PUT_ASIDE);
  const [old] = await messages
    .find(aside, { sort: { seq: -1 }, skip: REMEMBER_LAST, limit: 1, projection: { seq: 1 } })
    .toArray();
  if (old === undefined) return;
  const before = new Date(Date.now() - REMEMBER_MS);
  await messages.deleteMany({ ...aside, seq: { $lte: integer(countOf(old.seq)) }, 'operation.at': { $lt: before } });
}

function recordOf({ seq }: MessageDocument, entry: unknown): StoredRecord {
  return { text: typeof entry === 'string' ? entry : undefined, position: countOf(seq) };
}

/** For what is only tidied up: the change itself has been made. */
export async function ignoringErrors(work: Promise<unknown>): Promise<void> {
  await work.catch(() => undefined);
}
