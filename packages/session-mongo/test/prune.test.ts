import { MongoClient, MongoNetworkError } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MongoDBSessionStore } from '../src/index.ts';
import { freshName, hooked, mongoUrl, raw } from './mongo.ts';

let client: MongoClient;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());

const user = (content: string) => ({ role: 'user' as const, content });

/** A database of idle sessions of two items each. */
async function idle(count: number): Promise<string> {
  const database = freshName();
  await new MongoDBSessionStore({ client, database }).check();
  const { sessions, messages } = raw(client, database);
  const ids = Array.from({ length: count }, (_, at) => `s${at}`);
  const past = new Date(0);
  await sessions.insertMany(
    ids.map((session_id) => ({ session_id, created_at: past, updated_at: past, _seq: 2, _generation: 0 })),
  );
  await messages.insertMany(
    ids.map((id) => ({ _id: id, session_id: id, seq: 1, generation: 0, message_data: ['{"n":1}', '{"n":2}'] })),
  );
  return database;
}

/** A store, with what is done before a command is sent for the first time, and the commands that were sent. */
function watched(database: string, meanwhile: Record<string, (...args: readonly never[]) => Promise<unknown>> = {}) {
  const sent: string[] = [];
  const over = hooked(client, async (command, collection, args) => {
    const [steps] = args as readonly [object[]?];
    const kind = command === 'bulkWrite' ? `${Object.keys(steps?.[0] ?? {}).join()}s` : command;
    const name = `${kind} ${collection}`;
    const act = sent.includes(name) ? undefined : meanwhile[name];
    sent.push(name);
    await act?.(...(args as never[]));
  });
  return { store: new MongoDBSessionStore({ client: over, database }), sent };
}

