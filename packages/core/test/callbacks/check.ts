import type { RunItem } from '../../src/index.ts';
import type { World } from './world.ts';

export function publicItems(items: readonly RunItem[]): object[] {
  return items.flatMap((item) => (item.type === 'tool_approval_item' ? [] : [item.rawItem]));
}

/** What items are, however they are wrapped. */
export function keysOf(items: readonly object[]): string[] {
  return items.map((item) => {
    const { type, id, call_id: callId, role } = item as Record<string, unknown>;
    if (type === 'function_call') return `call ${String(callId)}`;
    if (type === 'function_call_output') return `output ${String(callId)}`;
    return typeof id === 'string' ? id : String(role);
  });
}

/** Each item once, each output behind its call, outputs that may be. */
export function checkHistory(world: World, items: readonly object[], where: string, isSession = false): void {
  const seen = new Set<string>();
  const keys = keysOf(items);
  for (const [index, key] of keys.entries()) {
    const isEnd = key === 'msg_end' && isSession;
    if (seen.has(key) && !isEnd) world.broken.push(`${key} is twice in ${where}: ${keys.join()}`);
    if (key.startsWith('output')) {
      if (!seen.has(key.replace('output', 'call')))
        world.broken.push(`${key} has no call before it in ${where}: ${keys.join()}`);
      checkOutput(world, items[index] as { call_id: string; output: unknown });
    }
    seen.add(key);
  }
}

function checkOutput(world: World, { call_id: id, output }: { call_id: string; output: unknown }): void {
  const starts = world.starts.get(id) ?? 0;
  if (output === `${id} ok` && starts === 0) world.broken.push(`${id} has an output and never began`);
  const { approve, kind } = world.call(id);
  if (output === 'Tool execution was not approved.' && (approve || kind === 'free'))
    world.broken.push(`${id} was rejected by nobody`);
}

/** A run that is over is in the session, all of it. */
export function checkStored(world: World, stored: readonly object[], items: readonly object[]): void {
  const [session, run] = [keysOf(stored).slice(1).toSorted(), keysOf(items).toSorted()];
  if (session.join() !== run.join())
    world.broken.push(`the session has ${keysOf(stored).join()}\nthe run has ${keysOf(items).join()}`);
}
