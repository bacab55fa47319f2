import {
  checkTurnsWithPython,
  checkWritingBesidePython,
  pythonForTests,
  pythonItems as items,
} from '@agents/testkit/python';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { freshName, mongoUrl, raw } from './mongo.ts';

const onSession = `
from agents.extensions.memory import MongoDBSession
from pymongo.asynchronous.mongo_client import AsyncMongoClient
clients = {}
async def on_session(place, action, argument):
    url, database, session_id = place
    if url not in clients:
        clients[url] = AsyncMongoClient(url)
    return await act(MongoDBSession(session_id, client=clients[url], database=database), action, argument)
`;

const user = (content: string): object => ({ role: 'user', content });

describe('the Python SDK on the same collections', () => {
  let client: MongoClient;
  let database: string;
  const inPython = pythonForTests(onSession)(() => [mongoUrl(), database, 's']);
  const ours = (): MongoDBSession<object> => new MongoDBSession<object>('s', { client, database });

  beforeAll(() => {
    client = new MongoClient(mongoUrl());
  });
  afterAll(() => client.close());
  beforeEach(() => (database = freshName()));
  afterEach(() => client.db(database).dropDatabase());

  it('reads, pops and clears what we wrote, and the other way round [SESS#41, SESS-242, 352]', async () => {
    const session = ours();
    await expect(checkTurnsWithPython(session, inPython)).resolves.toBeUndefined();
    await session.addItems([user('1')]);
    await session.clearSession();
    await session.addItems([user('2')]);
    expect(await inPython('get')).toEqual([user('2')]);
    await inPython('clear');
    await inPython('add', [user('3')]);
    expect(await session.getItems()).toEqual([user('3')]);
  });

  it('writes the same text for the same items, and shares its indexes [SESS-131, 249, 351]', async () => {
    await inPython('add', items);
    await ours().addItems(items);
    const [theirs, our] = await raw(client, database).messages.find().sort({ seq: 1 }).toArray();
    expect(our?.message_data).toEqual(theirs?.message_data);
    for (const collection of [raw(client, database).sessions, raw(client, database).messages])
      expect(await collection.indexes()).toHaveLength(2);
  });

  it('sees a history that we replaced, and goes on with it, past 32 bits too [SESS-242, 247]', async () => {
    const session = ours();
    await session.addItems(items);
    for (const content of ['a', 'b', 'c', 'd']) await session.replaceHistory([user(content), user('end')]);
    const found = await raw(client, database).sessions.findOne();
    expect(Number(found?._generation)).toBeGreaterThan(2 ** 31);
    expect(await inPython('get')).toEqual([user('d'), user('end')]);
    await inPython('add', [user('theirs')]);
    expect(await inPython('pop')).toEqual(user('theirs'));
    expect(await inPython('pop')).toEqual(user('end'));
    await inPython('add', [user('theirs')]);
    expect(await session.getItems()).toEqual([user('d'), user('theirs')]);
    await session.replaceHistory([]);
    expect(await inPython('get')).toEqual([]);
  });

  it('sees no batch that was emptied, and keeps what we remember of operations [SESS-034, 245]', async () => {
    const session = ours();
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: [user('1')] } } as const;
    await session.applyHistoryTransaction(operation);
    await session.popItem();
    expect(await inPython('get')).toEqual([]);
    expect(await inPython('pop')).toBeNull();
    await session.applyHistoryTransaction(operation);
    expect(await inPython('get')).toEqual([]);
  });

  it('writes beside us without a lost item or a split batch [SESS-352]', async () => {
    await expect(checkWritingBesidePython({ ours: ours() }, inPython)).resolves.toBeUndefined();
  });
});
