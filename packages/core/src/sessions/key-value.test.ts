import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { configureLogging } from '../base/logger.ts';
import type { LogRecord } from '../base/logger.ts';
import { sessionContract } from '../testing/contracts/session.ts';
import type { SessionFixture } from '../testing/contracts/session.ts';
import { decodeItem } from './codec.ts';
import { KeyValueSession } from './key-value.ts';
import type { KeyValueStore } from './key-value.ts';
import { OperationMemory } from './operation-memory.ts';

const warn = vi.fn<(record: LogRecord) => void>();
beforeEach(() => configureLogging({ sink: warn }));
afterEach(() => {
  configureLogging({ sink: null });
  warn.mockReset();
});

const user = (content: string) => ({ role: 'user', content });

/** A store in memory; `fail` breaks the next write of a history, before or after it was made. */
class MapStore implements KeyValueStore {
  readonly values = new Map<string, { value: string; etag: string }>();
  fail: 'before' | 'after' | undefined;
  /** Runs before each write. */
  meanwhile: ((key: string) => void) | undefined;
  #writes = 0;

  async get(key: string) {
    return this.values.get(key);
  }

  async compareAndSet(key: string, value: string, etag: string | undefined) {
    await this.#before(key);
    this.meanwhile?.(key);
    if (this.values.get(key)?.etag !== etag) return false;
    this.put(key, value);
    this.#after(key);
    return true;
  }

  async delete(key: string) {
    await this.#before(key);
    this.values.delete(key);
    this.#after(key);
  }

