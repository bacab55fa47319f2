import { expect, it } from 'vitest';

import { SessionClosedError } from './errors.ts';
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
