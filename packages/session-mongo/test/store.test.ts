import { inspect } from 'node:util';

import { MemorySessionStore } from '@agents/core/session';
import { sessionStoreContract } from '@agents/core/testing';
import type { SessionStoreFixture } from '@agents/core/testing';
import { Collection, MongoClient, MongoNetworkError } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { collectionsOf } from '../src/layout.ts';
import { StagedBatches } from '../src/staged.ts';
import { doublesIn, freshName, hooked, hookedOnce, mongoUrl, raw } from './mongo.ts';

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
  for (const url of ['mongodb://user:secret@localhost', 'mongodb+srv://user:secret@db.example.com']) {
    const one: unknown = MongoDBSessionStore.open(url);
    for (const text of [JSON.stringify(one), String(one), inspect(one)]) expect(text).not.toContain('secret');
  }
});

it('lists without a look at the items, and counts them when that is asked for [SESS-372]', async () => {
  const database = freshName();
  const watched = new MongoClient(mongoUrl(), { monitorCommands: true });
  try {
    const store = new MongoDBSessionStore({ client: watched, database });
    for (const id of ['a', 'b']) await store.session(id).addItems([user('x'), user('y')]);
    const asked: unknown[] = [];
    watched.on('commandStarted', ({ commandName, command }) =>
      asked.push((command as Record<string, unknown>)[commandName]),
    );
    expect((await store.list({ order: 'id' })).sessions.map(({ itemCount }) => itemCount)).toEqual([
      undefined,
      undefined,
    ]);
    expect(asked).toEqual(['agent_sessions']);
    expect((await store.list({ withCount: true })).sessions.map(({ itemCount }) => itemCount)).toEqual([2, 2]);
  } finally {
    await client.db(database).dropDatabase();
    await watched.close();
  }
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

describe('a session that was cleared', () => {
  const emptied = async () => {
    const database = freshName();
    const store = new MongoDBSessionStore({ client, database });
    await store.session('s').addItems([user('1'), user('2')]);
    await store.session('s').clearSession();
    return { database, store, ...raw(client, database) };
  };

  it('is listed again as soon as another SDK appends to it [SESS-246, 371]', async () => {
    const { store, sessions, messages } = await emptied();
    expect(await store.list()).toEqual({ sessions: [] });
    // As the Python SDK appends: it knows nothing of the mark.
    const update = { $inc: { _seq: 1 }, $set: { updated_at: new Date() } };
    const generation = (await sessions.findOneAndUpdate({ session_id: 's' }, update))?._generation;
    await messages.insertOne({ session_id: 's', seq: 2, generation, message_data: ['{"a":1}'] } as never);
    expect((await store.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 's', itemCount: 1 }]);
    // And stays so when that clears it: it sets no mark.
    await sessions.updateOne({ session_id: 's' }, { $inc: { _generation: 1 }, $set: { updated_at: new Date() } });
    expect((await store.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 's', itemCount: 0 }]);
  });

  it('has whole numbers that the Python SDK can read, and begins anew with the time of the clear [SESS-015, 242]', async () => {
    const { sessions } = await emptied();
    const found = (await sessions.findOne({ session_id: 's' }, { promoteValues: false })) as unknown as Record<
      string,
      { _bsontype?: string }
    >;
    for (const name of ['_seq', '_cleared', '_generation']) expect(found[name]?._bsontype).toBe('Int32');
    expect(found['created_at']).toEqual(found['updated_at']);
    expect(found).not.toHaveProperty('metadata');
  });

  it('leaves no document behind once prune was there, and is not counted [SESS-374]', async () => {
    const { store, sessions } = await emptied();
    await store.session('used').addItems([user('1')]);
    expect(await store.prune({ idleForMs: 3_600_000 })).toEqual({ sessions: 0, items: 0 });
    expect(await sessions.countDocuments()).toBe(2);
    await sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 1 });
    expect(await sessions.countDocuments()).toBe(0);
  });

  it('is not taken for a new place by a fork while metadata makes it a session again [SESS-373, 375]', async () => {
    const { database } = await emptied();
    const waiting = hookedOnce(client, 'updateOne', 'agent_sessions', () =>
      new MongoDBSessionStore({ client, database }).setMetadata('s', { tag: 1 }),
    );
    await using store = new MongoDBSessionStore({ client: waiting, database });
    await new MongoDBSession('from', { client, database }).addItems([user('1')]);
    await expect(store.fork('from', 's')).rejects.toMatchObject({ code: 'session_error' });
    expect(await raw(client, database).messages.countDocuments({ session_id: 's' })).toBe(0);
    const found = await new MongoDBSessionStore({ client, database }).get('s');
    expect(found).toMatchObject({ itemCount: 0, metadata: { tag: 1 } });
  });

  it('begins anew by its metadata: prune does not take it for idle [SESS-374, 375]', async () => {
    const { store, sessions } = await emptied();
    await sessions.updateMany({}, { $set: { created_at: new Date(0), updated_at: new Date(0) } });
    await store.setMetadata('s', { tag: 1 });
    expect(await store.prune({ idleForMs: 3_600_000 })).toEqual({ sessions: 0, items: 0 });
    expect((await store.get('s'))?.createdAt?.getTime()).toBeGreaterThan(0);
  });

  it('is one again by a history of no items [SESS-246, 376]', async () => {
    const { store } = await emptied();
    await store.session('s').replaceHistory([]);
    expect(await store.get('s')).toMatchObject({ itemCount: 0 });
  });
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

