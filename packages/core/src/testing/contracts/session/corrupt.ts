import { check, same, skip } from '../case.ts';
import { read, user, users } from './scene.ts';
import type { Scene, SessionCase } from './scene.ts';

const BROKEN = '{"role":"user","content":';

async function corruptTail(scene: Scene, ...records: readonly string[]): Promise<void> {
  const { fixture } = scene;
  if (fixture.addCorrupt === undefined) skip('the fixture cannot add corrupt records');
  for (const record of records) await fixture.addCorrupt(scene.id, record);
  const arrived = await fixture.readCorrupt?.(scene.id);
  if (arrived !== undefined) same(arrived.slice(-records.length), records, 'records that the fixture added');
}

export const corrupt: readonly SessionCase[] = [
  {
    id: 'E1',
    title: 'reading skips a corrupt record at the end',
    async body(scene) {
      const session = await scene.filled(users(3));
      await corruptTail(scene, BROKEN);
      same(await read(session), users(3), 'items');
    },
  },
  {
    id: 'E2',
    title: 'a limit counts valid items only',
    async body(scene) {
      const session = await scene.filled(users(3));
      await corruptTail(scene, BROKEN, BROKEN, BROKEN, BROKEN);
      same(await read(session, 2), users(2, 2), 'items');
      same(await read(session, 3), users(3), 'items');
    },
  },
  {
    id: 'E3',
    title: 'pop removes corrupt records on its way to the newest valid item',
    async body(scene) {
      const session = await scene.filled(users(3));
      await corruptTail(scene, BROKEN, 'nonsense');
      same(await session.popItem(), user('3'), 'popped');
      same(await session.popItem(), user('2'), 'popped');
      same(await session.getItems(), users(1), 'items left');
    },
  },
  {
    id: 'E4',
    title: 'pop of corrupt records alone gives undefined',
    async body(scene) {
      const session = await scene.open();
      await session.addItems(users(1));
      await session.popItem();
      await corruptTail(scene, BROKEN, BROKEN);
      check((await session.popItem()) === undefined, 'undefined');
      same(await session.getItems(), [], 'items');
    },
  },
  {
    id: 'E5',
    title: 'JSON that is no object is corrupt',
    async body(scene) {
      const session = await scene.filled(users(2));
      await corruptTail(scene, '3', 'null', '"text"', '[]', 'true');
      same(await session.getItems(1), users(1, 2), 'items');
      same(await session.popItem(), user('2'), 'popped');
    },
  },
  {
    id: 'E6',
    title: 'a corrupt record in the middle survives appends',
    async body(scene) {
      const session = await scene.filled(users(1));
      await corruptTail(scene, BROKEN);
      await session.addItems(users(1, 2));
      same(await session.getItems(), users(2), 'items');
      same(await session.popItem(), user('2'), 'popped');
      same(await session.getItems(), users(1), 'items');
    },
  },
  {
    id: 'E8',
    title: 'replace_suffix passes over corrupt records, and keeps them as they are',
    async body(scene) {
      const session = await scene.capable('transactions', await scene.filled(users(1)));
      await corruptTail(scene, BROKEN);
      await session.addItems(users(1, 2));
      // So many that nobody finds the items before them in a first few looks.
      const many = ['nonsense', ...Array.from({ length: 17 }, () => '3')];
      await corruptTail(scene, ...many);
      const replace = async (expectedSuffix: object[], replacement: object[]): Promise<void> =>
        await session.applyHistoryTransaction({
          operationId: `${scene.id} ${expectedSuffix.length}`,
          transaction: { type: 'replace_suffix', expectedSuffix, replacement },
        });
      await replace(users(1, 2), [user('new')]);
      same(await session.getItems(), [user('1'), user('new')], 'items after the end was replaced');
      await replace([user('1'), user('new')], [user('all')]);
      same(await session.getItems(), [user('all')], 'items after all was replaced');
      const kept = await scene.fixture.readCorrupt?.(scene.id);
      if (kept !== undefined) same(kept, [BROKEN, ...many], 'corrupt records');
    },
  },
];
