import { configureLogging, UserError } from '@agents/core';
import type { LogRecord } from '@agents/core';
import { SessionError, SessionItemError, SessionSchemaError } from '@agents/core/session';
import { Binary, Double, Int32, Long, MongoClient, ObjectId } from 'mongodb';
import type { CommandStartedEvent, Document } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { readOptions } from '../src/arguments.ts';
import { MongoDBHistory } from '../src/history.ts';
import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { batchKey, collectionsOf, countOf, operationKey } from '../src/layout.ts';
import { begunByPython, freshName, hooked, mongoUrl, raw } from './mongo.ts';
import type { Raw } from './mongo.ts';

let client: MongoClient;
let database: string;
let documents: Raw;
const warn = vi.fn<(record: LogRecord) => void>();
beforeAll(() => {
  client = new MongoClient(mongoUrl(), { monitorCommands: true });
});
afterAll(() => client.close());
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
  configureLogging({ sink: warn });
});
afterEach(async () => {
  configureLogging({ sink: null });
  warn.mockReset();
  await client.db(database).dropDatabase();
});

const user = (content: string) => ({ role: 'user' as const, content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));
const text = (content: string): string => `{"role":"user","content":"${content}"}`;
const open = (id = 's', more: object = {}): MongoDBSession<object> =>
  new MongoDBSession<object>(id, { client, database, ...more });
const append = (operationId: string, items: readonly object[]) => ({
  operationId,
  transaction: { type: 'append_items', items } as const,
});
const codeOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => (error as { code?: unknown }).code,
  );

/** Lines as a store exports them. */
async function* exported(items: readonly object[]): AsyncGenerator<string> {
  await using store = new MongoDBSessionStore({ client, database: freshName() });
  await (store.session('s') as MongoDBSession<object>).addItems(items);
  yield* store.export('s');
}

/** The commands of a piece of work on the database of the test, with their collections. */
async function commandsOf(work: () => Promise<unknown>): Promise<{ name: string; command: Document }[]> {
  const commands: { name: string; command: Document }[] = [];
  const listen = ({ commandName, command, databaseName }: CommandStartedEvent): void => {
    if (databaseName === database) commands.push({ name: `${commandName} ${String(command[commandName])}`, command });
  };
  client.on('commandStarted', listen);
  await work();
  client.off('commandStarted', listen);
  return commands;
}

