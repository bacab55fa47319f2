import { supports } from '../../../sessions/contract.ts';
import type {
  HistoryTransaction,
  Session,
  TransactionalSession,
  VersionedSession,
} from '../../../sessions/contract.ts';
import { check, same } from '../case.ts';
import { catalogue } from './catalogue.ts';
import { user, users } from './scene.ts';
import type { Items, Scene, SessionCase } from './scene.ts';

async function comesBack(scene: Scene, items: readonly object[]): Promise<void> {
  same(await (await scene.filled(items)).getItems(), items, 'items');
}

type Change = (items: object[], version: string) => Promise<unknown>;

/** The ways to change a history of one item beside `addItems`, and what it holds after each. */
function changesOf(session: unknown): [name: string, change: Change, stored: Items][] {
  const before = user('before');
  const changes: [string, Change, Items][] = [];
  if (supports(session, 'transactions')) {
    const given = session as TransactionalSession<object>;
    const apply = async (operationId: string, transaction: HistoryTransaction<object>): Promise<void> =>
      await given.applyHistoryTransaction({ operationId, transaction });
    const swap = (expectedSuffix: Items, replacement: Items) =>
      ({ type: 'replace_suffix', expectedSuffix, replacement }) as const;
    changes.push(
      ['append_items', (items) => apply('append', { type: 'append_items', items }), [before, before]],
      ['a replacement of the end', (items) => apply('replacement', swap([before], items)), [before, before]],
      ['a suffix that was taken away', (items) => apply('suffix', swap(items, [])), [before]],
    );
  }
  if (supports(session, 'versions')) {
    const given = session as VersionedSession<object>;
    changes.push(
      ['replaceHistory()', (items) => given.replaceHistory(items, { operationId: 'replace' }), [before]],
      [
        'appendIfVersion()',
        (items, version) => given.appendIfVersion(version, items, { operationId: 'versioned' }),
        [before, before],
      ],
    );
  }
  return changes;
}

/** Each takes its items as they are when it is called, and is known by them when it is repeated. */
async function otherChanges(session: Session<object>): Promise<void> {
  const given: unknown = session;
  for (const [name, change, stored] of changesOf(session)) {
    const version = supports(given, 'versions') ? (await given.readHistory(0)).version : '';
    const item = { role: 'user', content: 'before' };
    const items: object[] = [item];
    const changed = change(items, version);
    item.content = 'after';
    items.push(user('late'));
    await changed;
    same(await session.getItems(), stored, `items after ${name}`);
    await change([user('before')], version);
    same(await session.getItems(), stored, `items after ${name} was repeated`);
  }
}

export const fidelity: readonly SessionCase[] = [
  {
    id: 'C1',
    title: 'text of any script comes back',
    body: (scene) =>
      comesBack(
        scene,
        ['Grüße, ça va', '😀 👨‍👩‍👧 🏳️‍🌈', '漢字かな한글', 'שלום مرحبا', 'é vs é', '\u2028\u2029\ufeff\uffff'].map(user),
      ),
  },
  {
    id: 'C2',
    title: "control characters, quotes and other languages' syntax are plain text",
    body: (scene) =>
      comesBack(
        scene,
        [
          '\0\u0001\b\f\n\r\t\u001f\u007f',
          '"\'`\\ \\\\ /',
          "Robert'); DROP TABLE students;--",
          "return redis.call('DEL', KEYS[1])",
          '${x} {{y}} %s %n ?1 :id $1',
        ].map(user),
      ),
  },
  {
    id: 'C3',
    title: 'lone surrogates come back',
    body: (scene) => comesBack(scene, [user('\ud800'), user('a\udc00b'), { role: 'user', content: 'x', '\udfff': 1 }]),
  },
  {
    id: 'C4',
    title: '200 levels of nesting come back',
    async body(scene) {
      let value: unknown = 'bottom';
      for (let level = 0; level < 100; level++) value = { inner: [value] };
      await comesBack(scene, [{ type: 'message', role: 'user', content: value }]);
    },
  },
  { id: 'C5', title: 'items of every wire type come back', body: (scene) => comesBack(scene, catalogue) },
  {
    id: 'C6',
    title: 'items of unknown types come back',
    body: (scene) =>
      comesBack(scene, [
        { type: 'not_invented_yet', id: 'x_1', payload: { deep: [1, null, { a: true }] } },
        { no: 'type at all' },
        {},
      ]),
  },
  {
    id: 'C7',
    title: 'camelCase items of another SDK come back',
    body: (scene) =>
      comesBack(scene, [{ type: 'function_call', callId: 'c1', name: 'f', arguments: '{}', providerData: { x: 1 } }]),
  },
  {
    id: 'C8',
    title: 'members with odd names are data',
    async body(scene) {
      const item = JSON.parse(
        '{"role":"user","__proto__":{"polluted":true},"constructor":1,"toString":"x","":"empty"}',
      ) as object;
      const session = await scene.filled([item]);
      const [back] = await session.getItems();
      same(back, item, 'item');
      check(Object.hasOwn(back as object, '__proto__'), 'an own member __proto__');
      check(({} as { polluted?: unknown }).polluted === undefined, 'Object.prototype to be untouched');
    },
  },
  {
    id: 'C9',
    title: 'members keep their order',
    async body(scene) {
      const item = { z: 1, a: 2, role: 'user', m: { y: 1, b: 2 }, content: 'x' };
      const [back] = await (await scene.filled([item])).getItems();
      same(Object.keys(back as object), Object.keys(item), 'order of members');
    },
  },
  {
    id: 'C10',
    title: 'what is returned can be changed without changing what is stored',
    async body(scene) {
      const stored = [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }];
      const session = await scene.filled(stored);
      const items = (await session.getItems()) as { content: { text: string }[] }[];
      (items[0]?.content[0] ?? { text: '' }).text = 'changed';
      items.length = 0;
      same(await session.getItems(), stored, 'items');
      check((await session.getItems())[0] !== (await session.getItems())[0], 'fresh objects from each read');
    },
  },
  {
    id: 'C11',
    title: 'items are taken as they are when the call is made',
    async body(scene) {
      const session = await scene.open();
      const item = { role: 'user', content: 'before' };
      const batch = [item];
      const added = session.addItems(batch);
      item.content = 'after';
      batch.push({ role: 'user', content: 'late' });
      await added;
      item.content = 'later';
      same(await session.getItems(), [user('before')], 'items');
      await otherChanges(session);
    },
  },
  {
    id: 'C12',
    title: 'an item of 1 MB comes back',
    body: (scene) => comesBack(scene, [user('0123456789abcdé'.repeat(70_000))]),
  },
  { id: 'C13', title: 'a batch of 5 000 items comes back', body: (scene) => comesBack(scene, users(5_000)) },
  {
    id: 'C14',
    title: 'numbers come back',
    body: (scene) =>
      comesBack(scene, [
        {
          type: 'numbers',
          values: [
            0,
            -1,
            0.1,
            1e-7,
            1.5e300,
            5e-324,
            123_456_789.125,
            Number.MAX_SAFE_INTEGER,
            Number.MIN_SAFE_INTEGER,
            1e21,
          ],
        },
      ]),
  },
];
