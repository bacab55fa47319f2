import { once } from 'node:events';

import { configureLogging } from '@agents/core';
import { SessionBusyError, SessionItemError } from '@agents/core/session';
import { faultOperations, faultResult, faultStart, makeChange } from '@agents/testkit';
import type { FaultOperation } from '@agents/testkit';
import { createClient } from '@libsql/client';
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { sql } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { MySqlDialect } from '../src/dialects/mysql.ts';
import { sqliteErrors } from '../src/dialects/sqlite.ts';
import { DrizzleSession } from '../src/index.ts';
import { createAgentTables as createMySqlTables, createTables as createTablesOfMySql } from '../src/mysql.ts';
import { createAgentTables, createTables } from '../src/pg.ts';
import { sessionOn } from './faults/subject.ts';
import { start } from './processes/child.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { historyOf, read, textsOf } from './support/history.ts';
import { openedFor } from './support/opened.ts';
import { makeTables } from './support/tables.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

const user = (content: string) => ({ role: 'user', content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));

/** What drizzle says that it sends, in this order. */
function remembering(): {
  logger: { logQuery(statement: string, values: unknown[]): void };
  statements: { text: string; ids: string[] }[];
} {
  const statements: { text: string; ids: string[] }[] = [];
  const logQuery = (text: string, values: unknown[]): void =>
    void statements.push({ text, ids: ['one', 'two'].filter((id) => values.includes(id)) });
  return { logger: { logQuery }, statements };
}

/** Statements within somebody else's transaction. */
function strayOf(statements: readonly { text: string; ids: readonly string[] }[]): string[] {
  const stray: string[] = [];
  let within: string[] | undefined;
  for (const { text, ids } of statements) {
    if (within !== undefined && (/^begin/i.test(text) || ids.some((id) => within?.some((owner) => owner !== id))))
      stray.push(text);
    if (/^begin/i.test(text)) within = [];
    else if (/^(commit|rollback)/i.test(text)) within = undefined;
    else within?.push(...ids);
  }
  expect(statements.filter(({ text }) => /^begin/i.test(text)).length).toBeGreaterThan(1);
  return stray;
}

