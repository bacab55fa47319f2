import type { AgentInputItem, RunItem, RunResult, RunState } from '../../src/index.ts';
import { keyOf } from './segment.ts';
import type { Ending } from './segment.ts';
import type { Store } from './session.ts';
import type { Weather } from './script.ts';
import type { World } from './world.ts';

/** A run that is over: each item once and in order, everything of it in the session, each output one that may be. */
export function checkEnd(
  world: World,
  store: Store | null,
  result: Pick<RunResult, 'toInputList' | 'finalOutput'>,
  weather: Weather,
): void {
  const { broken } = world.law;
  const items = result.toInputList();
  checkHistory(world, items, 'result');
  const turns = turnsOf(items);
  const last = items.at(-1) as { role?: string; content?: unknown } | undefined;
  const handled = result.finalOutput !== 'done';
  if (handled && weather === 'calm') broken.push(`the final output is ${JSON.stringify(result.finalOutput)}`);
  if (!handled) {
    if (turns.length !== world.script.length) broken.push(`${turns.length} of ${world.script.length} turns`);
    if (last?.role !== 'assistant') broken.push('the answer is not the last item');
  }
  turns.forEach((calls, index) => {
    const wanted = (world.script[index] ?? []).map((call) => call.id);
    // What a failed turn had finished stands before what its resume did (RUN-509).
    const found = weather === 'calm' ? calls : calls.toSorted();
    if (found.join() !== wanted.join()) broken.push(`turn ${index} has the calls ${calls.join()}`);
  });
  for (const item of items)
    if (item.type === 'function_call_output') world.law.checkOutput(item.call_id ?? '', item.output);
  for (const call of world.script.slice(0, turns.length).flat())
    if (!items.some((item) => item.type === 'function_call_output' && item.call_id === call.id))
      broken.push(`${call.id} has no output`);
  if (store) {
    checkHistory(world, store.items, 'session');
    if (inPasses(store.items) !== inPasses(items)) broken.push(differ(store.items, items));
  }
  if (weather === 'calm' && new Set(world.asked).size !== world.asked.length)
    broken.push(`the model was asked twice: ${world.asked.join()}`);
}

/** Between two segments: nothing twice, nothing out of order, in the session only what is public. */
export function checkPause(world: World, store: Store | null, state: RunState, { result, events }: Ending): void {
  const { broken } = world.law;
  const fresh = publicItems(state.newItems);
  checkHistory(world, fresh, 'newItems');
  for (const key of events)
    if (key.startsWith('output') && !fresh.some((item) => keyOf(item) === key))
      broken.push(`${key} was announced only`);
  if (store === null) return;
  checkHistory(world, store.items, 'session');
  const known = new Set(['user', ...fresh.map(keyOf)]);
  for (const item of store.items)
    if (!known.has(keyOf(item))) broken.push(`${keyOf(item)} is in the session and in nothing else`);
  // A segment that ended well has stored everything.
  if (result && store.half === undefined && store.items.length !== fresh.length + 1)
    broken.push(differ(store.items, fresh));
}

function publicItems(items: readonly RunItem[]): object[] {
  return items.flatMap((item) => (item.type === 'tool_approval_item' ? [] : [item.rawItem]));
}

/** Each item once, and each output behind its call. */
function checkHistory(world: World, items: readonly object[], where: string): void {
  const seen = new Set<string>();
  for (const item of items) {
    const key = keyOf(item);
    if (seen.has(key)) world.law.broken.push(`${key} is twice in ${where}: ${keysOf(items)}`);
    if (key.startsWith('output') && !seen.has(key.replace('output', 'call')))
      world.law.broken.push(`${key} has no call before it in ${where}: ${keysOf(items)}`);
    seen.add(key);
  }
}

const keysOf = (items: readonly object[]): string => items.map(keyOf).join(', ');
const differ = (stored: readonly object[], items: readonly object[]): string =>
  `the session has ${keysOf(stored)}\nthe run has ${keysOf(items)}`;

/** Ids of the calls of each turn; a turn begins with its reasoning. */
function turnsOf(items: readonly AgentInputItem[]): string[][] {
  const turns: string[][] = [];
  for (const item of items) {
    if (item.type === 'function_call') {
      const turn = Number(/^c(\d+)_/.exec(item.call_id)?.[1]);
      (turns[turn] ??= []).push(item.call_id);
    }
  }
  return Array.from(turns, (calls) => calls ?? []);
}

/** Outputs of one turn may come in two passes; which one comes first depends on who decided when. */
function inPasses(items: readonly object[]): string {
  const texts = items.map((item) => JSON.stringify(item));
  const isOutput = (index: number): boolean => keyOf(items[index] ?? {}).startsWith('output');
  let start = 0;
  for (let index = 0; index <= items.length; index += 1) {
    if (isOutput(index)) continue;
    texts.splice(start, index - start, ...texts.slice(start, index).toSorted());
    start = index + 1;
  }
  return texts.join('\n');
}
