import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { configureLogging, toUsage } from '@agents/core';
import type { LogRecord } from '@agents/core';
import { sessionContract } from '@agents/core/testing';
import type { SessionFixture } from '@agents/core/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { SQLiteSession, SQLiteSessionStore } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-branches-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = (): string => join(folder, `${++files}.db`);
const user = (content: string) => ({ role: 'user', content });
const turn = (n: number) => [user(`q${n}`), { role: 'assistant', content: `a${n}` }];
const turns = (count: number) => Array.from({ length: count }, (_, index) => turn(index + 1)).flat();

const warn = vi.fn<(record: LogRecord) => void>();
beforeEach(() => configureLogging({ sink: warn }));
afterEach(() => {
  configureLogging({ sink: null });
  warn.mockReset();
});

function sql(path: string, statement: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path, { timeout: 1000, enableForeignKeyConstraints: false });
  const rows = database.prepare(statement).all();
  database.close();
  return rows.map((row) => ({ ...row }));
}
const count = (path: string, table: string): unknown => sql(path, `SELECT count(*) AS n FROM ${table}`)[0]?.['n'];

const open = (path: string, id = 's') => new SQLiteSession<object>(id, { path, synchronous: 'NORMAL' });
async function filled(path: string, number = 3): Promise<SQLiteSession<object>> {
  const session = open(path);
  for (let n = 1; n <= number; n++) await session.addItems(turn(n));
  return session;
}

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract, on a file with the tables of branches [SESS-202]', () => {
  const path = join(folder, 'contract.db');
  const ready = (async () => {
    await using session = await filled(path, 1);
    await session.branch('b', { fromTurn: 1 }).getItems();
  })();
  const make = async (): Promise<SessionFixture> => {
    await ready;
    return {
      open: (id, options) => new SQLiteSession<object>(id, { path, synchronous: 'NORMAL', ...options }),
      addCorrupt(id, record) {
        const database = new DatabaseSync(path, { timeout: 1000, enableForeignKeyConstraints: false });
        database.exec('BEGIN IMMEDIATE');
        const { lastInsertRowid } = database
          .prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)')
          .run(id, record);
        database
          .prepare(
            `INSERT INTO message_structure (session_id, message_id, message_type, sequence_number, user_turn_number)
             SELECT ?, ?, 'other', (SELECT coalesce(max(sequence_number), 0) + 1 FROM message_structure WHERE session_id = ?), 0`,
          )
          .run(id, lastInsertRowid, id);
        database.exec('COMMIT');
        database.close();
      },
    };
  };
  // Faults and clients that were handed in: session.test.ts.
  it.each(sessionContract(make).filter(({ id }) => !/^(G|H3)/.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('a branch', () => {
  it('begins with the turns before, shares their rows and goes its own way [SESS#65, SESS-203, SESS-205]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using branch = main.branch('b', { fromTurn: 2 });
    expect([main.branchId, branch.branchId]).toEqual(['main', 'b']);
    expect(await branch.getItems()).toEqual(turn(1));
    await branch.addItems([user('other'), user('more')]);
    await main.addItems(turn(4));
    expect(await branch.getItems()).toEqual([...turn(1), user('other'), user('more')]);
    expect(await branch.getItems(3)).toEqual([turn(1)[1], user('other'), user('more')]);
    expect(await main.getItems()).toEqual(turns(4));
    expect(count(path, 'agent_messages')).toBe(10);
    expect(
      sql(
        path,
        `SELECT sequence_number AS s, user_turn_number AS u, branch_turn_number AS b FROM message_structure WHERE branch_id = 'b' ORDER BY id`,
      ),
    ).toEqual([
      { s: 7, u: 1, b: 1 },
      { s: 8, u: 1, b: 1 },
      { s: 9, u: 2, b: 2 },
      { s: 10, u: 3, b: 3 },
    ]);
    // Behind those of all branches.
    expect(
      sql(path, `SELECT sequence_number AS s FROM message_structure WHERE branch_id = 'main' ORDER BY id`).map(
        ({ s }) => s,
      ),
    ).toEqual([1, 2, 3, 4, 5, 6, 11, 12]);
    await using again = open(path).branch('b');
    expect(await again.getItems()).toEqual(await branch.getItems());
  });

  it('has turns that begin with messages of the user; what is before the first is of turn 0 [SESS-203]', async () => {
    const path = freshPath();
    await using main = open(path);
    await main.addUsage(toUsage({}));
    await main.addItems([{ role: 'assistant', content: 'hello' }, user('1'), user('2'), { type: 'reasoning' }]);
    await main.addItems([{ role: 'assistant', content: '2' }, user('3')]);
    expect(
      sql(path, 'SELECT user_turn_number AS u, branch_turn_number AS b FROM message_structure ORDER BY id').map((row) =>
        Object.values(row),
      ),
    ).toEqual([0, 1, 2, 2, 2, 3].map((n) => [n, n]));
    // Turns are counted from the beginning of the branch.
    sql(path, 'UPDATE message_structure SET user_turn_number = user_turn_number + 5');
    expect(await main.branch('b', { fromTurn: 1 }).getItems()).toEqual([{ role: 'assistant', content: 'hello' }]);
  });

  it('gets items and their places in one transaction: none without the other [SESS-203]', async () => {
    const path = freshPath();
    await using main = await filled(path, 2);
    await using branch = main.branch('b', { fromTurn: 2 });
    await branch.getItems();
    sql(path, `CREATE TRIGGER full BEFORE INSERT ON message_structure BEGIN SELECT RAISE(ABORT, 'no place'); END`);
    for (const one of [main, branch]) await expect(one.addItems(turn(3))).rejects.toThrow('no place');
    sql(path, 'DROP TRIGGER full');
    expect(count(path, 'agent_messages')).toBe(4);
    expect(await main.getItems()).toEqual(turns(2));
    expect(await branch.getItems()).toEqual(turn(1));
  });

  it('counts and removes what is of its session alone, where others have the same turns [SESS-203, 205, 207]', async () => {
    const path = freshPath();
    const used = (inputTokens: number) => toUsage({ inputTokens });
    const usages = () =>
      sql(path, 'SELECT session_id, user_turn_number, input_tokens FROM turn_usage ORDER BY 1, 2').map((row) =>
        Object.values(row),
      );
    await using one = await filled(path, 1);
    await using other = open(path, 'other');
    await one.addUsage(used(1));
    await other.addItems(turns(3));
    await other.addUsage(used(2));
    await one.addUsage(used(3));
    expect(usages()).toEqual([
      ['other', 3, 2],
      ['s', 1, 3],
    ]);
    const places = sql(path, `SELECT min(sequence_number) AS first FROM message_structure GROUP BY session_id`);
    expect(places).toEqual([{ first: 1 }, { first: 1 }]);
    await expect(one.branch('b', { fromTurn: 2 }).getItems()).rejects.toThrow(/Turn 2 is no user message/);
    for (let pops = 0; pops < 4; pops++) await other.popItem();
    await other.addUsage(used(4));
    for (let pops = 0; pops < 2; pops++) await one.popItem();
    expect(usages()).toEqual([['other', 1, 4]]);
    await one.addItems(turn(1));
    await one.replaceHistory([]);
    expect(usages()).toEqual([['other', 1, 4]]);
    expect(await other.getItems()).toEqual(turn(1));
  });

  it('says of what it shares what the other says [SESS-204, 205]', async () => {
    const path = freshPath();
    await using main = open(path);
    await main.addItems([user('1'), { type: 'function_call', name: 'f', namespace: 'n' }, { type: 'shell_call' }]);
    await main.addItems(turn(2));
    await main.branch('b', { fromTurn: 2 }).getItems();
    const said = (branch: string, limit: number) =>
      sql(
        path,
        `SELECT message_id, message_type, tool_name FROM message_structure WHERE branch_id = '${branch}' ORDER BY sequence_number LIMIT ${limit}`,
      );
    expect(said('b', 9)).toEqual(said('main', 3));
  });

  it('pops from itself alone; a row goes when no branch has it [SESS#65, SESS-207]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using branch = main.branch('b', { fromTurn: 3 });
    expect(await branch.popItem()).toEqual(turn(2)[1]);
    expect(await main.getItems()).toEqual(turns(3));
    expect(count(path, 'agent_messages')).toBe(6);
    await main.popItem();
    await main.popItem();
    expect(await main.popItem()).toEqual(turn(2)[1]);
    expect(count(path, 'agent_messages')).toBe(3);
    expect(await branch.getItems()).toEqual(turns(2).slice(0, 3));
    await branch.replaceHistory([user('new')]);
    expect(await main.getItems()).toEqual(turns(2).slice(0, 3));
    expect(await branch.getItems()).toEqual([user('new')]);
  });

  it.each(['a', 'z'])('keeps what it shares, whatever its id is beside the others: %s [SESS-207]', async (id) => {
    await using main = await filled(freshPath(), 2);
    await using branch = main.branch(id, { fromTurn: 2 });
    await branch.getItems();
    while ((await main.popItem()) !== undefined);
    expect(await branch.getItems()).toEqual(turn(1));
  });

  it('is made in the order of the calls on the object that it comes from [SESS-205, SESS-207]', async () => {
    await using main = open(freshPath());
    const added = [main.addItems(turn(1)), main.addItems(turn(2))];
    const branch = main.branch('b', { fromTurn: 2 });
    const popped = main.popItem();
    await Promise.all(added);
    expect(await branch.getItems()).toEqual(turn(1));
    expect(await popped).toEqual(turn(2)[1]);
    await branch.close();
  });

  it('has an id that is never used again: not after a clear, and not by two at once [SESS#65, SESS-205, IL-038]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using branch = main.branch('b', { fromTurn: 2 });
    await branch.getItems();
    const taken = expect.objectContaining({ name: 'UserError', message: expect.stringContaining('used before') });
    await expect(main.branch('b', { fromTurn: 1 }).getItems()).rejects.toEqual(taken);
    await expect(main.branch('main', { fromTurn: 1 }).getItems()).rejects.toEqual(taken);
    await main.clearSession();
    await main.addItems(turn(1));
    const refused = main.branch('b', { fromTurn: 1 });
    for (const call of [
      () => refused.getItems(),
      () => refused.addItems(turn(1)),
      () => refused.popItem(),
      () => refused.replaceHistory([]),
      () => refused.clearSession(),
      () => refused.getUsage(),
    ])
      await expect(call()).rejects.toEqual(taken);
    await refused.addUsage(toUsage({ inputTokens: 1 }));
    expect(await main.getItems()).toEqual(turn(1));
    expect(await main.getUsage()).toBeUndefined();
    const both = await Promise.allSettled(
      [main, open(path)].map((session) => session.branch('c', { fromTurn: 1 }).getItems()),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });

  it('keeps its id also where an older writer did not reserve it [SESS-205]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using popped = main.branch('popped', { fromTurn: 2 });
    await using cleared = main.branch('cleared', { fromTurn: 2 });
    await Promise.all([popped.getItems(), cleared.getItems()]);
    sql(path, 'DELETE FROM branch_reservations');
    while ((await popped.popItem()) !== undefined);
    await expect(main.branch('popped', { fromTurn: 2 }).getItems()).rejects.toThrow(/used before/);
    await using replaced = main.branch('replaced', { fromTurn: 2 });
    await replaced.getItems();
    for (const replace of [false, true]) {
      sql(path, 'DELETE FROM branch_reservations');
      if (replace) await replaced.replaceHistory([]);
      await expect(main.branch('replaced', { fromTurn: 2 }).getItems()).rejects.toThrow(/used before/);
    }
    sql(path, 'DELETE FROM branch_reservations');
    await main.clearSession();
    await main.addItems(turn(1));
    await expect(main.branch('cleared', { fromTurn: 1 }).getItems()).rejects.toThrow(/used before/);
  });

  it('needs a turn that is there, and an id that says something [SESS-205]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    const refused = (why: string) =>
      expect.objectContaining({ name: 'UserError', message: expect.stringContaining(why) });
    await expect(main.branch('b', { fromTurn: 4 }).getItems()).rejects.toEqual(refused('Turn 4 is no user message'));
    for (const id of ['', '  ', undefined as never]) expect(() => main.branch(id)).toThrow(refused('not blank'));
    expect(() => main.branch('b', { fromTurn: 0 })).toThrow(/fromTurn/);
    expect(() => main.branch('b', { from: 1 } as never)).toThrow(/Unknown option 'from'/);
    const spaced = main.branch(' b ', { fromTurn: 2 });
    expect(await spaced.getItems()).toEqual(turn(1));
    // Turns of other branches do not count, nor what a turn has beside its user message.
    await expect(spaced.branch('c', { fromTurn: 2 }).getItems()).rejects.toEqual(refused('Turn 2 is no user message'));
    await spaced.addItems(turn(2));
    sql(path, `UPDATE message_structure SET message_type = 'other' WHERE branch_id = ' b ' AND user_turn_number = 2`);
    await expect(spaced.branch('c', { fromTurn: 2 }).getItems()).rejects.toEqual(refused('Turn 2 is no user message'));
    const unknown = main.branch('b');
    for (const call of [() => unknown.addItems(turn(1)), () => unknown.clearSession(), () => unknown.getUsage()])
      await expect(call()).rejects.toEqual(refused('no branch of this id'));
    expect(await main.getItems()).toEqual(turns(3));
  });

  it('has an id of its session: others may have the same, and a clear of one leaves those of others [SESS-205, 208]', async () => {
    const path = freshPath();
    await using one = await filled(path, 2);
    await using other = open(path, 'other');
    for (const session of [one, other]) {
      if (session === other) await session.addItems(turns(2));
      const branch = session.branch('b', { fromTurn: 2 });
      await branch.addItems([user(session.sessionId)]);
      await branch.addUsage(toUsage({ inputTokens: 7 }));
    }
    await using theirs = open(path, 'other').branch('b');
    expect(await theirs.getItems()).toEqual([...turn(1), user('other')]);
    expect((await theirs.getUsage())?.inputTokens).toBe(7);
    await expect(open(path, 'third').branch('b').getItems()).rejects.toThrow(/no branch of this id/);
    await one.clearSession();
    expect(await theirs.getItems()).toEqual([...turn(1), user('other')]);
    expect(theirs.branchId).toBe('b');
    expect((await theirs.getUsage())?.inputTokens).toBe(7);
    expect(await other.getItems()).toEqual(turns(2));
    await one.addItems(turn(1));
    expect(await one.getUsage()).toBeUndefined();
  });

  it('without a prefix is known to others once it was written [SESS-213]', async () => {
    const path = freshPath();
    await using main = await filled(path, 1);
    await using branch = main.branch('b', { fromTurn: 1 });
    expect(await branch.getItems()).toEqual([]);
    await expect(open(path).branch('b').getItems()).rejects.toThrow(/no branch of this id/);
    await branch.addItems([user('x')]);
    expect(await open(path).branch('b').getItems()).toEqual([user('x')]);
  });

  it('is gone after a clear that came before its first use [SESS-208, 213]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using branch = main.branch('b', { fromTurn: 3 });
    await main.getUsage();
    await open(path).clearSession();
    await branch.addItems([user('x')]);
    expect(branch.branchId).toBe('main');
    expect(await main.getItems()).toEqual([user('x')]);
  });

  it('is gone after a clear, also one of another object; they are all on main then [SESS-208]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    await using branch = main.branch('b', { fromTurn: 3 });
    await branch.addItems([user('x')]);
    await open(path).clearSession();
    for (const table of ['agent_messages', 'message_structure', 'turn_usage']) expect(count(path, table)).toBe(0);
    expect(await branch.getItems()).toEqual([]);
    expect(branch.branchId).toBe('main');
    await branch.addItems([user('y')]);
    expect(await main.getItems()).toEqual([user('y')]);
    await using other = main.branch('c', { fromTurn: 1 });
    await other.clearSession();
    expect(other.branchId).toBe('main');
    expect(sql(path, 'SELECT generation FROM session_clear_generations')).toEqual([{ generation: 2 }]);
    expect(sql(path, 'SELECT branch_id FROM branch_reservations ORDER BY 1')).toEqual(
      ['b', 'c', 'main'].map((branch_id) => ({ branch_id })),
    );
  });

  it('has versions and operations as other histories have [SESS-192]', async () => {
    await using main = await filled(freshPath(), 2);
    await using branch = main.branch('b', { fromTurn: 2 });
    const { version } = await branch.readHistory();
    await main.addItems(turn(3));
    expect((await branch.readHistory()).version).toBe(version);
    const next = await branch.appendIfVersion(version, [user('x')], { operationId: 'op' });
    await expect(branch.appendIfVersion(version, [user('y')])).rejects.toMatchObject({
      code: 'session_version_conflict',
      actual: next,
    });
    expect(await branch.getItems()).toEqual([...turn(1), user('x')]);
  });

  it('of memory shares it, and ends with the last of them [SESS-188]', async () => {
    const main = new SQLiteSession<object>('s');
    await main.addItems(turn(1));
    const branch = main.branch('b', { fromTurn: 1 });
    await branch.addItems([user('x')]);
    await main.close();
    expect(await branch.getItems()).toEqual([user('x')]);
    expect(() => main.branch('c')).toThrow(expect.objectContaining({ code: 'session_closed' }));
    await branch.close();
    await expect(branch.getItems()).rejects.toMatchObject({ code: 'session_closed' });
  });
});

