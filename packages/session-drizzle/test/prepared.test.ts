import { spawnSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';

import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { drizzle as drizzleMySql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createConnection } from 'mysql2/promise';
import postgres from 'postgres';
import { sql } from 'drizzle-orm/sql/sql';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import type { DrizzleDatabase } from '../src/index.ts';
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

it('loads no dialect of drizzle for sessions [SESS-265]', () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { DrizzleSession } = await import('@agents/session-drizzle');
    console.log(JSON.stringify([typeof DrizzleSession, loaded.filter((url) => url.includes('drizzle-orm'))]));`;
  const args = ['--no-warnings', '--conditions=source', '--input-type=module', '--eval', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' });
  expect(stderr).toBe('');
  const [session, loaded] = JSON.parse(stdout) as [string, string[]];
  expect([session, loaded.length > 0]).toEqual(['function', true]);
  expect(loaded.filter((url) => /-core\/(?:index|db|dialect|table)\.js/.test(url))).toEqual([]);
});

/** Of another copy of drizzle, too. */
async function nodeSqlite(client: DatabaseSync): Promise<DrizzleDatabase> {
  const { drizzle: connect } = await import('drizzle-orm-1/node-sqlite');
  return connect({ client });
}

describe.each<[string, () => { client: DatabaseSync | Database.Database; db: Promise<DrizzleDatabase> }]>([
  [
    'better-sqlite3',
    () => {
      const client = new Database(':memory:');
      return { client, db: Promise.resolve(drizzle({ client })) };
    },
  ],
  [
    'node:sqlite',
    () => {
      const client = new DatabaseSync(':memory:');
      return { client, db: nodeSqlite(client) };
    },
  ],
])('%s', (_, make) => {
  it('prepares each text once, however many sessions there are [SESS-265]', async () => {
    const made = make();
    const client = made.client as Database.Database;
    const db = await made.db;
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
    // Begin and end of a transaction are drizzle's.
    expect(prepared.filter((text) => !/^(?:begin|commit)/.test(text))).toEqual([]);
    expect(await session.getItems()).toEqual([user('first'), user('second')]);
    client.close();
  });
});

it('goes by drizzle where somebody stands before `execute` of postgres.js [SESS-265]', async () => {
  const opened = await open('postgres.js');
  onTestFinished(() => opened.close());
  await makeTables(opened);
  const db = opened.db as unknown as { execute(query: unknown): PromiseLike<unknown> };
  let asked = 0;
  const wrapped = new Proxy(db, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (name !== 'execute') return member;
      return (query: unknown) => {
        asked++;
        return target.execute(query);
      };
    },
  });
  const session = new DrizzleSession<object>('wrapped', { db: wrapped as unknown as DrizzleDatabase });
  await use(session);
  // An append and a read are a statement each.
  expect(asked).toBeGreaterThanOrEqual(4);
  expect(await session.getItems()).toEqual([user('first'), user('second')]);
});

describe('better-sqlite3', () => {
  it.each(['all', 'run'] as const)('goes by drizzle where somebody stands before `%s` [SESS-265]', async (method) => {
    const client = new Database(':memory:');
    const db = drizzle({ client });
    await createTables(db);
    let asked = 0;
    const wrapped = new Proxy(db, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (name !== method) return member;
        return (query: Parameters<(typeof db)['all']>[0]) => {
          asked++;
          return target[method](query);
        };
      },
    });
    const session = new DrizzleSession<object>('wrapped', { db: wrapped });
    const prepare = vi.spyOn(client, 'prepare');
    for (let time = 0; time < 2; time++) {
      prepare.mockClear();
      await session.getItems();
      // Drizzle prepares each time.
      expect(prepare).toHaveBeenCalled();
    }
    await use(session);
    // Statements that give no rows are drizzle's own begin and end alone.
    expect(asked > 0).toBe(method === 'all');
    expect(await session.getItems()).toEqual([user('first'), user('second')]);
    client.close();
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

  it('gives it where ids are counted in steps, as on servers of a cluster [SESS-037, 263]', async () => {
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
