import type { RunResult } from '@agents/core';

/** What a run did: which agent answered, which functions were called, what was said. */
export function outcomeOf<O>(result: RunResult<unknown, O>) {
  const calls = result.newItems.flatMap((item) => {
    if (item.type === 'handoff_call_item') return [item.rawItem.name];
    return item.type === 'tool_call_item' ? [item.toolName] : [];
  });
  return { agent: result.lastAgent.name, calls, text: result.finalOutput };
}
