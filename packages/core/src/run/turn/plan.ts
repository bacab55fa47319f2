import type { CallIdentity } from '../../state/identity.ts';
import type { StateRecord } from '../../state/record.ts';
import type { InvocationLedger } from '../../state/ledger.ts';
import { contextInternals } from '../../state/context.ts';
import { answerTo } from '../../state/doubt.ts';
import { executedUncommitted } from '../../state/ledger.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import { findHandoff, withoutRepeats } from './classify.ts';
import type { Classified, FunctionCall, HandoffCall, ToolTable } from './classify.ts';

/** A function call with the row that the ledger has for it. */
export interface PlannedFunctionCall extends FunctionCall {
  /** `undefined`: no decision can ever match the call. */
  readonly identity: CallIdentity | undefined;
  /** Place among the calls to work on. */
  readonly index: number;
  /** It was started before, and nobody knows how it ended. */
  readonly inDoubt: boolean;
}

export interface Plan {
  readonly classified: Classified;
  /** Calls to work on, in the order of the response. */
  readonly calls: readonly PlannedFunctionCall[];
  /** Handoffs that were not taken yet, in the order of the response. */
  readonly handoffs: readonly HandoffCall[];
  /** Exact repeats were left out. */
  readonly dropped: boolean;
}

/**
 * Opens a row for each new call of a response before anything of it starts. Exact repeats of calls that the run knows are
 * dropped: their output stands.
 * @throws ModelBehaviorError `call_id_empty`, `call_id_reused`, `call_executed_uncommitted`
 */
export function planResponse(
  classified: Classified,
  ledger: InvocationLedger,
  mayGoOn: (call: PlannedFunctionCall | HandoffCall) => boolean = () => false,
): Plan {
  const all = classified.handoffs.length === 0 ? classified.calls : [...classified.calls, ...classified.handoffs];
  if (all.length === 0) return { classified, calls: [], handoffs: [], dropped: false };
  const rows = ledger.plan(all);
  const repeats = new Set<FunctionCall | HandoffCall>();
  const calls: PlannedFunctionCall[] = [];
  const handoffs: HandoffCall[] = [];
  const doubtful: FunctionCall['call'][] = [];
  all.forEach((call, index) => {
    // What was judged is what runs: nobody can change it from here on.
    Object.freeze(call.call);
    const row = rows[index];
    if (row === undefined || row.status === 'duplicate' || row.status === 'completed') repeats.add(call);
    else {
      const inDoubt = row.status === 'executed';
      if ('handoff' in call) {
        if (inDoubt && !mayGoOn(call)) doubtful.push(call.call);
        else handoffs.push(call);
        return;
      }
      const planned = { ...call, identity: row.identity, index: calls.length, inDoubt };
      if (inDoubt && !mayGoOn(planned)) doubtful.push(call.call);
      else calls.push(planned);
    }
  });
  if (doubtful.length > 0) throw executedUncommitted(doubtful);
  return { classified: withoutRepeats(classified, repeats), calls, handoffs, dropped: repeats.size > 0 };
}

/**
 * What is left of a stored response. A call that was started and not finished is in doubt and is never just run again: it
 * goes on where somebody has answered for it or rejected it, or where the run is told what to do about such calls. Nobody
 * can answer for a handoff: one that was started is taken again only if the run is told to.
 * @throws ModelBehaviorError as `planResponse`, and for a call that was approved as a tool's and means a handoff today
 */
export function planResume(
  stored: Classified,
  tools: ToolTable,
  record: StateRecord,
  onInDoubt: 'interrupt' | 'fail' | 'retry',
): Plan {
  const { approvals, ledger } = contextInternals(record.context);
  const owner = record.currentAgent;
  const decision = ({ lookupKey, identity }: PlannedFunctionCall): boolean | undefined =>
    lookupKey && approvals.decisionFor({ owner, lookupKey, identity }, ledger)?.approved;
  const plan = planResponse(stored, ledger, (call) => {
    if (onInDoubt === 'retry') return true;
    if ('handoff' in call) return false;
    return onInDoubt === 'interrupt' || answerTo(record, call.call.call_id) !== undefined || decision(call) === false;
  });
  for (const call of plan.calls)
    if (call.tool === undefined && findHandoff(call.call, tools) && decision(call) === true)
      throw new ModelBehaviorError(
        `The call ${call.call.name} (${call.call.call_id}) was approved as the call of a tool, and agent ${owner.name} has a handoff of that name now. Rename the handoff, or start a new run.`,
      );
  return plan;
}
