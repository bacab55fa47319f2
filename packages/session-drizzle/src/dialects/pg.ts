import { operationMismatch } from '@agents/core/session';

import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';

import { change, rows } from '../statement.ts';
import type { Body, Row } from '../statement.ts';
import type { ErrorKinds } from '../errors.ts';
import { failedToConnect } from '../errors.ts';
import type { TableNames } from '../tables.ts';
import type { Append, Dialect, Head } from './dialect.ts';
import { headOf, versionOf } from './dialect.ts';

/** As `CURRENT_TIMESTAMP` becomes the value of a column without a time zone, but of this moment, not of the transaction's start. */
const NOW = sql`cast(clock_timestamp() as timestamp)`;
const touched = (column: SQL): SQL => sql`to_char(${column}, 'YYYYMMDDHH24MISSUS')`;

/** The statements on the tables of one store in PostgreSQL. */
export class PgDialect implements Dialect {
  readonly #tables: TableNames;
  readonly pageSize = undefined;
  readonly appendsAlone = true;

  constructor(tables: TableNames) {
    this.#tables = tables;
  }

  found(): SQL {
    const { places } = this.#tables;
    const exists = (role: 'operations' | 'metadata'): SQL => {
      const { schema, name } = places[role];
      const quoted = [...(schema === undefined ? [] : [schema]), name].map((part) => `"${part.replaceAll('"', '""')}"`);
      return sql`to_regclass(${quoted.join('.')}) is not null`;
    };
    return sql`select ${exists('operations')} as operations, ${exists('metadata')} as metadata`;
  }

  newest(id: string, count: number | undefined): SQL {
    const { messages, sessions } = this.#tables;
    return sql`select id, message_data as text, (select ${touched(sql`updated_at`)} from ${sessions} where session_id = ${id}) as touched
      from ${messages} where session_id = ${id} order by created_at desc, id desc${count === undefined ? sql`` : sql` limit ${count}`}`;
  }

  *lock(id: string, create: boolean): Body<void> {
    const { sessions } = this.#tables;
    if (create)
      // Others that make it wait here until the first of them has ended.
      yield* change(sql`insert into ${sessions} (session_id, created_at, updated_at) values (${id}, ${NOW}, ${NOW})
        on conflict (session_id) do update set session_id = excluded.session_id`);
    else yield* rows(sql`select 1 as locked from ${sessions} where session_id = ${id} for update`);
  }

  *head(id: string): Body<Head> {
    return headOf(yield* rows(this.newest(id, 1)));
  }

  *operation(id: string, operationId: string): Body<{ digest: string; result: string } | undefined> {
    const [row] = yield* rows(
      sql`select digest, result from ${this.#tables.operations} where session_id = ${id} and operation_id = ${operationId}`,
    );
    return row as { digest: string; result: string } | undefined;
  }

  /**
   * One statement. Everything waits for `session`, whose conflict takes the lock on the row and sees what was committed
   * meanwhile: stamps and ids of messages come after those of the writer before.
   */
  *append(id: string, { texts, operation, upkeep }: Append): Body<string> {
    const { sessions, messages } = this.#tables;
    const stamp = sql`greatest(${NOW}, (select max(created_at) from ${messages} where session_id = ${id}))`;
    const unlessKnown = operation === undefined ? sql`` : sql` where not exists (select 1 from known)`;
    const session = sql`session as (
        insert into ${sessions} as stored (session_id, created_at, updated_at) select ${id}, ${NOW}, ${stamp}${unlessKnown}
        on conflict (session_id) do update set updated_at = ${upkeep === true ? sql`stored.updated_at` : sql`greatest(${NOW}, stored.updated_at, excluded.updated_at)`}
        returning updated_at
      )`;
    const add = sql`insert into ${messages} (session_id, message_data, created_at)
      select ${id}, item.text, session.updated_at
      from session cross join json_array_elements_text(cast(cast(${JSON.stringify(texts)} as text) as json)) with ordinality as item(text, place)
      order by item.place
      returning id`;
    // A row per message is less work for the server than to find out which is the last of them.
    if (operation === undefined)
      return versionOf(
        (yield* rows(sql`with ${session} ${add}, (select ${touched(sql`updated_at`)} from session) as touched`)).at(-1),
      );
    const [row] = yield* rows(this.#once(id, operation, { session, add, isEmpty: texts.length === 0 }));
    if (row?.['digest'] !== null && row?.['digest'] !== operation.digest) throw operationMismatch();
    return String(row['result']);
  }

  /** Gives `result`, the version, and `digest` where the operation was known. */
  #once(
    id: string,
    operation: { readonly id: string; readonly digest: string },
    { session, add, isEmpty }: { readonly session: SQL; readonly add: SQL; readonly isEmpty: boolean },
  ): SQL {
    const { messages, operations } = this.#tables;
    // Planning a look at what was there before takes as long as half of the rest.
    const newest = isEmpty
      ? sql`(select id from ${messages} where session_id = ${id} order by created_at desc, id desc limit 1)`
      : sql`(select max(id) from added)`;
    return sql`with known as (
        select digest, result from ${operations} where session_id = ${id} and operation_id = ${operation.id}
      ), ${session}, added as (${add}), remembered as (
        insert into ${operations} (session_id, operation_id, digest, result)
        select ${id}, ${operation.id}, ${operation.digest}, coalesce(cast(${newest} as text) || '.' || ${touched(sql`updated_at`)}, '0') from session
        returning result
      )
      select digest, result from known union all select null, result from remembered`;
  }

  *deleteMessages(id: string, which: readonly number[] | 'all'): Body<void> {
    const { messages } = this.#tables;
    if (which === 'all') yield* change(sql`delete from ${messages} where session_id = ${id}`);
    else
      yield* change(
        sql`delete from ${messages} where id in (select cast(json_array_elements_text(cast(cast(${JSON.stringify(which)} as text) as json)) as bigint))`,
      );
  }

  *takeNewest(id: string): Body<readonly Row[]> {
    const { messages } = this.#tables;
    return yield* rows(sql`delete from ${messages} where id =
      (select id from ${messages} where session_id = ${id} order by created_at desc, id desc limit 1) returning id, message_data as text`);
  }

  /** Operations and metadata go with the row. */
  *deleteSession(id: string): Body<void> {
    yield* change(sql`delete from ${this.#tables.sessions} where session_id = ${id}`);
  }

  forgetOperations(id: string): SQL {
    const { operations } = this.#tables;
    return sql`delete from ${operations} where session_id = ${id} and created_at < CURRENT_TIMESTAMP - interval '1 day' and operation_id not in
      (select operation_id from ${operations} where session_id = ${id} order by created_at desc limit 64)`;
  }
}

export const pgErrors: ErrorKinds = {
  // The server that ends a connection (57P01, 57P02) does not say how far it came.
  isAnswer: ({ code, severity }) =>
    typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined && !/^(08|57P0[12])/.test(code),
  wasNeverSent: (error) =>
    failedToConnect(error) ||
    error.code === 'CONNECT_TIMEOUT' ||
    (typeof error.message === 'string' &&
      /timeout exceeded when trying to connect|after calling end on the pool|due to connection timeout|does not support SSL|^SASL: /.test(
        error.message,
      )),
  // serialization_failure, deadlock_detected; unique_violation: somebody stored the same operation meanwhile.
  isConflict: ({ code, severity }) =>
    severity !== undefined && (code === '40001' || code === '40P01' || code === '23505'),
  isMissing: ({ code, severity }) =>
    severity !== undefined && (code === '42P01' || code === '42703' || code === '3F000'),
};
