import { sessionStoreContract } from '@agents/core/testing';
import type { SessionStoreFixture } from '@agents/core/testing';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';
import { describe, expect, it } from 'vitest';

import { DrizzleSessionStore } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName, Opened } from './support/databases.ts';
import { execute, noSkip } from './support/fixture.ts';
import { openedFor } from './support/opened.ts';
import { makeTables } from './support/tables.ts';

const user = (content: string) => ({ role: 'user' as const, content });

/** The same database; `work` is done before each part of an export is read. */
function beforeParts<T extends object>(db: T, work: () => Promise<void>): T {
  const methods = ['execute', 'all'];
  return new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (!methods.includes(String(name))) return (value as (...args: unknown[]) => unknown).bind(target);
      return async (statement: SQL) => {
        const { sql: text } = statement.toQuery({
          escapeName: (one: string) => one,
          escapeParam: () => '?',
          escapeString: (one: string) => one,
        } as never);
        if (/order by created_at, id limit/.test(text)) await work();
        return await (value as (one: SQL) => unknown).call(target, statement);
      };
    },
  });
}

describe.each<DriverName>(['node-postgres', 'postgres.js', 'mysql2', 'better-sqlite3', 'libsql'])('on %s', (driver) => {
  const opened = openedFor(driver);

  const earlier = (column: SQL, ms: number): SQL => {
    if (opened.dialect === 'pg') return sql`${column} - ${ms} * interval '1 millisecond'`;
    if (opened.dialect === 'mysql') return sql`${column} - interval ${ms * 1000} microsecond`;
    return sql`datetime(${column}, ${`${-ms / 1000} seconds`})`;
  };
  const empty = async (): Promise<void> => {
    for (const table of ['messages', 'session_operations', 'session_metadata', 'sessions'])
      await execute(opened, sql`delete from ${sql.identifier(`agent_${table}`)}`);
  };
  /** A database in which messages are tied to their sessions by nothing, as others may have made it. */
  const withoutForeignKey = async (work: (own: Opened, store: DrizzleSessionStore) => Promise<void>): Promise<void> => {
    const own = await open(driver);
    try {
      await makeTables(own);
      const parted = {
        pg: sql`alter table agent_messages drop constraint agent_messages_session_id_fkey`,
        mysql: sql`alter table agent_messages drop foreign key agent_messages_session_id_fkey`,
        sqlite: sql`pragma foreign_keys = off`,
      };
      await execute(own, parted[own.dialect]);
      await work(own, new DrizzleSessionStore({ db: own.db }));
    } finally {
      await own.close();
    }
  };
  const make = async (): Promise<SessionStoreFixture> => {
    await empty();
    return {
      open: () => new DrizzleSessionStore({ db: opened.db }),
      age: async (id, ms) => {
        await execute(
          opened,
          sql`update agent_sessions set created_at = ${earlier(sql`created_at`, ms)}, updated_at = ${earlier(sql`updated_at`, ms)} where session_id = ${id}`,
        );
      },
    };
  };
  const cases = sessionStoreContract(make);
  it.each(cases)('$title [SESS-371, 372, 373, 374, 376]', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });

  it.each(['clear', 'delete', 'prune'] as const)(
    'leaves no message behind without its session, also where no foreign key takes it along: %s [SESS-274]',
    async (way) => {
      await withoutForeignKey(async (own, store) => {
        for (const id of ['a', 'b']) await store.session(id).addItems([user('x'), user('y')]);
        if (way === 'clear') await store.session('a').clearSession();
        if (way === 'delete') await store.delete('a');
        if (way === 'prune') {
          await execute(
            own,
            sql`update agent_sessions set updated_at = ${earlier(sql`updated_at`, 3_600_000)} where session_id = 'a'`,
          );
          await store.prune({ idleForMs: 60_000 });
        }
        expect(await store.check()).toEqual([]);
        expect(await execute(own, sql`select distinct session_id as id from agent_messages`)).toEqual([{ id: 'b' }]);
      });
    },
  );

  it('pops and clears what lost its session row, and check() tells of it [SESS#90, SESS-274]', async () => {
    await withoutForeignKey(async (own, store) => {
      for (const id of ['a', 'b']) await store.session(id).addItems([user('x'), user('y'), user('z')]);
      await execute(own, sql`delete from agent_sessions where session_id = 'a'`);
      expect(await store.check()).toEqual([
        expect.stringMatching(/^1 session has rows in 'agent_messages' and none in 'agent_sessions'/),
      ]);
      expect(await store.session('a').popItem()).toEqual(user('z'));
      await store.session('a').clearSession();
      expect(await store.session('a').getItems()).toEqual([]);
      expect(await store.check()).toEqual([]);
      expect(await store.session('b').getItems()).toHaveLength(3);
    });
  });

  it('exports part by part, in the order of stamps and ids [SESS-376]', async () => {
    await empty();
    const store = new DrizzleSessionStore({ db: opened.db });
    const texts = Array.from({ length: 1300 }, (_, index) => user(String(index)));
    await store.session('a').addItems(texts.slice(0, 1200));
    // A row that came in before the others, as those of Python may.
    await execute(
      opened,
      sql`insert into agent_messages (session_id, message_data, created_at)
        select 'a', ${JSON.stringify(user('first'))}, ${earlier(sql`updated_at`, 3_600_000)} from agent_sessions where session_id = 'a'`,
    );
    await store.session('a').addItems(texts.slice(1200));
    const lines: string[] = [];
    let appended = false;
    for await (const line of store.export('a')) {
      lines.push(line);
      // Behind what is exported.
      if (!appended) await store.session('a').addItems([user('later')]);
      appended = true;
    }
    const items = lines.slice(1, -1).map((line) => JSON.parse(line) as unknown);
    expect(items).toEqual([user('first'), ...texts]);

    const broken: string[] = [];
    const read = async (): Promise<void> => {
      for await (const line of store.export('a')) if (broken.push(line) === 3) await store.session('a').popItem();
    };
    // The newest item is gone, and with it the promise that the others before it are there.
    await expect(read()).rejects.toMatchObject({ code: 'session_version_conflict' });
    expect(broken).toHaveLength(1 + 500);
  });

  it('exports no history of which something went before its last part was read [SESS-376]', async () => {
    for (const count of [1, 501]) {
      await empty();
      const store = new DrizzleSessionStore({ db: opened.db });
      await store.session('a').addItems(Array.from({ length: count }, (_, index) => user(String(index))));
      // Past the queue of a driver with one connection. Between the look at where the history ends, or at its part before the last, and the part that is short.
      const looks: string[] = [];
      const db = beforeParts(opened.db, async () => {
        if (looks.push('part') === Math.ceil(count / 500)) await execute(opened, sql`delete from agent_messages`);
      });
      const lines: string[] = [];
      const read = async (): Promise<void> => {
        for await (const line of new DrizzleSessionStore({ db }).export('a')) lines.push(line);
      };
      await expect(read()).rejects.toMatchObject({ code: 'session_version_conflict' });
      expect(lines.at(-1) ?? '').not.toContain('"end":true');
    }
  });

  it('pages by times as exact as they are stored: sessions of one millisecond come once each [SESS-371, 372]', async () => {
    await empty();
    const store = new DrizzleSessionStore({ db: opened.db });
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const [index, id] of ids.entries()) {
      await store.session(id).addItems([user(id)]);
      const [created, updated] = [index, ids.length - index].map((micros) => `2026-01-02 03:04:05.00010${micros}`);
      await execute(
        opened,
        opened.dialect === 'pg'
          ? sql`update agent_sessions set created_at = cast(${created} as timestamp), updated_at = cast(${updated} as timestamp) where session_id = ${id}`
          : sql`update agent_sessions set created_at = ${created}, updated_at = ${updated} where session_id = ${id}`,
      );
    }
    for (const [order, expected] of [
      ['created', ids.toReversed()],
      ['updated', ids],
    ] as const) {
      const listed: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.list({ order, limit: 1, ...(cursor !== undefined && { cursor }) });
        listed.push(...page.sessions.map(({ sessionId }) => sessionId));
        cursor = page.cursor;
      } while (cursor !== undefined && listed.length < 10);
      expect(listed, order).toEqual(expected);
    }
  });

  it('lists without a look at the items: none of them can be read here [SESS-372]', async () => {
    await empty();
    const store = new DrizzleSessionStore({ db: opened.db });
    for (const id of ['a', 'b']) await store.session(id).addItems([user('x'), user('y')]);
    const rename = async (from: string, to: string): Promise<unknown> =>
      await execute(
        opened,
        sql`alter table agent_messages rename column ${sql.identifier(from)} to ${sql.identifier(to)}`,
      );
    await rename('message_data', 'hidden');
    try {
      expect((await store.list({ order: 'id' })).sessions.map(({ itemCount }) => itemCount)).toEqual([
        undefined,
        undefined,
      ]);
      expect((await store.list({ withCount: true })).sessions.map(({ itemCount }) => itemCount)).toEqual([2, 2]);
    } finally {
      await rename('hidden', 'message_data');
    }
  });

  it('takes dates that no column holds, at both ends [SESS-371, 374]', async () => {
    await empty();
    const store = new DrizzleSessionStore({ db: opened.db });
    await store.session('a').addItems([user('x')]);
    const counted = async (query: { updatedAfter?: Date; updatedBefore?: Date }): Promise<number> =>
      (await store.list(query)).sessions.length;
    for (const ms of [8.64e15, 253_402_300_800_000]) {
      expect(await counted({ updatedAfter: new Date(ms) })).toBe(0);
      expect(await counted({ updatedBefore: new Date(ms) })).toBe(1);
    }
    for (const ms of [-8.64e15, -62_167_219_200_001, -1, 0]) {
      expect(await counted({ updatedAfter: new Date(ms) })).toBe(1);
      expect(await counted({ updatedBefore: new Date(ms) })).toBe(0);
      expect(await store.prune({ olderThan: new Date(ms) })).toEqual({ sessions: 0, items: 0 });
    }
    expect(await store.prune({ idleForMs: Number.MAX_SAFE_INTEGER })).toEqual({ sessions: 0, items: 0 });
    expect(await store.prune({ olderThan: new Date(8.64e15) })).toEqual({ sessions: 1, items: 1 });
  });

  it('check() tells of stamps of the future [SESS-271]', async () => {
    await empty();
    const store = new DrizzleSessionStore({ db: opened.db });
    await store.session('a').addItems([user('x')]);
    expect(await store.check()).toEqual([]);
    // A clock may be a little ahead.
    await execute(opened, sql`update agent_messages set created_at = ${earlier(sql`created_at`, -40_000)}`);
    expect(await store.check()).toEqual([]);
    await execute(opened, sql`update agent_messages set created_at = ${earlier(sql`created_at`, -40_000)}`);
    expect(await store.check()).toEqual([expect.stringMatching(/^1 row of 'agent_messages' is of the future/)]);
  });
});

