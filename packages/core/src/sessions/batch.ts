import { checkItemList } from '../items/check.ts';
import { dedupeInput, itemDigest, toInputItem, withoutReasoningId } from '../items/convert.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { openCallIds } from '../state/agent-tool-runs.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import type { StateRecord } from '../state/record.ts';
import { encodeItems } from './codec.ts';
import { supports } from './contract.ts';
import type { Session } from './contract.ts';
import { pruneOrphans } from './prune.ts';

/** Items as they are stored, and how many run items they hold. */
export interface Batch {
  readonly items: readonly AgentInputItem[];
  readonly count: number;
}

/** New input in its stored form. */
export function inputBatch(session: Session, record: StateRecord, newItems: readonly AgentInputItem[]): Batch {
  const items = dedupeInput(
    newItems.map((item) => storedForm(session, record.reasoningItemIdPolicy, toInputItem(item))),
  );
  return { items: forStore(session, items), count: 0 };
}

type IdPolicy = StateRecord['reasoningItemIdPolicy'] | null;

/**
 * Items of a turn in their stored form; waiting approvals are never stored (SESS-082, 085, 086).
 * @param session absent where a run goes on without it
 */
export function turnBatch(session: Session | undefined, policy: IdPolicy, runItems: readonly RunItem[]): Batch {
  const converted = runItems
    .filter((item) => item.type !== 'tool_approval_item')
    .map((item) => storedForm(session, policy, item.toInputItem()));
  const items = dedupeInput(converted);
  return { items: forStore(session, items), count: countOf(converted, items) };
}

/**
 * A held batch together with the items of the turn that ends it, which follow (STATE-324). Held calls that nobody will
 * answer any more are left out.
 */
export function claimHeld(session: Session, record: StateRecord, held: PendingWrite, turn: Batch): Batch {
  const waiting = openCallIds(record);
  const isOpen = (item: AgentInputItem): boolean => 'call_id' in item && waiting.has(item.call_id as string);
  const merged = pruneOrphans(
    [
      ...held.items.map((item) => ({ item, isNew: isOpen(item) })),
      ...turn.items.map((item) => ({ item, isNew: true })),
    ],
    false,
  );
  const items = dedupeInput(merged.map(({ item }) => item));
  return { items: forStore(session, items), count: items.length };
}

/** Raw digests of a batch. @throws SessionItemError for what is no JSON, as the session would. */
export function rawDigests(items: readonly AgentInputItem[]): string[] {
  try {
    return items.map((item) => itemDigest(item, 'raw'));
  } catch (error) {
    encodeItems(items, undefined);
    throw error;
  }
}

function storedForm(session: Session | undefined, policy: IdPolicy, item: AgentInputItem): AgentInputItem {
  if (item.type !== 'reasoning' || policy !== 'omit') return item;
  const keepsIds =
    session !== undefined && supports(session, 'itemPolicy') && session.preserveReasoningItemIds === true;
  return keepsIds ? item : withoutReasoningId(item);
}

function forStore(session: Session | undefined, items: readonly AgentInputItem[]): readonly AgentInputItem[] {
  if (session === undefined || !supports(session, 'itemPolicy') || !session.prepareItemsForPersistence) return items;
  const prepared = session.prepareItemsForPersistence(items);
  checkItemList(prepared, "The session's prepareItemsForPersistence() returned");
  return prepared;
}

/** Run items whose form is in the batch; without duplicates that is all of them, and nothing needs to be digested. */
function countOf(converted: readonly AgentInputItem[], batch: readonly AgentInputItem[]): number {
  if (converted.length === batch.length) return batch.length;
  const digests = new Set(batch.map((item) => itemDigest(item, 'raw')));
  return converted.filter((item) => digests.has(itemDigest(item, 'raw'))).length;
}
