import { checkItemList } from '../items/check.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { supports } from './contract.ts';
import type { HistoryOperation, Session, TransactionalSession } from './contract.ts';

/** Wraps one effect of a session: the loop's seam for spans, observers and engines. */
export type SessionStep = <T>(
  effect: {
    readonly kind: 'session';
    readonly operation: 'read' | 'append' | 'compact';
    /** How many an append adds. */
    readonly items?: number;
  },
  fn: () => Promise<T>,
) => Promise<T>;

/**
 * Reads as the contract documents it: other people's sessions see exactly the documented arguments, and only those that
 * opted in see the context.
 *
 * @throws UserError when a session gives anything but items
 */
export async function readItems(
  session: Session,
  limit: number | undefined,
  context: RunContext | undefined,
): Promise<AgentInputItem[]> {
  const items = await askItems(session, limit, context);
  checkItemList(items, "The session's getItems() resolved to");
  return items;
}

async function askItems(
  session: Session,
  limit: number | undefined,
  context: RunContext | undefined,
): Promise<AgentInputItem[]> {
  if (supports(session, 'runContext')) return await session.getItems(limit, context);
  return limit === undefined ? await session.getItems() : await session.getItems(limit);
}

export async function appendItems(
  session: Session,
  items: readonly AgentInputItem[],
  context: RunContext | undefined,
): Promise<void> {
  if (supports(session, 'runContext')) await session.addItems(items, context);
  else await session.addItems(items);
}

export async function popNewest(
  session: Session,
  context: RunContext | undefined,
): Promise<AgentInputItem | undefined> {
  return supports(session, 'runContext') ? await session.popItem(context) : await session.popItem();
}

export async function forgetAll(session: Session, context: RunContext | undefined): Promise<void> {
  if (supports(session, 'runContext')) await session.clearSession(context);
  else await session.clearSession();
}

export async function applyOperation(
  session: TransactionalSession,
  operation: HistoryOperation,
  context: RunContext,
): Promise<void> {
  await session.applyHistoryTransaction(operation, context);
}
