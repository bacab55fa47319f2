import { check, refuses, rejection, same, skip } from '../case.ts';
import { users } from './scene.ts';
import type { Scene, SessionCase } from './scene.ts';

function failNext(scene: Scene, when: 'before' | 'after'): void {
  if (scene.fixture.failNext === undefined) skip('the fixture cannot break a mutation');
  scene.fixture.failNext(when);
}

export const faults: readonly SessionCase[] = [
  {
    id: 'G1',
    title: 'a write that failed before it reached the store left nothing, and a retry gives one',
    async body(scene) {
      const session = await scene.filled(users(1));
      failNext(scene, 'before');
      await rejection(() => session.addItems(users(2, 2)), 'addItems()');
      same(await session.getItems(), users(1), 'items after the failure');
      await session.addItems(users(2, 2));
      same(await session.getItems(), users(3), 'items after the retry');
    },
  },
  {
    id: 'G2',
    title: 'a write whose answer was lost has an unknown outcome',
    async body(scene) {
      const session = await scene.open();
      failNext(scene, 'after');
      const error = await refuses(() => session.addItems(users(1)), 'session_outcome_unknown', 'addItems()');
      same(error['operation'], 'append', 'operation');
    },
  },
  {
    id: 'G3',
    title: 'after a lost answer the same operation id gives one batch',
    async body(scene) {
      const session = await scene.capable('transactions');
      const operation = {
        operationId: `${scene.id}-op`,
        transaction: { type: 'append_items', items: users(2) },
      } as const;
      failNext(scene, 'after');
      await refuses(
        () => session.applyHistoryTransaction(operation),
        'session_outcome_unknown',
        'applyHistoryTransaction()',
      );
      await session.applyHistoryTransaction(operation);
      same(await session.getItems(), users(2), 'items');
    },
  },
  {
    id: 'G5',
    title: 'a failed pop or clear leaves the history',
    async body(scene) {
      const session = await scene.filled(users(2));
      failNext(scene, 'before');
      await rejection(() => session.popItem(), 'popItem()');
      same(await session.getItems(), users(2), 'items after the failed pop');
      failNext(scene, 'before');
      await rejection(() => session.clearSession(), 'clearSession()');
      same(await session.getItems(), users(2), 'items after the failed clear');
      check((await session.popItem()) !== undefined, 'the session to go on');
    },
  },
];
