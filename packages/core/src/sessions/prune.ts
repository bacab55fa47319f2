import type { AgentInputItem } from '../items/items.ts';

/** An item of the model's view and where it came from. */
export interface Sourced {
  readonly item: AgentInputItem;
  readonly isNew: boolean;
}

type Loose = Readonly<Record<string, unknown>>;

/** Kinds of items come and go: members are read as data. */
function loose(item: object): Loose {
  return item as Loose;
}

const OUTPUT_OF: Readonly<Record<string, string>> = {
  function_call: 'function_call_output',
  custom_tool_call: 'custom_tool_call_output',
  shell_call: 'shell_call_output',
  apply_patch_call: 'apply_patch_call_output',
  computer_call: 'computer_call_output',
  local_shell_call: 'local_shell_call_output',
  tool_search_call: 'tool_search_output',
  program: 'program_output',
};
const OUTPUT_TYPES: ReadonlySet<string> = new Set(Object.values(OUTPUT_OF));
const CALL_OF: ReadonlyMap<string, string> = new Map(Object.entries(OUTPUT_OF).map(([call, output]) => [output, call]));

/**
 * Leaves out what a model refuses: calls of the history that nobody answered, with the reasoning that led to them, and
 * outputs without their call, unless that is in a history which is not at hand (`outputs: false`). What is new in the turn
 * always stays. Only the view is pruned, never the store (SESS-071…074).
 */
export function pruneOrphans(items: readonly Sourced[], outputs: boolean): Sourced[] {
  const cut = outputs ? unaskedOutputs(items) : [];
  const calls = unansweredCalls(items, new Set(cut));
  const gone = new Set<Sourced>([...calls, ...cut]);
  if (gone.size === 0) return [...items];
  for (const reasoning of reasoningBefore(items, calls)) gone.add(reasoning);
  return items.filter((entry) => !gone.has(entry));
}

/**
 * Calls whose output is nowhere in the list.
 *
 * @param cut what goes anyway: no program stays for it
 */
export function unansweredCalls(items: readonly Sourced[], cut?: ReadonlySet<Sourced>): Set<Sourced> {
  const answered = new Set<string>();
  for (const { item } of items) {
    const { type, call_id: callId } = loose(item);
    if (typeof type === 'string' && OUTPUT_TYPES.has(type) && typeof callId === 'string')
      answered.add(`${type} ${callId}`);
  }
  const paired = pairedSearches(items);
  const gone = new Set<Sourced>();
  for (const entry of items) {
    const { type, call_id: callId, status } = loose(entry.item);
    const output = typeof type === 'string' && Object.hasOwn(OUTPUT_OF, type) ? OUTPUT_OF[type] : undefined;
    if (entry.isNew || output === undefined || paired.has(entry)) continue;
    if (typeof callId === 'string' && answered.has(`${output} ${callId}`)) continue;
    // A shell call of a program is answered inside the program, and only when it is done.
    if (
      type === 'shell_call' &&
      programOf(entry.item) !== undefined &&
      (status === undefined || status === null || status === 'in_progress')
    )
      continue;
    gone.add(entry);
  }
  return withPrograms(items, gone, cut);
}

/** A program stays while something it owns stays: that of the last ones is looked at first, for programs may own programs. */
function withPrograms(items: readonly Sourced[], gone: Set<Sourced>, cut?: ReadonlySet<Sourced>): Set<Sourced> {
  const orphans = new Map<unknown, Sourced>();
  for (const entry of gone) {
    if (loose(entry.item)['type'] === 'program') orphans.set(loose(entry.item)['call_id'], entry);
  }
  if (orphans.size === 0) return gone;
  for (const entry of items.toReversed()) {
    const owner = gone.has(entry) || cut?.has(entry) ? undefined : programOf(entry.item);
    const program = owner === undefined ? undefined : orphans.get(owner);
    if (program !== undefined) gone.delete(program);
  }
  return gone;
}

function programOf(item: AgentInputItem): string | undefined {
  const caller = loose(item)['caller'] as Loose | null | undefined;
  if (typeof caller !== 'object' || caller === null || caller['type'] !== 'program') return undefined;
  return typeof caller['caller_id'] === 'string' ? caller['caller_id'] : undefined;
}

/** Searches without call ids: outputs answer the calls before them, the last ones first. */
function pairedSearches(items: readonly Sourced[]): Set<Sourced> {
  const paired = new Set<Sourced>();
  let outputs = 0;
  for (const entry of items.toReversed()) {
    const { type, call_id: callId } = loose(entry.item);
    if (typeof callId === 'string') continue;
    if (type === 'tool_search_output') outputs++;
    else if (type === 'tool_search_call' && outputs > 0) {
      outputs--;
      paired.add(entry);
    }
  }
  return paired;
}

/** Outputs whose call is nowhere in the list. */
export function unaskedOutputs(items: readonly Sourced[]): Sourced[] {
  const asked = new Set<string>();
  let idlessCalls = 0;
  for (const { item } of items) {
    const { type, call_id: callId } = loose(item);
    if (typeof type !== 'string' || !Object.hasOwn(OUTPUT_OF, type)) continue;
    if (typeof callId === 'string') asked.add(`${type} ${callId}`);
    else if (type === 'tool_search_call') idlessCalls++;
  }
  return items.filter(({ item, isNew }) => {
    const { type, call_id: callId } = loose(item);
    const call = isNew || typeof type !== 'string' ? undefined : CALL_OF.get(type);
    if (call === undefined) return false;
    if (typeof callId === 'string') return !asked.has(`${call} ${callId}`);
    return type === 'tool_search_output' && idlessCalls === 0;
  });
}

/** Reasoning of the history whose next other item is a pruned call. */
export function reasoningBefore(items: readonly Sourced[], calls: ReadonlySet<Sourced>): Sourced[] {
  const found: Sourced[] = [];
  let doomed = false;
  for (const entry of items.toReversed()) {
    if (loose(entry.item)['type'] === 'reasoning') {
      if (doomed && !entry.isNew) found.push(entry);
    } else doomed = calls.has(entry);
  }
  return found;
}
