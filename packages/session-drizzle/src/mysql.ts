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
  const { names, schema } = readNames(options);
  const table: typeof mysqlTable =
    schema === undefined ? mysqlTable : (mysqlSchema(schema).table as unknown as typeof mysqlTable);
  const id = options?.idType === 'bigserial' ? bigint('id', { mode: 'number' }) : int('id');
  const moment = (name: string) =>
    timestamp(name)
      .notNull()
      .default(sql`CURRENT_TIMESTAMP(6)`);

  const agentSessions = table(names.agentSessions, {
    sessionId: key('session_id').primaryKey(),
    createdAt: moment('created_at'),
    updatedAt: moment('updated_at'),
  });
  const belongs = (name: string, sessionId: never) =>
    foreignKey({
      name: `${name}_session_id_fkey`,
      columns: [sessionId],
      foreignColumns: [agentSessions.sessionId],
    }).onDelete('cascade');

  const agentMessages = table(
    names.agentMessages,
    {
      id: id.autoincrement().primaryKey(),
      sessionId: key('session_id').notNull(),
      messageData: long('message_data').notNull(),
      createdAt: moment('created_at'),
    },
    ({ sessionId, createdAt }) => [
      belongs(names.agentMessages, sessionId as never),
      index(`idx_${names.agentMessages}_session_time`).on(sessionId, createdAt),
    ],
  );
  const agentSessionOperations = table(
    names.agentSessionOperations,
    {
      sessionId: key('session_id').notNull(),
      operationId: key('operation_id').notNull(),
      digest: long('digest').notNull(),
      result: long('result'),
      createdAt: moment('created_at'),
    },
    ({ sessionId, operationId }) => [
      primaryKey({ name: `${names.agentSessionOperations}_pkey`, columns: [sessionId, operationId] }),
      belongs(names.agentSessionOperations, sessionId as never),
    ],
  );
  const agentSessionMetadata = table(
    names.agentSessionMetadata,
    { sessionId: key('session_id').primaryKey(), data: long('data').notNull() },
    ({ sessionId }) => [belongs(names.agentSessionMetadata, sessionId as never)],
  );
  return { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata };
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
