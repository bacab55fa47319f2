import { inspect } from 'node:util';

import { configureLogging } from '@agents/core';
import { SessionOutcomeUnknownError } from '@agents/core/session';
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { sql } from 'drizzle-orm/sql/sql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DrizzleSession } from '../src/index.ts';
import type { DrizzleDatabase } from '../src/index.ts';
import { open } from './support/databases.ts';
import { execute } from './support/fixture.ts';
import { PASSWORD, startGuarded } from './support/guarded-server.ts';
import type { Connected, GuardedServer, Guest } from './support/guarded-server.ts';
import { makeTables } from './support/tables.ts';

beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

const user = (content: string) => ({ role: 'user', content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));

/** Every change, and a look. */
const changes: Readonly<Record<string, (session: DrizzleSession<object>, version: string) => Promise<unknown>>> = {
  append: (session) => session.addItems(users(2, 8)),
  operation: (session) =>
    Promise.resolve(
      session.applyHistoryTransaction?.({
        operationId: 'op',
        transaction: { type: 'append_items', items: users(2, 8) },
      }),
    ),
  replace: (session) => session.replaceHistory(users(2, 8)),
  pop: (session) => session.popItem(),
  clear: (session) => session.clearSession(),
  appendIfVersion: (session, version) => session.appendIfVersion(version, users(2, 8)),
};

const WRONG = 'battery-staple';
type Changing = { -readonly [Key in keyof Guest]: Guest[Key] };

interface DriverError extends Error {
  readonly code?: string | undefined;
}

/** What the call rejects with; it tells nothing of items and passwords, and is no error of ours or of drizzle. */
async function failure(work: () => Promise<unknown>): Promise<DriverError> {
  const error: unknown = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(SessionOutcomeUnknownError);
  expect((error as Error).constructor.name).not.toMatch(/Drizzle|Session/);
  const text = `${inspect(error, { depth: 8 })} ${JSON.stringify(error)}`;
  for (const secret of [PASSWORD, WRONG, '"role']) expect(text).not.toContain(secret);
  return error as DriverError;
}

/** Every change fails with one of these codes, more often than there are connections; nothing is written. */
async function refuses(db: DrizzleDatabase, admin: DrizzleDatabase, id: string, code: RegExp): Promise<void> {
  const seen = new DrizzleSession<object>(id, { db: admin });
  await seen.addItems(users(3));
  const before = await seen.readHistory();
  const session = new DrizzleSession<object>(id, { db });
  for (const [name, change] of Object.entries(changes)) {
    const error = await failure(() => change(session, before.version));
    expect(`${name}: ${error.code}`).toMatch(code);
  }
  expect(await seen.readHistory()).toEqual(before);
}

