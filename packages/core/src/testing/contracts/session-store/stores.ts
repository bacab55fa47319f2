import { check, refuses, rejection, same } from '../case.ts';
import { sessionCalls } from '../session-calls.ts';
import { all, idsOf, turns, user } from './scene.ts';
import type { AnyStore, StoreCase } from './scene.ts';

export const stores: readonly StoreCase[] = [
  {
    id: 'S1',
    title: 'sessions of one id share their history, those of others do not',
    async body(scene) {
      const store = await scene.open();
      const [first, second] = [store.session(scene.id), store.session(scene.id)];
      await first.addItems(turns(1));
      same(await second.getItems(), turns(1), 'items of the second object');
      same(await store.session(`${scene.id}-other`).getItems(), [], 'items of another id');
    },
  },
  {
    id: 'S2',
    title: 'a second store sees the same sessions',
    async body(scene) {
      await scene.filled(turns(1));
      const other = await scene.open();
      same(await other.session(scene.id).getItems(), turns(1), 'items');
      same((await other.get(scene.id))?.itemCount, 5, 'itemCount');
    },
  },
  {
    id: 'S3',
    title: 'a session has the settings that it was asked for with',
    async body(scene) {
      const store = await scene.filled(turns(2));
      same(
        await store.session(scene.id, { sessionSettings: { limit: 1 } }).getItems(),
        turns(2).slice(-1),
        'items of a session with limit 1',
      );
    },
  },
  {
    id: 'S4',
    title: 'asking for a session makes none',
    async body(scene) {
      const store = await scene.open();
      same(await store.session(scene.id).getItems(), [], 'items');
      check((await store.get(scene.id)) === undefined, 'get() to find no session');
      same((await store.list()).sessions, [], 'list');
    },
  },
  {
    id: 'S5',
    title: 'get tells times and the count of items',
    async body(scene) {
      const before = Date.now();
      const store = await scene.filled(turns(2));
      const info = await store.get(scene.id);
      same([info?.sessionId, info?.itemCount], [scene.id, 10], 'id and itemCount');
      const times = [info?.createdAt, info?.updatedAt].map((time) => time?.getTime() ?? Number.NaN);
      // Clocks of servers differ, and some stores keep whole seconds.
      for (const time of times) check(Math.abs(time - before) < 60_000, 'times of now');
    },
  },
  {
    id: 'S6',
    title: 'delete takes items, metadata and the session, and tells whether there was one',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await store.setMetadata(scene.id, { tag: 'x' });
      await store.session(`${scene.id}-other`).addItems([user('stays')]);
      await store.setMetadata(`${scene.id}-other`, { tag: 'y' });
      same(await store.delete(scene.id), true, 'delete() of a session');
      same(await store.delete(scene.id), false, 'delete() of no session');
      check((await store.get(scene.id)) === undefined, 'get() to find no session');
      same(await store.session(scene.id).getItems(), [], 'items');
      same(await store.session(`${scene.id}-other`).getItems(), [user('stays')], 'items of the other session');
      same((await store.get(`${scene.id}-other`))?.metadata, { tag: 'y' }, 'metadata of the other session');
      await store.session(scene.id).addItems([user('anew')]);
      same((await store.get(scene.id))?.metadata, undefined, 'metadata of the new session');
      await store.setMetadata(`${scene.id}-empty`, { tag: 1 });
      same(await store.delete(`${scene.id}-empty`), true, 'delete() of a session without items');
      same(await store.get(`${scene.id}-empty`), undefined, 'get() of it afterwards');
    },
  },
  {
    id: 'S7',
    title: 'wrong arguments are refused',
    async body(scene) {
      const store = await scene.filled(turns(1));
      const calls: Record<string, () => Promise<unknown>> = {
        'session() of a blank id': async () => store.session(' '),
        'session() with unknown options': async () => store.session(scene.id, { limit: 1 } as never),
        'get() of a blank id': () => store.get(' '),
        'list() with limit 0': () => store.list({ limit: 0 }),
        'list() with a wrong order': () => store.list({ order: 'size' as never }),
        'list() with unknown members': () => store.list({ perfix: 'x' } as never),
        'list() with an invalid date': () => store.list({ updatedAfter: new Date(Number.NaN) }),
        'list() with a cursor of nowhere': () => store.list({ cursor: 'nowhere' }),
        'setMetadata() of no object': () => store.setMetadata(scene.id, [] as never),
        'setMetadata() of no JSON': () => store.setMetadata(scene.id, { big: 1n }),
        'fork() to itself': () => store.fork(scene.id, scene.id),
        'fork() until turn 0': () => store.fork(scene.id, `${scene.id}-2`, { untilTurn: 0 }),
        'prune() without a limit': () => store.prune({}),
        'prune() to no items': () => store.prune({ maxItems: 0 }),
      };
      for (const [name, call] of Object.entries(calls)) {
        const error = await rejection(call, name);
        same(error['name'], 'UserError', `name of the error of ${name}`);
      }
      same(await store.session(scene.id).getItems(), turns(1), 'items');
    },
  },
  {
    id: 'S8',
    title: 'close is final for a client of its own, and does nothing for one that was handed in',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await Promise.all([store.close(), store.close()]);
      await store.close();
      const calls: readonly (() => Promise<unknown>)[] = [
        () => store.list(),
        () => store.get(scene.id),
        () => store.check(),
        () => store.setMetadata(scene.id, { a: 1 }),
        () => store.prune({ maxItems: 100 }),
      ];
      const ends = await Promise.all(calls.map((call) => codeOf(call)));
      const closed = ends.map((code) => code === 'session_closed');
      if (closed.includes(true)) check(!closed.includes(false), 'every call after close() to reject');
      else
        same(
          ends,
          ends.map(() => undefined),
          'codes of calls after close() with a client that was handed in',
        );
      await asyncDispose(await scene.open());
    },
  },
  {
    id: 'S9',
    title: 'check gives a list of texts',
    async body(scene) {
      const advice: unknown = await (await scene.filled(turns(1))).check();
      check(Array.isArray(advice) && advice.every((line) => typeof line === 'string'), 'an array of strings');
    },
  },
  {
    id: 'S10',
    title: 'a session that was cleared is none, until something is written to it',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await store.setMetadata(scene.id, { tag: 1 });
      await store.session(`${scene.id}-other`).addItems([user('stays')]);
      const cleared = [scene.id, `${scene.id}-unknown`, `${scene.id}-copy`, `${scene.id}-named`];
      for (const id of cleared) await store.session(id).clearSession();
      check((await store.get(scene.id)) === undefined, 'get() to find no session');
      same(idsOf(await all(store)), [`${scene.id}-other`], 'sessions');
      same(await store.delete(scene.id), false, 'delete() of a session that was cleared');
      const dry = await store.prune({ olderThan: new Date(Date.now() + 60_000), dryRun: true });
      same(dry, { sessions: 1, items: 1 }, 'what prune would delete');

      await store.session(scene.id).addItems([user('anew')]);
      same((await store.get(scene.id))?.itemCount, 1, 'itemCount after an append');
      same((await store.get(scene.id))?.metadata, undefined, 'metadata after an append');
      await store.fork(scene.id, `${scene.id}-copy`);
      same((await store.get(`${scene.id}-copy`))?.itemCount, 1, 'itemCount of a fork to an id that was cleared');
      await store.setMetadata(`${scene.id}-named`, { tag: 2 });
      same((await store.get(`${scene.id}-named`))?.metadata, { tag: 2 }, 'metadata that was set after the clear');
      same((await store.get(`${scene.id}-named`))?.itemCount, 0, 'itemCount of a session of metadata alone');
      await store.session(scene.id).popItem();
      same((await store.get(scene.id))?.itemCount, 0, 'itemCount of a session of which all was popped');
      same(
        idsOf(await all(store)).toSorted(),
        ['', '-copy', '-named', '-other'].map((suffix) => scene.id + suffix),
        'sessions that were written to again',
      );
    },
  },
  {
    id: 'S11',
    title: 'sessions end with their store, also where another store holds the same place',
    async body(scene) {
      const store = await scene.filled(turns(1));
      const other = await scene.open();
      await other.session(scene.id).addItems([user('2')]);
      const given = store.session(scene.id);
      const forked = await store.fork(scene.id, `${scene.id}-copy`);
      const lines = store.export(scene.id)[Symbol.asyncIterator]();
      // What was called before still ends.
      const before = [given.addItems([user('3')]), given.addItems([user('4')])];
      // A list may be many steps: the next one finds the store closed.
      const listed = codeOf(() => store.list());
      await store.close();
      await Promise.all(before);
      check([undefined, 'session_closed'].includes((await listed) as string | undefined), 'a list, or session_closed');
      const isClosed = (await codeOf(() => store.list())) === 'session_closed';
      for (const session of [given, forked]) {
        if (!isClosed) await session.addItems([user('later')]);
        else
          for (const [name, call] of Object.entries(sessionCalls(session)))
            await refuses(call, 'session_closed', `${name} of a session whose store was closed`);
        if ('closed' in session) same(session.closed, isClosed, 'closed of the session');
      }
      if (isClosed) {
        await refuses(async () => await lines.next(), 'session_closed', 'an export whose store was closed');
        await refuses(async () => store.session(scene.id), 'session_closed', 'session() of a store that was closed');
      }
      const left = await other.session(scene.id).getItems();
      if (isClosed) same(left, [...turns(1), user('2'), user('3'), user('4')], 'items in the other store');
    },
  },
];

async function codeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code ?? 'none';
  }
}

async function asyncDispose(store: AnyStore): Promise<void> {
  await store[Symbol.asyncDispose]();
}
