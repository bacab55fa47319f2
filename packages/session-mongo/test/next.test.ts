import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { freshName, hooked, hookedOnce, mongoUrl, raw } from './mongo.ts';
import type { Raw } from './mongo.ts';

/*
 * What is left of a session that was cleared or removed, or comes late, and the next one of the same id.
 */

const user = (content: string) => ({ role: 'user' as const, content });

let client: MongoClient;
let database: string;
let documents: Raw;
let store: MongoDBSessionStore;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
  store = new MongoDBSessionStore({ client, database });
});
afterEach(() => client.db(database).dropDatabase());

const contents = async (): Promise<unknown[]> =>
  (await store.session('s').getItems()).map((item) => 'content' in item && item.content);
const append = async (content: string): Promise<void> =>
  await store.session('s').applyHistoryTransaction({
    operationId: 'turn-1',
    transaction: { type: 'append_items', items: [user(content)] },
  });

type Ending = (store: MongoDBSessionStore) => Promise<unknown>;
const endings: [string, Ending][] = [
  ['cleared', (over) => over.session('s').clearSession()],
  ['deleted', (over) => over.delete('s')],
  [
    'pruned',
    async (over) => {
      await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
      await over.prune({ idleForMs: 1000 });
    },
  ],
];

describe.each(endings)('the session after one that was %s', (_name, end) => {
  it('fits no version of that one [SESS-037, 246, 252]', async () => {
    await store.session('s').addItems([user('old')]);
    const { version } = await store.session('s').readHistory();
    await end(store);
    await store.session('s').addItems([user('new')]);
    const session = store.session('s');
    for (const write of [
      () => session.appendIfVersion(version, [user('to the old one')]),
      () => session.replaceHistory([user('of the old one')], { ifVersion: version }),
    ])
      await expect(write()).rejects.toMatchObject({ code: 'session_version_conflict' });
    expect(await contents()).toEqual(['new']);
  });

  it('remembers none of its operations, whatever was left of their batches [SESS-034, 246]', async () => {
    const cut = hooked(client, (command, collection) => {
      if (command === 'bulkWrite' && collection === 'agent_messages') throw new Error('cut');
    });
    for (const content of ['the same', 'another']) {
      await append('the same');
      await end(new MongoDBSessionStore({ client: cut, database })).catch(() => undefined);
      expect([await contents(), await store.get('s')]).toEqual([[], undefined]);
      expect(await documents.messages.countDocuments()).toBeGreaterThan(0);
      await append(content);
      await append(content);
      expect(await contents()).toEqual([content]);
      await store.delete('s');
    }
  });

  it('shows no batch that was reserved before its end, nor does the one after its clear [SESS-246]', async () => {
    await store.session('s').addItems([user('1')]);
    const slow = hookedOnce(client, 'insertOne', 'agent_messages', async () => {
      await end(store);
      await store.session('s').addItems([user('next')]);
    });
    await new MongoDBSession('s', { client: slow, database }).addItems([user('late')]);
    expect(await contents()).toEqual(['next']);
    for (let clear = 0; clear < 3; clear++) await store.session('s').clearSession();
    expect(await contents()).toEqual([]);
    await store.session('s').addItems([user('after')]);
    expect(await contents()).toEqual(['after']);
  });
});

describe('a session without a document', () => {
  const orphan = { _id: 'x', session_id: 's', seq: 0, message_data: ['{"role":"user","content":"there"}'] };

  it.each<[string, (session: MongoDBSession) => Promise<unknown>]>([
    ['an append', (session) => session.addItems([user('2')])],
    [
      'an append by version',
      async (session) => session.appendIfVersion((await session.readHistory()).version, [user('2')]),
    ],
  ])('keeps the batches that count all the same at %s [SESS-241, 243]', async (_name, write) => {
    await documents.messages.insertOne({ ...orphan, seq: -1 });
    await write(store.session('s'));
    expect(await contents()).toEqual(['there', '2']);
  });

  it('keeps them when metadata, or an operation without items, makes one [SESS-034, 241]', async () => {
    await documents.messages.insertOne(orphan);
    await store.session('s').applyHistoryTransaction({
      operationId: 'nothing',
      transaction: { type: 'append_items', items: [] },
    });
    expect(await store.get('s')).toMatchObject({ itemCount: 1 });
    await store.delete('s');
    await documents.messages.insertOne(orphan);
    await store.setMetadata('s', { tag: 1 });
    expect([await contents(), await store.get('s')]).toMatchObject([['there'], { itemCount: 1 }]);
  });
});

describe('a life that is over', () => {
  // Without the index the server removes nothing.
  const living = () => new MongoDBSession('s', { client, database, ttlMs: 1_000_000, createIndexes: false });
  const expire = () =>
    documents.sessions.updateMany({ session_id: 's' }, { $set: { expires_at: new Date(Date.now() - 1) } });

  it('takes what is remembered of its operations along [SESS-034, 253]', async () => {
    const operation = { operationId: 'turn-1', transaction: { type: 'append_items', items: [user('1')] } } as const;
    const again: (() => Promise<unknown>)[] = [
      () => living().applyHistoryTransaction(operation),
      async () => {
        const { version } = await living().readHistory();
        return await living().appendIfVersion(version, [user('1')], { operationId: 'turn-1' });
      },
    ];
    // Makes the index of ids.
    await store.session('other').addItems([user('1')]);
    for (const write of again) {
      await living().applyHistoryTransaction(operation);
      await expire();
      expect(await contents()).toEqual([]);
      await write();
      await write();
      expect(await contents()).toEqual(['1']);
      await store.delete('s');
    }
  });

  it('takes the memory of an operation without items along, too [SESS-034, 253]', async () => {
    const transaction = { type: 'append_items', items: [] } as const;
    await living().applyHistoryTransaction({ operationId: 'nothing', transaction });
    const [session, memory] = [await documents.sessions.findOne(), await documents.messages.findOne()];
    expect(memory).toMatchObject({ generation: -1, expires_at: session?._kept_until });
    expect(session?._kept_until).toBeInstanceOf(Date);
  });

  it('does not come back with batches of the first generation that the server has not removed yet [SESS-253]', async () => {
    const message_data = ['{"role":"user","content":"over"}'];
    const expires_at = new Date(Date.now() + 1_000_000);
    await documents.messages.insertOne({ _id: 'x', session_id: 's', seq: -1, generation: 0, message_data, expires_at });
    await store.session('s').addItems([user('1')]);
    expect(await contents()).toEqual(['1']);
  });
});

describe('a delete', () => {
  it('takes along the history that comes into the place of the one it found [SESS-374]', async () => {
    await store.session('s').addItems([user('1'), user('2')]);
    const beside = hookedOnce(client, 'bulkWrite', 'agent_sessions', () =>
      store.session('s').replaceHistory([user('summary')]),
    );
    expect(await new MongoDBSessionStore({ client: beside, database }).delete('s')).toBe(true);
    expect([await contents(), await store.get('s')]).toEqual([[], undefined]);
  });

  it('leaves a session alone that began after somebody else had cleared the one it found [SESS-374]', async () => {
    await store.session('s').addItems([user('1')]);
    const beside = hookedOnce(client, 'bulkWrite', 'agent_sessions', async () => {
      await store.session('s').clearSession();
      await store.session('s').addItems([user('next')]);
    });
    expect(await new MongoDBSessionStore({ client: beside, database }).delete('s')).toBe(false);
    expect(await contents()).toEqual(['next']);
  });
});
