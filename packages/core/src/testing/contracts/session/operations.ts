import { supports } from '../../../sessions/contract.ts';
import type { HistoryOperation, TransactionalSession, VersionedSession } from '../../../sessions/contract.ts';
import { check, refuses, rejection, same } from '../case.ts';
import { user, users } from './scene.ts';
import type { Items, Scene, SessionCase } from './scene.ts';

type Capable = TransactionalSession<object>;

const append = (operationId: string, items: Items): HistoryOperation<object> => ({
  operationId,
  transaction: { type: 'append_items', items },
});
const replace = (operationId: string, expectedSuffix: Items, replacement: Items): HistoryOperation<object> => ({
  operationId,
  transaction: { type: 'replace_suffix', expectedSuffix, replacement },
});

async function capable(scene: Scene, items: Items = []): Promise<Capable> {
  const session = await scene.capable('transactions');
  await session.addItems(items);
  return session;
}

export const operations: readonly SessionCase[] = [
  {
    id: 'I1',
    title: 'an operation applies once, repeating it resolves',
    async body(scene) {
      const session = await capable(scene);
      for (let i = 0; i < 3; i++) await session.applyHistoryTransaction(append('op', users(2)));
      // Equal content in another order of members is the same change.
      await session.applyHistoryTransaction(append('op', [{ content: '1', role: 'user' }, user('2')]));
      same(await session.getItems(), users(2), 'items');
    },
  },
  {
    id: 'I2',
    title: 'an operation id with another change is refused',
    async body(scene) {
      const session = await capable(scene);
      await session.applyHistoryTransaction(append('op', users(1)));
      await refuses(
        () => session.applyHistoryTransaction(append('op', users(2))),
        'session_operation_mismatch',
        'other items',
      );
      await refuses(
        () => session.applyHistoryTransaction(replace('op', [], users(1))),
        'session_operation_mismatch',
        'another type',
      );
      same(await session.getItems(), users(1), 'items');
      await session.applyHistoryTransaction(replace('swap', users(1), users(2)));
      const others: [string, Items, Items][] = [
        ['another suffix', [], users(2)],
        ['another replacement', users(1), users(3)],
        ['the same items, parted elsewhere', [...users(1), ...users(1)], users(1, 2)],
      ];
      for (const [what, ...lists] of others)
        await refuses(
          () => session.applyHistoryTransaction(replace('swap', ...lists)),
          'session_operation_mismatch',
          what,
        );
      if (supports(session, 'versions')) {
        const versioned = session as VersionedSession<object>;
        const { version } = await versioned.readHistory(0);
        const calls: Record<string, () => Promise<unknown>> = {
          'a replacement by the same items': () => versioned.replaceHistory(users(1), { operationId: 'op' }),
          'an append of other items': () => versioned.appendIfVersion(version, users(2), { operationId: 'op' }),
        };
        for (const [what, call] of Object.entries(calls)) await refuses(call, 'session_operation_mismatch', what);
      }
      same(await session.getItems(), users(2), 'items at last');
    },
  },
  {
    id: 'I3',
    title: 'an operation id is known to another object',
    async body(scene) {
      await (await capable(scene)).applyHistoryTransaction(append('op', users(1)));
      const again = await capable(scene);
      await again.applyHistoryTransaction(append('op', users(1)));
      same(await again.getItems(), users(1), 'items');
    },
  },
  {
    id: 'I4',
    title: '64 later operations do not push an operation out',
    async body(scene) {
      const session = await capable(scene);
      await session.applyHistoryTransaction(append('first', users(1)));
      for (let number = 0; number < 64; number++)
        await session.applyHistoryTransaction(append(`op ${number}`, users(1, number)));
      await session.applyHistoryTransaction(append('first', users(1)));
      same((await session.getItems()).length, 65, 'count of items');
    },
  },
  {
    id: 'I5',
    title: 'the same operation at once applies once',
    async body(scene) {
      const [first, second] = [await capable(scene), await capable(scene)];
      await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? first : second).applyHistoryTransaction(append('op', users(3))),
        ),
      );
      same(await first.getItems(), users(3), 'items');
    },
  },
  {
    id: 'I6',
    title: 'a blank operation id is refused',
    async body(scene) {
      const session = await capable(scene);
      for (const id of ['', '  '])
        await rejection(() => session.applyHistoryTransaction(append(id, users(1))), `the id ${JSON.stringify(id)}`);
      same(await session.getItems(), [], 'items');
    },
  },
  {
    id: 'I7',
    title: 'append_items obeys the rules of addItems',
    async body(scene) {
      const session = await capable(scene);
      await refuses(
        () => session.applyHistoryTransaction(append('bad', [user('a'), { x: () => 1 }])),
        'session_item_invalid',
        'a bad item',
      );
      same(await session.getItems(), [], 'items after the bad batch');
      const item = { role: 'user', content: 'before' };
      const applied = session.applyHistoryTransaction(append('op', [item, user('Grüße 😀')]));
      item.content = 'after';
      await applied;
      await session.applyHistoryTransaction(append('empty', []));
      same(await session.getItems(), [user('before'), user('Grüße 😀')], 'items');
    },
  },
  {
    id: 'I8',
    title: 'replace_suffix swaps the tail, or nothing',
    async body(scene) {
      const session = await capable(scene, users(4));
      await session.applyHistoryTransaction(
        replace('tail', [{ content: '3', role: 'user' }, user('4')], [user('new')]),
      );
      same(await session.getItems(), [...users(2), user('new')], 'items after the swap');
      await refuses(
        () => session.applyHistoryTransaction(replace('wrong', users(1, 9), [])),
        'session_suffix_mismatch',
        'another tail',
      );
      await refuses(
        () => session.applyHistoryTransaction(replace('long', users(9), [])),
        'session_suffix_mismatch',
        'a tail longer than the history',
      );
      for (const further of [users(2), [user('1'), user('new')]])
        await refuses(
          () => session.applyHistoryTransaction(replace('further back', further, [])),
          'session_suffix_mismatch',
          'items further back, or with others in between,',
        );
      await session.applyHistoryTransaction(replace('append', [], users(1, 5)));
      same(await session.getItems(), [...users(2), user('new'), user('5')], 'items after an empty suffix');
      await session.applyHistoryTransaction(replace('truncate', [user('5')], []));
      await session.applyHistoryTransaction(replace('whole', [...users(2), user('new')], users(1)));
      same(await session.getItems(), users(1), 'items after the whole was replaced');
    },
  },
  {
    id: 'I9',
    title: 'repeating a replace_suffix changes nothing',
    async body(scene) {
      const session = await capable(scene, users(2));
      const operation = replace('op', users(1, 2), users(1, 3));
      await session.applyHistoryTransaction(operation);
      await session.applyHistoryTransaction(operation);
      same(await session.getItems(), [user('1'), user('3')], 'items');
    },
  },
  {
    id: 'I12',
    title: 'an operation that was refused is not remembered',
    async body(scene) {
      const session = await capable(scene, users(1));
      const swap = replace('op', users(1, 2), [user('new')]);
      await refuses(() => session.applyHistoryTransaction(swap), 'session_suffix_mismatch', 'a tail that is not there');
      await session.addItems(users(1, 2));
      await session.applyHistoryTransaction(swap);
      same(await session.getItems(), [user('1'), user('new')], 'items after the same operation, on the right tail');
      if (!supports(session, 'versions')) return;
      const versioned = session as VersionedSession<object>;
      const { version: old } = await versioned.readHistory(0);
      await session.addItems(users(1, 3));
      const append = async (version: string): Promise<string> =>
        await versioned.appendIfVersion(version, users(1, 4), { operationId: 'append' });
      await refuses(() => append(old), 'session_version_conflict', 'an append at an old version');
      await append((await versioned.readHistory(0)).version);
      same(await session.getItems(), [user('1'), user('new'), ...users(2, 3)], 'items after the same append');
    },
  },
  {
    id: 'I13',
    title: 'operation ids are those of one session',
    async body(scene) {
      const session = await capable(scene);
      const other = await scene.capable('transactions', await scene.sibling());
      await session.applyHistoryTransaction(append('op', users(2)));
      await other.applyHistoryTransaction(append('op', users(2)));
      same(await other.getItems(), users(2), 'items of another session after an operation of the same id');
      await other.clearSession();
      await session.applyHistoryTransaction(append('op', users(2)));
      same(await session.getItems(), users(2), 'items after the same operation, when the other session was cleared');
    },
  },
  {
    id: 'I14',
    title: 'replace_suffix leaves equal items further back',
    async body(scene) {
      const [again, other] = [user('again'), user('other')];
      const session = await capable(scene, [again, other, again, again]);
      await session.applyHistoryTransaction(replace('one', [again], []));
      same(await session.getItems(), [again, other, again], 'items after one was taken away');
      await session.applyHistoryTransaction(replace('two', [other, again], [again]));
      same(await session.getItems(), [again, again], 'items after two were replaced');
    },
  },
  {
    id: 'I11',
    title: 'operations are remembered over pops and replacements, and those without items too',
    async body(scene) {
      const session = await capable(scene);
      await session.applyHistoryTransaction(append('nothing', []));
      await session.applyHistoryTransaction(append('op', users(2)));
      await session.popItem();
      await session.applyHistoryTransaction(replace('tail', users(1), [user('new')]));
      if (supports(session, 'versions')) await (session as VersionedSession<object>).replaceHistory(users(1, 7));
      const before = await session.getItems();
      for (const operation of [append('op', users(2)), append('nothing', []), replace('tail', users(1), [user('new')])])
        await session.applyHistoryTransaction(operation);
      same(await session.getItems(), before, 'items after repeated operations');
      await refuses(
        () => session.applyHistoryTransaction(append('nothing', users(1))),
        'session_operation_mismatch',
        'items under the id of an operation without any',
      );
    },
  },
  {
    id: 'I10',
    title: 'arguments are checked before anything happens',
    async body(scene) {
      const session = await capable(scene);
      const apply = (operation: unknown) => () =>
        session.applyHistoryTransaction(operation as HistoryOperation<object>);
      const bad: Record<string, unknown> = {
        'no argument': undefined,
        'no transaction': { operationId: 'a' },
        'an unknown type': { operationId: 'a', transaction: { type: 'drop', items: [] } },
        'items that are no array': { operationId: 'a', transaction: { type: 'append_items', items: 'x' } },
        'an extra member': { ...append('a', []), extra: 1 },
        'an extra member of the transaction': {
          operationId: 'a',
          transaction: { type: 'append_items', items: [], at: 0 },
        },
        'a suffix that is no array': {
          operationId: 'a',
          transaction: { type: 'replace_suffix', expectedSuffix: {}, replacement: [] },
        },
      };
      for (const [what, operation] of Object.entries(bad)) {
        const error = await rejection(apply(operation), what);
        check(error['name'] === 'UserError', `a UserError for ${what}, not ${String(error['name'])}`);
      }
      await session.applyHistoryTransaction(append('a', users(1)));
      same(await session.getItems(), users(1), 'items');
    },
  },
];
