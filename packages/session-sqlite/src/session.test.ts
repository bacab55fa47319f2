import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

import { configureLogging, UserError } from '@agents/core';
import type { LogRecord } from '@agents/core';
import {
  decodeItem,
  SessionBusyError,
  SessionClosedError,
  SessionError,
  SessionItemError,
  SessionSchemaError,
  supports,
} from '@agents/core/session';
import type { HistoryTransaction } from '@agents/core/session';
import { sessionContract } from '@agents/core/testing';
import type { SessionFixture } from '@agents/core/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { watchedHandle } from '../test/handle.ts';
import { SQLiteSession } from './index.ts';
import type { SQLiteHandle } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = (): string => join(folder, `${++files}.db`);

const warn = vi.fn<(record: LogRecord) => void>();
beforeEach(() => configureLogging({ sink: warn }));
afterEach(() => {
  configureLogging({ sink: null });
  warn.mockReset();
});

const user = (content: string) => ({ role: 'user', content });
const users = (count: number) => Array.from({ length: count }, (_, index) => user(String(index + 1)));

/** Another connection to the file, which does as it is told and goes. */
function sql(path: string, ...statements: readonly string[]): unknown[] {
  const database = new DatabaseSync(path, { timeout: 1000, enableForeignKeyConstraints: false });
  const last = statements.map((statement) => database.prepare(statement).all()).at(-1) ?? [];
  database.close();
  return last;
}

function broken(path: string, id: string, record: string): void {
  const database = new DatabaseSync(path);
  database.prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)').run(id, record);
  database.close();
}

/** What `broken` has put there. */
function unreadable(database: DatabaseSync, id: string): string[] {
  const rows = database.prepare('SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id').all(id);
  return rows.map((row) => String(row['message_data'])).filter((text) => decodeItem(text) === undefined);
}

/** Cases that cannot be run here are left out by name; any other must not be skipped. */
const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract, on a file [SESS-342]', () => {
  const path = join(folder, 'contract.db');
  const make = (): SessionFixture => ({
    open: (id, options) => new SQLiteSession<object>(id, { path, ...options }),
    addCorrupt: (id, record) => broken(path, id, record),
    readCorrupt(id) {
      const database = new DatabaseSync(path);
      try {
        return unreadable(database, id);
      } finally {
        database.close();
      }
    },
  });
  // SQLite gives its answers inside the call, so none is lost; the fixture of the next group breaks writes.
  const elsewhere = /^(G|H3)/;
  it.each(sessionContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract, with a database that was handed in [SESS-342]', () => {
  const make = (): SessionFixture & { dispose(): void } => {
    const database = new DatabaseSync(':memory:');
    let failing = false;
    const handle: SQLiteHandle = {
      exec: (text) => database.exec(text),
      prepare(text) {
        const statement = database.prepare(text);
        return {
          run(...values: string[]) {
            if (text === 'COMMIT' && failing) {
              failing = false;
              throw new Error('the disk is full');
            }
            return statement.run(...values);
          },
          get: (...values: string[]) => statement.get(...values),
          all: (...values: string[]) => statement.all(...values),
        };
      },
    };
    return {
      open: (id, options) => new SQLiteSession<object>(id, { database: handle, ...options }),
      addCorrupt: (id, record) =>
        void database.prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)').run(id, record),
      readCorrupt: (id) => unreadable(database, id),
      failNext: () => {
        failing = true;
      },
      dispose: () => database.close(),
    };
  };
  const elsewhere = /^(G2|G3|H2|B9)/;
  it.each(sessionContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('a session on a file', () => {
  it('gives each item to one of many who pop at once [SESS#37, IL-009]', async () => {
    const path = freshPath();
    const sessions = [
      new SQLiteSession<{ content: string }>('s', path),
      new SQLiteSession<{ content: string }>('s', path),
    ];
    await sessions[0]!.addItems(users(20));
    const popped = await Promise.all(Array.from({ length: 21 }, (_, index) => sessions[index % 2]!.popItem()));
    expect(new Set(popped.map((item) => item?.content)).size).toBe(21);
    expect(popped.at(-1)).toBeUndefined();
  });

  it('applies an operation once, over objects and connections [SESS#14, SESS-034]', async () => {
    const path = freshPath();
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(2) } } as const;
    for (let time = 0; time < 2; time++) {
      await using session = new SQLiteSession<object>('s', path);
      await session.applyHistoryTransaction(operation);
    }
    await using session = new SQLiteSession<object>('s', path);
    const other = session.applyHistoryTransaction({
      ...operation,
      transaction: { type: 'append_items', items: users(3) },
    });
    await expect(other).rejects.toMatchObject({ name: 'UserError', code: 'session_operation_mismatch' });
    expect(await session.getItems()).toEqual(users(2));
    await session.clearSession();
    expect(sql(path, 'SELECT * FROM agent_session_operations')).toEqual([]);
  });

  it('remembers operations of a day, and the last 64 of a session in any case [SESS-034]', async () => {
    // It forgets now and then; here with each operation.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    try {
      const path = freshPath();
      const session = new SQLiteSession<object>('s', { path, synchronous: 'NORMAL' });
      const apply = async (of: SQLiteSession<object>, operationId: string): Promise<void> =>
        await of.applyHistoryTransaction({ operationId, transaction: { type: 'append_items', items: [] } });
      const other = new SQLiteSession<object>('other', path);
      await apply(other, 'other');
      for (let n = 0; n < 70; n++) await apply(session, `old ${n}`);
      const ids = (): unknown[] =>
        sql(path, "SELECT operation_id AS id FROM agent_session_operations WHERE session_id = 's' ORDER BY rowid").map(
          (row) => (row as { id: unknown }).id,
        );
      expect(ids()).toHaveLength(70);
      sql(path, "UPDATE agent_session_operations SET created_at = datetime('now', '-2 days')");
      await apply(session, 'new 0');
      expect(ids()).toEqual([...Array.from({ length: 63 }, (_, n) => `old ${n + 7}`), 'new 0']);
      for (let n = 1; n <= 64; n++) await apply(session, `new ${n}`);
      expect(ids()).toEqual(Array.from({ length: 65 }, (_, n) => `new ${n}`));
      expect(sql(path, "SELECT 1 FROM agent_session_operations WHERE session_id = 'other'")).toHaveLength(1);
      await Promise.all([session.close(), other.close()]);
    } finally {
      random.mockRestore();
    }
  });

  it('takes any text as id [SESS#46, SESS-137]', async () => {
    const path = freshPath();
    const ids = ["it's", '100%*?', 'new\nline', '😀', 'x'.repeat(1000), "Robert'); DROP TABLE students;--"];
    // Those that the others would mean as patterns, or without their case.
    ids.push("IT'S", '100 per cent*?', '100%*x', '%', '_');
    const sessions = ids.map((id) => new SQLiteSession<object>(id, path));
    for (const session of sessions) await session.addItems([user(session.sessionId), user('last')]);
    for (const session of sessions) {
      const id = session.sessionId;
      expect(await session.getItems()).toEqual([user(id), user('last')]);
      expect((await session.readHistory(1)).items).toEqual([user('last')]);
      expect(await session.popItem()).toEqual(user('last'));
      expect(await session.getItems(5)).toEqual([user(id)]);
    }
    for (const session of sessions) {
      expect(await session.getItems()).toEqual([user(session.sessionId)]);
      await session.clearSession();
    }
    expect(sql(path, 'SELECT count(*) AS n FROM agent_sessions')).toMatchObject([{ n: 0 }]);
  });
});

