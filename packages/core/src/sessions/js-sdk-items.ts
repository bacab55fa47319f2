import { isObject } from '../base/json.ts';
import type { AgentInputItem } from '../items/items.ts';

type Loose = Readonly<Record<string, unknown>>;

/**
 * Items of npm `@openai/agents` (camelCase, `providerData`) as wire objects; others pass as they are. Nothing is lost that
 * the API takes: members of `providerData` go to the item itself.
 *
 * @example convertJsSdkItems([{ type: 'function_call_result', callId: 'c1', name: 'f', status: 'completed', output: 'ok' }])
 * // [{ type: 'function_call_output', call_id: 'c1', status: 'completed', output: 'ok' }]
 */
export function convertJsSdkItems(items: readonly object[]): AgentInputItem[] {
  return items.map((item) => (isObject(item) ? convertItem(item) : item) as AgentInputItem);
}

function convertItem(item: Loose): Loose {
  if (item['role'] !== undefined) return convertMessage(item);
  const convert =
    typeof item['type'] === 'string' && Object.hasOwn(CONVERT, item['type']) ? CONVERT[item['type']] : flat;
  return convert?.(item) ?? item;
}

/** By type; what is not here is flattened: `providerData`, `callId`, `caller`. */
const CONVERT: Readonly<Record<string, (item: Loose) => Loose>> = {
  function_call_result(item) {
    const { name: _name, namespace: _namespace, output, ...rest } = item;
    return { ...flat(rest), type: 'function_call_output', output: convertOutput(output) };
  },
  computer_call_result(item) {
    const { output, ...rest } = item;
    const { data, providerData, ...others } = isObject(output) ? output : {};
    return {
      ...flat(rest),
      type: 'computer_call_output',
      output: { ...snakeKeys(providerData), ...others, ...(data !== undefined && { image_url: data }) },
    };
  },
  shell_call(item) {
    return { ...flat(item), action: snakeKeys(item['action']) };
  },
  shell_call_output(item) {
    const { output, maxOutputLength, ...rest } = item;
    return {
      ...flat(rest),
      output: Array.isArray(output) ? output.map(convertShellOutput) : output,
      ...(maxOutputLength !== undefined && { max_output_length: maxOutputLength }),
    };
  },
  apply_patch_call(item) {
    return { ...flat(item), operation: snakeKeys(item['operation']) };
  },
  program_output(item) {
    const { output, ...rest } = item;
    return { ...flat(rest), ...(output !== undefined && { result: output }) };
  },
  tool_search_output(item) {
    const { tools, ...rest } = item;
    return { ...flat(rest), tools: Array.isArray(tools) ? tools.map(convertSearchTool) : tools };
  },
  reasoning: convertReasoning,
  hosted_tool_call: convertHosted,
  compaction(item) {
    const { encryptedContent, ...rest } = item;
    return { ...flat(rest), ...(encryptedContent !== undefined && { encrypted_content: encryptedContent }) };
  },
  unknown({ type: _type, ...item }) {
    return flat(item);
  },
};

function convertMessage(item: Loose): Loose {
  const { content, ...rest } = item;
  if (!Array.isArray(content)) return flat(item);
  const convert = item['role'] === 'assistant' ? convertAnswerPart : convertInputPart;
  return { ...flat(rest), content: content.map((part: unknown) => (isObject(part) ? convert(part) : part)) };
}

/** What the API gave beside the members that the other SDK names stands in `providerData`; those named win. */
function flat(item: Loose): Loose {
  const { providerData, callId, caller, id, ...own } = item;
  const isCamel = providerData !== undefined || callId !== undefined || id === PLACEHOLDER;
  if (!isCamel && !(isObject(caller) && 'callerId' in caller)) return item;
  return {
    ...snakeKeys(providerData),
    ...own,
    ...(id !== undefined && id !== PLACEHOLDER && { id }),
    ...(callId !== undefined && { call_id: callId }),
    ...(caller !== undefined && { caller: snakeKeys(caller) }),
  };
}
/** Its id for items of APIs that give none. */
const PLACEHOLDER = 'FAKE_ID';

function convertReasoning(item: Loose): Loose {
  const { content, rawContent, ...rest } = item;
  const isTheirs = item['summary'] === undefined && Array.isArray(content);
  if (!isTheirs) return flat(item);
  const summary = content.map((part: unknown) => {
    const { type: _type, providerData, ...own } = isObject(part) ? part : {};
    return { ...snakeKeys(providerData), ...own, type: 'summary_text' };
  });
  const raw = Array.isArray(rawContent) ? rawContent.map((part: unknown) => (isObject(part) ? flat(part) : part)) : [];
  return { ...flat(rest), summary, ...(raw.length > 0 && { content: raw }) };
}

