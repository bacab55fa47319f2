import { CuttingProxy, startProcess } from '@agents/testkit';
import { MongoServer } from '@agents/mongo-server';
import { SessionOutcomeUnknownError } from '@agents/core/session';
import { MongoClient, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSessionStore } from '../src/index.ts';
import { begunByPython, commandOn, freshName, hooked, mongoUrl, quick, raw, startReplicaSet } from './mongo.ts';
import type { Raw } from './mongo.ts';

const user = (content: string) => ({ role: 'user' as const, content });

let client: MongoClient;
let proxied: MongoClient;
let proxy: CuttingProxy;
let database: string;
let documents: Raw;
let store: MongoDBSessionStore;
beforeAll(async () => {
  client = new MongoClient(mongoUrl());
  proxy = await CuttingProxy.start(Number(new URL(mongoUrl()).port));
  proxied = new MongoClient(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, {
    ...quick,
    retryReads: false,
  });
});
afterAll(async () => {
  await proxied.close();
  await client.close();
  await proxy.close();
});
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
  store = new MongoDBSessionStore({ client, database });
});
afterEach(async () => {
  proxy.disarm();
  await client.db(database).dropDatabase();
});

/** Two sessions of two items each, with metadata, that nobody used for long. */
async function fill(): Promise<void> {
  for (const id of ['x', 'y']) {
    await store.session(id).addItems([user('1'), user('2')]);
    await store.setMetadata(id, { tag: 1 });
  }
  await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
}

const left = async (): Promise<number[]> => [
  await documents.sessions.countDocuments(),
  await documents.messages.countDocuments(),
];