it('keeps pages, versions and operations of one id apart from those of ids that it would mean as a pattern [SESS#46, SESS-137]', async () => {
  const path = freshPath();
  const [wide, other] = [new SQLiteSession<object>('%', path), new SQLiteSession<object>('a', path)];
  await other.addItems(users(3));
  await wide.addItems(users(600));
  await other.applyHistoryTransaction({
    operationId: 'op',
    transaction: { type: 'append_items', items: [user('once')] },
  });
  // More than a page.
  expect(await wide.getItems()).toEqual(users(600));
  const { version } = await wide.readHistory(0);
  expect(version).toBe((await wide.readHistory(1)).version);
  await wide.appendIfVersion(version, [user('next')], { operationId: 'op' });
  expect(await wide.getItems(1)).toEqual([user('next')]);
  await wide.clearSession();
  await other.applyHistoryTransaction({
    operationId: 'op',
    transaction: { type: 'append_items', items: [user('once')] },
  });
  expect(await other.getItems()).toEqual([...users(3), user('once')]);
});

describe('options', () => {
  it('refuses what it does not know before it opens anything [SESS#47, SESS-137, 158]', () => {
    const path = freshPath();
    expect(() => new SQLiteSession('s', { path, busyTimeout: 1 } as never)).toThrow(
      /Unknown option 'busyTimeout'.*busyTimeoutMs/,
    );
    expect(() => new SQLiteSession('s', { path, messagesTable: 'x"; DROP TABLE y' })).toThrow(
      expect.objectContaining({ code: 'session_name_invalid' }),
    );
    expect(() => new SQLiteSession('s', { path, sessionsTable: 'a', messagesTable: 'A' })).toThrow(
      expect.objectContaining({ code: 'session_name_invalid' }),
    );
    expect(() => new SQLiteSession('', path)).toThrow(expect.objectContaining({ code: 'session_id_invalid' }));
    for (const options of [
      { path: ' ' },
      { path: 'file:x.db' },
      { path, database: {} },
      { database: {} },
      { busyTimeoutMs: -1 },
      { synchronous: 'OFF' },
      { corruptItems: 'keep' },
      { sessionSettings: { limits: 1 } },
      // What a missing configuration gives: never a database in memory in its place.
      null,
      [],
      [path],
    ]) {
      expect(() => new SQLiteSession('s', options as never)).toThrow(UserError);
    }
    for (const names of [{ messagesTable: 'sqlite_x' }, { sessionsTable: 'SQLite_sequence' }])
      expect(() => new SQLiteSession('s', { path, ...names })).toThrow(
        expect.objectContaining({ name: 'UserError', code: 'session_name_invalid' }),
      );
    expect(existsSync(path)).toBe(false);
  });

  it('opens nothing before the first call, takes paths and URLs, and keeps `:memory:` to the object [SESS-018, 186, 188]', async () => {
    const path = freshPath();
    const byUrl = new SQLiteSession<object>('s', pathToFileURL(path));
    expect(existsSync(path)).toBe(false);
    await byUrl.addItems(users(1));
    expect(await new SQLiteSession('s', path).getItems()).toEqual(users(1));
    const [one, two] = [new SQLiteSession<object>('s'), new SQLiteSession<object>('s', ':memory:')];
    await one.addItems(users(2));
    expect(await two.getItems()).toEqual([]);
    expect(await one.getItems()).toEqual(users(2));
  });

  it('keeps two pairs of tables in one file apart, their operation ids too [SESS-034, 158]', async () => {
    const path = freshPath();
    const plain = new SQLiteSession<object>('s', path);
    const other = new SQLiteSession<object>('s', { path, sessionsTable: 'chats', messagesTable: 'chat_items' });
    await plain.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: users(1) } });
    await other.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: users(2) } });
    expect(await plain.getItems()).toEqual(users(1));
    expect(await other.getItems()).toEqual(users(2));
  });

  it('has operations of its own where one table of the pair is the default one [SESS-034, 158]', async () => {
    const append = { operationId: 'op', transaction: { type: 'append_items', items: users(1) } } as const;
    for (const [tables, operations] of [
      [{ sessionsTable: 'chats' }, 'agent_messages_operations'],
      [{ messagesTable: 'chat_items' }, 'chat_items_operations'],
    ] as const) {
      const path = freshPath();
      await new SQLiteSession<object>('s', { path, ...tables }).applyHistoryTransaction(append);
      const kept = sql(path, `SELECT name FROM sqlite_master WHERE name LIKE '%operations'`);
      expect(kept).toEqual([{ name: operations }]);
    }
  });

  it('writes as durably as it is told, FULL by default [SESS-182]', async () => {
    const pragmas = async (synchronous?: 'FULL' | 'NORMAL'): Promise<unknown> => {
      const path = freshPath();
      const database = new DatabaseSync(path);
      const seen: string[] = [];
      const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
        this: DatabaseSync,
        text: string,
      ) {
        seen.push(text);
        return this.prepare(text.split(';')[0]!).all() as never;
      });
      try {
        await new SQLiteSession('s', { path, synchronous }).getItems().catch(() => undefined);
      } finally {
        exec.mockRestore();
        database.close();
      }
      return seen[0];
    };
    expect(await pragmas()).toContain('synchronous = FULL');
    expect(await pragmas('NORMAL')).toContain('synchronous = NORMAL');
  });

  it('is as durable as the strictest session of a file asks for, from then on [SESS-186]', async () => {
    const path = freshPath();
    const seen: string[] = [];
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
    try {
      const fast = new SQLiteSession<object>('fast', { path, synchronous: 'NORMAL' });
      await fast.addItems(users(1));
      exec.mockClear();
      const safe = new SQLiteSession<object>('safe', { path });
      const late = new SQLiteSession<object>('late', { path, synchronous: 'NORMAL' });
      await Promise.all([safe.addItems(users(1)), late.addItems(users(1))]);
      seen.push(...exec.mock.calls.map(([text]) => text));
      await Promise.all([fast.close(), safe.close(), late.close()]);
    } finally {
      exec.mockRestore();
    }
    expect(seen.filter((text) => text.includes('synchronous'))).toEqual(['PRAGMA synchronous = FULL']);
  });

  it('leaves foreign keys alone, as Python does: rows that others tie to a session do not go with it [SESS-182]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(1));
    sql(
      path,
      'CREATE TABLE notes (session_id TEXT REFERENCES agent_sessions (session_id) ON DELETE CASCADE)',
      "INSERT INTO notes VALUES ('s')",
    );
    await session.clearSession();
    expect(sql(path, 'SELECT session_id FROM notes')).toEqual([{ session_id: 's' }]);
    await session.close();
  });
});

