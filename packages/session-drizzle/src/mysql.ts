import { sql } from 'drizzle-orm';
import {
  customType,
  foreignKey,
  index,
  int,
  bigint,
  mysqlSchema,
  mysqlTable,
  primaryKey,
} from 'drizzle-orm/mysql-core';
import type { MySqlTable } from 'drizzle-orm/mysql-core';

import { Database } from './database.ts';
import { declareTables } from './declare.ts';
import type { Declaring } from './declare.ts';
import { readDatabase } from './options.ts';
import type { DrizzleDatabase } from './options.ts';
import { idTypeOf, readNames, readTables } from './tables.ts';
import type { AgentTableOptions, AgentTables, TableNames } from './tables.ts';

/** Options of `createAgentTables` for MySQL and MariaDB. */
export interface MySqlAgentTableOptions extends AgentTableOptions {
  /** Of messages: `bigserial` (a bigint) for more than 2^31 items in the table. Default `serial` (an int). */
  idType?: 'serial' | 'bigserial' | undefined;
}

/** Ids are told apart by every bit: the usual collations take `A` for `a`. */
const KEY = 'varchar(255) character set utf8mb4 collate utf8mb4_bin';
const key = customType<{ data: string }>({ dataType: () => KEY });
const TEXT = 'longtext character set utf8mb4 collate utf8mb4_bin';
const long = customType<{ data: string }>({ dataType: () => TEXT });
const timestamp = customType<{ data: string }>({ dataType: () => 'timestamp(6)' });

/**
 * The tables under other names, for your schema file: drizzle-kit makes the migrations from it.
 *
 * @throws UserError `session_name_invalid`
 * @example
 * export const { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata } = createAgentTables({
 *   names: { agentSessions: 'chat_sessions', agentMessages: 'chat_messages' },
 * });
 */
export function createAgentTables(options?: MySqlAgentTableOptions): AgentTables<MySqlTable> {
  // Of at most 64 characters is `idx_…_session_time`.
  const { names, schema } = readNames(options, { longest: 47 });
  return declareTables<MySqlTable>(names, {
    table: (schema === undefined ? mysqlTable : mysqlSchema(schema).table) as unknown as Declaring<MySqlTable>['table'],
    id: (options?.idType === 'bigserial' ? bigint('id', { mode: 'number' }) : int('id')).autoincrement(),
    key: (name) => key(name),
    text: (name) => long(name),
    moment: (name) => timestamp(name).default(sql`CURRENT_TIMESTAMP(6)`),
    foreignKey,
    primaryKey,
    index,
  });
}

const tables: AgentTables<MySqlTable> = createAgentTables();
export const agentSessions: MySqlTable = tables.agentSessions;
export const agentMessages: MySqlTable = tables.agentMessages;
export const agentSessionOperations: MySqlTable = tables.agentSessionOperations;
export const agentSessionMetadata: MySqlTable = tables.agentSessionMetadata;

/**
 * Makes what is missing, for development; in production drizzle-kit does it. Safe from many processes at once.
 *
 * @throws UserError for what is no database of drizzle for MySQL or MariaDB
 */
export async function createTables(db: DrizzleDatabase, given?: AgentTables<MySqlTable>): Promise<void> {
  const database = new Database(readDatabase(db, 'mysql', 'createTables()'), 'mysql');
  const names = readTables(given, 'mysql', 'createTables()');
  const idType = given === undefined ? 'int' : idTypeOf(given.agentMessages);
  // Each of these commits by itself on this server.
  for (const statement of statements(names, idType)) await database.change({ sql: statement, gives: 'nothing' });
}

function statements({ sessions, messages, operations, metadata, places }: TableNames, idType: string) {
  const moment = sql`timestamp(6) not null default CURRENT_TIMESTAMP(6)`;
  const [varchar, text] = [sql.raw(KEY), sql.raw(TEXT)];
  const belongs = (name: string) =>
    sql`constraint ${sql.identifier(`${name}_session_id_fkey`)} foreign key (session_id) references ${sessions} (session_id) on delete cascade on update no action`;
  return [
    sql`create table if not exists ${sessions} (
      session_id ${varchar} not null primary key, created_at ${moment}, updated_at ${moment}) engine = InnoDB`,
    sql`create table if not exists ${messages} (
      id ${sql.raw(idType)} not null auto_increment primary key, session_id ${varchar} not null, message_data ${text} not null,
      created_at ${moment}, index ${sql.identifier(`idx_${places.messages.name}_session_time`)} (session_id, created_at),
      ${belongs(places.messages.name)}) engine = InnoDB`,
    sql`create table if not exists ${operations} (
      session_id ${varchar} not null, operation_id ${varchar} not null, digest ${text} not null, result ${text},
      created_at ${moment}, primary key (session_id, operation_id), ${belongs(places.operations.name)}) engine = InnoDB`,
    sql`create table if not exists ${metadata} (
      session_id ${varchar} not null primary key, data ${text} not null, ${belongs(places.metadata.name)}) engine = InnoDB`,
  ];
}
