import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { isCleared } from '../src/layout.ts';
import { freshName, hooked, mongoUrl, raw } from './mongo.ts';
import type { Raw } from './mongo.ts';

let client: MongoClient;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());

let database: string;
let documents: Raw;
let store: MongoDBSessionStore;
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
  store = new MongoDBSessionStore({ client, database });
});

const user = (content: string) => ({ role: 'user' as const, content });
const session = (ttlMs?: number): MongoDBSession<object> =>
  new MongoDBSession<object>('s', { client, database, ...(ttlMs !== undefined && { ttlMs, createIndexes: false }) });
const append = (text: string) =>
  session().applyHistoryTransaction({
    operationId: text,
    transaction: { type: 'append_items', items: [user(text)] },
  });
/** A store that does something before its first command of a kind. */
const interrupted = (step: string, meanwhile: () => Promise<unknown>, ttlMs?: number): MongoDBSessionStore => {
  let done = false;
  const over = hooked(client, async (command, collection) => {
    if (done || `${command} ${collection}` !== step) return;
    done = true;
    await meanwhile();
  });
  return new MongoDBSessionStore({ client: over, database, createIndexes: false, ttlMs });
};
async function* nothing(): AsyncGenerator<string> {
  const other = new MongoDBSessionStore({ client, database: freshName() });
  await other.setMetadata('empty', { a: 1 });
  yield* other.export('empty');
}

describe('the mark of a clear', () => {
  it('has whole numbers, and nothing of what was there [SESS-034, 242, 246, 375]', async () => {
    await append('1');
    await append('2');
    await session().replaceHistory([user('3')], { operationId: 'op' });
    await store.setMetadata('s', { tag: 1 });
    await documents.sessions.updateOne({}, { $set: { created_at: new Date(0) } });
    await session().clearSession();
    const found = await documents.sessions.findOne({}, { projection: { _id: 0 } });
    expect(found?.created_at).toEqual(found?.updated_at);
    const times = { created_at: expect.any(Date) as Date, updated_at: expect.any(Date) as Date };
    const numbers = {
      _seq: found?._seq,
      _cleared: found?._seq,
      _generation: expect.any(Number) as number,
      _since: found?._generation,
    };
    expect(found).toEqual({ session_id: 's', ...times, ...numbers });
  });

  it('is made where there was no session, as one that the Python SDK may write to [SESS-241, 246]', async () => {
    await session().clearSession();
    const found = (await documents.sessions.findOne({}, { promoteValues: false })) as unknown as Record<
      string,
      { _bsontype: string }
    >;
    expect(['_seq', '_cleared', '_generation'].map((name) => found[name]?._bsontype)).toEqual([
      'Int32',
      'Int32',
      'Int32',
    ]);
    expect(await store.list()).toEqual({ sessions: [] });
  });

  it('is none when others left null there', () => {
    expect(isCleared({ session_id: 's', _seq: 0, _cleared: null })).toBe(false);
  });

  it('does not make the life of a session longer [SESS-246, 253]', async () => {
    await session(1_000_000).addItems([user('1')]);
    const soon = new Date(Date.now() + 500_000);
    await documents.sessions.updateOne({}, { $set: { expires_at: soon } });
    await session(1_000_000).clearSession();
    expect(await documents.sessions.findOne()).toMatchObject({ expires_at: soon });
  });

  it('goes with a delete, which finds no session [SESS-246, 374]', async () => {
    await append('1');
    await session().clearSession();
    expect(await store.delete('s')).toBe(false);
    expect(await documents.sessions.countDocuments()).toBe(0);
  });

  it('goes with a prune when it is older than that, not when it is as old [SESS-374]', async () => {
    await session().clearSession();
    const at = (await documents.sessions.findOne())!.updated_at!;
    await store.prune({ olderThan: at });
    expect(await documents.sessions.countDocuments()).toBe(1);
    await store.prune({ olderThan: new Date(at.getTime() + 1) });
    expect(await documents.sessions.countDocuments()).toBe(0);
  });

  it('stays when metadata makes a session of it while a prune is at it [SESS-374, 375]', async () => {
    await session().clearSession();
    await documents.sessions.updateOne({}, { $set: { updated_at: new Date(0) } });
    const pruning = interrupted('bulkWrite agent_sessions', () => store.setMetadata('s', { tag: 1 }));
    await pruning.prune({ idleForMs: 1000 });
    expect(await store.get('s')).toMatchObject({ metadata: { tag: 1 } });
  });
});

describe('a session that is made again after a clear', () => {
  it('by metadata begins a new life [SESS-253, 375]', async () => {
    const living = interrupted('', async () => {}, 1_000_000);
    await session(1_000_000).addItems([user('1')]);
    await session(1_000_000).clearSession();
    await documents.sessions.updateOne({}, { $set: { expires_at: new Date(Date.now() + 500_000) } });
    await living.setMetadata('s', { tag: 1 });
    expect((await living.get('s'))!.expiresAt!.getTime()).toBeGreaterThan(Date.now() + 600_000);
  });

  it('by metadata that was meant for the one before begins a new life, too [SESS-253, 375]', async () => {
    await session(1_000_000).addItems([user('1')]);
    await documents.sessions.updateOne({}, { $set: { expires_at: new Date(Date.now() + 500_000) } });
    const living = interrupted('updateOne agent_sessions', () => session(1_000_000).clearSession(), 1_000_000);
    await living.setMetadata('s', { tag: 1 });
    expect((await living.get('s'))!.expiresAt!.getTime()).toBeGreaterThan(Date.now() + 600_000);
  });

  it('by an import of no items is there; where it was not cleared, such an import changes nothing [SESS-037, 246, 376]', async () => {
    await append('1');
    const { version } = await session().readHistory();
    expect(await store.import('s', nothing(), { ifExists: 'append' })).toBe(0);
    expect((await session().readHistory()).version).toBe(version);
    await session().clearSession();
    expect(await store.import('s', nothing(), { ifExists: 'append' })).toBe(0);
    expect(await store.get('s')).toMatchObject({ itemCount: 0 });
  });
});

it('an import behind a history leaves its operations known [SESS-034, 376]', async () => {
  await append('1');
  await new MongoDBSession('from', { client, database }).addItems([user('9')]);
  await store.import('s', store.export('from'), { ifExists: 'append' });
  await append('1');
  expect(await session().getItems()).toEqual([user('1'), user('9')]);
});
