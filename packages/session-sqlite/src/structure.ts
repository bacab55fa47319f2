/** What the tables of branches say of an item, beside its place (SESS-204). */
export interface Structure {
  readonly type: string;
  readonly toolName: string | null;
  readonly isUserMessage: boolean;
}

/** Calls without a name of their own are known by their type. */
const NAMED_BY_TYPE: ReadonlySet<unknown> = new Set([
  'computer_call',
  'file_search_call',
  'web_search_call',
  'code_interpreter_call',
  'shell_call',
  'apply_patch_call',
]);
const OTHER: Structure = { type: 'other', toolName: null, isUserMessage: false };

/** @param item as it was decoded; `undefined`: it could not be */
export function structureOf(item: object | undefined): Structure {
  if (item === undefined) return OTHER;
  const { role, type } = item as { role?: unknown; type?: unknown };
  const isUserMessage = role === 'user';
  const kind = isUserMessage || role === 'assistant' ? role : isFilled(type) ? String(type) : 'other';
  return { type: kind, toolName: toolName(item as Readonly<Record<string, unknown>>), isUserMessage };
}

function toolName(item: Readonly<Record<string, unknown>>): string | null {
  const { type, name, namespace, server_label: label } = item;
  if ((type === 'mcp_call' || type === 'mcp_approval_request') && label !== undefined) {
    const parts = [label, name].filter(isFilled).map(String);
    return parts.length === 0 ? null : parts.join('.');
  }
  if (type === 'tool_search_call' || type === 'tool_search_output') return 'tool_search';
  if (NAMED_BY_TYPE.has(type)) return String(type);
  if (!isFilled(name)) return null;
  // A tool that stands for itself has its own name as namespace.
  return isFilled(namespace) && namespace !== name ? `${String(namespace)}.${String(name)}` : String(name);
}

function isFilled(value: unknown): value is string | number {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}
