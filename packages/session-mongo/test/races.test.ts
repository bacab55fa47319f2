import { SessionVersionConflictError } from '@agents/core/session';
import { MongoClient, MongoNetworkError } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { MongoDBSession, MongoDBSessionStore } from '../src/index.ts';
import { begunByPython, doublesIn, freshName, hooked, hookedOnce, mongoUrl, raw } from './mongo.ts';
import type { Raw } from './mongo.ts';

let client: MongoClient;
let database: string;
let documents: Raw;
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(() => client.close());
beforeEach(() => {
  database = freshName();
  documents = raw(client, database);
});
afterEach(() => client.db(database).dropDatabase());

const user = (content: string) => ({ role: 'user' as const, content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));
const contents = async (session: MongoDBSession<object>): Promise<unknown[]> =>
  (await session.getItems()).map((item) => (item as { content: unknown }).content);

/** Another process, as far as the database sees it. */
const other = (): MongoDBSession<object> => new MongoDBSession<object>('s', { client, database });

/** A session of which one command waits, the first time, until something else was done. */
function interrupted(command: string, collection: string, meanwhile: () => Promise<unknown>): MongoDBSession<object> {
  return new MongoDBSession<object>('s', { client: hookedOnce(client, command, collection, meanwhile), database });
}

describe('an append', () => {
  it('that reserved before a clear and comes after it stays invisible [SESS#38, SESS-246]', async () => {
    await other().addItems(users(2));
    const session = interrupted('insertOne', 'agent_messages', () => other().clearSession());
    await session.addItems(users(2, 3));
    expect(await other().getItems()).toEqual([]);
    await other().addItems(users(1, 9));
    expect(await session.getItems()).toEqual(users(1, 9));
  });

  it('that is the first of its session and comes after a clear stays invisible [SESS#38, SESS-246]', async () => {
    const session = interrupted('insertOne', 'agent_messages', () => other().clearSession());
    await session.addItems(users(2));
    expect(await other().getItems()).toEqual([]);
    await using store = new MongoDBSessionStore({ client, database });
    expect((await store.list()).sessions).toEqual([]);
  });

  it('that reserved early and comes late stands before later ones [SESS-248]', async () => {
    const session = interrupted('insertOne', 'agent_messages', () => other().addItems(users(1, 2)));
    await session.addItems(users(1));
    expect(await contents(other())).toEqual(['1', '2']);
  });

  it('of one process comes after those that were called before, whichever objects they were called on [SESS-009, 248]', async () => {
    const inserted: unknown[] = [];
    let wait = 50;
    const slow = hooked(client, async (command, collection, [document]) => {
      if (command !== 'insertOne' || collection !== 'agent_messages') return;
      const ms = wait;
      wait = 0;
      await new Promise((resolve) => setTimeout(resolve, ms));
      inserted.push(Number((document as { seq: unknown }).seq));
    });
    const sessions = [0, 1, 2].map(() => new MongoDBSession<object>('s', { client: slow, database }));
    await Promise.all(sessions.map((session, index) => session.addItems(users(1, index))));
    expect(inserted).toEqual([0, 1, 2]);
    expect(await other().getItems()).toEqual(users(3, 0));
  });

  it('by version comes after those that were called before, too: it is lost against them [SESS-009, 241]', async () => {
    const { version } = await other().readHistory();
    let reached: () => void = () => {};
    const reserved = new Promise<void>((resolve) => (reached = resolve));
    const slow = hookedOnce(client, 'insertOne', 'agent_messages', async () => {
      reached();
      // Long enough for who does not wait for it.
      await new Promise((resolve) => setTimeout(resolve, 200));
    });
    const [first, second] = [0, 1].map(() => new MongoDBSession<object>('s', { client: slow, database }));
    const added = first!.addItems(users(1));
    await reserved;
    await expect(second!.appendIfVersion(version, users(1, 2))).rejects.toThrow(SessionVersionConflictError);
    await added;
    expect(await contents(other())).toEqual(['1']);
  });

  it('that is the first, to a session which somebody makes in the same moment, is made all the same [SESS-241]', async () => {
    const session = interrupted('insertOne', 'agent_sessions', () => other().addItems(users(1)));
    await session.addItems(users(1, 2));
    expect(await contents(other())).toEqual(['1', '2']);
  });

  it('to one session does not wait for one to another [SESS-241]', async () => {
    let go: () => void = () => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    const waiting = hooked(client, async (command, _on, [document]) => {
      if (command === 'insertOne' && (document as { session_id: unknown }).session_id === 'first') await held;
    });
    const [first, second] = ['first', 'second'].map(
      (id) => new MongoDBSession<object>(id, { client: waiting, database }),
    );
    const added = first!.addItems(users(1));
    await second!.addItems(users(2));
    expect(await second!.getItems()).toEqual(users(2));
    go();
    await added;
    expect(await first!.getItems()).toEqual(users(1));
  });

  it('that came while the history was replaced is put behind the new one, not lost [SESS-006, 242, 247]', async () => {
    // Now generations are numbers of more than 32 bits.
    for (let time = 0; time < 3; time++) await other().replaceHistory(users(2));
    let late: Promise<void> | undefined;
    let insert: () => void = () => {};
    const held = new Promise<void>((resolve) => (insert = resolve));
    const reserved = new Promise<void>((resolve) => {
      const session = interrupted('insertOne', 'agent_messages', async () => {
        resolve();
        await held;
      });
      late = session.addItems(users(2, 8));
    });
    await reserved;
    const replacing = interrupted('bulkWrite', 'agent_messages', async () => {
      insert();
      await late;
    });
    await replacing.replaceHistory(users(1, 5));
    expect(await contents(other())).toEqual(['5', '8', '9']);
    // With numbers of its own, which nobody gets again.
    const next = Number((await documents.sessions.findOne())?._seq);
    const stored = await documents.messages.find().sort({ seq: 1 }).toArray();
    expect(stored.map(({ seq }) => seq)).toEqual([next - 3, next - 1]);
    expect(await doublesIn(documents)).toEqual([]);
  });

  it('by version loses against who reserved first and comes meanwhile [SESS-037, 248]', async () => {
    await other().addItems(users(1));
    const { version } = await other().readHistory();
    let insert: () => void = () => {};
    const held = new Promise<void>((resolve) => (insert = resolve));
    let late: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      const early = interrupted('insertOne', 'agent_messages', async () => {
        resolve();
        await held;
      });
      late = early.addItems(users(1, 2));
    });
    // Of another process: those of one keep their order.
    const elsewhere = new MongoClient(mongoUrl());
    const session = new MongoDBSession<object>('s', {
      client: hooked(elsewhere, async (name, on) => {
        if (name !== 'insertOne' || on !== 'agent_messages') return;
        insert();
        await late;
      }),
      database,
    });
    await expect(session.appendIfVersion(version, users(1, 3))).rejects.toThrow(SessionVersionConflictError);
    expect(await contents(other())).toEqual(['1', '2']);
    await elsewhere.close();
  });

  it('by version of a session that somebody makes meanwhile is lost [SESS-037]', async () => {
    const { version } = await other().readHistory();
    const session = interrupted('insertOne', 'agent_sessions', () => other().addItems(users(1)));
    await expect(session.appendIfVersion(version, users(1, 3))).rejects.toThrow(SessionVersionConflictError);
    expect(await contents(other())).toEqual(['1']);
  });

  it('by version loses against a reservation, a pop and a clear in between [SESS-037]', async () => {
    for (const change of [() => other().addItems(users(1, 7)), () => other().popItem(), () => other().clearSession()]) {
      await other().addItems(users(2));
      const { version } = await other().readHistory();
      const before = await contents(other());
      let changed: Promise<unknown> | undefined;
      const late = hooked(client, async (name, on) => {
        // Nobody sees a batch that comes too late, not even for a moment.
        if (name === 'insertOne' && on === 'agent_messages') throw new Error('inserted all the same');
        if (name === 'findOneAndUpdate' && on === 'agent_sessions') await (changed ??= change());
      });
      const session = new MongoDBSession<object>('s', { client: late, database });
      await expect(session.appendIfVersion(version, users(1, 3))).rejects.toThrow(SessionVersionConflictError);
      expect(await contents(other())).not.toContain('3');
      expect(await contents(other())).not.toEqual(before);
    }
  });

  it('by version that a replacement or a clear took along was made, before it [SESS-037, 247]', async () => {
    for (const change of [() => other().replaceHistory(users(1, 9)), () => other().clearSession()]) {
      await other().replaceHistory(users(1));
      const { version } = await other().readHistory();
      const session = interrupted('findOne', 'agent_messages', change);
      expect(await session.appendIfVersion(version, users(1, 2))).toMatch(/:2:1$|:\d+:1$/);
      expect(await contents(other())).not.toContain('2');
    }
  });

  it('by version, of an operation, that a replacement took along was made, before it: repeated it is that one [SESS-034, 241]', async () => {
    await other().addItems(users(1));
    const { version } = await other().readHistory();
    let isInserted = false;
    let replaced: Promise<unknown> | undefined;
    const session = new MongoDBSession<object>('s', {
      client: hooked(client, async (name, on) => {
        if (on !== 'agent_messages') return;
        if (name === 'insertOne') isInserted = true;
        // The look at what stands before the batch.
        else if (isInserted && name === 'findOne') await (replaced ??= other().replaceHistory(users(1, 9)));
      }),
      database,
    });
    const append = () => session.appendIfVersion(version, users(1, 2), { operationId: 'op' });
    const made = await append();
    expect(await append()).toBe(made);
    expect(await contents(other())).toEqual(['9']);
  });

  it.each([
    ['was put behind it is lost', undefined, 'session_version_conflict'],
    ['nobody knows of has an unknown outcome', 'bulkWrite', 'session_outcome_unknown'],
  ])(
    'by version that came while the history was replaced: one that %s [SESS-037, 151, 247]',
    async (_name, failing, code) => {
      await other().addItems(users(1));
      const { version } = await other().readHistory();
      let go: () => void = () => {};
      const held = new Promise<void>((resolve) => (go = resolve));
      let replaced: Promise<unknown> | undefined;
      const startReplacement = (): Promise<void> =>
        new Promise((resolve) => {
          const replacing = hooked(client, async (name, on) => {
            if (on === 'agent_messages' && name === failing) throw new Error('no');
            if (on !== 'agent_messages' || name !== 'insertMany') return;
            // It has read the history.
            resolve();
            await held;
          });
          replaced = new MongoDBSession<object>('s', { client: replacing, database }).replaceHistory(users(1, 9));
        });
      const session = new MongoDBSession<object>('s', {
        client: hooked(client, async (name, on) => {
          if (on !== 'agent_messages') return;
          if (name === 'insertOne') await startReplacement();
          if (name !== 'findOne') return;
          go();
          await replaced;
        }),
        database,
      });
      await expect(session.appendIfVersion(version, users(1, 2))).rejects.toMatchObject({ code });
      expect(await contents(other())).toEqual(['9']);
    },
  );

  it('of an operation that another applied meanwhile is that one [SESS-034]', async () => {
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: users(2) } } as const;
    const session = interrupted('insertOne', 'agent_messages', () => other().applyHistoryTransaction(operation));
    await session.applyHistoryTransaction(operation);
    expect(await session.getItems()).toEqual(users(2));
    const changed = { operationId: 'op', transaction: { type: 'append_items', items: users(3) } } as const;
    const late = interrupted('insertOne', 'agent_messages', async () => {});
    await expect(late.applyHistoryTransaction(changed)).rejects.toMatchObject({ code: 'session_operation_mismatch' });
  });
});

