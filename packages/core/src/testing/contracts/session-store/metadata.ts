import { check, same } from '../case.ts';
import { all, DAY, idsOf, turns, user } from './scene.ts';
import type { StoreCase } from './scene.ts';

export const metadata: readonly StoreCase[] = [
  {
    id: 'M1',
    title: 'metadata is merged, and null removes a member',
    async body(scene) {
      const store = await scene.filled(turns(1));
      same((await store.get(scene.id))?.metadata, undefined, 'metadata at first');
      await store.setMetadata(scene.id, { title: 'Grüße 😀', tags: ['a', { b: 1 }], done: false });
      await store.setMetadata(scene.id, { done: true, tags: null, count: 2 });
      same((await store.get(scene.id))?.metadata, { title: 'Grüße 😀', done: true, count: 2 }, 'metadata');
      same((await store.list()).sessions[0]?.metadata, { title: 'Grüße 😀', done: true, count: 2 }, 'in the list');
      await store.setMetadata(scene.id, { title: null, done: null, count: null });
      same((await store.get(scene.id))?.metadata ?? {}, {}, 'metadata without members');
    },
  },
  {
    id: 'M2',
    title: 'metadata stays while the history changes, and goes with it',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await store.setMetadata(scene.id, { tag: 1 });
      const session = store.session(scene.id);
      await session.addItems([user('more')]);
      await session.popItem();
      same((await store.get(scene.id))?.metadata, { tag: 1 }, 'metadata after an append and a pop');
      same(await session.getItems(), turns(1), 'items');
      for (let left = turns(1).length; left >= 0; left--) await session.popItem();
      same(
        [(await store.get(scene.id))?.itemCount, (await store.get(scene.id))?.metadata],
        [0, { tag: 1 }],
        'itemCount and metadata after a pop of nothing',
      );
      await session.addItems(turns(1));
      await session.clearSession();
      same((await store.get(scene.id))?.metadata, undefined, 'metadata after clear');
    },
  },
  {
    id: 'M3',
    title: 'metadata of an unknown session makes one without items',
    async body(scene) {
      const store = await scene.open();
      await store.setMetadata(scene.id, { tag: 1 });
      const info = await store.get(scene.id);
      same([info?.itemCount, info?.metadata], [0, { tag: 1 }], 'itemCount and metadata');
      await store.session(scene.id).addItems(turns(1));
      same((await store.get(scene.id))?.metadata, { tag: 1 }, 'metadata after an append');
    },
  },
  {
    id: 'M4',
    title: 'patches at once are all merged',
    async body(scene) {
      const [store, other] = [await scene.filled(turns(1)), await scene.open()];
      await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          await (index % 2 === 0 ? store : other).setMetadata(scene.id, { [`m${index}`]: index });
        }),
      );
      const found = (await store.get(scene.id))?.metadata ?? {};
      same(
        Object.keys(found).toSorted(),
        Array.from({ length: 10 }, (_, index) => `m${index}`),
        'members',
      );
    },
  },
  {
    id: 'M5',
    title: 'metadata is a copy, and odd names are data',
    async body(scene) {
      const store = await scene.filled(turns(1));
      const patch = JSON.parse('{"__proto__":{"polluted":true},"a.b":1,"$set":2,"":3}') as Record<string, unknown>;
      await store.setMetadata(scene.id, patch);
      patch['a.b'] = 'changed';
      const found = (await store.get(scene.id))?.metadata ?? {};
      same([found['a.b'], found['$set'], found['']], [1, 2, 3], 'members');
      check(Object.hasOwn(found, '__proto__'), 'an own member __proto__');
      check(({} as { polluted?: unknown }).polluted === undefined, 'Object.prototype to be untouched');
    },
  },
  {
    id: 'M6',
    title: 'metadata is no use of a session, and one that it makes has its times',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await scene.age(scene.id, DAY);
      const before = await store.get(scene.id);
      await store.session(`${scene.id}-newer`).addItems([user('x')]);
      await store.setMetadata(scene.id, { tag: 1 });
      const after = await store.get(scene.id);
      same([after?.createdAt, after?.updatedAt], [before?.createdAt, before?.updatedAt], 'times');
      if (scene.fixture.ordered !== false)
        same(idsOf(await all(store)), [`${scene.id}-newer`, scene.id], 'ids by the last update');
      await store.setMetadata(`${scene.id}-made`, { tag: 1 });
      const { createdAt, updatedAt } = (await store.get(`${scene.id}-made`)) ?? {};
      for (const [name, time] of Object.entries({ createdAt, updatedAt }))
        check(time !== undefined && Math.abs(Date.now() - time.getTime()) < DAY / 2, `${name} of now`);
    },
  },
];
