import type { MaybePromise } from '../agent/tool.ts';
import { UserError } from '../base/errors.ts';
import { pythonJson } from '../base/json-encode.ts';
import { decodeItem } from './codec.ts';
import { SessionVersionConflictError } from './errors.ts';

/** One item as the store has it. */
export interface StoredRecord {
  /** `undefined`: the store has something there that is no text. */
  readonly text: string | undefined;
  /** What tells it from others when it is reported: a row id, an index. */
  readonly position: number;
}

export interface StoredHistory {
  /** Oldest first. */
  readonly records: readonly StoredRecord[];
  /** Of the same moment. */
  readonly version: string;
}

/** One atomic change. `texts` are items in the store's encoding. */
export type HistoryWrite = {
  /** The version that the history must have, else nothing is written: `versionConflict`. */
  readonly ifVersion?: string | undefined;
  /**
   * Stored in the same step as the change. An id that is stored already: nothing is written and the version of the first
   * time is the answer; stored with another digest: `operationMismatch`.
   */
  readonly operation?: HistoryOperationKey | undefined;
  /** Upkeep, not use: the time of the last update stays. Stores set it when they cut a history. */
  readonly upkeep?: boolean | undefined;
} & (
  | { readonly type: 'append'; readonly texts: readonly string[] }
  /** The newest valid records must be `expected` (`matchSuffix`), else nothing is written: `suffixMismatch`. */
  | { readonly type: 'replace_suffix'; readonly expected: readonly string[]; readonly texts: readonly string[] }
  /** All of the history. */
  | { readonly type: 'replace'; readonly texts: readonly string[] }
);

export interface HistoryOperationKey {
  readonly id: string;
  readonly digest: string;
}

/**
 * One session in a store: what a backend has to give so that `StoredSession` makes a session of it. Calls that change
 * something come one after the other. Errors of the driver pass through unchanged.
 */
export interface HistoryBackend {
  /**
   * The newest `count` records, or all, as one moment saw them; corrupt ones count. 0: the version alone. A session that does
   * not exist is empty, and a read makes nothing.
   */
  // A property: a method of fewer kinds of arguments would be taken for it.
  readonly read: (count: number | undefined) => MaybePromise<StoredHistory>;
  /** All or nothing, and no other write in between. Gives the version afterwards. */
  write(change: HistoryWrite): MaybePromise<string>;
  /** Removes the newest record, valid or not; nobody else gets the same one. */
  pop(): MaybePromise<StoredRecord | undefined>;
  /** Items, metadata and operations of this session. */
  clear(): MaybePromise<void>;
  /** Rejects where the store does not answer. Default: `read(0)`. */
  ping?(): MaybePromise<unknown>;
  /** Lets go of a client of its own. Without it `close()` of the session does nothing. */
  close?: (() => MaybePromise<void>) | undefined;
  /** Whether a write that failed with this error may have been stored all the same. Default: no. */
  outcomeUnknown?(error: unknown): boolean;
}

// ---- what backends throw

export function operationMismatch(): UserError {
  return new UserError(
    'This operation id was used for another change; nothing was changed. An operation id belongs to one change.',
    { code: 'session_operation_mismatch' },
  );
}

export function suffixMismatch(): UserError {
  return new UserError('The history does not end with the expected items; nothing was changed.', {
    code: 'session_suffix_mismatch',
  });
}

export function versionConflict(sessionId: string, expected: string, actual: string): SessionVersionConflictError {
  return new SessionVersionConflictError(
    'The history was changed since it was read; nothing was written. Read it again.',
    { sessionId, expected, actual },
  );
}

/**
 * Which records hold the expected items at the end: their indexes, oldest first. `undefined`: the newest valid records are
 * others. Fewer than expected: there are not enough valid ones among these records. The order of members does not count;
 * corrupt records in between are passed over.
 */
export function matchSuffix(records: readonly StoredRecord[], expected: readonly string[]): number[] | undefined {
  const found: number[] = [];
  for (let index = records.length - 1; index >= 0 && found.length < expected.length; index--) {
    const text = records[index]?.text;
    const wanted = expected[expected.length - 1 - found.length];
    if (text === wanted || (text !== undefined && sameItem(text, wanted ?? ''))) found.push(index);
    else if (text !== undefined && decodeItem(text) !== undefined) return undefined;
  }
  return found.toReversed();
}

function sameItem(stored: string, expected: string): boolean {
  const item = decodeItem<object>(stored);
  return item !== undefined && pythonJson(item) === pythonJson(decodeItem<object>(expected));
}
