import { withoutReasoningId } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import { exchangeDigest } from '../sessions/compaction-hook.ts';
import type { CompactionEvidence } from '../sessions/contract.ts';
import { pruneOrphans } from '../sessions/prune.ts';

type Normalize = ((item: AgentInputItem) => AgentInputItem) | undefined;

/** The newest stored items that the model saw. */
export interface Selection {
  readonly stored: readonly AgentInputItem[];
  /** The same in the form that the model saw. */
  readonly seen: readonly AgentInputItem[];
}

/**
 * Walks stored items and exchange from the end: each stored item must be an entry that was not used yet, in order; entries
 * that only the model saw are passed over (SESS-320).
 */
export function seenSuffix(
  stored: readonly AgentInputItem[],
  { itemDigests, reasoningItemIdPolicy: policy }: CompactionEvidence,
  normalize: Normalize,
): Selection {
  const seen: AgentInputItem[] = [];
  let entry = itemDigests.length - 1;
  let index = stored.length - 1;
  for (; index >= 0; index--) {
    const item = stored[index];
    if (item === undefined) break;
    const asIs = exchangeDigest(item, null, normalize);
    const withPolicy = policy === 'omit' ? exchangeDigest(item, policy, normalize) : asIs;
    while (entry >= 0 && itemDigests[entry] !== asIs && itemDigests[entry] !== withPolicy) entry--;
    if (entry < 0) break;
    seen.push(itemDigests[entry] === asIs ? item : withoutReasoningId(item));
    entry--;
  }
  return { stored: stored.slice(index + 1), seen: seen.toReversed() };
}

/** From the first message of the user on: what stands before it belongs to an earlier turn. `undefined`: there is none. */
export function fromUserMessage({ stored, seen }: Selection): Selection | undefined {
  const start = stored.findIndex(isUserMessage);
  return start === -1 ? undefined : { stored: stored.slice(start), seen: seen.slice(start) };
}

export function isUserMessage(item: AgentInputItem): boolean {
  return 'role' in item && item.role === 'user' && (item.type ?? 'message') === 'message';
}

/** What makes a compaction worth it: neither words of the user, which it keeps, nor earlier compactions. */
export function isCandidate(item: AgentInputItem): boolean {
  return !isUserMessage(item) && item.type !== 'compaction';
}

/** Whether calls and outputs, programs, and approval requests of hosted MCP servers are all in pairs (SESS-324). */
export function isComplete(items: readonly AgentInputItem[]): boolean {
  const whole = pruneOrphans(
    items.map((item) => ({ item, isNew: false })),
    true,
  );
  return whole.length === items.length && hasPairedApprovals(items);
}

function hasPairedApprovals(items: readonly AgentInputItem[]): boolean {
  const requests = items.flatMap((item) => (item.type === 'mcp_approval_request' ? [item.id] : []));
  const responses = items.flatMap((item) => (item.type === 'mcp_approval_response' ? [item.approval_request_id] : []));
  const answered = new Set(responses);
  return (
    answered.size === responses.length &&
    requests.length === responses.length &&
    requests.every((id) => answered.has(id))
  );
}
