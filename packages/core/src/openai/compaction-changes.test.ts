import { afterEach, describe, expect, it, vi } from 'vitest';
import { MemorySession } from '../index.ts';
import type { AgentInputItem } from '../index.ts';
import { resetDefaults } from '../testing/index.ts';
import { FourFunctions, said, summary, talk, wrapped } from '../../test/compaction-kit.ts';
import { user } from '../../test/run-kit.ts';

afterEach(resetDefaults);

/** Ends when the test opens it. */
function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => void (open = resolve));
  return { opened, open: () => open() };
}

describe('while a history is replaced', () => {
  /** Held in the middle of a replacement, until `open()`. */
  async function replacing() {
    const memory = new MemorySession('s', { items: talk(10) });
    const { version } = await memory.readHistory();
    const { opened, open } = gate();
    const { opened: reached, open: reach } = gate();
    const apply = memory.applyHistoryTransaction.bind(memory);
    memory.applyHistoryTransaction = async (operation) => {
      if (operation.transaction.type === 'replace_suffix') {
        reach();
        await opened;
      }
      await apply(operation);
    };
    const { compacting, gives } = await wrapped(memory);
    gives([summary]);
    const compaction = compacting.runCompaction();
    await reached;
    return { memory, compacting, version, open, compaction };
  }

  it.each([
    'addItems',
    'popItem',
    'clearSession',
    'applyHistoryTransaction',
    'appendIfVersion',
    'replaceHistory',
    'getItems',
  ] as const)('%s waits [SESS-317]', async (name) => {
    const { memory, compacting, version, open, compaction } = await replacing();
    const spy = vi.spyOn(memory, name);
    const calls: Record<typeof name, () => Promise<unknown> | undefined> = {
      addItems: () => compacting.addItems([user('x')]),
      popItem: () => compacting.popItem(),
      clearSession: () => compacting.clearSession(),
      applyHistoryTransaction: () =>
        compacting.applyHistoryTransaction?.({
          operationId: 'op',
          transaction: { type: 'append_items', items: [user('x')] },
        }),
      appendIfVersion: () => compacting.appendIfVersion?.(version, [user('x')]),
      replaceHistory: () => compacting.replaceHistory?.([user('x')]),
      getItems: () => compacting.getItems(),
    };
    const call = calls[name]()?.catch(() => undefined);
    await new Promise((resolve) => void setTimeout(resolve, 0));
    expect(spy).not.toHaveBeenCalled();
    open();
    await Promise.all([call, compaction]);
    expect(spy).toHaveBeenCalledTimes(1);
  });

  it.each(['addItems', 'applyHistoryTransaction', 'appendIfVersion', 'replaceHistory'] as const)(
    '%s keeps what it was called with [SESS-008, SESS-317]',
    async (name) => {
      const { memory, compacting, open, compaction } = await replacing();
      const given: { role: 'user'; content: string } = { role: 'user', content: 'before' };
      const transaction = { type: 'append_items', items: [given] } as const;
      const stored = vi.spyOn(memory, name);
      const call = {
        addItems: () => compacting.addItems([given]),
        applyHistoryTransaction: () => compacting.applyHistoryTransaction?.({ operationId: 'op', transaction }),
        appendIfVersion: () => compacting.appendIfVersion?.('of before', [given]),
        replaceHistory: () => compacting.replaceHistory?.([given]),
      }[name]();
      given.content = 'after';
      open();
      await Promise.allSettled([call, compaction]);
      expect(JSON.stringify(stored.mock.lastCall)).toMatch(/"before"/u);
    },
  );
});

describe('the count of candidates', () => {
  /** Counted once: four of them. */
  async function four() {
    const session = new FourFunctions();
    const { compacting, gives } = await wrapped(session);
    await compacting.addItems(talk(4));
    await compacting.deferCompaction('resp_0');
    return { session, compacting, gives };
  }

  it('has what two appends at the same time added, whichever ends first [SESS-317]', async () => {
    const { session, compacting } = await four();
    const { opened, open } = gate();
    const addItems = session.addItems.bind(session);
    let calls = 0;
    session.addItems = async (items) => {
      if (calls++ === 1) await opened;
      await addItems(items);
    };
    const first = compacting.addItems(talk(3));
    const second = compacting.addItems(talk(3));
    await first;
    open();
    await second;
    await compacting.deferCompaction('resp_1');
    expect(compacting.deferredResponseId).toBe('resp_1');
  });

  it('has what was appended while it was counted [SESS-317]', async () => {
    const session = new FourFunctions();
    const { compacting } = await wrapped(session);
    const [reading, adding] = [gate(), gate()];
    const [getItems, addItems] = [session.getItems.bind(session), session.addItems.bind(session)];
    session.getItems = async (limit?: number): Promise<AgentInputItem[]> => {
      const items = await getItems(limit);
      await reading.opened;
      return items;
    };
    session.addItems = async (items) => {
      await adding.opened;
      await addItems(items);
    };
    const counting = compacting.deferCompaction('resp_0');
    await new Promise((resolve) => void setTimeout(resolve, 0));
    const append = compacting.addItems(talk(10));
    reading.open();
    await counting;
    adding.open();
    await append;
    await compacting.deferCompaction('resp_1');
    expect(compacting.deferredResponseId).toBe('resp_1');
  });

  it('waits for what is appended at the moment [SESS-317]', async () => {
    const { session, compacting } = await four();
    const addItems = session.addItems.bind(session);
    session.addItems = async (items) => {
      await new Promise((resolve) => void setTimeout(resolve, 0));
      await addItems(items);
    };
    const append = compacting.addItems(talk(6));
    await compacting.deferCompaction('resp_1');
    await append;
    expect(compacting.deferredResponseId).toBe('resp_1');
  });

  it('begins anew after a replacement [SESS-317]', async () => {
    const { compacting, gives } = await four();
    await compacting.addItems(talk(6));
    gives([summary]);
    await compacting.runCompaction();
    await compacting.addItems([said('one')]);
    await compacting.deferCompaction('resp_1');
    expect(compacting.deferredResponseId).toBeUndefined();
  });
});
