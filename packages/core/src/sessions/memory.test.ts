import { describe, expect, it, vi } from 'vitest';

import { sessionContract } from '../testing/contracts/session.ts';
import { contentDigest } from './contract.ts';
import type { SessionSettings } from './contract.ts';
import { SessionItemError } from './errors.ts';
import { MemorySession } from './memory.ts';

/** Cases that cannot be run here are left out by name; any other must not be skipped. */
const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

describe('contract [SESS-342]', () => {
  const make = () => {
    // A store that objects can share, so that cases about a second object mean something.
    const sessions = new Map<string, MemorySession<object>>();
    return {
      async open(id: string, options?: { sessionSettings?: SessionSettings }) {
        const known = sessions.get(id);
        if (known !== undefined)
          return options === undefined
            ? known
            : new MemorySession<object>(id, { ...options, items: await known.getItems(Number.MAX_SAFE_INTEGER) });
        const session = new MemorySession<object>(id, options);
        sessions.set(id, session);
        return session;
      },
    };
  };
  // Nothing in memory is corrupt, fails or was handed in.
  const impossible = /^(E|G|H3)/;
  it.each(sessionContract(make).filter(({ id }) => !impossible.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

it('draws an id when none is given', () => {
  expect(new MemorySession().sessionId).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});

describe('options', () => {
  it('are checked at once [SESS-005, 137, 171]', () => {
    expect(() => new MemorySession('s', { item: [] } as never)).toThrow(/Unknown option 'item'.*'items'/);
    expect(() => new MemorySession('s', { sessionSettings: { limit: 0.5 } })).toThrow(/whole number/);
    expect(() => new MemorySession(' ')).toThrow(expect.objectContaining({ code: 'session_id_invalid' }));
    expect(() => new MemorySession<object>('s', { items: [{ a: 1n }] })).toThrow(SessionItemError);
  });

  it.each([
    ['nothing', ''],
    ['spaces', ' \n '],
    ['NUL', 'a\0b'],
    ['half a surrogate pair', 'x\ud800'],
    ['the other half', '\udc00x'],
    ['too much', 'x'.repeat(1025)],
    ['a number', 7],
  ])('refuse an id that is %s [SESS-137]', (_, id) => {
    expect(() => new MemorySession(id as string)).toThrow(expect.objectContaining({ code: 'session_id_invalid' }));
  });

  it.each([
    ['one letter', 'x'],
    ['1024 letters', 'x'.repeat(1024)],
    ['spaces around it', ' x '],
    ['signs', 'a:b%c*"\''],
    ['a line break', 'new\nline'],
    ['an emoji', '😀'],
  ])('take an id with %s as it is [SESS-137]', (_, id) => {
    expect(new MemorySession(id).sessionId).toBe(id);
  });

  it('give it initial items, which are copies', async () => {
    const item = { role: 'user', content: 'x' };
    const session = new MemorySession<object>('s', { items: [item] });
    item.content = 'changed';
    expect(await session.getItems()).toEqual([{ role: 'user', content: 'x' }]);
  });
});

it('takes the digest of a wrapper that changes bytes [SESS-036]', async () => {
  const session = new MemorySession<object>();
  const encrypted = (token: string, digest: string) => ({
    operationId: 'op',
    transaction: { type: 'append_items' as const, items: [{ token }] },
    [contentDigest]: digest,
  });
  await session.applyHistoryTransaction(encrypted('first', 'same'));
  await session.applyHistoryTransaction(encrypted('second', 'same'));
  expect(await session.getItems()).toEqual([{ token: 'first' }]);
  await expect(session.applyHistoryTransaction(encrypted('first', 'other'))).rejects.toMatchObject({
    code: 'session_operation_mismatch',
  });
});

it('has in a read what was called before it, awaited or not [SESS-009]', async () => {
  const session = new MemorySession<object>();
  const appended = session.addItems([{ n: 1 }]);
  expect(await session.getItems()).toEqual([{ n: 1 }]);
  const popped = session.popItem();
  expect((await session.readHistory()).items).toEqual([]);
  await Promise.all([appended, popped]);
});

it('forgets operations after a day, but never the last 64 [SESS-034]', async () => {
  vi.useFakeTimers();
  try {
    const session = new MemorySession<object>();
    const append = (id: string) =>
      session.applyHistoryTransaction({ operationId: id, transaction: { type: 'append_items', items: [{ id }] } });
    for (let number = 0; number < 70; number++) await append(`op ${number}`);
    vi.advanceTimersByTime(25 * 60 * 60 * 1000);
    await append('op 70');
    await append('op 7');
    expect(await session.getItems()).toHaveLength(71);
    await append('op 0');
    expect(await session.getItems()).toHaveLength(72);
  } finally {
    vi.useRealTimers();
  }
});
