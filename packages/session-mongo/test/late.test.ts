import { CuttingProxy } from '@agents/testkit';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { commandOn, freshName, hooked, mongoUrl, raw } from './mongo.ts';
import type { Raw } from './mongo.ts';

/*
 * A command stands still on its way to the server, while its session is removed by others and another one of the same id
 * begins: with the same items, numbers, generation and operation ids as the first had.
 */

const TTL = 1_000_000;
const user = (content: string) => ({ role: 'user' as const, content });
const texts = (items: readonly object[]): unknown[] => items.map((item) => (item as { content?: unknown }).content);

let client: MongoClient;
let proxied: MongoClient;
let proxy: CuttingProxy;
let database: string;
let documents: Raw;
beforeAll(async () => {
  const url = new URL(mongoUrl());
  client = new MongoClient(url.href);
  proxy = await CuttingProxy.start(Number(url.port));
  proxied = new MongoClient(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, { retryReads: false });
});
afterAll(async () => {
  await proxied.close();
  await client.close();
  await proxy.close();
});
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
});
afterEach(async () => {
  proxy.disarm();
  await client.db(database).dropDatabase();
});

/** Of somebody else. */
const other = (): MongoDBSession<object> => new MongoDBSession<object>('s', { client, database });
/** Of the one whose commands stand still. */
const slow = (ttlMs?: number): MongoDBSession<object> =>
  new MongoDBSession<object>('s', { client: proxied, database, createIndexes: false, ttlMs });
const slowStore = (): MongoDBSessionStore =>
  new MongoDBSessionStore({ client: proxied, database, createIndexes: false });

const append = async (session: MongoDBSession<object>, id: string, content = id): Promise<void> =>
  await session.applyHistoryTransaction({
    operationId: id,
    transaction: { type: 'append_items', items: [user(content)] },
  });

/** A session as the Python SDK begins it, with a batch of its own and some under operation ids, one of which was popped. */
async function begin(): Promise<void> {
  const now = new Date();
  await documents.sessions.insertOne({ session_id: 's', created_at: now, updated_at: now, _seq: 1, _generation: 0 });
  const message_data = ['{"role":"user","content":"theirs"}'];
  await documents.messages.insertOne({ session_id: 's', seq: 0, generation: 0, message_data } as never);
  await append(other(), 'op1');
  await append(other(), 'op2');
  await append(other(), 'popped');
  await other().popItem();
}

/** What has to be there, whatever comes late, and is remembered. */
async function checkWhole(more: readonly string[] = []): Promise<void> {
  const whole = ['theirs', 'op1', 'op2', ...more];
  expect(texts(await other().getItems())).toEqual(whole);
  for (const id of ['op1', 'op2', 'popped']) await append(other(), id);
  expect(texts(await other().getItems())).toEqual(whole);
  expect(await documents.messages.countDocuments({ expires_at: { $exists: true } })).toBe(0);
}

/** The removal by somebody else, and the next session. */
async function replaceLife(): Promise<void> {
  await new MongoDBSessionStore({ client, database }).delete('s');
  expect(await documents.messages.countDocuments({ generation: { $in: [null, 0, -1] } })).toBe(0);
  await begin();
}

/** A text; with a `!` before it: not that text. */
function has(request: Buffer, text: string | undefined): boolean {
  return text === undefined || request.includes(text.replace('!', '')) !== text.startsWith('!');
}

/** Of a replacement among batches: for its operation, for what is replaced, for what came late. */
function lastLook(): () => boolean {
  let looks = 0;
  return () => ++looks === 3;
}

/** Runs the call until one of its commands stands still, then what happens meanwhile, then the rest of it. */
async function meanwhile(
  command: string,
  call: () => Promise<unknown>,
  happens: () => Promise<void> = replaceLife,
  accept: () => boolean = () => true,
): Promise<unknown> {
  const [name = '', collection = '', having] = command.split(' ');
  const isMeant = commandOn(name, `agent_${collection}`);
  let forward = (): void => undefined;
  const stopped = new Promise<void>((resolve) =>
    proxy.stopNext(
      (go) => {
        forward = go;
        resolve();
      },
      { matching: (request) => isMeant(request) && has(request, having) && accept() },
    ),
  );
  const ended = call().then(
    (value) => value,
    (error: unknown) => error,
  );
  const first = await Promise.race([stopped.then(() => 'stopped'), ended.then(() => `ended without ${command}`)]);
  expect(first).toBe('stopped');
  await happens();
  forward();
  return await ended;
}

const calls: Record<string, () => Promise<unknown>> = {
  delete: () => slowStore().delete('s'),
  prune: () => slowStore().prune({ idleForMs: 1 }),
  clear: () => slow().clearSession(),
  replace: () => slow().replaceHistory([user('late')], { operationId: 'late' }),
  'replace the end': () =>
    slow().applyHistoryTransaction({
      operationId: 'late',
      transaction: { type: 'replace_suffix', expectedSuffix: [user('op2')], replacement: [user('late')] },
    }),
  'import in place': () => slowStore().import('s', exported(), { ifExists: 'replace' }),
  'import behind': () => slowStore().import('s', exported(), { ifExists: 'append' }),
  pop: () => slow().popItem(),
};

