import { UserError } from '../base/errors.ts';
import { inputToList, itemsToInput } from '../items/convert.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import { publicView } from '../state/public-view.ts';
import type { StateRecord } from '../state/record.ts';

/**
 * The conversation so far as model input: what the run started from, then what it made. `normalized`: what the model would
 * see next.
 *
 * @throws UserError for another mode
 */
export function replayList(record: StateRecord, mode: unknown = 'preserve_all'): AgentInputItem[] {
  if (mode !== 'preserve_all' && mode !== 'normalized')
    throw new UserError("toInputList: the option `mode` takes 'preserve_all' or 'normalized'.");
  const { newItems, replayed } = publicView(record);
  const items = mode === 'normalized' ? replayed : withoutOwned(newItems, record);
  return [...inputToList(record.input), ...itemsToInput(items, { reasoningIds: record.reasoningItemIdPolicy })];
}

/** Items that nested history moved into the input stand there; by occurrence, so that equal ones stay (RUN-1220). */
function withoutOwned(items: readonly RunItem[], { ownedHistory }: StateRecord): readonly RunItem[] {
  if (ownedHistory.length === 0) return items;
  const owned = new Set(ownedHistory.map(({ item }) => item));
  return items.filter((item) => !owned.has(item));
}