describe('documents', () => {
  it('are those of the Python SDK, numbers as integers [SESS-241, 242]', async () => {
    const session = open();
    await session.addItems(users(3));
    await session.addItems([{ role: 'user', content: 'Grüße 😀' }]);
    await session.applyHistoryTransaction(append('op', users(1)));
    const typed = { promoteValues: false } as const;
    expect(await documents.sessions.find({}, typed).toArray()).toEqual([
      {
        _id: expect.any(ObjectId),
        session_id: 's',
        created_at: expect.any(Date),
        updated_at: expect.any(Date),
        _seq: new Int32(5),
        _generation: expect.any(Int32),
      },
    ]);
    const [made] = await documents.sessions.find().toArray();
    const generation = countOf(made?._generation);
    const messages = await documents.messages.find({}, typed).sort({ seq: 1 }).toArray();
    const common = { session_id: 's', generation: new Int32(generation) };
    expect(messages).toEqual([
      { _id: expect.any(ObjectId), ...common, seq: new Int32(2), message_data: ['1', '2', '3'].map(text) },
      {
        _id: expect.any(ObjectId),
        ...common,
        seq: new Int32(3),
        message_data: ['{"role":"user","content":"Gr\\u00fc\\u00dfe \\ud83d\\ude00"}'],
      },
      {
        _id: `op:${String(made?._id)}:0:${operationKey('op')}`,
        ...common,
        seq: new Int32(4),
        message_data: [text('1')],
        operation: { digest: expect.any(String), version: `${generation}:4:1`, at: expect.any(Date) },
      },
    ]);
    expect(operationKey('op')).toMatch(/^[\w-]{43}$/);
    expect(operationKey('op')).not.toBe(operationKey('so'));
  });

  it('have large numbers as 64-bit integers, never as doubles, whoever reads them [SESS-242]', async () => {
    const large = 2 ** 31 + 7;
    await documents.sessions.insertOne({
      session_id: 's',
      _seq: Long.fromNumber(large),
      _generation: Long.fromNumber(large),
    });
    for (const [index, given] of [
      {},
      { promoteValues: false },
      { useBigInt64: true },
      { promoteLongs: false },
      { raw: true },
    ].entries()) {
      const other = new MongoClient(mongoUrl(), given);
      const session = new MongoDBSession('s', { client: other, database });
      await session.addItems([user(String(index + 1))]);
      expect(await session.getItems()).toEqual(users(index + 1));
      await other.close();
    }
    const [session] = await documents.sessions.find({}, { promoteValues: false }).toArray();
    expect(session).toMatchObject({ _seq: Long.fromNumber(large + 5), _generation: Long.fromNumber(large) });
    const [message] = await documents.messages.find({}, { promoteValues: false }).sort({ seq: 1 }).toArray();
    expect(message).toMatchObject({ seq: Long.fromNumber(large), generation: Long.fromNumber(large) });
  });

  it.each([{ promoteValues: false }, { useBigInt64: true }, { promoteLongs: false }, { raw: true }])(
    'are changed by every call whatever kinds of numbers the client asks for: %o [SESS-242]',
    async (given) => {
      await using other = new MongoClient(mongoUrl(), given);
      const session = new MongoDBSession<object>('s', { client: other, database, ttlMs: 1_000_000 });
      await session.addItems(users(3));
      expect(await session.popItem()).toEqual(user('3'));
      const version = await session.replaceHistory(users(2, 5));
      await session.appendIfVersion(version, users(1, 7));
      await using store = new MongoDBSessionStore({ client: other, database, ttlMs: 1_000_000 });
      await store.setMetadata('s', { a: 1 });
      expect(await store.get('s')).toMatchObject({ itemCount: 3, metadata: { a: 1 }, expiresAt: expect.any(Date) });
      expect(await session.getItems()).toEqual(users(3, 5));
      expect(await store.delete('s')).toBe(true);
      expect(await session.getItems()).toEqual([]);
    },
  );

  it('of a history that was written anew go on with the numbers, as many as it has batches [SESS-247]', async () => {
    const session = open();
    const many = Array.from({ length: 1100 }, (_, seq) => ({
      _id: `m${seq}`,
      session_id: 's',
      seq,
      generation: 0,
      message_data: [text(String(seq))],
      ...(seq % 2 === 0 && { operation: { digest: '', version: '', at: new Date() } }),
    }));
    await documents.messages.insertMany(many);
    await documents.sessions.insertOne({ session_id: 's', _seq: 1100 });
    await session.replaceHistory(users(3));
    expect(await session.getItems()).toEqual(users(3));
    expect(await documents.sessions.findOne()).toMatchObject({ _seq: 1103 });
    const left = await documents.messages.find({ generation: { $ne: -1 } }).toArray();
    expect(left.map(({ seq }) => seq)).toEqual([1102]);
    expect(await documents.messages.countDocuments({ generation: -1 })).toBe(550);
  });

  it('of the old form are read, popped and cleared with the new ones [SESS#40, SESS-243, 245, 246]', async () => {
    const session = open();
    const old = (seq: number, more: object) => ({ _id: new ObjectId(), session_id: 's', seq: new Int32(seq), ...more });
    await documents.sessions.insertOne({ session_id: 's', _seq: new Int32(2) });
    await documents.messages.insertMany([
      old(0, { message_data: text('1') }),
      old(1, { message_data: text('2'), generation: null }),
    ]);
    await session.addItems(users(2, 3));
    expect(await session.getItems()).toEqual(users(4));
    expect(await session.getItems(3)).toEqual(users(3, 2));
    expect(await session.getItems(4)).toEqual(users(4));
    for (const content of ['4', '3', '2', '1']) expect(await session.popItem()).toEqual(user(content));
    expect(await session.popItem()).toBeUndefined();
    expect(await documents.messages.countDocuments()).toBe(0);
    await documents.messages.insertOne(old(9, { message_data: text('5') }));
    expect(await session.getItems()).toEqual(users(1, 5));
    // There may be no document of a session.
    await documents.sessions.deleteMany({});
    expect(await session.getItems()).toEqual(users(1, 5));
    expect(await session.popItem()).toEqual(user('5'));
    await documents.messages.insertMany([
      old(9, { message_data: text('6') }),
      old(10, { message_data: [text('7')], generation: new Int32(0) }),
    ]);
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    expect(await documents.messages.countDocuments()).toBe(0);
  });

  it('of foreign kinds are skipped, reported and removed by pop [SESS-243, 153]', async () => {
    const reports: unknown[] = [];
    const session = open('s', { onCorruptItem: (info: unknown) => void reports.push(info) });
    await begunByPython(documents);
    await session.addItems(users(2));
    const strange = [5, null, new Binary(Buffer.from('x')), { a: 1 }, [7, null, 'no json', text('3'), ['x']]];
    for (const [index, message_data] of strange.entries())
      await documents.messages.insertOne({
        _id: new ObjectId(),
        session_id: 's',
        seq: 10 + index,
        generation: 0,
        message_data,
      });
    await documents.messages.insertOne({ _id: new ObjectId(), session_id: 's', seq: 20, generation: 0 });
    expect(await session.getItems()).toEqual(users(3));
    expect(await session.getItems(1)).toEqual(users(1, 3));
    expect(await session.getItems(2)).toEqual(users(2, 2));
    expect(await session.popItem()).toEqual(user('3'));
    expect(await session.popItem()).toEqual(user('2'));
    expect(await session.getItems()).toEqual(users(1));
    expect(reports).toContainEqual({ sessionId: 's', position: 20, reason: 'not text' });
    expect(reports).toContainEqual({ sessionId: 's', position: 12, reason: 'not the JSON text of an object' });
  });

  it('that are no items have the same position for a read and for the pop that removes them [SESS-153]', async () => {
    await begunByPython(documents);
    await open().addItems(users(3));
    const data = [text('4'), 'no json', text('6'), 'nor this'];
    await documents.messages.insertOne({ _id: 'x', session_id: 's', seq: 6, generation: 0, message_data: data });
    const positionsOf = async (call: (session: MongoDBSession<object>) => Promise<unknown>): Promise<unknown[]> => {
      const reports: { position: number }[] = [];
      await call(open('s', { onCorruptItem: (info: { position: number }) => void reports.push(info) }));
      return reports.map(({ position }) => position);
    };
    expect(await positionsOf((session) => session.getItems())).toEqual([6, 4]);
    expect(await positionsOf((session) => session.popItem())).toEqual([6]);
    expect(await positionsOf((session) => session.getItems())).toEqual([6]);
    expect(await positionsOf((session) => session.popItem())).toEqual([6]);
    expect(await open().getItems()).toEqual(users(3));
  });

  it('are asked for by the generation that was seen last, so that one look is enough [SESS-243]', async () => {
    const session = open();
    const looks = async (): Promise<number> => (await commandsOf(() => session.getItems())).length;
    await session.addItems(users(1));
    // The first time nothing was seen.
    expect([await looks(), await looks()]).toEqual([3, 2]);
    await open().replaceHistory(users(3));
    expect([await looks(), await looks()]).toEqual([4, 2]);
    await open().replaceHistory(users(3));
    expect(await session.popItem()).toEqual(user('3'));
    expect(await looks()).toBe(2);
    await session.clearSession();
    expect(await looks()).toBe(2);
  });

  it('are fetched no further than a read wants them [SESS-003]', async () => {
    await begunByPython(documents);
    await open().addItems(users(1));
    const batches = Array.from({ length: 200 }, (_, index) => ({
      _id: `b${index}`,
      session_id: 's',
      seq: 2 * index + 2,
      generation: 0,
      message_data: [text(String(2 * index + 2)), text(String(2 * index + 3))],
    }));
    await documents.messages.insertMany(batches);
    let items: object[] = [];
    const sent = await commandsOf(async () => (items = await open().getItems(150)));
    expect(items).toEqual(users(150, 252));
    expect(sent.map(({ name }) => name)).not.toContainEqual(expect.stringMatching('getMore'));
    expect(await open().getItems(201)).toEqual(users(201, 201));
  });

  it('that are written for upkeep are no use of the session [SESS-015]', async () => {
    await open().addItems(users(1));
    await documents.sessions.updateOne({}, { $set: { updated_at: new Date(0) } });
    const history = new MongoDBHistory('s', readOptions({ client, database }, 'MongoDBSession'));
    await history.write({ type: 'append', texts: [text('2')], upkeep: true });
    await history.write({ type: 'replace', texts: [text('1'), text('2')], upkeep: true });
    expect(await open().getItems()).toEqual(users(2));
    expect(await documents.sessions.findOne()).toMatchObject({ updated_at: new Date(0) });
  });

  it('of which a read wants a part are given no further than that [SESS-003]', async () => {
    await open().addItems(users(5));
    const config = readOptions({ client, database }, 'MongoDBSession');
    const { records } = await new MongoDBHistory('s', config).read(2);
    expect(records).toEqual([
      { text: text('4'), position: 3 },
      { text: text('5'), position: 4 },
    ]);
  });

  it('that are no items make a read fail where that is asked for [SESS-153]', async () => {
    await begunByPython(documents);
    const session = open('s', { corruptItems: 'throw' });
    await session.addItems(users(1));
    await documents.messages.insertOne({
      _id: new ObjectId(),
      session_id: 's',
      seq: 9,
      generation: 0,
      message_data: ['{'],
    });
    await expect(session.getItems()).rejects.toThrow(SessionError);
    await expect(session.getItems()).rejects.toThrow('position 9');
  });

  it('do not appear where nothing is written: by reads, by appends of nothing [SESS-007, 013]', async () => {
    const session = open();
    expect(await session.getItems()).toEqual([]);
    expect(await session.getItems(5)).toEqual([]);
    expect(await session.popItem()).toBeUndefined();
    await session.addItems([]);
    expect(await commandsOf(() => session.addItems([]))).toEqual([]);
    expect(await client.db(database).listCollections().toArray()).toEqual([]);
  });

  it('keep the time of their creation, and that of their last append, not of a read or a pop [SESS-015]', async () => {
    const session = open();
    await session.addItems(users(3));
    const past = new Date(0);
    await documents.sessions.updateOne({}, { $set: { created_at: past, updated_at: past } });
    await session.getItems();
    await session.popItem();
    expect(await documents.sessions.findOne()).toMatchObject({ created_at: past, updated_at: past });
    await session.addItems(users(1));
    const after = await documents.sessions.findOne();
    expect(after?.created_at).toEqual(past);
    expect(after?.updated_at?.getTime()).toBeGreaterThan(0);
  });
});

