import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';

import { change, rows } from '../statement.ts';
import type { Body, Row } from '../statement.ts';
import { failedToConnect } from '../errors.ts';
import type { ErrorKinds } from '../errors.ts';
import type { TableNames } from '../tables.ts';
import type { Append, Dialect, Found, Head } from './dialect.ts';
import { headOf } from './dialect.ts';

/**
 * The session that messages are looked for of. SQLite as better-sqlite3 builds it (`ENABLE_STAT4`) prepares a statement anew
 * with each value that an index of several columns is searched by, unless it is an expression: many times the search itself.
 */
const sought = (id: string): SQL => sql`cast(${id} as text)`;

/** The statements on the tables of one store in SQLite. A transaction holds the database's one lock from its start. */
export class SQLiteDialect implements Dialect {
  readonly #tables: TableNames;
  /** Drivers fetch in one go, and nothing else runs meanwhile. */
  readonly pageSize = 500;
  readonly appendsAlone = false;

  constructor(tables: TableNames) {
    this.#tables = tables;
  }

  found(): SQL {
    const { operations, metadata } = this.#tables.places;
    const exists = (name: string): SQL =>
      sql`exists (select 1 from sqlite_master where type = 'table' and name = ${name} collate nocase)`;
    return sql`select ${exists(operations.name)} as operations, ${exists(metadata.name)} as metadata`;
  }

  newest(id: string, count: number | undefined, before?: Row): SQL {
    const { messages, sessions } = this.#tables;
    // A negative limit is none.
    const limit = count ?? -1;
    const touched = sql`(select updated_at from ${sessions} where session_id = ${id}) as touched`;
    if (before === undefined && limit >= 0 && limit < this.pageSize)
      return sql`select id, message_data as text, ${touched}
        from ${messages} where session_id = ${sought(id)} order by created_at desc, id desc limit ${limit}`;
    // What may be a page says where the next one begins.
    const older = before === undefined ? sql`` : sql` and (created_at, id) < (${before['stamp']}, ${before['id']})`;
    return sql`select id, message_data as text, created_at as stamp, ${touched}
      from ${messages} where session_id = ${sought(id)}${older} order by created_at desc, id desc limit ${limit}`;
  }

  isThere(id: unknown): SQL {
    return sql`select id from ${this.#tables.messages} where id = ${id}`;
  }

  // eslint-disable-next-line require-yield
  *lock(): Body<void> {}

  *head(id: string): Body<Head> {
    return headOf(yield* rows(this.newest(id, 1)));
  }

  *operation(id: string, operationId: string): Body<{ digest: string; result: string } | undefined> {
    const [row] = yield* rows(
      sql`select digest, result from ${this.#tables.operations} where session_id = ${id} and operation_id = ${operationId}`,
    );
    return row as { digest: string; result: string } | undefined;
  }

  *append(id: string, { texts, operation, upkeep }: Append): Body<string> {
    const { sessions, messages, operations } = this.#tables;
    yield* change(sql`insert or ignore into ${sessions} (session_id) values (${id})`);
    // Never before the newest message: a clock may go back.
    if (upkeep !== true)
      yield* change(sql`update ${sessions} set updated_at = max(CURRENT_TIMESTAMP, updated_at,
      coalesce((select max(created_at) from ${messages} where session_id = ${sought(id)}), '')) where session_id = ${id}`);
    yield* change(sql`insert into ${messages} (session_id, message_data, created_at)
      select ${id}, item.value, (select updated_at from ${sessions} where session_id = ${id})
      from json_each(${JSON.stringify(texts)}) as item order by item.key`);
    const { version } = yield* this.head(id);
    if (operation !== undefined)
      yield* change(sql`insert into ${operations} (session_id, operation_id, digest, result)
        values (${id}, ${operation.id}, ${operation.digest}, ${version})`);
    return version;
  }

  *deleteMessages(id: string, which: readonly number[] | 'all'): Body<void> {
    const { messages } = this.#tables;
    if (which === 'all') yield* change(sql`delete from ${messages} where session_id = ${sought(id)}`);
    else
      yield* change(sql`delete from ${messages} where id in (select value from json_each(${JSON.stringify(which)}))`);
  }

  *takeNewest(id: string): Body<readonly Row[]> {
    const { messages } = this.#tables;
    return yield* rows(sql`delete from ${messages} where id =
      (select id from ${messages} where session_id = ${sought(id)} order by created_at desc, id desc limit 1) returning id, message_data as text`);
  }

  /** Without foreign keys, which are the user's to switch on, nothing goes by itself. */
  *deleteSession(id: string, found: Found): Body<void> {
    const { sessions, operations, metadata } = this.#tables;
    if (found.operations) yield* change(sql`delete from ${operations} where session_id = ${id}`);
    if (found.metadata) yield* change(sql`delete from ${metadata} where session_id = ${id}`);
    yield* change(sql`delete from ${sessions} where session_id = ${id}`);
  }

  forgetOperations(id: string): SQL {
    const { operations } = this.#tables;
    return sql`delete from ${operations} where session_id = ${id} and created_at < datetime('now', '-1 day') and rowid not in
      (select rowid from ${operations} where session_id = ${id} order by rowid desc limit 64)`;
  }
}

const isBusy = ({ code, errno, errcode }: { code?: unknown; errno?: unknown; errcode?: unknown }): boolean => {
  // node:sqlite and bun:sqlite: the number; better-sqlite3 and libsql: the name.
  const result = typeof errcode === 'number' ? errcode : typeof errno === 'number' ? errno : undefined;
  if (result !== undefined && ((result & 0xff) === 5 || (result & 0xff) === 6)) return true;
  return typeof code === 'string' && /^SQLITE_(BUSY|LOCKED)/.test(code);
};

export const sqliteErrors: ErrorKinds = {
  // Everything else comes from the way to a server (libsql).
  isAnswer: ({ code, errcode }) =>
    typeof errcode === 'number' || (typeof code === 'string' && code.startsWith('SQLITE_')),
  wasNeverSent: failedToConnect,
  isConflict: isBusy,
  isMissing: ({ message }) => typeof message === 'string' && /no such (table|column)|has no column named/.test(message),
};