it('check() tells of a time zone of PostgreSQL that is not UTC, whatever that is called [SESS-271]', async () => {
  const opened = await open('node-postgres');
  try {
    await makeTables(opened);
    for (const [zone, advice] of [
      ['UTC', []],
      ['Etc/UTC', []],
      ['GMT', []],
      ['Europe/London', [expect.stringMatching(/^The time zone of the connection is 'Europe\/London'/)]],
      // Its name says GMT, its clock does not.
      ['Etc/GMT+5', [expect.stringMatching(/^The time zone of the connection is 'Etc\/GMT\+5'/)]],
      ['America/New_York', [expect.stringMatching(/^The time zone of the connection is 'America\/New_York'/)]],
      ['Asia/Tokyo', [expect.stringMatching(/^The time zone of the connection is 'Asia\/Tokyo'/)]],
    ] as const) {
      const name = new URL(opened.url).pathname.slice(1);
      await execute(opened, sql`alter database ${sql.identifier(name)} set timezone = ${sql.raw(`'${zone}'`)}`);
      const again = await open('node-postgres', opened.url);
      const store = new DrizzleSessionStore({ db: again.db });
      await store.session(zone).addItems([user('x')]);
      expect(await store.check()).toEqual(advice);
      // The present is that of the zone.
      await execute(again, sql`update agent_messages set created_at = created_at + interval '80 seconds'`);
      const future = expect.stringMatching(/^1 row of 'agent_messages' is of the future/);
      expect(await store.check()).toEqual([future, ...advice]);
      await store.delete(zone);
      await again.close();
    }
  } finally {
    await opened.close();
  }
});

