import { isObject } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';

type Wire = Record<string, unknown>;

/** Items that the service knows by their id: it has to come with them. */
const KEEPS_ID: ReadonlySet<unknown> = new Set([
  'reasoning',
  'file_search_call',
  'web_search_call',
  'computer_call',
  'code_interpreter_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_call',
  'item_reference',
  'program',
  'program_output',
]);

/** Members that are no part of what the service takes. */
const NEVER_SENT = ['provider_data', 'created_by', '_agents_tool_description', '_agents_tool_title'] as const;
const PLACEHOLDER_ID = '__fake_id__';

/** Items as the service takes them (SESS-304). Reasoning that nothing identifies is left out: it could not be sent. */
export function itemsForConversation(items: readonly object[]): AgentInputItem[] {
  return items.flatMap((item) => {
    const sent: Wire = without(item, NEVER_SENT);
    if (!KEEPS_ID.has(sent['type']) || sent['id'] === PLACEHOLDER_ID) delete sent['id'];
    const isLost =
      sent['type'] === 'reasoning' && typeof sent['id'] !== 'string' && typeof sent['encrypted_content'] !== 'string';
    return isLost ? [] : [sent as unknown as AgentInputItem];
  });
}

/** Of assistant messages the service's own members are left out; other items are sent as they are (SESS-305). */
export function itemForModel(item: AgentInputItem): AgentInputItem {
  const isAssistant = 'role' in item && item.role === 'assistant' && (item.type ?? 'message') === 'message';
  return isAssistant ? (without(item, ['id', 'provider_data']) as unknown as AgentInputItem) : item;
}

/**
 * For comparing what was sent with what is stored: without what the service gives (SESS-306). A message comes back with a
 * status, and its text as parts.
 */
export function itemForComparison(item: AgentInputItem): AgentInputItem {
  const plain = without(item, ['id', 'created_by']);
  const isMessage = (plain['type'] ?? 'message') === 'message' && 'role' in plain;
  return (isMessage ? messageForComparison(plain) : plain) as unknown as AgentInputItem;
}

function messageForComparison({ status: _, content, ...message }: Wire): Wire {
  const type = message['role'] === 'assistant' ? 'output_text' : 'input_text';
  const parts: unknown = typeof content === 'string' ? [{ type, text: content }] : content;
  return {
    ...message,
    type: 'message',
    content: Array.isArray(parts)
      ? parts.map((part: unknown) => (isObject(part) ? without(part, ['annotations', 'logprobs']) : part))
      : parts,
  };
}

export function idOf(item: unknown): string | undefined {
  return isObject(item) && typeof item['id'] === 'string' && item['id'] !== '' ? item['id'] : undefined;
}

function without(item: object, keys: readonly string[]): Wire {
  const copy: Wire = { ...item };
  for (const key of keys) delete copy[key];
  return copy;
}
