import { describe, expect, it, vi } from 'vitest';

import type { HistoryOperation, Session } from '../../sessions/contract.ts';
import { SessionVersionConflictError } from '../../sessions/errors.ts';
import { MemorySession } from '../../sessions/memory.ts';
import type { SessionFixture } from './session.ts';
import { sessionContract } from './session.ts';

type Break = (session: MemorySession<object>) => Partial<Session<object> & Record<string, unknown>>;

/** A store of memory sessions whose objects all have the same fault. */
function brokenFixture(change: Break): SessionFixture {
  const sessions = new Map<string, MemorySession<object>>();
  return {
    open(id, options) {
      const inner = sessions.get(id) ?? new MemorySession<object>(id);
      sessions.set(id, inner);
      const limit = options?.sessionSettings?.limit;
      const session = {
        sessionId: id,
        sessionSettings: options?.sessionSettings,
        ...Object.fromEntries(METHODS.map((name) => [name, (inner[name] as () => unknown).bind(inner)])),
        ...(typeof limit === 'number' && {
          getItems: (given: number = limit) => inner.getItems(given),
          readHistory: (given: number = limit) => inner.readHistory(given),
        }),
        [Symbol.asyncDispose]: () => inner.close(),
      };
      Object.defineProperty(session, 'closed', { get: () => inner.closed });
      return Object.assign(session, change(inner)) as unknown as Session<object>;
    },
  };
}

const METHODS = [
  'getItems',
  'addItems',
  'popItem',
  'clearSession',
  'applyHistoryTransaction',
  'readHistory',
  'appendIfVersion',
  'replaceHistory',
  'ping',
  'close',
] as const;

const later = () => Promise.resolve();
const faults: Record<string, Break> = {
  'ignores the limit': (session) => ({ getItems: () => session.getItems() }),
  'reverses the order': (session) => ({
    getItems: async (limit?: number) => (await session.getItems(limit)).toReversed(),
  }),
  'splits batches': (session) => ({
    async addItems(items: readonly object[]) {
      for (const item of items) {
        await session.addItems([item]);
        await later();
      }
    },
  }),
  'drops the last of a batch': (session) => ({
    addItems: (items: readonly object[]) => session.addItems(items.length > 1 ? items.slice(0, -1) : items),
  }),
  'caches its history': (session) => {
    let cached: object[] | undefined;
    return {
      getItems: async (limit?: number) =>
        limit === undefined ? (cached ??= await session.getItems()) : await session.getItems(limit),
      addItems: async (items: readonly object[]) => {
        await session.addItems(items);
        cached = undefined;
      },
    };
  },
  'returns references': (session) => {
    const seen = new Map<string, object>();
    return {
      getItems: async (limit?: number) =>
        (await session.getItems(limit)).map((item) => {
          const text = JSON.stringify(item);
          if (!seen.has(text)) seen.set(text, item);
          return seen.get(text)!;
        }),
    };
  },
  'pops the oldest': (session) => ({
    async popItem() {
      const [oldest, ...rest] = await session.getItems();
      await session.replaceHistory(rest);
      return oldest;
    },
  }),
  'merges equal messages': (session) => ({
    async addItems(items: readonly object[]) {
      await session.addItems([...new Map(items.map((item) => [JSON.stringify(item), item])).values()]);
    },
  }),
  'pops in two steps': (session) => ({
    async popItem() {
      const [newest] = await session.getItems(1);
      await later();
      await session.popItem();
      return newest;
    },
  }),
  'forgets operation ids': (session) => ({
    applyHistoryTransaction: ({ transaction }: HistoryOperation<object>) =>
      session.applyHistoryTransaction({ operationId: String(Math.random()), transaction }),
  }),
  'pops every item that equals the newest': (session) => ({
    async popItem() {
      const items = await session.getItems();
      const newest = JSON.stringify(items.at(-1));
      if (items.length > 0) await session.replaceHistory(items.filter((item) => JSON.stringify(item) !== newest));
      return items.at(-1);
    },
  }),
  'replaces a suffix wherever its items stand': (session) => ({
    async applyHistoryTransaction(operation: HistoryOperation<object>) {
      const { transaction } = operation;
      const before = await session.getItems();
      await session.applyHistoryTransaction(operation);
      if (transaction.type !== 'replace_suffix') return;
      const gone = new Set(transaction.expectedSuffix.map((item) => JSON.stringify(item)));
      const now = await session.getItems();
      const kept = now.slice(0, now.length - transaction.replacement.length);
      if (kept.length < before.length)
        await session.replaceHistory([
          ...kept.filter((item) => !gone.has(JSON.stringify(item))),
          ...transaction.replacement,
        ]);
    },
  }),
  'remembers operations that it refused': (session) => {
    const known = refused.get(session) ?? new Set();
    refused.set(session, known);
    const once = async <R>(id: string | undefined, work: () => Promise<R>, otherwise: R): Promise<R> => {
      if (id !== undefined && known.has(id)) return otherwise;
      try {
        return await work();
      } catch (error) {
        if (id !== undefined && CONFLICTS.has((error as { code: string }).code)) known.add(id);
        throw error;
      }
    };
    return {
      applyHistoryTransaction: (operation: HistoryOperation<object>) =>
        once(operation.operationId, () => session.applyHistoryTransaction(operation), undefined),
    };
  },
  'has one memory of operations for all sessions': (session) => ({
    async applyHistoryTransaction(operation: HistoryOperation<object>) {
      const id = `${operation.operationId} ${JSON.stringify(operation.transaction)}`;
      if ((everywhere.get(id) ?? session) !== session) return;
      await session.applyHistoryTransaction(operation);
      everywhere.set(id, session);
    },
  }),
  'looks at the items of a replacement when others had their turn': (session) => ({
    async replaceHistory(items: readonly object[], options?: { operationId?: string }) {
      await later();
      return await session.replaceHistory(items, options);
    },
  }),
  'reads a version with all items': (session) => ({ readHistory: () => session.readHistory() }),
  'has the count and the newest item for a version': (session) => {
    const versionOf = async (): Promise<string> => {
      const items = await session.getItems();
      return `${items.length} ${JSON.stringify(items.at(-1))}`;
    };
    const checked = async (version: string | undefined): Promise<void> => {
      const actual = await versionOf();
      if (version !== undefined && version !== actual)
        throw new SessionVersionConflictError('changed', { expected: version, actual });
    };
    return {
      readHistory: async (limit?: number) => ({ items: await session.getItems(limit), version: await versionOf() }),
      async appendIfVersion(version: string, items: readonly object[]) {
        await checked(version);
        await session.addItems(items);
        return await versionOf();
      },
      async replaceHistory(items: readonly object[], options?: { ifVersion?: string }) {
        await checked(options?.ifVersion);
        await session.replaceHistory(items);
        return await versionOf();
      },
    };
  },
};

