import type { RunItem } from '../../items/items.ts';
import type { RunEnv } from '../env.ts';
import type { Pass } from './pass.ts';
import type { MessageOutputItem } from '../../items/items.ts';
import type { StateRecord } from '../../state/record.ts';
import { getLogger } from '../../base/logger.ts';
import { itemEvent } from '../events.ts';
import { withholdsTurns } from '../guarded.ts';

/** Of the next public item: places that a handoff's filter took out of `newItems` are not given again. */
export function nextPosition({ sessionItems, withdrawn = 0 }: StateRecord): number {
  return sessionItems.length + withdrawn;
}

/** Announces items in order; `position` is that of the first of them. */
export function announce(items: readonly RunItem[], position: number, env: RunEnv): void {
  const { emit } = env;
  if (emit === undefined) return;
  const extended = env.extended !== undefined;
  items.forEach((item, index) => {
    const event = itemEvent(item, position + index, extended);
    if (event) emit(event);
  });
}

/** What a pass adds to the history that people and sessions see. */
export interface Publication {
  readonly items: readonly RunItem[];
  /** Announces the local results among them; items of the response were announced with it. */
  announce(env: RunEnv): void;
}

/** Makes the items of a pass public. */
export function publish(pass: Pass): Publication {
  const { record, processed } = pass;
  if (!pass.fresh) dropDecided(pass);
  const items = pass.unpublished();
  const position = nextPosition(record);
  record.sessionItems.push(...items);
  return {
    items,
    announce: (env) => {
      if (env.emit === undefined) return;
      const announced = new Set<RunItem>(processed.newItems);
      for (const item of pass.told ?? []) announced.add(item);
      items.forEach((item, index) => {
        if (!announced.has(item)) announce([item], position + index, env);
      });
    },
  };
}

/** Waiting items whose calls are decided have no place in what the model sees; people still see them in `newItems`. */
function dropDecided(pass: Pass): void {
  const { record, start } = pass;
  const waiting = new Set(record.step.type === 'interruption' ? record.step.interruptions : []);
  const items = record.generatedItems.slice(start);
  const left = items.filter((item) => item.type !== 'tool_approval_item' || waiting.has(item));
  if (left.length < items.length) record.generatedItems.splice(start, items.length, ...left);
}

/** The message of a handler ends the history, and is announced: the session has it (RUN-710). */
export function publishMessage(message: MessageOutputItem, record: StateRecord, env: RunEnv): void {
  const position = nextPosition(record);
  record.generatedItems.push(message);
  record.sessionItems.push(message);
  announce([message], position, env);
}

/**
 * A fresh turn failed after some of its calls had ended: their pairs are kept, so that nothing that was done is lost
 * (RUN-509). Kept are calls with an output, completed work of the provider, and the reasoning directly before what is kept;
 * nothing when the run was aborted, when its input is not accepted, and of what an output guardrail may yet withhold.
 */
export async function keepFinished(pass: Pass, env: RunEnv): Promise<readonly RunItem[]> {
  if (env.control.error) return [];
  const outputs = pass.record.generatedItems
    .slice(pass.start)
    .filter((item) => item.type === 'tool_call_output_item' && !pass.processed.newItems.includes(item));
  const done = new Set(outputs.map((item) => (item.type === 'tool_call_output_item' ? item.callId : undefined)));
  const kept: RunItem[] = [];
  let reasoning: RunItem[] = [];
  for (const item of pass.processed.newItems) {
    if (item.type === 'reasoning_item') reasoning.push(item);
    else {
      if (isFinished(item, done)) kept.push(...reasoning, item);
      reasoning = [];
    }
  }
  kept.push(...outputs);
  if (kept.length === 0 || withholdsTurns(pass.agent, env)) return [];
  if (env.inputCheck && !(await env.inputCheck.accepts())) return [];
  const position = nextPosition(pass.record);
  pass.record.sessionItems.push(...kept);
  pass.record.privateResults = undefined;
  outputs.forEach((item, index) => {
    if (pass.told?.has(item) !== true) announce([item], position + kept.length - outputs.length + index, env);
  });
  env.deliverQueued = true;
  try {
    await env.session?.writeTurn(kept, {
      responseId: pass.response.responseId,
      store: env.storeSetting,
      hasLocalToolOutputs: outputs.length > 0,
    });
  } catch {
    getLogger().error(
      'What a failed turn had finished could not be stored in the session; the state keeps it for a resume.',
    );
  }
  return kept;
}

function isFinished(item: RunItem, done: ReadonlySet<string | undefined>): boolean {
  switch (item.type) {
    case 'tool_call_item':
      return item.rawItem.type === 'function_call'
        ? done.has(item.callId)
        : (item.rawItem as { status?: unknown }).status === 'completed';
    case 'tool_search_call_item':
    case 'tool_search_output_item':
      return (item.rawItem as { status?: unknown }).status === 'completed';
    default:
      return false;
  }
}
