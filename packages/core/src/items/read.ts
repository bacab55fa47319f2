import type { MessageOutputItem, RunItem } from './items.ts';
import type { ResponseOutputMessage } from './wire.ts';

/** All text parts of one message, joined; `''` when there are none (a refusal is no text). */
export function messageText(message: MessageOutputItem | ResponseOutputMessage): string {
  const raw: unknown = 'rawItem' in message ? message.rawItem : message;
  const content: unknown = (raw as { content?: unknown } | null)?.content;
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as { type?: unknown; text?: unknown }[]) {
    if (part?.type === 'output_text' && typeof part.text === 'string') text += part.text;
  }
  return text;
}

/** The text of all assistant messages among `items`, joined. */
export function outputText(items: readonly RunItem[]): string {
  let text = '';
  for (const item of items) if (item.type === 'message_output_item') text += messageText(item);
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
