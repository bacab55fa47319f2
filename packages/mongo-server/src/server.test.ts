import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Double, Int32, Long, MongoClient, MongoServerError, ObjectId } from 'mongodb';
import type { Collection, Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MongoServer } from './index.ts';

let server: MongoServer;
let client: MongoClient;
let names = 0;
/** Documents of any kind; ids are numbers or the driver's. */
type Entry = Document & { _id: number };
beforeAll(async () => {
  server = await MongoServer.start({ replicaSet: 'rs' });
  client = await MongoClient.connect(server.url);
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

/** A collection of its own; documents of any kind of id. */
const fresh = (): Collection<Entry> => client.db('test').collection(`c${++names}`);

const codeOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => (error instanceof MongoServerError ? error.code : error),
  );

describe('documents', () => {
  it('are found, sorted, limited and fetched in batches', async () => {
    const c = fresh();
    await c.insertMany(Array.from({ length: 250 }, (_, n) => ({ n, even: n % 2 === 0 })) as never);
    expect(
      await c
        .find({ even: true })
        .sort({ n: -1 })
        .limit(3)
        .map((d) => d['n'] as number)
        .toArray(),
    ).toEqual([248, 246, 244]);
    expect(await c.find().toArray()).toHaveLength(250);
    expect(await c.countDocuments({ n: { $gte: 200 } })).toBe(50);
    expect((await c.distinct('even')).length).toBe(2);
    expect(
      await c
        .aggregate([
          { $match: { n: { $lt: 4 } } },
          { $group: { _id: '$even', sum: { $sum: '$n' } } },
          { $sort: { sum: 1 } },
        ])
        .toArray(),
    ).toEqual([
      { _id: true, sum: 2 },
      { _id: false, sum: 4 },
    ]);
    expect((await c.deleteMany({ n: { $lt: 100 } })).deletedCount).toBe(100);
  });

  it('keep the types of their numbers through updates of all forms', async () => {
    const c = fresh();
    const id = new ObjectId() as unknown as number;
    await c.insertOne({ _id: id, small: new Int32(1), large: new Long(1), real: new Double(1), list: ['a', 'b'] });
    await c.updateOne(
      { _id: id },
      { $inc: { small: new Int32(2), large: new Int32(2) }, $set: { 'nested.count': new Long(7) } },
    );
    await c.updateOne({ _id: id }, [{ $set: { list: { $slice: ['$list', 1] }, other: { $add: ['$small', 1] } } }]);
    const typed = await c.findOne({ _id: id }, { promoteValues: false });
    expect(typed).toEqual({
      _id: id,
      small: new Int32(3),
      large: Long.fromNumber(3),
      real: new Double(1),
      list: ['a'],
      nested: { count: Long.fromNumber(7) },
      other: new Int32(4),
    });
  });

  it('are made by upserts from the query and $setOnInsert, and changed by one caller at a time', async () => {
    const c = fresh();
    const counts = await Promise.all(
      Array.from({ length: 50 }, () =>
        c.findOneAndUpdate(
          { key: 'a' },
          { $inc: { count: 1 }, $setOnInsert: { made: true } },
          { upsert: true, returnDocument: 'after' },
        ),
      ),
    );
    expect(new Set(counts.map((d) => d?.['count'] as number)).size).toBe(50);
    expect(await c.find({}, { projection: { _id: 0 } }).toArray()).toEqual([{ key: 'a', count: 50, made: true }]);
    expect(await c.findOneAndDelete({ key: 'a' }, { sort: { count: -1 } })).toMatchObject({ count: 50 });
  });

  it('above 16 MB are refused', async () => {
    const c = fresh();
    expect(
      await codeOf(c.updateOne({ key: 1 }, { $set: { text: ['x'.repeat(9e6), 'x'.repeat(9e6)] } }, { upsert: true })),
    ).toBeInstanceOf(Error);
    await c.insertOne({ text: 'x'.repeat(15e6) } as never);
    expect(await c.countDocuments()).toBe(1);
  });
});

describe('indexes', () => {
  it('keep keys apart, are listed, used, and not made twice with other options', async () => {
    const c = fresh();
    expect(await c.createIndex({ key: 1, more: -1 }, { unique: true })).toBe('key_1_more_-1');
    await c.createIndex({ key: 1, more: -1 }, { unique: true });
    await c.insertOne({ key: 'a', more: 1 } as never);
    expect(await codeOf(c.insertOne({ key: 'a', more: 1 } as never))).toBe(11000);
    expect(await codeOf(c.createIndex({ key: 1, more: -1 }))).toBe(86);
    expect((await c.indexes()).map((index) => index.name)).toEqual(['_id_', 'key_1_more_-1']);
    expect((await c.find({ key: 'a' }).explain())['queryPlanner']).toMatchObject({
      winningPlan: { inputStage: { stage: 'IXSCAN' } },
    });
    expect((await c.find({ other: 'a' }).explain())['queryPlanner']).toMatchObject({
      winningPlan: { stage: 'COLLSCAN' },
    });
  });

  it('with a life remove what is older', async () => {
    const c = fresh();
    await c.createIndex({ at: 1 }, { expireAfterSeconds: 0 });
    await c.insertMany([{ at: new Date(0) }, { at: new Date(Date.now() + 1e6) }, { at: 'never' }] as never);
    await expect.poll(() => c.countDocuments(), { timeout: 60_000 }).toBe(2);
  });
});

describe('transactions', () => {
  it('are seen as a whole when they are committed, and leave nothing when they are not', async () => {
    const c = fresh();
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await c.insertOne({ _id: 1 }, { session });
        expect(await c.countDocuments({}, { session })).toBe(1);
        expect(await c.countDocuments({})).toBe(0);
      }),
    );
    expect(await c.countDocuments({})).toBe(1);
    const failed = client.withSession((session) =>
      session.withTransaction(async () => {
        await c.insertOne({ _id: 2 }, { session });
        throw new Error('no');
      }),
    );
    await expect(failed).rejects.toThrow('no');
    expect(await c.countDocuments({})).toBe(1);
  });

  it('that change the same document come one after the other', async () => {
    const c = fresh();
    await c.insertOne({ _id: 1, count: 0 });
    const add = (): Promise<void> =>
      client.withSession((session) =>
        session.withTransaction(async () => {
          const found = await c.findOne({ _id: 1 }, { session });
          await c.updateOne({ _id: 1 }, { $set: { count: Number(found?.['count']) + 1 } }, { session });
        }),
      );
    await Promise.all([add(), add(), add()]);
    expect(await c.findOne({ _id: 1 })).toEqual({ _id: 1, count: 3 });
  });
});

