import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { configureLogging, MemorySession, UserError } from '@agents/core';
import type { LogRecord } from '@agents/core';
import { SessionClosedError, SessionOutcomeUnknownError, SessionVersionConflictError } from '@agents/core/session';
import type { HistoryOperation, ManagedSession } from '@agents/core/session';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { SQLiteSession } from './index.ts';
import type { SQLiteHandle } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-rules-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = (): string => join(folder, `${++files}.db`);

const logs: LogRecord[] = [];
beforeEach(() => configureLogging({ level: 'debug', sink: (record) => void logs.push(record) }));
afterEach(() => {
  configureLogging({ sink: null });
  logs.length = 0;
});

type Item = Record<string, unknown>;
const user = (content: string): Item => ({ role: 'user', content });
const contents = async (session: ManagedSession<Item>): Promise<unknown[]> =>
  (await session.getItems()).map((item) => item['content']);

/** Rows of a table as they are stored, in the order in which they were made. */
function rows(path: string, table: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all();
  } finally {
    database.close();
  }
}

/** Another program on the same file. */
function sql(path: string, ...statements: readonly string[]): void {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  for (const statement of statements) database.exec(statement);
  database.close();
}

const stores: Record<string, () => (id: string) => ManagedSession<Item>> = {
  memory: () => (id) => new MemorySession<Item>(id),
  'a file': () => {
    const path = freshPath();
    return (id) => new SQLiteSession<Item>(id, path);
  },
};

