import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { MemorySessionStore } from '@agents/core/session';
import { sessionContract, sessionStoreContract } from '@agents/core/testing';
import type { SessionStoreFixture } from '@agents/core/testing';
import { afterAll, describe, expect, it } from 'vitest';

import { watchedHandle } from '../test/handle.ts';
import { SQLiteSession, SQLiteSessionStore } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-store-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = (): string => join(folder, `${++files}.db`);
const user = (content: string) => ({ role: 'user' as const, content });

function sql(path: string, statement: string, ...values: readonly (string | number)[]): unknown[] {
  const database = new DatabaseSync(path, { timeout: 1000, enableForeignKeyConstraints: false });
  const rows = database.prepare(statement).all(...values);
  database.close();
  return rows;
}

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

const AGE = `UPDATE agent_sessions SET created_at = datetime(created_at, ?), updated_at = datetime(updated_at, ?) WHERE session_id = ?`;

describe('contract of stores, on a file [SESS-371, 373, 374, IL-044, IL-045]', () => {
  const make = (): SessionStoreFixture => {
    const path = freshPath();
    return {
      open: () => new SQLiteSessionStore({ path, synchronous: 'NORMAL' }),
      age(id, ms) {
        const shift = `-${ms / 1000} seconds`;
        sql(path, AGE, shift, shift, id);
      },
    };
  };
  it.each(sessionStoreContract(make))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract of stores, with a database that was handed in [SESS-372, 375, 376]', () => {
  const make = (): SessionStoreFixture => {
    const database = new DatabaseSync(':memory:');
    return {
      open: () => new SQLiteSessionStore({ database, sessionsTable: 'chats', messagesTable: 'chat_items' }),
      age(id, ms) {
        const shift = `-${ms / 1000} seconds`;
        database.prepare(AGE.replace('agent_sessions', 'chats')).run(shift, shift, id);
      },
      dispose: () => database.close(),
    };
  };
  it.each(sessionStoreContract(make))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract of the sessions of a store in memory [SESS-188]', () => {
  const make = () => {
    const store = new SQLiteSessionStore({ path: ':memory:' });
    return {
      open: (id: string, options?: object) => store.session(id, options),
      dispose: () => store.close(),
    };
  };
  // Corrupt records, failures and closed clients: session.test.ts.
  it.each(sessionContract(make).filter(({ id }) => !/^(E|G|H2)/.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('sessions of a store', () => {
  it('share memory, which ends with the store and not with them [SESS-188, SESS-154]', async () => {
    const store = new SQLiteSessionStore();
    const [first, second] = [store.session('a'), store.session('a')];
    await first.addItems([user('x')]);
    await first.close();
    expect(await second.getItems()).toEqual([user('x')]);
    expect(await new SQLiteSession('a').getItems()).toEqual([]);
    await store.close();
    await expect(second.getItems()).rejects.toMatchObject({ code: 'session_closed' });
    await expect(first.addItems([user('y')])).rejects.toMatchObject({ code: 'session_closed' });
  });

  it('use the tables and the settings of the store', async () => {
    const path = freshPath();
    const options = { path, sessionsTable: 'chats', messagesTable: 'chat_items', sessionSettings: { limit: 1 } };
    await using store = new SQLiteSessionStore(options);
    await store.session('a').addItems([user('1'), user('2')]);
    expect(await store.session('a').getItems()).toEqual([user('2')]);
    expect(await store.session('a', { sessionSettings: { limit: null } }).getItems()).toHaveLength(2);
    expect(sql(path, 'SELECT message_data FROM chat_items WHERE session_id = ?', 'a')).toHaveLength(2);
    await store.setMetadata('a', { x: 1 });
    expect(sql(path, 'SELECT data FROM chat_items_metadata')).toEqual([{ data: '{"x":1}' }]);
    const transaction = { type: 'append_items', items: [user('3')] } as const;
    await store.session('a').applyHistoryTransaction({ operationId: 'op', transaction });
    expect(sql(path, 'SELECT operation_id FROM chat_items_operations')).toEqual([{ operation_id: 'op' }]);
    await store.fork('a', 'b');
    expect(await store.session('b').getItems(9)).toEqual([user('1'), user('2'), user('3')]);
    await store.delete('a');
    expect(sql(path, 'SELECT operation_id FROM chat_items_operations')).toEqual([]);
    expect(sql(path, 'SELECT name FROM sqlite_master WHERE name = ?', 'agent_messages')).toEqual([]);
  });

  it('report corrupt records as the store was told, and wait for a lock as long as it does [SESS-153, SESS-156]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore({ path, corruptItems: 'throw', busyTimeoutMs: 20 });
    await store.session('a').addItems([user('1')]);
    sql(path, `UPDATE agent_messages SET message_data = '{'`);
    await expect(store.session('a').getItems()).rejects.toMatchObject({ code: 'session_error' });
    const lock = new DatabaseSync(path);
    lock.exec('BEGIN IMMEDIATE');
    const calls = [
      () => store.session('a').addItems([user('2')]),
      () => store.setMetadata('a', { x: 1 }),
      () => store.delete('a'),
      () => store.fork('a', 'b'),
    ];
    for (const call of calls)
      await expect(call()).rejects.toMatchObject({ code: 'session_busy', message: expect.stringMatching(/ 20 ms/) });
    lock.close();
  });

  it('are found by metadata with lone surrogates, which SQLite cannot compare [SESS-375]', async () => {
    await using store = new SQLiteSessionStore(freshPath());
    await store.setMetadata('a', { title: 'cut off: \ud83d', '\ude00': 'x' });
    await store.setMetadata('b', { title: 'cut off: \ud83c' });
    const found = async (metadata: object): Promise<string[]> =>
      (await store.list({ metadata: { ...metadata } })).sessions.map(({ sessionId }) => sessionId);
    expect(await found({ title: 'cut off: \ud83d' })).toEqual(['a']);
    expect(await found({ '\ude00': 'x' })).toEqual(['a']);
  });

  it('let go of the file with the store [SESS-186]', async () => {
    const path = freshPath();
    const store = new SQLiteSessionStore(path);
    await store.session('a').addItems([user('x')]);
    expect(existsSync(`${path}-wal`)).toBe(true);
    await store.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
  });
});

describe('open()', () => {
  it('takes a path after sqlite: [SESS-391]', async () => {
    const path = freshPath();
    await using store = SQLiteSessionStore.open(`sqlite:${path}`);
    await store.session('a').addItems([user('x')]);
    expect(existsSync(path)).toBe(true);
    // A path of its own is no host.
    await using again = SQLiteSessionStore.open(`sqlite://${path}`);
    expect((await again.list()).sessions).toHaveLength(1);
    await using memory = SQLiteSessionStore.open('sqlite::memory:');
    expect((await memory.list()).sessions).toEqual([]);
  });

  it.each([
    '',
    'sqlite:',
    'redis://user:secret@host',
    'sqlite://secret@host/x.db',
    'sqlite:x.db?key=secret',
    'sqlite:x.db#secret',
  ])('refuses %s and tells nothing of it [SESS-391]', (url) => {
    expect(() => SQLiteSessionStore.open(url)).toThrow(/takes (a URL that begins with sqlite:|sqlite:<path>)/);
    expect(() => SQLiteSessionStore.open(url)).not.toThrow(/secret/);
  });

  it('has options that are checked at once', () => {
    expect(() => new SQLiteSessionStore({ pfad: 'x' } as never)).toThrow(/Unknown option 'pfad' of SQLiteSessionStore/);
    expect(() => new SQLiteSessionStore({ path: 'x', database: {} as never })).toThrow(/SQLiteSessionStore takes/);
    expect(() => new SQLiteSessionStore({ sessionsTable: 'x"y' })).toThrow(
      expect.objectContaining({ code: 'session_name_invalid' }),
    );
  });
});

describe('lists', () => {
  it('have sessions that Python wrote, and times of other writers [SESS-371]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore(path);
    await store.list();
    sql(path, `INSERT INTO agent_sessions VALUES ('a', '2026-01-02 03:04:05', '2026-02-03 04:05:06')`);
    sql(path, `INSERT INTO agent_sessions VALUES ('b', '2026-01-02T03:04:05.250Z', 'yesterday')`);
    expect((await store.list({ order: 'id' })).sessions).toEqual([
      {
        sessionId: 'a',
        createdAt: new Date('2026-01-02T03:04:05Z'),
        updatedAt: new Date('2026-02-03T04:05:06Z'),
      },
      { sessionId: 'b', createdAt: new Date('2026-01-02T03:04:05.250Z') },
    ]);
  });

  it('hold a thousand sessions once each, newest first, and read no items [SESS#71, SESS-372]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore(path);
    await store.list();
    sql(
      path,
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
       INSERT INTO agent_sessions SELECT 'id-' || i, datetime('now', '-' || i || ' minutes'), datetime('now', '-' || i || ' minutes') FROM n`,
    );
    // A table of messages that can't be read: whoever tries, fails.
    sql(path, 'ALTER TABLE agent_messages RENAME COLUMN message_data TO hidden');
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({ limit: 50, ...(cursor !== undefined && { cursor }) });
      expect(page.sessions.length).toBeLessThanOrEqual(50);
      listed.push(...page.sessions.map(({ sessionId }) => sessionId));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed).toEqual(Array.from({ length: 1000 }, (_, index) => `id-${index}`));
  });
});

describe('lists', () => {
  it('by time have sessions of the very second, as far as they belong to it [SESS-372]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore({ path });
    await store.session('a').addItems([user('x')]);
    sql(path, "UPDATE agent_sessions SET updated_at = '2026-01-02 03:04:05'");
    const at = (ms: number): Date => new Date(Date.UTC(2026, 0, 2, 3, 4, 5, ms));
    const count = async (query: object): Promise<number> => (await store.list(query)).sessions.length;
    expect(await count({ updatedBefore: at(700) })).toBe(1);
    expect(await count({ updatedBefore: at(0) })).toBe(0);
    expect(await count({ updatedAfter: at(0) })).toBe(1);
    expect(await count({ updatedAfter: at(700) })).toBe(0);
  });
});

it('lists by time look at the last update, whenever a session was made [SESS-372]', async () => {
  const path = freshPath();
  await using store = new SQLiteSessionStore(path);
  await store.session('a').addItems([user('x')]);
  sql(path, `UPDATE agent_sessions SET created_at = '2020-01-01 00:00:00'`);
  const limit = new Date('2021-01-01T00:00:00Z');
  expect((await store.list({ updatedAfter: limit })).sessions).toHaveLength(1);
  expect((await store.list({ updatedBefore: limit })).sessions).toEqual([]);
});

it('a fork does not write to rows that have no session [SESS-373]', async () => {
  const path = freshPath();
  await using store = new SQLiteSessionStore({ path });
  for (const id of ['a', 'b']) await store.session(id).addItems([user(id)]);
  sql(path, "DELETE FROM agent_sessions WHERE session_id = 'b'");
  await expect(store.fork('a', 'b')).rejects.toMatchObject({ code: 'session_error' });
  expect(await store.session('b').getItems()).toEqual([user('b')]);
});

describe('prune', () => {
  it('takes operations of pruned sessions too [SESS-374]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore(path);
    const append = (id: string) =>
      store.session(id).applyHistoryTransaction({
        operationId: 'op',
        transaction: { type: 'append_items', items: [user('x')] },
      });
    await append('old');
    await append('new');
    sql(path, AGE, '-2 days', '-2 days', 'old');
    expect(await store.prune({ idleForMs: 24 * 60 * 60 * 1000 })).toEqual({ sessions: 1, items: 1 });
    expect(sql(path, 'SELECT session_id FROM agent_session_operations')).toEqual([{ session_id: 'new' }]);
  });

  it('leaves a session that was used since it was looked at [SESS-374]', async () => {
    const database = new DatabaseSync(':memory:');
    /** Runs when the sessions were listed, before any is deleted. */
    let listed = (): void => {};
    const handle = watchedHandle(database, {
      after: (_rows, statement) => void (/ORDER BY session_id\s+LIMIT/.test(statement) && listed()),
    });
    await using store = new SQLiteSessionStore({ database: handle });
    for (const id of ['used', 'idle']) await store.session(id).addItems([user(id)]);
    database.exec(`UPDATE agent_sessions SET updated_at = datetime('now', '-2 days')`);
    listed = () => database.exec(`UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = 'used'`);
    expect(await store.prune({ idleForMs: 24 * 60 * 60 * 1000 })).toEqual({ sessions: 1, items: 1 });
    expect(await store.session('used').getItems()).toEqual([user('used')]);
    database.close();
  });

  it('lets other writers in between its batches [SESS-374]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore(path);
    await store.list();
    sql(
      path,
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
       INSERT INTO agent_sessions SELECT 'id-' || i, '2020-01-01 00:00:00', '2020-01-01 00:00:00' FROM n`,
    );
    sql(
      path,
      `INSERT INTO agent_messages (session_id, message_data) SELECT session_id, '{"role": "user"}' FROM agent_sessions, json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]')`,
    );
    const order: string[] = [];
    const pruned = store.prune({ idleForMs: 1000 }).then((gone) => {
      order.push('pruned');
      return gone;
    });
    await store.session('busy').addItems([user('x')]);
    order.push('appended');
    expect(await pruned).toEqual({ sessions: 2000, items: 40_000 });
    expect(order).toEqual(['appended', 'pruned']);
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(['busy']);
  });
});

describe('an import', () => {
  it('leaves nothing staged, whether it succeeds or fails, and leaves alone what others stage [SESS-376]', async () => {
    const database = new DatabaseSync(':memory:');
    const store = new SQLiteSessionStore({ database });
    const staged = (): unknown => database.prepare('SELECT count(*) AS count FROM temp.agent_session_stages').get();
    await store.session('a').addItems(Array.from({ length: 600 }, (_, n) => user(String(n))));
    const lines: string[] = [];
    for await (const line of store.export('a')) lines.push(line);
    const both: Promise<unknown>[] = [];
    /** Its last lines come when the import that is cut off has failed. */
    async function* whole(): AsyncGenerator<string> {
      yield* lines.slice(0, 550);
      await Promise.allSettled(both);
      expect(staged()).toEqual({ count: 500 });
      yield* lines.slice(550);
    }
    async function* cutOff(): AsyncGenerator<string> {
      yield* lines.slice(0, -1);
    }
    const imported = store.import('b', whole());
    both.push(store.import('c', cutOff()));
    await expect(both[0]).rejects.toMatchObject({ code: 'session_error' });
    expect(await imported).toBe(600);
    expect(staged()).toEqual({ count: 0 });
    expect(await store.session('b').getItems()).toEqual(await store.session('a').getItems());

    // A connection that had to be opened anew has lost it.
    async function* lost(): AsyncGenerator<string> {
      yield* lines.slice(0, 550);
      database.exec('DELETE FROM temp.agent_session_stages');
      yield* lines.slice(550);
    }
    await expect(store.import('d', lost())).rejects.toThrow(/staged is gone/);
    expect(await store.get('d')).toBeUndefined();
    database.close();
  });

  it('stands in no table of the file before it is whole, and nothing is left when it fails [SESS-376]', async () => {
    const path = freshPath();
    await using store = new SQLiteSessionStore(path);
    await store.session('a').addItems(Array.from({ length: 1200 }, (_, index) => user(String(index))));
    const lines: string[] = [];
    for await (const line of store.export('a')) lines.push(line);
    async function* cutOff(): AsyncGenerator<string> {
      yield* lines.slice(0, -2);
      expect(sql(path, 'SELECT count(*) AS count FROM agent_messages')).toEqual([{ count: 1200 }]);
    }
    await expect(store.import('b', cutOff())).rejects.toThrow(/cut off|says/);
    expect(sql(path, 'SELECT count(*) AS count FROM agent_messages')).toEqual([{ count: 1200 }]);
    await using other = new SQLiteSessionStore(freshPath());
    async function* whole(): AsyncGenerator<string> {
      yield* lines;
    }
    expect(await other.import('b', whole())).toBe(1200);
    expect(await other.session('b').getItems()).toEqual(await store.session('a').getItems());
  });
});

describe('copies', () => {
  const turn = (n: number): object[] => [
    user(`question ${n}`),
    { type: 'reasoning', id: `rs_${n}`, summary: [] },
    { type: 'function_call', call_id: `c_${n}`, name: 't', arguments: '{}' },
    { type: 'function_call_output', call_id: `c_${n}`, output: 'ok' },
    { role: 'assistant', content: `answer ${n}` },
  ];
  const turns = (from: number, to: number): object[] =>
    Array.from({ length: to - from + 1 }, (_, index) => turn(from + index)).flat();
  const itemsOf = async (store: { session(id: string): { getItems(): Promise<object[]> } }, id: string) =>
    await store.session(id).getItems();

  it('a fork at a turn, pruned, has whole pairs, and its source is untouched [SESS#72, SESS-373, SESS-374]', async () => {
    await using store = new SQLiteSessionStore({ path: freshPath() });
    await store.session('a').addItems(turns(1, 9) as never);
    const fork = await store.fork('a', 'b', { untilTurn: 8 });
    expect(await fork.getItems()).toEqual(turns(1, 7));
    expect(await store.prune({ maxItems: 23, idleForMs: 1_000_000 })).toEqual({ sessions: 0, items: 15 + 25 });
    expect(await fork.getItems()).toEqual(turns(4, 7));
    await store.delete('a');
    await store.session('a').addItems(turns(1, 4) as never);
    await store.fork('a', 'c', { untilTurn: 3 });
    expect(await store.prune({ maxItems: 20 })).toEqual({ sessions: 0, items: 0 });
    expect(await itemsOf(store, 'a')).toEqual(turns(1, 4));
    expect(await itemsOf(store, 'c')).toEqual(turns(1, 2));
  });

  it('an export goes into a store of another kind, and back; one that was cut off goes nowhere [SESS#73, SESS-376]', async () => {
    await using store = new SQLiteSessionStore({ path: freshPath() });
    const memory = new MemorySessionStore();
    const items = [...turns(1, 120), user('Grüße 😀'), { end: true }];
    await store.session('a').addItems(items as never);
    expect(await memory.import('b', store.export('a'))).toBe(602);
    expect(await itemsOf(memory, 'b')).toEqual(items);
    expect(await store.import('c', memory.export('b'))).toBe(602);
    expect(await itemsOf(store, 'c')).toEqual(items);
    async function* cutOff(): AsyncGenerator<string> {
      let last: string | undefined;
      for await (const line of store.export('a')) {
        if (last !== undefined) yield last;
        last = line;
      }
    }
    await expect(memory.import('d', cutOff())).rejects.toMatchObject({ code: 'session_error' });
    expect(await memory.get('d')).toBeUndefined();
  });

  it('of a session with branches are those of its main branch, of one moment [SESS-207, SESS-373, SESS-376]', async () => {
    await using store = new SQLiteSessionStore({ path: freshPath() });
    const session = store.session('a');
    await session.addItems(turns(1, 150) as never);
    const branch = session.branch('other', { fromTurn: 100 });
    await branch.addItems([user('on the branch')]);
    await session.addItems(turns(151, 250) as never);
    const fork = await store.fork('a', 'b', { untilTurn: 240 });
    expect(await fork.getItems()).toEqual(turns(1, 239));
    const exportedWhile = async (change: () => Promise<unknown>): Promise<number> => {
      let lines = 0;
      for await (const _ of store.export('a')) if (lines++ === 1) await change();
      return lines;
    };
    expect(await exportedWhile(() => session.addItems([user('later')]))).toBe(1252);
    expect(await exportedWhile(() => branch.popItem())).toBe(1253);
    await expect(exportedWhile(() => session.popItem())).rejects.toMatchObject({ code: 'session_version_conflict' });
  });
});

it('check() tells of a journal that makes readers wait and of messages that no list shows', async () => {
  const database = new DatabaseSync(freshPath(), { enableForeignKeyConstraints: false });
  await using store = new SQLiteSessionStore({ database });
  await store.session('a').addItems([user('x')]);
  database.exec(`PRAGMA journal_mode = DELETE; DELETE FROM agent_sessions`);
  expect(await store.check()).toEqual([
    expect.stringMatching(/journal mode is 'delete'/),
    expect.stringMatching(/^1 session has rows in 'agent_messages' and none in 'agent_sessions'/),
  ]);
  await using fine = new SQLiteSessionStore(freshPath());
  expect(await fine.check()).toEqual([]);
  await using memory = new SQLiteSessionStore();
  expect(await memory.check()).toEqual([]);
  database.close();
});
