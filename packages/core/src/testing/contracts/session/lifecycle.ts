import { check, refuses, same, skip } from '../case.ts';
import { sessionCalls } from '../session-calls.ts';
import { users } from './scene.ts';
import type { SessionCase } from './scene.ts';

export const lifecycle: readonly SessionCase[] = [
  {
    id: 'H1',
    title: 'close can be called again and at once',
    async body(scene) {
      const session = await scene.managed();
      await session.addItems(users(1));
      await Promise.all([session.close(), session.close(), session.close()]);
      await session.close();
    },
  },
  {
    id: 'H2',
    title: 'calls before close end, those after it reject, be it that they would do nothing',
    async body(scene) {
      const session = await scene.managed();
      const before = [session.addItems(users(1)), session.getItems(), session.ping()] as const;
      await session.close();
      const [, items, answers] = await Promise.all(before);
      same(items, users(1), 'items of a read that was called before close');
      check(answers, 'ping() that was called before close to be true');
      if (!session.closed) skip('close() leaves this session open');
      const calls = { ...sessionCalls(session), ping: () => session.ping() };
      for (const [name, call] of Object.entries(calls)) await refuses(call, 'session_closed', name);
    },
  },
  {
    id: 'H3',
    title: 'a client that was handed in survives close',
    async body(scene) {
      const session = await scene.managed();
      await session.close();
      if (session.closed) skip('close() closes this session');
      await session.addItems(users(1));
      same(await session.getItems(), users(1), 'items');
      check(await session.ping(), 'ping() to be true');
    },
  },
  {
    id: 'H5',
    title: 'asyncDispose closes',
    async body(scene) {
      const session = await scene.managed();
      await session[Symbol.asyncDispose]();
      const closing = await scene.managed();
      await closing.close();
      same(session.closed, closing.closed, 'closed');
    },
  },
];