describe('PostgreSQL', () => {
  const opened = openedFor('node-postgres');

  it('shows a polling reader nothing before what it has read, with 8 writers [SESS#36, SESS-261]', async () => {
    const { db } = opened;
    let writing = true;
    const writers = users(8).map(async ({ content }) => {
      const session = new DrizzleSession<object>('polled', { db });
      for (let batch = 0; batch < 25; batch++)
        await session.addItems([user(`${content}/${batch}/0`), user(`${content}/${batch}/1`)]);
    });
    const reader = (async () => {
      const session = new DrizzleSession<{ content: string }>('polled', { db });
      let seen: string[] = [];
      for (let last = false; !last;) {
        last = !writing;
        const contents = (await session.getItems()).map(({ content }) => content);
        expect(contents.slice(0, seen.length)).toEqual(seen);
        expect(contents.length % 2).toBe(0);
        seen = contents;
      }
      return seen;
    })();
    await Promise.all(writers);
    writing = false;
    expect(await reader).toHaveLength(400);
  });

  it('makes its tables once, for many who make them at the same moment [SESS-269]', async () => {
    const fresh = await open('node-postgres');
    try {
      await Promise.all(users(10).map(() => createTables(fresh.db)));
      const session = new DrizzleSession<object>('s', { db: fresh.db });
      await session.addItems(users(1));
      expect(await session.getItems()).toEqual(users(1));
    } finally {
      await fresh.close();
    }
  });

  it('keeps sessions in another schema, under other names, with ids of 64 bits [SESS-158, 272]', async () => {
    const target = opened;
    await execute(target, sql`create schema chat`);
    const tables = createAgentTables({ schema: 'chat', names: { agentMessages: 'items' }, idType: 'bigserial' });
    await createTables(target.db, tables);
    const session = new DrizzleSession<object>('s', { db: target.db, tables });
    await execute(target, sql`select setval('chat.items_id_seq', 3000000000)`);
    await session.addItems(users(3));
    await session.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 3), replacement: users(1, 9) },
    });
    expect(await session.getItems()).toEqual([...users(2), ...users(1, 9)]);
    expect(await new DrizzleSession<object>('s', { db: target.db }).getItems()).toEqual([]);
    const [row] = await execute(target, sql`select max(id) as id, count(*) as n from chat.items`);
    expect([Number(row?.['id']) > 3_000_000_000, Number(row?.['n'])]).toEqual([true, 3]);
  });

  it('needs no isolation of a certain level as the default of the database [SESS-261]', async () => {
    const strict = await open('node-postgres');
    try {
      await makeTables(strict);
      await execute(
        strict,
        sql`alter database ${sql.identifier(new URL(strict.url).pathname.slice(1))} set default_transaction_isolation = 'serializable'`,
      );
      const again = await open('node-postgres', strict.url);
      const session = (): DrizzleSession<object> => new DrizzleSession<object>('s', { db: again.db });
      await Promise.all(users(6).map((item) => session().addItems([item])));
      await Promise.all([session().popItem(), session().popItem()]);
      expect(await session().getItems()).toHaveLength(4);
      await again.close();
    } finally {
      await strict.close();
    }
  });

  it('looks again which tables are there after a first call that failed [SESS-267]', async () => {
    const [{ default: pg }, { drizzle: connect }] = await Promise.all([
      import('pg'),
      import('drizzle-orm/node-postgres'),
    ]);
    const client = new pg.Pool({ connectionString: opened.url, max: 1 });
    Object.assign(client, {
      query: async () => {
        Reflect.deleteProperty(client, 'query');
        throw new Error('not yet');
      },
    });
    const session = new DrizzleSession<object>('early', { db: connect({ client }) });
    await expect(session.getItems()).rejects.toThrow('not yet');
    await session.addItems(users(1));
    expect(await session.getItems()).toEqual(users(1));
    await client.end();
  });

  it('appends by one statement, with an operation id too, and needs no transaction for it [SESS-262]', async () => {
    const [{ default: pg }, { drizzle: connect }] = await Promise.all([
      import('pg'),
      import('drizzle-orm/node-postgres'),
    ]);
    const client = new pg.Client({ connectionString: opened.url });
    await client.connect();
    const { logger, statements } = remembering();
    const session = new DrizzleSession<object>('single', { db: connect({ client, logger }) });
    // The first call looks which tables there are.
    await session.getItems();
    statements.length = 0;
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(2, 4) } } as const;
    await session.addItems(users(3));
    await session.applyHistoryTransaction?.(operation);
    await session.applyHistoryTransaction?.(operation);
    // Now and then old operations go with it.
    const asked = statements.map(({ text }) => text).filter((text) => !text.startsWith('delete from'));
    expect(asked).toHaveLength(3);
    for (const text of asked) expect(text).toMatch(/^with .*insert into "agent_messages"/su);
    expect(await session.getItems()).toEqual(users(5));
    await client.end();
  });

  it('takes one client instead of a pool: its calls wait for each other [SESS-264]', async () => {
    const [{ default: pg }, { drizzle: connect }] = await Promise.all([
      import('pg'),
      import('drizzle-orm/node-postgres'),
    ]);
    const client = new pg.Client({ connectionString: opened.url });
    await client.connect();
    const { logger, statements } = remembering();
    const sessions = ['one', 'two'].map((id) => new DrizzleSession<object>(id, { db: connect({ client, logger }) }));
    await Promise.all(
      sessions.flatMap((session) => [
        session.replaceHistory(users(3)),
        session.addItems(users(2, 4)),
        session.popItem(),
        session.getItems(),
      ]),
    );
    for (const session of sessions) expect(await session.getItems()).toEqual(users(4));
    expect(strayOf(statements)).toEqual([]);
    await client.end();
  });
});

