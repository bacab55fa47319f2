import type { RunItem } from '../items/items.ts';
import type { StateRecord, StoredDecision } from './record.ts';
import { contextInternals } from './context.ts';
import { approvalInternals, ToolApprovalItem } from './decisions.ts';

/** What a person said became of a call in doubt, as long as no run has acted on it (STATE-178). */
export function answerTo(record: StateRecord, callId: string): StoredDecision | undefined {
  const answer = record.decisions.findLast((decision) => decision.callId === callId && decision.path.length === 0);
  return answer !== undefined && isAnswer(answer) && answer.applied !== true ? answer : undefined;
}

/** A run acts on the answer now: it stays in the trail and means nothing any more. */
export function applyAnswer(record: StateRecord, answer: StoredDecision): void {
  const { output: _, ...rest } = answer;
  // Replaced, not changed: copies of the state share the object.
  record.decisions[record.decisions.indexOf(answer)] = { ...rest, applied: true };
}

export function isAnswer({ type }: StoredDecision): boolean {
  return type === 'rerun' || type === 'done';
}

/** Waiting calls that were started meanwhile, and whose end is unknown, say so: what can be decided about them is another. */
export function markDoubt(record: StateRecord): void {
  const { step } = record;
  if (step.type !== 'interruption') return;
  const { ledger } = contextInternals(record.context);
  const renewed = new Map<RunItem, ToolApprovalItem>();
  for (const item of step.interruptions) {
    if (!item.inDoubt && ledger.isInDoubt(item.callId)) renewed.set(item, itemInDoubt(item));
  }
  if (renewed.size === 0) return;
  record.step = { ...step, interruptions: step.interruptions.map((item) => renewed.get(item) ?? item) };
  for (const list of [record.generatedItems, record.sessionItems]) {
    list.forEach((item, index) => {
      list[index] = renewed.get(item) ?? item;
    });
  }
}

function itemInDoubt(item: ToolApprovalItem): ToolApprovalItem {
  const { toolOrigin, createdAt } = item;
  return new ToolApprovalItem(item.agent, item.rawItem, {
    ...approvalInternals(item),
    toolOrigin,
    createdAt,
    inDoubt: true,
  });
}