describe.each(['node-postgres', 'postgres.js', 'mysql2'] as const)('%s', (driver) => {
  let server: GuardedServer;
  const pools: Connected[] = [];
  beforeAll(async () => {
    server = await startGuarded(driver);
  }, 60_000);
  afterAll(async () => {
    for (const { close } of pools) await close();
    await server?.stop();
  }, 60_000);
  const connect = async (guest: Partial<Guest>): Promise<Connected & { readonly guest: Changing }> => {
    const full: Changing = { user: 'writer', password: PASSWORD, ...guest };
    const connected = await server.connect(full);
    pools.push(connected);
    return { ...connected, guest: full };
  };
  const isPg = driver !== 'mysql2';
  const expired = isPg ? /CERT_HAS_EXPIRED/ : /HANDSHAKE_SSL_ERROR|CERT_HAS_EXPIRED/;
  const denied = isPg ? /28P01/ : /ER_ACCESS_DENIED_ERROR/;
  const refusals = [
    ['an expired certificate', { verify: true }, expired],
    ['a wrong password', { password: WRONG }, denied],
  ] as const;

  it.each(refusals)('%s: the error of the driver, nothing is written [SESS-151]', async (_, guest, code) => {
    const { db, busy } = await connect(guest);
    const session = new DrizzleSession<object>('closed', { db });
    for (const call of [...Object.values(changes), () => session.getItems()])
      expect((await failure(() => call(session, '0'))).code).toMatch(code);
    expect(busy() ?? 0).toBe(0);
    expect(await session.ping()).toBe(false);
    expect(await new DrizzleSession('closed', { db: server.admin.db }).getItems()).toEqual([]);
  });

  // postgres.js 3.4 may send on a connection that has just been refused, and then knows of the broken connection alone.
  const later = refusals.filter(([, , code]) => driver !== 'postgres.js' || code === expired);
  it.each(later)('%s, when the session was in use: no unknown outcome [SESS-151]', async (name, to, code) => {
    const { db, guest, busy } = await connect({});
    const session = new DrizzleSession<object>(`later, ${name}`, { db });
    await session.addItems(users(1));
    const before = await session.readHistory();
    Object.assign(guest, to);
    await server.endConnections();
    // Until the pool has seen the end of all of them.
    while (!code.test(String((await failure(() => session.getItems())).code)));
    for (const call of Object.values(changes))
      expect((await failure(() => call(session, before.version))).code).toMatch(code);
    expect(busy() ?? 0).toBe(0);
    expect(await new DrizzleSession(session.sessionId, { db: server.admin.db }).readHistory()).toEqual(before);
  });

  it('a user who may only look: reads, and the error of the driver for changes [SESS-151]', async () => {
    const { db, busy } = await connect({ user: 'reader' });
    await refuses(db, server.admin.db, 'looks', isPg ? /42501/ : /ER_TABLEACCESS_DENIED_ERROR/);
    expect(await new DrizzleSession('looks', { db }).getItems()).toHaveLength(3);
    expect(busy() ?? 0).toBe(0);
  });

  it('a read-only database: reads, and the error of the driver for changes [SESS-151]', async () => {
    const { db, busy } = await connect({ readOnly: true });
    if (!isPg) await execute(server.admin, sql`set global read_only = 1`);
    await refuses(db, server.admin.db, 'reads', isPg ? /25006/ : /ER_OPTION_PREVENTS_STATEMENT/);
    if (!isPg) await execute(server.admin, sql`set global read_only = 0`);
    expect(await new DrizzleSession('reads', { db }).getItems()).toHaveLength(3);
    expect(busy() ?? 0).toBe(0);
  });

  // The last one: it stays full.
  it('a full disk, met in the midst of a change: all of it is undone [SESS-151]', async () => {
    const seen = new DrizzleSession<object>('full', { db: server.admin.db });
    await seen.addItems(users(3));
    const before = await seen.readHistory();
    await server.fillDisk();
    const { db, busy } = await connect({});
    const session = new DrizzleSession<object>('full', { db });
    const batch = [user('1'), user('x'.repeat(2_000_000))];
    const under = { operationId: 'op' };
    for (const call of [
      () => session.applyHistoryTransaction?.({ ...under, transaction: { type: 'append_items', items: batch } }),
      () => session.replaceHistory(batch, under),
      () => session.appendIfVersion(before.version, batch, under),
    ]) {
      const error = await failure(async () => await call());
      expect(error.code).toBe(isPg ? '53100' : 'ER_RECORD_FILE_FULL');
      expect(error.message).toMatch(isPg ? /No space left on device/ : /is full/);
    }
    expect(busy() ?? 0).toBe(0);
    expect(await session.readHistory()).toEqual(before);
  });
});

describe('embedded', () => {
  it('a read-only file of SQLite: reads, and the error of the driver for changes [SESS-151]', async () => {
    const opened = await open('better-sqlite3');
    await makeTables(opened);
    const client = new Database(opened.url, { readonly: true });
    await refuses(drizzle({ client }), opened.db, 'reads', /SQLITE_READONLY/);
    expect(client.inTransaction).toBe(false);
    client.close();
    await opened.close();
  });

  it('a full disk under SQLite: all of a change is undone [SESS-151]', async () => {
    const opened = await open('better-sqlite3');
    await makeTables(opened);
    const client = new Database(opened.url);
    client.pragma(`max_page_count = ${Number(client.pragma('page_count', { simple: true })) + 4}`);
    const session = new DrizzleSession<object>('full', { db: drizzle({ client }) });
    await session.addItems(users(3));
    const before = await session.readHistory();
    const batch = [user('1'), user('x'.repeat(300_000))];
    for (const call of [
      () => session.addItems(batch),
      () => session.replaceHistory(batch, { operationId: 'op' }),
      () => session.appendIfVersion(before.version, batch, { operationId: 'op' }),
    ])
      expect((await failure(call)).code).toBe('SQLITE_FULL');
    expect(client.inTransaction).toBe(false);
    expect(await session.readHistory()).toEqual(before);
    expect(await session.popItem()).toEqual(user('3'));
    client.close();
    await opened.close();
  });

  it.each(['PGlite', 'better-sqlite3', 'libsql'] as const)(
    'read-only by a setting: reads, and the error of the driver for changes, %s [SESS-151]',
    async (driver) => {
      const opened = await open(driver);
      await makeTables(opened);
      const session = new DrizzleSession<object>('s', { db: opened.db });
      await session.addItems(users(3));
      const isPg = opened.dialect === 'pg';
      await execute(opened, isPg ? sql`set default_transaction_read_only = on` : sql`pragma query_only = on`);
      const before = await session.readHistory();
      for (const change of Object.values(changes))
        expect((await failure(() => change(session, before.version))).code).toBe(isPg ? '25006' : 'SQLITE_READONLY');
      expect(await session.readHistory()).toEqual(before);
      await opened.close();
    },
  );
});