describe('layout', () => {
  it('is that of the Python SDK, with one table of ours [SESS-013, 015, 131, 181]', async () => {
    const path = freshPath();
    await using session = new SQLiteSession<object>('s', path);
    expect(await session.getItems()).toEqual([]);
    expect(sql(path, 'SELECT * FROM agent_sessions')).toEqual([]);
    await session.addItems([{ role: 'user', content: 'Grüße 😊', n: [1, 0.5] }]);
    sql(path, "UPDATE agent_sessions SET created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'");
    await session.addItems(users(1));
    const [row] = sql(path, 'SELECT * FROM agent_sessions') as { created_at: string; updated_at: string }[];
    expect(row).toMatchObject({
      session_id: 's',
      created_at: '2020-01-01 00:00:00',
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
    });
    expect(row!.updated_at > '2020-01-02').toBe(true);
    const columns = (table: string) =>
      sql(path, `PRAGMA table_info("${table}")`).map((column) =>
        Object.values(column as object)
          .slice(1)
          .join(' '),
      );
    expect(columns('agent_sessions')).toEqual([
      'session_id TEXT 0  1',
      'created_at TIMESTAMP 0 CURRENT_TIMESTAMP 0',
      'updated_at TIMESTAMP 0 CURRENT_TIMESTAMP 0',
    ]);
    expect(columns('agent_messages')).toEqual([
      'id INTEGER 0  1',
      'session_id TEXT 1  0',
      'message_data TEXT 1  0',
      'created_at TIMESTAMP 0 CURRENT_TIMESTAMP 0',
    ]);
    expect(sql(path, 'SELECT message_data FROM agent_messages')).toMatchObject([
      { message_data: '{"role": "user", "content": "Gr\\u00fc\\u00dfe \\ud83d\\ude0a", "n": [1, 0.5]}' },
      { message_data: '{"role": "user", "content": "1"}' },
    ]);
    expect(sql(path, 'PRAGMA journal_mode')).toMatchObject([{ journal_mode: 'wal' }]);
  });

  it('refuses a file whose tables mean something else, and changes nothing [SESS-193]', async () => {
    const schemas = [
      'CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, body TEXT)',
      'CREATE VIEW agent_sessions AS SELECT 1 AS session_id',
      'CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TEXT, updated_at TEXT, tenant TEXT NOT NULL)',
      // Keys: rows without ids, ids that are used again, sessions that double, operations that are applied twice.
      ...[
        'id TEXT',
        'id TEXT PRIMARY KEY',
        'id INT',
        'id INT PRIMARY KEY',
        'id REAL PRIMARY KEY',
        'id INTEGER PRIMARY KEY',
        'id INTEGER',
      ].map((id) => `CREATE TABLE agent_messages (${id}, session_id TEXT, message_data TEXT, created_at TEXT)`),
      'CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id INT, message_data TEXT, created_at TEXT)',
      'CREATE TABLE agent_sessions (session_id TEXT, created_at TEXT, updated_at TEXT)',
      'CREATE TABLE agent_sessions (session_id TEXT, created_at TEXT, updated_at TEXT, tenant TEXT, PRIMARY KEY (tenant, session_id))',
      'CREATE TABLE agent_session_operations (session_id, operation_id, digest, result, created_at)',
    ];
    for (const schema of schemas) {
      const path = freshPath();
      sql(path, schema);
      const before = readFileSync(path);
      const session = new SQLiteSession<object>('s', path);
      await expect(session.addItems(users(1))).rejects.toBeInstanceOf(SessionSchemaError);
      await expect(session.getItems()).rejects.toMatchObject({ code: 'session_schema' });
      await session.close();
      expect(readFileSync(path)).toEqual(before);
    }
  });

  it('takes tables that somebody else made with the same keys, in other words [SESS-181]', async () => {
    const path = freshPath();
    sql(
      path,
      'create table "agent_sessions" ("session_id" varchar(255) not null, created_at datetime default current_timestamp, updated_at datetime default current_timestamp, note text, primary key ("session_id"))',
      'create table "agent_messages" ("id" integer primary key autoincrement not null, "session_id" text not null, "message_data" text not null, "created_at" text default current_timestamp)',
    );
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(2));
    expect(await session.getItems()).toEqual(users(2));
    await session.close();
  });

  it('passes on what SQLite says of files that it cannot use, and goes on when the cause is gone [SESS-190, 193]', async () => {
    const path = freshPath();
    writeFileSync(path, 'this is a text file, long enough to have the header of a database');
    const session = new SQLiteSession<object>('s', path);
    await expect(session.addItems(users(1))).rejects.toMatchObject({ errcode: 26 });
    expect(await session.ping()).toBe(false);
    expect(readFileSync(path, 'utf8')).toMatch(/^this is a text file/);
    rmSync(path);
    await session.addItems(users(1));
    expect(await session.getItems()).toEqual(users(1));

    const missing = join(folder, 'no such folder', 'x.db');
    await expect(new SQLiteSession('s', missing).getItems()).rejects.toMatchObject({ errcode: 14 });
    expect(existsSync(join(folder, 'no such folder'))).toBe(false);
  });
});