describe('MySQL and MariaDB', () => {
  const opened = openedFor('mysql2');

  it(
    'refuses an item that is larger than a packet before it sends anything [SESS#50, SESS-263]',
    { timeout: 180_000 },
    async () => {
      const session = new DrizzleSession<object>('large', { db: opened.db, operationTimeoutMs: 170_000 });
      const [row] = await execute(opened, sql`select @@max_allowed_packet as packet`);
      const packet = Number(row?.['packet']);
      const error: unknown = await session
        .addItems([user('1'), user('x'.repeat(packet))])
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(SessionItemError);
      expect(error).toMatchObject({ code: 'session_item_too_large', index: 1 });
      expect((error as Error).message).toContain('max_allowed_packet');
      expect(await session.getItems()).toEqual([]);
      // Fits, and so do several that together do not.
      const large = [user('y'.repeat(packet - 100_000)), user('z'.repeat(packet / 4)), user('"'.repeat(packet / 8))];
      await session.addItems(large);
      expect(await session.getItems()).toEqual(large);
    },
  );

  it('keeps items with ids of 64 bits [SESS-272]', async () => {
    const tables = createMySqlTables({
      names: {
        agentSessions: 'wide_sessions',
        agentMessages: 'wide_items',
        agentSessionOperations: 'wide_operations',
        agentSessionMetadata: 'wide_metadata',
      },
      idType: 'bigserial',
    });
    await createTablesOfMySql(opened.db, tables);
    await execute(opened, sql`alter table wide_items auto_increment = 3000000000`);
    const session = new DrizzleSession<object>('s', { db: opened.db, tables });
    await session.addItems(users(3));
    await session.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 3), replacement: users(1, 9) },
    });
    expect(await session.getItems()).toEqual([...users(2), ...users(1, 9)]);
  });

  it('takes the longest names that it allows [SESS-158]', async () => {
    const names = Object.fromEntries(
      ['agentSessions', 'agentMessages', 'agentSessionOperations', 'agentSessionMetadata'].map((member, index) => [
        member,
        `${'x'.repeat(46)}${index}`,
      ]),
    );
    const tables = createMySqlTables({ names });
    await createTablesOfMySql(opened.db, tables);
    const session = new DrizzleSession<object>('s', { db: opened.db, tables });
    await session.addItems(users(2));
    expect(await session.getItems()).toEqual(users(2));
  });

  it('knows operations by ids that no column holds [SESS-034]', async () => {
    const session = new DrizzleSession<object>('long', { db: opened.db });
    for (const operationId of ['x'.repeat(300), 'op ', 'op', 'OP'])
      for (let time = 0; time < 2; time++)
        await session.applyHistoryTransaction?.({
          operationId,
          transaction: { type: 'append_items', items: users(1) },
        });
    expect(await session.getItems()).toHaveLength(4);
  });

  it('takes one connection instead of a pool: its calls wait for each other [SESS-264]', async () => {
    const [{ createConnection }, { drizzle: connect }] = await Promise.all([
      import('mysql2/promise'),
      import('drizzle-orm/mysql2'),
    ]);
    const client = await createConnection(opened.url);
    const { logger, statements } = remembering();
    // Two databases of drizzle, one connection.
    const sessions = ['one', 'two'].map((id) => new DrizzleSession<object>(id, { db: connect({ client, logger }) }));
    await Promise.all(
      sessions.flatMap((session) => [session.addItems(users(3)), session.popItem(), session.getItems()]),
    );
    for (const session of sessions) expect(await session.getItems()).toEqual(users(2));
    expect(strayOf(statements)).toEqual([]);
    await client.end();
  });

  it('a reader sees no writer without those before it: on MariaDB it waits for the one under way [F7, SESS-261]', async () => {
    const session = new DrizzleSession<object>('settled', { db: opened.db });
    await session.addItems(users(1));
    const { createConnection } = await import('mysql2/promise');
    const writer = await createConnection(opened.url);
    await writer.query('start transaction');
    await writer.query("select 1 from agent_sessions where session_id = 'settled' for update");
    const read = session.getItems();
    const state = { isDone: false };
    void read.finally(() => (state.isDone = true)).catch(() => {});
    const waiting = sql`select count(*) as n from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_query like '%settled%'`;
    const isWaiting = async (): Promise<boolean> => Number((await execute(opened, waiting))[0]?.['n']) > 0;
    while (!state.isDone && !(await isWaiting())) await longEnough();
    await writer.query(
      `insert into agent_messages (session_id, message_data, created_at) values ('settled', '{"role":"user","content":"2"}', now(6))`,
    );
    await writer.query('commit');
    await writer.end();
    const [row] = await execute(opened, sql`select version() as version`);
    // MySQL looks at all transactions at one moment: nothing to wait for.
    expect(await read).toEqual(users(String(row?.['version']).includes('MariaDB') ? 2 : 1));
  });

  it('goes on after it waited for a lock as long as the server lets it [SESS-263]', async () => {
    const [{ createConnection }, { drizzle: connect }] = await Promise.all([
      import('mysql2/promise'),
      import('drizzle-orm/mysql2'),
    ]);
    const [client, other] = await Promise.all([createConnection(opened.url), createConnection(opened.url)]);
    await client.query('set session innodb_lock_wait_timeout = 1');
    const { logger, statements } = remembering();
    const session = new DrizzleSession<object>('late', { db: connect({ client, logger }) });
    await session.addItems(users(1));
    await other.query('start transaction');
    await other.query("select 1 from agent_sessions where session_id = 'late' for update");
    statements.length = 0;
    const added = session.addItems(users(1, 2));
    const state = { isDone: false };
    void added.finally(() => (state.isDone = true)).catch(() => {});
    const begun = (): number => statements.filter(({ text }) => /^begin/i.test(text)).length;
    while (!state.isDone && begun() < 2) await longEnough();
    await other.query('commit');
    await added;
    expect(begun()).toBeGreaterThan(1);
    expect(await session.getItems()).toEqual(users(2));
    await Promise.all([client.end(), other.end()]);
  });

  it('appends by six statements: the answer of the insertion says the version [SESS-263]', async () => {
    const [{ createConnection }, { drizzle: connect }] = await Promise.all([
      import('mysql2/promise'),
      import('drizzle-orm/mysql2'),
    ]);
    const client = await createConnection(opened.url);
    const { logger, statements } = remembering();
    const history = historyOf(connect({ client, logger }), 'six');
    await history.read(0);
    statements.length = 0;
    await history.write({ type: 'append', texts: textsOf(3) });
    const sent = statements.map(({ text }) => /^\w+/.exec(text)?.[0].toLowerCase());
    expect(sent).toEqual(['begin', 'insert', 'select', 'update', 'insert', 'commit']);
    await client.end();
  });

  it('inserts as much at once as half a packet holds; reads share a lock on MariaDB, on MySQL none [SESS-263]', async () => {
    const [{ createConnection }, { drizzle: connect }] = await Promise.all([
      import('mysql2/promise'),
      import('drizzle-orm/mysql2'),
    ]);
    const client = await createConnection(opened.url);
    const { logger, statements } = remembering();
    const history = historyOf(connect({ client, logger }), 'packets');
    // The first call looks which server it is.
    await history.read(0);
    const dialect = history.dialect as MySqlDialect;
    // Room for two of these, with what is counted on top of each.
    dialect.maxPacket = 40_000;
    const texts = Array.from({ length: 5 }, () => JSON.stringify(user('x'.repeat(5000))));
    statements.length = 0;
    await history.write({ type: 'append', texts });
    expect(statements.filter(({ text }) => text.startsWith('insert into `agent_messages`'))).toHaveLength(3);
    for (const isMariaDB of [true, false]) {
      dialect.isMariaDB = isMariaDB;
      statements.length = 0;
      expect(await read(history)).toEqual(texts);
      expect(statements.map(({ text }) => text.includes('lock in share mode'))).toEqual([isMariaDB]);
    }
    await client.end();
  });

  it('goes on after a deadlock with another writer [SESS-263]', async () => {
    const session = (): DrizzleSession<object> => new DrizzleSession<object>('busy', { db: opened.db });
    await Promise.all(
      users(8).map(async (item) => {
        for (let batch = 0; batch < 10; batch++) await session().addItems([item, item]);
      }),
    );
    expect(await session().getItems()).toHaveLength(160);
  });
});

