import { describe, expect, it, vi } from 'vitest';

import type { AgentInputItem } from '../index.ts';
import { logged, PlainSession, user } from '../../test/run-kit.ts';
import { rewind } from './rewind.ts';

const items = (...texts: readonly string[]): AgentInputItem[] => texts.map(user);
const taken = (session: PlainSession, ...texts: readonly string[]): Promise<boolean> =>
  rewind({ session, suffix: items(...texts), context: undefined, digest: (item) => JSON.stringify(item) });

/** Somebody else changes the end right before the pop of this number. */
function changedBeforePop(session: PlainSession, number: number, change: () => void): void {
  const { popItem } = session;
  let pops = 0;
  session.popItem = async () => {
    if (++pops === number) change();
    return await popItem();
  };
}

describe('taking items from the end of a session', () => {
  it('pops them one by one, after a look and before another one [SESS-111]', async () => {
    const session = new PlainSession('s', items('0', '1', '2'));
    expect(await taken(session, '1', '2')).toBe(true);
    expect(session.items).toEqual(items('0'));
    expect(session.log).toEqual(['get(4)', 'pop', 'pop', 'get(4)']);
    expect(await taken(session)).toBe(true);
    expect(session.log).toHaveLength(4);
  });

  it.each([
    ['others behind them', ['1', '2', 'else']],
    ['another one among them', ['1', 'else', '2']],
    ['another order', ['2', '1']],
    ['fewer items', ['2']],
  ])('pops nothing from a history with %s [SESS-111]', async (_, stored) => {
    const session = new PlainSession('s', items(...stored));
    expect(await taken(session, '1', '2')).toBe(false);
    expect(session.log).toEqual(['get(4)']);
  });

  it('puts back what somebody else had put there meanwhile, and what it had taken, in order [SESS-111]', async () => {
    const log = logged();
    const session = new PlainSession('s', items('1', '2', '3'));
    changedBeforePop(session, 2, () => session.items.push(user('else')));
    expect(await taken(session, '1', '2', '3')).toBe(false);
    expect(session.items).toEqual(items('1', '2', 'else', '3'));
    expect(log).toMatchObject([{ level: 'warn', data: { sessionId: 's', count: 2 } }]);
  });

  it('puts back what it had taken when somebody else emptied the session [SESS-111]', async () => {
    const session = new PlainSession('s', items('1', '2'));
    changedBeforePop(session, 2, () => (session.items.length = 0));
    expect(await taken(session, '1', '2')).toBe(false);
    expect(session.items).toEqual(items('2'));
  });

  it('puts back what it had taken when a pop fails, and fails with the same error [SESS-111]', async () => {
    const log = logged();
    const session = new PlainSession('s', items('1', '2', '3'));
    changedBeforePop(session, 3, () => {
      throw session.error;
    });
    await expect(taken(session, '1', '2', '3')).rejects.toBe(session.error);
    expect(session.items).toEqual(items('1', '2', '3'));
    expect(log).toMatchObject([{ level: 'warn', data: { sessionId: 's', count: 2 } }]);
  });

  it('tells of items that could not be put back, and fails with the error of the pop [SESS-111]', async () => {
    const log = logged();
    const session = new PlainSession('s', items('1', '2'));
    const failure = new Error('no pop');
    changedBeforePop(session, 2, () => {
      throw failure;
    });
    session.faults.push('before');
    await expect(taken(session, '1', '2')).rejects.toBe(failure);
    expect(log).toMatchObject([{ level: 'error', data: { sessionId: 's', count: 1, error: 'Error' } }]);
  });

  it.each([
    ['all of them', items('1', '2', '3')],
    ['the older ones', items('1')],
    ['the newer one', items('3')],
  ])('waits while %s can still be read: five looks, a bit longer apart each time [SESS-111]', async (_, shown) => {
    const log = logged();
    vi.useFakeTimers();
    try {
      const session = new PlainSession('s', items('a', 'b', '1', '2', '3'));
      const looks: number[] = [];
      const { getItems } = session;
      session.getItems = async (limit) => {
        if (session.items.length > 2) return await getItems(limit);
        looks.push(Date.now());
        return [...session.items, ...shown];
      };
      const done = taken(session, '1', '2', '3');
      await vi.runAllTimersAsync();
      expect(await done).toBe(true);
      expect(looks.map((at) => at - looks[0]!)).toEqual([0, 100, 300, 600, 1000]);
      expect(log).toMatchObject([{ level: 'warn', data: { sessionId: 's', count: 3 } }]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('does not take equal items that stood before them for them [SESS-111]', async () => {
    const session = new PlainSession('s', items('a', '1', '1', '1'));
    expect(await taken(session, '1')).toBe(true);
    expect(session.log).toEqual(['get(3)', 'pop', 'get(3)']);
  });

  it('does not wait for what others append meanwhile [SESS-111]', async () => {
    const session = new PlainSession('s', items('a', '1'));
    const { getItems } = session;
    session.getItems = async (limit) => {
      if (session.items.length === 1) session.items.push(user('else'));
      return await getItems(limit);
    };
    expect(await taken(session, '1')).toBe(true);
    expect(session.log).toEqual(['get(3)', 'pop', 'get(3)']);
  });
});