describe('failing writes', () => {
  const fail = (path: string, on: string): unknown =>
    sql(path, `CREATE TRIGGER fails BEFORE ${on} BEGIN SELECT RAISE(ABORT, 'no'); END`);

  it('leave nothing of a batch whose item in the middle fails, and no lock [SESS-006, 185, IL-011]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(1));
    fail(path, "INSERT ON agent_messages WHEN NEW.message_data LIKE '%bad%'");
    await expect(session.addItems([user('a'), user('bad'), user('b')])).rejects.toThrow('no');
    sql(path, "INSERT INTO agent_sessions (session_id) VALUES ('another connection writes at once')");
    await session.addItems([user('2')]);
    expect(await session.getItems()).toEqual(users(2));
  });

  it('leave the history when pop or clear fails, and no lock [SESS-185, IL-010]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(2));
    fail(path, 'DELETE ON agent_messages');
    await expect(session.popItem()).rejects.toThrow('no');
    await expect(session.clearSession()).rejects.toThrow('no');
    sql(path, 'DROP TRIGGER fails');
    expect(await session.getItems()).toEqual(users(2));
    expect(await session.popItem()).toEqual(user('2'));
  });

  it('that cannot be undone either leave no lock: a file is opened anew, a database that was handed in is given up [SESS-185]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', { path });
    await session.addItems(users(1));
    fail(path, "INSERT ON agent_messages WHEN NEW.message_data LIKE '%bad%'");
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      text: string,
    ) {
      if (text === 'ROLLBACK') throw new Error('cannot undo');
      for (const part of text.split(';')) if (part.trim() !== '') this.prepare(part).run();
    });
    try {
      await expect(session.addItems([user('a'), user('bad')])).rejects.toThrow('no');
      sql(path, "INSERT INTO agent_sessions (session_id) VALUES ('another connection writes at once')");
      await session.addItems([user('2')]);
      expect(await session.getItems()).toEqual(users(2));
      await session.close();

      const database = new DatabaseSync(path);
      const given = new SQLiteSession<object>('s', { database });
      await expect(given.addItems([user('a'), user('bad')])).rejects.toThrow('no');
      await expect(given.addItems([user('3')])).rejects.toThrow('can no longer be used');
      await expect(given.getItems()).rejects.toMatchObject({ code: 'session_error' });
      database.close();
    } finally {
      exec.mockRestore();
    }
    expect(await new SQLiteSession('s', path).getItems()).toEqual(users(2));
  });

  it('give up on a lock after the busy timeout, with nothing written [SESS#9, SESS-183]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', { path, busyTimeoutMs: 40 });
    await session.addItems(users(1));
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    const error = await session.addItems([user('2')]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SessionBusyError);
    expect(error).toMatchObject({ code: 'session_busy', sessionId: 's' });
    // Readers are not held up.
    expect(await session.getItems()).toEqual(users(1));
    holder.exec('ROLLBACK');
    holder.close();
    await session.addItems([user('2')]);
    expect(await session.getItems()).toEqual(users(2));
  });

  it.each([
    ['node:sqlite', { errcode: 5 }],
    ['node:sqlite, extended', { errcode: 517 }],
    ['node:sqlite, a table', { errcode: 262 }],
    ['bun:sqlite', { errno: 6 }],
    ['better-sqlite3', { code: 'SQLITE_BUSY' }],
    ['better-sqlite3, extended', { code: 'SQLITE_LOCKED_SHAREDCACHE' }],
  ])('wait for a lock, as %s tells of it [SESS-183, SESS-193]', async (_, members) => {
    const database = new DatabaseSync(':memory:');
    let refusals = 3;
    const session = new SQLiteSession<object>('s', {
      database: {
        exec: (text) => database.exec(text),
        prepare(text) {
          const statement = database.prepare(text);
          const run = (...values: string[]): unknown => {
            if (text === 'BEGIN IMMEDIATE' && refusals-- > 0) throw Object.assign(new Error('locked'), members);
            return statement.run(...values);
          };
          return { run, get: statement.get.bind(statement), all: statement.all.bind(statement) };
        },
      },
    });
    await session.addItems(users(2));
    expect(await session.getItems()).toEqual(users(2));
    expect(refusals).toBeLessThan(0);
    database.close();
  });

  it('keep the order of the calls while they wait for the lock [SESS-009]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.getItems();
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    // The first call has waited for so long that its next try is far away when the lock is free.
    const added = [session.addItems([user('1')])];
    await new Promise((resolve) => setTimeout(resolve, 200));
    added.push(session.addItems([user('2')]), session.addItems([user('3')]));
    holder.exec('ROLLBACK');
    holder.close();
    await Promise.all(added);
    expect(await session.getItems()).toEqual(users(3));
  });

  it('wait for the lock of a file that is still in the making [SESS-182, IL-012]', async () => {
    const path = freshPath();
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN EXCLUSIVE');
    const session = new SQLiteSession<object>('s', path);
    const added = session.addItems(users(1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    holder.exec('COMMIT');
    holder.close();
    await added;
    expect(await session.getItems()).toEqual(users(1));
  });

  it('refuses a bad item with its index and stores nothing of its batch [SESS#11, SESS-008, 135]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    const cyclic: Record<string, unknown> = { role: 'user' };
    cyclic['self'] = cyclic;
    const error = await session.addItems([user('1'), cyclic]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SessionItemError);
    expect(error).toMatchObject({ code: 'session_item_invalid', index: 1, sessionId: 's' });
    expect((error as Error).message).toContain('Item 1 of the batch');
    // Refused before the file was even made.
    expect(existsSync(path)).toBe(false);
    await session.addItems(users(1));
    expect(await session.getItems()).toEqual(users(1));
  });
});

