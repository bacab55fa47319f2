import type { AgentInputItem } from '../../items/items.ts';
import { supports } from '../../sessions/contract.ts';
import type { Session } from '../../sessions/contract.ts';

/** For a session that was closed: a call of each kind that it has, by name, those that would do nothing too. */
export function sessionCalls(session: Session<object>): Record<string, () => Promise<unknown>> {
  const late: AgentInputItem[] = [{ role: 'user', content: 'late' }];
  const given: unknown = session;
  return {
    getItems: () => session.getItems(),
    'getItems(0)': () => session.getItems(0),
    addItems: () => session.addItems(late),
    'addItems([])': () => session.addItems([]),
    ...(supports(given, 'transactions') && {
      applyHistoryTransaction: () =>
        given.applyHistoryTransaction({ operationId: 'late', transaction: { type: 'append_items', items: late } }),
    }),
    ...(supports(given, 'versions') && {
      readHistory: () => given.readHistory(),
      'readHistory(0)': () => given.readHistory(0),
      replaceHistory: () => given.replaceHistory(late),
      appendIfVersion: () => given.appendIfVersion('none', late),
    }),
    popItem: () => session.popItem(),
    clearSession: () => session.clearSession(),
  };
}
