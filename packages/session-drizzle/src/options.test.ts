import { drizzle as betterSqlite } from 'drizzle-orm/better-sqlite3';
import { drizzle as nodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as mysql2 } from 'drizzle-orm/mysql2';
import { getTableConfig as pgConfig } from 'drizzle-orm/pg-core';
import { getTableConfig as mysqlConfig } from 'drizzle-orm/mysql-core';
import { getTableConfig as sqliteConfig } from 'drizzle-orm/sqlite-core';
import { describe, expect, it } from 'vitest';

import { DrizzleSession, DrizzleSessionStore } from './index.ts';
import * as mysql from './mysql.ts';
import * as pg from './pg.ts';
import * as sqlite from './sqlite.ts';

const pgDb = nodePostgres.mock();
const mysqlDb = mysql2.mock();
const sqliteDb = betterSqlite.mock();

describe('options', () => {
  it('refuse what they do not know, with the name that was meant', () => {
    expect(() => new DrizzleSession('s', { db: pgDb, operation: 'off' } as never)).toThrow(
      /Unknown option 'operation' of DrizzleSession.*operations/,
    );
    expect(() => new DrizzleSessionStore({ db: pgDb, sessions: 1 } as never)).toThrow(
      /Unknown option 'sessions' of DrizzleSessionStore/,
    );
    expect(() => new DrizzleSession('s', { db: pgDb, operations: 'on' as never })).toThrow("'auto' or 'off'");
    expect(() => new DrizzleSession('s', { db: pgDb, operationTimeoutMs: 0 })).toThrow('operationTimeoutMs');
  });

  it('take a database of drizzle alone [SESS-265]', () => {
    for (const db of [
      undefined,
      null,
      {},
      'db',
      { execute() {}, transaction() {} },
      new Proxy(
        {},
        {
          getPrototypeOf: () => {
            throw new Error('no');
          },
        },
      ),
    ])
      expect(() => new DrizzleSession('s', { db } as never)).toThrow(
        /'db' of DrizzleSession must be a database of drizzle-orm/,
      );
  });

  it('take tables of the dialect of the database, and the module of a dialect as such', () => {
    expect(new DrizzleSession('s', { db: pgDb, tables: pg }).sessionId).toBe('s');
    expect(new DrizzleSession('s', { db: mysqlDb, tables: mysql }).sessionId).toBe('s');
    expect(new DrizzleSession('s', { db: sqliteDb, tables: sqlite }).sessionId).toBe('s');
    expect(() => new DrizzleSession('s', { db: pgDb, tables: sqlite })).toThrow(
      /'agentSessions'.*table of @agents\/session-drizzle\/pg/,
    );
    expect(() => new DrizzleSession('s', { db: pgDb, tables: { ...pg, agentMessages: {} } })).toThrow(
      /'agentMessages'/,
    );
  });

  it('give no session an id that the store can not keep [SESS-137]', () => {
    const code = expect.objectContaining({ code: 'session_id_invalid' }) as Error;
    for (const id of ['', ' ', 'a\0b', '\ud800', 'x'.repeat(1025)])
      expect(() => new DrizzleSession(id, { db: pgDb })).toThrow(code);
    for (const id of [' a', 'a ', 'x'.repeat(256)]) {
      expect(() => new DrizzleSession(id, { db: mysqlDb })).toThrow(code);
      expect(new DrizzleSession(id, { db: pgDb }).sessionId).toBe(id);
    }
    expect(new DrizzleSession('😀'.repeat(255), { db: mysqlDb }).sessionId).toHaveLength(510);
  });
});

describe('createAgentTables()', () => {
  it.each([
    ['pg', pg.createAgentTables],
    ['mysql', mysql.createAgentTables],
    ['sqlite', sqlite.createAgentTables],
  ] as const)('refuses names that are none, %s [SESS#47, SESS-158]', (_, create) => {
    const invalid = expect.objectContaining({ code: 'session_name_invalid' }) as Error;
    for (const name of ['x"; DROP TABLE y', '', '1a', 'a-b', 'x'.repeat(64)])
      expect(() => create({ names: { agentMessages: name } })).toThrow(invalid);
    expect(() => create({ names: { agentMessages: 'agent_sessions' } })).toThrow(invalid);
    expect(() => create({ names: { messages: 'x' } as never })).toThrow(/Unknown option 'messages'/);
    expect(() => create({ table: 'x' } as never)).toThrow(/Unknown option 'table' of createAgentTables\(\)/);
  });

  it('refuses what a dialect has not', () => {
    expect(() => sqlite.createAgentTables({ schema: 'x' } as never)).toThrow(/Unknown option 'schema'/);
    expect(() => sqlite.createAgentTables({ names: { agentMessages: 'sqlite_x' } })).toThrow(/keeps such names/);
    expect(() => mysql.createAgentTables({ names: { agentMessages: 'x'.repeat(48) } })).toThrow(/at most 47/);
    expect(() => pg.createAgentTables({ schema: 'a.b' })).toThrow(
      expect.objectContaining({ code: 'session_name_invalid' }),
    );
    expect(() => pg.createAgentTables({ idType: 'int' as never })).toThrow(/'serial' or 'bigserial'/);
  });

  it('declares what Python declares [SESS-273]', () => {
    const columns = ({
      columns: list,
    }: {
      columns: { name: string; notNull: boolean; primary: boolean; getSQLType(): string }[];
    }) =>
      list.map(
        (column) =>
          `${column.name} ${column.getSQLType()}${column.notNull ? ' not null' : ''}${column.primary ? ' pk' : ''}`,
      );
    expect(columns(pgConfig(pg.agentMessages))).toEqual([
      'id serial not null pk',
      'session_id varchar not null',
      'message_data text not null',
      'created_at timestamp not null',
    ]);
    expect(columns(pgConfig(pg.createAgentTables({ idType: 'bigserial' }).agentMessages))[0]).toBe(
      'id bigserial not null pk',
    );
    expect(columns(sqliteConfig(sqlite.agentMessages))).toEqual([
      'id integer not null pk',
      'session_id text not null',
      'message_data text not null',
      'created_at numeric not null',
    ]);
    expect(columns(mysqlConfig(mysql.agentMessages))[2]).toBe(
      'message_data longtext character set utf8mb4 collate utf8mb4_bin not null',
    );
    expect(pgConfig(pg.agentMessages).indexes[0]?.config.name).toBe('idx_agent_messages_session_time');
    expect(pgConfig(pg.agentMessages).foreignKeys[0]?.getName()).toBe('agent_messages_session_id_fkey');
    expect(pgConfig(pg.createAgentTables({ schema: 'chat' }).agentMessages).schema).toBe('chat');
  });

  it('makes no tables in a database of another dialect', async () => {
    await expect(pg.createTables(sqliteDb)).rejects.toThrow(/@agents\/session-drizzle\/pg needs a database/);
  });
});