/** Somebody who has the lock. By the same driver: two libraries in one process see no locks of each other. */
async function holding({ driver, url }: Opened): Promise<{ release(): Promise<void> }> {
  if (driver === 'libsql') {
    const client = createClient({ url: `file:${url}` });
    const transaction = await client.transaction('write');
    return {
      async release() {
        await transaction.rollback();
        client.close();
      },
    };
  }
  const client = new Database(url);
  client.exec('BEGIN IMMEDIATE');
  return { release: async () => void client.close() };
}

describe.each<DriverName>(['better-sqlite3', 'libsql'])('SQLite by %s', (driver) => {
  const opened = openedFor(driver);

  it('says so when others hold the lock for too long; nothing is written [SESS#9, SESS-264]', async () => {
    const own = await open(driver);
    await makeTables(own);
    const session = (operation: FaultOperation) => sessionOn(own, operation);
    const versions = new Map<FaultOperation, string>();
    for (const operation of faultOperations) {
      await session(operation).addItems(faultStart);
      versions.set(operation, (await session(operation).readHistory(0)).version);
    }
    const holder = await holding(own);
    const transactions = vi.spyOn(own.db as { transaction(): unknown }, 'transaction');
    const results = await Promise.allSettled(
      faultOperations.map((operation) => makeChange(session(operation), operation, versions.get(operation) ?? '')),
    );
    for (const result of results)
      expect(result).toMatchObject({ status: 'rejected', reason: expect.any(SessionBusyError) as Error });
    // Once, and five times again.
    expect(transactions).toHaveBeenCalledTimes(6 * faultOperations.length);
    for (const operation of faultOperations) expect(await session(operation).getItems()).toEqual(faultStart);
    await holder.release();
    await own.close();
  });

  it('reads long histories in pages, and others run in between [SESS#49, SESS-160]', async () => {
    const target = opened;
    const session = new DrizzleSession<{ content: string }>('long', { db: target.db });
    await session.addItems(users(1, 0));
    await execute(
      target,
      sql`insert into agent_messages (session_id, message_data, created_at) with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
        select 'long', '{"role":"user","content":"' || i || '"}', (select max(created_at) from agent_messages) from n`,
    );
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const items = await session.getItems();
    clearInterval(timer);
    expect(items.map(({ content }) => Number(content))).toEqual(Array.from({ length: 30_001 }, (_, index) => index));
    expect(turns).toBeGreaterThan(2);
    expect(await session.getItems(700)).toEqual(items.slice(-700));
    // Removed while it is read.
    const read = session.getItems();
    await new Promise((resolve) => setTimeout(resolve, 1));
    await new DrizzleSession('long', { db: target.db }).clearSession();
    expect([0, 30_001]).toContain((await read).length);
  });
});