describe('large batches', () => {
  it('that no document can hold are refused by size and item, before anything is sent [IL-050, SESS#50, SESS-241]', async () => {
    const session = open();
    await session.addItems(users(1));
    const sent = await commandsOf(async () => {
      const failed = session.addItems([
        user('small'),
        { type: 'function_call_output', call_id: 'c', output: 'x'.repeat(17_000_000) },
      ]);
      await expect(failed).rejects.toThrow(SessionItemError);
      await expect(failed).rejects.toMatchObject({ code: 'session_item_too_large', index: 1 });
      await expect(failed).rejects.toThrow(/has 17\d{6} bytes; MongoDB holds at most 16777216.*Shorten it/);
      await expect(session.replaceHistory([user('x'.repeat(17_000_000))])).rejects.toMatchObject({
        code: 'session_item_too_large',
        index: 0,
      });
    });
    expect(sent).toEqual([]);
    const together = Array.from({ length: 17 }, (_, index) => user('x'.repeat(1_000_000 + (index === 8 ? 1 : 0))));
    const none = await commandsOf(async () => {
      const failed = session.addItems(together);
      await expect(failed).rejects.toMatchObject({ code: 'session_item_too_large', index: 8 });
      await expect(failed).rejects.toThrow(SessionItemError);
    });
    expect(none).toEqual([]);
    expect(await session.getItems()).toEqual(users(1));
    expect(await documents.sessions.findOne()).toMatchObject({ _seq: 1 });
  });

  it('of nearly 16 MB, and items of 10 MB, are stored [SESS#48, SESS-160]', async () => {
    const session = open();
    const items = [user('x'.repeat(10_000_000)), user('y'.repeat(6_700_000))];
    await session.addItems(items);
    await session.addItems(users(3));
    expect(await session.getItems(3)).toEqual(users(3));
    expect(await session.getItems()).toEqual([...items, ...users(3)]);
    // Together they are too much for one document: a history that is written anew is split.
    await session.replaceHistory([...items, user('z'.repeat(10_000_000))]);
    expect(await session.getItems()).toHaveLength(3);
  });

  it('that are written anew have 256 KB at most, or one item [SESS-247]', async () => {
    const ofSize = (size: number) => user('x'.repeat(size - text('').length));
    const half = ofSize(128 * 1024);
    const items = [half, half, half, user('small'), ofSize(300_000), user('small')];
    await open().replaceHistory(items);
    const stored = await documents.messages.find().sort({ seq: 1 }).toArray();
    expect(stored.map(({ message_data }) => (message_data as string[]).length)).toEqual([2, 2, 1, 1]);
    expect(await open().getItems()).toEqual(items);
  });

  it('do not make the newest items of a long history slow to find: few documents are fetched [SESS#48, SESS-003]', async () => {
    const session = open();
    await session.replaceHistory(users(20_000));
    await session.addItems(users(4, 20_001));
    expect(await session.getItems(20)).toEqual(users(20, 19_985));
    const [find, ...others] = (await commandsOf(() => session.getItems(20))).filter(({ name }) =>
      name.endsWith('agent_messages'),
    );
    expect(others).toEqual([]);
    expect(find?.command).toMatchObject({ limit: 20, sort: new Map([['seq', -1]]) });
    expect(
      Math.max(
        ...(await documents.messages
          .find()
          .map(({ message_data }) => (message_data as string[]).length)
          .toArray()),
      ),
    ).toBe(100);
  });
});

