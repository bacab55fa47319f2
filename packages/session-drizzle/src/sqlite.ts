import { sql } from 'drizzle-orm';
import { foreignKey, index, integer, numeric, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { SQLiteTable } from 'drizzle-orm/sqlite-core';

import { Database } from './database.ts';
import { readDatabase } from './options.ts';
import type { DrizzleDatabase } from './options.ts';
import { change } from './statement.ts';
import type { Body } from './statement.ts';
import { readNames, readTables } from './tables.ts';
import type { AgentTables, TableNames } from './tables.ts';

/** Options of `createAgentTables` for SQLite. */
export interface SQLiteAgentTableOptions {
  names?: Partial<Record<keyof AgentTables, string>> | undefined;
}

// Types and defaults as drizzle-kit reads those that Python declares (VARCHAR, TIMESTAMP), which have the same affinity: it
// would rebuild the tables otherwise.
const now = sql`(CURRENT_TIMESTAMP)`;

/**
 * The tables under other names, for your schema file: drizzle-kit makes the migrations from it.
 *
 * @throws UserError `session_name_invalid`
 * @example
 * export const { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata } = createAgentTables({
 *   names: { agentSessions: 'chat_sessions', agentMessages: 'chat_messages' },
 * });
 */
export function createAgentTables(options?: SQLiteAgentTableOptions): AgentTables<SQLiteTable> {
  const { names } = readNames(options, { known: ['names'], reserved: /^sqlite_/i });
  const moment = (name: string) => numeric(name).notNull().default(now);

  const agentSessions = sqliteTable(names.agentSessions, {
    sessionId: text('session_id').primaryKey().notNull(),
    createdAt: moment('created_at'),
    updatedAt: moment('updated_at'),
  });
  const agentMessages = sqliteTable(
    names.agentMessages,
    {
      id: integer('id').primaryKey({ autoIncrement: true }).notNull(),
      sessionId: text('session_id').notNull(),
      messageData: text('message_data').notNull(),
      createdAt: moment('created_at'),
    },
    ({ sessionId, createdAt }) => [
      foreignKey({ columns: [sessionId], foreignColumns: [agentSessions.sessionId] }).onDelete('cascade'),
      index(`idx_${names.agentMessages}_session_time`).on(sessionId, createdAt),
    ],
  );
  const agentSessionOperations = sqliteTable(
    names.agentSessionOperations,
    {
      sessionId: text('session_id').notNull(),
      operationId: text('operation_id').notNull(),
      digest: text('digest').notNull(),
      result: text('result'),
      createdAt: moment('created_at'),
    },
    ({ sessionId, operationId }) => [primaryKey({ columns: [sessionId, operationId] })],
  );
  const agentSessionMetadata = sqliteTable(names.agentSessionMetadata, {
    sessionId: text('session_id').primaryKey().notNull(),
    data: text('data').notNull(),
  });
  return { agentSessions, agentMessages, agentSessionOperations, agentSessionMetadata };
}

const tables: AgentTables<SQLiteTable> = createAgentTables();
export const agentSessions: SQLiteTable = tables.agentSessions;
export const agentMessages: SQLiteTable = tables.agentMessages;
export const agentSessionOperations: SQLiteTable = tables.agentSessionOperations;
export const agentSessionMetadata: SQLiteTable = tables.agentSessionMetadata;

/**
 * Makes what is missing, for development; in production drizzle-kit does it. Safe from many processes at once.
 *
 * @throws UserError for what is no database of drizzle for SQLite
 */
export async function createTables(db: DrizzleDatabase, given?: AgentTables<SQLiteTable>): Promise<void> {
  const database = new Database(readDatabase(db, 'sqlite', 'createTables()'), 'sqlite');
  const names = readTables(given, 'sqlite', 'createTables()');
  await database.transaction(() => createAll(names));
}

function* createAll({ sessions, messages, operations, metadata, places }: TableNames): Body<void> {
  const moment = sql`numeric DEFAULT ${now} NOT NULL`;
  yield* change(sql`CREATE TABLE IF NOT EXISTS ${sessions} (
    session_id text NOT NULL PRIMARY KEY, created_at ${moment}, updated_at ${moment})`);
  yield* change(sql`CREATE TABLE IF NOT EXISTS ${messages} (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    session_id text NOT NULL REFERENCES ${sessions} (session_id) ON DELETE CASCADE,
    message_data text NOT NULL, created_at ${moment})`);
  yield* change(sql`CREATE INDEX IF NOT EXISTS ${sql.identifier(`idx_${places.messages.name}_session_time`)}
    ON ${messages} (session_id, created_at)`);
  yield* change(sql`CREATE TABLE IF NOT EXISTS ${operations} (
    session_id text NOT NULL, operation_id text NOT NULL, digest text NOT NULL, result text, created_at ${moment},
    PRIMARY KEY (session_id, operation_id))`);
  yield* change(sql`CREATE TABLE IF NOT EXISTS ${metadata} (session_id text NOT NULL PRIMARY KEY, data text NOT NULL)`);
}
