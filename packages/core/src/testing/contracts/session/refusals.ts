import { check, refuses, rejection, same } from '../case.ts';
import { user, users } from './scene.ts';
import type { Scene, SessionCase } from './scene.ts';

/** Refused with the index, nothing stored, and the session goes on. */
async function refused(scene: Scene, bad: unknown, what: string): Promise<void> {
  const session = await scene.open();
  const before = await session.getItems();
  const error = await refuses(
    () => session.addItems([user('good'), bad as object]),
    'session_item_invalid',
    `a batch with ${what}`,
  );
  same(error['index'], 1, `index of ${what}`);
  same(await session.getItems(), before, `items after ${what}`);
}

export const refusals: readonly SessionCase[] = [
  {
    id: 'D1',
    title: 'cyclic items are refused',
    async body(scene) {
      const cyclic: { self?: unknown } = {};
      cyclic.self = { again: cyclic };
      await refused(scene, cyclic, 'a cyclic item');
    },
  },
  {
    id: 'D2',
    title: 'members that JSON has no form for are refused',
    async body(scene) {
      await refused(scene, { a: () => 1 }, 'a function');
      await refused(scene, { a: 1n }, 'a bigint');
      await refused(scene, { a: { b: Number.NaN } }, 'NaN');
      await refused(scene, { a: [undefined] }, 'an undefined element');
      await refused(scene, { a: new Map([[1, 2]]) }, 'a Map');
      await refused(scene, { a: new Uint8Array(2) }, 'a typed array');
    },
  },
  {
    id: 'D3',
    title: 'arrays and primitives are no items',
    async body(scene) {
      for (const bad of [[], [1], 'text', 1, null, undefined])
        await refused(scene, bad, JSON.stringify(bad) ?? 'undefined');
    },
  },
  {
    id: 'D4',
    title: 'one bad item stores nothing of its batch, and the session stays usable',
    async body(scene) {
      const session = await scene.filled(users(1));
      const batch = [user('a'), { content: Number.POSITIVE_INFINITY }, user('b')];
      const error = await refuses(() => session.addItems(batch), 'session_item_invalid', 'the batch');
      same(error['index'], 1, 'index');
      check(String(error['path']).includes('content'), 'the path of the member');
      await session.addItems(users(1, 2));
      same(await session.getItems(), users(2), 'items');
    },
  },
  {
    id: 'D5',
    title: 'bad session ids are refused',
    async body(scene) {
      for (const id of ['', '   ', 'a\0b', 'x\ud800', 'x'.repeat(1025)]) {
        const error = await rejection(
          async () => await scene.fixture.open(id),
          `the id ${JSON.stringify(id.slice(0, 20))}`,
        );
        same(error['code'], 'session_id_invalid', 'code');
      }
    },
  },
  {
    id: 'D6',
    title: 'odd but legal session ids are literal and isolated',
    async body(scene) {
      const odd = [
        "'; DROP TABLE x;--",
        '100%_*?[a]',
        'a:b/c\\d',
        'new\nline\ttab',
        '😀 ünï',
        '"quoted"',
        'x'.repeat(200),
      ].map((text) => `${scene.id} ${text}`);
      for (const [index, id] of odd.entries()) await (await scene.open(undefined, id)).addItems(users(1, index));
      for (const [index, id] of odd.entries()) {
        const session = await scene.open(undefined, id);
        same(session.sessionId, id, 'id');
        same(await session.getItems(), users(1, index), 'items');
        same(await session.popItem(), user(String(index)), 'popped');
        await session.clearSession();
      }
    },
  },
];