describe('corrupt records', () => {
  it('are skipped with one warning, and do not count against a limit [SESS#13, SESS-003, 010, 153]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(3));
    broken(path, 's', '{"role": "user", "content": "sec');
    broken(path, 's', '[]');
    expect(await session.getItems(2)).toEqual(users(3).slice(1));
    expect(await session.getItems()).toEqual(users(3));
    expect(warn).toHaveBeenCalledTimes(1);
    expect(JSON.stringify(warn.mock.calls)).not.toContain('sec');
    expect(await session.popItem()).toEqual(user('3'));
    expect(sql(path, 'SELECT count(*) AS n FROM agent_messages')).toMatchObject([{ n: 2 }]);
  });

  const change = (transaction: HistoryTransaction<object>) => (session: SQLiteSession<object>) =>
    session.applyHistoryTransaction({ operationId: 'o', transaction });
  it.each<[string, readonly string[], (session: SQLiteSession<object>) => Promise<unknown>]>([
    ['reads', ['1', '2'], (session) => session.readHistory(1)],
    ['appends', ['1', '2', '9'], (session) => session.addItems([user('9')])],
    ['appends with an operation id', ['1', '2', '9'], change({ type: 'append_items', items: [user('9')] })],
    [
      'appends to a version',
      ['1', '2', '9'],
      async (session) => await session.appendIfVersion((await session.readHistory()).version, [user('9')]),
    ],
    [
      'replacements of items around them',
      ['9'],
      change({ type: 'replace_suffix', expectedSuffix: users(2), replacement: [user('9')] }),
    ],
    [
      'replacements of items before them',
      ['1', '9'],
      change({ type: 'replace_suffix', expectedSuffix: users(2).slice(1), replacement: [user('9')] }),
    ],
    [
      'refused replacements',
      ['1', '2'],
      (session) =>
        expect(
          change({ type: 'replace_suffix', expectedSuffix: [user('7')], replacement: [] })(session),
        ).rejects.toMatchObject({ code: 'session_suffix_mismatch' }),
    ],
  ])('are as they were after %s [SESS-153]', async (_, left, work) => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    for (const item of users(2)) {
      await session.addItems([item]);
      broken(path, 's', `[${item.content}]`);
    }
    const corrupt = `SELECT id, message_data FROM agent_messages WHERE message_data LIKE '[%' ORDER BY id`;
    const before = sql(path, corrupt);
    expect(before).toHaveLength(2);
    await work(session);
    expect(sql(path, corrupt)).toEqual(before);
    expect(await session.getItems()).toEqual(left.map(user));
  });

  it('are what is no text, too: it is told as that, and stays [SESS-153]', async () => {
    const path = freshPath();
    const told: unknown[] = [];
    const session = new SQLiteSession<object>('s', { path, onCorruptItem: (info) => void told.push(info.reason) });
    await session.addItems(users(1));
    // Numbers and bytes that would read as an object if they were taken for text.
    const bytes = Buffer.from('{"role":"user"}').toString('hex');
    sql(path, `INSERT INTO agent_messages (session_id, message_data) VALUES ('s', x'${bytes}')`);
    expect(await session.getItems()).toEqual(users(1));
    expect(told).toEqual(['not text']);
    await session.addItems([user('2')]);
    expect(await session.getItems(2)).toEqual(users(2));
    expect(sql(path, "SELECT typeof(message_data) AS type FROM agent_messages WHERE type = 'blob'")).toHaveLength(1);
  });

  it('are told to a callback, or raised [SESS-153, IL-016]', async () => {
    const path = freshPath();
    const seen: unknown[] = [];
    const session = new SQLiteSession<object>('s', { path, onCorruptItem: (info) => void seen.push(info) });
    await session.addItems(users(1));
    broken(path, 's', 'nonsense');
    expect(await session.getItems()).toEqual(users(1));
    expect(seen).toEqual([{ sessionId: 's', position: 2, reason: expect.stringContaining('JSON') }]);
    expect(await session.popItem()).toEqual(user('1'));
    expect(seen).toHaveLength(2);
    expect(warn).not.toHaveBeenCalled();
    broken(path, 's', 'nonsense');
    await expect(new SQLiteSession('s', { path, corruptItems: 'throw' }).getItems()).rejects.toThrow(SessionError);
  });

  it('are told to an async callback too, whose failure does not end the process [SESS-153]', async () => {
    const path = freshPath();
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listen);
    const onCorruptItem = (async () => {
      throw new Error('later');
    }) as () => never;
    const session = new SQLiteSession<object>('s', { path, onCorruptItem });
    await session.addItems(users(1));
    broken(path, 's', 'nonsense');
    expect(await session.getItems()).toEqual(users(1));
    for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', listen);
    expect(unhandled).toEqual([]);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('are told to a callback that fails: what is popped or read is given all the same [SESS-010, 153]', async () => {
    const path = freshPath();
    const onCorruptItem = (): void => {
      throw new Error('callback');
    };
    const session = new SQLiteSession<object>('s', { path, onCorruptItem });
    await session.addItems(users(3));
    broken(path, 's', 'nonsense');
    expect(await session.getItems()).toEqual(users(3));
    expect(await session.popItem()).toEqual(user('3'));
    expect(await session.getItems()).toEqual(users(2));
    expect(warn).toHaveBeenCalledTimes(2);
  });

  it('are text that Python writes for numbers that JSON has no form for [SESS-133]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(1));
    broken(path, 's', '{"role": "user", "score": NaN, "content": "NaN is -Infinity", "bounds": [Infinity, -Infinity]}');
    expect((await session.getItems())[1]).toEqual({
      role: 'user',
      score: null,
      content: 'NaN is -Infinity',
      bounds: [null, null],
    });
  });
});