describe.each(Object.keys(stores))('a session in %s', (store) => {
  const open = (id = 's'): ManagedSession<Item> => (stores[store] as () => (id: string) => ManagedSession<Item>)()(id);

  it('takes an empty batch for nothing, but not when it is closed [SESS-007]', async () => {
    const session = open();
    await session.addItems([user('a')]);
    const { version } = await session.readHistory();
    await expect(session.addItems([])).resolves.toBeUndefined();
    expect((await session.readHistory()).version).toBe(version);
    await session.close();
    await expect(session.addItems([])).rejects.toBeInstanceOf(SessionClosedError);
  });

  it('is cleared without touching another one; it, and an unknown one, can be cleared and filled [SESS-011]', async () => {
    const of = (stores[store] as () => (id: string) => ManagedSession<Item>)();
    const [session, other] = [of('a'), of('b')];
    await expect(session.clearSession()).resolves.toBeUndefined();
    await session.addItems([user('1'), user('2')]);
    await other.addItems([user('other')]);
    await session.clearSession();
    expect([await contents(session), await contents(other)]).toEqual([[], ['other']]);
    await session.addItems([user('3')]);
    expect(await contents(session)).toEqual(['3']);
    await Promise.all([session.close(), other.close()]);
  });

  const operation = (operationId: string, transaction: unknown): HistoryOperation<Item> =>
    ({ operationId, transaction }) as HistoryOperation<Item>;
  const append = (...items: unknown[]): unknown => ({ type: 'append_items', items });
  const replace = (expectedSuffix: unknown, replacement: unknown): unknown => ({
    type: 'replace_suffix',
    expectedSuffix,
    replacement,
  });

  it('appends one batch per operation, whole or not at all [SESS-035]', async () => {
    const session = open();
    await session.applyHistoryTransaction(operation('1', append(user('a'), user('b'))));
    const circle: Item = {};
    circle['self'] = circle;
    await expect(session.applyHistoryTransaction(operation('2', append(user('c'), circle)))).rejects.toMatchObject({
      code: 'session_item_invalid',
      index: 1,
    });
    await session.applyHistoryTransaction(operation('3', append()));
    expect(await contents(session)).toEqual(['a', 'b']);
    await session.close();
  });

  it('changes its end only when it is what is expected, by structure; nothing expected appends, no replacement cuts [SESS-035]', async () => {
    const session = open();
    await session.addItems([user('a'), { role: 'user', content: 'b', more: { x: 1, y: 2 } }]);
    const wrong = [
      [user('b')],
      [{ role: 'user', content: 'b', more: { x: 1, y: 3 } }],
      [user('x'), user('a'), { role: 'user', content: 'b', more: { x: 1, y: 2 } }],
      [user('a'), { role: 'user', content: 'b', more: { x: 1, y: 2 } }, user('c')],
    ];
    for (const [index, expected] of wrong.entries()) {
      const error: unknown = await session
        .applyHistoryTransaction(operation(`wrong ${index}`, replace(expected, [user('z')])))
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code: 'session_suffix_mismatch' });
    }
    expect(await contents(session)).toEqual(['a', 'b']);
    await session.applyHistoryTransaction(
      operation('1', replace([{ more: { y: 2, x: 1 }, content: 'b', role: 'user' }], [user('c'), user('d')])),
    );
    expect(await contents(session)).toEqual(['a', 'c', 'd']);
    await session.applyHistoryTransaction(operation('2', replace([], [user('e')])));
    await session.applyHistoryTransaction(operation('3', replace([user('d'), user('e')], [])));
    expect(await contents(session)).toEqual(['a', 'c']);
    await session.close();
  });

  it('looks at the argument before it does anything [SESS-035]', async () => {
    const session = open();
    await session.addItems([user('a')]);
    const wrong = [
      operation(' ', append(user('b'))),
      operation('', append(user('b'))),
      { ...operation('1', append(user('b'))), extra: 1 },
      operation('1', { type: 'append_items', items: [user('b')], more: [] }),
      operation('1', { type: 'append_items', items: user('b') }),
      operation('1', replace(user('a'), [user('b')])),
      operation('1', replace([user('a')], 'b')),
      operation('1', { type: 'replace_all', items: [] }),
    ];
    for (const argument of wrong) {
      await expect(session.applyHistoryTransaction(argument)).rejects.toBeInstanceOf(UserError);
    }
    expect(await contents(session)).toEqual(['a']);
    // None of them used the id.
    await session.applyHistoryTransaction(operation('1', append(user('b'))));
    expect(await contents(session)).toEqual(['a', 'b']);
    await session.close();
  });

  it('says that it is there, and only rejects when it is closed [SESS-155]', async () => {
    const session = open();
    await expect(session.ping()).resolves.toBe(true);
    await session.close();
    await expect(session.ping()).rejects.toBeInstanceOf(SessionClosedError);
  });

  it('is a session of npm @openai/agents: its id on request, transactions by name, items as they are [SESS-393]', async () => {
    const session = open('shared id');
    expect(await session.getSessionId()).toBe('shared id');
    const items: Item[] = [
      { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'x' }] },
      { type: 'function_call', callId: 'c1', name: 'f', arguments: '{}', providerData: { a: 1 } },
      {
        type: 'function_call_result',
        callId: 'c1',
        name: 'f',
        status: 'completed',
        output: { type: 'text', text: 'y' },
      },
    ];
    await session.applyHistoryTransaction({
      operationId: 'a',
      transaction: { type: 'append_items', items: items.slice(0, 2) },
    });
    await session.applyHistoryTransaction({
      operationId: 'b',
      transaction: { type: 'replace_suffix', expectedSuffix: items.slice(1, 2), replacement: items.slice(1) },
    });
    expect(await session.getItems()).toEqual(items);
    expect(await session.getItems(1)).toEqual(items.slice(-1));
    expect(await session.popItem()).toEqual(items.at(-1));
    await session.close();
  });
});