describe('a removal', () => {
  const emptying = commandOn('update', 'agent_sessions');
  const commands: Record<string, (request: Buffer) => boolean> = {
    'what it empties': emptying,
    'the batches that it reads': commandOn('find', 'agent_messages'),
    'its last look': (request) => commandOn('find', 'agent_sessions')(request) && request.includes('_cleared'),
    'the deletion of batches': commandOn('delete', 'agent_messages'),
    'the deletion of sessions': commandOn('delete', 'agent_sessions'),
  };

  it.each(
    Object.keys(commands).flatMap((name) => (['before', 'sent', 'reply'] as const).map((cut) => [name, cut] as const)),
  )(
    'cut at %s, %s, has an unknown outcome, and its sessions are there as they were or gone [SESS-151, 371, 374]',
    async (name, cut) => {
      const isMade = name !== 'what it empties' || cut !== 'before';
      const slow = new MongoDBSessionStore({ client: proxied, database, createIndexes: false });
      for (const remove of [() => slow.prune({ idleForMs: 1000 }), () => slow.delete('x')]) {
        await fill();
        const done = proxy.cutNext(cut, { matching: commands[name]! });
        await expect(remove()).rejects.toMatchObject({ code: 'session_outcome_unknown', operation: 'clear' });
        await done;
        // What is on its way arrives before what is sent later.
        await client.db(database).command({ ping: 1 });
        const seen = async (): Promise<unknown> => {
          const { itemCount, metadata } = (await store.get('x')) ?? {};
          return { itemCount, metadata };
        };
        await expect.poll(seen).toEqual(isMade ? {} : { itemCount: 2, metadata: { tag: 1 } });
        const ids = (await store.list({ withCount: true })).sessions.map(({ itemCount }) => itemCount);
        expect(ids.every((count) => count === 2)).toBe(true);
        // Another run finds what is left of it, and counts what was a session.
        const again = await store.prune({ idleForMs: 1000 });
        expect(again).toEqual({ sessions: ids.length, items: 2 * ids.length });
        expect(await left()).toEqual([0, 0]);
      }
    },
  );

  it('that was made in part has an unknown outcome, and another one ends it [SESS-151, 374]', async () => {
    await fill();
    for (const [at, session_id] of ['x', 'y'].entries())
      await documents.sessions.updateOne({ session_id }, { $set: { created_at: new Date(at) } });
    // What is emptied is as new: here only one may be.
    await documents.sessions.createIndex({ created_at: 1 }, { unique: true });
    await expect(store.prune({ idleForMs: 1000 })).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    expect((await store.list({ withCount: true })).sessions).toMatchObject([{ itemCount: 2 }]);
    await documents.sessions.dropIndex('created_at_1');
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 2 });
    expect(await left()).toEqual([0, 0]);
  });

  it('that the server refuses is refused in the words of the driver, and nothing was done [SESS-151]', async () => {
    const users = { eve: { password: 'read', readOnly: true }, ada: { password: 'all' } };
    const server = await MongoServer.start({ users });
    const ada = new MongoDBSessionStore({ client: new MongoClient(server.url.replace('://', '://ada:all@')) });
    await ada.session('s').addItems([user('1')]);
    const eve = MongoDBSessionStore.open(server.url.replace('://', '://eve:read@'));
    for (const remove of [() => eve.delete('s'), () => eve.prune({ idleForMs: 0, olderThan: new Date(8e15) })]) {
      const error: unknown = await remove().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(MongoServerError);
      expect(error).toMatchObject({ code: 13 });
    }
    expect(await ada.get('s')).toMatchObject({ itemCount: 1 });
    await eve.close();
    await server.stop();
  });

  it('that may not ask which sessions it emptied has an unknown outcome [SESS-151, 374]', async () => {
    const server = await MongoServer.start();
    await using own = new MongoClient(server.url);
    const others = new MongoDBSessionStore({ client: own, database });
    for (const id of ['x', 'y']) await others.session(id).addItems([user('1')]);
    const failing = hooked(own, async (command, collection) => {
      if (command !== 'bulkWrite' || collection !== 'agent_sessions') return;
      await others.session('y').addItems([user('2')]);
      const data = { failCommands: ['find'], errorCode: 13, namespace: `${database}.agent_sessions` };
      await own.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });
    });
    const pruning = new MongoDBSessionStore({ client: failing, database });
    await expect(pruning.prune({ olderThan: new Date(8e15) })).rejects.toBeInstanceOf(SessionOutcomeUnknownError);
    expect((await others.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 'y', itemCount: 2 }]);
    await own.close();
    await server.stop();
  });

  it('on a replica set is made by the second try of the driver; written, and not on enough members, it is unknown [SESS-151, 250]', async () => {
    const server = await startReplicaSet();
    await using other = new MongoClient(server.url, quick);
    const set = new MongoDBSessionStore({ client: other, database });
    const fail = async (data: object): Promise<unknown> =>
      await other.db('admin').command({
        configureFailPoint: 'failCommand',
        mode: { times: 1 },
        data: { failCommands: ['update'], namespace: `${database}.agent_sessions`, ...data },
      });
    await set.session('s').addItems([user('1')]);
    await fail({ errorCode: 10_107, errorLabels: ['RetryableWriteError'] });
    expect(await set.delete('s')).toBe(true);
    await set.session('s').addItems([user('1')]);
    await fail({ writeConcernError: { code: 64, errmsg: 'not on enough members' } });
    await expect(set.delete('s')).rejects.toBeInstanceOf(SessionOutcomeUnknownError);
    expect(await set.get('s')).toBeUndefined();
    await other.close();
    await server.stop();
  });

  it('for which no server is found changed nothing [SESS-250]', async () => {
    await fill();
    const lost = new MongoClient(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, {
      ...quick,
      serverSelectionTimeoutMS: 300,
      retryWrites: false,
      retryReads: false,
    });
    // That may take longer.
    await expect
      .poll(() =>
        lost.connect().then(
          () => 'connected',
          () => 'not yet',
        ),
      )
      .toBe('connected');
    const failing = hooked(lost, async (command) => {
      if (command !== 'bulkWrite') return;
      proxy.refuse(true);
      proxy.cutAll();
      // Until the driver knows.
      await expect
        .poll(() =>
          lost
            .db('admin')
            .command({ ping: 1 })
            .catch((error: unknown) => error),
        )
        .toBeInstanceOf(MongoServerSelectionError);
    });
    const slow = new MongoDBSessionStore({ client: failing, database, createIndexes: false });
    try {
      await expect(slow.delete('x')).rejects.not.toBeInstanceOf(SessionOutcomeUnknownError);
    } finally {
      proxy.refuse(false);
      await lost.close();
    }
    expect(await store.get('x')).toMatchObject({ itemCount: 2 });
  });

  it('of a history of many documents names some of them at a time [SESS-374]', async () => {
    await begunByPython(documents);
    await store.session('s').addItems([user('1')]);
    const message_data = ['{}'];
    await documents.messages.insertMany(
      Array.from({ length: 1200 }, (_, at) => ({
        _id: `b${at}`,
        session_id: 's',
        seq: at + 1,
        generation: 0,
        message_data,
      })),
    );
    const sizes: number[] = [];
    const watching = hooked(client, (command, collection, [steps]) => {
      if (command === 'bulkWrite' && collection === 'agent_messages') sizes.push((steps as unknown[]).length);
    });
    await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
    const pruning = new MongoDBSessionStore({ client: watching, database });
    expect(await pruning.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 1201 });
    expect(sizes).toEqual([500, 500, 201]);
    expect(await left()).toEqual([0, 0]);
  });

  it.each([undefined, 1_000_000])(
    'is counted once, by whoever made it: two at once, with ttlMs %s [SESS-374]',
    async (ttlMs) => {
      const stores = [0, 1].map(() => new MongoDBSessionStore({ client, database, ttlMs, createIndexes: false }));
      await documents.sessions.createIndex({ session_id: 1 }, { unique: true });
      for (let round = 0; round < 2; round++) {
        const ids = Array.from({ length: 60 }, (_, at) => `s${at}`);
        await Promise.all(ids.map((id) => stores[0]!.session(id).addItems([user('1'), user('2')])));
        await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
        const gone = await Promise.all(stores.map((one) => one.prune({ idleForMs: 1000 })));
        expect(gone[0]!.sessions + gone[1]!.sessions).toBe(60);
        expect(gone[0]!.items + gone[1]!.items).toBe(120);
        expect(await left()).toEqual([0, 0]);
      }
    },
  );

  it('counts what it emptied itself, when others had emptied some of it, or use it already [SESS-374]', async () => {
    await fill();
    const others = new MongoDBSessionStore({ client, database });
    await store.session('z').addItems([user('1')]);
    await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
    let first = true;
    const meddling = hooked(client, async (command, collection) => {
      if (command !== 'bulkWrite' || collection !== 'agent_sessions' || !first) return;
      first = false;
      expect(await others.delete('x')).toBe(true);
      await others.session('y').addItems([user('3')]);
    });
    const slow = new MongoDBSessionStore({ client: meddling, database });
    expect(await slow.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 1 });
    expect((await store.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 'y', itemCount: 3 }]);
  });

  it('of a session whose life is over takes its batches along, and is counted for none [SESS-253, 374]', async () => {
    const living = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000, createIndexes: false });
    await living.session('s').addItems([user('1')]);
    await documents.sessions.updateOne({}, { $set: { expires_at: new Date(1) } });
    expect(await living.delete('s')).toBe(false);
    expect(await left()).toEqual([0, 0]);
  });

  it('keeps what is remembered of operations, when somebody goes on meanwhile [SESS-034, 374]', async () => {
    const append = (id: string) =>
      store.session('s').applyHistoryTransaction({
        operationId: id,
        transaction: { type: 'append_items', items: [user(id)] },
      });
    await append('old');
    const meddling = hooked(client, async (command, collection) => {
      if (command !== 'bulkWrite' || collection !== 'agent_messages') return;
      // Nothing of the batches is deleted yet: the operation of before is forgotten all the same with its batch.
      await append('new');
      await store.session('s').popItem();
    });
    expect(await new MongoDBSessionStore({ client: meddling, database }).delete('s')).toBe(true);
    await append('new');
    expect(await store.session('s').getItems()).toEqual([]);
    await append('old');
    expect(await store.session('s').getItems()).toEqual([user('old')]);
  });

  it('by a process that is killed amid it leaves sessions whole or gone, and a second one ends it [SESS-374]', async () => {
    const script = new URL('processes/prune.ts', import.meta.url);
    for (const amid of ['update agent_sessions', 'delete agent_messages', 'delete agent_sessions']) {
      const ids = Array.from({ length: 60 }, (_, at) => `s${at}`);
      await Promise.all(ids.map((id) => store.session(id).addItems([user('1'), user('2')])));
      await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
      const [command = '', collection = ''] = amid.split(' ');
      // Of the first fifty: the request reaches the server, its answer nobody.
      const cut = proxy.cutNext('sent', { matching: commandOn(command, collection) });
      const child = startProcess(script, `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, database);
      await cut;
      child.process.kill('SIGKILL');
      await child.ended.catch(() => undefined);
      await client.db(database).command({ ping: 1 });
      const { sessions } = await store.list({ withCount: true, limit: 200 });
      expect(sessions.every(({ itemCount }) => itemCount === 2)).toBe(true);
      // The others were not looked at yet.
      expect([10, 60]).toContain(sessions.length);
      const rest = sessions.length;
      expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: rest, items: 2 * rest });
      expect(await left()).toEqual([0, 0]);
    }
  });
});
