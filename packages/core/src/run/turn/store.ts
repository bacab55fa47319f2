import type { RunItem } from '../../items/items.ts';
import type { RunEnv } from '../env.ts';
import type { Pass } from './pass.ts';
import { withholdsTurns } from '../guarded.ts';

/**
 * Stores what a turn adds to the history. What waits while an output guardrail may yet withhold a tool's output is held in
 * the state instead, and is written with the end of the turn (STATE-127, 322…328).
 */
export function storeTurn(
  items: readonly RunItem[],
  pass: Pass,
  terminal: boolean,
  env: RunEnv,
): Promise<void> | undefined {
  const { record } = pass;
  if (env.session === undefined) return holdDetached(pass, terminal);
  const withheld = withholdsTurns(pass.agent, env);
  const meta = {
    responseId: pass.response.responseId,
    store: env.storeSetting,
    hasLocalToolOutputs: items.some(({ type }) => type === 'tool_call_output_item' || type === 'handoff_output_item'),
    terminal,
  };
  if (withheld && record.step.type === 'interruption') return env.session.holdTurn(pass.responseItems(), meta);
  // Nobody wrote the calls at the pause, and no record of them came along: they go before their outputs (STATE-328).
  const owed = withheld && !pass.fresh && record.pendingWrite === undefined && record.persistedItemCount === 0;
  return env.session.writeTurn(owed ? withEarlier(items, pass) : items, meta);
}

/** Items of the response that are public already and in no session, before those that are new. */
function withEarlier(items: readonly RunItem[], pass: Pass): readonly RunItem[] {
  const added = new Set(items);
  return [...pass.responseItems().filter((item) => !added.has(item)), ...items];
}

/** A run without its session carries a held batch on, with what it adds, and drops it when the run ends (STATE-323, 326). */
export function holdDetached(pass: Pass, terminal: boolean): Promise<void> | undefined {
  const { record } = pass;
  if (record.pendingWrite?.held === undefined) return undefined;
  if (!terminal) return hold(pass);
  record.pendingWrite = undefined;
  return undefined;
}

async function hold(pass: Pass): Promise<void> {
  const held = await import('../../sessions/held.ts');
  held.hold(pass.record, pass.responseItems(), { responseId: pass.response.responseId, store: undefined });
}
