// Each change is one transaction of the file: watched statement by statement, and cut off at each of them.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import type { AgentInputItem } from '@agents/core';
import { MemorySessionStore } from '@agents/core/session';
import { afterAll, describe, expect, it } from 'vitest';

import { SQLiteSession, SQLiteSessionStore } from '../src/index.ts';
import type { SQLiteSessionOptions } from '../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-sqlite-transactions-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const user = (content: string): AgentInputItem => ({ role: 'user', content });
const start = ['1', '2', '3'].map(user);
const batch = ['a', 'b'].map(user);

/** A database whose statements are told when they have run. */
function watched(path: string, ran: (sql: string) => void): NonNullable<SQLiteSessionOptions['database']> {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  const told =
    <R>(sql: string, call: (...values: string[]) => R) =>
    (...values: string[]): R => {
      const result = call(...values);
      ran(sql);
      return result;
    };
  return {
    exec: (sql) => told(sql, () => database.exec(sql))(),
    prepare(sql) {
      const prepared = database.prepare(sql);
      return {
        run: told(sql, (...values) => prepared.run(...values)),
        get: told(sql, (...values) => prepared.get(...values)),
        all: told(sql, (...values) => prepared.all(...values)),
      };
    },
  };
}

interface Place {
  readonly session: SQLiteSession;
  readonly store: SQLiteSessionStore;
  readonly version: string;
}
const transaction = (place: Place, id: string, expected: AgentInputItem[] | undefined): Promise<void> =>
  place.session.applyHistoryTransaction({
    operationId: id,
    transaction:
      expected === undefined
        ? { type: 'append_items', items: batch }
        : { type: 'replace_suffix', expectedSuffix: expected, replacement: batch },
  });
async function* lines(items: readonly object[]): AsyncGenerator<string> {
  const source = new MemorySessionStore();
  await source.session('x').addItems(items as AgentInputItem[]);
  yield* source.export('x');
}

const changes: Record<string, [work: (place: Place) => Promise<unknown>, after: readonly AgentInputItem[]]> = {
  append: [(place) => place.session.addItems(batch), [...start, ...batch]],
  'append with an operation id': [(place) => transaction(place, 'op', undefined), [...start, ...batch]],
  appendIfVersion: [
    ({ session, version }) => session.appendIfVersion(version, batch, { operationId: 'op' }),
    [...start, ...batch],
  ],
  replace: [({ session }) => session.replaceHistory(batch, { operationId: 'op' }), batch],
  'replace of an end': [(place) => transaction(place, 'op', start.slice(1)), [...start.slice(0, 1), ...batch]],
  pop: [({ session }) => session.popItem(), start.slice(0, -1)],
  clear: [({ session }) => session.clearSession(), []],
  delete: [({ store }) => store.delete('s'), []],
  metadata: [({ store }) => store.setMetadata('s', { more: 2 }), start],
  'import in place': [({ store }) => store.import('s', lines(batch), { ifExists: 'replace' }), batch],
  'import behind': [({ store }) => store.import('s', lines(batch), { ifExists: 'append' }), [...start, ...batch]],
};

async function open(path: string, ran: (sql: string) => void): Promise<Place> {
  const database = watched(path, ran);
  const session = new SQLiteSession('s', { database });
  const store = new SQLiteSessionStore({ database });
  await session.addItems(start);
  await store.setMetadata('s', { tag: 1 });
  const { version } = await session.readHistory(0);
  return { session, store, version };
}

