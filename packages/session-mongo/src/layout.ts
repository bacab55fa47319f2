import { createHash, randomInt } from 'node:crypto';

import { Int32, Long } from 'mongodb';
import type { Collection, Filter, MongoClient, ObjectId, WithId } from 'mongodb';

import type { Place } from './arguments.ts';
import type { ReplacedHistory } from './replaced.ts';

/** Integers as the driver reads them, and as they are written. */
export type Count = number | Int32 | Long | bigint;

/** An operation on the whole history. Those that append are remembered by the `_id` of their batch. */
export interface StoredOperation {
  readonly id: string;
  readonly digest: string;
  readonly version: string;
}

/** One per session. Members after `_generation` are ours; the Python SDK does not look at them. */
export interface SessionDocument {
  session_id: string;
  created_at?: Date;
  updated_at?: Date;
  /** Items ever reserved. */
  _seq?: Count | null;
  /** Of the history that counts; another one with each clear and replacement. */
  _generation?: Count | null;
  /** Items ever popped: a replacement notices that one went while it was prepared. */
  _pops?: Count | null;
  _operations?: StoredOperation[];
  /** What was replaced last: a pop that was under way knows by it whether it was first. */
  _replaced?: ReplacedHistory;
  /** The generation that the last clear, or the end of a life, made: with `_id` it says which operations are remembered (`Era`). */
  _since?: Count | null;
  /** `_seq` at the last clear: as long as nobody reserved since, by whatever SDK, there is no session (`isCleared`). */
  _cleared?: Count | null;
  /** Text of JSON: members may have any name. */
  metadata?: string;
  /** With `ttlMs`: the TTL index removes the session then. */
  expires_at?: Date;
  /** With `ttlMs`: no batch of the session goes before. */
  _kept_until?: Date;
}

/** As it is read. Its `_id` is of this life of the session alone: whoever comes after a removal makes another document. */
export type StoredDocument = WithId<SessionDocument>;

/** A session between its making, clears and ends of its life. An operation is remembered in the one in which it was made. */
export type Era = Pick<StoredDocument, '_id' | '_since'>;

/** One per batch. */
export interface MessageDocument {
  _id: string | ObjectId;
  session_id: string;
  /** Of the last item. */
  seq: Count;
  /** Absent in old documents: 0. */
  generation?: Count | null;
  /** Items as text; old documents have one text. */
  message_data?: unknown;
  /** Items that we popped from it. */
  _popped?: Count;
  /** Of ours, appended under an operation id. */
  operation?: { readonly digest: string; readonly version: string; readonly at: Date };
  expires_at?: Date;
}

/** Batches that are empty but remember an operation are put aside here, where nobody looks for items. */
export const PUT_ASIDE = -1;

export interface Collections {
  readonly client: MongoClient;
  readonly sessions: Collection<SessionDocument>;
  readonly messages: Collection<MessageDocument>;
}

/** Whatever the client prefers: of the primary, acknowledged, with numbers and dates as they are expected here. */
export function collectionsOf(client: MongoClient, { database, sessions, messages }: Place): Collections {
  const concern = client.options?.writeConcern;
  const options = {
    readPreference: 'primary' as const,
    raw: false,
    promoteValues: true,
    promoteLongs: true,
    useBigInt64: false,
    ignoreUndefined: true,
    ...(concern?.w === 0 && { writeConcern: { w: 'majority' as const } }),
  };
  const db = client.db(database);
  return {
    client,
    sessions: db.collection<SessionDocument>(sessions, options),
    messages: db.collection<MessageDocument>(messages, options),
  };
}

/** Explicitly: the driver would write large ones as doubles, which the Python SDK takes for none. */
export function integer(value: number): Int32 | Long {
  return value >= -(2 ** 31) && value < 2 ** 31 ? new Int32(value) : Long.fromNumber(value);
}

/** Anything but a whole number is 0, as in the Python SDK. */
export function countOf(value: unknown): number {
  if (typeof value === 'number') return Number.isInteger(value) ? value : 0;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Int32) return value.valueOf();
  return value instanceof Long ? value.toNumber() : 0;
}

/** A generation that nobody has, behind those of the next clears. */
export function unusedGeneration(current = 0): number {
  return current + randomInt(2 ** 30, 2 ** 31 - 1);
}

/** For a history that is cleared, or emptied to be removed: one that others hardly draw too, and before all that is being staged. */
export function emptiedGeneration(current: number): number {
  return current + randomInt(1, 2 ** 24);
}

/** Absent is the first. */
export function sameGeneration(generation: number): Count | { $in: (Count | null)[] } {
  return generation === 0 ? { $in: [integer(0), null] } : integer(generation);
}

/**
 * A document that stays after a clear, so that nobody sees what was reserved before it and comes late. It is no session:
 * stores do not list it, and whoever writes to it makes a new one.
 */
export function isCleared({ _seq, _cleared }: SessionDocument): boolean {
  return _cleared !== undefined && _cleared !== null && countOf(_cleared) === countOf(_seq);
}

/** Batches of a generation. Documents older than generations count as of the first. */
export function batchesOf(sessionId: string, generation: number): Filter<MessageDocument> {
  return { session_id: sessionId, generation: sameGeneration(generation) };
}

/** What stands for the id of an operation, which may be long. */
export function operationKey(operationId: string): string {
  return createHash('sha256').update(operationId).digest('base64url');
}

/** The `_id` of the batch of an operation: the same for whoever repeats it before the session is cleared or removed. */
export function batchKey({ _id, _since }: Era, key: string): string {
  return `op:${String(_id)}:${countOf(_since)}:${key}`;
}

/** Old documents hold one text in place of a list; what is no text is kept as it is. */
export function entriesOf(data: unknown): readonly unknown[] {
  return Array.isArray(data) ? data : [data];
}

/** Of a history, by its newest batch. */
export function versionOf(
  generation: number,
  newest?: { readonly seq: Count; readonly message_data?: unknown },
): string {
  return newest === undefined
    ? `${generation}:-1:0`
    : `${generation}:${countOf(newest.seq)}:${entriesOf(newest.message_data).length}`;
}