function convertHosted(item: Loose): Loose {
  const { name, output, status, arguments: _arguments, providerData, ...rest } = item;
  const data = snakeKeys(providerData);
  const given = typeof data['type'] === 'string' ? data['type'] : String(name);
  const type = HOSTED[given] ?? given;
  const base = { ...data, ...flat({ ...rest, providerData: {} }), type };
  // Calls of MCP keep their own status in the data; the one of the item is always `completed`.
  if (type.startsWith('mcp_')) return type === 'mcp_call' && output !== undefined ? { ...base, output } : base;
  const own = { ...base, ...(status !== undefined && { status }) };
  return type === 'image_generation_call' && output !== undefined ? { ...own, result: output } : own;
}
/** Names that older versions stored. */
const HOSTED: Readonly<Record<string, string>> = {
  web_search: 'web_search_call',
  file_search: 'file_search_call',
  code_interpreter: 'code_interpreter_call',
  image_generation: 'image_generation_call',
};

// ---- parts

function convertAnswerPart(part: Loose): Loose {
  const { providerData, ...own } = part;
  return providerData === undefined ? part : { ...snakeKeys(providerData), ...own };
}

function convertInputPart(part: Loose): Loose {
  const { providerData, promptCacheBreakpoint, ...own } = part;
  const extra = {
    ...snakeKeys(providerData),
    ...(promptCacheBreakpoint !== undefined && { prompt_cache_breakpoint: promptCacheBreakpoint }),
  };
  switch (own['type']) {
    case 'input_image':
      return { ...extra, ...convertImage(own) };
    case 'input_file':
      return { ...extra, ...convertFile(own) };
    case 'audio': {
      const { type: _type, audio, format, transcript: _transcript, ...rest } = own;
      return { ...extra, ...rest, type: 'input_audio', input_audio: { data: audio, format } };
    }
    default:
      return Object.keys(extra).length === 0 ? part : { ...extra, ...own };
  }
}

function convertImage({ image, ...own }: Loose): Loose {
  if (image === undefined) return own;
  const detail = own['detail'] ?? 'auto';
  if (!isObject(image)) return { ...own, detail, image_url: image };
  const { data, mediaType } = image;
  if (typeof data === 'string') return { ...own, detail, image_url: dataUrl(data, mediaType) };
  const id = image['id'] ?? image['fileId'];
  return { ...own, detail, ...(id === undefined ? { image_url: image['url'] } : { file_id: id }) };
}

function convertFile({ file, ...own }: Loose): Loose {
  if (file === undefined) return own;
  if (typeof file === 'string') return { ...own, [/^https?:/i.test(file) ? 'file_url' : 'file_data']: file };
  const { id, url, data, mediaType, filename } = isObject(file) ? file : {};
  const name = filename === undefined ? {} : { filename };
  if (typeof data === 'string') return { ...own, ...name, file_data: dataUrl(data, mediaType) };
  return { ...own, ...name, ...(id === undefined ? { file_url: url } : { file_id: id }) };
}

function dataUrl(data: string, mediaType: unknown): string {
  return data.startsWith('data:') || typeof mediaType !== 'string' ? data : `data:${mediaType};base64,${data}`;
}

/** A text, one part of an older form, or a list of input parts. */
function convertOutput(output: unknown): unknown {
  if (Array.isArray(output)) return output.map((part: unknown) => (isObject(part) ? convertInputPart(part) : part));
  if (!isObject(output)) return output;
  const { type, ...part } = output;
  switch (type) {
    case 'text':
      return part['text'];
    case 'image':
      return [convertInputPart({ ...part, type: 'input_image' })];
    case 'file':
      return [convertInputPart({ ...part, type: 'input_file' })];
    default:
      return [convertInputPart(output)];
  }
}

function convertShellOutput(entry: unknown): unknown {
  return isObject(entry) ? { ...entry, outcome: snakeKeys(entry['outcome']) } : entry;
}

function convertSearchTool(tool: unknown): unknown {
  return isObject(tool) && tool['type'] === 'tool_reference' ? snakeKeys(tool) : tool;
}

/** Names of members, one level deep: what is in them is the user's. Members without a value are left out. */
function snakeKeys(value: unknown): Loose {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) =>
      member === undefined ? [] : [[key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), member]],
    ),
  );
}
