import { afterEach, describe, expect, it, vi } from 'vitest';

import { sessionStoreContract } from '../testing/contracts/session-store.ts';
import type { SessionStoreFixture } from '../testing/contracts/session-store.ts';
import { sessionContract } from '../testing/contracts/session.ts';
import { MemorySessionStore, MemoryStore } from './memory-store.ts';
import { memoryEncoding, MemorySession } from './memory.ts';
import { StoredSessionStore } from './stored-store.ts';

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

/** Stores of one map; a session is aged by writing to it under an earlier clock. */
function memoryFixture(): SessionStoreFixture {
  const store = new MemorySessionStore();
  const { close: _, ...methods } = {
    session: store.session.bind(store),
    list: store.list.bind(store),
    get: store.get.bind(store),
    delete: store.delete.bind(store),
    fork: store.fork.bind(store),
    setMetadata: store.setMetadata.bind(store),
    prune: store.prune.bind(store),
    export: store.export.bind(store),
    import: store.import.bind(store),
    check: store.check.bind(store),
    close: undefined,
  };
  const nothing = async (): Promise<void> => {};
  return {
    open: () => ({ ...methods, close: nothing, [Symbol.asyncDispose]: nothing }),
    async age(sessionId, ms) {
      const session = store.session(sessionId);
      const items = await session.getItems(Number.MAX_SAFE_INTEGER);
      const metadata = (await store.get(sessionId))?.metadata ?? {};
      await store.delete(sessionId);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - ms });
      try {
        await session.addItems(items);
        await store.setMetadata(sessionId, metadata);
      } finally {
        vi.useRealTimers();
      }
    },
  };
}

describe('contract of stores [SESS-371, 373, 374, IL-044, IL-045]', () => {
  it.each(sessionStoreContract(memoryFixture))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract of its sessions', () => {
  const make = () => {
    const store = new MemorySessionStore();
    return { open: (id: string, options?: object) => store.session(id, options) };
  };
  // Nothing in memory is corrupt, fails or was handed in.
  it.each(sessionContract(make).filter(({ id }) => !/^(E|G|H3)/.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

it('knows whose a session is, finds it by that, and forgets it with the history [IL-041]', async () => {
  const store = new MemorySessionStore();
  for (const owner of ['ada', 'grace']) await store.setMetadata(`of-${owner}`, { owner, tags: ['new'] });
  const find = async () =>
    (await store.list({ metadata: { owner: 'ada' } })).sessions.map(({ sessionId }) => sessionId);
  expect(await find()).toEqual(['of-ada']);
  await store.session('of-ada').clearSession();
  expect(await find()).toEqual([]);
});

it('has no session for a batch of nothing [SESS-007, SESS-035]', async () => {
  const store = new MemorySessionStore();
  const session = store.session('s');
  const { version } = await session.readHistory();
  await session.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: [] } });
  expect(await session.appendIfVersion(version, [])).toBe(version);
  expect(await store.get('s')).toBeUndefined();
});

it('begins anew after a clear, with its times too [SESS-011, SESS-015]', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
  try {
    const store = new MemorySessionStore();
    const session = store.session('s');
    await session.addItems([{ role: 'user', content: 'x' }]);
    await session.clearSession();
    vi.advanceTimersByTime(5000);
    await store.setMetadata('s', { tag: 1 });
    expect(await store.get('s')).toEqual({
      sessionId: 's',
      createdAt: new Date(1_005_000),
      updatedAt: new Date(1_005_000),
      itemCount: 0,
      metadata: { tag: 1 },
    });
  } finally {
    vi.useRealTimers();
  }
});

describe('many sessions in a store that answers at once', () => {
  afterEach(() => vi.restoreAllMocks());

  it.each([
    // In a few pages that grow.
    ['lists', 2, async (store: MemorySessionStore) => void (await store.list({ limit: 20, metadata: { tag: 1 } }))],
    ['deletes', 6, async (store: MemorySessionStore) => void (await store.prune({ olderThan: new Date(8.64e15) }))],
    ['cuts', 6, async (store: MemorySessionStore) => void (await store.prune({ maxItems: 1 }))],
  ])('lets others run while it %s them [SESS-160, SESS-374]', async (_, often, work) => {
    const store = new MemorySessionStore();
    const items = ['x', 'y'].map((content) => ({ role: 'user' as const, content }));
    for (let index = 0; index < 1000; index++) await store.session(`s${index}`).addItems(items);
    // Each look at the clock finds 10 ms gone: every other turn of a long loop has taken too long.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await work(store);
    clearInterval(timer);
    expect(turns).toBeGreaterThanOrEqual(often);
  });
});

it.each([
  [1, 4],
  [99, 0],
])(
  'cuts no item that came since it read the history: looked at again, not for ever (%i times) [SESS-374]',
  async (times, cut) => {
    const user = (content: string) => ({ role: 'user' as const, content });
    let left = times;
    const backend = new (class extends MemoryStore {
      override history(id: string) {
        const history = super.history(id);
        const read = history.read.bind(history);
        history.read = (count) => {
          const found = read(count);
          if (count === undefined && left-- > 0)
            history.write({ type: 'append', texts: [JSON.stringify(user('new'))] });
          return found;
        };
        return history;
      }
    })();
    const store = new StoredSessionStore(backend, { name: 'BusyStore', encoding: memoryEncoding });
    await store.session('s', {}).addItems(['1', '2', '3', '4'].map(user));
    expect(await store.prune({ maxItems: 1 })).toEqual({ sessions: 0, items: cut });
    left = 0;
    expect((await store.session('s').getItems()).at(-1)).toEqual(user('new'));
  },
);

it('gives sessions of the class that everyone knows', () => {
  const store = new MemorySessionStore();
  expect(store.session('s')).toBeInstanceOf(MemorySession);
  expect(Object.keys(store.session('s').sessionSettings ?? {})).toEqual([]);
});

it('is closed for good, and tells so from the first call on', async () => {
  const store = new MemorySessionStore();
  await store.session('s').addItems([{ role: 'user', content: 'x' }]);
  await store.close();
  await expect(store.list()).rejects.toMatchObject({ code: 'session_closed' });
  expect(() => store.session('s')).toThrow(expect.objectContaining({ code: 'session_closed' }));
  expect(() => store.export('s')).toThrow(expect.objectContaining({ code: 'session_closed' }));
});
