import type { PlannedFunctionCall } from './turn/plan.ts';
import type { Pass } from './turn/pass.ts';
import type { RunEnv } from './env.ts';
import { toolInternals } from '../agent/tool-internals.ts';
import { announce, nextPosition } from './turn/publish.ts';

/**
 * Announces results of a fresh turn as they come, each with the place that it will have (RUN-1311). What may yet be taken
 * back, has to say more, or whose place is not certain is announced when the turn is done, as without `extendedEvents`.
 */
export function announceAtOnce(pass: Pass, env: RunEnv): void {
  const { record, calls } = pass;
  if (!pass.fresh || record.withheld === true) return;
  const first = nextPosition(record) + pass.processed.newItems.length;
  pass.onResult = (call, item) => {
    const before = calls.filter((other) => placeOf(other) < placeOf(call));
    const isCertain = before.every((other) => !mayPause(other) || pass.results.has(other));
    if (!isCertain || hasMoreToSay(call) || env.inputCheck?.accepted === false) return;
    const paused = before.filter((other) => pass.results.get(other)?.type === 'paused');
    (pass.told ??= new Set()).add(item);
    announce([item], first + before.length - paused.length, env);
  };
  /** Outputs of calls to unknown tools stand behind all others. */
  function placeOf({ tool, index }: PlannedFunctionCall): number {
    return tool === undefined ? calls.length + index : index;
  }
}

/** The run behind a call that pauses leaves no item. */
function mayPause({ tool }: PlannedFunctionCall): boolean {
  return tool !== undefined && toolInternals(tool).agentTool !== undefined;
}

/** Custom data comes behind the output. */
function hasMoreToSay({ tool }: PlannedFunctionCall): boolean {
  return tool !== undefined && toolInternals(tool).customDataExtractor !== undefined;
}
