import type { SessionInfo, SessionPage } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';

import type { DialectName } from './database.ts';
import type { Row } from './statement.ts';
import type { TableNames } from './tables.ts';

/** What the dialects write in different ways. */
interface Terms {
  /** Milliseconds since 1970 of a column of the tables. */
  readonly millis: (column: SQL) => SQL;
  /** As text, to be given back by `moment` without loss. */
  readonly exact: (column: SQL) => SQL;
  readonly moment: (text: string) => SQL;
  /** As a value of such a column; not later than the date, by less than a second. The date is within what all can write. */
  readonly at: (date: Date) => SQL;
  /** More than a minute from now. */
  readonly future: SQL;
  readonly contains: (text: SQL, part: string) => SQL;
  /** The first characters, as many as those. */
  readonly head: (text: SQL, like: string) => SQL;
}

/** Dates that are written with four digits of a year: no column of ours holds others that mean anything. */
const FIRST = Date.parse('0001-01-01T00:00:00Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');
const within = (date: Date): Date => new Date(Math.min(Math.max(date.getTime(), FIRST), LAST));
/** Farther from 1970 than that is no `Date`. */
const FARTHEST_MS = 8.64e15;

const zone = sql`current_setting('TimeZone')`;
const TERMS: Readonly<Record<DialectName, Terms>> = {
  pg: {
    millis: (column) => sql`cast(extract(epoch from ${column} at time zone ${zone}) * 1000 as double precision)`,
    exact: (column) => sql`cast(${column} as text)`,
    moment: (text) => sql`cast(cast(${text} as text) as timestamp)`,
    at: (date) => sql`(cast(cast(${date.toISOString()} as text) as timestamptz) at time zone ${zone})`,
    future: sql`cast(clock_timestamp() as timestamp) + interval '1 minute'`,
    contains: (text, part) => sql`strpos(${text}, ${part}) > 0`,
    head: (text, like) => sql`left(${text}, char_length(${like}))`,
  },
  mysql: {
    millis: (column) => sql`unix_timestamp(${column}) * 1000`,
    exact: (column) => sql`cast(${column} as char)`,
    moment: (text) => sql`cast(${text} as datetime(6))`,
    // Knows no moment before 1970, and none that is too late for it.
    at: (date) =>
      date.getTime() <= 0
        ? sql`cast('1000-01-01' as datetime)`
        : sql`coalesce(from_unixtime(${date.getTime()} / 1000), cast('9999-12-31 23:59:59' as datetime))`,
    future: sql`now(6) + interval 1 minute`,
    contains: (text, part) => sql`locate(${part}, ${text}) > 0`,
    head: (text, like) => sql`left(${text}, char_length(${like}))`,
  },
  sqlite: {
    millis: (column) => sql`cast(round((julianday(${column}) - 2440587.5) * 86400000.0) as integer)`,
    exact: (column) => column,
    moment: (text) => sql`${text}`,
    at: (date) => sql`${date.toISOString().slice(0, 19).replace('T', ' ')}`,
    future: sql`datetime('now', '+1 minute')`,
    contains: (text, part) => sql`instr(${text}, ${part}) > 0`,
    head: (text, like) => sql`substr(${text}, 1, length(${like}))`,
  },
};

/** What stores do with the tables, beside what sessions do. */
export class StoreStatements {
  readonly #tables: TableNames;
  readonly #dialect: DialectName;
  readonly #terms: Terms;

  constructor(tables: TableNames, dialect: DialectName) {
    this.#tables = tables;
    this.#dialect = dialect;
    this.#terms = TERMS[dialect];
  }

  get(sessionId: string, withMetadata: boolean): SQL {
    return sql`select ${this.#columns(true, withMetadata)} from ${this.#tables.sessions} s where s.session_id = ${sessionId}`;
  }

  /** Never less than what the page asks for. */
  list(page: SessionPage, withMetadata: boolean): SQL {
    const key = page.order === 'id' ? undefined : page.order === 'created' ? sql`s.created_at` : sql`s.updated_at`;
    const stamp = key === undefined ? sql`'' as stamp` : sql`${this.#terms.exact(key)} as stamp`;
    const order = key === undefined ? sql`${this.#id}` : sql`${key} desc, ${this.#id}`;
    const conditions = this.#conditions(page, key, withMetadata);
    const where = conditions.length === 0 ? sql`` : sql` where ${sql.join(conditions, sql` and `)}`;
    return sql`select ${this.#columns(page.withCount, withMetadata)}, ${stamp} from ${this.#tables.sessions} s${where}
      order by ${order} limit ${sql.raw(String(page.limit))}`;
  }