describe('indexes', () => {
  it('are made once before the first write, as the Python SDK makes them, and used [IL-046, SESS-249]', async () => {
    const [first, second] = [open('a'), open('b')];
    const sent = await commandsOf(() =>
      Promise.all([first.addItems(users(2)), second.addItems(users(1)), first.clearSession()]),
    );
    expect(
      sent
        .filter(({ name }) => name.startsWith('createIndexes'))
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['createIndexes agent_messages', 'createIndexes agent_sessions']);
    const keys = async (collection: { indexes(): Promise<Document[]> }): Promise<unknown[]> =>
      (await collection.indexes()).map(({ name, key, unique }) => ({ name, key, unique: unique ?? false }));
    expect(await keys(documents.sessions)).toContainEqual({
      name: 'session_id_1',
      key: { session_id: 1 },
      unique: true,
    });
    expect(await keys(documents.messages)).toContainEqual({
      name: 'session_id_1_generation_1_seq_1',
      key: { session_id: 1, generation: 1, seq: 1 },
      unique: false,
    });
    // What reads, pops and clears ask for is asked of an index.
    const asked = await commandsOf(async () => {
      await second.getItems(5);
      await second.popItem();
      await second.clearSession();
    });
    for (const { name, command } of asked) {
      const [kind, collection] = name.split(' ');
      const filters: unknown[] =
        kind === 'find'
          ? [command['filter']]
          : kind === 'findAndModify'
            ? [command['query']]
            : ((command['updates'] ?? command['deletes'] ?? []) as Document[]).map(({ q }) => q as unknown);
      for (const filter of filters) {
        const plan = await client
          .db(database)
          .collection(collection!)
          .find(filter as Document)
          .explain();
        expect(JSON.stringify(plan['queryPlanner']), name).toContain('IXSCAN');
      }
    }
  });

  it('are made over one client for each database and pair of collections [SESS-249]', async () => {
    await open().addItems(users(1));
    const elsewhere = freshName();
    for (const [more, collection] of [
      [{ sessionsCollection: 'other_sessions' }, 'other_sessions'],
      [{ messagesCollection: 'other_messages' }, 'other_messages'],
      [{ database: elsewhere }, 'agent_messages'],
    ] as const) {
      await open('s', more).addItems(users(1));
      const { database: name = database } = more as { database?: string };
      expect(await client.db(name).collection(collection).indexes(), collection).toHaveLength(2);
    }
    await client.db(elsewhere).dropDatabase();
  });

  it('for a life are on a date, and remove what is over [IL-047, SESS-249]', async () => {
    // Over the same client as sessions without a life, which made theirs before.
    await open('lasting').addItems(users(1));
    const session = open('s', { ttlMs: 60_000 });
    await session.addItems(users(1));
    for (const collection of [documents.sessions, documents.messages]) {
      expect(await collection.indexes()).toContainEqual(
        expect.objectContaining({ key: { expires_at: 1 }, expireAfterSeconds: 0 }),
      );
      expect((await collection.findOne({ session_id: 's' }))?.expires_at).toBeInstanceOf(Date);
    }
  });

  it('are not made where that is not wanted [SESS-249]', async () => {
    await open('s', { createIndexes: false }).addItems(users(1));
    expect((await documents.sessions.indexes()).map(({ name }) => name)).toEqual(['_id_']);
  });

  it('that could not be made are tried again by the next write; others in their place are for the operator [SESS-249]', async () => {
    await documents.sessions.createIndex({ session_id: 1 });
    const session = open();
    const failed = session.addItems(users(1));
    await expect(failed).rejects.toThrow(SessionSchemaError);
    await expect(failed).rejects.toThrow('Drop it');
    expect(await documents.messages.countDocuments()).toBe(0);
    await documents.sessions.dropIndex('session_id_1');
    await session.addItems(users(1));
    expect(await session.getItems()).toEqual(users(1));
  });

  it('let no session be twice: 20 first writes at once are all kept [IL-008]', async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => MongoClient.connect(mongoUrl())));
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        new MongoDBSession('s', { client: others[index % 4]!, database }).addItems([user(String(index))]),
      ),
    );
    expect(await open().getItems()).toHaveLength(20);
    expect(await documents.sessions.countDocuments()).toBe(1);
    await Promise.all(others.map((other) => other.close()));
  });
});

