import { check, same } from '../case.ts';
import { user, users } from './scene.ts';
import type { SessionCase } from './scene.ts';

export const basics: readonly SessionCase[] = [
  {
    id: 'A1',
    title: 'an unknown session is empty',
    async body(scene) {
      same(await (await scene.open()).getItems(), [], 'items');
    },
  },
  {
    id: 'A2',
    title: 'items come back in the order in which they were appended',
    async body(scene) {
      const session = await scene.filled(users(3));
      same(await session.getItems(), users(3), 'items');
    },
  },
  {
    id: 'A3',
    title: 'appends accumulate',
    async body(scene) {
      const session = await scene.filled(users(2));
      await session.addItems(users(2, 3));
      await session.addItems(users(1, 5));
      same(await session.getItems(), users(5), 'items');
    },
  },
  {
    id: 'A4',
    title: 'a batch keeps its order',
    async body(scene) {
      const batch = users(40).toReversed();
      same(await (await scene.filled(batch)).getItems(), batch, 'items');
    },
  },
  {
    id: 'A5',
    title: 'pop removes and returns the newest item',
    async body(scene) {
      const session = await scene.filled(users(3));
      same(await session.popItem(), user('3'), 'popped');
      same(await session.getItems(), users(2), 'items left');
    },
  },
  {
    id: 'A6',
    title: 'pop on an empty session gives undefined',
    async body(scene) {
      check((await (await scene.open()).popItem()) === undefined, 'undefined from popItem()');
    },
  },
  {
    id: 'A7',
    title: 'a session that was popped empty can be filled again',
    async body(scene) {
      const session = await scene.filled(users(2));
      await session.popItem();
      await session.popItem();
      same(await session.getItems(), [], 'items after the pops');
      await session.addItems(users(1, 9));
      same(await session.getItems(), users(1, 9), 'items');
    },
  },
  {
    id: 'A8',
    title: 'clear removes everything and the object stays usable',
    async body(scene) {
      const session = await scene.filled(users(3));
      await session.clearSession();
      same(await session.getItems(), [], 'items after clear');
      await session.addItems(users(1));
      same(await session.getItems(), users(1), 'items');
    },
  },
  {
    id: 'A9',
    title: 'clearing an unknown session succeeds',
    async body(scene) {
      const session = await scene.open();
      await session.clearSession();
      same(await session.getItems(), [], 'items');
    },
  },
  {
    id: 'A10',
    title: 'appending nothing changes nothing',
    async body(scene) {
      const session = await scene.filled(users(1));
      await session.addItems([]);
      same(await session.getItems(), users(1), 'items');
    },
  },
  {
    id: 'A11',
    title: 'sessions of other ids see nothing, however alike the ids are',
    async body(scene) {
      const session = await scene.filled(users(2));
      for (const other of await scene.alike()) {
        same(await other.getItems(), [], `items of '${other.sessionId}'`);
        check((await other.popItem()) === undefined, `nothing to pop from '${other.sessionId}'`);
        await other.addItems(users(1, 7));
      }
      same(await session.getItems(), users(2), 'items of the session');
    },
  },
  {
    id: 'A12',
    title: 'clearing one session leaves the others intact',
    async body(scene) {
      const session = await scene.filled(users(2));
      const others = await scene.alike();
      for (const other of others) await other.addItems(users(1, 7));
      await others[0]?.clearSession();
      same(await session.getItems(), users(2), 'items of the session');
      await session.clearSession();
      for (const other of others.slice(1)) same(await other.getItems(), users(1, 7), 'items of another');
    },
  },
  {
    id: 'A13',
    title: 'a second object sees writes at once',
    async body(scene) {
      const [first, second] = [await scene.open(), await scene.open()];
      same(await second.getItems(), [], 'items before');
      await first.addItems(users(2));
      same(await second.getItems(), users(2), 'items seen by the second object');
      await second.popItem();
      same(await first.getItems(), users(1), 'items seen by the first object');
      await second.clearSession();
      same(await first.getItems(), [], 'items after the clear of the second object');
    },
  },
  {
    id: 'A14',
    title: 'a store that was reopened keeps its history',
    async body(scene) {
      await scene.filled(users(3));
      same(await (await scene.open()).getItems(), users(3), 'items');
    },
  },
  {
    id: 'A15',
    title: 'equal items stay two',
    async body(scene) {
      const twice = user('again');
      const session = await scene.filled([twice, twice]);
      await session.addItems([user('again')]);
      same(await session.getItems(), [twice, twice, twice], 'items');
    },
  },
  {
    id: 'A16',
    title: 'pop takes one of equal items',
    async body(scene) {
      const again = user('again');
      const session = await scene.filled([again, user('other'), again, again]);
      same(await session.popItem(), again, 'popped');
      same(await session.getItems(), [again, user('other'), again], 'items after a pop');
      same(await session.popItem(), again, 'popped');
      same(await session.getItems(), [again, user('other')], 'items after two pops');
    },
  },
];
