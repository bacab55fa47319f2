import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { drizzle as drizzleMySql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createConnection } from 'mysql2/promise';
import postgres from 'postgres';
import { sql } from 'drizzle-orm/sql/sql';
import { describe, expect, it, onTestFinished } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import { createAgentTables, createTables } from '../src/sqlite.ts';
import { open } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

const user = (content: string) => ({ role: 'user', content });

/** Twice what a session does most. */
async function use(session: DrizzleSession<object>): Promise<void> {
  for (const content of ['first', 'second']) {
    await session.addItems([user(content)]);
    await session.getItems(20);
  }
}

describe('better-sqlite3', () => {
  it('prepares each text once, however many sessions there are [SESS-265]', async () => {
    const client = new Database(':memory:');
    const db = drizzle({ client });
    await createTables(db);
    await use(new DrizzleSession<object>('first', { db }));
    const prepared: string[] = [];
    const prepare = client.prepare.bind(client);
    client.prepare = (text: string) => {
      prepared.push(text);
      return prepare(text);
    };
    const session = new DrizzleSession<object>('second', { db });
    await use(session);
    expect(prepared).toEqual([]);
    expect(await session.getItems()).toEqual([user('first'), user('second')]);
  });

  it('keeps no more than a hundred, however many tables there are [SESS-018, 265]', async () => {
    const client = new Database(':memory:');
    const db = drizzle({ client });
    let prepared = 0;
    const prepare = client.prepare.bind(client);
    const names = Array.from({ length: 40 }, (_, index) => `t${index}`);
    const sessions = [];
    for (const name of names) {
      const tables = createAgentTables({
        names: {
          agentSessions: name,
          agentMessages: `${name}m`,
          agentSessionOperations: `${name}o`,
          agentSessionMetadata: `${name}d`,
        },
      });
      await createTables(db, tables);
      sessions.push(new DrizzleSession<object>('s', { db, tables }));
    }
    client.prepare = (text: string) => {
      prepared++;
      return prepare(text);
    };
    for (const session of sessions) await use(session);
    expect(prepared).toBeGreaterThan(100);
    prepared = 0;
    // Those of the first tables were let go.
    for (const session of sessions.slice(0, 1)) await use(session);
    expect(prepared).toBeGreaterThan(0);
    client.close();
  });

  it('shows every statement to the log that drizzle keeps [SESS-265]', async () => {
    const logged: string[] = [];
    const client = new Database(':memory:');
    const db = drizzle({ client, logger: { logQuery: (text) => void logged.push(text) } });
    await createTables(db);
    logged.length = 0;
    await use(new DrizzleSession<object>('logged', { db }));
    expect(logged.filter((text) => text.startsWith('insert into "agent_messages"'))).toHaveLength(2);
    expect(logged.filter((text) => text.includes('limit'))).toHaveLength(4);
  });
});

describe('postgres.js', () => {
  it.each([
    ['is asked once per call, by prepared statements', undefined, true],
    ['has no prepared statements where its own option says so', false, false],
  ])('%s [SESS-265]', async (_, prepare, isPrepared) => {
    const opened = await open('postgres.js');
    const client = postgres(opened.url, { max: 1, onnotice: () => {}, ...(prepare === undefined ? {} : { prepare }) });
    onTestFinished(async () => {
      await client.end({ timeout: 1 });
      await opened.close();
    });
    await makeTables(opened);
    await use(new DrizzleSession<object>('prepared', { db: drizzlePostgresJs({ client }) }));
    const [row] =
      await client`select count(*) as count from pg_prepared_statements where statement like '%agent_messages%'`.simple();
    expect(Number(row?.['count']) > 0).toBe(isPrepared);
  });
});

describe('mysql2', () => {
  it.each([
    ['tables of ours', 6],
    ['tables of Python, which keep no fractions of a second', 0],
  ])('gives the version that a read gives, on %s [SESS-037]', async (_, fractions) => {
    const opened = await open('mysql2');
    onTestFinished(() => opened.close());
    await makeTables(opened);
    for (const [table, column] of [
      ['agent_sessions', 'updated_at'],
      ['agent_messages', 'created_at'],
    ] as const)
      await execute(
        opened,
        sql.raw(
          `alter table ${table} modify ${column} timestamp(${fractions}) not null default current_timestamp(${fractions})`,
        ),
      );
    const session = new DrizzleSession<object>('versions', { db: opened.db });
    let { version } = await session.readHistory();
    for (const texts of [['1'], ['2', '3', '4'], []]) {
      version = await session.appendIfVersion(version, texts.map(user));
      expect((await session.readHistory(1)).version).toBe(version);
    }
    expect(await session.getItems()).toEqual(['1', '2', '3', '4'].map(user));
  });

  it('gives it where ids are counted in steps, as on servers of a cluster [SESS-037]', async () => {
    const opened = await open('mysql2');
    const client = await createConnection(opened.url);
    onTestFinished(async () => {
      await client.end();
      await opened.close();
    });
    await makeTables(opened);
    await client.query('set auto_increment_increment = 3');
    const session = new DrizzleSession<object>('steps', { db: drizzleMySql({ client }) });
    const version = await session.appendIfVersion((await session.readHistory()).version, ['1', '2', '3'].map(user));
    expect((await session.readHistory(1)).version).toBe(version);
  });
});
