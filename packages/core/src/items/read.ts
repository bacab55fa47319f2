import type { AgentInputItem, RunItem } from './items.ts';

/**
 * The text of one message, an item or a wire object of input or output, its parts joined; `''` when it has none (a refusal is
 * no text) and for what is no message.
 * @example const lines = (await session.getItems()).map((item) => messageText(item)).filter((text) => text !== '')
 */
export function messageText(message: RunItem | AgentInputItem): string {
  const raw: unknown = 'rawItem' in message ? message.rawItem : message;
  const { type = 'message', content } = raw as { type?: unknown; content?: unknown };
  if (type !== 'message') return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as ({ type?: unknown; text?: unknown } | null)[])
    if ((part?.type === 'output_text' || part?.type === 'input_text') && typeof part.text === 'string')
      text += part.text;
  return text;
}

/** The text of all assistant messages among `items`, joined. */
export function outputText(items: readonly (RunItem | AgentInputItem)[]): string {
  let text = '';
  for (const item of items) {
    const raw: unknown = 'rawItem' in item ? item.rawItem : item;
    if ((raw as { role?: unknown }).role === 'assistant') text += messageText(item);
  }
  return text;
}

/** `call_id`, else `id` (RUN-1101). */
export function callIdOf(rawItem: unknown): string | undefined {
  const { call_id: callId, id } = rawItem as { call_id?: unknown; id?: unknown };
  if (typeof callId === 'string') return callId;
  return typeof id === 'string' ? id : undefined;
}

/** `name` of the wire object, else the name of its kind: `web_search` of a `web_search_call`. */
export function toolNameOf(rawItem: unknown): string | undefined {
  const { name, type } = rawItem as { name?: unknown; type?: unknown };
  if (typeof name === 'string') return name;
  return typeof type === 'string' ? type.replace(/_call$/, '') : undefined;
}