  /** Ids are compared by their bytes; PostgreSQL would take the database's language otherwise. */
  get #id(): SQL {
    return this.#dialect === 'pg' ? sql`s.session_id collate "C"` : sql`s.session_id`;
  }

  #columns(withCount: boolean, withMetadata: boolean): SQL {
    const { messages, metadata } = this.#tables;
    const { millis } = this.#terms;
    const data = withMetadata ? sql`(select m.data from ${metadata} m where m.session_id = s.session_id)` : sql`null`;
    const count = withCount
      ? sql`, (select count(*) from ${messages} c where c.session_id = s.session_id) as items`
      : sql``;
    return sql`s.session_id as id, ${millis(sql`s.created_at`)} as created, ${millis(sql`s.updated_at`)} as updated, ${data} as data${count}`;
  }

  #conditions(page: SessionPage, key: SQL | undefined, withMetadata: boolean): SQL[] {
    const { contains, head, moment, at } = this.#terms;
    const { after, prefix, updatedAfter, updatedBefore } = page;
    const conditions: SQL[] = [];
    if (after !== undefined) {
      const [stamp, id] = after.map(String);
      if (key === undefined) conditions.push(sql`${this.#id} > ${id}`);
      else
        conditions.push(
          sql`(${key} < ${moment(stamp ?? '')} or (${key} = ${moment(stamp ?? '')} and ${this.#id} > ${id}))`,
        );
    }
    if (prefix !== undefined && prefix !== '') conditions.push(sql`${head(sql`s.session_id`, prefix)} = ${prefix}`);
    if (updatedAfter !== undefined) conditions.push(sql`s.updated_at >= ${at(within(updatedAfter))}`);
    if (updatedBefore !== undefined) conditions.push(sql`s.updated_at <= ${at(within(updatedBefore))}`);
    for (const [name, value] of Object.entries(page.metadata ?? {})) {
      if (!withMetadata) conditions.push(sql`1 = 0`);
      else if (typeof value !== 'object' && withMetadata)
        // As it was written by `setMetadata`.
        conditions.push(
          sql`exists (select 1 from ${this.#tables.metadata} f where f.session_id = s.session_id
            and ${contains(sql`f.data`, `${JSON.stringify(name)}:${JSON.stringify(value)}`)})`,
        );
    }
    return conditions;
  }

  /** A row, if the session was not updated since then. */
  idle(sessionId: string, since: Date | undefined): SQL {
    const { sessions, messages } = this.#tables;
    const idle = since === undefined ? sql`` : sql` and s.updated_at < ${this.#terms.at(within(since))}`;
    return sql`select s.session_id as id, (select count(*) from ${messages} c where c.session_id = s.session_id) as items from ${sessions} s where s.session_id = ${sessionId}${idle}`;
  }

  /**
   * `id` and `text`, oldest first: behind the row `after`, up to the row `upTo`, by their ids. Their stamps are taken from the
   * rows, as no text of a stamp is as exact in every time zone. Nothing where one of the two is gone.
   */
  oldest(sessionId: string, count: number, upTo: unknown, after?: unknown): SQL {
    const { messages } = this.#tables;
    const stampOf = (id: unknown): SQL => sql`(select created_at from ${messages} where id = ${id})`;
    // Conditions on the stamp alone are what the index of all three can look up.
    const behind =
      after === undefined
        ? sql``
        : sql` and created_at >= ${stampOf(after)} and (created_at > ${stampOf(after)} or id > ${after})`;
    return sql`select id, message_data as text from ${messages} where session_id = ${sessionId}${behind}
      and created_at <= ${stampOf(upTo)} and (created_at < ${stampOf(upTo)} or id <= ${upTo})
      order by created_at, id limit ${sql.raw(String(count))}`;
  }

  isThere(messageId: unknown): SQL {
    return sql`select 1 as there from ${this.#tables.messages} where id = ${messageId}`;
  }

  metadata(sessionId: string): SQL {
    return sql`select data from ${this.#tables.metadata} where session_id = ${sessionId}`;
  }

  /** SQLite's transactions make no row by locking it. */
  addSession(sessionId: string): SQL | undefined {
    if (this.#dialect !== 'sqlite') return undefined;
    return sql`insert or ignore into ${this.#tables.sessions} (session_id) values (${sessionId})`;
  }

  /** Two statements, as each dialect has another one for both. */
  putMetadata(sessionId: string, data: string | undefined): SQL[] {
    const { metadata } = this.#tables;
    const old = sql`delete from ${metadata} where session_id = ${sessionId}`;
    if (data === undefined) return [old];
    return [old, sql`insert into ${metadata} (session_id, data) values (${sessionId}, ${data})`];
  }

  /** `orphans`: sessions with messages and no row; `future`: messages with a stamp that is to come; `zone` of the connection. */
  check(): SQL {
    const { sessions, messages } = this.#tables;
    return sql`select
      (select count(distinct m.session_id) from ${messages} m where not exists (select 1 from ${sessions} s where s.session_id = m.session_id)) as orphans,
      (select count(*) from ${messages} f where f.created_at > ${this.#terms.future}) as future,
      ${this.#dialect === 'pg' ? zone : sql`'UTC'`} as zone`;
  }
}

export function infoOf({ id, created, updated, data, items }: Row): SessionInfo {
  const metadata = metadataOf(data);
  return {
    sessionId: String(id),
    ...(created !== null && { createdAt: dateOf(created) }),
    ...(updated !== null && { updatedAt: dateOf(updated) }),
    ...(items !== undefined && { itemCount: Number(items) }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** The nearest date: PostgreSQL has moments that are none, `infinity` among them. */
function dateOf(millis: unknown): Date {
  return new Date(Math.min(Math.max(Number(millis), -FARTHEST_MS), FARTHEST_MS));
}

export function metadataOf(data: unknown): Record<string, unknown> | undefined {
  if (typeof data !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(data);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Somebody else's; the sessions are what counts.
    return undefined;
  }
}