describe('SQLite by better-sqlite3', () => {
  const opened = openedFor('better-sqlite3');

  it.each(faultOperations)(
    '%s waits for the lock of others without holding up the process [SESS#8, SESS-264]',
    async (operation) => {
      const session = sessionOn(opened, `waits, ${operation}`);
      await session.addItems(faultStart);
      const { version } = await session.readHistory(0);
      const holder = await holding(opened);
      const changed = makeChange(session, operation, version);
      await new Promise((resolve) => setTimeout(resolve, 100));
      // By another one: the calls of a session come one after the other.
      expect(await sessionOn(opened, session.sessionId).getItems()).toEqual(faultStart);
      await holder.release();
      await changed;
      expect(await session.getItems()).toEqual(faultResult[operation]);
    },
  );

  it('waits twice as long each time that it finds the database locked [SESS-264]', async () => {
    const session = sessionOn(opened, 'delays');
    await session.addItems(faultStart);
    const holder = await holding(opened);
    // Of a delay between a half and all of it.
    const random = vi.spyOn(Math, 'random').mockReturnValue(1);
    const delays: unknown[] = [];
    const later = globalThis.setTimeout;
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run: () => void, ms = 0) => {
      // The others are of calls that take too long.
      if (ms >= 20_000) return later(run, ms);
      delays.push(ms);
      return later(run, 0);
    });
    await expect(session.clearSession()).rejects.toThrow(SessionBusyError);
    for (const spy of [random, timers]) spy.mockRestore();
    await holder.release();
    expect(delays).toEqual([50, 100, 200, 400, 800]);
  });

  it('leaves foreign keys as they are: off and on [SESS-264]', async () => {
    for (const on of [0, 1]) {
      const client = new Database(':memory:');
      client.pragma(`foreign_keys = ${on}`);
      const db = drizzle({ client });
      await makeTables({ db, dialect: 'sqlite' });
      const session = new DrizzleSession<object>('s', { db });
      await session.addItems(users(3));
      await session.replaceHistory(users(2));
      await session.clearSession();
      expect(client.pragma('foreign_keys', { simple: true })).toBe(on);
      expect(client.prepare('select count(*) as n from agent_messages').get()).toEqual({ n: 0 });
      client.close();
    }
  });

  it('opens nothing for ten thousand sessions [SESS-018]', async () => {
    const client = new Database(':memory:');
    const db = drizzle({ client });
    const sessions = Array.from({ length: 10_000 }, (_, index) => new DrizzleSession(`s${index}`, { db }));
    expect(sessions).toHaveLength(10_000);
    client.close();
  });
});