describe('a replacement', () => {
  it('is lost against a clear while it is prepared: the history is empty [SESS#39, SESS-247]', async () => {
    await other().addItems(users(2));
    const session = interrupted('updateOne', 'agent_sessions', () => other().clearSession());
    await expect(session.replaceHistory(users(3, 5))).rejects.toThrow(SessionVersionConflictError);
    expect(await other().getItems()).toEqual([]);
    expect(await documents.messages.countDocuments()).toBe(0);
  });

  it('that fails leaves nothing of what it had prepared [SESS-006, 247]', async () => {
    await other().addItems(users(2));
    const failing = interrupted('updateOne', 'agent_sessions', () => Promise.reject(new Error('not allowed')));
    await expect(failing.replaceHistory(users(3, 5))).rejects.toThrow('not allowed');
    expect(await contents(other())).toEqual(['1', '2']);
    expect(await documents.messages.countDocuments()).toBe(1);
  });

  it('stays whole when nobody hears that it was made, and so does an import [SESS-006, 247, 253]', async () => {
    await other().addItems(users(2));
    const deaf = hooked(client, async (name, on, args) => {
      if (on !== 'agent_sessions' || (name !== 'updateOne' && name !== 'insertOne')) return;
      const call = documents.sessions[name] as (...given: unknown[]) => Promise<unknown>;
      await call.apply(documents.sessions, [...args]);
      throw new MongoNetworkError('the connection closed');
    });
    const replaced = new MongoDBSession<object>('s', { client: deaf, database }).replaceHistory(users(3, 5));
    await expect(replaced).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    expect(await contents(other())).toEqual(['5', '6', '7']);
    const store = new MongoDBSessionStore({ client, database });
    const exported = store.export('s');
    const imported = new MongoDBSessionStore({ client: deaf, database }).import('copy', exported);
    await expect(imported).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    expect(await store.session('copy').getItems()).toEqual(users(3, 5));
  });

  it('is not shown by a series of clears [SESS-247]', async () => {
    await other().addItems(users(2));
    let seen: unknown[] = [];
    const session = interrupted('updateOne', 'agent_sessions', async () => {
      for (let number = 0; number < 5; number++) {
        await other().clearSession();
        seen = [...seen, ...(await other().getItems())];
      }
    });
    await expect(session.replaceHistory(users(3, 5))).rejects.toThrow(SessionVersionConflictError);
    expect(seen).toEqual([]);
  });

  it.each<[string, () => Promise<unknown>, string[]]>([
    ['an append', () => other().addItems(users(1, 9)), ['1', '2', '9']],
    ['a pop', () => other().popItem(), ['1']],
    ['a replacement', () => other().replaceHistory(users(1, 9)), ['9']],
  ])('of the whole is lost against %s while it is prepared [SESS-247]', async (_name, change, left) => {
    await other().addItems(users(2));
    const session = interrupted('insertMany', 'agent_messages', change);
    await expect(session.replaceHistory(users(3, 5))).rejects.toThrow(SessionVersionConflictError);
    expect(await contents(other())).toEqual(left);
    expect(await documents.messages.countDocuments({ message_data: { $in: ['{"role":"user","content":"5"}'] } })).toBe(
      0,
    );
  });

  it('of the end looks again when somebody else was first [SESS-035]', async () => {
    const operation = {
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 2), replacement: users(1, 7) },
    } as const;
    await other().addItems(users(2));
    const session = interrupted('updateOne', 'agent_sessions', () =>
      other().replaceHistory([...users(1, 0), ...users(1, 2)]),
    );
    await session.applyHistoryTransaction(operation);
    expect(await contents(other())).toEqual(['0', '7']);
    await other().replaceHistory(users(2));
    const late = interrupted('updateOne', 'agent_sessions', () => other().addItems(users(1, 9)));
    await expect(late.applyHistoryTransaction({ ...operation, operationId: 'late' })).rejects.toMatchObject({
      code: 'session_suffix_mismatch',
    });
    expect(await contents(other())).toEqual(['1', '2', '9']);
  });

  it('of an end that is longer than the history is refused [SESS-035]', async () => {
    await other().addItems(users(1, 2));
    const transaction = { type: 'replace_suffix', expectedSuffix: users(2), replacement: users(1, 7) } as const;
    await expect(other().applyHistoryTransaction({ operationId: 'op', transaction })).rejects.toMatchObject({
      code: 'session_suffix_mismatch',
    });
    expect(await contents(other())).toEqual(['2']);
  });

  it('that another made under the same operation is that one [SESS-034]', async () => {
    await other().addItems(users(2));
    const replace = (session: MongoDBSession<object>): Promise<string> =>
      session.replaceHistory(users(1, 7), { operationId: 'op' });
    let first: string | undefined;
    const session = interrupted('updateOne', 'agent_sessions', async () => {
      first = await replace(other());
    });
    expect(await replace(session)).toBe(first);
    expect(await contents(other())).toEqual(['7']);
  });

  it('of a session that somebody makes meanwhile is lost [SESS-247]', async () => {
    const session = interrupted('insertOne', 'agent_sessions', () => other().addItems(users(1)));
    await expect(session.replaceHistory(users(3, 5))).rejects.toThrow(SessionVersionConflictError);
    expect(await contents(other())).toEqual(['1']);
  });

  it('carries along what is no text, and the texts that are no items [SESS-153]', async () => {
    await begunByPython(documents);
    await other().addItems(users(2));
    const strange = [5, 'no json', '{"role":"user","content":"3"}'];
    await documents.messages.insertOne({ _id: 'x', session_id: 's', seq: 9, generation: 0, message_data: strange });
    const transaction = { type: 'replace_suffix', expectedSuffix: users(1, 3), replacement: users(1, 4) } as const;
    await other().applyHistoryTransaction({ operationId: 'op', transaction });
    const stored = await documents.messages.find({ generation: { $gt: 0 } }).toArray();
    expect(stored.map(({ message_data }) => (message_data as unknown[]).slice(2))).toEqual([
      [5, 'no json', '{"role":"user","content":"4"}'],
    ]);
  });
});