describe('operations', () => {
  it('stay known when their items were popped, replaced, or written anew [SESS-034]', async () => {
    const session = open();
    await session.applyHistoryTransaction(append('popped', users(2)));
    await session.popItem();
    await session.popItem();
    await session.applyHistoryTransaction(append('popped', users(2)));
    expect(await session.getItems()).toEqual([]);
    await session.applyHistoryTransaction(append('replaced', users(1)));
    await session.replaceHistory(users(1, 7), { operationId: 'replacing' });
    // Of what was replaced nothing but the operation is kept.
    const remembered = await documents.messages.find({ generation: -1 }).toArray();
    expect(remembered.map(({ message_data }) => message_data)).toEqual([[], []]);
    await session.applyHistoryTransaction(append('replaced', users(1)));
    await session.replaceHistory(users(1, 8));
    await session.replaceHistory(users(1, 7), { operationId: 'replacing' });
    expect(await session.getItems()).toEqual(users(1, 8));
    expect(await codeOf(session.applyHistoryTransaction(append('replacing', users(1))))).toBe(
      'session_operation_mismatch',
    );
    expect(await codeOf(session.replaceHistory(users(2), { operationId: 'popped' }))).toBe(
      'session_operation_mismatch',
    );
    expect(await session.getItems()).toEqual(users(1, 8));
  });

  it('are forgotten with the session, and belong to their session [SESS-011, 034]', async () => {
    const [session, other] = [open(), open('other')];
    await session.applyHistoryTransaction(append('op', users(1)));
    await other.applyHistoryTransaction(append('op', users(2)));
    expect(await other.getItems()).toEqual(users(2));
    await session.clearSession();
    await session.applyHistoryTransaction(append('op', users(3)));
    expect(await session.getItems()).toEqual(users(3));
    expect(await other.getItems()).toEqual(users(2));
  });

  it('on the whole history, and metadata, are forgotten with the session too [SESS-011, 034]', async () => {
    await using store = new MongoDBSessionStore({ client, database });
    const session = open();
    await session.replaceHistory(users(1), { operationId: 'op' });
    await store.setMetadata('s', { a: 1 });
    await session.clearSession();
    expect((await store.get('s'))?.metadata).toBeUndefined();
    await session.replaceHistory(users(2), { operationId: 'op' });
    expect(await session.getItems()).toEqual(users(2));
  });

  it('that make a session are remembered with it [SESS-034]', async () => {
    const session = open();
    const first = await session.replaceHistory(users(2), { operationId: 'first' });
    await session.addItems(users(1, 3));
    expect(await session.replaceHistory(users(2), { operationId: 'first' })).toBe(first);
    expect(await session.getItems()).toEqual(users(3));
  });

  it('on the whole history are remembered up to 256 [SESS-034]', async () => {
    const session = open();
    await session.addItems(users(1));
    const _operations = Array.from({ length: 256 }, (_, number) => ({ id: String(number), digest: '', version: '' }));
    await documents.sessions.updateOne({}, { $set: { _operations } });
    await session.replaceHistory(users(1, 2), { operationId: 'last' });
    const stored = await documents.sessions.findOne();
    expect(stored?._operations?.map(({ id }) => id)).toEqual([
      ..._operations.slice(1).map(({ id }) => id),
      operationKey('last'),
    ]);
  });

  it('of popped batches are remembered for a day, and the last 64 for longer [SESS-034, 245]', async () => {
    const session = open();
    for (let number = 0; number < 70; number++) await session.applyHistoryTransaction(append(`op${number}`, users(1)));
    const made = await documents.sessions.findOne();
    for (const [numbers, hours] of [
      [[0, 1, 2, 67, 68, 69], 25],
      [[3, 4, 5], 23],
    ] as const) {
      const ids = numbers.map((number) => batchKey(made!, operationKey(`op${number}`)));
      const at = new Date(Date.now() - hours * 3_600_000);
      await documents.messages.updateMany({ _id: { $in: ids } }, { $set: { 'operation.at': at } });
    }
    for (let number = 0; number < 70; number++) await session.popItem();
    const remembered = await documents.messages.find({ generation: -1 }).toArray();
    expect(remembered.map(({ seq }) => Number(seq)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 67 }, (_, index) => index + 3),
    );
    await session.applyHistoryTransaction(append('op69', users(1)));
    expect(await session.getItems()).toEqual([]);
  });

  it('without items are remembered and make no session [SESS-007, 034, 037]', async () => {
    const session = open();
    const none = await session.readHistory();
    await session.appendIfVersion(none.version, []);
    expect(await documents.sessions.countDocuments()).toBe(0);
    await session.applyHistoryTransaction(append('op', []));
    await using store = new MongoDBSessionStore({ client, database });
    expect([await store.list(), await store.get('s')]).toEqual([{ sessions: [] }, undefined]);
    expect(await codeOf(session.applyHistoryTransaction(append('op', users(1))))).toBe('session_operation_mismatch');
    expect(await session.getItems()).toEqual([]);
    const { version } = await session.readHistory();
    const first = await session.appendIfVersion(version, [], { operationId: 'at' });
    await session.addItems(users(1));
    expect(await session.appendIfVersion(version, [], { operationId: 'at' })).toBe(first);
    expect(await codeOf(session.appendIfVersion(version, [], { operationId: 'late' }))).toBe(
      'session_version_conflict',
    );
    expect(await codeOf(session.appendIfVersion(version, []))).toBe('session_version_conflict');
    expect(await session.getItems()).toEqual(users(1));
  });
});

describe('versions', () => {
  it('notice what the Python SDK writes [SESS-037, 252]', async () => {
    await begunByPython(documents);
    const session = open();
    await session.addItems(users(1));
    const { version } = await session.readHistory();
    expect(version).toBe('0:0:1');
    await documents.messages.insertOne({
      _id: new ObjectId(),
      session_id: 's',
      seq: 1,
      generation: 0,
      message_data: [text('2')],
    });
    expect(await codeOf(session.appendIfVersion(version, users(1)))).toBe('session_version_conflict');
    expect(await session.getItems()).toEqual(users(2));
  });

  it('are given again to whoever repeats an append by version, whatever came after it [SESS-034, 037]', async () => {
    const { version } = await open().readHistory();
    const first = await open().appendIfVersion(version, users(1), { operationId: 'op' });
    expect(await open().appendIfVersion(version, users(1), { operationId: 'op' })).toBe(first);
    await open().addItems(users(1, 2));
    expect(await open().appendIfVersion(version, users(1), { operationId: 'op' })).toBe(first);
    expect(await open().getItems()).toEqual(users(2));
  });

  it('of a session that does not exist are those of no items, and are good for a first write', async () => {
    const { version } = await open().readHistory();
    expect(await open().appendIfVersion(version, users(2))).toMatch(/^\d+:1:2$/);
    expect(await codeOf(open().appendIfVersion(version, users(2)))).toBe('session_version_conflict');
  });
});