describe('an import', () => {
  async function* exportOf(count: number, size = 1): AsyncGenerator<string> {
    await using store = new MongoDBSessionStore({ client, database: freshName() });
    const session = store.session('s') as MongoDBSession<object>;
    for (let at = 0; at < count; at += 100)
      await session.addItems(
        Array.from({ length: Math.min(100, count - at) }, (_, index) => user(String(at + index).padEnd(size, '.'))),
      );
    yield* store.export('s');
  }

  it('of more than a document can hold is put behind what is there, as one [SESS-376]', async () => {
    const database = freshName();
    await using store = new MongoDBSessionStore({ client, database });
    const session = store.session('s') as MongoDBSession<object>;
    await session.addItems([user('first')]);
    await session.popItem();
    await session.addItems([user('a'), user('b')]);
    expect(await store.import('s', exportOf(180, 100_000), { ifExists: 'append' })).toBe(180);
    const items = (await session.getItems()) as { content: string }[];
    expect(items.map(({ content }) => content.replace(/\.+$/, ''))).toEqual([
      'a',
      'b',
      ...Array.from({ length: 180 }, (_, index) => String(index)),
    ]);
    await session.addItems([user('last')]);
    expect(await session.getItems(1)).toEqual([user('last')]);
    const { messages } = raw(client, database);
    expect(await messages.distinct('generation')).toHaveLength(1);
  });

  it('is in documents of 100 items at most, with numbers that the Python SDK can read [SESS-242, 253]', async () => {
    const database = freshName();
    const { sessions, messages } = raw(client, database);
    await using store = new MongoDBSessionStore({ client, database, ttlMs: 60_000, createIndexes: false });
    const session = store.session('s') as MongoDBSession<object>;
    // The server is to remove nothing.
    await sessions.createIndex({ session_id: 1 }, { unique: true });
    // Generations of more than 32 bits, before and behind what is imported.
    for (let time = 0; time < 3; time++) await session.replaceHistory([user('a')]);
    expect(await store.import('s', exportOf(250), { ifExists: 'append' })).toBe(250);
    const stored = await messages.find().sort({ seq: 1 }).toArray();
    expect(stored.map(({ message_data }) => (message_data as unknown[]).length)).toEqual([1, 100, 100, 50]);
    expect(await doublesIn({ sessions, messages })).toEqual([]);
    await sessions.updateOne({}, { $set: { expires_at: new Date(0) } });
    await session.addItems([user('b')]);
    expect(await session.getItems()).toEqual([user('b')]);
    expect(await doublesIn({ sessions, messages })).toEqual([]);
  });

  it('of an item that no document can hold is refused by its size, and nothing of it stays [SESS-241]', async () => {
    const database = freshName();
    await using store = new MongoDBSessionStore({ client, database });
    const from = new MemorySessionStore();
    await from.session('s').addItems([user('small'), user('x'.repeat(17_000_000))]);
    await expect(store.import('s', from.export('s'))).rejects.toMatchObject({ code: 'session_item_too_large' });
    const { sessions, messages } = raw(client, database);
    expect([await sessions.countDocuments(), await messages.countDocuments()]).toEqual([0, 0]);
  });

  it('whose publication gave no answer has an unknown outcome, and is not taken away again [SESS-151, 376]', async () => {
    const database = freshName();
    const failing = hooked(client, async (command, collection, [document]) => {
      if (command !== 'insertOne' || collection !== 'agent_sessions') return;
      await raw(client, database).sessions.insertOne(document as never);
      throw new MongoNetworkError('lost');
    });
    await using store = new MongoDBSessionStore({ client: failing, database });
    await expect(store.import('s', exportOf(3))).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    expect(await new MongoDBSession('s', { client, database }).getItems()).toHaveLength(3);
  });

  it('that is given up when it counts already is not taken away again [SESS-156, 376]', async () => {
    const database = freshName();
    const others = new MongoDBSessionStore({ client, database });
    await others.session('s').addItems([user('x')]);
    // As when its time is over in this moment.
    const late = hooked(client, async (command, collection) => {
      if (command === 'bulkWrite' && collection === 'agent_messages') await staged.discard();
    });
    const place = { database, sessions: 'agent_sessions', messages: 'agent_messages' };
    const scope = { ...collectionsOf(late, place), sessionId: 's', ttlMs: undefined, timeoutMs: 30_000 };
    const staged = await StagedBatches.begin(scope);
    await staged.append(['{"role":"user","content":"1"}']);
    await staged.publish('replace');
    expect(await others.session('s').getItems()).toEqual([user('1')]);
  });

  it('goes on when its session is removed meanwhile [SESS-374, 376]', async () => {
    const database = freshName();
    const others = new MongoDBSessionStore({ client, database });
    await others.session('s').addItems([user('x')]);
    let removed: boolean | undefined;
    const meddling = hooked(client, async (command, collection) => {
      if (removed !== undefined || command !== 'updateOne' || collection !== 'agent_sessions') return;
      removed = await others.delete('s');
    });
    await using store = new MongoDBSessionStore({ client: meddling, database });
    expect(await store.import('s', exportOf(3), { ifExists: 'append' })).toBe(3);
    expect(removed).toBe(true);
    expect(await others.session('s').getItems()).toEqual(['0', '1', '2'].map(user));
  });

  it('is whole, whatever others do with the session meanwhile, and leaves nothing when it failed [SESS-247, 376]', async () => {
    const database = freshName();
    const other = new MongoDBSession<object>('s', { client, database });
    let changes: (() => Promise<unknown>)[] = [];
    const meddling = hooked(client, async (command, collection) => {
      if (command === 'updateOne' && collection === 'agent_sessions') await changes.shift()?.();
    });
    await using store = new MongoDBSessionStore({ client: meddling, database });
    for (const [ifExists, before] of [
      ['replace', 0],
      ['append', 1],
    ] as const) {
      await other.addItems([user('x')]);
      changes = [() => other.replaceHistory([user('y'), user('z')]), () => other.popItem(), () => other.addItems([])];
      expect(await store.import('s', exportOf(250), { ifExists })).toBe(250);
      expect(await other.getItems()).toHaveLength(250 + before);
      await other.clearSession();
    }
    const { messages } = raw(client, database);
    expect(await messages.countDocuments()).toBe(0);
    // A clear takes away what was staged before a history that came meanwhile.
    await other.addItems([user('x')]);
    changes = [
      async () => {
        for (let time = 0; time < 4; time++) await other.replaceHistory([user(String(time))]);
        await other.clearSession();
        await other.addItems([user('kept')]);
      },
    ];
    await expect(store.import('s', exportOf(3), { ifExists: 'append' })).rejects.toMatchObject({
      code: 'session_busy',
    });
    expect(await other.getItems()).toEqual([user('kept')]);
    expect(await messages.countDocuments()).toBe(1);
  });
});

