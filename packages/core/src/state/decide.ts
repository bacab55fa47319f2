import { ModelBehaviorError, UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { identityOf, nestedRuns } from './agent-tool-runs.ts';
import { decideAlways, decideCall } from './approvals.ts';
import { contextInternals } from './context.ts';
import { approvalInternals, ToolApprovalItem } from './decisions.ts';
import { approvalKeyOf, sameLookupKey } from './lookup-key.ts';
import type { Decision } from './decisions.ts';
import type { CallIdentity } from './identity.ts';
import type { StateRecord, StoredDecision, ToolLookupKey } from './record.ts';

/**
 * Records a decision on a call of this run or of a paused run of an agent tool, at any depth: it goes to the run that owns
 * the call, else it is one on a call to come of this run (STATE-172).
 *
 * @throws as `decideOwn`
 */
export function applyDecision(
  record: StateRecord,
  item: unknown,
  decision: Decision,
  now: () => number = Date.now,
): void {
  decideOwn(record.agentToolRuns === undefined ? record : ownerOf(record, item), item, decision, now);
}

/**
 * Records a decision on a call of this run (STATE §6): in the approval map of its agent, in the ledger and in the audit
 * trail. Nothing is changed when it throws.
 *
 * @param item a waiting item: of this state, of its result, or of another restore of the same snapshot
 * @param now clock of the audit trail, epoch ms
 * @throws UserError `approval_not_item`, `approval_ambiguous`, `approval_in_doubt`, or for a malformed decision
 * @throws ModelBehaviorError `approval_call_id`, `approval_identity`, `call_id_reused`
 */
function decideOwn(record: StateRecord, item: unknown, decision: Decision, now: () => number): void {
  if (!(item instanceof ToolApprovalItem)) {
    throw new UserError('Only a waiting call can be decided: pass an item of `interruptions` (a `ToolApprovalItem`).', {
      code: 'approval_not_item',
    });
  }
  checkDecision(decision);
  const waiting = waitingItem(record, item);
  const { lookupKey, identity } = decidable(waiting);
  const { approvals, ledger } = contextInternals(record.context);
  ledger.checkBinding(identity);
  checkDoubt(decision, waiting, ledger.isInDoubt(identity.callId));

  ledger.bind(identity);
  if (decision.type === 'approve' || decision.type === 'reject') {
    const approved = decision.type === 'approve';
    const message = decision.type === 'reject' ? decision.message : undefined;
    const ownRecord = approvals.functionRecord(waiting.agent, approvalKeyOf(lookupKey));
    if (decision.always === true) {
      const stand = decidedOtherwise(record, waiting, lookupKey, approved ? 'reject' : 'approve');
      const said = ownRecord.stickyRejectionMessage;
      decideAlways(ownRecord, identity, approved, message);
      const exact = approved ? ownRecord.rejected : ownRecord.approved;
      for (const callId of stand)
        if (!Array.isArray(exact) || !exact.includes(callId)) decideCall(ownRecord, callId, !approved, said);
    } else decideCall(ownRecord, identity.callId, approved, message);
    if (
      decision.always !== true &&
      lookupKey.kind === 'deferred_top_level' &&
      approvalInternals(waiting).allowBareNameAlias
    ) {
      decideCall(approvals.functionRecord(waiting.agent, lookupKey.name), identity.callId, approved, message);
    }
  } else {
    // An answer to a call in doubt stands in the trail alone until a run acts on it (STATE-178).
    approvals.withdrawRejection(waiting.agent, lookupKey, identity.callId);
  }
  record.decisions.push({
    callId: identity.callId,
    path: [],
    toolName: waiting.name,
    type: decision.type,
    always: 'always' in decision && decision.always === true,
    by: decision.by,
    note: decision.note,
    at: new Date(now()).toISOString(),
    arguments: waiting.arguments,
    originalArguments: undefined,
    ...(decision.type === 'done' && { output: decision.output }),
  });
}

/** The audit trail of a run and of its paused nested runs, oldest first; the path of each begins with the outermost call. */
export function allDecisions(record: StateRecord): readonly StoredDecision[] {
  const nested = nestedRuns(record);
  if (nested.length === 0) return record.decisions;
  return oldestFirst([
    ...record.decisions,
    ...nested.flatMap((inner) => under(inner.callId, allDecisions(inner.record))),
  ]);
}

/** A nested run is over: what was decided in it is told by the run around it from now on (STATE-344). */
export function takeOverDecisions(record: StateRecord, callId: string, nested: StateRecord): void {
  const decisions = allDecisions(nested);
  if (decisions.length > 0) record.decisions = oldestFirst([...record.decisions, ...under(callId, decisions)]);
}

function under(callId: string, decisions: readonly StoredDecision[]): StoredDecision[] {
  return decisions.map((decision) => ({ ...decision, path: [callId, ...decision.path] }));
}

function oldestFirst(decisions: StoredDecision[]): StoredDecision[] {
  return decisions.toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
}

/** The one record of the tree that waits for a decision on this call; the outer one when none does. @throws UserError `approval_ambiguous` */
function ownerOf(record: StateRecord, item: unknown): StateRecord {
  if (!(item instanceof ToolApprovalItem)) return record;
  const owners = waitingFor(record, item);
  if (owners.length > 1) throw ambiguous();
  return owners[0] ?? record;
}

/** Deepest first. A call that has its output waits no more, whatever the list says. */
function waitingFor(record: StateRecord, item: ToolApprovalItem): StateRecord[] {
  const { step } = record;
  const own = step.type === 'interruption' ? step.interruptions : [];
  const waits = own.some(
    (other) =>
      (other === item || isSameCall(other, item)) &&
      contextInternals(record.context).ledger.status(other.callId)?.completed !== true,
  );
  // In no order: a list of a thousand runs is not sorted for each decision on one of them.
  const nested = record.agentToolRuns?.entries() ?? [];
  return [...nested.flatMap(({ run }) => waitingFor(run.record, item)), ...(waits ? [record] : [])];
}

/** The same agent's call of that id. Without an identity nobody can say that it is another one. */
function isSameCall(a: ToolApprovalItem, b: ToolApprovalItem): boolean {
  if (a.agent !== b.agent || a.callId !== b.callId) return false;
  const identity = identityOf(b);
  const other = identityOf(a);
  return identity === undefined || other === undefined || other.equals(identity);
}

function ambiguous(): UserError {
  return new UserError(
    'More than one waiting call fits this item, so it is unclear which one is decided. Call ids must be unique.',
    { code: 'approval_ambiguous' },
  );
}

/** Calls of the same tool that wait, and of which the opposite was said last: that stays theirs (STATE-163). */
function decidedOtherwise(
  record: StateRecord,
  waiting: ToolApprovalItem,
  lookupKey: ToolLookupKey,
  type: 'approve' | 'reject',
): string[] {
  const items = record.step.type === 'interruption' ? record.step.interruptions : [];
  return items.flatMap((item) => {
    const key = approvalInternals(item).lookupKey;
    if (item.callId === waiting.callId || item.agent !== waiting.agent || !key || !sameLookupKey(key, lookupKey))
      return [];
    const last = record.decisions.findLast(({ callId, path }) => callId === item.callId && path.length === 0);
    return last?.type === type ? [item.callId] : [];
  });
}

/** What can be said of a call depends on whether it was started (STATE-178). @throws UserError */
function checkDoubt(decision: Decision, { qualifiedName }: ToolApprovalItem, inDoubt: boolean): void {
  if (decision.type === 'approve' && inDoubt)
    throw new UserError(
      `The call of '${qualifiedName}' was started and its end is unknown, so approving it would not say whether it happened. Decide 'rerun' (run it again), 'done' (it happened; give its output) or 'reject'.`,
      { code: 'approval_in_doubt' },
    );
  if ((decision.type === 'rerun' || decision.type === 'done') && !inDoubt)
    throw new UserError(
      `The call of '${qualifiedName}' was never started, so there is nothing to ${decision.type === 'done' ? 'give the output of' : 'run again'}. Approve or reject it.`,
      { code: 'approval_not_in_doubt' },
    );
}

const note = {
  type: kinds.oneOf('approve', 'reject', 'rerun', 'done'),
  by: kinds.string,
  note: kinds.string,
};
const standing = { ...note, always: kinds.boolean };
const members = {
  approve: standing,
  reject: { ...standing, message: kinds.string },
  rerun: note,
  done: { ...note, output: kinds.any },
};

function checkDecision(decision: unknown): asserts decision is Decision {
  const type: unknown =
    typeof decision === 'object' && decision !== null && 'type' in decision ? decision.type : undefined;
  if (type !== 'approve' && type !== 'reject' && type !== 'rerun' && type !== 'done') {
    throw new UserError("A decision is an object with `type` 'approve', 'reject', 'rerun' or 'done'.");
  }
  checkOptions(decision, members[type], `a decision of type '${type}'`);
  if (type === 'done' && !('output' in (decision as object)))
    throw new UserError("A decision of type 'done' needs `output`: what the call gave.");
}

/** The state's own item for the given one: the same object, or the same call of the same agent (STATE-171). */
function waitingItem(record: StateRecord, item: ToolApprovalItem): ToolApprovalItem {
  const all = record.step.type === 'interruption' ? record.step.interruptions : [];
  const ofCall = all.filter((other) => other.callId === item.callId && other.agent === item.agent);
  const own = ofCall.find((other) => other === item);
  if (ofCall.length === 0) return item;
  const identity = identityOf(item);
  const same = ofCall.filter(
    (other) => other === item || (identity !== undefined && identityOf(other)?.equals(identity) === true),
  );
  if (same.length > 1 || (identity === undefined && ofCall.length > 1)) {
    throw ambiguous();
  }
  return own ?? same[0] ?? item;
}

function decidable(item: ToolApprovalItem): {
  readonly lookupKey: NonNullable<ReturnType<typeof approvalInternals>['lookupKey']>;
  readonly identity: CallIdentity;
} {
  const { type } = item.rawItem;
  if (type !== 'function_call') {
    throw new UserError(
      `Decisions on calls of type '${type}' are not supported; this state was made by an edition with tools of that kind.`,
    );
  }
  // The item falls back to the call's `id` for display; only the call id names a function call.
  if (item.rawItem.call_id === '' || item.callId === '') {
    throw new ModelBehaviorError(
      `The call of '${item.qualifiedName}' cannot be decided: it needs a non-empty call ID.`,
      { code: 'approval_call_id' },
    );
  }
  const identity = identityOf(item);
  const { lookupKey } = approvalInternals(item);
  if (identity === undefined || lookupKey === undefined) {
    throw new ModelBehaviorError(
      `The call of '${item.qualifiedName}' cannot be decided: it has no canonical invocation identity (call ID, name and arguments).`,
      { code: 'approval_identity' },
    );
  }
  return { lookupKey, identity };
}
