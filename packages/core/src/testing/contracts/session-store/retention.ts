import { check, same } from '../case.ts';
import { all, answer, call, DAY, idsOf, output, turns, user } from './scene.ts';
import type { StoreCase } from './scene.ts';

export const retention: readonly StoreCase[] = [
  {
    id: 'P1',
    title: 'prune deletes sessions that were idle for long, with all that belongs to them',
    async body(scene) {
      const store = await scene.filled(turns(2), `${scene.id}-old`);
      await store.setMetadata(`${scene.id}-old`, { tag: 1 });
      await store.session(`${scene.id}-new`).addItems(turns(1));
      await scene.age(`${scene.id}-old`, 40 * DAY);
      same(await store.prune({ idleForMs: 30 * DAY, dryRun: true }), { sessions: 1, items: 10 }, 'dry run');
      same(idsOf(await all(store)).length, 2, 'count of sessions after the dry run');
      same(await store.prune({ idleForMs: 30 * DAY }), { sessions: 1, items: 10 }, 'what was pruned');
      same(idsOf(await all(store)), [`${scene.id}-new`], 'sessions');
      same(await store.session(`${scene.id}-old`).getItems(), [], 'items of the old one');
      await store.session(`${scene.id}-old`).addItems([user('anew')]);
      same((await store.get(`${scene.id}-old`))?.metadata, undefined, 'metadata of the new session');
      same(await store.prune({ idleForMs: 30 * DAY }), { sessions: 0, items: 0 }, 'what was pruned then');
    },
  },
  {
    id: 'P2',
    title: 'prune deletes sessions that were last updated before a day',
    async body(scene) {
      const store = await scene.open();
      for (const days of [10, 20, 30]) {
        await store.session(`${scene.id}-${days}`).addItems([user('x')]);
        await scene.age(`${scene.id}-${days}`, days * DAY);
      }
      const olderThan = new Date(Date.now() - 15 * DAY);
      same(await store.prune({ olderThan, idleForMs: 25 * DAY }), { sessions: 1, items: 1 }, 'both limits');
      same(await store.prune({ olderThan }), { sessions: 1, items: 1 }, 'one limit');
      same(idsOf(await all(store)), [`${scene.id}-10`], 'sessions');
    },
  },
  {
    id: 'P3',
    title: 'prune cuts long sessions at a turn',
    async body(scene) {
      const store = await scene.filled(turns(4));
      await store.session(`${scene.id}-short`).addItems(turns(2));
      same(await store.prune({ maxItems: 12, dryRun: true }), { sessions: 0, items: 10 }, 'dry run');
      same(await store.prune({ maxItems: 12 }), { sessions: 0, items: 10 }, 'what was pruned');
      same(await store.session(scene.id).getItems(), turns(4).slice(10), 'items');
      same(await store.session(`${scene.id}-short`).getItems(), turns(2), 'items of the short one');
      same(await store.prune({ maxItems: 12 }), { sessions: 0, items: 0 }, 'what was pruned then');
    },
  },
  {
    id: 'P4',
    title: 'prune never parts a call from its output, nor a turn',
    async body(scene) {
      const late = [user('1'), call('late'), user('2'), output('late'), answer('done'), user('3'), answer('3')];
      const store = await scene.filled(late);
      await store.session(`${scene.id}-one`).addItems(turns(1));
      // Four would begin at an output whose call is gone: it goes too, and the next turn is the first.
      same(await store.prune({ maxItems: 5 }), { sessions: 0, items: 5 }, 'what was pruned');
      same(await store.session(scene.id).getItems(), late.slice(5), 'items');
      await store.prune({ maxItems: 3 });
      same(await store.session(`${scene.id}-one`).getItems(), turns(1), 'items of a session of one turn');
    },
  },
  {
    id: 'P5',
    title: 'a session that was cut does not count as used',
    async body(scene) {
      const store = await scene.filled(turns(4));
      await scene.age(scene.id, 10 * DAY);
      await store.setMetadata(scene.id, { tag: 1 });
      const before = await store.get(scene.id);
      await store.prune({ maxItems: 5 });
      const after = await store.get(scene.id);
      same(after?.itemCount, 5, 'itemCount');
      same([after?.createdAt, after?.updatedAt], [before?.createdAt, before?.updatedAt], 'times');
      same(after?.metadata, { tag: 1 }, 'metadata');
      check(Date.now() - (after?.updatedAt?.getTime() ?? 0) > 9 * DAY, 'an update of ten days ago');
    },
  },
  {
    id: 'P6',
    title: 'prune goes through many sessions',
    async body(scene) {
      const store = await scene.open();
      const ids = Array.from({ length: 60 }, (_, index) => `${scene.id}-${index}`);
      await Promise.all(ids.map((id) => store.session(id).addItems(turns(3))));
      same(await store.prune({ maxItems: 5 }), { sessions: 0, items: 600 }, 'what was pruned');
    },
  },
];