it('gives a retried write the answer that it had', async () => {
  const c = fresh();
  await client.withSession(async (session) => {
    const command = { insert: c.collectionName, documents: [{ _id: 1 }], txnNumber: Long.fromNumber(1000) };
    const send = (): Promise<Document> => client.db('test').command({ ...command }, { session });
    expect(await send()).toMatchObject({ n: 1 });
    const again = await send();
    expect(again).toMatchObject({ n: 1 });
    expect(again).not.toHaveProperty('writeErrors');
  });
  expect(await c.countDocuments()).toBe(1);
});

it('without a replica set has no transactions, and takes a driver all the same', async () => {
  const alone = await MongoServer.start();
  await using other = new MongoClient(alone.url);
  const c = other.db('test').collection('c');
  await c.insertOne({ n: 1 });
  expect(await c.countDocuments()).toBe(1);
  const failed = other.withSession((session) => session.withTransaction(() => c.insertOne({ n: 2 }, { session })));
  await expect(failed).rejects.toThrow('does not support retryable writes');
  await other.close();
  await alone.stop();
});

it('has after a crash what it acknowledged', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mongo-server-'));
  try {
    for (let life = 0; life < 2; life++) {
      const durable = await MongoServer.start({ folder });
      const other = new MongoClient(durable.url);
      const c = other.db('test').collection<{ _id: number }>('c');
      expect(await c.countDocuments()).toBe(life === 0 ? 0 : 2);
      if (life === 0) {
        await c.createIndex({ key: 1 }, { unique: true });
        await c.insertMany([
          { _id: 1, key: 'a' },
          { _id: 2, key: 'b' },
          { _id: 3, key: 'c' },
        ] as never);
        await c.deleteOne({ _id: 3 });
      }
      expect(await codeOf(c.insertOne({ _id: 4, key: 'a' } as never))).toBe(11000);
      await other.close();
      await durable.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('lets in who has the password, and lets readers read', async () => {
  const users = { ada: { password: 'pass,word=é' }, eve: { password: 'p', readOnly: true } };
  const guarded = await MongoServer.start({ users });
  const as = (name: string, password: string): MongoClient =>
    new MongoClient(guarded.url.replace('://', `://${name}:${encodeURIComponent(password)}@`));
  const [ada, eve, nobody, wrong] = [as('ada', 'pass,word=é'), as('eve', 'p'), as('bob', 'p'), as('ada', 'no')];
  await ada.db('test').collection('c').insertOne({ n: 1 });
  expect(await eve.db('test').collection('c').countDocuments()).toBe(1);
  expect(await codeOf(eve.db('test').collection('c').insertOne({ n: 2 }))).toBe(13);
  expect(await codeOf(nobody.db('test').collection('c').findOne())).toBe(18);
  expect(await codeOf(wrong.db('test').collection('c').findOne())).toBe(18);
  const anybody = new MongoClient(guarded.url);
  expect(await codeOf(anybody.db('test').collection('c').findOne())).toBe(13);
  await Promise.all([ada, eve, nobody, wrong, anybody].map((one) => one.close()));
  await guarded.stop();
});

it('fails commands as a test wants it, as often, with labels', async () => {
  const failing = await MongoServer.start();
  const other = new MongoClient(failing.url);
  const fail = (mode: unknown): Promise<unknown> =>
    other.db('admin').command({
      configureFailPoint: 'failCommand',
      mode,
      data: { failCommands: ['insert'], errorCode: 14_031, namespace: 'test.c', errorLabels: ['Some'] },
    });
  await fail({ times: 2 });
  await other.db('test').collection('d').insertOne({});
  await expect(other.db('test').collection('c').insertOne({})).rejects.toMatchObject({
    code: 14_031,
    errorLabels: ['Some'],
  });
  expect(await codeOf(other.db('test').collection('c').insertOne({}))).toBe(14_031);
  await other.db('test').collection('c').insertOne({});
  await fail('alwaysOn');
  for (let time = 0; time < 3; time++)
    expect(await codeOf(other.db('test').collection('c').insertOne({}))).toBe(14_031);
  await fail('off');
  await other.db('test').collection('c').insertOne({});
  const writeConcernError = { code: 64, errmsg: 'not on enough members' };
  const data = { failCommands: ['insert'], writeConcernError };
  await other.db('admin').command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data });
  await expect(other.db('test').collection('w').insertOne({})).rejects.toMatchObject({
    name: 'MongoWriteConcernError',
    code: 64,
  });
  expect(await other.db('test').collection('w').countDocuments()).toBe(1);
  await other.close();
  await failing.stop();
});
