import { sql } from 'drizzle-orm';
import {
  bigserial,
  foreignKey,
  index,
  pgSchema,
  pgTable,
  primaryKey,
  serial,
  text,
  timestamp,
  varchar,
} from 'drizzle-orm/pg-core';
import type { PgTable } from 'drizzle-orm/pg-core';

import { Database } from './database.ts';
import { declareTables } from './declare.ts';
import type { Declaring } from './declare.ts';
import { readDatabase } from './options.ts';
import type { DrizzleDatabase } from './options.ts';
import { change } from './statement.ts';
import type { Body } from './statement.ts';
import { idTypeOf, readNames, readTables } from './tables.ts';
import type { AgentTableOptions, AgentTables, TableNames } from './tables.ts';

/** Options of `createAgentTables` for PostgreSQL. */
export interface PgAgentTableOptions extends AgentTableOptions {
  /** Of messages: `bigserial` for more than 2^31 items in the table. Default `serial`, as Python makes it. */
  idType?: 'serial' | 'bigserial' | undefined;
}

/**
 * The tables under other names, for your schema file: drizzle-kit makes the migrations from it.
 *
 * @throws UserError `session_name_invalid`
 * @example
 * export const { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata } = createAgentTables({
 *   schema: 'agents',
 * });
 */
export function createAgentTables(options?: PgAgentTableOptions): AgentTables<PgTable> {
  const { names, schema } = readNames(options);
  return declareTables<PgTable>(names, {
    table: (schema === undefined ? pgTable : pgSchema(schema).table) as unknown as Declaring<PgTable>['table'],
    id: options?.idType === 'bigserial' ? bigserial('id', { mode: 'number' }) : serial('id'),
    key: (name) => varchar(name),
    text: (name) => text(name),
    moment: (name) => timestamp(name).default(sql`CURRENT_TIMESTAMP`),
    foreignKey,
    primaryKey,
    index,
  });
}

const tables: AgentTables<PgTable> = createAgentTables();
export const agentSessions: PgTable = tables.agentSessions;
export const agentMessages: PgTable = tables.agentMessages;
export const agentSessionOperations: PgTable = tables.agentSessionOperations;
export const agentSessionMetadata: PgTable = tables.agentSessionMetadata;

/** Any number: those who make tables at the same moment wait for each other. */
const LOCK = 7_241_963_114;

/**
 * Makes what is missing, for development; in production drizzle-kit does it. Safe from many processes at once. A `schema`
 * has to be there.
 *
 * @throws UserError for what is no database of drizzle for PostgreSQL
 */
export async function createTables(db: DrizzleDatabase, given?: AgentTables<PgTable>): Promise<void> {
  const database = new Database(readDatabase(db, 'pg', 'createTables()'), 'pg');
  const names = readTables(given, 'pg', 'createTables()');
  const idType = given === undefined ? 'serial' : idTypeOf(given.agentMessages);
  await database.transaction(() => createAll(names, idType));
}

function* createAll({ sessions, messages, operations, metadata, places }: TableNames, idType: string): Body<void> {
  yield* change(sql`select pg_advisory_xact_lock(${sql.raw(String(LOCK))})`);
  const moment = sql`timestamp not null default CURRENT_TIMESTAMP`;
  const belongs = sql`references ${sessions} (session_id) on delete cascade`;
  yield* change(sql`create table if not exists ${sessions} (
    session_id varchar not null primary key, created_at ${moment}, updated_at ${moment})`);
  yield* change(sql`create table if not exists ${messages} (
    id ${sql.raw(idType)} primary key, session_id varchar not null ${belongs}, message_data text not null, created_at ${moment})`);
  yield* change(sql`create index if not exists ${sql.identifier(`idx_${places.messages.name}_session_time`)}
    on ${messages} (session_id, created_at)`);
  yield* change(sql`create table if not exists ${operations} (
    session_id varchar not null ${belongs}, operation_id varchar not null, digest text not null, result text,
    created_at ${moment}, primary key (session_id, operation_id))`);
  yield* change(sql`create table if not exists ${metadata} (
    session_id varchar not null primary key ${belongs}, data text not null)`);
}