it('a lock of others is known by what the drivers say of it [SESS-264]', () => {
  const locks = [
    ...['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED', 'SQLITE_LOCKED_SHAREDCACHE'].map((code) => ({ code })),
    // The numbers of node:sqlite and of bun, as they are or with more in their higher bits.
    ...[5, 6, 261, 517].flatMap((number) => [{ errcode: number }, { errno: number }]),
  ];
  expect(locks.filter((error) => !sqliteErrors.isConflict(error))).toEqual([]);
  const others = [{ code: 'SQLITE_FULL' }, { errcode: 13 }, { errno: 5 + 256 * 256 + 3 }, { code: 5 }, {}];
  expect(others.filter((error) => sqliteErrors.isConflict(error))).toEqual([]);
});

it('two databases of drizzle over one client wait for each other, libsql [SESS-264]', async () => {
  const opened = await open('libsql');
  await makeTables(opened);
  const { drizzle: connect } = await import('drizzle-orm/libsql');
  const client = createClient({ url: `file:${opened.url}` });
  const sessions = ['one', 'two'].map((id) => new DrizzleSession<object>(id, { db: connect({ client }) }));
  const transactions = vi.spyOn(client, 'transaction');
  await Promise.all(sessions.flatMap((session) => [session.addItems(users(3)), session.popItem()]));
  // None of them found the other at it.
  expect(transactions).toHaveBeenCalledTimes(4);
  for (const session of sessions) expect(await session.getItems()).toEqual(users(2));
  client.close();
  await opened.close();
});

describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])('stamps, %s', (driver) => {
  const opened = openedFor(driver);

  it('are of the time zone of the session, as those that the database gives by itself [SESS-261]', async () => {
    // In the west of the server: there stamps of another zone would be of the future.
    const zones = { pg: sql`set time zone 'America/Anchorage'`, mysql: sql`set time_zone = '-09:00'` };
    const { dialect, url } = opened;
    const alone = await connectAlone(driver, url);
    const on = { db: alone.db, dialect };
    if (dialect !== 'sqlite') await execute(on, zones[dialect]);
    const session = new DrizzleSession<object>('zone', { db: alone.db });
    const asPython = async (content: string): Promise<unknown> =>
      await execute(
        on,
        sql`insert into agent_messages (session_id, message_data) values ('zone', ${JSON.stringify(user(content))})`,
      );
    await session.addItems(users(1));
    await asPython('2');
    await session.replaceHistory(users(3), { ifVersion: (await session.readHistory()).version });
    await asPython('4');
    expect(await session.getItems()).toEqual(users(4));
    await alone.close();
  });
});

/** By one connection, so that what it is told holds for all. */
async function connectAlone(
  driver: DriverName,
  url: string,
): Promise<{ readonly db: Opened['db']; readonly close: () => Promise<unknown> }> {
  if (driver === 'node-postgres') {
    const [{ default: pg }, { drizzle: connect }] = await Promise.all([
      import('pg'),
      import('drizzle-orm/node-postgres'),
    ]);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return { db: connect({ client }), close: () => client.end() };
  }
  if (driver === 'mysql2') {
    const [{ createConnection }, { drizzle: connect }] = await Promise.all([
      import('mysql2/promise'),
      import('drizzle-orm/mysql2'),
    ]);
    const client = await createConnection(url);
    return { db: connect({ client }), close: () => client.end() };
  }
  return await open(driver, url);
}

