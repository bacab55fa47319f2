import { versionConflict } from '@agents/core/session';
import type { StoredRecord } from '@agents/core/session';

import { batchesOf, countOf, integer, versionOf } from './layout.ts';
import { isCurrent, newestBatch, readState, recordsOf } from './read.ts';
import type { Batch, Reading } from './read.ts';

/** Records and characters of a part. */
const PART_ITEMS = 500;
const PART_SIZE = 1024 * 1024;

/**
 * The history as it is now, from its oldest record on, in parts.
 *
 * @throws SessionVersionConflictError when some of it goes before it was read
 */
export async function* readParts(scope: Reading): AsyncGenerator<readonly StoredRecord[]> {
  const { messages, sessionId } = scope;
  const state = await readState(scope);
  const { generation } = state;
  const newest = await newestBatch(scope, batchesOf(sessionId, generation));
  if (newest === undefined || !isCurrent(newest, state)) return;
  const version = versionOf(generation, newest);
  const all = { ...batchesOf(sessionId, generation), seq: { $lte: integer(countOf(newest.seq)) } };
  const cursor = messages.find(
    { ...all, message_data: { $ne: [] } },
    { sort: { seq: 1 }, projection: { _id: 0, seq: 1, message_data: 1, expires_at: 1 } },
  );
  /** As long as the end of it is there, and counts, all of it does. */
  const check = async (): Promise<void> => {
    const end = await newestBatch(scope, all);
    const now = await readState(scope);
    const actual = now.expired ? versionOf(now.generation) : versionOf(now.generation, end);
    if (actual !== version) throw versionConflict(sessionId, version, actual);
  };
  let part: Batch[] = [];
  for await (const batch of cursor) {
    part.push(batch);
    if (!isPart(part)) continue;
    await check();
    yield recordsOf(part.toReversed());
    part = [];
  }
  await check();
  if (part.length > 0) yield recordsOf(part.toReversed());
}

function isPart(batches: readonly Batch[]): boolean {
  let items = 0;
  let size = 0;
  for (const { message_data: data } of batches) {
    const texts = Array.isArray(data) ? data : [data];
    items += texts.length;
    for (const text of texts) size += typeof text === 'string' ? text.length : 0;
  }
  return items >= PART_ITEMS || size >= PART_SIZE;
}
