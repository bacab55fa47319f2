import { expect, it } from 'vitest';

import { SessionClosedError } from './errors.ts';
import type { HistoryWrite } from './history-backend.ts';
import { StoredSession } from './stored-session.ts';

it.each([
  ['a read', (session: StoredSession<object>) => session.getItems(), []],
  ['a ping', (session: StoredSession<object>) => session.ping(), true],
] as const)('%s that is under way ends before close lets go of the client [SESS-154]', async (_name, call, result) => {
  const steps: string[] = [];
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const backend = {
    read: async () => {
      await answered;
      steps.push('answer');
      return { records: [], version: '0' };
    },
    write: () => '1',
    pop: () => undefined,
    clear: () => undefined,
    close: () => void steps.push('close'),
  };
  const session = new StoredSession<object>('s', () => backend, { name: 'MySession' });
  const called = call(session);
  const closing = session.close().then(() => steps.push('closed'));
  await expect(session.getItems()).rejects.toThrow(SessionClosedError);
  answer();
  expect(await called).toEqual(result);
  await closing;
  expect(steps).toEqual(['answer', 'close', 'closed']);
});

it('tells of the records that it passes over, each once in a call and the newest first, also when a pop fails behind them [SESS-010, SESS-153]', async () => {
  const texts = ['{"n":1}', 'bad', '{"n":2}', 'bad', undefined];
  const records = texts.map((text, position) => ({ text, position }));
  const told: [number, string][] = [];
  const backend = {
    read: (count = records.length) => ({ records: records.slice(Math.max(0, records.length - count)), version: '1' }),
    write({ texts: added }: HistoryWrite) {
      for (const text of added) records.push({ text, position: records.length });
      return '1';
    },
    pop() {
      if (records.length === 1) throw new Error('away');
      return records.pop();
    },
    clear: () => undefined,
  };
  const options = {
    onCorruptItem: ({ position, reason }: { position: number; reason: string }) => void told.push([position, reason]),
  };
  const session = new StoredSession<object>('s', () => backend, { name: 'MySession', options });
  const noObject = 'not the JSON text of an object';
  const tail = [
    [4, 'not text'],
    [3, noObject],
  ];
  // By windows of 1 and 16.
  expect(await session.getItems(1)).toEqual([{ n: 2 }]);
  expect(told.splice(0)).toEqual([...tail, [1, noObject]]);
  // A pop is one call, however many it passes over: what is appended meanwhile comes behind it.
  const [popped] = await Promise.all([session.popItem(), session.addItems([{ n: 3 }])]);
  expect(popped).toEqual({ n: 2 });
  expect(told.splice(0)).toEqual(tail);
  expect(await session.popItem()).toEqual({ n: 3 });
  await expect(session.popItem()).rejects.toThrow('away');
  expect(told).toEqual([[1, noObject]]);
});
