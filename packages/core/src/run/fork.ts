import type { StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import { copyAgentToolRuns, copyResults, ownContext, separateContext } from '../state/copy.ts';

/**
 * The record for the turns after a resumed one. A state that the caller passed in advances with its interrupted turn and
 * then stands still (STATE-135), with a ledger, decisions and usage of its own: the turns that follow, and the result,
 * go on with lists of their own and with the context that the run's callbacks know.
 */
export function forkRecord(record: StateRecord, env: RunEnv): StateRecord {
  const fork = ownContext({
    ...record,
    generatedItems: record.generatedItems.slice(),
    sessionItems: record.sessionItems.slice(),
    modelResponses: record.modelResponses.slice(),
    guardrailResults: copyResults(record.guardrailResults),
    toolUse: new Map([...record.toolUse].map(([agent, names]) => [agent, new Set(names)])),
    decisions: record.decisions.slice(),
    inUse: false,
  });
  separateContext(record);
  record.agentToolRuns = copyAgentToolRuns(record);
  env.session?.follow(fork);
  return fork;
}