describe('a session in a file', () => {
  it('says that it is not there while the file cannot be used, and that it is once it can be again [SESS-155]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<Item>('s', path);
    await session.addItems([user('1')]);
    expect(await session.ping()).toBe(true);
    const aside = `${path}.aside`;
    renameSync(path, aside);
    expect(await session.ping()).toBe(false);
    writeFileSync(path, 'no database, but as long as the beginning of one: '.repeat(50));
    expect(await session.ping()).toBe(false);
    renameSync(aside, path);
    expect(await session.ping()).toBe(true);
    const corrupt = freshPath();
    writeFileSync(corrupt, 'no database, but as long as the beginning of one: '.repeat(50));
    await using other = new SQLiteSession<Item>('s', corrupt);
    expect(await other.ping()).toBe(false);
    await session.close();
    await expect(session.ping()).rejects.toBeInstanceOf(SessionClosedError);
  });

  it('is not even opened for a limit that asks for nothing [SESS-004]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<Item>('s', { path, sessionSettings: { limit: 0 } });
    for (const limit of [undefined, 0, -3]) expect(await session.getItems(limit)).toEqual([]);
    expect(existsSync(path)).toBe(false);
  });

  it('makes no record for an empty batch [SESS-007]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<Item>('s', path);
    await session.addItems([]);
    expect(existsSync(path)).toBe(false);
    await new SQLiteSession<Item>('other', path).addItems([user('a')]);
    await session.addItems([]);
    await session.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: [] } });
    await session.appendIfVersion('0', []);
    expect(rows(path, 'agent_sessions').map((row) => row['session_id'])).toEqual(['other']);
  });

  it('sees at once what another object, another connection and another program have written [SESS-012]', async () => {
    const path = freshPath();
    const [one, two] = [new SQLiteSession<Item>('s', path), new SQLiteSession<Item>('s', path)];
    const handle = new DatabaseSync(path);
    const three = new SQLiteSession<Item>('s', { database: handle });
    await one.addItems([user('1')]);
    expect([await contents(two), await contents(three)]).toEqual([['1'], ['1']]);
    await three.addItems([user('2')]);
    await two.popItem();
    expect([await contents(one), await contents(three)]).toEqual([['1'], ['1']]);
    sql(path, `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"role":"user","content":"3"}')`);
    expect([await contents(one), await contents(two), await contents(three)]).toEqual([
      ['1', '3'],
      ['1', '3'],
      ['1', '3'],
    ]);
    await Promise.all([one.close(), two.close()]);
    handle.close();
  });

  it('writes a session row once, items and the operation in one change; pop takes the newest row, clear all rows [SESS-184]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession<Item>('s', path);
    await using other = new SQLiteSession<Item>('other', path);
    await other.applyHistoryTransaction({
      operationId: 'theirs',
      transaction: { type: 'append_items', items: [user('x')] },
    });
    await session.addItems([user('1'), user('2')]);
    sql(path, `UPDATE agent_sessions SET updated_at = '2000-01-01 00:00:00', created_at = '2000-01-01 00:00:00'`);
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'append_items', items: [user('3')] },
    });
    const mine = (table: string): Record<string, unknown>[] =>
      rows(path, table).filter((row) => row['session_id'] === 's');
    expect(mine('agent_sessions')).toMatchObject([
      { created_at: '2000-01-01 00:00:00', updated_at: expect.not.stringMatching(/^2000/) as string },
    ]);
    expect(mine('agent_messages').map((row) => JSON.parse(String(row['message_data'])) as unknown)).toEqual([
      user('1'),
      user('2'),
      user('3'),
    ]);
    expect(mine('agent_session_operations')).toMatchObject([{ operation_id: 'op' }]);

    sql(path, `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', 'corrupt'), ('s', '[]')`);
    const ids = mine('agent_messages').map((row) => row['id']);
    expect(await session.popItem()).toEqual(user('3'));
    expect(mine('agent_messages').map((row) => row['id'])).toEqual(ids.slice(0, 2));

    await session.clearSession();
    for (const table of ['agent_sessions', 'agent_messages', 'agent_session_operations']) {
      expect(rows(path, table).map((row) => row['session_id'])).toEqual(['other']);
    }
  });

  it('has its newest id as version, which no later row gets again [SESS-192]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession<Item>('s', path);
    const version = async (): Promise<string> => (await session.readHistory()).version;
    expect(await version()).toBe('0');
    await session.addItems([user('1'), user('2')]);
    const newest = (): unknown => rows(path, 'agent_messages').at(-1)?.['id'];
    expect(await version()).toBe(String(newest()));
    const before = await version();
    await session.popItem();
    await session.addItems([user('2')]);
    // The same items, but not the same history.
    expect(await version()).toBe(String(Number(before) + 1));
    await expect(session.appendIfVersion(before, [user('3')])).rejects.toBeInstanceOf(SessionVersionConflictError);
    await session.clearSession();
    expect(await version()).toBe('0');
    await session.addItems([user('1')]);
    expect(Number(await version())).toBeGreaterThan(Number(before) + 1);
  });

  it("never rewrites another writer's rows: numbers stay as they are spelled [SESS-134]", async () => {
    const path = freshPath();
    await using session = new SQLiteSession<Item>('s', path);
    const foreign = [
      '{"role": "user", "content": "a", "one": 1.0, "big": 9007199254740993, "text": "\\u00e9"}',
      '{"content":"b","role":"user","exp":1e3}',
    ];
    await session.addItems([user('first')]);
    sql(
      path,
      ...foreign.map((text) => `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '${text}')`),
    );
    const stored = (): unknown[] => rows(path, 'agent_messages').map((row) => row['message_data']);
    const before = stored();
    await session.getItems();
    await session.getItems(2);
    await session.addItems([user('c'), user('d')]);
    await session.popItem();
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: [user('c')], replacement: [user('e')] },
    });
    expect(stored().slice(0, 3)).toEqual(before);
    expect(await contents(session)).toEqual(['first', 'a', 'b', 'e']);
  });

  it('does its bookkeeping with the change: where it fails nothing is stored, and a retry stores it once [SESS-152]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession<Item>('s', path);
    await session.addItems([user('1')]);
    const broken = [
      ['touch', 'BEFORE UPDATE ON agent_sessions'],
      ['operation', 'BEFORE INSERT ON agent_session_operations'],
    ] as const;
    for (const [name, when] of broken) {
      sql(path, `CREATE TRIGGER ${name} ${when} BEGIN SELECT RAISE(ABORT, 'no bookkeeping'); END`);
      const write = (): Promise<void> =>
        session.applyHistoryTransaction({
          operationId: name,
          transaction: { type: 'append_items', items: [user(name)] },
        });
      await expect(write()).rejects.toThrow(/no bookkeeping/);
      sql(path, `DROP TRIGGER ${name}`);
      expect(await contents(session)).not.toContain(name);
      await write();
      await write();
    }
    expect(await contents(session)).toEqual(['1', 'touch', 'operation']);
  });

  it('knows the outcome of what failed: of bad items, of refusals of the database, of a lock [SESS-151]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<Item>('s', { path, busyTimeoutMs: 20 });
    await session.addItems([user('1')]);
    sql(path, `CREATE TRIGGER refuse BEFORE INSERT ON agent_messages BEGIN SELECT RAISE(ABORT, 'refused'); END`);
    const errors = [
      await failure(session.addItems([{ role: 'user', content: 1n }])),
      await failure(session.addItems([user('2')])),
    ];
    sql(path, 'DROP TRIGGER refuse');
    const lock = new DatabaseSync(path);
    lock.exec('BEGIN IMMEDIATE');
    errors.push(await failure(session.addItems([user('3')])));
    lock.exec('ROLLBACK');
    lock.close();
    await session.close();
    errors.push(await failure(session.addItems([user('4')])));
    expect(errors.map((error) => (error as { code?: unknown }).code)).toEqual([
      'session_item_invalid',
      'ERR_SQLITE_ERROR',
      'session_busy',
      'session_closed',
    ]);
    for (const error of errors) expect(error).not.toBeInstanceOf(SessionOutcomeUnknownError);
    await using again = new SQLiteSession<Item>('s', path);
    expect(await contents(again)).toEqual(['1']);
  });

  it('is bounded in every call by the time it waits for a lock, 5 seconds unless told otherwise [SESS-156]', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    try {
      const path = freshPath();
      const session = new SQLiteSession<Item>('s', path);
      await session.addItems([user('1')]);
      const lock = new DatabaseSync(path);
      lock.exec('BEGIN EXCLUSIVE');
      const calls = [
        () => session.addItems([user('2')]),
        () => session.popItem(),
        () => session.clearSession(),
        () => session.replaceHistory([]),
        () => session.applyHistoryTransaction({ operationId: 'o', transaction: { type: 'append_items', items: [] } }),
      ];
      for (const call of calls) {
        const start = performance.now();
        let waited = Number.NaN;
        const ended = failure(call()).then((error) => {
          waited = performance.now() - start;
          return error;
        });
        await vi.advanceTimersByTimeAsync(4_900);
        expect(waited).toBeNaN();
        await vi.advanceTimersByTimeAsync(200);
        expect(await ended).toMatchObject({
          code: 'session_busy',
          message: expect.stringMatching(/5000 ms/) as string,
        });
        expect(waited).toBeGreaterThanOrEqual(5_000);
      }
      lock.exec('ROLLBACK');
      lock.close();
      expect(await contents(session)).toEqual(['1']);
      await session.close();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the driver of a session', () => {
  const drivers = { calls: [] as string[] };
  const stub = (versions: Record<string, string>, modules: Record<string, unknown>): void => {
    drivers.calls.length = 0;
    vi.stubGlobal('process', {
      ...process,
      version: 'v22.4.0',
      versions,
      getBuiltinModule: (name: string): unknown => {
        drivers.calls.push(name);
        return modules[name];
      },
    });
  };
  afterEach(() => vi.unstubAllGlobals());
  const node = { DatabaseSync };
  /** Bun's class has one argument here, and its rows are `null` where there are none. */
  class Database extends DatabaseSync {
    constructor(path: string) {
      super(path, { enableForeignKeyConstraints: false });
    }
  }

  it('is the handle that was handed in, of which five functions are used, and which is never closed [SESS-191]', async () => {
    stub({}, {});
    const database = new DatabaseSync(':memory:');
    const used = new Set<string>();
    const watched = <T extends object>(target: T, name: string): T =>
      new Proxy(target, {
        get(object, key) {
          used.add(`${name}.${String(key)}`);
          const value: unknown = Reflect.get(object, key);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown => {
            const result: unknown = Reflect.apply(value, object, args);
            return key === 'prepare' ? watched(result as object, 'statement') : result;
          };
        },
      });
    const session = new SQLiteSession<Item>('s', { database: watched(database, 'database') as SQLiteHandle });
    await session.addItems([user('1'), user('2')]);
    await session.popItem();
    await session.readHistory();
    await session.applyHistoryTransaction({
      operationId: 'o',
      transaction: { type: 'append_items', items: [user('3')] },
    });
    await expect(session.addItems([{ a: 1n }])).rejects.toThrow(/Item 0/);
    await session.close();
    expect(await contents(session)).toEqual(['1', '3']);
    const allowed = ['database.exec', 'database.prepare', 'statement.run', 'statement.get', 'statement.all'];
    expect([...used].filter((name) => !allowed.includes(name))).toEqual([]);
    expect(database.isOpen).toBe(true);
    expect(drivers.calls).toEqual([]);
    database.close();
  });

  it('is that of Bun where there is one, else that of Node; it is loaded at the first call [SESS-191]', async () => {
    for (const [versions, modules, name] of [
      [{ node: '26.3.0', bun: '1.4.5' }, { 'bun:sqlite': { Database }, 'node:sqlite': node }, 'bun:sqlite'],
      [{ node: '24.0.0' }, { 'node:sqlite': node }, 'node:sqlite'],
    ] as const) {
      stub(versions, modules);
      const session = new SQLiteSession<Item>('s', freshPath());
      expect(drivers.calls).toEqual([]);
      await session.addItems([user('1')]);
      expect([drivers.calls, await contents(session)]).toEqual([[name], ['1']]);
      await session.close();
    }
  });

  it('is missing with an error that names the version and the way out [SESS-191]', async () => {
    stub({ node: '22.4.0' }, {});
    const session = new SQLiteSession<Item>('s', freshPath());
    const error = await failure(session.getItems());
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toMatch(/22\.13.*v22\.4\.0.*better-sqlite3/);
  });
});

describe('what a session logs', () => {
  it('is its id and positions, never what its items hold [SESS-017]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<Item>('s', path);
    const secret = 'planted-secret';
    await session.addItems([user(secret)]);
    sql(
      path,
      `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"content": "${secret}'), ('s', '"${secret}"')`,
    );
    await session.getItems();
    await failure(session.addItems([{ role: 'user', content: secret, bad: () => secret }]));
    await session.applyHistoryTransaction({
      operationId: 'o',
      transaction: { type: 'append_items', items: [user(`${secret} 2`)] },
    });
    await session.close();
    expect(logs.map(({ level, data }) => [level, data])).toMatchObject([
      ['warn', { sessionId: 's', position: 3, reason: expect.any(String) as string }],
    ]);
    expect(JSON.stringify(logs)).not.toContain(secret);
  });
});

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => {
      throw new Error('The promise was resolved.');
    },
    (error: unknown) => error,
  );
}
