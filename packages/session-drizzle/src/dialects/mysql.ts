import { SessionItemError } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';

import { change, rows } from '../statement.ts';
import type { Body, Row } from '../statement.ts';
import type { ErrorKinds } from '../errors.ts';
import { failedToConnect } from '../errors.ts';
import type { Place, TableNames } from '../tables.ts';
import type { Append, Dialect, Head } from './dialect.ts';
import { headOf, versionOf } from './dialect.ts';

/** What a statement needs beside its values, generously. */
const OVERHEAD = 4096;
const touched = (column: SQL): SQL => sql`date_format(${column}, '%Y%m%d%H%i%s%f')`;

/** The statements on the tables of one store in MySQL and MariaDB. */
export class MySqlDialect implements Dialect {
  readonly #tables: TableNames;
  readonly pageSize = undefined;
  readonly appendsAlone = false;
  /** The most that the server takes at once, in bytes: `max_allowed_packet`. */
  maxPacket: number = 1024 * 1024;
  isMariaDB = false;

  constructor(tables: TableNames) {
    this.#tables = tables;
  }

  found(): SQL {
    const { operations, metadata } = this.#tables.places;
    const exists = ({ schema, name }: Place): SQL =>
      sql`exists (select 1 from information_schema.tables where table_schema = ${schema === undefined ? sql`database()` : schema} and table_name = ${name})`;
    return sql`select ${exists(operations)} as operations, ${exists(metadata)} as metadata, @@max_allowed_packet as packet, version() as version`;
  }

  newest(id: string, count: number | undefined): SQL {
    const { messages, sessions } = this.#tables;
    const limit = count === undefined ? sql`` : sql` limit ${sql.raw(String(count))}`;
    return sql`select id, message_data as text, (select ${touched(sql`updated_at`)} from ${sessions} where session_id = ${id}) as touched
      from ${messages} where session_id = ${id} order by created_at desc, id desc${limit}`;
  }

  /**
   * MariaDB collects the transactions that are under way one by one. A reader amid that may find one writer still under way
   * and the next one, who waited for it with an id already (`for update` takes one, too), already done: a history with a
   * gap. So readers share the lock of the row, which needs no id, and look at messages when they have it.
   */
  settled(id: string, count: number | undefined): SQL {
    if (!this.isMariaDB) return this.newest(id, count);
    const { messages, sessions } = this.#tables;
    const limit = count === undefined ? sql`` : sql` limit ${sql.raw(String(count))}`;
    // Every look at the session shares its lock: one that does not would fix what is seen of messages before that.
    const ofSession = (column: SQL): SQL =>
      sql`(select ${column} from ${sessions} where session_id = ${id} lock in share mode)`;
    return sql`select id, message_data as text, ${ofSession(touched(sql`updated_at`))} as touched
      from ${messages} where session_id = coalesce(${ofSession(sql`session_id`)}, ${id}) order by created_at desc, id desc${limit}`;
  }

  *lock(id: string, create: boolean): Body<void> {
    const { sessions } = this.#tables;
    if (create)
      // `insert ignore` would share the lock of a row that is there, and two who share it cannot both go on.
      yield* change(
        sql`insert into ${sessions} (session_id) values (${id}) on duplicate key update session_id = values(session_id)`,
      );
    else yield* rows(sql`select 1 as locked from ${sessions} where session_id = ${id} for update`);
  }

  /** The first look of a transaction, which fixes what it sees of others: after the lock. */
  *head(id: string): Body<Head> {
    return headOf(yield* rows(this.newest(id, 1)));
  }

  *operation(id: string, operationId: string): Body<{ digest: string; result: string } | undefined> {
    const [row] = yield* rows(
      sql`select digest, result from ${this.#tables.operations} where session_id = ${id} and operation_id = ${keyOf(operationId)}`,
    );
    return row as { digest: string; result: string } | undefined;
  }