it.each([
  ['infinity', 8.64e15],
  ['-infinity', -8.64e15],
  ['294000-01-01', 8.64e15],
])('gives the nearest date for a stamp of PostgreSQL that is none: %s [SESS-371]', async (stamp, nearest) => {
  const opened = await open('node-postgres');
  try {
    await makeTables(opened);
    const store = new DrizzleSessionStore({ db: opened.db });
    await store.session('a').addItems([user('x')]);
    await execute(opened, sql`update agent_sessions set updated_at = cast(${stamp} as timestamp)`);
    expect((await store.get('a'))?.updatedAt?.getTime()).toBe(nearest);
    expect((await store.list()).sessions).toHaveLength(1);
  } finally {
    await opened.close();
  }
});

it('ends calls that the database does not answer in time, and goes on when it does', async () => {
  const opened = await open('node-postgres');
  try {
    await makeTables(opened);
    const store = new DrizzleSessionStore({ db: opened.db, operationTimeoutMs: 300 });
    await store.session('held').addItems([user('x')]);
    const db = opened.db as unknown as { transaction(work: (tx: unknown) => Promise<void>): Promise<void> };
    await db.transaction(async (tx) => {
      await (tx as { execute(statement: SQL): Promise<unknown> }).execute(
        sql`select 1 from agent_sessions where session_id = 'held' for update`,
      );
      await expect(store.setMetadata('held', { a: 1 })).rejects.toMatchObject({
        code: 'session_outcome_unknown',
        sessionId: 'held',
        operation: 'replace',
      });
      expect((await store.get('held'))?.itemCount).toBe(1);
    });
    await expect.poll(async () => (await store.get('held'))?.metadata).toEqual({ a: 1 });
    expect(await store.delete('held')).toBe(true);
  } finally {
    await opened.close();
  }
});
