import { decodeItem, SessionError } from '@agents/core/session';

import type { Row, Statements } from './statements.ts';

/** Rows fetched at once, and items decoded between looks at the clock. */
const PAGE = 500;
/** Reading a long history lets others run this often. */
const YIELD_AFTER_MS = 15;
const ATTEMPTS = 10;

export interface History<T> {
  /** Oldest first. */
  readonly items: T[];
  /** Id of the newest row that was there; 0: none. */
  readonly newestId: number;
}

export interface ReadArgs {
  readonly sessionId: string;
  /** `undefined`: all. */
  readonly limit: number | undefined;
  /** Calls with the statements, waiting for locks. */
  readonly query: <R>(work: (statements: Statements) => R) => Promise<R>;
  readonly corrupt: (row: Row) => void;
}

/**
 * The newest valid items as one moment saw them. A long history is read in pages, and others run in between; rows are
 * only ever removed from the newest on, so what was read is of one moment as long as the newest row of the first page is
 * still there, and is read again if it is not.
 */
export async function readHistory<T extends object>(args: ReadArgs): Promise<History<T>> {
  for (let attempt = 0; ; attempt++) {
    const history = await readPages<T>(args, attempt < ATTEMPTS ? PAGE : Number.MAX_SAFE_INTEGER);
    if (history !== undefined) return history;
  }
}

/** `undefined`: what was read was removed meanwhile. */
async function readPages<T extends object>(
  { sessionId, limit = Number.MAX_SAFE_INTEGER, query, corrupt }: ReadArgs,
  page: number,
): Promise<History<T> | undefined> {
  let count = Math.min(limit, page);
  let rows = await query((statements) => statements.newest(sessionId, count));
  const newestId = rows[0]?.id ?? 0;
  const items: T[] = [];
  const corruptRows: Row[] = [];
  let pages = 1;
  let lastYield = performance.now();
  for (;;) {
    for (const row of rows) {
      const item = decodeRow<T>(row);
      if (item === undefined) corruptRows.push(row);
      else items.push(item);
      if (items.length % 50 === 0 && performance.now() - lastYield > YIELD_AFTER_MS) {
        await new Promise<void>((resolve) => void setImmediate(resolve));
        lastYield = performance.now();
      }
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < count || items.length >= limit) break;
    // Corrupt rows do not count: the window grows until there are enough valid ones.
    count = Math.min(page, Math.max(2 * count, 16));
    const next = count;
    rows = await query((statements) => statements.newest(sessionId, next, last.id));
    pages++;
  }
  if (pages > 1 && !(await query((statements) => statements.hasMessage(sessionId, newestId)))) return undefined;
  for (const row of corruptRows) corrupt(row);
  const newest = items.length > limit ? items.slice(0, limit) : items;
  return { items: newest.toReversed(), newestId };
}

/** The newest `count` valid rows, newest first, inside a transaction. */
export function newestValid(
  statements: Statements,
  sessionId: string,
  count: number,
): { readonly id: number; readonly text: string }[] {
  const found: { id: number; text: string }[] = [];
  let before: number | undefined;
  while (found.length < count) {
    const rows = statements.newest(sessionId, count, before);
    for (const row of rows) {
      before = row.id;
      if (found.length < count && decodeRow(row) !== undefined) found.push({ id: before, text: row.text as string });
    }
    if (rows.length < count) break;
  }
  return found;
}

export function decodeRow<T extends object>(row: Row): T | undefined {
  return typeof row.text === 'string' ? decodeItem<T>(row.text) : undefined;
}

export function corruptError(sessionId: string, row: Row): SessionError {
  return new SessionError(
    `The record with id ${row.id} is not the JSON text of an object. Repair or delete it, or read with corruptItems: 'skip'.`,
    { sessionId },
  );
}
