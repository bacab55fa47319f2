import { supports } from '../../../sessions/contract.ts';
import { check, rejection, same } from '../case.ts';
import { read, users } from './scene.ts';
import type { SessionCase } from './scene.ts';

export const limits: readonly SessionCase[] = [
  {
    id: 'B1',
    title: 'a limit gives the newest items, oldest first',
    async body(scene) {
      same(await read(await scene.filled(users(5)), 2), users(2, 4), 'items');
    },
  },
  {
    id: 'B2',
    title: 'limit 0 gives nothing',
    async body(scene) {
      same(await read(await scene.filled(users(5)), 0), [], 'items');
    },
  },
  {
    id: 'B3',
    title: 'a negative limit gives nothing',
    async body(scene) {
      same(await read(await scene.filled(users(5)), -1), [], 'items');
    },
  },
  {
    id: 'B4',
    title: 'a limit larger than the history gives all',
    async body(scene) {
      const session = await scene.filled(users(5));
      same(await read(session, 50), users(5), 'items');
      same(await read(session, Number.MAX_SAFE_INTEGER), users(5), 'items');
    },
  },
  {
    id: 'B5',
    title: 'the settings of the session are the default',
    async body(scene) {
      same(await read(await scene.filled(users(5), { limit: 3 })), users(3, 3), 'items');
    },
  },
  {
    id: 'B6',
    title: 'the argument beats the settings',
    async body(scene) {
      const session = await scene.filled(users(5), { limit: 3 });
      same(await read(session, 1), users(1, 5), 'items');
      same(await read(session, 4), users(4, 2), 'items');
    },
  },
  {
    id: 'B7',
    title: 'limit 0 of the settings is a value, null is none',
    async body(scene) {
      same(await read(await scene.filled(users(5), { limit: 0 })), [], 'items with limit 0');
      same(await read(await scene.open({ limit: null })), users(5), 'items with limit null');
    },
  },
  {
    id: 'B8',
    title: 'limits that are no whole numbers are refused',
    async body(scene) {
      const session = await scene.filled(users(2));
      for (const limit of [Number.NaN, 1.5, Number.POSITIVE_INFINITY]) {
        const given: unknown = session;
        const calls = {
          getItems: () => session.getItems(limit),
          ...(supports(given, 'versions') && { readHistory: () => given.readHistory(limit) }),
        };
        for (const [name, call] of Object.entries(calls)) {
          const error = await rejection(call, `${name}(${limit})`);
          check(error['name'] === 'UserError', `a UserError, not ${String(error['name'])}`);
        }
      }
    },
  },
  {
    id: 'B9',
    title: 'reading the newest of 10 000 items costs about what it costs of 10',
    async body(scene) {
      const short = await scene.sibling();
      await short.addItems(users(10));
      const long = await scene.open();
      for (let from = 1; from <= 10_000; from += 2_500) await long.addItems(users(2_500, from));
      // The quickest of many, in turn: what else the machine does slows some of them down.
      const quickest = [Infinity, Infinity];
      for (let i = 0; i < 20; i++)
        for (const [index, session] of [short, long].entries()) {
          const start = performance.now();
          same((await session.getItems(5)).length, 5, 'count of items');
          quickest[index] = Math.min(quickest[index] ?? 0, performance.now() - start);
        }
      const [ten = 0, tenThousand = 0] = quickest;
      // Below 5 ms the figure says more about the machine than about the session.
      check(
        tenThousand <= Math.max(20 * ten, 5),
        `at most 20 times ${ten.toFixed(1)} ms, not ${tenThousand.toFixed(1)} ms`,
      );
    },
  },
];