describe('a life that is over', () => {
  // Without the index the server removes nothing.
  const living = (over = client): MongoDBSession<object> =>
    new MongoDBSession<object>('s', { client: over, database, ttlMs: 1_000_000, createIndexes: false });
  /** Two that find it over: the first one goes on when the other has begun the next life. */
  const second = (meanwhile: () => Promise<unknown>): MongoDBSession<object> => {
    let done = false;
    return living(
      hooked(client, async (name, on) => {
        if (done || name !== 'updateOne' || on !== 'agent_sessions') return;
        done = true;
        await meanwhile();
      }),
    );
  };
  beforeEach(async () => {
    await documents.sessions.createIndex({ session_id: 1 }, { unique: true });
    await living().addItems(users(1));
    await documents.sessions.updateOne({}, { $set: { expires_at: new Date(Date.now() - 1) } });
  });

  it('is followed by one, however many begin it at once [SESS-253]', async () => {
    const session = second(() => living().addItems(users(1, 7)));
    await session.addItems(users(1, 8));
    expect(await contents(living())).toEqual(['7', '8']);
  });

  it('is no version for an append when somebody else has begun the next one [SESS-037, 253]', async () => {
    const { version } = await living().readHistory();
    const session = second(() => living().addItems(users(1, 7)));
    await expect(session.appendIfVersion(version, users(1, 8))).rejects.toThrow(SessionVersionConflictError);
    expect(await contents(living())).toEqual(['7']);
  });
});