describe('lives', () => {
  const expire = (): Promise<unknown> =>
    documents.sessions.updateOne({ session_id: 's' }, { $set: { expires_at: new Date(Date.now() - 1) } });

  it.each([2000, 500_000, 999_000, 1_100_000])(
    'are as long after each append, and batches, of which those before had %i ms left, go later than their session [SESS-253]',
    async (left) => {
      const session = open('s', { ttlMs: 1_000_000 });
      await session.addItems(users(1));
      const end = new Date(Date.now() + left);
      await documents.sessions.updateOne(
        {},
        { $set: { expires_at: new Date(Date.now() + Math.min(left, 900_000) / 2), _kept_until: end } },
      );
      await documents.messages.updateMany({}, { $set: { expires_at: end } });
      await session.addItems(users(1, 2));
      const found = await documents.sessions.findOne();
      expect(found!.expires_at!.getTime()).toBeGreaterThan(Date.now() + 900_000);
      expect(found!._kept_until!.getTime()).toBeGreaterThanOrEqual(found!.expires_at!.getTime());
      for (const { expires_at } of await documents.messages.find().toArray())
        expect(expires_at!.getTime()).toBeGreaterThanOrEqual(found!.expires_at!.getTime());
      // Not each append touches all batches.
      const sent = await commandsOf(() => session.addItems(users(1, 3)));
      expect(sent.map(({ name }) => name)).toEqual(['findAndModify agent_sessions', 'insert agent_messages']);
      expect(await session.getItems()).toEqual(users(3));
    },
  );

  it('that are over leave nothing to read or pop, whoever looks, before the server removed anything', async () => {
    for (const more of [{ ttlMs: 1_000_000 }, {}]) {
      await open('s', { ttlMs: 1_000_000 }).addItems(users(2));
      await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
      await expire();
      const session = open('s', more);
      expect(await session.getItems()).toEqual([]);
      expect(await session.popItem()).toBeUndefined();
      await session.addItems(users(1, 9));
      expect(await session.getItems()).toEqual(users(1, 9));
      expect(await open('s', more).popItem()).toEqual(user('9'));
      await client.db(database).dropDatabase();
      database = freshName();
      documents = raw(client, database);
    }
  });

  it('that are over and removed do not come back with the next session of the same id', async () => {
    await open('s', { ttlMs: 1_000_000 }).addItems(users(2));
    // The server removes the session first, its batches later.
    await documents.sessions.deleteMany({});
    expect(await open().getItems()).toEqual([]);
    await open().addItems(users(1, 8));
    expect(await open().getItems()).toEqual(users(1, 8));
    await documents.sessions.deleteMany({});
    await open('s', { ttlMs: 1_000_000 }).addItems(users(1, 9));
    expect(await open().getItems()).toEqual(users(1, 9));
  });

  it.each<[string, (session: MongoDBSession<object>, store: MongoDBSessionStore) => Promise<unknown>]>([
    ['replaced', (session) => session.replaceHistory(users(1, 9))],
    [
      'replaced as it is read',
      async (session) => session.replaceHistory(users(1, 9), { ifVersion: (await session.readHistory()).version }),
    ],
    ['continued by an import', (_, store) => store.import('s', exported(users(1, 9)), { ifExists: 'append' })],
    ['replaced by an import', (_, store) => store.import('s', exported(users(1, 9)), { ifExists: 'replace' })],
    [
      'popped',
      async (session) => {
        expect(await session.popItem()).toBeUndefined();
        expect(await session.popItem()).toBeUndefined();
        await session.addItems(users(1, 9));
      },
    ],
  ])('that are over and removed do not come back when the history is %s', async (_name, write) => {
    await begunByPython(documents);
    await open().addItems(users(1));
    await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
    const session = open('s', { ttlMs: 1_000_000 });
    await session.addItems(users(1, 2));
    // The server removes the session first, its batches later.
    await documents.sessions.deleteMany({});
    await write(session, store);
    expect(await session.getItems()).toEqual(users(1, 9));
    expect(await documents.messages.countDocuments()).toBe(1);
  });

  it.each([{ ttlMs: 1_000_000 }, {}])(
    'that are over leave nothing for a replacement to see, to keep or to be refused by: %o',
    async (more) => {
      await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
      await store.setMetadata('s', { a: 1 });
      await open('s', { ttlMs: 1_000_000 }).replaceHistory(users(2), { operationId: 'again' });
      await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
      await expire();
      const session = open('s', { createIndexes: false, ...more });
      const transaction = { type: 'replace_suffix', expectedSuffix: users(1, 2), replacement: users(1, 5) } as const;
      expect(await codeOf(session.applyHistoryTransaction({ operationId: 'op', transaction }))).toBe(
        'session_suffix_mismatch',
      );
      await session.replaceHistory(users(1, 6), { operationId: 'again' });
      expect(await session.getItems()).toEqual(users(1, 6));
      expect((await store.get('s'))?.metadata).toBeUndefined();
    },
  );

  it.each<['is still there' | 'was removed']>([['is still there'], ['was removed']])(
    'that are over are no source of a fork or an export, where the document of the session %s [SESS-253]',
    async (state) => {
      await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
      await open().addItems(users(1));
      await open('s', { ttlMs: 1_000_000 }).addItems(users(1, 2));
      await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
      await (state === 'was removed' ? documents.sessions.deleteMany({}) : expire());
      await expect(store.fork('s', 'copy')).rejects.toThrow(/no session/i);
      const reading = (async () => {
        for await (const _ of store.export('s'));
      })();
      await expect(reading).rejects.toThrow(/no session/i);
      expect(await store.get('copy')).toBeUndefined();
    },
  );

  it('that end while they are exported leave no export that looks whole [SESS-253]', async () => {
    await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
    await open('s', { ttlMs: 1_000_000 }).replaceHistory(users(1200));
    await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
    let lines = 0;
    const reading = (async () => {
      for await (const _ of store.export('s')) if (++lines === 2) await expire();
    })();
    await expect(reading).rejects.toMatchObject({ code: 'session_version_conflict' });
    expect(lines).toBeLessThan(1200);
  });

  it.each(['fail', 'replace', 'append'] as const)(
    'that are over leave their id to an import, which begins anew: %s [SESS-253]',
    async (ifExists) => {
      await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
      await store.setMetadata('s', { a: 1 });
      await open('s', { ttlMs: 1_000_000 }).addItems(users(2));
      await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
      await documents.sessions.updateOne({}, { $set: { created_at: new Date(0) } });
      await expire();
      expect(await store.import('s', exported(users(1, 9)), { ifExists })).toBe(1);
      expect(await open().getItems()).toEqual(users(1, 9));
      const info = await store.get('s');
      expect(info?.createdAt?.getTime()).toBeGreaterThan(0);
      expect(info?.metadata).toBeUndefined();
      expect(await documents.messages.countDocuments()).toBe(1);
    },
  );

  it('hold for appends by version, replacements and clears too [SESS-253]', async () => {
    const session = open('s', { ttlMs: 1_000_000 });
    const { version } = await session.readHistory();
    const first = await session.appendIfVersion(version, users(2));
    const soon = { $set: { expires_at: new Date(Date.now() + 100_000) } };
    await documents.sessions.updateOne({}, soon);
    const next = await session.appendIfVersion(first, users(1));
    expect((await documents.sessions.findOne())!.expires_at!.getTime()).toBeGreaterThan(Date.now() + 900_000);
    await documents.sessions.updateOne({}, soon);
    await session.replaceHistory(users(3), { ifVersion: next });
    for (const { expires_at } of [
      ...(await documents.sessions.find().toArray()),
      ...(await documents.messages.find().toArray()),
    ])
      expect(expires_at!.getTime()).toBeGreaterThan(Date.now() + 900_000);
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
    await session.addItems(users(1));
    await expire();
    const { version: over } = await session.readHistory();
    await session.appendIfVersion(over, users(1, 5));
    expect(await session.getItems()).toEqual(users(1, 5));
    await expire();
    await session.replaceHistory(users(1, 6));
    expect(await session.getItems()).toEqual(users(1, 6));
  });

  it('that are over and removed have versions of their own [SESS-037, 253]', async () => {
    const session = open('s', { ttlMs: 1_000_000 });
    await session.addItems(users(1));
    const { version } = await session.readHistory();
    await documents.sessions.deleteMany({});
    await session.addItems(users(1, 2));
    expect(await codeOf(session.appendIfVersion(version, users(1, 3)))).toBe('session_version_conflict');
    expect(await session.getItems()).toEqual(users(1, 2));
  });

  it('that are over and removed do not come back with a clear that makes the session [SESS-246, 253]', async () => {
    const session = open('s', { ttlMs: 1_000_000 });
    await session.clearSession();
    await session.addItems(users(1));
    await documents.sessions.deleteMany({});
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
  });

  it('are not made longer by a prune, which is no use of a session [SESS-253, 374]', async () => {
    await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
    await store.session('s').addItems(users(10));
    const soon = new Date(Date.now() + 500_000);
    const past = new Date(0);
    await documents.sessions.updateOne({}, { $set: { expires_at: soon, updated_at: past } });
    expect(await store.prune({ maxItems: 4 })).toEqual({ sessions: 0, items: 6 });
    expect(await documents.sessions.findOne()).toMatchObject({ expires_at: soon, updated_at: past });
    for (const { expires_at } of await documents.messages.find().toArray())
      expect(expires_at!.getTime()).toBeGreaterThan(soon.getTime());
    expect(await open().getItems()).toEqual(users(4, 7));
  });

  it('have sessions that were made by a clear or by metadata too [SESS-246, 253]', async () => {
    await open('s', { ttlMs: 1_000_000 }).clearSession();
    await using store = new MongoDBSessionStore({ client, database, ttlMs: 1_000_000 });
    await store.setMetadata('with-metadata', { a: 1 });
    expect(await documents.sessions.countDocuments()).toBe(2);
    for (const { expires_at } of await documents.sessions.find().toArray())
      expect(expires_at!.getTime()).toBeGreaterThan(Date.now() + 900_000);
    await client.db(database).collection('agent_sessions').dropIndex('expires_at_1');
    await documents.sessions.updateMany({}, { $set: { expires_at: new Date(Date.now() - 1) } });
    expect(await store.get('with-metadata')).toBeUndefined();
    await store.setMetadata('with-metadata', { b: 2 });
    expect(await store.get('with-metadata')).toMatchObject({ metadata: { b: 2 } });
    expect((await store.get('with-metadata'))?.metadata).not.toHaveProperty('a');
  });

  it.each([2 ** 63, 0, -1, 1.5, '5', Number.NaN])('of %s are refused [SESS#45]', (ttlMs) => {
    expect(() => open('s', { ttlMs })).toThrow(UserError);
    expect(() => open('s', { ttlMs: null })).not.toThrow();
  });
});

