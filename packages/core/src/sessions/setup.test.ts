import { describe, expect, it } from 'vitest';

import { UserError } from '../base/errors.ts';
import { MemorySession } from './memory.ts';
import { StoredSession } from './stored-session.ts';
import { StoredSessionStore } from './stored-store.ts';

const backend = {
  read: () => ({ records: [], version: '0' }),
  write: () => '1',
  pop: () => undefined,
  clear: () => undefined,
};
const store = {
  session: (id: string) => new MemorySession(id),
  history: () => backend,
  list: () => ({ sessions: [] }),
  get: () => undefined,
  remove: () => ({ sessions: 0, items: 0 }),
  setMetadata: () => undefined,
};
const name = 'MySession';

/** What a backend's author may get wrong, and what tells it. */
const wrong: readonly (readonly [string, unknown, unknown, RegExp])[] = [
  ['no set-up', () => backend, undefined, /^StoredSession needs a set-up.*\{ name: 'MySession' \}/],
  ['null as set-up', () => backend, null, /set-up of StoredSession must be an object, not null/],
  ['a text as set-up', () => backend, name, /set-up of StoredSession must be an object, not a string/],
  ['no name', () => backend, {}, /set-up of StoredSession needs a 'name'/],
  ['a blank name', () => backend, { name: ' ' }, /'name' of the set-up of StoredSession/],
  ['an unknown member', () => backend, { name, timeout: 5 }, /Unknown option 'timeout'.*Did you mean 'timeoutMs'/],
  ['a time of nothing', () => backend, { name, timeoutMs: 0 }, /'timeoutMs' of the set-up.*at least 1/],
  ['a time that no timer takes', () => backend, { name, timeoutMs: 2 ** 31 }, /'timeoutMs' of.*at most 2147483647/],
  ['a text as encoding', () => backend, { name, encoding: 'ascii' }, /'encoding' of the set-up.*an object/],
  [
    'an unknown style',
    () => backend,
    { name, encoding: { style: 'tight' } },
    /'style' of 'encoding'.*'compact' or 'spaced'/,
  ],
  [
    'a backend for its function',
    backend,
    { name },
    /^MySession gives StoredSession no 'open', a function.*but an object/,
  ],
  [
    'nothing made',
    () => undefined,
    { name },
    /^The HistoryBackend of MySession must be an object with read\(\), write\(\)/,
  ],
  ['a promise', async () => backend, { name }, /HistoryBackend of MySession must be there at once, not a promise/],
  [
    'a part of a backend',
    () => ({ read: backend.read }),
    { name },
    /HistoryBackend of MySession lacks write\(\), pop\(\), clear\(\)/,
  ],
  [
    'a method that is none',
    () => ({ ...backend, pop: 5 }),
    { name },
    /'pop' of the HistoryBackend of MySession must be a function/,
  ],
  [
    'an option that is none',
    () => ({ ...backend, ping: true }),
    { name },
    /'ping' of the HistoryBackend.*must be a function, not a boolean/,
  ],
];

describe('a session over a backend of somebody', () => {
  it.each(wrong)('is refused, and told what it wants: %s [SESS-151]', (_, open, setup, message) => {
    const make = (): unknown => new StoredSession('s', open as never, setup as never);
    expect(make).toThrow(UserError);
    expect(make).toThrow(message);
  });

  it('makes nothing before all else was found good [SESS-151]', () => {
    let made = 0;
    const open = () => (made++, backend);
    expect(() => new StoredSession(' ', open, { name })).toThrow(UserError);
    expect(() => new StoredSession('s', open, {} as never)).toThrow(UserError);
    expect(() => new StoredSession('s', open, { name, options: { limit: 1 } as never })).toThrow(UserError);
    expect(made).toBe(0);
    expect(new StoredSession('s', open, { name, options: {}, timeoutMs: undefined }).sessionId).toBe('s');
    expect(made).toBe(1);
  });

  it('takes as its time what a timer takes, and no more [SESS-156]', async () => {
    const open = (operationTimeoutMs: number) =>
      new StoredSession('s', () => backend, { name, options: { operationTimeoutMs } });
    expect(await open(2 ** 31 - 1).ping()).toBe(true);
    for (const more of [2 ** 31, 2 ** 40])
      expect(() => open(more)).toThrow(/'operationTimeoutMs' of MySession must be an integer .* at most 2147483647/);
  });

  it('passes what its own getters throw [SESS-151]', () => {
    const own = new Error('mine');
    const thrower = {
      get name(): string {
        throw own;
      },
    };
    expect(() => new StoredSession('s', () => backend, thrower)).toThrow(own);
  });
});

describe('a store over a backend of somebody', () => {
  it.each([
    ['no set-up', store, undefined, /^StoredSessionStore needs a set-up/],
    ['options in it', store, { name, options: {} }, /Unknown option 'options' of the set-up of StoredSessionStore/],
    ['no backend', undefined, { name }, /^The SessionStoreBackend of MySession must be an object with session\(\)/],
    ['a part of one', { ...store, remove: undefined }, { name }, /SessionStoreBackend of MySession lacks remove\(\)/],
    [
      'a stage that is none',
      { ...store, stage: {} },
      { name },
      /'stage' of the SessionStoreBackend of MySession must be a function/,
    ],
  ])('is refused, and told what it wants: %s [SESS-151]', (_, given, setup, message) => {
    const make = (): unknown => new StoredSessionStore(given as never, setup as never);
    expect(make).toThrow(UserError);
    expect(make).toThrow(message);
  });
});
