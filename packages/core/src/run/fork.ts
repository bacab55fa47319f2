import type { StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import { ownContext } from '../state/copy.ts';

/**
 * The record for the turns after a resumed one. A state that the caller passed in advances with its interrupted turn and
 * then stands still (STATE-135): the turns that follow get lists of their own, over the same context.
 */
export function forkRecord(record: StateRecord, env: RunEnv): StateRecord {
  const fork = ownContext({
    ...record,
    generatedItems: record.generatedItems.slice(),
    sessionItems: record.sessionItems.slice(),
    modelResponses: record.modelResponses.slice(),
    toolUse: new Map([...record.toolUse].map(([agent, names]) => [agent, new Set(names)])),
    decisions: record.decisions.slice(),
    inUse: false,
  });
  env.session?.follow(fork);
  return fork;
}
