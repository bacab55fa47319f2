import { check, refuses, rejection, same } from '../case.ts';
import { all, answer, call, DAY, idsOf, output, turns, user } from './scene.ts';
import type { StoreCase } from './scene.ts';

export const copies: readonly StoreCase[] = [
  {
    id: 'N1',
    title: 'a fork has the items of its source, and goes its own way',
    async body(scene) {
      const store = await scene.filled(turns(2));
      await store.setMetadata(scene.id, { tag: 1 });
      const copy = await store.fork(scene.id, `${scene.id}-copy`);
      same((await store.get(`${scene.id}-copy`))?.metadata, undefined, 'metadata of the copy');
      same(copy.sessionId, `${scene.id}-copy`, 'session id of the copy');
      same(await copy.getItems(), turns(2), 'items of the copy');
      await copy.addItems([user('only here')]);
      await store.session(scene.id).addItems([user('only there')]);
      same(await copy.getItems(), [...turns(2), user('only here')], 'items of the copy');
      same(await store.session(scene.id).getItems(), [...turns(2), user('only there')], 'items of the source');
      same((await store.get(`${scene.id}-copy`))?.itemCount, 11, 'itemCount of the copy');
    },
  },
  {
    id: 'N2',
    title: 'a fork until a turn stops before its user message',
    async body(scene) {
      const store = await scene.filled(turns(3));
      const copy = await store.fork(scene.id, `${scene.id}-2`, { untilTurn: 3 });
      same(await copy.getItems(), turns(2), 'items');
      same(await store.session(scene.id).getItems(), turns(3), 'items of the source');
      const empty = await store.fork(scene.id, `${scene.id}-1`, { untilTurn: 1 });
      same(await empty.getItems(), [], 'items before the first turn');
      for (const untilTurn of [4, 5]) {
        const what = `fork() until turn ${untilTurn} of three`;
        const error = await rejection(() => store.fork(scene.id, `${scene.id}-5`, { untilTurn }), what);
        same(error['name'], 'UserError', `name of the error of ${what}`);
      }
      check((await store.get(`${scene.id}-5`)) === undefined, 'no session after a refused fork');
    },
  },
  {
    id: 'N3',
    title: 'a fork has no call whose output was cut off',
    async body(scene) {
      // The call of turn 1 was answered after the next question.
      const store = await scene.filled([
        user('1'),
        { type: 'reasoning', id: 'rs_1', summary: [] },
        call('late'),
        call('early'),
        output('early'),
        call('never'),
        user('2'),
        output('late'),
        answer('done'),
      ]);
      const copy = await store.fork(scene.id, `${scene.id}-copy`, { untilTurn: 2 });
      same(await copy.getItems(), [user('1'), call('early'), output('early'), call('never')], 'items');
    },
  },
  {
    id: 'N4',
    title: 'a fork never writes to a session that exists, and needs one that does',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await store.session(`${scene.id}-taken`).addItems([user('mine')]);
      await refuses(
        () => store.fork(scene.id, `${scene.id}-taken`),
        'session_error',
        'fork() to a session that exists',
      );
      same(await store.session(`${scene.id}-taken`).getItems(), [user('mine')], 'items of the target');
      await store.setMetadata(`${scene.id}-empty`, { tag: 1 });
      await refuses(() => store.fork(scene.id, `${scene.id}-empty`), 'session_error', 'fork() to one without items');
      same(await store.session(`${scene.id}-empty`).getItems(), [], 'items of the one without items');
      await refuses(() => store.fork(`${scene.id}-none`, `${scene.id}-x`), 'session_error', 'fork() of no session');
      check((await store.get(`${scene.id}-x`)) === undefined, 'no session after a refused fork');
    },
  },
  {
    id: 'N5',
    title: 'of forks to one target at once one is made',
    async body(scene) {
      const store = await scene.filled(turns(2));
      const target = `${scene.id}-copy`;
      const ends = await Promise.allSettled(Array.from({ length: 5 }, () => store.fork(scene.id, target)));
      same(ends.filter(({ status }) => status === 'fulfilled').length, 1, 'forks that were made');
      same(await store.session(target).getItems(), turns(2), 'items');
    },
  },
  {
    id: 'N6',
    title: 'a history of encrypted items is not copied',
    async body(scene) {
      const store = await scene.filled([user('x'), { __enc__: 1, v: 1, kid: 'hkdf-v1', payload: 'gAAA' }]);
      const error = await refuses(() => store.fork(scene.id, `${scene.id}-copy`), 'session_error', 'fork()');
      check(String(error['message']).includes('migrateSession'), 'an error that names migrateSession()');
      check((await store.get(`${scene.id}-copy`)) === undefined, 'no session after a refused fork');
    },
  },
  {
    id: 'N7',
    title: 'two forks of one place are independent of each other',
    async body(scene) {
      const store = await scene.filled(turns(3));
      const [first, second] = await Promise.all(
        ['1', '2'].map(async (name) => await store.fork(scene.id, `${scene.id}-${name}`, { untilTurn: 2 })),
      );
      await first?.addItems([user('first')]);
      await second?.addItems([user('second')]);
      same(await first?.getItems(), [...turns(1), user('first')], 'items of the first');
      same(await second?.getItems(), [...turns(1), user('second')], 'items of the second');
    },
  },
  {
    id: 'N8',
    title: 'a fork of a long history is whole, and knows calls that are answered far behind the cut',
    async body(scene) {
      const late = [call('late'), user('meanwhile')];
      const head = turns(250);
      const store = await scene.filled([...head, ...late, ...turns(250), output('late')]);
      const copy = await store.fork(scene.id, `${scene.id}-copy`);
      same(await copy.getItems(), [...head, ...late, ...turns(250), output('late')], 'items of the copy');
      const before = await store.fork(scene.id, `${scene.id}-251`, { untilTurn: 251 });
      same(await before.getItems(), head, 'items before the turn that follows the call');
      const behind = await store.fork(scene.id, `${scene.id}-450`, { untilTurn: 450 });
      same(await behind.getItems(), [...head, user('meanwhile'), ...turns(198)], 'items before a later turn');
    },
  },
  {
    id: 'N9',
    title: 'a fork keeps the calls of a program with it, and leaves a program out with a call that is cut off',
    async body(scene) {
      const ofProgram = { caller: { type: 'program', caller_id: 'p' } };
      const program = [user('1'), { type: 'program', call_id: 'p', code: 'look()' }];
      const end = { type: 'program_output', call_id: 'p', result: '' };
      const answered = [...program, { ...call('c'), ...ofProgram }, { ...output('c'), ...ofProgram }];
      const store = await scene.filled([...answered, user('2'), end]);
      const whole = await store.fork(scene.id, `${scene.id}-whole`, { untilTurn: 2 });
      same(await whole.getItems(), answered, 'items of a program whose call was answered');
      // Its status says that it is done, so its output is there to come.
      const shell = {
        type: 'shell_call',
        call_id: 's',
        action: { commands: ['ls'] },
        status: 'completed',
        ...ofProgram,
      };
      const late = { type: 'shell_call_output', call_id: 's', output: [], ...ofProgram };
      await store.session(`${scene.id}-late`).addItems([...program, shell, user('2'), late, end]);
      const cut = await store.fork(`${scene.id}-late`, `${scene.id}-cut`, { untilTurn: 2 });
      same(await cut.getItems(), [user('1')], 'items before a turn that an answer came behind');
    },
  },
  {
    id: 'N10',
    title: 'a fork and an import are as new as they are, whatever the age of their source',
    async body(scene) {
      const store = await scene.filled(turns(1));
      await scene.age(scene.id, 2 * DAY);
      const [fork, copy] = [`${scene.id}-fork`, `${scene.id}-import`];
      await store.fork(scene.id, fork);
      await scene.age(fork, DAY);
      await store.import(copy, store.export(scene.id));
      if (scene.fixture.ordered !== false)
        same(idsOf(await all(store)), [copy, fork, scene.id], 'ids by the last update');
      for (const [id, days] of [
        [fork, 1],
        [copy, 0],
      ] as const) {
        const { createdAt, updatedAt } = (await store.get(id)) ?? {};
        for (const time of [createdAt, updatedAt])
          check(time !== undefined && Math.abs(Date.now() - days * DAY - time.getTime()) < DAY / 2, `times of ${id}`);
      }
    },
  },
];