describe('long histories', () => {
  const fill = (path: string, count: number): unknown =>
    sql(
      path,
      `INSERT INTO agent_messages (session_id, message_data)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      SELECT 's', '{"role": "user", "content": "' || printf('%.420c', 'x') || i || '"}' FROM n`,
    );

  it('are read a page at a time, and others run in between [SESS#49, SESS-160]', { timeout: 60_000 }, async () => {
    const path = freshPath();
    const session = new SQLiteSession<{ content: string }>('s', path);
    await session.getItems();
    fill(path, 100_000);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const { items, version } = await session.readHistory();
    clearInterval(timer);
    expect(version).toBe((await session.readHistory(1)).version);
    expect((await session.readHistory(700)).items).toEqual(items.slice(-700));
    expect(items).toHaveLength(100_000);
    expect(items[0]!.content).toMatch(/x1$/);
    expect(items.at(-1)!.content).toMatch(/x100000$/);
    expect(turns).toBeGreaterThan(3);
  });

  it('let others run while rows are fetched, not only while they are decoded [SESS-160]', async () => {
    const database = new DatabaseSync(freshPath());
    let turns = 0;
    const seen: number[] = [];
    const session = new SQLiteSession<object>('s', {
      database: watchedHandle(database, {
        before() {
          seen.push(turns);
          // As a disk does that is slow.
          for (const until = performance.now() + 4; performance.now() < until;);
        },
      }),
    });
    await session.addItems(users(10_000));
    const timer = setInterval(() => turns++, 1);
    seen.length = 0;
    turns = 0;
    await session.getItems();
    clearInterval(timer);
    expect(seen.length).toBeGreaterThan(15);
    expect(seen.at(-1)).toBeGreaterThan(2);
    database.close();
  });

  it('are of one moment also when they fill a page and are cleared before the next one is asked for [SESS-160]', async () => {
    const path = freshPath();
    const database = new DatabaseSync(path);
    let clear = (): void => undefined;
    const handle = watchedHandle(database, { after: () => clear() });
    const session = new SQLiteSession<object>('s', { database: handle });
    await session.addItems(users(500));
    expect(await session.getItems()).toHaveLength(500);
    clear = () => {
      clear = () => undefined;
      database.exec('DELETE FROM agent_messages');
    };
    expect(await session.getItems()).toEqual([]);
    database.close();
  });

  it('have the version of their items, also when somebody appends between two pages [SESS-037, SESS-160]', async () => {
    const database = new DatabaseSync(freshPath());
    let onPage = (): void => undefined;
    const handle = watchedHandle(database, { after: (found) => (found.length === 500 ? onPage() : undefined) });
    const session = new SQLiteSession<object>('s', { database: handle });
    await session.addItems(users(700));
    onPage = () => {
      onPage = () => undefined;
      database.exec(`INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"role":"user"}')`);
    };
    const { items, version } = await session.readHistory();
    expect(items).toEqual(users(700));
    await expect(session.appendIfVersion(version, users(1))).rejects.toMatchObject({
      code: 'session_version_conflict',
    });
    database.close();
  });

  it(
    'cost a tail read no more rows than it gives, and items of 10 MB fit [SESS#48, SESS-160]',
    { timeout: 60_000 },
    async () => {
      const path = freshPath();
      const database = new DatabaseSync(path);
      let rows = 0;
      const handle = watchedHandle(database, { after: (found) => void (rows += found.length) });
      const session = new SQLiteSession<object>('s', { database: handle });
      const large = user('0123456789'.repeat(1_000_000));
      await session.addItems([large]);
      expect(await session.getItems()).toEqual([large]);
      fill(path, 100_000);
      await session.addItems(users(3));
      rows = 0;
      expect((await session.getItems(20)).slice(-3)).toEqual(users(3));
      expect(rows).toBe(20);
      const plan = database
        .prepare(
          'EXPLAIN QUERY PLAN SELECT id, message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT ?',
        )
        .all('s', 20);
      expect(JSON.stringify(plan)).toContain('idx_agent_messages_session_id');
      database.close();
    },
  );

  it('are of one moment, also when they are cleared while they are read [SESS-002, 160]', async () => {
    const path = freshPath();
    const [reader, writer] = [new SQLiteSession<object>('s', path), new SQLiteSession<object>('s', path)];
    await reader.getItems();
    fill(path, 20_000);
    const read = reader.getItems();
    await new Promise((resolve) => setImmediate(resolve));
    await writer.clearSession();
    await writer.addItems(users(2));
    const items = await read;
    expect([2, 20_000]).toContain(items.length);
    expect(await reader.getItems()).toEqual(users(2));
  });
});

