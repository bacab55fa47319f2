import { supports } from '../../../sessions/contract.ts';
import type { Session, TransactionalSession } from '../../../sessions/contract.ts';
import { check, same, skip } from '../case.ts';
import { lookWhile } from '../session/scene.ts';
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
      // What goes is not cut before: its items count once.
      const both = { idleForMs: 30 * DAY, maxItems: 6, dryRun: true };
      same(await store.prune(both), { sessions: 1, items: 10 }, 'dry run with both limits');
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
      const oldest = new Date(Date.now() - 35 * DAY);
      same(
        await store.prune({ olderThan: oldest, idleForMs: 5 * DAY }),
        { sessions: 0, items: 0 },
        'a date that none passed',
      );
      same(await store.prune({ olderThan, idleForMs: 25 * DAY }), { sessions: 1, items: 1 }, 'both limits');
      const then = (await store.get(`${scene.id}-20`))?.updatedAt;
      check(then !== undefined, 'a time of the last update');
      for (const dryRun of [true, false])
        same(await store.prune({ olderThan: then, dryRun }), { sessions: 0, items: 0 }, 'the very time of an update');
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
      // Behind the third message there is no other to begin at; at it, an output would lose its call.
      const last = [user('1'), answer('1'), user('2'), call('late'), user('3'), output('late'), answer('3')];
      // An output that never had a call holds up nothing.
      const stray = [user('1'), answer('1'), user('2'), output('stray'), answer('2')];
      const store = await scene.filled(late);
      await store.session(`${scene.id}-one`).addItems(turns(1));
      await store.session(`${scene.id}-last`).addItems(last);
      await store.session(`${scene.id}-stray`).addItems(stray);
      // Four would begin at an output whose call is gone: it goes too, and the next turn is the first.
      same(await store.prune({ maxItems: 5 }), { sessions: 0, items: 7 }, 'what was pruned');
      same(await store.session(scene.id).getItems(), late.slice(5), 'items');
      await store.prune({ maxItems: 2 });
      same(await store.session(`${scene.id}-last`).getItems(), last.slice(2), 'items from the last turn that is whole');
      same(await store.session(`${scene.id}-stray`).getItems(), stray.slice(2), 'items with an output without a call');
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
      await store.session(`${scene.id}-newer`).addItems([user('x')]);
      const before = await store.get(scene.id);
      await store.prune({ maxItems: 5 });
      const after = await store.get(scene.id);
      same(after?.itemCount, 5, 'itemCount');
      same([after?.createdAt, after?.updatedAt], [before?.createdAt, before?.updatedAt], 'times');
      same(after?.metadata, { tag: 1 }, 'metadata');
      check(Date.now() - (after?.updatedAt?.getTime() ?? 0) > 9 * DAY, 'an update of ten days ago');
      if (scene.fixture.ordered !== false)
        same(idsOf(await all(store)), [`${scene.id}-newer`, scene.id], 'ids by the last update');
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
  {
    id: 'P7',
    title: 'a session that is used while prune goes on keeps what was appended',
    async body(scene) {
      const store = await scene.open();
      const ids = Array.from({ length: 60 }, (_, index) => `${scene.id}-${String(index).padStart(2, '0')}`);
      await Promise.all(ids.map((id) => store.session(id).addItems([user('old')])));
      for (const id of ids) await scene.age(id, 40 * DAY);
      const used: string[] = [];
      const use = async (id: string | undefined): Promise<void> => {
        if (id === undefined) return;
        await store.session(id).addItems([user('new')]);
        used.push(id);
      };
      // Some as soon as they were listed, the others one by one, the last to be deleted first.
      const first = ids.splice(-30);
      const pruned = store.prune({ idleForMs: 30 * DAY });
      const uses = first.map(use);
      await lookWhile(pruned, async () => await use(ids.pop()));
      await Promise.all(uses);
      for (const id of used) {
        const items = await store.session(id).getItems();
        same(items.at(-1), user('new'), 'the item that was appended meanwhile');
        // Deleted before the append or kept: never in parts.
        check(items.length <= 2, 'one or two items');
        same((await store.get(id))?.itemCount, items.length, 'itemCount');
      }
      const { sessions } = await pruned;
      const left = new Set(idsOf(await all(store))).size;
      check(left >= used.length && left <= 60, `the ${used.length} sessions that were used, not ${left}`);
      check(sessions >= 60 - left, `at least ${60 - left} deleted sessions, not ${sessions}`);
    },
  },
  {
    id: 'P8',
    title: 'what a session remembers of operations goes with it',
    async body(scene) {
      const store = await scene.open();
      const append = async (): Promise<void> => {
        const session: Session<object> = store.session(scene.id);
        if (!supports(session, 'transactions')) skip("the sessions have no capability 'transactions'");
        const transaction = { type: 'append_items', items: turns(1) } as const;
        await (session as TransactionalSession<object>).applyHistoryTransaction({ operationId: 'op', transaction });
      };
      await append();
      await store.delete(scene.id);
      await append();
      same(await store.session(scene.id).getItems(), turns(1), 'items of the same operation after delete()');
      await scene.age(scene.id, 40 * DAY);
      await store.prune({ idleForMs: 30 * DAY });
      await append();
      same(await store.session(scene.id).getItems(), turns(1), 'items of the same operation after prune()');
    },
  },
  {
    id: 'P9',
    title: 'reading a session is no use of it',
    async body(scene) {
      const store = await scene.filled(turns(2));
      await scene.age(scene.id, 40 * DAY);
      const session = store.session(scene.id);
      await session.getItems();
      await session.getItems(1);
      await store.list({ withCount: true });
      for await (const line of store.export(scene.id)) check(line.endsWith('\n'), 'lines');
      await store.fork(scene.id, `${scene.id}-copy`);
      same(await store.prune({ idleForMs: 30 * DAY }), { sessions: 1, items: 10 }, 'what was pruned');
      same(idsOf(await all(store)), [`${scene.id}-copy`], 'sessions');
    },
  },
];
