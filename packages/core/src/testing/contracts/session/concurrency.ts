import { supports } from '../../../sessions/contract.ts';
import type { TransactionalSession, VersionedSession } from '../../../sessions/contract.ts';
import { check, refuses, same } from '../case.ts';
import { lookWhile, user, users } from './scene.ts';
import type { SessionCase } from './scene.ts';

/** Items that know their batch. */
function batch(writer: number, number: number, size: number): object[] {
  return Array.from({ length: size }, (_, index) => user(`${writer}/${number}/${index}`));
}

function contents(items: readonly object[]): string[] {
  return items.map((item) => (item as { content: string }).content);
}

/** Every batch whole, contiguous and in order. */
function wholeBatches(items: readonly object[], size: number): void {
  const texts = contents(items);
  check(texts.length % size === 0, `whole batches of ${size}, not ${texts.length} items`);
  for (const [index, text] of texts.entries()) {
    const first = texts[index - (index % size)] ?? '';
    same(text, first.replace(/\d+$/, String(index % size)), `item ${index}`);
  }
}

export const concurrency: readonly SessionCase[] = [
  {
    id: 'F1',
    title: '20 appends at once on one object take effect in call order',
    async body(scene) {
      const session = await scene.open();
      await Promise.all(Array.from({ length: 20 }, (_, index) => session.addItems(users(3, 3 * index + 1))));
      same(await session.getItems(), users(60), 'items');
    },
  },
  {
    id: 'F2',
    title: 'two objects, 50 batches each: none lost, none split',
    async body(scene) {
      const sessions = [await scene.open(), await scene.open()];
      await Promise.all(
        sessions.map(async (session, writer) => {
          for (let number = 0; number < 50; number++) await session.addItems(batch(writer, number, 5));
        }),
      );
      const items = await (await scene.open()).getItems();
      same(items.length, 500, 'count of items');
      wholeBatches(items, 5);
    },
  },
  {
    id: 'F3',
    title: '20 pops at once take each item once',
    async body(scene) {
      const first = await scene.filled(users(20));
      const second = await scene.open();
      const popped = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? first : second).popItem()),
      );
      const taken = contents(popped.filter((item) => item !== undefined));
      same(
        taken.map(Number).sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, index) => index + 1),
        'popped items',
      );
      check((await first.popItem()) === undefined, 'nothing left');
    },
  },
  {
    id: 'F4',
    title: 'append, pop and clear at once end consistent',
    async body(scene) {
      const session = await scene.filled(batch(0, 0, 4));
      await Promise.all([
        session.addItems(batch(0, 1, 4)),
        session.popItem(),
        session.clearSession(),
        session.addItems(batch(0, 2, 4)),
        session.popItem(),
      ]);
      same(contents(await session.getItems()), contents(batch(0, 2, 3)), 'items, in the order of the calls');
      if (!supports(session, 'transactions') || !supports(session, 'versions')) return;
      const given = session as TransactionalSession<object> & VersionedSession<object>;
      const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((text) => user(text)) as [object, object, object, object];
      const append = { type: 'append_items', items: [b] } as const;
      const replace = { type: 'replace_suffix', expectedSuffix: [a], replacement: [c] } as const;
      const { version } = await given.readHistory(0);
      const [, , first, , second] = await Promise.all([
        given.appendIfVersion(version, [a]),
        given.applyHistoryTransaction({ operationId: 'append', transaction: append }),
        given.popItem(),
        given.applyHistoryTransaction({ operationId: 'replace', transaction: replace }),
        given.popItem(),
        given.replaceHistory([d]),
        given.addItems([a]),
      ]);
      same([first, second, await given.getItems()], [b, c, [d, a]], 'what was popped, and items at last');
      const before = await given.readHistory(0);
      const added = given.addItems([b]);
      await refuses(
        () => given.appendIfVersion(before.version, [c]),
        'session_version_conflict',
        'an append at the version of before, behind another one,',
      );
      await added;
    },
  },
  {
    id: 'F5',
    title: 'ten objects race for the first write',
    async body(scene) {
      const sessions = await Promise.all(Array.from({ length: 10 }, () => scene.open()));
      await Promise.all(sessions.map((session, writer) => session.addItems(batch(writer, 0, 3))));
      const items = await (await scene.open()).getItems();
      same(items.length, 30, 'count of items');
      wholeBatches(items, 3);
    },
  },
  {
    id: 'F7',
    title: 'a reader sees whole batches and a prefix that only grows',
    async body(scene) {
      const [first, second, reader] = [await scene.open(), await scene.open(), await scene.open()];
      const writers = [first, second].map(async (session, writer) => {
        for (let number = 0; number < 30; number++) await session.addItems(batch(writer, number, 4));
      });
      let seen: string[] = [];
      await lookWhile(Promise.all(writers), async () => {
        const items = await reader.getItems();
        wholeBatches(items, 4);
        const texts = contents(items);
        same(texts.slice(0, seen.length), seen, 'the prefix that was read before');
        seen = texts;
      });
      same((await reader.getItems()).length, 240, 'count of items');
    },
  },
];
