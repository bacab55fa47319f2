import type { AgentInputItem } from '../items/items.ts';
import { plainCopy } from '../models/plain.ts';

/** Stands in for an id where a provider gives none; never sent. */
export const PLACEHOLDER_ID = '__fake_id__';

/** Items that another provider's answer may have left, and that this API takes only from its own answers. */
const ownOnly: ReadonlySet<unknown> = new Set([
  'reasoning',
  'mcp_call',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
]);

type WireItem = Record<string, unknown>;

/** History as the API takes it: detached copies, without what other providers or the server added. @throws UserError with the path of what is no JSON */
export function cleanInput(input: readonly AgentInputItem[]): WireItem[] {
  const items: WireItem[] = [];
  for (const item of plainCopy(input as readonly unknown[], 'input') as WireItem[]) {
    const cleaned = typeof item === 'object' && item !== null ? clean(item) : item;
    if (cleaned !== undefined) items.push(cleaned);
  }
  return items;
}

/** Changes the copy. `undefined`: the item is not sent. */
function clean(item: WireItem): WireItem | undefined {
  if (ownOnly.has(item['type']) && hasMembers(item['provider_data'])) return undefined;
  if (item['id'] === PLACEHOLDER_ID) delete item['id'];
  delete item['provider_data'];
  delete item['created_by'];
  if (item['type'] === 'shell_call_output' && Array.isArray(item['output'])) {
    for (const chunk of item['output'] as (WireItem | null)[])
      if (typeof chunk === 'object') delete chunk?.['created_by'];
  }
  return item;
}

function hasMembers(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
