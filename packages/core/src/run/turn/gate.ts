import type { ParsedArguments } from '../../agent/arguments.ts';
import type { FunctionTool, MaybePromise } from '../../agent/tool.ts';
import type { RunEnv } from '../env.ts';
import type { StoredDecision } from '../../state/record.ts';
import type { Pass } from './pass.ts';
import type { PlannedFunctionCall } from './plan.ts';
import type { ToolVerdict } from './tool-guardrails.ts';
import { undecidable } from '../../agent/arguments.ts';
import { toolInternals } from '../../agent/tool-internals.ts';
import { AgentsError, UserError } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';
import { kindOf } from '../../base/options.ts';
import { contextInternals } from '../../state/context.ts';
import { ToolApprovalItem } from '../../state/decisions.ts';
import { applyDecision } from '../../state/decide.ts';
import { answerTo } from '../../state/doubt.ts';

/** Whether a call may run. */
export type Verdict =
  /** `parsed`: its arguments, where the gate had to read them. `approved`: somebody said that it may. `answer`: to a call in doubt. */
  | {
      readonly type: 'run';
      readonly parsed: ParsedArguments | undefined;
      readonly approved?: true;
      readonly answer?: StoredDecision;
    }
  /** It has happened: the answer has its output. */
  | { readonly type: 'done'; readonly answer: StoredDecision }
  | { readonly type: 'reject'; readonly message: string | undefined }
  /** A guardrail of the tool rejected it before anybody was asked. */
  | { readonly type: 'guarded'; readonly tool: FunctionTool<never>; readonly message: string }
  | { readonly type: 'wait'; readonly item: ToolApprovalItem };

const free: Verdict = { type: 'run', parsed: undefined };
const approved: Verdict = { type: 'run', parsed: undefined, approved: true };

/**
 * The gate of one call (STATE-103): a stored decision wins; then the tool's policy; then a decision that was made
 * meanwhile; then `onApproval`; else the call waits. No call waits for the gate of another.
 *
 * @param waiting the item with which the call waits since an earlier pass
 * @param guard what the tool's guardrails say of the call; asked before an item begins to wait
 */
export function gate(
  call: PlannedFunctionCall,
  tool: FunctionTool<never> | undefined,
  waiting: ToolApprovalItem | undefined,
  pass: Pass,
  env: RunEnv,
  guard?: () => Promise<ToolVerdict>,
): MaybePromise<Verdict> {
  if (call.inDoubt) return gateInDoubt(call, tool, waiting, pass, env);
  const stored = storedVerdict(call, pass);
  if (stored) return stored;
  // A tool that is gone can neither run nor be judged; its waiting item is not lost.
  if (tool === undefined) return waiting ? { type: 'wait', item: waiting } : free;
  if (toolInternals(tool).needsApproval === false) return free;
  return gateApproval(call, tool, waiting, pass, env, guard);
}

/** The gate of a call whose tool may want an approval. */
async function gateApproval(
  call: PlannedFunctionCall,
  tool: FunctionTool<never>,
  waiting: ToolApprovalItem | undefined,
  pass: Pass,
  env: RunEnv,
  guard: (() => Promise<ToolVerdict>) | undefined,
): Promise<Verdict> {
  const { needsApproval, parse } = toolInternals(tool);
  const parsed = parse(call.call.arguments);
  if (!parsed.ok) return waiting ? { type: 'wait', item: waiting } : { type: 'run', parsed };
  const needed = needsApproval === true || (await askPolicy(call, tool, pass, env));
  const meanwhile = storedVerdict(call, pass);
  if (meanwhile) return meanwhile;
  if (!needed) return { type: 'run', parsed };
  // No decision could be bound to it; it would wait for ever.
  if (call.identity === undefined && waiting === undefined)
    return { type: 'run', parsed: undecidable(tool.qualifiedName) };
  if (guard && waiting === undefined) {
    const verdict = await guard();
    const decided = storedVerdict(call, pass);
    if (decided) return decided;
    if (verdict.rejected) return { type: 'guarded', tool, message: verdict.message };
  }
  const item =
    waiting ?? new ToolApprovalItem(pass.agent, call.call, { toolOrigin: tool.origin, lookupKey: call.lookupKey });
  return (await askProgram(call, item, pass, env)) ?? storedVerdict(call, pass) ?? { type: 'wait', item };
}