const refused = new WeakMap<object, Set<string>>();
const everywhere = new Map<string, object>();
const CONFLICTS: ReadonlySet<string> = new Set(['session_suffix_mismatch', 'session_version_conflict']);

/** The cases that have to fail for a fault. */
const detecting: Readonly<Record<string, readonly string[]>> = {
  'ignores the limit': ['B1', 'B2', 'B3'],
  'reverses the order': ['A2', 'A4'],
  'splits batches': ['F2', 'F7'],
  'drops the last of a batch': ['A2', 'A4'],
  'caches its history': ['A13'],
  'returns references': ['C10'],
  'pops the oldest': ['A5'],
  'merges equal messages': ['A15'],
  'pops in two steps': ['F3', 'F4'],
  'forgets operation ids': ['I1', 'I2', 'I3'],
  'pops every item that equals the newest': ['A16'],
  'replaces a suffix wherever its items stand': ['I14'],
  'remembers operations that it refused': ['I12'],
  'has one memory of operations for all sessions': ['I13'],
  'looks at the items of a replacement when others had their turn': ['C11', 'F4'],
  'reads a version with all items': ['B1', 'B2', 'B5', 'B6'],
  'has the count and the newest item for a version': ['J9'],
};

describe('sessionContract', () => {
  it.each(Object.entries(faults))('detects a session that %s [SESS#77, SESS-343]', async (name, change) => {
    const about = sessionContract(() => brokenFixture(change)).filter(({ id }) => detecting[name]?.includes(id));
    const missed: string[] = [];
    // The cases that are about it: what it happens to break besides says nothing of them.
    for (const contractCase of about)
      await contractCase.run().then(
        () => missed.push(contractCase.id),
        () => undefined,
      );
    expect([about.length, missed]).toEqual([detecting[name]?.length, []]);
  });

  it.each([
    ['without their case', (id: string) => id.toLowerCase()],
    ['as patterns', (id: string) => id.replace(/^[%*]/, '').replaceAll('_', '-')],
  ])('detects a store that reads ids %s [SESS#77]', async (_, keyOf) => {
    const cases = sessionContract(() => {
      const fixture = brokenFixture(() => ({}));
      return { open: async (id, options) => Object.assign(await fixture.open(keyOf(id), options), { sessionId: id }) };
    });
    const wrong: string[] = [];
    for (const contractCase of cases) await contractCase.run().catch(() => wrong.push(contractCase.id));
    expect(wrong).toEqual(['A11', 'A12']);
  });

  it('finds nothing wrong with a session that has no fault', async () => {
    for (const contractCase of sessionContract(() => brokenFixture(() => ({}))))
      await expect(contractCase.run().then(() => contractCase.id)).resolves.toBe(contractCase.id);
  });

  it('holds every case for any subject, and says why one cannot be run [SESS-341]', async () => {
    const four = (id: string) => {
      const session = new MemorySession<object>(id);
      return {
        sessionId: id,
        getItems: (limit?: number) => session.getItems(limit),
        addItems: (items: readonly object[]) => session.addItems(items),
        popItem: () => session.popItem(),
        clearSession: () => session.clearSession(),
      };
    };
    const cases = sessionContract(() => ({ open: four }));
    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
    const skip = vi.fn<(reason: string) => void>();
    await cases.find(({ id }) => id === 'I1')!.run({ skip });
    await cases.find(({ id }) => id === 'E1')!.run({ skip });
    expect(skip.mock.calls).toEqual([
      ["the session has no capability 'transactions'"],
      ['the fixture cannot add corrupt records'],
    ]);
    await expect(cases.find(({ id }) => id === 'I1')!.run()).resolves.toBeUndefined();
  });
});
