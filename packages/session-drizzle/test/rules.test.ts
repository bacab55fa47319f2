import { EventEmitter } from 'node:events';

import { configureLogging } from '@agents/core';
import type { LogRecord } from '@agents/core';
import { SessionItemError, SessionSchemaError, supports } from '@agents/core/session';
import { sql } from 'drizzle-orm/sql/sql';
import type { SQL } from 'drizzle-orm/sql/sql';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import type { DrizzleSessionOptions } from '../src/index.ts';
import { open } from './support/databases.ts';
import type { DriverName } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { historyOf } from './support/history.ts';
import { openedFor } from './support/opened.ts';
import { makeTables } from './support/tables.ts';

const warn = vi.fn<(record: LogRecord) => void>();
beforeEach(() => configureLogging({ sink: warn }));
afterEach(() => {
  configureLogging({ sink: null });
  warn.mockReset();
});

const user = (content: string) => ({ role: 'user', content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));

it.each<DriverName>(['node-postgres', 'postgres.js', 'PGlite', 'mysql2', 'better-sqlite3', 'libsql'])(
  'an item of 10 MB is appended, read and popped, %s [SESS#48]',
  async (driver) => {
    const opened = await open(driver);
    await makeTables(opened);
    const one = new DrizzleSession<object>('large', { db: opened.db });
    const large = user('0123456789'.repeat(1_000_000));
    await one.addItems([user('1'), large]);
    expect(await one.getItems()).toEqual([user('1'), large]);
    expect(await one.popItem()).toEqual(large);
    expect(await one.getItems()).toEqual(users(1));
    await opened.close();
  },
);

