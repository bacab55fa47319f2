import type { AgentInputItem } from '@agents/core';
import { DrizzleSession } from '@agents/session-drizzle';
import type { DrizzleDatabase } from '@agents/session-drizzle';
import type { Store } from './store.ts';

interface Measured {
  addItems(items: readonly object[]): Promise<void>;
  getItems(limit: number): Promise<object[]>;
}

/** A session of ours as it is measured. Its driver is closed by who opened it. */
export function ours(session: Measured): Store {
  return {
    append: (items) => session.addItems(items),
    tail: (count) => session.getItems(count),
    close: async () => {},
  };
}

export function drizzleSession(sessionId: string, db: DrizzleDatabase): Store {
  return ours(new DrizzleSession<AgentInputItem | object>(sessionId, { db }));
}