describe('a client', () => {
  it('that prefers secondaries, or no acknowledgement, is asked at the primary and waited for [SESS-244]', async () => {
    const other = new MongoClient(mongoUrl(), {
      readPreference: 'secondaryPreferred',
      writeConcern: { w: 0 },
      monitorCommands: true,
    });
    const asked: Document[] = [];
    other.on('commandStarted', ({ command }) => void asked.push(command));
    const session = new MongoDBSession<object>('s', { client: other, database });
    await session.addItems(users(2));
    await session.replaceHistory(users(3));
    expect(await session.popItem()).toEqual(user('3'));
    expect(await session.getItems()).toEqual(users(2));
    await session.clearSession();
    const preferences = asked.map((command) => (command['$readPreference'] as { mode?: string } | undefined)?.mode);
    expect(preferences).not.toContain('secondaryPreferred');
    // What a lone server is not told.
    const collections = collectionsOf(other, { database, sessions: 'a', messages: 'b' });
    for (const { readPreference } of [collections.sessions, collections.messages])
      expect(readPreference?.mode).toBe('primary');
    expect(asked.filter((command) => (command['writeConcern'] as { w?: unknown } | undefined)?.w === 0)).toEqual([]);
    await other.close();
  });

  it('of many sessions has few connections [SESS-018]', async () => {
    const other = new MongoClient(mongoUrl());
    let connections = 0;
    other.on('connectionCreated', () => void connections++);
    const sessions = Array.from(
      { length: 10_000 },
      (_, index) => new MongoDBSession(`s${index}`, { client: other, database }),
    );
    for (const session of sessions.slice(0, 5)) await session.addItems([user('1')]);
    expect(connections).toBe(1);
    await other.close();
  });

  it('whose tidying up fails has done what it was asked for [G6, SESS-152, 245, 246]', async () => {
    const failing = hooked(client, (command, collection) => {
      if (collection === 'agent_messages' && /^(bulk|delete|updateMany)/.test(command)) throw new Error('no');
    });
    const session = new MongoDBSession<object>('s', { client: failing, database });
    // Operations that are old, and more than are kept.
    await documents.messages.insertMany(
      Array.from({ length: 70 }, (_, seq) => ({
        _id: `aside${seq}`,
        session_id: 's',
        seq,
        generation: -1,
        operation: { digest: '', version: '', at: new Date(0) },
      })),
    );
    await session.applyHistoryTransaction(append('op', users(1)));
    await session.addItems(users(1, 2));
    expect(await session.popItem()).toEqual(user('2'));
    expect(await session.popItem()).toEqual(user('1'));
    expect(await session.popItem()).toBeUndefined();
    expect(await documents.messages.countDocuments({ message_data: [] })).toBe(2);
    await session.addItems(users(2));
    await session.replaceHistory(users(1, 7));
    expect(await session.getItems()).toEqual(users(1, 7));
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    expect(await documents.messages.countDocuments()).toBeGreaterThan(0);
    await open().clearSession();
    expect(await documents.messages.countDocuments()).toBe(0);
  });

  it('leaves empty documents to the next pop that makes one [SESS-245]', async () => {
    const failing = hooked(client, (command, collection) => {
      if (collection === 'agent_messages' && command === 'deleteMany') throw new Error('no');
    });
    await open().addItems(users(1));
    await open().addItems(users(1, 2));
    await new MongoDBSession('s', { client: failing, database }).popItem();
    expect(await documents.messages.countDocuments({ message_data: [] })).toBe(1);
    // And nobody sees them.
    const { version } = await open().readHistory();
    await open().appendIfVersion(version, users(1, 3));
    expect(await open().popItem()).toEqual(user('3'));
    expect(await open().popItem()).toEqual(user('1'));
    expect(await documents.messages.countDocuments()).toBe(0);
  });
});