it('a branch has the tables and the options of the session that it comes from [SESS-205]', async () => {
  const path = freshPath();
  const options = { path, sessionsTable: 'chats', messagesTable: 'chat_items', busyTimeoutMs: 20 } as const;
  await using main = new SQLiteSession<object>('s', {
    ...options,
    sessionSettings: { limit: 1 },
    corruptItems: 'throw',
  });
  for (let n = 1; n <= 2; n++) await main.addItems(turn(n));
  await using branch = main.branch('b', { fromTurn: 2 });
  await using again = branch.branch('b');
  for (const one of [branch, again]) {
    expect(await one.getItems()).toEqual(turn(1).slice(-1));
    expect(await one.getItems(9)).toEqual(turn(1));
  }
  const lock = new DatabaseSync(path);
  lock.exec('BEGIN IMMEDIATE');
  await expect(branch.addItems([user('x')])).rejects.toMatchObject({ message: expect.stringMatching(/ 20 ms/) });
  lock.close();
  sql(path, `UPDATE chat_items SET message_data = '{'`);
  await expect(branch.getItems()).rejects.toMatchObject({ code: 'session_error' });
});

describe('rows of writers that know no branches', () => {
  it('are shown in main, and none is deleted [SESS#66, SESS-212]', async () => {
    const path = freshPath();
    await using main = await filled(path, 1);
    await main.branch('b', { fromTurn: 1 }).addItems([user('b')]);
    sql(
      path,
      `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"role": "user", "content": "plain"}')`,
    );
    await using other = open(path);
    expect(await other.getItems()).toEqual([...turn(1), user('plain')]);
    expect(await other.popItem()).toEqual(user('plain'));
    sql(
      path,
      `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"role": "user", "content": "again"}')`,
    );
    expect(await open(path).branch('c', { fromTurn: 2 }).getItems()).toEqual(turn(1));
    expect(await main.getItems()).toEqual([...turn(1), user('again')]);
  });

  it('of a file without those tables are as they were: reads make none [SESS-202]', async () => {
    const path = freshPath();
    await using main = await filled(path);
    const tables = () => sql(path, `SELECT name FROM sqlite_master WHERE type = 'table'`).map(({ name }) => name);
    const before = tables();
    expect(await main.getUsage()).toBeUndefined();
    await expect(main.branch('b').getItems()).rejects.toThrow(/no branch of this id/);
    expect(await main.branch('main').getItems()).toEqual(turns(3));
    expect(tables()).toEqual(before);
    await using branch = main.branch('b', { fromTurn: 2 });
    await branch.getItems();
    expect(tables()).toEqual(
      expect.arrayContaining(['message_structure', 'turn_usage', 'branch_reservations', 'session_clear_generations']),
    );
    expect(await main.getItems()).toEqual(turns(3));
  });

  it('of a file of an older class, which had two of those tables only: reads do without, a change makes the others [SESS-202]', async () => {
    const path = freshPath();
    const first = await filled(path, 2);
    await first.branch('b', { fromTurn: 2 }).getItems();
    await first.close();
    const tables = () =>
      sql(path, `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`).map(({ name }) => name);
    const whole = tables();
    const older = (): void => {
      for (const table of ['branch_reservations', 'session_clear_generations']) sql(path, `DROP TABLE ${table}`);
    };
    older();
    const before = tables();
    await using main = open(path);
    await using branch = main.branch('b');
    expect(await main.getItems()).toEqual(turns(2));
    expect(await branch.getItems()).toEqual(turn(1));
    expect(await branch.getUsage()).toBeUndefined();
    expect(tables()).toEqual(before);
    expect(await main.popItem()).toEqual(turn(2)[1]);
    expect(tables()).toEqual(whole);
    await expect(main.branch('b', { fromTurn: 1 }).getItems()).rejects.toThrow(/used before/);
    older();
    await using store = new SQLiteSessionStore(path);
    expect(await store.delete('s')).toBe(true);
    expect(await branch.getItems()).toEqual([]);
    expect(branch.branchId).toBe('main');
  });

  it('that come while an object is used stay: it deletes what it knows, and others show them, in order [SESS-212]', async () => {
    const path = freshPath();
    await using main = await filled(path, 2);
    await using branch = main.branch('b', { fromTurn: 2 });
    await branch.getItems();
    await main.getItems();
    await open(path, 'other').addItems(turn(1));
    const contents = [1, 2].map((n) => `('s', '{"role": "user", "content": "plain ${n}"}')`);
    sql(path, `INSERT INTO agent_messages (session_id, message_data) VALUES ${contents.join(', ')}`);
    await main.popItem();
    await main.replaceHistory([user('new')]);
    await branch.replaceHistory([]);
    expect(await open(path).getItems()).toEqual([user('new'), user('plain 1'), user('plain 2')]);
    expect(await open(path, 'other').getItems()).toEqual(turn(1));
  });
});