describe('prune', () => {
  it('removes sessions some at once, and the marks of clears [SESS-374]', async () => {
    const database = await idle(320);
    const { sessions, messages } = raw(client, database);
    const { store, sent } = watched(database);
    const changes = (): string[] => sent.splice(0).filter((name) => /^(update|delete|findOneAnd)/.test(name));
    const cleared = Array.from({ length: 210 }, (_, at) => `s${at}`);
    await sessions.updateMany({ session_id: { $in: cleared } }, { $set: { _cleared: 2, _generation: 1 } });
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 110, items: 220 });
    const deletion = ['deleteOnes agent_messages', 'deleteOnes agent_sessions'];
    const steps = ['updateOnes agent_sessions', ...deletion];
    // Three times some of the sessions, and of the marks.
    expect(changes()).toEqual([...steps, ...steps, ...steps, ...deletion, ...deletion, ...deletion]);
    expect(await sessions.countDocuments()).toBe(0);
    expect(await messages.countDocuments()).toBe(0);
  });

  it('leaves a session that is used, or cleared, after it was listed [SESS-374]', async () => {
    const database = await idle(3);
    const others = new MongoDBSessionStore({ client, database });
    const { store } = watched(database, {
      'updateOnes agent_sessions': async () => {
        await others.session('s1').addItems([user('3')]);
        await others.session('s2').clearSession();
      },
    });
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 2 });
    expect(await others.session('s1').getItems()).toHaveLength(3);
    const { sessions } = raw(client, database);
    expect((await sessions.distinct('session_id')).toSorted()).toEqual(['s1', 's2']);
  });

  it.each(['deleteOnes agent_messages', 'deleteOnes agent_sessions'])(
    'leaves what is appended to a session that is on its way out, before %s [SESS-374]',
    async (step) => {
      const database = await idle(3);
      const others = new MongoDBSessionStore({ client, database });
      const operation = {
        operationId: 'op',
        transaction: { type: 'append_items', items: [user('before')] },
      } as const;
      await others.session('s1').applyHistoryTransaction(operation);
      await others.session('s1').replaceHistory([user('1'), user('2')], { operationId: 'replaced' });
      await others.setMetadata('s1', { tag: 1 });
      await raw(client, database).sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
      const { store } = watched(database, { [step]: () => others.session('s1').addItems([user('3')]) });
      expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 3, items: 6 });
      expect(await others.session('s1').getItems()).toEqual([user('3')]);
      expect((await others.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 's1', itemCount: 1 }]);
      // It is another one: without metadata, and nothing was done to it yet.
      const found = await others.get('s1');
      expect(found).not.toHaveProperty('metadata');
      expect(found?.createdAt?.getTime()).toBeGreaterThan(0);
      await others.session('s1').replaceHistory([user('4')], { operationId: 'replaced' });
      expect(await others.session('s1').getItems()).toEqual([user('4')]);
    },
  );

  it('leaves what is appended before anything is removed; a delete takes it along [SESS-374]', async () => {
    const database = await idle(1);
    const others = new MongoDBSessionStore({ client, database });
    const append = () => others.session('s0').addItems([user('3')]);
    const { store } = watched(database, { 'updateOnes agent_sessions': append });
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 0, items: 0 });
    expect(await others.session('s0').getItems()).toHaveLength(3);
    expect(await watched(database, { 'updateOnes agent_sessions': append }).store.delete('s0')).toBe(true);
    expect((await others.list()).sessions).toEqual([]);
    expect(await others.session('s0').getItems()).toEqual([]);
  });

  it('leaves what is appended right after a session was emptied [SESS-374]', async () => {
    const database = await idle(1);
    const others = new MongoDBSessionStore({ client, database });
    const { store } = watched(database, {
      // As if it came between this step and the next one: made twice it empties nothing.
      'updateOnes agent_sessions': async (steps) => {
        await raw(client, database).sessions.bulkWrite(steps);
        await others.session('s0').addItems([user('3')]);
      },
    });
    expect(await store.delete('s0')).toBe(false);
    expect(await others.session('s0').getItems()).toEqual([user('3')]);
  });

  it('leaves what is appended to one that had no numbers, before its document goes [SESS-242, 374]', async () => {
    const database = await idle(1);
    await raw(client, database).sessions.updateOne({}, { $unset: { _seq: 1 } });
    const others = new MongoDBSessionStore({ client, database });
    const append = () => others.session('s0').addItems([user('3')]);
    expect(await watched(database, { 'deleteOnes agent_sessions': append }).store.delete('s0')).toBe(true);
    expect((await others.list({ withCount: true })).sessions).toMatchObject([{ sessionId: 's0', itemCount: 1 }]);
  });

  it('has an unknown outcome when an answer is lost, as a delete has [SESS-151, 374]', async () => {
    const database = await idle(2);
    const lost = { 'updateOnes agent_sessions': () => Promise.reject(new MongoNetworkError('lost')) };
    const unknown = { code: 'session_outcome_unknown', operation: 'clear' };
    await expect(watched(database, lost).store.prune({ idleForMs: 1000 })).rejects.toMatchObject(unknown);
    await expect(watched(database, lost).store.delete('s0')).rejects.toMatchObject(unknown);
  });

  it('counts the items of the history that counts, not what is on its way out [SESS-371, 374]', async () => {
    const database = await idle(1);
    const { sessions, messages } = raw(client, database);
    // Of before generations, of one that was replaced, and of operations that are remembered alone.
    await messages.updateOne({ _id: 's0' }, { $unset: { generation: 1 } });
    const text = { session_id: 's0', message_data: ['{}'] };
    for (const [at, generation] of [0, 7, -1].entries())
      await messages.insertOne({ ...text, _id: `more${at}`, seq: 3 + at, generation });
    const store = new MongoDBSessionStore({ client, database });
    expect(await store.get('s0')).toMatchObject({ itemCount: 3 });
    await sessions.updateOne({}, { $set: { _generation: 7 } });
    expect(await store.get('s0')).toMatchObject({ itemCount: 1 });
    expect(await store.prune({ idleForMs: 1000 })).toEqual({ sessions: 1, items: 1 });
    expect(await messages.countDocuments()).toBe(0);
  });
});
