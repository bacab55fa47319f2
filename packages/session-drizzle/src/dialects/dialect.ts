import type { SQL } from 'drizzle-orm/sql/sql';

import type { Body, Row } from '../statement.ts';

export interface Append {
  readonly texts: readonly string[];
  readonly operation?: { readonly id: string; readonly digest: string } | undefined;
  /** Of a history that was emptied: the session's `updated_at` stays, and is the stamp. */
  readonly upkeep?: boolean | undefined;
}

/** Where a history ends. */
export interface Head {
  readonly version: string;
}

/**
 * The statements on the tables of one store. Whoever changes something locks the session first: with that lock held the
 * newest stamp and id can be relied on.
 */
export interface Dialect {
  /** Rows read at once; `undefined`: all, as the driver lets others run meanwhile. */
  readonly pageSize: number | undefined;
  /** Its `append` is one statement that takes the lock itself, and answers an operation that is known. */
  readonly appendsAlone: boolean;
  /** Whether the tables that Python does not make are there: `operations`, `metadata`. */
  found(): SQL;
  /** `id`, `text` and `touched` (of the session, for the version), newest first; `before`: older than that row. */
  newest(id: string, count: number | undefined, before?: Row): SQL;
  /** As `newest`, for readers, where a statement does not always see all that was committed before what it sees. */
  settled?(id: string, count: number | undefined): SQL;
  /** With pages: a row if the message with this id is there. */
  isThere?(id: unknown): SQL;
  /** Until the transaction ends; `create`: makes the row of a new session. */
  lock(id: string, create: boolean): Body<void>;
  head(id: string): Body<Head>;
  operation(id: string, operationId: string): Body<{ digest: string; result: string } | undefined>;
  /** In a transaction that holds the lock, but for dialects that append alone. Gives the version afterwards. */
  append(id: string, append: Append): Body<string>;
  /** By their ids, of which there is one at least, or all. */
  deleteMessages(id: string, which: readonly number[] | 'all'): Body<void>;
  takeNewest(id: string): Body<readonly Row[]>;
  /** Its row, operations and metadata. */
  deleteSession(id: string, found: Found): Body<void>;
  /** All but those of a day and the last 64. */
  forgetOperations(id: string): SQL;
}

/** Which tables are there. */
export interface Found {
  readonly operations: boolean;
  readonly metadata: boolean;
}

/**
 * Ids are never used again and rows go from the newest on, so the newest stands for all before it; the session's
 * `updated_at` is there for writers whose rows come in before it, as those of Python may.
 */
export function versionOf(newest: Row | undefined): string {
  if (newest === undefined) return '0';
  return `${String(newest['id'])}.${typeof newest['touched'] === 'string' ? newest['touched'] : ''}`;
}

export function headOf([newest]: readonly Row[]): Head {
  return { version: versionOf(newest) };
}
