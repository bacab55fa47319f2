import { configureLogging } from '@agents/core';
import { CuttingProxy } from '@agents/testkit';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import type { MongoDBConnection, MongoDBSessionOptions } from '../src/index.ts';
import { freshName, mongoUrl } from './mongo.ts';

type Options = MongoDBConnection & MongoDBSessionOptions;

const user = (content: string) => ({ role: 'user' as const, content });
const users = (...contents: string[]) => contents.map(user);

let client: MongoClient;
let proxied: MongoClient;
let proxy: CuttingProxy;
let proxyUrl: string;
let database: string;
beforeAll(async () => {
  configureLogging({ level: 'error' });
  client = new MongoClient(mongoUrl());
  proxy = await CuttingProxy.start(Number(new URL(mongoUrl()).port));
  proxyUrl = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`;
});
afterAll(async () => {
  configureLogging({ level: 'warn' });
  await client.close();
  await proxy.close();
});
beforeEach(() => {
  database = freshName();
  proxied = new MongoClient(proxyUrl);
});
afterEach(async () => {
  vi.useRealTimers();
  proxy.silence(false);
  await proxied.close();
  await client.db(database).dropDatabase();
});

/** By what a session or a store gets to its server; behind a proxy. */
const connections: Record<string, () => MongoDBConnection> = {
  'a client': () => ({ client: proxied }),
  'a url': () => ({ url: proxyUrl }),
};

/** A session, and what closes it. */
const forms: Record<
  string,
  (options: Options) => Promise<{ session: MongoDBSession<object>; owner: AsyncDisposable }>
> = {
  'a session': async (options) => {
    const session = new MongoDBSession<object>('s', options);
    return { session, owner: session };
  },
  'a session of a store': async (options) => {
    const owner = new MongoDBSessionStore(options);
    return { session: owner.session('s'), owner };
  },
  'a fork of a store': async (options) => {
    const owner = new MongoDBSessionStore(options);
    await owner.session('from').addItems([]);
    await owner.setMetadata('from', { a: 1 });
    return { session: await owner.fork('from', 's'), owner };
  },
};
const cells = Object.keys(forms).flatMap((form) => Object.keys(connections).map((by) => [form, by] as const));

describe.each(cells)('%s over %s', (form, by) => {
  const open = async (more: MongoDBSessionOptions) => await forms[form]!({ ...connections[by]!(), database, ...more });

  it('has the options that were given [SESS-015, 153, 156, 249, 253]', async () => {
    const { session, owner } = await open({
      sessionsCollection: 'own_sessions',
      messagesCollection: 'own_messages',
      createIndexes: false,
      ttlMs: 1_000_000,
      sessionSettings: { limit: 2 },
      corruptItems: 'throw',
      operationTimeoutMs: 12_345,
    });
    const [sessions, messages] = ['own_sessions', 'own_messages'].map((name) => client.db(database).collection(name));
    await session.addItems(users('1', '2', '3'));
    expect(await session.getItems()).toEqual(users('2', '3'));
    expect(session.sessionSettings).toEqual({ limit: 2 });
    for (const collection of [sessions!, messages!]) {
      expect(await collection.countDocuments({ session_id: 's', expires_at: { $gt: new Date() } })).toBe(1);
      expect((await collection.indexes()).map(({ name }) => name)).toEqual(['_id_']);
    }
    await messages!.updateOne({ session_id: 's' }, { $set: { message_data: ['{'] } });
    await expect(session.getItems()).rejects.toThrow('not the JSON text of an object');
    expect(await unanswered([() => session.getItems()])).toEqual([expect.stringContaining('within 12345 ms')]);
    await owner[Symbol.asyncDispose]();
  });

  it('has those that are told where none was given [SESS-156, 249]', async () => {
    const { session, owner } = await open({});
    await session.addItems(users('1', '2', '3'));
    const db = client.db(database);
    for (const [name, indexes] of [
      ['agent_sessions', ['_id_', 'session_id_1']],
      ['agent_messages', ['_id_', 'session_id_1_generation_1_seq_1']],
    ] as const) {
      expect((await db.collection(name).indexes()).map((index) => index.name)).toEqual(indexes);
      expect(await db.collection(name).countDocuments({ expires_at: { $exists: true } })).toBe(0);
    }
    await db.collection('agent_messages').insertOne({ session_id: 's', seq: 2 ** 32, generation: 0, message_data: 5 });
    expect(await session.getItems()).toHaveLength(3);
    for (const text of await unanswered([() => session.getItems(), () => session.addItems(users('4'))]))
      expect(text).toContain('within 30000 ms');
    await owner[Symbol.asyncDispose]();
  });

  it('ends with a close of what owns its client, and leaves a client that was given [SESS-154]', async () => {
    const { session, owner } = await open({});
    await session.addItems(users('1'));
    let closed = 0;
    proxied.on('topologyClosed', () => void closed++);
    await session.close();
    const read: unknown = await session.getItems().catch((error: unknown) => (error as Error).name);
    expect(read).toEqual(form === 'a session' && by === 'a url' ? 'SessionClosedError' : users('1'));
    await owner[Symbol.asyncDispose]();
    expect(session.closed).toBe(by === 'a url');
    expect(closed).toBe(0);
  });
});

it.each(
  Object.keys(connections).flatMap((by) =>
    [undefined, 12_345].map((operationTimeoutMs) => [by, operationTimeoutMs] as const),
  ),
)('calls of a store over %s end in the time of its sessions: %s [SESS-156]', async (by, operationTimeoutMs) => {
  await using store = new MongoDBSessionStore({ ...connections[by]!(), database, operationTimeoutMs });
  await store.check();
  const calls = [() => store.list(), () => store.delete('s'), () => store.setMetadata('s', { a: 1 })];
  for (const text of await unanswered(calls)) expect(text).toContain(`within ${operationTimeoutMs ?? 30_000} ms`);
});

it('a client that its owner closed is not connected again [SESS-154]', async () => {
  const session = new MongoDBSession<object>('s', { client: proxied, database });
  await session.addItems(users('1'));
  let opened = 0;
  proxied.on('topologyOpening', () => void opened++);
  await proxied.close();
  await session.getItems().catch(() => undefined);
  expect(opened).toBe(0);
});

it('what a store makes by itself has the life of its sessions [SESS-253]', async () => {
  const store = new MongoDBSessionStore({ client, database, createIndexes: false, ttlMs: 1_000_000 });
  await new MongoDBSession('from', { client, database, createIndexes: false }).addItems(users('1'));
  await store.setMetadata('made', { a: 1 });
  await store.fork('from', 'forked');
  await store.import('imported', store.export('from'));
  const lasting = { session_id: { $ne: 'from' }, expires_at: { $gt: new Date() } };
  const idsIn = async (name: string): Promise<unknown[]> =>
    await client.db(database).collection(name).distinct('session_id', lasting);
  expect(new Set(await idsIn('agent_sessions'))).toEqual(new Set(['forked', 'imported', 'made']));
  expect(new Set(await idsIn('agent_messages'))).toEqual(new Set(['forked', 'imported']));
});

it('settings of one session come before those of its store [SESS-003]', async () => {
  const store = new MongoDBSessionStore({ client, database, sessionSettings: { limit: 2 } });
  await store.session('s').addItems(users('1', '2', '3'));
  expect(await store.session('s', { sessionSettings: { limit: 1 } }).getItems()).toEqual(users('3'));
  expect(await store.session('s').getItems()).toEqual(users('2', '3'));
});

/** What calls say, and their causes, that get no answer: the last of a test, for all connections have ended then. */
async function unanswered(calls: readonly (() => Promise<unknown>)[]): Promise<string[]> {
  proxy.silence(true);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const failed = Promise.all(
    calls.map(async (call) => {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      return `${String(error)} ${String((error as Error).cause)}`;
    }),
  );
  await vi.advanceTimersByTimeAsync(30_001);
  vi.useRealTimers();
  const texts = await failed;
  proxy.silence(false);
  proxy.cutAll();
  return texts;
}
