import type { SessionInfo, SessionPage } from '@agents/core/session';

import type { Database, Statement } from './driver.ts';
import type { TableNames } from './schema.ts';

/** A session as the tables have it. */
interface SessionRow {
  readonly id: unknown;
  readonly created: unknown;
  readonly updated: unknown;
  readonly data: unknown;
  readonly count?: unknown;
}

/** What stores do with the tables of sessions, beside what sessions do. */
export class StoreStatements {
  readonly #database: Database;
  readonly #names: TableNames;
  readonly #get: Statement;
  readonly #putMetadata: Statement;
  readonly #deleteMetadata: Statement;
  readonly #orphans: Statement;

  constructor(database: Database, names: TableNames) {
    const { sessions, messages, metadata } = names;
    this.#database = database;
    this.#names = names;
    this.#get = database.prepare(`${selectFrom(names, true, `"${sessions}"`)} WHERE s.session_id = ?`);
    this.#putMetadata = database.prepare(
      `INSERT INTO "${metadata}" (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data`,
    );
    this.#deleteMetadata = database.prepare(`DELETE FROM "${metadata}" WHERE session_id = ?`);
    this.#orphans = database.prepare(
      `SELECT count(DISTINCT session_id) AS count FROM "${messages}" WHERE session_id NOT IN (SELECT session_id FROM "${sessions}")`,
    );
  }

  get(sessionId: string): SessionInfo | undefined {
    const row = this.#get.get(sessionId) as SessionRow | undefined | null;
    return row ? infoOf(row) : undefined;
  }

  /** One page and the sort key and id of its last entry, with which the next one begins. */
  list(page: SessionPage): { sessions: SessionInfo[]; next?: (string | number)[] } {
    const { where, values } = conditionsOf(page, this.#names);
    const key = page.order === 'id' ? undefined : page.order === 'created' ? 'created_at' : 'updated_at';
    const order = key === undefined ? 'session_id' : `${key} DESC, session_id`;
    // The page is found first; metadata and counts are looked up for its entries alone.
    const inner = `(SELECT * FROM "${this.#names.sessions}" s ${where} ORDER BY ${order} LIMIT ?)`;
    const sql = `${selectFrom(this.#names, page.withCount, inner)} ORDER BY ${order.replaceAll(/(\w+_\w+)/g, 's.$1')}`;
    const rows = this.#database.prepare(sql).all(...values, page.limit) as SessionRow[];
    const last = rows.length === page.limit ? rows.at(-1) : undefined;
    const sessions = rows.map(infoOf);
    if (last === undefined) return { sessions };
    const time = key === undefined ? '' : String(page.order === 'created' ? last.created : last.updated);
    return { sessions, next: [time, String(last.id)] };
  }

  putMetadata(sessionId: string, data: string | undefined): void {
    if (data === undefined) this.#deleteMetadata.run(sessionId);
    else this.#putMetadata.run(sessionId, data);
  }

  /** Sessions that have messages and no row of their own: no list has them. */
  orphans(): number {
    return Number((this.#orphans.get() as { count: unknown }).count);
  }
}

function selectFrom({ messages, metadata }: TableNames, withCount: boolean, sessions: string): string {
  const count = withCount ? `, (SELECT count(*) FROM "${messages}" c WHERE c.session_id = s.session_id) AS count` : '';
  return `SELECT s.session_id AS id, s.created_at AS created, s.updated_at AS updated, m.data AS data${count}
    FROM ${sessions} s LEFT JOIN "${metadata}" m ON m.session_id = s.session_id`;
}

/** Never less than what the page asks for: times here are whole seconds. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function conditionsOf(page: SessionPage, { metadata }: TableNames): { where: string; values: (string | number)[] } {
  const conditions: string[] = [];
  const values: (string | number)[] = [];
  const add = (condition: string, ...given: readonly (string | number)[]): void => {
    conditions.push(condition);
    values.push(...given);
  };
  const { order, after, prefix, updatedAfter, updatedBefore } = page;
  if (after !== undefined) {
    const [time = '', id = ''] = after;
    const key = order === 'created' ? 'created_at' : 'updated_at';
    if (order === 'id') add('s.session_id > ?', id);
    else add(`(s.${key} < ? OR (s.${key} = ? AND s.session_id > ?))`, time, time, id);
  }
  // A range of the index; ids are compared by their bytes, so the prefix comes before all that begin with it.
  if (prefix !== undefined && prefix !== '')
    add('s.session_id >= ? AND substr(s.session_id, 1, length(?)) = ?', prefix, prefix, prefix);
  if (updatedAfter !== undefined) add('s.updated_at >= ?', timeText(updatedAfter));
  if (updatedBefore !== undefined) add('s.updated_at <= ?', timeText(updatedBefore));
  for (const [key, value] of Object.entries(page.metadata ?? {})) {
    // Only narrows down: the rest is compared by the frame, and lone surrogates have no place in a text of SQLite.
    if (typeof value !== 'string' || LONE_SURROGATE.test(key + value)) continue;
    add(
      `EXISTS (SELECT 1 FROM "${metadata}" f, json_each(f.data) e WHERE f.session_id = s.session_id AND e.key = ? AND e.type = 'text' AND e.value = ?)`,
      key,
      value,
    );
  }
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values };
}

function infoOf({ id, created, updated, data, count }: SessionRow): SessionInfo {
  const createdAt = timeOf(created);
  const updatedAt = timeOf(updated);
  const metadata = metadataOf(data);
  return {
    sessionId: String(id),
    ...(createdAt !== undefined && { createdAt }),
    ...(updatedAt !== undefined && { updatedAt }),
    ...(count !== undefined && { itemCount: Number(count) }),
    ...(metadata !== undefined && { metadata }),
  };
}

function metadataOf(data: unknown): Record<string, unknown> | undefined {
  if (typeof data !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    // Somebody else's; the sessions are what counts.
    return undefined;
  }
}

/** `YYYY-MM-DD HH:MM:SS` in UTC, as `CURRENT_TIMESTAMP` is. */
export function timeText(time: Date): string {
  return time.toISOString().slice(0, 19).replace('T', ' ');
}

function timeOf(value: unknown): Date | undefined {
  if (typeof value !== 'string') return undefined;
  const time = new Date(/[zZ]|[+-]\d\d:?\d\d$/.test(value) ? value : `${value.replace(' ', 'T')}Z`);
  return Number.isNaN(time.getTime()) ? undefined : time;
}
