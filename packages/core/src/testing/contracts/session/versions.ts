import { check, refuses, rejection, same } from '../case.ts';
import { lookWhile, user, users } from './scene.ts';
import type { SessionCase } from './scene.ts';

export const versions: readonly SessionCase[] = [
  {
    id: 'J1',
    title: 'the version stays while nobody writes',
    async body(scene) {
      const session = await scene.capable('versions');
      const empty = await session.readHistory();
      same(empty.items, [], 'items');
      same((await session.readHistory()).version, empty.version, 'version of the empty history');
      await session.addItems(users(2));
      const { version, items } = await session.readHistory();
      same(items, users(2), 'items');
      same((await session.readHistory(0)).items, [], 'items with a limit of 0');
      await session.getItems();
      same((await session.readHistory(1)).version, version, 'version with a limit');
      same((await (await scene.capable('versions')).readHistory(0)).version, version, 'version seen by another object');
    },
  },
  {
    id: 'J2',
    title: 'append, pop, clear and replacement change the version',
    async body(scene) {
      const session = await scene.capable('versions');
      let { version } = await session.readHistory();
      const changes: Record<string, () => Promise<unknown>> = {
        addItems: () => session.addItems(users(3)),
        popItem: () => session.popItem(),
        replaceHistory: () => session.replaceHistory(users(2, 7)),
        clearSession: () => session.clearSession(),
      };
      for (const [name, change] of Object.entries(changes)) {
        await change();
        const next = (await session.readHistory()).version;
        check(next !== version, `another version after ${name}`);
        version = next;
      }
    },
  },
  {
    id: 'J3',
    title: 'a lost race writes nothing, and versions chain',
    async body(scene) {
      const session = await scene.capable('versions');
      const { version } = await session.readHistory();
      const next = await session.appendIfVersion(version, users(1));
      same((await session.readHistory()).version, next, 'the version that the append resolved to');
      await refuses(
        () => session.appendIfVersion(version, users(1, 5)),
        'session_version_conflict',
        'an append at an old version',
      );
      await refuses(
        () => session.replaceHistory([], { ifVersion: version }),
        'session_version_conflict',
        'a replacement at an old version',
      );
      same(await session.getItems(), users(1), 'items after the conflicts');
      const last = await session.appendIfVersion(next, users(1, 2), { operationId: 'op' });
      const repeated = async (): Promise<string> =>
        await session.appendIfVersion(next, users(1, 2), { operationId: 'op' });
      same(await repeated(), last, 'the version of a repeated append');
      await session.addItems(users(1, 3));
      same(await repeated(), last, 'the version of the first time, after another append');
      await session.popItem();
      const now = (await session.readHistory()).version;
      await session.replaceHistory([user('only')], { ifVersion: now });
      same(await session.getItems(), [user('only')], 'items');
    },
  },
  {
    id: 'J6',
    title: 'a history that begins anew has none of the versions of before',
    async body(scene) {
      const session = await scene.capable('versions');
      const seen = new Set<string>();
      for (let round = 0; round < 20; round++) {
        await session.addItems([user(`round ${round}`)]);
        const { version } = await session.readHistory();
        check(!seen.has(version), `a version in round ${round} that was not there before a clear`);
        seen.add(version);
        await session.clearSession();
        if (round === 0) {
          const changes = {
            'an append': () => session.appendIfVersion(version, users(1)),
            'a replacement': () => session.replaceHistory(users(1), { ifVersion: version }),
          };
          for (const [name, change] of Object.entries(changes))
            await refuses(change, 'session_version_conflict', `${name} at a version from before the history was empty`);
          same(await session.getItems(), [], 'items of a history that was cleared');
        }
        await session.addItems([user(`anew ${round}`)]);
        await refuses(
          () => session.appendIfVersion(version, users(1)),
          'session_version_conflict',
          'an append at a version from before a clear',
        );
        await session.clearSession();
      }
    },
  },
  {
    id: 'J4',
    title: 'a replacement is seen as a whole or not at all',
    async body(scene) {
      const session = await scene.capable('versions');
      const reader = await scene.open();
      const [old, replacement] = [users(200), users(300, 1000)];
      await session.addItems(old);
      await lookWhile(session.replaceHistory(replacement), async () => {
        const items = await reader.getItems();
        same(items, items.length === old.length ? old : replacement, 'the old or the new history');
      });
      same(await reader.getItems(), replacement, 'items at last');
    },
  },
  {
    id: 'J5',
    title: 'options of versioned writes are checked before anything happens',
    async body(scene) {
      const session = await scene.capable('versions');
      await session.addItems(users(1));
      const { version } = await session.readHistory();
      const bad: Record<string, unknown> = {
        null: null,
        'a number': 5,
        'a list': ['op'],
        'an unknown option': { operation: 'op' },
        'a blank operation id': { operationId: ' ' },
        'an operation id that is no text': { operationId: 5 },
      };
      for (const [what, options] of Object.entries(bad)) {
        const calls = {
          append: () => session.appendIfVersion(version, users(1, 2), options as never),
          replacement: () => session.replaceHistory(users(1, 2), options as never),
        };
        for (const [name, call] of Object.entries(calls)) {
          const error = await rejection(call, `${what} as options of the ${name}`);
          check(error['name'] === 'UserError', `a UserError for ${what}, not ${String(error['name'])}`);
        }
      }
      const error = await rejection(() => session.replaceHistory([], { ifVersion: 5 as never }), 'a version of 5');
      check(error['name'] === 'UserError', `a UserError for a version of 5, not ${String(error['name'])}`);
      same(await session.readHistory(), { items: users(1), version }, 'the history');
    },
  },
  {
    id: 'J9',
    title: 'changes that leave the newest item and the length as they were change the version',
    async body(scene) {
      const session = await scene.capable('versions');
      const again = user('again');
      await session.addItems([user('old'), again]);
      const { version } = await session.readHistory();
      await session.replaceHistory([user('new'), again]);
      await refuses(
        () => session.appendIfVersion(version, users(1)),
        'session_version_conflict',
        'an append after an item further back was replaced',
      );
      const replaced = (await session.readHistory()).version;
      await session.addItems([again]);
      const longer = (await session.readHistory()).version;
      await session.popItem();
      await session.popItem();
      const shorter = (await session.readHistory()).version;
      check(new Set([version, replaced, longer, shorter]).size === 4, 'another version after each change');
      same(await session.getItems(), [user('new')], 'items');
    },
  },
  {
    id: 'J7',
    title: 'a change tells the version that the history has then, and tells it again when it is repeated',
    async body(scene) {
      const session = await scene.capable('versions');
      await session.addItems(users(2));
      const { version } = await session.readHistory();
      const append = async () => await session.appendIfVersion(version, users(3, 3), { operationId: 'append' });
      const appended = await append();
      same((await session.readHistory()).version, appended, 'version after the append');
      for (const limit of [0, 1, 3])
        same((await session.readHistory(limit)).version, appended, `version of a read of ${limit}`);
      await session.addItems(users(1, 6));
      same(await append(), appended, 'the version of the append, repeated behind another one');
      const ifVersion = (await session.readHistory(0)).version;
      const replace = async () => await session.replaceHistory(users(4), { ifVersion, operationId: 'replace' });
      const replaced = await replace();
      same((await session.readHistory()).version, replaced, 'version after the replacement');
      await session.popItem();
      same(await replace(), replaced, 'the version of the replacement, repeated after a pop');
      same(await session.getItems(), users(3), 'items');
    },
  },
  {
    id: 'J8',
    title: 'a change of no items tells the version too, and its id is remembered',
    async body(scene) {
      const session = await scene.capable('versions');
      await session.addItems(users(2));
      const { version } = await session.readHistory();
      const append = async () => await session.appendIfVersion(version, [], { operationId: 'append' });
      const appended = await append();
      same(await session.readHistory(), { items: users(2), version: appended }, 'the history after the append');
      await session.addItems(users(1, 3));
      same(await append(), appended, 'the version of the append, repeated behind another one');
      const replace = async () => await session.replaceHistory([], { operationId: 'replace' });
      const replaced = await replace();
      same(await session.readHistory(), { items: [], version: replaced }, 'the history after the replacement');
      await session.addItems(users(1, 4));
      same(await replace(), replaced, 'the version of the replacement, repeated behind an append');
      same(await session.getItems(), users(1, 4), 'items');
    },
  },
];