describe.each([false, true])('with tables of branches: %s', (withBranches) => {
  const freshPath = async (): Promise<string> => {
    const path = join(folder, `${++files}.db`);
    await using other = new SQLiteSession('other', { path, synchronous: 'NORMAL' });
    await other.addItems([user('other')]);
    if (withBranches) await other.branch('b', { fromTurn: 1 }).addItems([user('on a branch')]);
    return path;
  };

  it.each(Object.entries(changes))(
    '%s is one transaction, with all that it looks at [SESS-183, SESS-184]',
    async (_, [work, after]) => {
      const statements: string[] = [];
      const place = await open(await freshPath(), (sql) => statements.push(sql.trim()));
      statements.length = 0;
      await work(place);
      // What is staged stands in a temporary table, which no other connection sees.
      const ofFile = statements.filter((sql) => !sql.includes('agent_session_stages'));
      const [begin, end] = [ofFile.indexOf('BEGIN IMMEDIATE'), ofFile.indexOf('COMMIT')];
      const isData = (sql: string): boolean => /agent_|message_structure|turn_usage|branch_|session_clear/.test(sql);
      // Before it only an import looks whether the session is there, to say so early; afterwards a pop looks at nothing.
      expect(ofFile.slice(0, begin).filter((sql) => isData(sql) && !sql.startsWith('SELECT'))).toEqual([]);
      expect(ofFile.slice(begin + 1, end).filter(isData).length).toBeGreaterThan(1);
      expect(ofFile.slice(begin + 1, end).filter((sql) => /BEGIN|COMMIT|SAVEPOINT/.test(sql))).toEqual([]);
      expect(ofFile.slice(end + 1).filter(isData)).toEqual([]);
      expect(await place.session.getItems()).toEqual(after);
    },
  );

  it.each(Object.entries(changes))(
    '%s is whole or not there, wherever the process ends [SESS-189, SESS-006]',
    async (name, [work, after]) => {
      const path = await freshPath();
      const copies: string[] = [];
      let isWatched = false;
      const place = await open(path, () => {
        if (!isWatched) return;
        // What the system has of the file is what a killed process leaves.
        const copy = join(folder, `${++files}.db`);
        for (const end of ['', '-wal']) if (existsSync(path + end)) copyFileSync(path + end, copy + end);
        copies.push(copy);
      });
      isWatched = true;
      await work(place);
      isWatched = false;
      expect(copies.length).toBeGreaterThan(2);
      let wasAfter = false;
      for (const copy of copies) {
        await using session = new SQLiteSession('s', { path: copy, synchronous: 'NORMAL' });
        const isAfter: boolean = wasAfter || JSON.stringify(await session.getItems()) === JSON.stringify(after);
        expect(await session.getItems()).toEqual(isAfter ? after : start);
        wasAfter = isAfter;
        if (!isAfter) continue;
        // With all that belongs to it: a repetition by its id changes nothing.
        const isKnown = /operation|appendIfVersion|replace/.test(name);
        if (isKnown) await work({ ...place, session, store: place.store });
        expect(await session.getItems()).toEqual(after);
      }
      expect(wasAfter).toBe(true);
    },
  );
});

describe('what SQLite refuses', () => {
  const large = user('x'.repeat(200_000));

  it.each(
    Object.entries({
      append: ({ session }: Place) => session.addItems([user('small'), large]),
      'append with an operation id': ({ session }: Place) =>
        session.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: [large] } }),
      appendIfVersion: ({ session, version }: Place) => session.appendIfVersion(version, [user('small'), large]),
      replace: ({ session }: Place) => session.replaceHistory([user('small'), large]),
      import: ({ store }: Place) => store.import('s', lines([user('small'), large]), { ifExists: 'append' }),
      'import of a new session': ({ store }: Place) => store.import('new', lines([large])),
    }),
  )('for want of space is its own error, with nothing stored: %s [SESS-190, SESS-193]', async (_, work) => {
    const path = join(folder, `${++files}.db`);
    const database = new DatabaseSync(path);
    const session = new SQLiteSession('s', { database });
    const store = new SQLiteSessionStore({ database });
    await session.addItems(start);
    const { version } = await session.readHistory(0);
    const limit = database.prepare('PRAGMA page_count').get() as { page_count: number };
    database.exec(`PRAGMA max_page_count = ${limit.page_count + 10}`);
    await expect(work({ session, store, version })).rejects.toMatchObject({ errcode: 13 });
    expect(await session.readHistory()).toEqual({ items: start, version });
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(['s']);
    // No lock is left, and what fits is stored.
    await using other = new SQLiteSession('other', { path, busyTimeoutMs: 0 });
    await other.addItems([user('fits')]);
    database.exec('PRAGMA max_page_count = 100000');
    await work({ session, store, version: (await session.readHistory(0)).version });
    database.close();
  });

  it('in a database that is read only is its own error, and reads go on [SESS-190, SESS-193]', async () => {
    const path = join(folder, `${++files}.db`);
    const first = new SQLiteSession('s', path);
    await first.addItems(start);
    await first.close();
    const database = new DatabaseSync(path, { readOnly: true });
    const session = new SQLiteSession('s', { database });
    const store = new SQLiteSessionStore({ database });
    for (const change of [
      () => session.addItems(batch),
      () => session.popItem(),
      () => session.clearSession(),
      () => session.replaceHistory(batch),
      () => store.setMetadata('s', { tag: 1 }),
      () => store.delete('s'),
      () => store.fork('s', 't'),
    ])
      await expect(change()).rejects.toMatchObject({ errcode: 8 });
    expect(await session.getItems()).toEqual(start);
    database.close();
  });

  it('is nothing of 10 MB: such items, and copies of them, go in and out [SESS-160]', async () => {
    await using store = new SQLiteSessionStore({ path: join(folder, `${++files}.db`), synchronous: 'NORMAL' });
    const huge = user('x'.repeat(10_000_000));
    await store.session('s').addItems([huge, user('small')]);
    expect((await store.session('s').getItems(2))[0]).toEqual(huge);
    await store.fork('s', 'copy');
    expect(await store.import('again', store.export('copy'))).toBe(2);
    expect((await store.session('again').getItems())[0]).toEqual(huge);
  });
});