  put(key: string, value: string): void {
    this.values.set(key, { value, etag: String(++this.#writes) });
  }

  async #before(key: string): Promise<void> {
    await Promise.resolve();
    if (this.fail !== 'before' || !key.endsWith(':messages')) return;
    this.fail = undefined;
    throw new Error('away');
  }

  #after(key: string): void {
    if (this.fail !== 'after' || !key.endsWith(':messages')) return;
    this.fail = undefined;
    throw new Error('lost');
  }
}

const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract [SESS-321, SESS-342]', () => {
  const make = (): SessionFixture => {
    const store = new MapStore();
    return {
      open: (id, options) => new KeyValueSession<object>(id, { store, ...options }),
      addCorrupt(id, record) {
        const stored = store.values.get(`${id}:messages`);
        const items = JSON.parse(stored?.value ?? '[]') as string[];
        store.put(`${id}:messages`, JSON.stringify([...items, record]));
      },
      readCorrupt: (id) =>
        (JSON.parse(store.values.get(`${id}:messages`)?.value ?? '[]') as string[]).filter(
          // Its own record of operations stands among them.
          (text) => decodeItem(text) === undefined && !text.startsWith('agents '),
        ),
      failNext(when) {
        store.fail = when;
      },
    };
  };
  // Many writers of one value are refused in the end (a test below); all of it is read for its tail, and a store is closed by its owner.
  const crowded = /^(B9|F2|F5|H2)/;
  it.each(sessionContract(make).filter(({ id }) => !crowded.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('the value', () => {
  it('is the one of the Python SDK, operations included in the same write [SESS-321]', async () => {
    const store = new MapStore();
    const session = new KeyValueSession<object>('s', { store, keyPrefix: 'agents:' });
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'append_items', items: [user('Grüße')] },
    });
    const [mark, ...items] = JSON.parse(store.values.get('agents:s:messages')?.value ?? '') as string[];
    expect(items).toEqual(['{"role":"user","content":"Gr\\u00fc\\u00dfe"}']);
    // Python passes over what it cannot decode.
    expect(() => JSON.parse(mark ?? '') as unknown).toThrow(SyntaxError);
    expect(mark).toContain('"op"');
    const metadata = JSON.parse(store.values.get('agents:s:metadata')?.value ?? '') as Record<string, string>;
    expect(metadata).toEqual({
      session_id: 's',
      created_at: expect.stringMatching(/^\d+$/),
      updated_at: expect.stringMatching(/^\d+$/),
    });
  });

  it('is read and gone on with as Python wrote it [SESS-321]', async () => {
    const store = new MapStore();
    store.put(
      's:messages',
      JSON.stringify(['{"role":"user","content":"1"}', { role: 'user', content: '2' }, 'broken']),
    );
    const session = new KeyValueSession<object>('s', { store });
    expect(await session.getItems()).toEqual([user('1'), user('2')]);
    const { version } = await session.readHistory();
    await session.addItems([user('3')]);
    expect((await session.readHistory()).version).not.toBe(version);
    expect(await session.getItems(2)).toEqual([user('2'), user('3')]);
  });

  it('keeps what others put there that is no item, as it is [SESS-153]', async () => {
    const store = new MapStore();
    let deep: unknown = 'deep';
    for (let level = 0; level < 600; level++) deep = [deep];
    const odd = ['broken {"epoch":"e"}', '', 'broken', 7, null, { deep }, ['list']];
    store.put('s:messages', JSON.stringify([...odd, '{"role":"user","content":"1"}']));
    const session = new KeyValueSession<object>('s', { store });
    expect(await session.getItems()).toEqual([user('1')]);
    await session.addItems([user('2')]);
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: [user('1'), user('2')], replacement: [user('3')] },
    });
    expect(await session.popItem()).toEqual(user('3'));
    await session.addItems([user('4')]);
    const [, ...stored] = JSON.parse(store.values.get('s:messages')?.value ?? '') as unknown[];
    expect(stored).toEqual([...odd, '{"role":"user","content":"4"}']);
  });

  it.each(['{"role":"user"}', 'text', '[1', 'null'])(
    'that is no array is read as empty and never overwritten: %s [SESS-321]',
    async (value) => {
      const store = new MapStore();
      store.put('s:messages', value);
      const session = new KeyValueSession<object>('s', { store });
      expect(await session.getItems()).toEqual([]);
      await expect(session.addItems([user('x')])).rejects.toMatchObject({ code: 'session_schema' });
      await expect(session.popItem()).rejects.toMatchObject({ code: 'session_schema' });
      expect(store.values.get('s:messages')?.value).toBe(value);
      expect(warn).toHaveBeenCalledTimes(1);
      await session.clearSession();
      await session.addItems([user('x')]);
      expect(await session.getItems()).toEqual([user('x')]);
    },
  );

  it('has another version after each change of ours, and after those of others that can be seen [SESS-037]', async () => {
    const store = new MapStore();
    const session = new KeyValueSession<object>('s', { store });
    const elements = (): string[] => JSON.parse(store.values.get('s:messages')?.value ?? '[]') as string[];
    const seen = new Set<string>();
    const changes: (() => unknown)[] = [
      () => undefined,
      () => session.addItems([user('1'), user('2')]),
      // The same again, as far as others can tell.
      () => session.replaceHistory([user('1'), user('2')]),
      () => session.clearSession(),
      () => session.addItems([user('1'), user('2')]),
      // Others change the newest item, and add one further back.
      () => store.put('s:messages', JSON.stringify([...elements().slice(0, -1), JSON.stringify(user('3'))])),
      () => store.put('s:messages', JSON.stringify([...elements().slice(0, -1), 'x', ...elements().slice(-1)])),
      () => session.popItem(),
    ];
    for (const change of changes) {
      await change();
      seen.add((await session.readHistory()).version);
    }
    // Cleared, it is as it was when there was none.
    expect(seen.size).toBe(changes.length - 1);
    const { version } = await session.readHistory();
    expect(await session.appendIfVersion(version, [])).toBe(version);
    expect(await new KeyValueSession('none', { store }).appendIfVersion('none', [])).toBe('none');
    expect([...store.values.keys()].filter((key) => key.startsWith('none'))).toEqual([]);
  });

  it('has its times beside it: made once, moved by appends and not by pops; what others put there stays [SESS-015]', async () => {
    vi.useFakeTimers({ now: 1_700_000_000_000, toFake: ['Date'] });
    try {
      const store = new MapStore();
      const session = new KeyValueSession<object>('s', { store });
      const times = (): unknown => JSON.parse(store.values.get('s:metadata')?.value ?? '{}');
      await session.addItems([user('1'), user('2')]);
      store.put('s:metadata', JSON.stringify({ ...(times() as object), theirs: 1 }));
      vi.advanceTimersByTime(10_000);
      await session.popItem();
      const first = { session_id: 's', created_at: '1700000000', updated_at: '1700000000', theirs: 1 };
      expect(times()).toEqual(first);
      await session.addItems([user('3')]);
      expect(times()).toEqual({ ...first, updated_at: '1700000010' });
    } finally {
      vi.useRealTimers();
    }
  });

  it('is cleared though its times cannot be; whether it was, nobody knows when the answer is lost [SESS-152, SESS-321]', async () => {
    const store = new MapStore();
    const session = new KeyValueSession<object>('s', { store });
    await session.addItems([user('x')]);
    const remove = store.delete.bind(store);
    store.delete = async (key) => {
      if (key.endsWith(':metadata')) throw new TypeError('secret');
      await remove(key);
    };
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    expect(warn).toHaveBeenCalledTimes(1);
    for (const change of [() => session.clearSession(), () => session.addItems([user('y')]), () => session.popItem()]) {
      store.fail = 'after';
      await expect(change()).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    }
  });

  it('goes with its times when the session is cleared [SESS-011]', async () => {
    const store = new MapStore();
    const session = new KeyValueSession<object>('s', { store });
    await session.addItems([user('x')]);
    await session.clearSession();
    expect([...store.values.keys()]).toEqual([]);
  });
});