/**
 * The gate of a call that was started and not finished (STATE-510): what somebody answered, a rejection, what the run does
 * about such calls; else it waits for an answer. An approval of then says nothing about now.
 */
async function gateInDoubt(
  call: PlannedFunctionCall,
  tool: FunctionTool<never> | undefined,
  waiting: ToolApprovalItem | undefined,
  pass: Pass,
  env: RunEnv,
): Promise<Verdict> {
  const known = answered(call, pass);
  if (known) return known;
  if (env.options.onInDoubt === 'retry') return free;
  const item =
    waiting ??
    new ToolApprovalItem(pass.agent, call.call, { toolOrigin: tool?.origin, lookupKey: call.lookupKey, inDoubt: true });
  await askProgram(call, item, pass, env);
  return answered(call, pass) ?? { type: 'wait', item };
}

function answered(call: PlannedFunctionCall, pass: Pass): Verdict | undefined {
  const answer = answerTo(pass.record, call.call.call_id);
  if (answer?.type === 'done') return { type: 'done', answer };
  if (answer?.type === 'rerun') return { type: 'run', parsed: undefined, answer };
  const stored = storedVerdict(call, pass);
  return stored?.type === 'reject' ? stored : undefined;
}

/** What was decided about the call. */
export function storedVerdict(call: PlannedFunctionCall, pass: Pass): Verdict | undefined {
  if (call.lookupKey === undefined) return undefined;
  const { approvals, ledger } = contextInternals(pass.record.context);
  const decision = approvals.decisionFor(
    { owner: pass.agent, lookupKey: call.lookupKey, identity: call.identity },
    ledger,
  );
  if (decision === undefined) return undefined;
  return decision.approved ? approved : { type: 'reject', message: decision.message };
}

/** The policy judges a copy of its own of what `execute` would get, so that it cannot change what runs. */
async function askPolicy(
  call: PlannedFunctionCall,
  tool: FunctionTool<never>,
  pass: Pass,
  env: RunEnv,
): Promise<boolean> {
  const { needsApproval, parse } = toolInternals(tool);
  try {
    if (typeof needsApproval !== 'function') throw policyKind(tool, needsApproval);
    const copy = parse(call.call.arguments);
    const answer: unknown = copy.ok
      ? await env.control.race(needsApproval(env.context as never, copy.value as never, call.call.call_id))
      : true;
    if (typeof answer !== 'boolean') throw policyKind(tool, answer);
    return answer;
  } catch (error) {
    env.control.throwIfAborted();
    if (error instanceof AgentsError) throw error;
    if (pass.fresh)
      throw new UserError(`\`needsApproval\` of the tool ${tool.qualifiedName} failed.`, { cause: error });
    getLogger().error(`\`needsApproval\` of the tool ${tool.qualifiedName} failed; the call waits for a person.`);
    return true;
  }
}

function policyKind(tool: FunctionTool<never>, received: unknown): UserError {
  return new UserError(
    `\`needsApproval\` of the tool ${tool.qualifiedName} must be true, false, or a function that says true or false, not ${kindOf(received)}.`,
    {
      code: 'needs_approval_type',
    },
  );
}

/**
 * `onApproval` of the run: its answer is recorded like one that a person gave. It holds for this call as it was given: a
 * standing answer about another call, which may come right behind it, changes nothing any more.
 */
async function askProgram(
  call: PlannedFunctionCall,
  item: ToolApprovalItem,
  pass: Pass,
  env: RunEnv,
): Promise<Verdict | undefined> {
  const { onApproval } = env.options;
  if (onApproval === undefined || env.asked?.has(item) === true) return undefined;
  try {
    const decision = await env.control.race(onApproval(env.context as never, item));
    if (decision === undefined) return undefined;
    applyDecision(pass.record, item, decision);
    return storedVerdict(call, pass);
  } catch (error) {
    env.control.throwIfAborted();
    if (pass.fresh) throw error;
    getLogger().error('`onApproval` failed; the call waits for a person.');
    return undefined;
  }
}