describe('a file that is deleted or replaced while it is open', () => {
  const remove = (path: string): void => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
  };

  it('makes every call fail, and a new session starts with the file that is there [SESS-186, 190]', async () => {
    const path = freshPath();
    const session = new SQLiteSession<object>('s', path);
    await session.addItems(users(2));
    remove(path);
    const gone = { name: 'SessionError', message: expect.stringContaining('deleted or replaced') as string };
    await expect(session.addItems(users(1))).rejects.toMatchObject(gone);
    await expect(session.getItems()).rejects.toMatchObject(gone);
    await expect(session.popItem()).rejects.toMatchObject(gone);
    expect(await session.ping()).toBe(false);
    expect(existsSync(path)).toBe(false);

    const next = new SQLiteSession<object>('s', path);
    await next.addItems([user('new')]);
    // Letting go of the old file takes nothing from the new one.
    await session.close();
    const other = new SQLiteSession<object>('other', path);
    await other.addItems([user('other')]);
    expect(await next.getItems()).toEqual([user('new')]);
    expect(sql(path, 'SELECT count(*) AS n FROM agent_messages')).toMatchObject([{ n: 2 }]);
    await next.close();
    await other.close();
    const again = new SQLiteSession<object>('s', path);
    expect(await again.getItems()).toEqual([user('new')]);
    await again.close();
  });

  it('is not written in place of another that was put there [SESS-186]', async () => {
    const path = freshPath();
    const backup = freshPath();
    for (const [file, content] of [
      [path, 'live'],
      [backup, 'backup'],
    ] as const) {
      const session = new SQLiteSession<object>('s', file);
      await session.addItems([user(content)]);
      await session.close();
    }
    const session = new SQLiteSession<object>('s', path);
    expect(await session.getItems()).toEqual([user('live')]);
    remove(path);
    renameSync(backup, path);
    await expect(session.addItems(users(1))).rejects.toThrow('deleted or replaced');
    const next = new SQLiteSession<object>('s', path);
    await next.addItems(users(1));
    expect(await next.getItems()).toEqual([user('backup'), ...users(1)]);
    await session.close();
    await next.close();
  });
});

