import { sessionStoreContract } from '@agents/core/testing';
import type { SessionStoreFixture } from '@agents/core/testing';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { freshName, hooked, mongoUrl, raw } from './mongo.ts';

let client: MongoClient;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};
const user = (content: string) => ({ role: 'user' as const, content });

function make(connection: () => ConstructorParameters<typeof MongoDBSessionStore>[0]): SessionStoreFixture {
  const database = freshName();
  return {
    open: () => new MongoDBSessionStore({ ...connection(), database }),
    async age(sessionId, ms) {
      const { sessions } = raw(client, database);
      const found = await sessions.findOne({ session_id: sessionId });
      const earlier = (date?: Date): Date => new Date((date?.getTime() ?? 0) - ms);
      const times = { created_at: earlier(found?.created_at), updated_at: earlier(found?.updated_at) };
      await sessions.updateOne({ session_id: sessionId }, { $set: times });
    },
    async dispose() {
      await client.db(database).dropDatabase();
    },
  };
}

describe.each([
  ['a client that was handed in', () => ({ client })],
  ['a client of its own', () => ({ url: mongoUrl() })],
] as const)('contract of stores, over %s', (_name, connection) => {
  it.each(sessionStoreContract(() => make(connection)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

it('is opened by an address, and keeps what the address says to itself [SESS-391]', async () => {
  await using store = MongoDBSessionStore.open(mongoUrl());
  expect(await store.list({ prefix: freshName() })).toEqual({ sessions: [] });
  for (const url of ['redis://user:secret@h', '', 'mongodb:', 5 as never])
    expect(() => MongoDBSessionStore.open(url)).toThrow(/^(?!.*secret).*mongodb: or mongodb\+srv:/);
});

it('lists sessions that the Python SDK made, those without an update too [SESS-371]', async () => {
  const database = freshName();
  const { sessions, messages } = raw(client, database);
  await sessions.insertMany([
    { session_id: 'old' },
    { session_id: 'new', created_at: new Date(1000), updated_at: new Date(2000), _seq: 2, _generation: 0 },
  ]);
  await messages.insertOne({ session_id: 'new', seq: 1, generation: 0, message_data: ['{"a":1}', '{"a":2}'] } as never);
  await using store = new MongoDBSessionStore({ client, database });
  const { sessions: listed, cursor } = await store.list({ limit: 1, withCount: true });
  expect(listed).toEqual([{ sessionId: 'new', createdAt: new Date(1000), updatedAt: new Date(2000), itemCount: 2 }]);
  expect(await store.list({ limit: 1, withCount: true, cursor: cursor! })).toEqual({
    sessions: [{ sessionId: 'old', itemCount: 0 }],
  });
  expect(await store.delete('new')).toBe(true);
  expect(await messages.countDocuments()).toBe(0);
});

it('deletes nothing of a session that is used meanwhile [SESS-374]', async () => {
  const database = freshName();
  await using store = new MongoDBSessionStore({ client, database });
  const session = store.session('s');
  await session.addItems([user('1')]);
  const { sessions } = raw(client, database);
  await sessions.updateOne({ session_id: 's' }, { $set: { updated_at: new Date(0) } });
  // As prune does it: listed as idle, then used, then removed if it still is.
  await session.addItems([user('2')]);
  expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 0, items: 0 });
  expect(await new MongoDBSession('s', { client, database }).getItems()).toEqual([user('1'), user('2')]);
});

it('says which indexes are missing', async () => {
  const database = freshName();
  await using store = new MongoDBSessionStore({ client, database, createIndexes: false });
  await store.session('s').addItems([user('1')]);
  expect(await store.check()).toEqual([
    expect.stringContaining('agent_sessions has no unique index on session_id'),
    expect.stringContaining('agent_messages has no index on session_id, generation, seq'),
  ]);
  await new MongoDBSession('s', { client, database }).addItems([user('2')]);
  expect(await store.check()).toEqual([]);
});

it('does not take what it may not see for something that is missing', async () => {
  const failing = hooked(client, (command) => {
    if (command === 'indexes') throw new Error('not allowed');
  });
  await using store = new MongoDBSessionStore({ client: failing, database: freshName() });
  await expect(store.check()).rejects.toThrow('not allowed');
});

it('tells how long a session with a life lives, and does not list it afterwards', async () => {
  const database = freshName();
  await using store = new MongoDBSessionStore({ client, database, ttlMs: 60_000 });
  await store.session('s').addItems([user('1')]);
  const info = await store.get('s');
  expect(info?.expiresAt?.getTime()).toBeGreaterThan(Date.now());
  await raw(client, database).sessions.updateOne(
    { session_id: 's' },
    { $set: { expires_at: new Date(Date.now() - 1000) } },
  );
  expect(await store.get('s')).toBeUndefined();
  expect(await store.list()).toEqual({ sessions: [] });
});