/** The rules that hold on every dialect, each on the driver that most use. */
describe.each<DriverName>(['node-postgres', 'mysql2', 'better-sqlite3'])('on %s', (driver) => {
  const opened = openedFor(driver);
  let ids = 0;

  const session = (id = `s${++ids}`, options?: Partial<DrizzleSessionOptions>) =>
    new DrizzleSession<{ content?: string }>(id, { db: opened.db, ...options });
  const texts = async (id: string): Promise<string[]> =>
    (
      await execute(
        opened,
        sql`select message_data as text from agent_messages where session_id = ${id} order by created_at, id`,
      )
    ).map(({ text }) => String(text));
  const count = async (table: string, id: string): Promise<number> =>
    Number(
      (await execute(opened, sql`select count(*) as n from ${sql.identifier(table)} where session_id = ${id}`))[0]?.[
        'n'
      ],
    );
  const addRow = async (id: string, text: string, created?: SQL): Promise<void> => {
    const stamp = created ?? (opened.dialect === 'mysql' ? sql`now(6)` : sql`CURRENT_TIMESTAMP`);
    await execute(
      opened,
      sql`insert into agent_messages (session_id, message_data, created_at) values (${id}, ${text}, ${stamp})`,
    );
  };

  it('writes what Python writes for the same items, or UTF-8 where that is asked for [SESS-131]', async () => {
    const escaped = session();
    await escaped.addItems([user('Grüße 😊 "\\\u007f\n')]);
    expect(await texts(escaped.sessionId)).toEqual([
      String.raw`{"role":"user","content":"Gr\u00fc\u00dfe \ud83d\ude0a \"\\\u007f\n"}`,
    ]);
    const plain = session(undefined, { ascii: false });
    await plain.addItems([user('Grüße 😊')]);
    expect(await texts(plain.sessionId)).toEqual(['{"role":"user","content":"Grüße 😊"}']);
    expect(await plain.getItems()).toEqual([user('Grüße 😊')]);
  });

  it('keeps the order of a batch with equal stamps, and of those after it [SESS-261, IL-055]', async () => {
    const one = session();
    await one.addItems(users(1000));
    await one.addItems(users(1000, 1001));
    expect(await one.getItems()).toEqual(users(2000));
    expect(await one.getItems(1001)).toEqual(users(1001, 1000));
    const stamps = await execute(
      opened,
      sql`select count(distinct created_at) as n from agent_messages where session_id = ${one.sessionId}`,
    );
    expect(Number(stamps[0]?.['n'])).toBeLessThanOrEqual(2);
  });

  it('writes behind the newest message although its stamp is of the future [SESS-261]', async () => {
    const one = session();
    await one.addItems(users(1));
    const future = {
      pg: sql`CURRENT_TIMESTAMP + interval '1 hour'`,
      mysql: sql`now(6) + interval 1 hour`,
      sqlite: sql`datetime('now', '+1 hour')`,
    };
    await addRow(one.sessionId, JSON.stringify(user('2')), future[opened.dialect]);
    await one.addItems(users(2, 3));
    const { version } = await one.readHistory(0);
    await one.appendIfVersion(version, users(1, 5));
    await one.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'append_items', items: users(1, 6) },
    });
    expect(await one.getItems()).toEqual(users(6));
    expect(await one.popItem()).toEqual(user('6'));
  });

  it('keeps created_at, and moves updated_at with each append [SESS-015, IL-020]', async () => {
    const one = session();
    const past = {
      pg: sql`CURRENT_TIMESTAMP - interval '1 hour'`,
      mysql: sql`now(6) - interval 1 hour`,
      sqlite: sql`datetime('now', '-1 hour')`,
    };
    await one.addItems(users(1));
    await execute(
      opened,
      sql`update agent_sessions set created_at = ${past[opened.dialect]}, updated_at = ${past[opened.dialect]} where session_id = ${one.sessionId}`,
    );
    const moments = async (): Promise<string[]> => {
      const text = opened.dialect === 'sqlite' ? sql`text` : opened.dialect === 'mysql' ? sql`char` : sql`varchar`;
      const [row] = await execute(
        opened,
        sql`select cast(created_at as ${text}) as made, cast(updated_at as ${text}) as moved from agent_sessions where session_id = ${one.sessionId}`,
      );
      return [String(row?.['made']), String(row?.['moved'])];
    };
    const [created, before] = await moments();
    await one.getItems();
    await one.popItem();
    expect(await moments()).toEqual([created, before]);
    await one.addItems(users(1));
    const [still, after] = await moments();
    expect(still).toBe(created);
    expect(String(after) > String(before)).toBe(true);
    // A clock that went back takes nothing back.
    const future = {
      pg: sql`CURRENT_TIMESTAMP + interval '1 hour'`,
      mysql: sql`now(6) + interval 1 hour`,
      sqlite: sql`datetime('now', '+1 hour')`,
    };
    await execute(
      opened,
      sql`update agent_sessions set updated_at = ${future[opened.dialect]} where session_id = ${one.sessionId}`,
    );
    const [, ahead] = await moments();
    await one.addItems(users(1));
    expect(await moments()).toEqual([created, ahead]);
  });

  it('leaves no row of a session that was cleared, in any table [SESS-011]', async () => {
    const one = session();
    await one.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'append_items', items: users(2) },
    });
    await execute(opened, sql`insert into agent_session_metadata (session_id, data) values (${one.sessionId}, '{}')`);
    await one.clearSession();
    for (const table of ['sessions', 'messages', 'session_operations', 'session_metadata'])
      expect(await count(`agent_${table}`, one.sessionId)).toBe(0);
  });

  it('leaves nothing of a session that is cleared while others append: all of a batch, or none and no row [SESS-006, 011]', async () => {
    for (let round = 0; round < 10; round++) {
      const id = `s${++ids}`;
      await session(id).addItems(users(3));
      const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(2) } } as const;
      await Promise.all([session(id).clearSession(), session(id).applyHistoryTransaction?.(operation)]);
      const items = await session(id).getItems();
      expect([[], users(2)]).toContainEqual(items);
      for (const table of ['agent_sessions', 'agent_session_operations'])
        expect(await count(table, id)).toBe(items.length === 0 ? 0 : 1);
    }
  });

  it('makes no session by reading, popping, clearing or appending nothing [SESS-007, 013]', async () => {
    const one = session();
    await one.getItems();
    await one.popItem();
    await one.clearSession();
    await one.addItems([]);
    await one.appendIfVersion((await one.readHistory()).version, []);
    await one.replaceHistory([]);
    expect(await count('agent_sessions', one.sessionId)).toBe(0);
  });

  it('takes each of many first writes [SESS-006, IL-008]', async () => {
    const id = `s${++ids}`;
    await Promise.all(users(20).map((item) => session(id).addItems([item])));
    const contents = (await session(id).getItems()).map(({ content }) => Number(content));
    expect(contents.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  it('gives each item to one of many who pop at once [SESS#37, SESS-266, IL-009]', async () => {
    const id = `s${++ids}`;
    await session(id).addItems(users(20));
    const popped = await Promise.all(Array.from({ length: 21 }, () => session(id).popItem()));
    expect(new Set(popped.map((item) => item?.content)).size).toBe(21);
    expect(await session(id).getItems()).toEqual([]);
  });

  it('applies an operation once, and refuses its id for another change [SESS#14, SESS-034]', async () => {
    const one = session();
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(2) } } as const;
    await one.applyHistoryTransaction?.(operation);
    await session(one.sessionId).applyHistoryTransaction?.(operation);
    const other = { ...operation, transaction: { type: 'append_items', items: users(3) } } as const;
    await expect(one.applyHistoryTransaction?.(other)).rejects.toMatchObject({ code: 'session_operation_mismatch' });
    const swap = {
      operationId: 'swap',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 2), replacement: users(2, 8) },
    } as const;
    await one.applyHistoryTransaction?.(swap);
    await one.applyHistoryTransaction?.(swap);
    expect(await one.getItems()).toEqual([...users(1), ...users(2, 8)]);
    await one.clearSession();
    expect(await count('agent_session_operations', one.sessionId)).toBe(0);
  });

  it('gives a repeated versioned write the version of its first time [SESS-034, 037]', async () => {
    const one = session();
    const first = (await one.readHistory()).version;
    const second = await one.appendIfVersion(first, users(2), { operationId: 'a' });
    expect(second).toBe((await one.readHistory(0)).version);
    const third = await one.replaceHistory(users(3), { ifVersion: second, operationId: 'b' });
    expect(third).toBe((await one.readHistory(1)).version);
    expect(await one.appendIfVersion(first, users(2), { operationId: 'a' })).toBe(second);
    expect(await one.replaceHistory(users(3), { ifVersion: second, operationId: 'b' })).toBe(third);
    expect(await one.getItems()).toEqual(users(3));
  });

  it('reads and pops the newest by stamp where the last id is older, as rows of Python may be [SESS-003, 010, 261]', async () => {
    const past = {
      pg: sql`CURRENT_TIMESTAMP - interval '1 hour'`,
      mysql: sql`now(6) - interval 1 hour`,
      sqlite: sql`datetime('now', '-1 hour')`,
    };
    const one = session();
    await one.addItems(users(3));
    await addRow(one.sessionId, JSON.stringify(user('0')), past[opened.dialect]);
    expect(await one.getItems(2)).toEqual(users(2, 2));
    expect((await one.readHistory(1)).version).toBe((await one.readHistory()).version);
    expect(await one.popItem()).toEqual(user('3'));
    await one.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 2), replacement: [] },
    });
    expect(await one.getItems()).toEqual(users(2, 0));
  });

  it('notices rows that came in before the newest, as those of Python may [SESS-037]', async () => {
    const one = session();
    await one.addItems(users(2));
    const { version } = await one.readHistory(0);
    const past = {
      pg: sql`CURRENT_TIMESTAMP - interval '1 hour'`,
      mysql: sql`now(6) - interval 1 hour`,
      sqlite: sql`datetime('now', '-1 hour')`,
    };
    await addRow(one.sessionId, JSON.stringify(user('0')), past[opened.dialect]);
    await execute(
      opened,
      sql`update agent_sessions set updated_at = ${past[opened.dialect]} where session_id = ${one.sessionId}`,
    );
    expect((await one.readHistory()).items).toEqual(users(3, 0));
    await expect(one.appendIfVersion(version, users(1))).rejects.toMatchObject({ code: 'session_version_conflict' });
    await expect(one.replaceHistory([], { ifVersion: version })).rejects.toMatchObject({
      code: 'session_version_conflict',
    });
    expect(await one.getItems()).toEqual(users(3, 0));
  });

  it('gives two writers with the same version one success [SESS-037]', async () => {
    const id = `s${++ids}`;
    const start = (await session(id).readHistory()).version;
    const results = await Promise.allSettled(users(8).map((item) => session(id).appendIfVersion(start, [item])));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await session(id).getItems()).toHaveLength(1);
  });

  it('skips corrupt records, tells of each, and does not count them [SESS#13, E7, SESS-003, 010, 153]', async () => {
    const seen: unknown[] = [];
    const one = session(undefined, { onCorruptItem: (info) => void seen.push(info) });
    await one.addItems(users(3));
    await addRow(one.sessionId, '{"role":"user","content":"sec');
    await addRow(one.sessionId, '[]');
    expect(await one.getItems(2)).toEqual(users(2, 2));
    expect(seen).toHaveLength(2);
    expect(seen[0]).toEqual({
      sessionId: one.sessionId,
      position: expect.any(Number) as number,
      reason: expect.stringContaining('JSON') as string,
    });
    expect(JSON.stringify(seen)).not.toContain('sec');
    expect(await one.popItem()).toEqual(user('3'));
    expect(await texts(one.sessionId)).toHaveLength(2);
    await addRow(one.sessionId, 'nonsense');
    await one.applyHistoryTransaction?.({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(2), replacement: users(1, 7) },
    });
    expect(await one.getItems()).toEqual(users(1, 7));
    expect(await texts(one.sessionId)).toHaveLength(2);
    await expect(session(one.sessionId, { corruptItems: 'throw' }).getItems()).rejects.toThrow('Repair or delete it');
  });

  it('warns once of corrupt records without a callback [E7, SESS-153]', async () => {
    const one = session();
    await one.addItems(users(1));
    await addRow(one.sessionId, 'nonsense');
    await one.getItems();
    await one.getItems();
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('takes any text as id, literally [SESS#46, SESS-137]', async () => {
    const list = [
      "it's",
      '100%*?',
      'new\nline',
      '😀',
      'x'.repeat(255),
      "Robert'); DROP TABLE students;--",
      "IT'S",
      '%',
      '_',
      '../a',
    ];
    for (const id of list) await session(id).addItems([user(id)]);
    for (const id of list) {
      expect(await session(id).getItems()).toEqual([user(id)]);
      expect(await session(id).popItem()).toEqual(user(id));
      await session(id).clearSession();
    }
  });

  it('refuses a bad item with its index and stores nothing of its batch [SESS#11, SESS-008, 135]', async () => {
    const one = session();
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    const error: unknown = await one.addItems([user('1'), cyclic]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SessionItemError);
    expect(error).toMatchObject({ code: 'session_item_invalid', index: 1 });
    expect(await count('agent_sessions', one.sessionId)).toBe(0);
    await one.addItems(users(1));
    expect(await one.getItems()).toEqual(users(1));
  });

  it('reads a tail by the index [SESS-160, 270]', async () => {
    const one = session();
    for (const any of [one, session(), session()]) await any.addItems(users(3000));
    if (opened.dialect === 'pg') await execute(opened, sql`analyze agent_messages`);
    const history = historyOf(opened.db, one.sessionId);
    await history.look();
    const { dialect } = history;
    // As readers ask for it; MariaDB has a statement of its own for them.
    const tail = dialect.settled?.(one.sessionId, 20) ?? dialect.newest(one.sessionId, 20);
    const plan = opened.dialect === 'sqlite' ? sql`explain query plan ${tail}` : sql`explain ${tail}`;
    const found = JSON.stringify(await execute(opened, plan));
    expect(found).toContain('idx_agent_messages_session_time');
    // In the order of the index: a sort would read all of the session first.
    expect(found).not.toMatch(/TEMP B-TREE FOR ORDER BY|filesort|-> +Sort +\(/);
    expect(await one.getItems(20)).toEqual(users(20, 2981));
  });

  it('gets no listeners of its sessions, and no prepared statements on a server [SESS-268]', async () => {
    const { $client: client } = opened.db as unknown as { $client: unknown };
    const listeners = (): number =>
      client instanceof EventEmitter
        ? client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0)
        : 0;
    const prepared = {
      pg: sql`select count(*) as n from pg_prepared_statements`,
      mysql: sql`select variable_value as n from information_schema.session_status where variable_name = 'COM_STMT_PREPARE'`,
      // Those are of the client and go with it.
      sqlite: sql`select 0 as n`,
    };
    const before = listeners();
    for (let time = 0; time < 3; time++) {
      const one = session();
      await one.addItems(users(2));
      await one.popItem();
      await one.replaceHistory(await one.getItems());
    }
    expect(listeners()).toBe(before);
    expect((await execute(opened, prepared[opened.dialect])).map(({ n }) => Number(n))).toEqual([0]);
  });

  it('is not closed by its sessions [SESS#74, SESS-154, 268]', async () => {
    const one = session();
    await one.addItems(users(1));
    await one.close();
    await one.close();
    expect(one.closed).toBe(false);
    expect(await one.ping()).toBe(true);
    expect(await one.getItems()).toEqual(users(1));
  });

  it('clears all of a session or nothing [SESS-266]', async () => {
    const one = session();
    await one.addItems(users(2));
    const name = `stay_${ids}`;
    const broken = {
      pg: sql`create function ${sql.raw(name)}() returns trigger as $$ begin raise exception 'stays'; end $$ language plpgsql`,
      mysql: sql`create trigger ${sql.raw(name)} before delete on agent_sessions for each row signal sqlstate '45000' set message_text = 'stays'`,
      sqlite: sql`create trigger ${sql.raw(name)} before delete on agent_sessions begin select raise(abort, 'stays'); end`,
    };
    await execute(opened, broken[opened.dialect]);
    const on = opened.dialect === 'pg' ? sql` on agent_sessions` : sql``;
    if (opened.dialect === 'pg')
      await execute(
        opened,
        sql`create trigger ${sql.raw(name)} before delete on agent_sessions for each row execute function ${sql.raw(name)}()`,
      );
    await expect(one.clearSession()).rejects.toThrow('stays');
    expect(await one.getItems()).toEqual(users(2));
    await execute(opened, sql`drop trigger ${sql.raw(name)}${on}`);
    await one.clearSession();
    expect(await one.getItems()).toEqual([]);
  });

  it('has history transactions and versions [SESS-039]', () => {
    const one: unknown = session();
    expect(supports(one, 'transactions') && supports(one, 'versions')).toBe(true);
  });

  it('removes old operations now and then; when that fails the change is stored all the same [G6, SESS-034, 152]', async () => {
    const one = session();
    const append = (operationId: string) =>
      one.applyHistoryTransaction?.({ operationId, transaction: { type: 'append_items', items: users(1) } });
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.99);
    try {
      for (let index = 0; index < 70; index++) await append(`old-${index}`);
      const past = {
        pg: sql`created_at - interval '2 days'`,
        mysql: sql`created_at - interval 2 day`,
        sqlite: sql`datetime(created_at, '-2 days')`,
      };
      await execute(
        opened,
        sql`update agent_session_operations set created_at = ${past[opened.dialect]} where session_id = ${one.sessionId}`,
      );
      random.mockReturnValue(0);
      await append('new');
      expect(await count('agent_session_operations', one.sessionId)).toBe(64);
      await append('new');
      expect(await one.getItems()).toHaveLength(71);
    } finally {
      random.mockRestore();
    }
  });

  it('works on without the table of operations, with one warning and without transactions [SESS#53, SESS-267]', async () => {
    const bare = await open(driver);
    try {
      await makeTables(bare);
      await execute(bare, sql`drop table agent_session_operations`);
      await execute(bare, sql`drop table agent_session_metadata`);
      const one = new DrizzleSession<object>('s', { db: bare.db });
      expect(await one.getItems()).toEqual([]);
      expect(one.applyHistoryTransaction).toBeUndefined();
      expect(supports(one, 'transactions')).toBe(false);
      expect(supports(one, 'versions')).toBe(true);
      await one.addItems(users(2));
      const two = new DrizzleSession<object>('s', { db: bare.db });
      await two.replaceHistory(users(3), { ifVersion: (await two.readHistory()).version });
      // Each session finds out by itself, whoever was told.
      expect(two.applyHistoryTransaction).toBeUndefined();
      expect(await one.popItem()).toEqual(user('3'));
      const error: unknown = await one
        .appendIfVersion((await one.readHistory()).version, users(1), { operationId: 'op' })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(SessionSchemaError);
      await one.clearSession();
      expect(await two.getItems()).toEqual([]);
      expect(warn).toHaveBeenCalledTimes(1);
      expect(warn.mock.calls[0]?.[0].message).toMatch(/agent_session_operations.*migration/);
      const quiet = new DrizzleSession<object>('s', { db: bare.db, operations: 'off' });
      expect(quiet.applyHistoryTransaction).toBeUndefined();
      await quiet.addItems(users(1));
      expect(warn).toHaveBeenCalledTimes(1);
      // Once a migration made the tables, sessions that are made after it have them.
      await makeTables(bare);
      const three = new DrizzleSession<object>('s', { db: bare.db });
      expect(await three.getItems()).toEqual(users(1));
      expect(supports(three, 'transactions')).toBe(true);
    } finally {
      await bare.close();
    }
  });

  it('says which tables are missing, and how to make them [SESS-151, 153]', async () => {
    const empty = await open(driver);
    try {
      const one = new DrizzleSession<object>('s', { db: empty.db, operations: 'off' });
      const calls = [() => one.getItems(), () => one.addItems(users(1)), () => one.popItem(), () => one.clearSession()];
      for (const call of calls) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(SessionSchemaError);
        expect((error as Error).message).toMatch(/'agent_sessions' and 'agent_messages'.*createTables\(\)/);
      }
      expect(await one.ping()).toBe(false);
    } finally {
      await empty.close();
    }
  });

  it('passes errors of the driver, without items in their text; nothing is stored [SESS-017, 151, IL-011]', async () => {
    const one = session();
    await one.addItems(users(1));
    const name = `refuse_${ids}`;
    const broken = {
      pg: sql`create function ${sql.raw(name)}() returns trigger as $$ begin if new.message_data like '%poison%' then raise exception 'not this one'; end if; return new; end $$ language plpgsql`,
      mysql: sql`create trigger ${sql.raw(name)} before insert on agent_messages for each row if new.message_data like '%poison%' then signal sqlstate '45000' set message_text = 'not this one'; end if`,
      sqlite: sql`create trigger ${sql.raw(name)} before insert on agent_messages when new.message_data like '%poison%' begin select raise(abort, 'not this one'); end`,
    };
    await execute(opened, broken[opened.dialect]);
    if (opened.dialect === 'pg')
      await execute(
        opened,
        sql`create trigger ${sql.raw(name)} before insert on agent_messages for each row execute function ${sql.raw(name)}()`,
      );
    const batch = [user('secret'), user('poison'), user('3')];
    for (const call of [() => one.addItems(batch), () => one.replaceHistory(batch)]) {
      const error = (await call().catch((thrown: unknown) => thrown)) as Error;
      expect(error.message).toBe('not this one');
      expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain('secret');
      expect(error.cause).toBeUndefined();
    }
    expect(await one.getItems()).toEqual(users(1));
    await one.addItems(users(1, 2));
    expect(await one.getItems()).toEqual(users(2));
  });

  it('is not held up by a pop or clear that failed [IL-010]', async () => {
    const one = session();
    await one.addItems(users(2));
    const name = `keep_${ids}`;
    const broken = {
      pg: sql`create function ${sql.raw(name)}() returns trigger as $$ begin raise exception 'kept'; end $$ language plpgsql`,
      mysql: sql`create trigger ${sql.raw(name)} before delete on agent_messages for each row signal sqlstate '45000' set message_text = 'kept'`,
      sqlite: sql`create trigger ${sql.raw(name)} before delete on agent_messages begin select raise(abort, 'kept'); end`,
    };
    await execute(opened, broken[opened.dialect]);
    if (opened.dialect === 'pg')
      await execute(
        opened,
        sql`create trigger ${sql.raw(name)} before delete on agent_messages for each row execute function ${sql.raw(name)}()`,
      );
    await expect(one.popItem()).rejects.toThrow('kept');
    await expect(one.clearSession()).rejects.toThrow('kept');
    await session(one.sessionId).addItems(users(1, 3));
    await execute(
      opened,
      opened.dialect === 'pg'
        ? sql`drop trigger ${sql.raw(name)} on agent_messages`
        : sql`drop trigger ${sql.raw(name)}`,
    );
    expect(await one.getItems()).toEqual(users(3));
    expect(await one.popItem()).toEqual(user('3'));
  });

  it('works without the row of a session, as after a Python tool that removed it [SESS#90, SESS-266, 274]', async () => {
    const one = session();
    await one.addItems(users(3));
    if (opened.dialect === 'sqlite') await execute(opened, sql`pragma foreign_keys = off`);
    if (opened.dialect === 'pg')
      await execute(opened, sql`alter table agent_messages drop constraint agent_messages_session_id_fkey`);
    if (opened.dialect === 'mysql')
      await execute(opened, sql`alter table agent_messages drop foreign key agent_messages_session_id_fkey`);
    await execute(opened, sql`delete from agent_sessions where session_id = ${one.sessionId}`);
    expect(await one.getItems()).toEqual(users(3));
    const popped = await Promise.all([one.popItem(), session(one.sessionId).popItem()]);
    const taken = popped.filter((item) => item !== undefined);
    expect(new Set(taken.map(({ content }) => content)).size).toBe(taken.length);
    const left = await one.getItems();
    expect(left).toEqual(users(3 - taken.length));
    await one.addItems(users(3 - left.length, left.length + 1));
    expect(await count('agent_sessions', one.sessionId)).toBe(1);
    await execute(opened, sql`delete from agent_sessions where session_id = ${one.sessionId}`);
    expect(await one.getItems()).toEqual(users(3));
    await one.clearSession();
    expect(await texts(one.sessionId)).toEqual([]);
  });
});