  *append(id: string, { texts, operation, upkeep }: Append): Body<string> {
    const { sessions, messages, operations } = this.#tables;
    // A statement of its own: the time of a statement is when it began, and the lock was waited for in an earlier one; and
    // a look at messages within the update would lock them.
    const newest = sql`(select max(created_at) from ${messages} where session_id = ${id})`;
    const moment = upkeep === true ? sql`updated_at` : sql`greatest(now(6), updated_at, coalesce(${newest}, now(6)))`;
    const [now] = yield* rows(sql`select cast(${moment} as char) as stamp, cast(updated_at as char) as stored,
      @@auto_increment_increment as step from ${sessions} where session_id = ${id}`);
    const stamp = String(now?.['stamp']);
    if (upkeep !== true) yield* change(sql`update ${sessions} set updated_at = ${stamp} where session_id = ${id}`);
    let last: number | undefined;
    for (const chunk of inPackets(texts, this.maxPacket)) {
      const values = chunk.map((text) => sql`(${id}, ${text}, ${stamp})`);
      const [inserted] = yield* rows(
        sql`insert into ${messages} (session_id, message_data, created_at) values ${sql.join(values, sql`, `)}`,
      );
      // The first id is answered; those of one statement follow each other.
      last = Number(inserted?.['insertId']) + (chunk.length - 1) * Number(now?.['step']);
    }
    // Tables that Python made keep no fractions of a second: then only the server knows what it stored.
    const isKept = String(now?.['stored']).length === stamp.length;
    const version =
      last !== undefined && isKept
        ? versionOf({ id: last, touched: stamp.replaceAll(/\D/g, '') })
        : (yield* this.head(id)).version;
    if (operation !== undefined)
      yield* change(sql`insert into ${operations} (session_id, operation_id, digest, result)
        values (${id}, ${keyOf(operation.id)}, ${operation.digest}, ${version})`);
    return version;
  }

  *deleteMessages(id: string, which: readonly number[] | 'all'): Body<void> {
    const { messages } = this.#tables;
    if (which === 'all') yield* change(sql`delete from ${messages} where session_id = ${id}`);
    else yield* change(sql`delete from ${messages} where id in (${sql.raw(which.map(Number).join(', '))})`);
  }

  *takeNewest(id: string): Body<readonly Row[]> {
    const { messages } = this.#tables;
    // MySQL can't delete from a table that the statement reads.
    const newest = yield* rows(
      sql`select id, message_data as text from ${messages} where session_id = ${id} order by created_at desc, id desc limit 1 for update`,
    );
    if (newest[0] !== undefined) yield* change(sql`delete from ${messages} where id = ${newest[0]['id']}`);
    return newest;
  }

  /** Operations and metadata go with the row. */
  *deleteSession(id: string): Body<void> {
    yield* change(sql`delete from ${this.#tables.sessions} where session_id = ${id}`);
  }

  forgetOperations(id: string): SQL {
    const { operations } = this.#tables;
    return sql`delete from ${operations} where session_id = ${id} and created_at < now(6) - interval 1 day and operation_id not in
      (select operation_id from (select operation_id from ${operations} where session_id = ${id} order by created_at desc limit 64) as kept)`;
  }

  /** Before anything is sent: a larger packet breaks the connection. */
  check(sessionId: string, texts: readonly string[]): void {
    for (const [index, text] of texts.entries()) {
      const bytes = sizeOf(text) + OVERHEAD;
      if (bytes > this.maxPacket)
        throw new SessionItemError(
          `Item ${index} of the batch takes ${bytes} bytes; the server takes at most ${this.maxPacket} at once. Raise its max_allowed_packet (and the driver's, if it has one), or store less.`,
          { sessionId, index, path: '', code: 'session_item_too_large' },
        );
    }
  }
}

/** The column compares without trailing spaces and ends at 255 characters. */
function keyOf(operationId: string): SQL {
  const fits = operationId.length <= 255 && !operationId.endsWith(' ');
  return fits ? sql`${operationId}` : sql`concat('sha2:', sha2(${operationId}, 256))`;
}

/** Batches of which each fits into half a packet, or is one item alone. */
function inPackets(texts: readonly string[], maxPacket: number): string[][] {
  const packets: string[][] = [];
  let room = 0;
  for (const text of texts) {
    const size = sizeOf(text) + OVERHEAD;
    if (size > room) {
      packets.push([]);
      room = maxPacket / 2;
    }
    packets.at(-1)?.push(text);
    room -= size;
  }
  return packets;
}

/** As the driver writes it into the statement: UTF-8, with a backslash before some. (JSON has no control characters.) */
function sizeOf(text: string): number {
  let escaped = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE || unit === APOSTROPHE || unit === BACKSLASH) escaped++;
  }
  return new TextEncoder().encode(text).length + escaped;
}
const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;

export const mysqlErrors: ErrorKinds = {
  // The server that shuts down (1053) or was told to end the connection (1927, 3168) does not say how far it came.
  isAnswer: ({ errno, sqlState }) =>
    typeof errno === 'number' && typeof sqlState === 'string' && ![1053, 1927, 3168, 4031].includes(errno),
  wasNeverSent: (error) =>
    failedToConnect(error) || (typeof error.message === 'string' && /Pool is closed/.test(error.message)),
  // Deadlock, lock wait timeout, a row that changed under a snapshot (MariaDB).
  isConflict: ({ errno }) => errno === 1213 || errno === 1205 || errno === 1020,
  isMissing: ({ errno }) => errno === 1146 || errno === 1054 || errno === 1049,
};