describe('life', () => {
  it('ends with close for a file, and not for a database that was handed in [SESS#74, SESS-154, IL-021]', async () => {
    const owned = new SQLiteSession<object>('s', freshPath());
    await owned.addItems(users(1));
    const queued = owned.addItems([user('2')]);
    await Promise.all([owned.close(), owned.close()]);
    await queued;
    expect(owned.closed).toBe(true);
    for (const call of [owned.addItems([]), owned.getItems(0), owned.popItem(), owned.clearSession(), owned.ping()]) {
      await expect(call).rejects.toBeInstanceOf(SessionClosedError);
    }
    await owned.close();

    const database = new DatabaseSync(':memory:');
    const injected = new SQLiteSession<object>('s', { database });
    await injected.addItems(users(1));
    await injected.close();
    await injected.close();
    expect(injected.closed).toBe(false);
    expect(await injected.getItems()).toEqual(users(1));
    // Its settings are the owner's.
    expect(database.prepare('PRAGMA foreign_keys').get()).toEqual({ foreign_keys: 1 });
    database.close();
  });

  it('is over also where the file cannot be let go of; closing again tries it again [SESS-154]', async () => {
    const session = new SQLiteSession<object>('s', freshPath());
    await session.addItems(users(1));
    const close = vi.spyOn(DatabaseSync.prototype, 'close').mockImplementationOnce(() => {
      throw new Error('not yet');
    });
    try {
      const both = await Promise.allSettled([session.close(), session.close()]);
      expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      expect(session.closed).toBe(true);
      await expect(session.getItems()).rejects.toBeInstanceOf(SessionClosedError);
      expect(close).toHaveBeenCalledTimes(1);
      await session.close();
      await session.close();
      expect(close).toHaveBeenCalledTimes(2);
    } finally {
      close.mockRestore();
    }
  });

  it.runIf(process.platform === 'linux')(
    'shares one connection per file, by any path, and lets go of it [SESS-186, IL-014]',
    async () => {
      const path = freshPath();
      const link = join(folder, 'link.db');
      const open = (): number =>
        readdirSync('/proc/self/fd').filter((fd) => {
          try {
            return readlinkSync(`/proc/self/fd/${fd}`) === path;
          } catch {
            return false;
          }
        }).length;
      const first = new SQLiteSession<object>('first', path);
      await first.addItems(users(1));
      symlinkSync(path, link);
      const sessions = Array.from(
        { length: 300 },
        (_, index) => new SQLiteSession<object>(`s${index}`, index % 2 === 0 ? link : path),
      );
      await Promise.all(sessions.map((session) => session.addItems(users(1))));
      expect(open()).toBe(1);
      await Promise.all(sessions.map((session) => session.close()));
      expect(open()).toBe(1);
      await first.close();
      expect(open()).toBe(0);
    },
  );

  it('has the capabilities of a managed session [SESS-039]', () => {
    const session: unknown = new SQLiteSession('s');
    expect(supports(session, 'transactions') && supports(session, 'versions')).toBe(true);
    expect(supports(session, 'itemPolicy')).toBe(false);
  });
});