it('tables of branches of another pair are left alone: SessionSchemaError, else a plain session [SESS#67, SESS-201]', async () => {
  const path = freshPath();
  await using main = await filled(path, 1);
  await main.branch('b', { fromTurn: 1 }).getItems();
  await using other = new SQLiteSession<object>('s', { path, sessionsTable: 'Chats', messagesTable: 'chat_items' });
  await other.addItems(turn(1));
  expect(await other.getItems()).toEqual(turn(1));
  const before = sql(path, 'SELECT * FROM message_structure');
  await expect(other.branch('c', { fromTurn: 1 }).getItems()).rejects.toMatchObject({ code: 'session_schema' });
  await expect(other.branch('b').getItems()).rejects.toMatchObject({ code: 'session_schema' });
  await expect(other.getUsage()).rejects.toThrow(/belongs to the table 'agent_/);
  await other.addUsage(toUsage({ inputTokens: 1 }));
  expect(warn).toHaveBeenCalledOnce();
  expect(sql(path, 'SELECT * FROM message_structure')).toEqual(before);
  // Names are compared without the case of their letters.
  await using same = new SQLiteSession<object>('s', { path, sessionsTable: 'AGENT_sessions' });
  expect(await same.branch('c', { fromTurn: 1 }).getItems()).toEqual([]);
  sql(path, 'DROP TABLE turn_usage');
  await expect(main.getUsage()).rejects.toThrow(/'turn_usage' is missing/);
  expect(await open(path).getItems()).toEqual(turn(1));
});

it.each([{ messagesTable: 'chat_items' }, { sessionsTable: 'chats' }])(
  'tables of branches of a pair that shares one table are left alone, too: %o [SESS#67, SESS-201]',
  async (names) => {
    const path = freshPath();
    await using main = await filled(path, 2);
    await main.branch('b', { fromTurn: 2 }).getItems();
    const before = sql(path, 'SELECT * FROM message_structure');
    await using other = new SQLiteSession<object>('theirs', { path, ...names });
    await other.addItems(turn(1));
    expect(await other.getItems()).toEqual(turn(1));
    await expect(other.branch('c', { fromTurn: 1 }).getItems()).rejects.toMatchObject({ code: 'session_schema' });
    await expect(other.branch('b').getItems()).rejects.toMatchObject({ code: 'session_schema' });
    await expect(other.getUsage()).rejects.toThrow(/belongs to the table 'agent_/);
    expect(sql(path, 'SELECT * FROM message_structure')).toEqual(before);
    expect(await main.getItems()).toEqual(turns(2));
  },
);

it.each([
  ['belongs to other sessions', ['chats (session_id)'], /belongs to the table 'chats'/],
  ['points at another column', ['agent_sessions (created_at)'], /belongs to the table/],
  ['says nothing of its owner', [], /does not say whose 'session_id'/],
  ['has two owners', ['chats (session_id)', 'agent_sessions (session_id)'], /does not say whose 'session_id'/],
  ['lacks a column', ['agent_sessions (session_id)'], /has no column 'output_tokens_details'/],
])(
  'a table of branches that %s is left alone: SessionSchemaError, else a plain session [SESS-201]',
  async (what, owners, why) => {
    const path = freshPath();
    const main = await filled(path, 2);
    await main.branch('b', { fromTurn: 2 }).getItems();
    await main.close();
    sql(path, 'DROP TABLE turn_usage');
    const details = what === 'lacks a column' ? '' : ', output_tokens_details JSON';
    const keys = owners.map((owner) => `, FOREIGN KEY (session_id) REFERENCES ${owner}`).join('');
    sql(
      path,
      `CREATE TABLE turn_usage (id INTEGER PRIMARY KEY, session_id TEXT, branch_id TEXT, user_turn_number INTEGER, requests INTEGER,
      input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, input_tokens_details JSON${details}${keys})`,
    );
    const before = sql(path, 'SELECT * FROM message_structure');
    await using session = open(path);
    await expect(session.getUsage()).rejects.toThrow(why);
    for (const options of [undefined, { fromTurn: 1 }])
      await expect(session.branch('c', options).getItems()).rejects.toMatchObject({ code: 'session_schema' });
    await session.addItems(turn(3));
    expect(await session.getItems()).toEqual(turns(3));
    expect(sql(path, 'SELECT * FROM message_structure')).toEqual(before);
  },
);

describe('what the tables say of an item [SESS-204]', () => {
  it.each([
    [{ role: 'user', type: 'message', content: 'x' }, 'user', null],
    [{ role: 'assistant', content: [] }, 'assistant', null],
    [{ role: 'system', content: 'x' }, 'other', null],
    [{ role: 'developer', type: 'message', content: 'x' }, 'message', null],
    [{ type: 'function_call', name: 'f' }, 'function_call', 'f'],
    [{ type: 'function_call', name: 'f', namespace: 'n' }, 'function_call', 'n.f'],
    [{ type: 'function_call', name: 'f', namespace: 'f' }, 'function_call', 'f'],
    [{ type: 'mcp_call', server_label: 'l', name: 'f' }, 'mcp_call', 'l.f'],
    [{ type: 'mcp_approval_request', server_label: 'l' }, 'mcp_approval_request', 'l'],
    [{ type: 'mcp_call', server_label: '', name: 'f' }, 'mcp_call', 'f'],
    [{ type: 'mcp_call', name: 'f' }, 'mcp_call', 'f'],
    [{ type: 'mcp_call', server_label: '' }, 'mcp_call', null],
    [{ type: 'function_call', name: 'f', server_label: 'l' }, 'function_call', 'f'],
    [{ type: 'computer_call' }, 'computer_call', 'computer_call'],
    [{ type: 'file_search_call' }, 'file_search_call', 'file_search_call'],
    [{ type: 'code_interpreter_call' }, 'code_interpreter_call', 'code_interpreter_call'],
    [{ type: 'tool_search_call' }, 'tool_search_call', 'tool_search'],
    [{ type: 'shell_call' }, 'shell_call', 'shell_call'],
    [{ type: 'apply_patch_call' }, 'apply_patch_call', 'apply_patch_call'],
    [{ type: 'local_shell_call' }, 'local_shell_call', null],
    [{ type: 'image_generation_call' }, 'image_generation_call', null],
    [{ type: 'tool_search_output' }, 'tool_search_output', 'tool_search'],
    [{ type: 'web_search_call', name: 'f' }, 'web_search_call', 'web_search_call'],
    [{ no: 'type' }, 'other', null],
  ])('%o [SESS#92]', async (item, type, name) => {
    const path = freshPath();
    await using main = open(path);
    await main.addUsage(toUsage({}));
    await main.addItems([item]);
    expect(sql(path, 'SELECT message_type, tool_name FROM message_structure')).toEqual([
      { message_type: type, tool_name: name },
    ]);
  });
});

describe('usage', () => {
  const usage = (input: number) =>
    toUsage({
      requests: 2,
      inputTokens: input,
      outputTokens: 5,
      // As the provider counts.
      totalTokens: input + 6,
      inputTokensDetails: { cachedTokens: 3, cacheWriteTokens: 1 },
      outputTokensDetails: { reasoningTokens: 4 },
    });

  it('is kept for the turn of the branch and summed over it [SESS-209]', async () => {
    const path = freshPath();
    await using main = await filled(path, 1);
    expect(await main.getUsage()).toBeUndefined();
    await main.addUsage(usage(7));
    await main.addUsage(usage(10));
    await main.addItems(turn(2));
    await main.addUsage(usage(20));
    expect(await main.getUsage()).toMatchObject({
      requests: 4,
      inputTokens: 30,
      outputTokens: 10,
      totalTokens: 42,
      inputTokensDetails: { cachedTokens: 6, cacheWriteTokens: 2 },
      outputTokensDetails: { reasoningTokens: 8 },
    });
    await using branch = main.branch('b', { fromTurn: 2 });
    expect(await branch.getUsage()).toBeUndefined();
    await branch.addUsage(usage(1));
    expect((await branch.getUsage())?.inputTokens).toBe(1);
    expect(sql(path, 'SELECT DISTINCT output_tokens_details AS d FROM turn_usage')).toEqual([
      { d: '{"reasoning_tokens": 4}' },
    ]);
    // Of writers that kept totals alone, or no JSON.
    sql(path, `UPDATE turn_usage SET input_tokens_details = NULL, output_tokens_details = 'x' WHERE branch_id = 'b'`);
    expect(await branch.getUsage()).toMatchObject({ totalTokens: 7, outputTokensDetails: { reasoningTokens: 0 } });
    await branch.addUsage(usage(1));
    expect(
      sql(path, 'SELECT branch_id AS b, user_turn_number AS u, input_tokens_details AS d FROM turn_usage ORDER BY id'),
    ).toEqual([
      { b: 'main', u: 1, d: '{"cached_tokens": 3, "cache_write_tokens": 1}' },
      { b: 'main', u: 2, d: '{"cached_tokens": 3, "cache_write_tokens": 1}' },
      { b: 'b', u: 1, d: '{"cached_tokens": 3, "cache_write_tokens": 1}' },
    ]);
  });

  it('of a history without a message of the user is of turn 0 [SESS-209]', async () => {
    await using main = open(freshPath());
    await main.addItems([{ role: 'assistant', content: 'hello' }]);
    await main.addUsage(usage(7));
    expect((await main.getUsage())?.inputTokens).toBe(7);
  });

  it('goes with the last item of its turn, and is of the turn at the time of the call; without a turn none is kept [SESS-207, SESS-209, IL-039]', async () => {
    const path = freshPath();
    await using main = await filled(path, 2);
    const calls = [main.addUsage(usage(2)), main.popItem(), main.popItem(), main.addUsage(usage(1))];
    await Promise.all(calls);
    expect(sql(path, 'SELECT user_turn_number AS u, input_tokens AS i FROM turn_usage')).toEqual([{ u: 1, i: 1 }]);
    await main.popItem();
    await main.popItem();
    await main.addUsage(usage(9));
    expect(await main.getUsage()).toBeUndefined();
  });

  it('stays while its turn has items, and on other branches; a replacement takes that of its branch [SESS-207]', async () => {
    await using main = await filled(freshPath(), 2);
    await using branch = main.branch('b', { fromTurn: 2 });
    await branch.addItems(turn(2));
    for (const one of [main, branch]) await one.addUsage(usage(7));
    await main.popItem();
    expect((await main.getUsage())?.inputTokens).toBe(7);
    await main.popItem();
    expect(await main.getUsage()).toBeUndefined();
    expect((await branch.getUsage())?.inputTokens).toBe(7);
    await main.addUsage(usage(3));
    await branch.replaceHistory([]);
    expect(await branch.getUsage()).toBeUndefined();
    expect((await main.getUsage())?.inputTokens).toBe(3);
  });

  it('of a history that was cleared meanwhile is not kept [SESS-209]', async () => {
    const path = freshPath();
    await using main = await filled(path, 1);
    await main.addUsage(usage(1));
    await using other = open(path);
    await other.clearSession();
    await other.addItems(turn(1));
    await main.addUsage(usage(2));
    expect(await main.getUsage()).toBeUndefined();
    await main.addUsage(usage(3));
    expect((await main.getUsage())?.inputTokens).toBe(3);
  });

  it('never fails a run: what goes wrong is logged [SESS-209]', async () => {
    const main = open(freshPath());
    await main.close();
    await main.addUsage(usage(1));
    expect(warn.mock.calls[0]?.[0].data).toEqual({ sessionId: 's', error: 'SessionClosedError' });
  });
});

it('branches of a store end with it, also while others hold the file [SESS-154, 188]', async () => {
  const path = freshPath();
  await using other = await filled(path, 2);
  const store = new SQLiteSessionStore(path);
  const branch = store.session(other.sessionId).branch('again', { fromTurn: 2 });
  const further = branch.branch('further', { fromTurn: 1 });
  expect(await further.getItems()).toEqual([]);
  await store.close();
  for (const one of [branch, further]) {
    expect(one.closed).toBe(true);
    for (const call of [() => one.getItems(), () => one.addItems([]), () => one.getUsage()])
      await expect(call()).rejects.toMatchObject({ code: 'session_closed' });
  }
  expect(() => branch.branch('more')).toThrow(expect.objectContaining({ code: 'session_closed' }));
  expect(await other.getItems()).not.toEqual([]);
});

it('a store deletes, prunes and imports with branches', async () => {
  const path = freshPath();
  await using store = new SQLiteSessionStore({ path, synchronous: 'NORMAL' });
  const session = store.session('a') as unknown as SQLiteSession<object>;
  for (let n = 1; n <= 3; n++) await session.addItems(turn(n));
  const branch = session.branch('b', { fromTurn: 2 });
  await branch.addItems([user('x')]);
  async function* lines() {
    yield* store.export('a');
  }
  expect(await store.import('c', lines())).toBe(6);
  expect(sql(path, `SELECT max(user_turn_number) AS turns FROM message_structure WHERE session_id = 'c'`)).toEqual([
    { turns: 3 },
  ]);
  expect(await store.prune({ maxItems: 2 })).toEqual({ sessions: 0, items: 8 });
  expect(await session.getItems()).toEqual(turn(3));
  expect(await branch.getItems()).toEqual([...turn(1), user('x')]);
  expect(await store.delete('a')).toBe(true);
  expect(sql(path, `SELECT count(*) AS n FROM message_structure WHERE session_id = 'a'`)).toEqual([{ n: 0 }]);
  expect(await branch.getItems()).toEqual([]);
});