describe('a clear', () => {
  it('removes nothing that was appended after it [SESS-246]', async () => {
    await other().addItems(users(2));
    const session = interrupted('bulkWrite', 'agent_messages', () => other().addItems(users(1, 3)));
    await session.clearSession();
    expect(await contents(other())).toEqual(['3']);
    // The numbers go on.
    expect(await documents.sessions.findOne()).toMatchObject({ _seq: 3 });
  });
});

describe('a pop', () => {
  it('takes nothing of a history that was cleared meanwhile [SESS-245]', async () => {
    await other().addItems(users(2));
    const session = interrupted('updateOne', 'agent_sessions', async () => {
      await other().clearSession();
      await other().addItems(users(2, 8));
    });
    expect(await session.popItem()).toEqual(user('9'));
    expect(await contents(other())).toEqual(['8']);
  });

  const replaceEnd = (operationId: string, from: object[], to: object[]) => () =>
    other().applyHistoryTransaction({
      operationId,
      transaction: { type: 'replace_suffix', expectedSuffix: from, replacement: to },
    });

  it('has the item that it took before the end was replaced; the new end stays [SESS-010, 245, 247]', async () => {
    await other().addItems(users(3));
    const session = interrupted('updateOne', 'agent_sessions', replaceEnd('op', users(1, 2), users(1, 9)));
    expect(await session.popItem()).toEqual(user('3'));
    expect(await contents(other())).toEqual(['1', '9']);
    expect(await session.popItem()).toEqual(user('9'));
  });

  it('has it also when its batch was emptied, and swept away by another pop [SESS-010, 245]', async () => {
    for (const text of ['1', '2', '3']) await other().addItems([user(text)]);
    const session = interrupted('updateOne', 'agent_sessions', async () => {
      await other().popItem();
      await replaceEnd('op', users(1), users(1, 9))();
    });
    expect(await session.popItem()).toEqual(user('3'));
    expect(await contents(other())).toEqual(['9']);
  });

  it('takes from the new history when what it met first was replaced before [SESS-010, 245, 247]', async () => {
    // One is popped before, which tells nothing of this pop.
    await other().addItems(users(4));
    await other().popItem();
    // It finds the old batch, which is not removed yet.
    const replacing = interrupted('bulkWrite', 'agent_messages', async () => {
      expect(await other().popItem()).toEqual(user('9'));
    });
    await replacing.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users(1, 3), replacement: users(1, 9) },
    });
    expect(await contents(other())).toEqual(['1', '2']);
  });

  it.each([
    ['append', ['1', '9']],
    ['replace', ['9']],
  ] as const)(
    'has the item that it took before an import came, by %s [SESS-010, 245, 376]',
    async (ifExists, after) => {
      const store = new MongoDBSessionStore({ client, database });
      await new MongoDBSession('from', { client, database }).addItems(users(1, 9));
      await other().addItems(users(2));
      const session = interrupted('updateOne', 'agent_sessions', () =>
        store.import('s', store.export('from'), { ifExists }),
      );
      expect(await session.popItem()).toEqual(user('2'));
      expect(await contents(other())).toEqual(after);
    },
  );

  it.each([
    ['append', ['1', '2']],
    ['replace', []],
  ] as const)(
    'takes from the new history when an import had seen what it met first, by %s [SESS-010, 245, 376]',
    async (ifExists, after) => {
      await new MongoDBSession('from', { client, database }).addItems(users(1, 9));
      await other().addItems(users(2));
      let popped: Promise<unknown> | undefined;
      let over = (): void => undefined;
      const imported = new Promise<void>((resolve) => (over = resolve));
      // The import is about to become visible: a pop takes its item, and looks whether it counts when the import is over.
      const importing = hooked(client, async (name, on) => {
        if (popped !== undefined || name !== 'updateOne' || on !== 'agent_sessions') return;
        await new Promise<void>((taken) => {
          popped = interrupted('updateOne', 'agent_sessions', async () => {
            taken();
            await imported;
          }).popItem();
        });
      });
      const store = new MongoDBSessionStore({ client: importing, database });
      await store.import('s', store.export('from'), { ifExists });
      over();
      expect(await popped).toEqual(user('9'));
      expect(await contents(other())).toEqual(after);
    },
  );

  it('leaves the operations of a history that was replaced meanwhile known [SESS-034, 245]', async () => {
    const transaction = { type: 'append_items', items: users(1) } as const;
    await other().applyHistoryTransaction({ operationId: 'op', transaction });
    const session = interrupted('updateOne', 'agent_sessions', () => other().replaceHistory([]));
    expect(await session.popItem()).toEqual(user('1'));
    await other().applyHistoryTransaction({ operationId: 'op', transaction });
    expect(await contents(other())).toEqual([]);
  });

  it('leaves nothing of a batch that came after a clear, when it met that before it knew of the clear [SESS-245]', async () => {
    await begunByPython(documents);
    const session = other();
    await session.addItems(users(1));
    await session.getItems();
    await other().clearSession();
    await documents.messages.insertOne({ _id: 'late', session_id: 's', seq: 1, generation: 0, message_data: ['{}'] });
    expect(await session.popItem()).toBeUndefined();
    expect(await documents.messages.countDocuments()).toBe(0);
  });

  it('removes no batch that was put behind a new history meanwhile [SESS-245, 247]', async () => {
    await begunByPython(documents);
    await other().addItems(users(1));
    const texts = ['8', '9'].map((content) => JSON.stringify(user(content)));
    const late = { _id: 'late', session_id: 's', seq: 2, generation: 0, message_data: texts };
    await documents.messages.insertOne(late);
    const session = interrupted('updateOne', 'agent_sessions', async () => {
      await documents.messages.updateOne({ _id: 'late' }, { $set: { generation: 5, seq: 4 } });
      await documents.sessions.updateOne({}, { $set: { _generation: 5, _seq: 5 } });
    });
    expect(await session.popItem()).toMatchObject({ content: expect.stringMatching(/^[89]$/) });
  });

  it('finds the history that came into its place before [SESS-245]', async () => {
    const session = other();
    await session.addItems(users(2));
    await other().replaceHistory(users(2, 5));
    expect(await session.popItem()).toEqual(user('6'));
    await other().clearSession();
    expect(await session.popItem()).toBeUndefined();
  });
});

describe('a read', () => {
  it('gives one history, whatever comes into its place while it reads [SESS-243]', async () => {
    const session = other();
    await session.addItems(users(300));
    // What it reads is gone before it looks which generation counts.
    const reading = interrupted('findOne', 'agent_sessions', () => other().replaceHistory(users(2, 1000)));
    expect(await reading.getItems()).toEqual(users(2, 1000));
    const again = interrupted('findOne', 'agent_sessions', () => other().clearSession());
    expect(await again.getItems()).toEqual([]);
  });
});