describe.each<DriverName>(['node-postgres', 'mysql2'])('locks, %s', (driver) => {
  const opened = openedFor(driver);

  it('a pop that meets a deadlock with somebody else is made again [SESS-263, 266]', async () => {
    const other = await open(driver, opened.url);
    const session = new DrizzleSession<object>('deadlock', { db: opened.db });
    await session.addItems(users(3));
    await new DrizzleSession<object>('beside', { db: opened.db }).addItems(users(50));
    let popped: Promise<object | undefined> | undefined;
    type Transaction = (run: (tx: Opened['db']) => Promise<void>) => Promise<void>;
    const transaction = (other.db as unknown as { transaction: Transaction }).transaction.bind(other.db);
    await transaction(async (tx) => {
      const on = { db: tx, dialect: other.dialect };
      // The one that changed less is the one that MySQL undoes.
      await execute(
        on,
        sql`update agent_messages set message_data = concat(message_data, ' ') where session_id = 'beside'`,
      );
      await execute(on, sql`select id from agent_messages where session_id = 'deadlock' for update`);
      popped = session.popItem();
      await waitingFor(opened, 'agent_messages');
      await execute(on, sql`select 1 from agent_sessions where session_id = 'deadlock' for update`);
    });
    expect(await popped).toEqual(user('3'));
    expect(await session.getItems()).toEqual(users(2));
    await other.close();
  });
});

/** Somebody waits for a lock with a statement on this table. */
async function waitingFor(opened: Opened, table: string): Promise<void> {
  const pattern = `%${table}%`;
  const waiting =
    opened.dialect === 'pg'
      ? sql`select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and query like ${pattern} and datname = current_database()`
      : sql`select count(*) as n from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_query like ${pattern}`;
  while (Number((await execute(opened, waiting))[0]?.['n']) === 0) await longEnough();
}

/** Who asks for `innodb_trx` again within 100 ms of the last time gets the answer of that time, for ever. */
async function longEnough(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 150));
}

describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])('processes, %s', (driver) => {
  const opened = openedFor(driver);

  it('write beside each other without a lost item or a split batch [F6, SESS-006]', async () => {
    const { url } = opened;
    const writers = ['a', 'b'].map((name) => start('append.ts', {}, driver, url, 'shared', name, '100', '5'));
    expect(await Promise.all(writers.map(({ ended }) => ended))).toEqual([0, 0]);
    const items = await new DrizzleSession<{ content: string }>('shared', { db: opened.db }).getItems();
    expect(items).toHaveLength(1000);
    for (let at = 0; at < items.length; at += 5) {
      const name = items[at]?.content.replace(/\d+$/, '');
      expect(items.slice(at, at + 5).map(({ content }) => content)).toEqual(
        [0, 1, 2, 3, 4].map((index) => `${name}${index}`),
      );
    }
  });

  it('end by themselves once the database is closed: nothing of ours keeps them [H6, SESS-157]', async () => {
    const child = start('append.ts', {}, driver, opened.url, 'alone', 'x', '1', '1');
    expect(await child.ended).toBe(0);
    expect(child.lines()).toEqual(['closed']);
  });

  it('that is killed within a change leaves a whole batch or none [SESS#12, SESS-006]', async () => {
    const child = start('append.ts', {}, driver, opened.url, 'killed', 'x', '100000', '3');
    const session = new DrizzleSession<object>('killed', { db: opened.db });
    for (let count = 0; count < 9; count = (await session.getItems()).length)
      await new Promise((resolve) => setTimeout(resolve, 20));
    child.process.kill('SIGKILL');
    await once(child.process, 'close');
    await session.addItems(users(3));
    const items = await session.getItems();
    expect(items.length % 3).toBe(0);
    expect(items.slice(-3)).toEqual(users(3));
  });
});
