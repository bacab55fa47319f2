import { SessionSchemaError } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { DrizzleSession, DrizzleSessionStore } from '../src/index.ts';
import type { DrizzleDatabase } from '../src/index.ts';
import { createAgentTables as pgTables } from '../src/pg.ts';
import { createAgentTables as mysqlTables } from '../src/mysql.ts';
import { createAgentTables as sqliteTables } from '../src/sqlite.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { makeTables } from './support/tables.ts';

const user = (content: string) => ({ role: 'user' as const, content });
const tablesOf = { pg: pgTables, mysql: mysqlTables, sqlite: sqliteTables };

async function withDatabase(driver: DriverName, work: (opened: Opened) => Promise<void>): Promise<void> {
  const opened = await open(driver);
  try {
    await makeTables(opened);
    await work(opened);
  } finally {
    await opened.close();
  }
}

afterEach(() => {
  vi.useRealTimers();
});

describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])('a store on %s', (driver) => {
  it('knows which tables it has, whatever another one of the database has, and finds those that were made since [SESS-267, 375]', async () => {
    await withDatabase(driver, async (opened) => {
      const { db, dialect } = opened;
      const store = new DrizzleSessionStore({ db });
      await store.setMetadata('s', { a: 1 });
      const tables = tablesOf[dialect]({ names: { agentSessionMetadata: 'elsewhere' } });
      await expect(new DrizzleSessionStore({ db, tables }).setMetadata('s', { a: 1 })).rejects.toMatchObject({
        name: 'SessionSchemaError',
        message: expect.stringContaining("Metadata needs the table 'elsewhere'"),
      });
      // To make a session needs none.
      await new DrizzleSessionStore({ db, tables }).setMetadata('made', {});
      expect(await store.get('made')).toMatchObject({ itemCount: 0 });
      await execute(opened, sql`alter table agent_session_metadata rename to elsewhere`);
      const other = new DrizzleSessionStore({ db, tables });
      await other.setMetadata('s', { b: 1 });
      expect((await other.get('s'))?.metadata).toEqual({ a: 1, b: 1 });
    });
  });

  it('tells of a column that is not there [SESS-151, 267]', async () => {
    await withDatabase(driver, async (opened) => {
      await execute(opened, sql`alter table agent_messages rename column message_data to other`);
      const session = new DrizzleSession<object>('s', { db: opened.db });
      await expect(session.addItems([user('x')])).rejects.toThrow(SessionSchemaError);
      await expect(session.getItems()).rejects.toThrow(SessionSchemaError);
    });
  });

  it('gives its options to its sessions and to what it imports [SESS-131, 153, 376]', async () => {
    await withDatabase(driver, async (opened) => {
      const told = vi.fn<() => void>();
      const { db } = opened;
      const store = new DrizzleSessionStore({ db, ascii: false, onCorruptItem: told, sessionSettings: { limit: 2 } });
      const plain = new DrizzleSessionStore({ db });
      await plain.session('s').addItems([user('ü'), user('2'), user('3')]);
      await store.import('copy', plain.export('s'));
      await store.session('copy').addItems([user('ö')]);
      const stored = await execute(
        opened,
        sql`select message_data as text from agent_messages where session_id = 'copy'`,
      );
      expect(stored.map(({ text }) => String(text)).join()).toMatch(/ü.*ö/);
      expect(await store.session('s').getItems()).toEqual([user('2'), user('3')]);
      await execute(opened, sql`update agent_messages set message_data = 'corrupt' where session_id = 's'`);
      expect(await store.session('s', { sessionSettings: { limit: 1 } }).getItems()).toEqual([]);
      expect(told).toHaveBeenCalled();
    });
  });

  it('finds members whatever the order of what is in them, and no metadata in what is no object [SESS-371, 375]', async () => {
    await withDatabase(driver, async (opened) => {
      const store = new DrizzleSessionStore({ db: opened.db });
      await store.setMetadata('s', { n: { x: 1, y: 2 } });
      const { sessions } = await store.list({ metadata: { n: { y: 2, x: 1 } } });
      expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['s']);
      for (const data of ['[1]', 'null', '"text"', 'no JSON']) {
        await execute(opened, sql`update agent_session_metadata set data = ${data}`);
        expect((await store.get('s'))?.metadata, data).toBeUndefined();
      }
    });
  });
});

it('an id with a space behind it is no other id, also where the server compares without it [SESS-137, 374]', async () => {
  await withDatabase('mysql2', async ({ db }) => {
    const store = new DrizzleSessionStore({ db });
    await store.session('s').addItems([user('x')]);
    expect(await store.get('s ')).toBeUndefined();
    expect(await store.delete('s ')).toBe(false);
    await expect(store.setMetadata('s ', { a: 1 })).rejects.toMatchObject({ code: 'session_id_invalid' });
    expect(await store.get('s')).toMatchObject({ sessionId: 's', itemCount: 1 });
    expect(await store.delete('s')).toBe(true);
  });
});

it('tables of SQLite are found however their names are spelled [SESS-267]', async () => {
  await withDatabase('better-sqlite3', async (opened) => {
    for (const table of ['agent_session_operations', 'agent_session_metadata']) {
      await execute(opened, sql`alter table ${sql.identifier(table)} rename to other`);
      await execute(opened, sql`alter table other rename to ${sql.identifier(table.toUpperCase())}`);
    }
    const store = new DrizzleSessionStore({ db: opened.db });
    await store.setMetadata('s', { a: 1 });
    const session = store.session('s');
    await session.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'append_items', items: [user('x')] },
    });
    expect(session.applyHistoryTransaction).toBeDefined();
    expect(await session.getItems()).toHaveLength(1);
  });
});

it('calls of a session and of a store end after 30 seconds where nothing else was said [SESS-156]', async () => {
  class Hanging {
    execute = () => new Promise(() => {});
    transaction = () => new Promise(() => {});
  }
  Object.assign(Hanging, { [Symbol.for('drizzle:entityKind')]: 'PgDatabase' });
  const db = new Hanging() as unknown as DrizzleDatabase;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const session = new DrizzleSession<object>('s', { db });
  const store = new DrizzleSessionStore({ db });
  const failed = Promise.all(
    [() => session.getItems(), () => session.addItems([user('x')]), () => store.list(), () => store.delete('s')].map(
      async (call) => await call().catch((error: Error) => error.message + String(error.cause)),
    ),
  );
  await vi.advanceTimersByTimeAsync(120_000);
  for (const text of await failed) expect(text).toContain('within 30000 ms');
});
