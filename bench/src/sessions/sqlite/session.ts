import type { AgentInputItem } from '@agents/core';
import { SQLiteSession } from '@agents/session-sqlite';
import type { OpenStore } from './file.ts';

export const openStore: OpenStore = (sessionId, path, synchronous) => {
  const session = new SQLiteSession<AgentInputItem | object>(sessionId, { path, synchronous });
  return {
    append(items, operationId) {
      if (operationId === undefined) return session.addItems(items);
      return session.applyHistoryTransaction({ operationId, transaction: { type: 'append_items', items } });
    },
    tail: (count) => session.getItems(count),
    close: () => session.close(),
  };
};
