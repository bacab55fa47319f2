import type { CallIdentity } from '../../state/identity.ts';
import type { StateRecord } from '../../state/record.ts';
import type { InvocationLedger } from '../../state/ledger.ts';
import { contextInternals } from '../../state/context.ts';
import { answerTo } from '../../state/doubt.ts';
import { executedUncommitted } from '../../state/ledger.ts';
import { withoutRepeats } from './classify.ts';
import type { Classified, FunctionCall } from './classify.ts';

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
  mayGoOn: (call: PlannedFunctionCall) => boolean = () => false,
): Plan {
  if (classified.calls.length === 0) return { classified, calls: [], dropped: false };
  const rows = ledger.plan(classified.calls);
  const repeats = new Set<FunctionCall>();
  const calls: PlannedFunctionCall[] = [];
  const doubtful: FunctionCall['call'][] = [];
  classified.calls.forEach((call, index) => {
    // What was judged is what runs: nobody can change it from here on.
    Object.freeze(call.call);
    const row = rows[index];
    if (row === undefined || row.status === 'duplicate' || row.status === 'completed') repeats.add(call);
    else {
      const inDoubt = row.status === 'executed';
      const planned = { ...call, identity: row.identity, index: calls.length, inDoubt };
      if (inDoubt && !mayGoOn(planned)) doubtful.push(call.call);
      else calls.push(planned);
    }
  });
  if (doubtful.length > 0) throw executedUncommitted(doubtful);
  return { classified: withoutRepeats(classified, repeats), calls, dropped: repeats.size > 0 };
}

/**
 * What is left of a stored response. A call that was started and not finished is in doubt and is never just run again: it
 * goes on where somebody has answered for it or rejected it, or where the run is told what to do about such calls.
 * @throws ModelBehaviorError as `planResponse`
 */
export function planResume(
  stored: readonly FunctionCall[],
  record: StateRecord,
  onInDoubt: 'interrupt' | 'fail' | 'retry',
): readonly PlannedFunctionCall[] {
  const classified: Classified = { items: [], calls: stored, unknownTypes: [] };
  const { approvals, ledger } = contextInternals(record.context);
  const owner = record.currentAgent;
  const isDecided = ({ call, lookupKey, identity }: PlannedFunctionCall): boolean =>
    answerTo(record, call.call_id) !== undefined ||
    (lookupKey !== undefined && approvals.decisionFor({ owner, lookupKey, identity }, ledger)?.approved === false);
  return planResponse(classified, ledger, (call) => onInDoubt !== 'fail' || isDecided(call)).calls;
}
