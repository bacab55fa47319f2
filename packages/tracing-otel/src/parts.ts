export type JsonObject = Readonly<Record<string, unknown>>;
export type Part = JsonObject & { readonly type: string };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

/** A text of at most `limit` characters, and how many it had more; of a data URL only what it is. */
export function truncated(text: string, limit: number): string {
  const data = /^data:([^,;]*)[^,]*,/u.exec(text.slice(0, 200));
  if (data !== null) return `data:${data[1]},… [truncated ${text.length}]`;
  if (text.length <= limit) return text;
  // Not in the middle of a character.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(limit - 1)) ? limit - 1 : limit;
  return `${text.slice(0, end)}… [truncated ${text.length - end}]`;
}

/** Calls that this process answers. */
const CALLS: ReadonlySet<string> = new Set([
  'function_call',
  'custom_tool_call',
  'computer_call',
  'shell_call',
  'local_shell_call',
  'apply_patch_call',
]);
/** Calls that the provider answers itself. */
const HOSTED: ReadonlySet<string> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_call',
  'tool_search_call',
  'program',
]);
/** Members of a call that are not what it asks for. */
const ENVELOPE: ReadonlySet<string> = new Set([
  'type',
  'id',
  'call_id',
  'status',
  'name',
  'namespace',
  'caller',
  'result',
]);

/** The parts of one item of the Responses API, or of one message of Chat Completions. */
export function partsOf(item: JsonObject): readonly Part[] {
  const { type } = item;
  if (typeof type !== 'string' || type === 'message') return messageParts(item);
  if (type === 'reasoning') return reasoningParts(item);
  if (CALLS.has(type)) return [callPart(item, type)];
  if (HOSTED.has(type)) return [hostedPart(item, type)];
  if (type.endsWith('_output') && 'call_id' in item)
    return [{ type: 'tool_call_response', id: item['call_id'], response: outputOf(item['output'] ?? item['result']) }];
  return [{ type }];
}

function messageParts(message: JsonObject): Part[] {
  const { role, content } = message;
  if (role === 'tool')
    return [{ type: 'tool_call_response', id: message['tool_call_id'], response: outputOf(content) }];
  const parts = typeof content === 'string' ? [text(content)] : list(content).map(contentPart);
  for (const thought of [message['reasoning_content'], message['reasoning']])
    if (typeof thought === 'string') parts.unshift({ type: 'reasoning', content: thought });
  for (const call of list(message['tool_calls'])) parts.push(chatCall(call));
  return parts;
}

function reasoningParts({ summary, content }: JsonObject): Part[] {
  const texts = [...list(summary), ...list(content)].map((entry) => entry['text']);
  return texts
    .filter((entry) => typeof entry === 'string')
    .map((entry): Part => ({ type: 'reasoning', content: entry }));
}

function callPart(item: JsonObject, type: string): Part {
  const name = item['name'] ?? type.replace(/_call$/u, '');
  const given = item['arguments'] ?? item['input'] ?? item['action'] ?? item['operation'];
  return { type: 'tool_call', id: item['call_id'], name, arguments: argumentsOf(given) };
}

function chatCall(call: JsonObject): Part {
  const made = (isObject(call['function']) ? call['function'] : call['custom']) as JsonObject | undefined;
  const given = made?.['arguments'] ?? made?.['input'];
  return { type: 'tool_call', id: call['id'], name: made?.['name'], arguments: argumentsOf(given) };
}

function hostedPart(item: JsonObject, type: string): Part {
  const tool = type.replace(/_call$/u, '');
  const details = Object.entries(item).filter(([key]) => !ENVELOPE.has(key));
  return {
    type: 'server_tool_call',
    id: item['id'],
    name: item['name'] ?? tool,
    server_tool_call: { type: tool, ...Object.fromEntries(details) },
  };
}

function argumentsOf(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

/** A tool's output: a text, or parts. */
function outputOf(output: unknown): unknown {
  return Array.isArray(output) ? list(output).map(contentPart) : output;
}

function contentPart(part: JsonObject): Part {
  const { type } = part;
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return text(part['text']);
    case 'refusal':
      return text(part['refusal']);
    case 'input_image':
    case 'image_url':
    case 'computer_screenshot':
      return media('image', part, part['image_url']);
    case 'input_file':
    case 'file':
      return media('document', fileOf(part), fileOf(part)['file_data'] ?? part['file_url']);
    case 'input_audio':
      return { type: 'blob', modality: 'audio' };
    default:
      return { type: typeof type === 'string' ? type : 'unknown' };
  }
}

/** Chat Completions wraps a file once more. */
function fileOf(part: JsonObject): JsonObject {
  return isObject(part['file']) ? part['file'] : part;
}

/** Where it is, if it is elsewhere; of what is inline only what it is. */
function media(modality: string, part: JsonObject, source: unknown): Part {
  const id = part['file_id'];
  if (typeof id === 'string') return { type: 'file', modality, file_id: id };
  const address = isObject(source) ? source['url'] : source;
  if (typeof address === 'string' && /^https?:/u.test(address)) return { type: 'uri', modality, uri: address };
  const mimeType = typeof address === 'string' ? /^data:([^,;]+)/u.exec(address.slice(0, 200))?.[1] : undefined;
  return { type: 'blob', modality, ...(mimeType === undefined ? undefined : { mime_type: mimeType }) };
}

function text(content: unknown): Part {
  return { type: 'text', content };
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