async function* exported(): AsyncGenerator<string> {
  const store = new MongoDBSessionStore({ client, database: `${database}f` });
  await store.session('from').addItems([user('late')]);
  yield* store.export('from');
  await client.db(`${database}f`).dropDatabase();
}

describe('takes nothing of the next session of the same id', () => {
  it.each([
    // Its emptying, what it reads of batches, their deletion, that of its document.
    ['delete', 'update sessions'],
    ['delete', 'find messages'],
    ['delete', 'find sessions _cleared'],
    ['delete', 'delete messages'],
    ['delete', 'delete sessions'],
    ['prune', 'update sessions'],
    ['prune', 'find messages'],
    ['prune', 'find sessions _cleared'],
    ['prune', 'delete messages'],
    ['prune', 'delete sessions'],
    ['clear', 'find messages'],
    ['clear', 'find sessions _cleared'],
    ['clear', 'delete messages'],
    // Its publication, and the old batches that go, or are put aside; those that came late.
    ['replace', 'update sessions'],
    ['replace', 'delete messages'],
    ['replace', 'update messages'],
    ['replace the end', 'delete messages'],
    ['replace the end', 'update messages message_data'],
    ['import in place', 'delete messages !$lt'],
    ['import in place', 'update messages message_data'],
    ['import behind', 'delete messages !$lt'],
    ['import behind', 'update messages message_data'],
  ])('%s, standing still before: %s [SESS-246, 247, 374]', async (name, command) => {
    await begin();
    const result = await meanwhile(command, calls[name]!);
    // It was meant for the history that was read.
    expect(result instanceof Error).toBe(name === 'replace' && command === 'update sessions');
    await expect(checkWhole()).resolves.toBeUndefined();
  });

  it('what looks for batches that came late, after a replacement [SESS-247]', async () => {
    await begin();
    const isLast = lastLook();
    await meanwhile('find messages', calls['replace']!, replaceLife, isLast);
    await expect(checkWhole()).resolves.toBeUndefined();
  });

  it('a replacement that would put what came late behind a history of this one [SESS-247]', async () => {
    await begin();
    const isLast = lastLook();
    await meanwhile(
      'find messages',
      calls['replace']!,
      async () => {
        await replaceLife();
        await other().replaceHistory([user('new')]);
        // Reserved before the removal.
        const message_data = ['{"role":"user","content":"came late"}'];
        await documents.messages.insertOne({ session_id: 's', seq: 4, generation: 0, message_data } as never);
      },
      isLast,
    );
    expect(texts(await other().getItems())).toEqual(['new']);
    expect(await documents.sessions.findOne()).toMatchObject({ _seq: 5 });
  });

  it('a replacement that puts what came late behind its history, while its operation is made there [SESS-247]', async () => {
    await begin();
    let insert = (): void => undefined;
    const held = new Promise<void>((resolve) => (insert = resolve));
    let late = Promise.resolve();
    await new Promise<void>((resolve) => {
      const waiting = hooked(client, async (command, collection) => {
        if (command !== 'insertOne' || collection !== 'agent_messages') return;
        resolve();
        await held;
      });
      late = append(new MongoDBSession<object>('s', { client: waiting, database }), 'came late');
    });
    const isLast = lastLook();
    const replacing = (): Promise<unknown> =>
      meanwhile(
        'find messages',
        calls['replace']!,
        async () => {
          insert();
          await late;
        },
        isLast,
      );
    await meanwhile('update messages seq', replacing, async () => {
      await replaceLife();
      await append(other(), 'came late');
    });
    await expect(checkWhole(['came late'])).resolves.toBeUndefined();
  });

  it('what came late, which no replacement puts behind a clear that came meanwhile [SESS-246, 247]', async () => {
    await begin();
    const isLast = lastLook();
    await meanwhile(
      'find messages',
      calls['replace']!,
      async () => {
        await other().clearSession();
        const message_data = ['{"role":"user","content":"came late"}'];
        await documents.messages.insertOne({ session_id: 's', seq: 4, generation: 0, message_data } as never);
      },
      isLast,
    );
    expect(await other().getItems()).toEqual([]);
    expect(await new MongoDBSessionStore({ client, database }).get('s')).toBeUndefined();
  });

  it('a mark of a clear that goes with a prune [SESS-246, 374]', async () => {
    for (const command of ['find messages', 'find sessions _cleared', 'delete messages', 'delete sessions']) {
      await begin();
      await other().clearSession();
      // As a clear leaves it that was cut off.
      const message_data = ['{}'];
      await documents.messages.insertOne({ session_id: 's', seq: 0, generation: 0, message_data } as never);
      await documents.sessions.updateOne({}, { $set: { updated_at: new Date(0) } });
      await meanwhile(command, calls['prune']!);
      await expect(checkWhole()).resolves.toBeUndefined();
      await new MongoDBSessionStore({ client, database }).delete('s');
    }
  });

  it.each(['delete messages', 'update messages', 'find messages'])(
    'a pop that empties a batch, standing still before: %s [SESS-245]',
    async (command) => {
      await begin();
      await other().popItem();
      await other().addItems([user('plain')]);
      if (command !== 'delete messages') await other().popItem();
      await meanwhile(command, calls['pop']!);
      await expect(checkWhole()).resolves.toBeUndefined();
    },
  );

  it('a rejected append by version that takes its batch away, while its operation is made there [SESS-037]', async () => {
    await begin();
    const { version } = await other().readHistory();
    // Reserved by somebody who inserts later.
    await documents.sessions.updateOne({}, { $inc: { _seq: 1 } });
    const rejected = await meanwhile(
      'delete messages',
      () =>
        meanwhile(
          'insert messages',
          () => slow().appendIfVersion(version, [user('again')], { operationId: 'again' }),
          async () => {
            const message_data = ['{}'];
            await documents.messages.insertOne({ session_id: 's', seq: 4, generation: 0, message_data } as never);
          },
        ),
      async () => {
        await replaceLife();
        await append(other(), 'again');
      },
    );
    expect(rejected).toMatchObject({ code: 'session_version_conflict' });
    await checkWhole(['again']);
  });

  it.each(['clear', 'delete', 'prune'])(
    'nor what is appended to the same one, and popped, before a %s reads what goes [SESS-246, 374]',
    async (name) => {
      await begin();
      await meanwhile('find messages', calls[name]!, async () => {
        await append(other(), 'popped too');
        await other().popItem();
        await append(other(), 'new');
      });
      for (const id of ['popped too', 'new']) await append(other(), id);
      expect(texts(await other().getItems())).toEqual(['new']);
    },
  );

  it('a delete beside a use of the session takes that along; one beside uses that never end gives up [SESS-374]', async () => {
    await begin();
    expect(await meanwhile('update sessions', calls['delete']!, async () => await append(other(), 'op3'))).toBe(true);
    expect(await documents.sessions.countDocuments()).toBe(0);
    expect(await documents.messages.countDocuments()).toBe(0);
    await begin();
    const busy = new MongoDBSessionStore({
      client: hooked(client, async (name, on) => {
        if (name === 'bulkWrite' && on === 'agent_sessions') await other().addItems([user('again')]);
      }),
      database,
    });
    await expect(busy.delete('s')).rejects.toMatchObject({ code: 'session_busy', sessionId: 's' });
  });

  it('metadata that come late, for the session that they were meant for is gone [SESS-375]', async () => {
    await begin();
    const set = async (): Promise<unknown> =>
      await slowStore()
        .setMetadata('s', { tag: 1 })
        .catch(() => undefined);
    // Whoever set them waits no longer when they arrive.
    await meanwhile('update sessions', set, async () => {
      await replaceLife();
      proxy.cutNext('before', { matching: commandOn('find', 'agent_sessions') }).catch(() => undefined);
    });
    expect((await new MongoDBSessionStore({ client, database }).get('s'))?.metadata).toBeUndefined();
    await checkWhole();
  });

  it('nor what is appended to one of several, before a prune reads what goes [SESS-374]', async () => {
    await begin();
    // Its generation is behind that of the other.
    await documents.sessions.insertOne({ session_id: 'far', _seq: 0, _generation: 2 ** 30 });
    await documents.sessions.updateMany({}, { $set: { updated_at: new Date(0) } });
    await meanwhile('find messages', calls['prune']!, () => append(other(), 'new'));
    expect(texts(await other().getItems())).toEqual(['new']);
  });

  it('nor of an import that made way for what came meanwhile: a clear [SESS-246, 376]', async () => {
    await begin();
    let reached = (): void => undefined;
    let go = (): void => undefined;
    const isStaged = new Promise<void>((resolve) => (reached = resolve));
    const held = new Promise<void>((resolve) => (go = resolve));
    const waiting = hooked(client, async (command, collection) => {
      if (command !== 'updateMany' || collection !== 'agent_messages') return;
      reached();
      await held;
    });
    const importing = new MongoDBSessionStore({ client: waiting, database }).import('s', exported(), {
      ifExists: 'append',
    });
    await isStaged;
    // Until what is staged is behind the generation that counts.
    for (let time = 0; time < 4; time++) await other().replaceHistory([user(String(time))]);
    await meanwhile('delete messages', calls['clear']!, async () => {
      go();
      await importing;
    });
    expect(texts(await other().getItems())).toEqual(['late']);
  });

  it('what prolongs the life of batches [SESS-253]', async () => {
    for (const command of ['find messages', 'find sessions _cleared', 'update messages', 'update sessions']) {
      await begin();
      await meanwhile(command, () => slow(TTL).addItems([user('late')]));
      const found = await documents.messages.find({ expires_at: { $exists: true } }).toArray();
      expect(found.flatMap(({ message_data }) => message_data)).toEqual(['{"role":"user","content":"late"}']);
      expect(await documents.sessions.countDocuments({ _kept_until: { $exists: true } })).toBe(0);
      await new MongoDBSessionStore({ client, database }).delete('s');
      await documents.messages.deleteMany({});
    }
  });
});
