import { dedupeInput } from '../items/convert.ts';
import type { RunItem } from '../items/items.ts';
import type { StateRecord } from '../state/record.ts';
import { turnBatch } from './batch.ts';
import { supports } from './contract.ts';
import type { Session } from './contract.ts';

// Held batches (STATE-322…327): what a pause leaves owed to the session while output guardrails may yet withhold it.

/**
 * Puts the items of the last response into the record's held batch: into a new one, behind those of earlier turns, or in
 * place of what an earlier pause of the same turn put there. The session is not touched.
 *
 * @param session absent where a run goes on without it
 */
export function hold(
  record: StateRecord,
  items: readonly RunItem[],
  meta: { readonly responseId?: string | undefined; readonly store?: boolean | undefined },
  session?: { readonly session: Session; readonly sessionId: string },
): void {
  const earlier = record.pendingWrite;
  const held = earlier?.held;
  if (session === undefined && (earlier === undefined || held === undefined)) return;
  const policy = held === undefined ? policyFor(record, session?.session) : held.policy;
  const batch = turnBatch(session?.session, policy, items);
  const again = held?.turn === record.currentTurn;
  const before = held === undefined ? [] : (earlier?.items.slice(0, again ? held.start : undefined) ?? []);
  const all = dedupeInput([...before, ...batch.items]);
  record.pendingWrite =
    all.length === 0
      ? undefined
      : {
          sessionId: earlier?.sessionId ?? session?.sessionId ?? '',
          items: all,
          before: null,
          persistedCount: record.persistedItemCount + batch.count,
          responseId: again ? (earlier?.responseId ?? null) : (meta.responseId ?? null),
          store: again ? (earlier?.store ?? null) : (meta.store ?? null),
          hasLocalToolOutputs: false,
          acknowledged: false,
          held: { policy, turn: record.currentTurn, start: before.length },
        };
}

/** A guardrail blocked what the last response ended with: its items go, those of earlier turns are accepted (STATE-325). */
export function discardHeldResponse(record: StateRecord): void {
  const { pendingWrite } = record;
  if (pendingWrite?.held === undefined) return;
  const items = pendingWrite.items.slice(0, pendingWrite.held.start);
  record.pendingWrite = items.length === 0 ? undefined : { ...pendingWrite, items };
}

/** `null` for sessions that keep ids of reasoning whatever the run's policy is. */
function policyFor(record: StateRecord, session: Session | undefined): 'preserve' | 'omit' | null {
  const keepsIds =
    session !== undefined && supports(session, 'itemPolicy') && session.preserveReasoningItemIds === true;
  return keepsIds ? null : (record.reasoningItemIdPolicy ?? null);
}