describe('writers', () => {
  it('try again when others were first, five times [SESS-321]', async () => {
    vi.useFakeTimers();
    try {
      const store = new MapStore();
      const session = new KeyValueSession<object>('s', { store });
      let others = 4;
      let writes = 0;
      store.meanwhile = (key) => {
        if (key !== 's:messages') return;
        writes++;
        if (others-- > 0) store.put(key, JSON.stringify([`{"n":${writes}}`]));
      };
      const added = session.addItems([user('x')]);
      await vi.runAllTimersAsync();
      await added;
      expect(await session.getItems()).toEqual([{ n: 4 }, user('x')]);
      others = 5;
      const refused = session.addItems([user('y')]).catch((error: unknown) => error);
      await vi.runAllTimersAsync();
      expect(await refused).toMatchObject({ code: 'session_busy' });
      expect(writes).toBe(10);
      expect(await session.getItems()).toEqual([{ n: 10 }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('wait 50 ms and then twice as long each time, up to a tenth more, and not after the last try [SESS-321]', async () => {
    for (const random of [0, 1]) {
      vi.useFakeTimers();
      vi.spyOn(Math, 'random').mockReturnValue(random);
      try {
        const store = new MapStore();
        let last = 0;
        const waits: number[] = [];
        store.meanwhile = (key) => {
          waits.push(Math.round(Date.now() - last));
          last = Date.now();
          store.put(key, '[]');
        };
        last = Date.now();
        const refused = new KeyValueSession<object>('s', { store }).addItems([user('x')]).catch(() => undefined);
        await vi.runAllTimersAsync();
        await refused;
        expect(waits).toEqual(random === 0 ? [0, 50, 100, 200, 400] : [0, 55, 110, 220, 440]);
        expect(Date.now()).toBe(last);
      } finally {
        vi.restoreAllMocks();
        vi.useRealTimers();
      }
    }
  });

  it('know that nothing was written where only reading failed [SESS-321]', async () => {
    const store = new MapStore();
    const session = new KeyValueSession<object>('s', { store });
    const error = new Error('away');
    store.get = async () => await Promise.reject(error);
    for (const change of [() => session.addItems([user('x')]), () => session.popItem()])
      expect(await change().catch((given: unknown) => given)).toBe(error);
  });

  it('write in place of what they read, and of nothing else [SESS-321]', async () => {
    const store = new MapStore();
    const get = store.get.bind(store);
    let isRead = false;
    store.get = async (key) => {
      const stored = await get(key);
      // Somebody else writes right behind the first read.
      if (!isRead && key === 's:messages') store.put(key, JSON.stringify(['{"n":1}']));
      isRead = true;
      return stored;
    };
    const session = new KeyValueSession<object>('s', { store });
    await session.addItems([user('x')]);
    expect(await session.getItems()).toEqual([{ n: 1 }, user('x')]);
  });

  it('lose no batch and split none: two of them [SESS-006, SESS-009]', async () => {
    const store = new MapStore();
    const sessions = [1, 2].map(() => new KeyValueSession<{ n: string }>('s', { store }));
    await Promise.all(
      sessions.map(async (session, writer) => {
        for (let batch = 0; batch < 5; batch++)
          await session.addItems([1, 2, 3].map((n) => ({ n: `${writer}/${batch}/${n}` })));
      }),
    );
    const all = (await sessions[0]!.getItems()).map(({ n }) => n);
    expect(all).toHaveLength(30);
    for (let at = 0; at < all.length; at += 3)
      expect(all.slice(at, at + 3).map((n) => n.slice(0, -2))).toEqual(Array(3).fill(all[at]?.slice(0, -2)));
  });

  it('tell, and do not raise, that the times could not be stored [SESS-152, SESS-321]', async () => {
    const store = new MapStore();
    store.meanwhile = (key) => {
      if (key.endsWith(':metadata')) throw new TypeError('secret');
    };
    await new KeyValueSession<object>('s', { store }).addItems([user('x')]);
    expect(warn.mock.calls.map(([{ message, data }]) => [message, data])).toEqual([
      [expect.stringMatching(/times.*could not be stored/), { sessionId: 's', error: 'TypeError' }],
    ]);
  });
});

it('remembers operations of a day, the last 64 in any case, and never more than 1024 [SESS-034]', () => {
  let memory = new OperationMemory([]);
  const key = (id: number) => ({ id: String(id), digest: 'd' });
  for (let id = 0; id < 100; id++) memory = memory.with(key(id), 'v', 0);
  expect(memory.get('0')).toEqual({ digest: 'd', version: 'v' });
  memory = memory.with(key(100), 'v', 25 * 60 * 60 * 1000);
  expect([memory.get('36'), memory.get('37')]).toEqual([undefined, { digest: 'd', version: 'v' }]);
  expect(OperationMemory.from(memory.toJSON()).get('100')).toEqual({ digest: 'd', version: 'v' });
  for (let id = 200; id < 1300; id++) memory = memory.with(key(id), 'v', 25 * 60 * 60 * 1000);
  expect(memory.toJSON()).toHaveLength(1024);
  expect(OperationMemory.from([['a', 'd', 'v', 1], ['b'], 7]).toJSON()).toEqual([['a', 'd', 'v', 1]]);
});

it.each([
  [undefined],
  [{}],
  [{ store: {} }],
  [{ store: new MapStore(), keyPrefix: 7 }],
  [{ store: new MapStore(), keyPrefix: 'a\0' }],
  [{ store: new MapStore(), prefix: 'a' }],
])('refuses wrong options', (options) => {
  expect(() => new KeyValueSession('s', options as never)).toThrow(expect.objectContaining({ name: 'UserError' }));
});
