import { check, refuses, rejection, same } from '../case.ts';
import { all, DAY, idsOf, turns, user } from './scene.ts';
import type { AnyStore, StoreCase, StoreScene } from './scene.ts';

/** Sessions `id-1` … `id-n`; where the fixture can, the last one is the newest. */
async function several(scene: StoreScene, count: number): Promise<{ store: AnyStore; ids: string[] }> {
  const store = await scene.open();
  const ids = Array.from({ length: count }, (_, index) => `${scene.id}-${String(index + 1).padStart(2, '0')}`);
  for (const id of ids) await store.session(id).addItems([user(id)]);
  return { store, ids };
}

async function aged(scene: StoreScene, count: number): Promise<{ store: AnyStore; ids: string[] }> {
  const made = await several(scene, count);
  for (const [index, id] of made.ids.entries()) await scene.age(id, (count - index) * DAY);
  return made;
}

export const lists: readonly StoreCase[] = [
  {
    id: 'L1',
    title: 'pages hold every session once',
    async body(scene) {
      const { store, ids } = await several(scene, 7);
      const listed = idsOf(await all(store, { limit: 3 }));
      same([...new Set(listed)].toSorted(), ids, 'ids');
      if (scene.fixture.ordered !== false) same(listed.length, ids.length, 'count of entries');
    },
  },
  {
    id: 'L2',
    title: 'the last updated come first, by default',
    async body(scene) {
      scene.needsOrder();
      const { store, ids } = await aged(scene, 5);
      same(idsOf(await all(store, { limit: 2 })), ids.toReversed(), 'ids');
      await store.session(ids[1] ?? '').addItems([user('again')]);
      same(idsOf(await all(store))[0], ids[1], 'the first id after an append');
    },
  },
  {
    id: 'L3',
    title: 'sessions are listed by creation and by id',
    async body(scene) {
      scene.needsOrder();
      const { store, ids } = await aged(scene, 4);
      // The oldest is updated last: each page has to go on by the time that it is ordered by.
      for (const id of ids.toReversed()) await store.session(id).addItems([user('again')]);
      for (const limit of [1, 3])
        same(idsOf(await all(store, { order: 'created', limit })), ids.toReversed(), `ids by creation, by ${limit}`);
      same(idsOf(await all(store, { order: 'id', limit: 3 })), ids, 'ids in their order');
      const { createdAt, updatedAt } = (await store.get(ids[0] ?? '')) ?? {};
      check(createdAt !== undefined && Date.now() - createdAt.getTime() > 3 * DAY, 'a creation some days ago');
      check(updatedAt !== undefined && Date.now() - updatedAt.getTime() < DAY, 'an update just now');
    },
  },
  {
    id: 'L4',
    title: 'a prefix is taken literally',
    async body(scene) {
      const store = await scene.open();
      const { id } = scene;
      const ids = [`${id}a%b`, `${id}a_b`, `${id}a*b`, `${id}axb`, `${id}A%b`, `${id}[a]`, `${id}a\\b`];
      for (const one of ids) await store.session(one).addItems([user('x')]);
      for (const one of ids.slice(0, 3)) same(idsOf(await all(store, { prefix: one })), [one], `ids with '${one}'`);
      for (const one of ids.slice(4)) same(idsOf(await all(store, { prefix: one })), [one], `ids with '${one}'`);
      same(idsOf(await all(store, { prefix: `${id}a` })).length, 5, `count with '${id}a'`);
    },
  },
  {
    id: 'L5',
    title: 'sessions are found by their metadata',
    async body(scene) {
      const { store, ids } = await several(scene, 6);
      for (const [index, id] of ids.entries())
        await store.setMetadata(id, { tenant: index % 2 === 0 ? 'even' : 'odd', nested: { index } });
      const even = ids.filter((_, index) => index % 2 === 0);
      same(new Set(idsOf(await all(store, { metadata: { tenant: 'even' }, limit: 2 }))).size, 3, 'count of even ones');
      same(idsOf(await all(store, { metadata: { tenant: 'even' } })).toSorted(), even, 'even ones');
      same(
        idsOf(await all(store, { metadata: { tenant: 'odd', nested: { index: 3 } } })),
        [ids[3]],
        'the one with two equal members',
      );
      same(await all(store, { metadata: { tenant: 'other' } }), [], 'none');
      same(await all(store, { metadata: { toString: 'x' } }), [], 'none with an odd name');
    },
  },
  {
    id: 'L6',
    title: 'sessions are found by the time of their last update',
    async body(scene) {
      const { store, ids } = await aged(scene, 4);
      const time = (days: number): Date => new Date(Date.now() - (days - 0.5) * DAY);
      same(idsOf(await all(store, { updatedBefore: time(3) })).toSorted(), ids.slice(0, 2), 'those before');
      same(idsOf(await all(store, { updatedAfter: time(3) })).toSorted(), ids.slice(2), 'those after');
      same(
        idsOf(await all(store, { updatedAfter: time(4), updatedBefore: time(2) })).toSorted(),
        ids.slice(1, 3),
        'those between',
      );
      // An old session that was used just now.
      await store.session(ids[0] ?? '').addItems([user('again')]);
      same(
        idsOf(await all(store, { updatedBefore: time(3) })),
        ids.slice(1, 2),
        'those before, but for one used since',
      );
      same(idsOf(await all(store, { updatedAfter: time(1) })), ids.slice(0, 1), 'the one that was used since');
    },
  },
  {
    id: 'L7',
    title: 'pages stay stable while sessions come and go',
    async body(scene) {
      scene.needsOrder();
      const { store, ids } = await aged(scene, 6);
      const first = await store.list({ limit: 2 });
      await store.session(`${scene.id}-00`).addItems([user('new')]);
      await store.delete(ids[5] ?? '');
      check(first.cursor !== undefined, 'a cursor');
      const second = await store.list({ limit: 10, cursor: first.cursor });
      same(idsOf(second.sessions), ids.slice(0, 4).toReversed(), 'ids of the second page');
      check(second.cursor === undefined, 'no cursor at the end');
    },
  },
  {
    id: 'L8',
    title: 'a cursor belongs to its query',
    async body(scene) {
      const { store } = await several(scene, 4);
      const { cursor } = await store.list({ limit: 1 });
      check(cursor !== undefined, 'a cursor');
      await rejection(() => store.list({ cursor, prefix: scene.id }), 'a cursor with another prefix');
      await rejection(() => store.list({ cursor, order: 'id' }), 'a cursor with another order');
      await rejection(() => store.list({ cursor: `${cursor}x` }), 'a changed cursor');
      // The size of a page may change.
      await store.list({ cursor, limit: 2, withCount: true });
    },
  },
  {
    id: 'L9',
    title: 'items are counted when it is asked for',
    async body(scene) {
      const store = await scene.filled(turns(2));
      same((await store.list({ withCount: true })).sessions[0]?.itemCount, 10, 'itemCount');
    },
  },
  {
    id: 'L10',
    title: 'ids that look like patterns, names or numbers are found as they are',
    async body(scene) {
      const store = await scene.open();
      const ids = ["Robert'); DROP TABLE students;--", 'a%_*?[x]', 'ü 😀', '007', `${scene.id}:x`, 'line\nbreak'];
      for (const id of ids) await store.session(id).addItems([user(id)]);
      same(idsOf(await all(store, { limit: 2 })).toSorted(), ids.toSorted(), 'ids');
      for (const id of ids) same((await store.get(id))?.sessionId, id, 'id');
      await refuses(() => store.get('\ud800'), 'session_id_invalid', 'get() of an id that is no text');
    },
  },
  {
    id: 'L11',
    title: 'the very time that is asked for belongs to what comes after it',
    async body(scene) {
      const { store, ids } = await aged(scene, 3);
      const time = (await store.get(ids[1] ?? ''))?.updatedAt;
      check(time !== undefined, 'a time of the last update');
      same(
        idsOf(await all(store, { updatedAfter: time })).toSorted(),
        ids.slice(1),
        'those after, and the one of then',
      );
      same(idsOf(await all(store, { updatedBefore: time })), ids.slice(0, 1), 'those before');
    },
  },
  {
    id: 'L12',
    title: 'appending nothing makes no session, and is no use of one',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await scene.age(scene.id, DAY);
      const before = await store.get(scene.id);
      const unknown = store.session(`${scene.id}-unknown`);
      await unknown.addItems([]);
      await store.session(scene.id).addItems([]);
      check((await store.get(`${scene.id}-unknown`)) === undefined, 'get() to find no session');
      same(idsOf(await all(store)), [scene.id], 'sessions');
      same((await store.get(scene.id))?.updatedAt, before?.updatedAt, 'the last update');
    },
  },
];