describe('what is wrong', () => {
  const given = (): object => ({ client });

  it.each<[string, () => unknown, string | undefined]>([
    ['no options', () => new MongoDBSession('s', undefined as never), undefined],
    ['neither client nor url', () => new MongoDBSession('s', {} as never), undefined],
    ['both', () => new MongoDBSession('s', { client, url: 'mongodb://h' } as never), undefined],
    ['a client that is none', () => new MongoDBSession('s', { client: {} } as never), undefined],
    [
      'options of a client beside a client',
      () => new MongoDBSession('s', { client, clientOptions: { appName: 'x' } } as never),
      undefined,
    ],
    ['another url', () => new MongoDBSession('s', { url: 'redis://user:secret@h' }), undefined],
    [
      'a url that the driver does not take',
      () => new MongoDBSession('s', { url: 'mongodb://us%er:secret@h' }),
      undefined,
    ],
    ['an unknown option', () => new MongoDBSession('s', { ...given(), ttl: 5 } as never), undefined],
    ['an empty id', () => new MongoDBSession(' ', { client }), 'session_id_invalid'],
    ['an id that is a filter', () => new MongoDBSession({ $gt: '' } as never, { client }), 'session_id_invalid'],
    [
      'a collection with quotes',
      () => new MongoDBSession('s', { client, messagesCollection: 'x"; drop' }),
      'session_name_invalid',
    ],
    [
      'a collection of the system',
      () => new MongoDBSession('s', { client, sessionsCollection: 'system.users' }),
      'session_name_invalid',
    ],
    [
      'one collection for both',
      () => new MongoDBSession('s', { client, sessionsCollection: 'a', messagesCollection: 'a' }),
      'session_name_invalid',
    ],
    ['a database with a dot', () => new MongoDBSession('s', { client, database: 'a.b' }), 'session_name_invalid'],
    ['no text as a database', () => new MongoDBSession('s', { client, database: 5 } as never), 'session_name_invalid'],
    ['a wrong option of a store', () => new MongoDBSessionStore({ ...given(), createIndexes: 1 } as never), undefined],
  ])('is refused when the object is made, and says no secret: %s [SESS#47, SESS-158, 251]', (_name, make, code) => {
    let error: unknown;
    try {
      make();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).code).toBe(code ?? 'user_error');
    expect(String((error as UserError).stack)).not.toContain('secret');
  });

  it('in a batch leaves nothing, and the session goes on [SESS#11, SESS-008]', async () => {
    const session = open();
    const cyclic: Record<string, unknown> = { role: 'user' };
    cyclic['self'] = cyclic;
    await expect(session.addItems([user('1'), cyclic])).rejects.toMatchObject({ name: 'SessionItemError', index: 1 });
    expect(await documents.sessions.countDocuments()).toBe(0);
    await session.addItems(users(1));
    expect(await session.getItems()).toEqual(users(1));
  });

  it('in place of a number counts as 0, a number of any kind as what it is [SESS-242]', () => {
    expect([5, 5n, new Int32(5), Long.fromNumber(5)].map(countOf)).toEqual([5, 5, 5, 5]);
    expect([1.5, new Double(5), '5', null, undefined].map(countOf)).toEqual([0, 0, 0, 0, 0]);
  });

  it('with a number that is no integer is read as the Python SDK reads it [SESS-242]', async () => {
    await documents.sessions.insertOne({ session_id: 's', _seq: 0, _generation: new Double(1.5) } as never);
    await documents.messages.insertOne({
      _id: new ObjectId(),
      session_id: 's',
      seq: 0,
      generation: 0,
      message_data: [text('1')],
    });
    expect(await open().getItems()).toEqual(users(1));
  });
});
