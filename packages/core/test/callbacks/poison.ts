/** The text that must be seen nowhere after a change by a cast. */
export const POISON = 'changed by a cast';

/**
 * Changes by a cast what a callback was given to read: lists, and the objects around them. What is refused is refused. Items
 * themselves are the wire, shared by all who see them (TOOL-HO19).
 */
export function poison(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > 3 || isLeftAlone(value)) return;
  if (Array.isArray(value)) {
    attempt(() => value.push({ role: 'user', content: POISON }));
    attempt(() => value.splice(0, 1));
    attempt(() => (value.length = 0));
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    poison(member, depth + 1);
    if (typeof member === 'string') attempt(() => Object.assign(value, { [key]: POISON }));
    if (Array.isArray(member)) attempt(() => Object.assign(value, { [key]: [] }));
  }
  attempt(() => Object.assign(value, { poisoned: POISON }));
}

/** Contexts, agents and tools are no views: they are what the run works with, or the user's own; nor are items. */
function isLeftAlone(value: object): boolean {
  const { constructor } = value as { constructor?: { readonly name: string } };
  return kept.test(constructor?.name ?? '') || ('type' in value && 'rawItem' in value);
}

const kept = /Context|Agent|AbortSignal|Tool|Handoff|Error|Exception|Result|State/;

function attempt(change: () => unknown): void {
  try {
    change();
  } catch {
    // Frozen.
  }
}
