import { describe, expect, it } from 'vitest';

import type { HistoryOperation } from '../../sessions/contract.ts';
import { MemoryStore } from '../../sessions/memory-store.ts';
import { memoryEncoding } from '../../sessions/memory.ts';
import type { SessionPage, SessionPageResult } from '../../sessions/store-backend.ts';
import { StoredSessionStore } from '../../sessions/stored-store.ts';
import type { SessionStoreFixture } from './session-store.ts';
import { sessionStoreContract } from './session-store.ts';

/** Stores over one backend; sessions are aged in the backend. */
function fixtureOf(Backend: new () => MemoryStore): SessionStoreFixture {
  const backend = new Backend();
  // A client that was handed in: stores do not close it.
  Object.defineProperty(backend, 'close', { value: undefined });
  const open = () => new StoredSessionStore(backend, { name: 'BrokenStore', encoding: memoryEncoding });
  return {
    open,
    age(sessionId, ms) {
      const history = backend.history(sessionId);
      history.createdAt = (history.createdAt ?? 0) - ms;
      history.updatedAt = (history.updatedAt ?? 0) - ms;
    },
  };
}

const faults: Record<string, new () => MemoryStore> = {
  'deletes sessions that were used since they were listed': class extends MemoryStore {
    override remove(ids: readonly string[]) {
      return super.remove(ids);
    }
  },
  'makes a session of an append of nothing': class extends MemoryStore {
    override session(id: string, options: object) {
      const session = super.session(id, options);
      const addItems = session.addItems.bind(session);
      return Object.assign(session, {
        addItems: async (items: readonly never[]) => {
          if (items.length === 0) this.history(id).touch();
          await addItems(items);
        },
      });
    }
  },
  'counts reads as use': class extends MemoryStore {
    override session(id: string, options: object) {
      const session = super.session(id, options);
      const getItems = session.getItems.bind(session);
      return Object.assign(session, {
        getItems: async (limit?: number) => {
          const history = this.history(id);
          if (history.updatedAt !== undefined) history.updatedAt = Date.now();
          return await getItems(limit);
        },
      });
    }
  },
  'remembers operations of sessions that it deleted': class extends MemoryStore {
    readonly #known = new Set<string>();
    override session(id: string, options: object) {
      const session = super.session(id, options);
      const apply = session.applyHistoryTransaction.bind(session);
      return Object.assign(session, {
        applyHistoryTransaction: async (operation: HistoryOperation) => {
          const key = `${id} ${operation.operationId}`;
          if (this.#known.has(key)) return;
          await apply(operation);
          this.#known.add(key);
        },
      });
    }
  },
  'leaves out sessions of the very time that it is asked for': class extends MemoryStore {
    override list(page: SessionPage): SessionPageResult {
      const { sessions, ...rest } = super.list(page);
      const { updatedAfter } = page;
      return { ...rest, sessions: sessions.filter(({ updatedAt }) => !updatedAfter || updatedAt! > updatedAfter) };
    }
  },
  'counts metadata as use': class extends MemoryStore {
    override setMetadata(id: string, patch: Readonly<Record<string, unknown>>) {
      super.setMetadata(id, patch);
      this.history(id).updatedAt = Date.now();
    }
  },
  'lists what was imported as if it were old': class extends MemoryStore {
    override list(page: SessionPage): SessionPageResult {
      const found = super.list(page);
      const isCopy = (sessionId: string) => /-(fork|import)$/.test(sessionId);
      return { ...found, sessions: found.sessions.toSorted((a, b) => +isCopy(a.sessionId) - +isCopy(b.sessionId)) };
    }
  },
  'gives larger pages than it is asked for': class extends MemoryStore {
    override list(page: SessionPage): SessionPageResult {
      return super.list({ ...page, limit: page.limit + 1 });
    }
  },
};

/** The case that has to fail for a fault. */
const detecting: Readonly<Record<string, string>> = {
  'deletes sessions that were used since they were listed': 'P7',
  'makes a session of an append of nothing': 'L12',
  'counts reads as use': 'P9',
  'remembers operations of sessions that it deleted': 'P8',
  'leaves out sessions of the very time that it is asked for': 'L11',
  'counts metadata as use': 'M6',
  'lists what was imported as if it were old': 'N10',
  'gives larger pages than it is asked for': 'L1',
};

describe('sessionStoreContract', () => {
  it.each(Object.entries(faults))('detects a store that %s [SESS-343]', async (name, Backend) => {
    const about = sessionStoreContract(() => fixtureOf(Backend)).filter(({ id }) => id === detecting[name]);
    expect(about).toHaveLength(1);
    for (const contractCase of about) await expect(contractCase.run()).rejects.toThrow(/^(?!A call)/);
  });

  it('finds nothing wrong with a store that has no fault', async () => {
    for (const contractCase of sessionStoreContract(() => fixtureOf(MemoryStore)))
      await expect(contractCase.run().then(() => contractCase.id)).resolves.toBe(contractCase.id);
  });
});