it('an export of a history that was cleared meanwhile ends in an error, and not as if it were whole [SESS-376]', async () => {
  const database = freshName();
  await using store = new MongoDBSessionStore({ client, database });
  const session = store.session('s') as MongoDBSession<object>;
  for (let batch = 0; batch < 6; batch++)
    await session.addItems(Array.from({ length: 100 }, (_, index) => user(`${batch}.${index}`)));
  const lines: string[] = [];
  const whole = async (): Promise<void> => {
    for await (const line of store.export('s')) if (lines.push(line) === 1) await session.clearSession();
  };
  await expect(whole()).rejects.toMatchObject({ code: 'session_version_conflict' });
  expect(lines.length).toBeLessThan(602);
  await client.db(database).dropDatabase();
});

it('an export of a history that was replaced before its first part was read ends in an error [SESS-376]', async () => {
  const database = freshName();
  await using store = new MongoDBSessionStore({ client, database });
  const session = store.session('s');
  await session.addItems([user('1')]);
  const find: Collection['find'] = Reflect.get(Collection.prototype, 'find');
  let replaced = false;
  vi.spyOn(Collection.prototype, 'find').mockImplementation(function (this: Collection, filter, options) {
    const cursor = find.call(this, filter, options);
    // Its parts are read by ascending numbers, all else by descending ones.
    if (replaced || (options?.sort as { seq?: number } | undefined)?.seq !== 1) return cursor;
    replaced = true;
    const late = async function* (): AsyncGenerator<unknown> {
      await session.replaceHistory([user('2')]);
      yield* cursor;
    };
    return late() as never;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const lines: string[] = [];
  const whole = async (): Promise<void> => {
    for await (const line of store.export('s')) lines.push(line);
  };
  await expect(whole()).rejects.toMatchObject({ code: 'session_version_conflict' });
  expect(replaced).toBe(true);
  expect(lines).toEqual([]);
  await client.db(database).dropDatabase();
});

describe('a fork', () => {
  it('and an export read their source in parts, of one moment [SESS-373, 376]', async () => {
    const database = freshName();
    await using store = new MongoDBSessionStore({ client, database });
    const session = store.session('from') as MongoDBSession<object>;
    await session.replaceHistory(Array.from({ length: 1200 }, (_, index) => user(String(index))));
    const lines = store.export('from')[Symbol.asyncIterator]();
    await lines.next();
    await session.addItems([user('later')]);
    const more: string[] = [];
    for (let line = await lines.next(); line.done !== true; line = await lines.next()) more.push(line.value);
    expect(more).toHaveLength(1201);
    const popping = store.export('from')[Symbol.asyncIterator]();
    await popping.next();
    await session.popItem();
    await session.popItem();
    await expect(
      (async () => {
        while ((await popping.next()).done !== true);
      })(),
    ).rejects.toMatchObject({ code: 'session_version_conflict' });
    await store.fork('from', 'to');
    expect(await store.session('to').getItems()).toEqual(await session.getItems());
  });
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
