import type { StateRecord } from '../../state/record.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { RunEnv } from '../env.ts';
import { getLogger } from '../../base/logger.ts';
import { identityOf, nestedRuns, waitingItems } from '../../state/agent-tool-runs.ts';
import { contextInternals } from '../../state/context.ts';
import { approvalInternals } from '../../state/decisions.ts';
import { applyDecision } from '../../state/decide.ts';
import { answerTo } from '../../state/doubt.ts';

/**
 * Whether a nested run can go on: one of the calls that wait in it is decided, or it does not wait for anybody (STATE-233).
 * The run's `onApproval` is asked first (STATE-246).
 */
export async function mayReenter(nested: StateRecord, env: RunEnv): Promise<boolean> {
  if (nested.step.type !== 'interruption') return true;
  if (env.options.onApproval) await askAbout(nested, env);
  return isDecided(nested, env) || waitingItems(nested).length === 0;
}

function isDecided(record: StateRecord, env: RunEnv): boolean {
  if (record.step.type !== 'interruption') return true;
  return (
    record.step.interruptions.some((item) => hasDecision(record, item, env)) ||
    nestedRuns(record).some((inner) => isDecided(inner.record, env))
  );
}

function hasDecision(record: StateRecord, item: ToolApprovalItem, env: RunEnv): boolean {
  // Nobody is asked about such a call: the nested run says what becomes of it, as the run around it would.
  if (item.inDoubt && env.options.onInDoubt !== 'interrupt') return true;
  if (answerTo(record, item.callId) !== undefined) return true;
  const { lookupKey } = approvalInternals(item);
  const { approvals, ledger } = contextInternals(record.context);
  if (lookupKey === undefined) return false;
  const decision = approvals.decisionFor({ owner: item.agent, lookupKey, identity: identityOf(item) }, ledger);
  // An approval from before a call was started says nothing about what became of it.
  return item.inDoubt ? decision?.approved === false : decision !== undefined;
}

/** Asks about all that is open, at once, each call with the context of its own run; a run that goes on does not ask again. */
async function askAbout(record: StateRecord, env: RunEnv): Promise<void> {
  const asked = (env.asked ??= new Set());
  const own = record.step.type === 'interruption' ? record.step.interruptions : [];
  await Promise.all([
    ...own.map(async (item) => {
      if (asked.has(item) || hasDecision(record, item, env)) return;
      asked.add(item);
      await ask(record, item, env);
    }),
    ...nestedRuns(record).map((inner) => askAbout(inner.record, env)),
  ]);
}

async function ask(record: StateRecord, item: ToolApprovalItem, env: RunEnv): Promise<void> {
  try {
    const decision = await env.control.race(env.options.onApproval?.(record.context as never, item));
    if (decision !== undefined) applyDecision(record, item, decision);
  } catch {
    env.control.throwIfAborted();
    getLogger().error('`onApproval` failed; the call waits for a person.');
  }
}
