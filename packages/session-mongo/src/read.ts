import type { StoredHistory, StoredRecord } from '@agents/core/session';
import type { Filter, FindOptions } from 'mongodb';

import { batchesOf, countOf, entriesOf, versionOf } from './layout.ts';
import type { Collections, MessageDocument, StoredDocument } from './layout.ts';

/** Batches that the server sends at once, at most. */
const PAGE = 100;

export interface Reading extends Collections {
  readonly sessionId: string;
}

/** What a session's document says. */
export interface State {
  readonly document: StoredDocument | undefined;
  readonly generation: number;
  /** The document is there, its life is over: the server has not removed it yet. */
  readonly expired: boolean;
}

export type Batch = Pick<MessageDocument, 'seq' | 'message_data' | 'expires_at'>;

export async function readState({ sessions, sessionId }: Reading): Promise<State> {
  const document = await sessions.findOne({ session_id: sessionId }, { projection: { metadata: 0 } });
  return stateOf(document ?? undefined);
}

export function stateOf(document: StoredDocument | undefined): State {
  const expired = document?.expires_at instanceof Date && document.expires_at.getTime() <= Date.now();
  return { document, generation: countOf(document?._generation), expired };
}

/**
 * The newest records of one moment. Batches of a generation are only removed after another one counts: what was read is
 * good if the generation still counts afterwards, and is read again if not. So it may be guessed.
 */
export async function readHistory(
  scope: Reading,
  count: number | undefined,
  guess: number | undefined,
): Promise<{ history: StoredHistory; generation: number }> {
  for (let generation = guess ?? (await readState(scope)).generation; ;) {
    const batches = await newestBatches(scope, generation, count);
    const state = await readState(scope);
    if (state.generation !== generation) {
      generation = state.generation;
      continue;
    }
    const current = batches.filter((batch) => isCurrent(batch, state));
    const version = versionOf(generation, current[0]);
    return { history: { records: recordsOf(current, count), version }, generation };
  }
}

/** The version alone, of a generation that was read. */
export async function readVersion(scope: Reading, state: State): Promise<string> {
  const [newest] = await newestBatches(scope, state.generation, 0);
  return versionOf(state.generation, newest && isCurrent(newest, state) ? newest : undefined);
}

/** The newest batch that is not empty, among those that match. */
export async function newestBatch(
  { messages }: Collections,
  filter: Filter<MessageDocument>,
): Promise<Batch | undefined> {
  const projection = { _id: 0, seq: 1, message_data: 1, expires_at: 1 };
  return (
    (await messages.findOne({ ...filter, message_data: { $ne: [] } }, { projection, sort: { seq: -1 } })) ?? undefined
  );
}

/** Newest first; as many as hold `count` entries, at least one. */
async function newestBatches(
  { messages, sessionId }: Reading,
  generation: number,
  count: number | undefined,
): Promise<Batch[]> {
  const options: FindOptions = { projection: { _id: 0, seq: 1, message_data: 1, expires_at: 1 }, sort: { seq: -1 } };
  if (count !== undefined) {
    // No batch is empty, so no more are needed.
    options.limit = Math.max(1, count);
    options.batchSize = Math.min(options.limit, PAGE);
  }
  const found: Batch[] = [];
  let entries = 0;
  for await (const batch of messages.find(
    { ...batchesOf(sessionId, generation), message_data: { $ne: [] } },
    options,
  )) {
    found.push(batch);
    entries += entriesOf(batch.message_data).length;
    if (count !== undefined && entries >= count) break;
  }
  return found;
}

/** Without the document of its session a batch with a life is a remainder of one that is over. */
export function isCurrent(batch: Batch, { document, expired }: State): boolean {
  return !expired && (document !== undefined || batch.expires_at === undefined);
}

/** Oldest first. */
export function recordsOf(newestFirst: readonly Batch[], count?: number): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (const { seq, message_data } of newestFirst.toReversed()) {
    const entries = entriesOf(message_data);
    for (const [index, entry] of entries.entries())
      records.push({
        text: typeof entry === 'string' ? entry : undefined,
        position: countOf(seq) - (entries.length - 1 - index),
      });
  }
  return count === undefined ? records : records.slice(Math.max(0, records.length - count));
}
