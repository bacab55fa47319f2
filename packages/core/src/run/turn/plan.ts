import type { PendingNestedRun } from '../../state/agent-tool-runs.ts';
import type { CallIdentity } from '../../state/identity.ts';
import type { StateRecord } from '../../state/record.ts';
import type { InvocationLedger } from '../../state/ledger.ts';
import { toolInternals } from '../../agent/tool-internals.ts';
import { pausedRunOf } from '../../state/agent-tool-runs.ts';
import { contextInternals } from '../../state/context.ts';
import { answerTo } from '../../state/doubt.ts';
import { callIdentity } from '../../state/identity.ts';
import { executedUncommitted } from '../../state/ledger.ts';
import { lookupKeyOf } from '../../state/lookup-key.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import { checkCaller, findHandoff, withoutRepeats } from './classify.ts';
import type { Classified, FunctionCall, HandoffCall, ToolTable } from './classify.ts';

/** A function call with the row that the ledger has for it. */
export interface PlannedFunctionCall extends FunctionCall {
  /** `undefined`: no decision can ever match the call. */
  readonly identity: CallIdentity | undefined;
  /** Place among the calls to work on. */
  readonly index: number;
  /** It was started before, and nobody knows how it ended. */
  readonly inDoubt: boolean;
  /** Of the call of an agent tool: its run, which was started before and is kept (STATE-233). */
  readonly paused?: PendingNestedRun | undefined;
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
  pausedRun: (call: FunctionCall) => PendingNestedRun | undefined = () => undefined,
): Plan {
  const all = classified.handoffs.length === 0 ? classified.calls : [...classified.calls, ...classified.handoffs];
  if (all.length === 0) return { classified, calls: [], handoffs: [], dropped: false };
  const rows = ledger.plan(all);
  const repeats = new Set<FunctionCall | HandoffCall>();
  const calls: PlannedFunctionCall[] = [];
  const handoffs: HandoffCall[] = [];
  const doubtful: (FunctionCall | HandoffCall)[] = [];
  all.forEach((call, index) => {
    // What was judged is what runs: nobody can change it from here on.
    Object.freeze(call.call);
    const row = rows[index];
    if (row === undefined || row.status === 'duplicate' || row.status === 'completed') repeats.add(call);
    else {
      const inDoubt = row.status === 'executed';
      if ('handoff' in call) {
        if (inDoubt && !mayGoOn(call)) doubtful.push(call);
        else handoffs.push(call);
        return;
      }
      const kept = pausedRun(call);
      const planned = { ...call, identity: row.identity, index: calls.length, inDoubt: inDoubt && !kept, paused: kept };
      if (planned.inDoubt && !mayGoOn(planned)) doubtful.push(call);
      else calls.push(planned);
    }
  });
  if (doubtful.length > 0)
    throw executedUncommitted(
      doubtful.map(({ call }) => call),
      { handoff: doubtful.some((call) => 'handoff' in call) },
    );
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
  const mayGoOn = (call: PlannedFunctionCall | HandoffCall): boolean => {
    if (onInDoubt === 'retry') return true;
    if ('handoff' in call) return false;
    return onInDoubt === 'interrupt' || answerTo(record, call.call.call_id) !== undefined || decision(call) === false;
  };
  const plan = planResponse(stored, ledger, mayGoOn, ({ call }) => pausedRunOf(record, call));
  for (const call of plan.calls) {
    if (call.paused && decision(call) !== false) checkPaused(call, tools);
    // What a tool lets call it is asked again, unless the call is not going to run (STATE-226).
    if (decision(call) !== false && answerTo(record, call.call.call_id)?.type !== 'done')
      checkCaller(call.call, call.tool?.allowedCallers);
    if (call.tool === undefined && findHandoff(call.call, tools) && decision(call) === true)
      throw new ModelBehaviorError(
        `The call ${call.call.name} (${call.call.call_id}) was approved as the call of a tool, and agent ${owner.name} has a handoff of that name now. Rename the handoff, or start a new run.`,
      );
  }
  return plan;
}

/** A paused run goes on with the agent that it began with, or not at all (STATE §8.2 step 4). @throws ModelBehaviorError */
function checkPaused({ call, tool, paused }: PlannedFunctionCall, tools: ToolTable): void {
  if (tool === undefined && findHandoff(call, tools) === undefined) return;
  if (tool && toolInternals(tool).agentTool?.agent === paused?.record.startingAgent) return;
  throw new ModelBehaviorError(
    `The run behind the call ${call.name} (${call.call_id}) is paused, and the tool of that name is no longer the agent that it began with. Restore the original tool, reject the call, or start a new run.`,
    { code: 'nested_tool_replaced' },
  );
}

/**
 * What the stored response asks for must be what its calls were when they were first planned; looked at before anything
 * of the user is called (STATE-243).
 * @throws ModelBehaviorError `call_id_reused`
 */
export function checkStoredCalls(record: StateRecord): void {
  const { ledger } = contextInternals(record.context);
  for (const item of record.processed?.newItems ?? []) {
    const isHandoff = item.type === 'handoff_call_item';
    if (!isHandoff && (item.type !== 'tool_call_item' || item.rawItem.type !== 'function_call')) continue;
    const call = item.rawItem as FunctionCall['call'];
    const identity = callIdentity(call, lookupKeyOf(call), isHandoff ? { role: 'handoff' } : {});
    if (identity) ledger.checkBinding(identity);
  }
}
