import { ModelBehaviorError } from '../base/errors.ts';

type Loose = Record<string, unknown>;
type Draft = { type: string } & Loose;

/** What all events of an item, or of one part of it, have in common. */
interface Place {
  readonly item_id: unknown;
  readonly output_index: number;
  readonly content_index?: number;
  readonly summary_index?: number;
}

/** Takes events and numbers them. */
export class StreamWriter {
  readonly events: Loose[] = [];
  readonly #chunk: number | 'word' | undefined;

  constructor(chunk: number | 'word' | undefined) {
    this.#chunk = chunk;
  }

  push(event: Draft): void {
    event['sequence_number'] = this.events.length;
    this.events.push(event);
  }

  /** Deltas of a text: `<event>.delta` for each piece. */
  deltas(event: string, place: Place, text: string): void {
    const type = `${event}.delta`;
    for (const delta of split(text, this.#chunk)) this.push({ type, ...place, delta });
  }

  /** Deltas, then `<event>.done` with the whole text as `member`. */
  text(event: string, place: Place, member: string, text: unknown): void {
    this.deltas(event, place, String(text));
    this.push({ type: `${event}.done`, ...place, [member]: String(text) });
  }
}

/** Writes the events of one output item. @throws ModelBehaviorError for items whose stream is not known */
export function writeItem(writer: StreamWriter, index: number, item: Loose): void {
  const type = String(item['type']);
  const kind = kinds[type];
  if (kind === undefined)
    throw new ModelBehaviorError(`No stream can be made for output items of type "${type}": give the exact events.`);
  const added = { ...item, ...kind.empty?.(item), ...(kind.noStatus ? undefined : { status: 'in_progress' }) };
  writer.push({ type: 'response.output_item.added', output_index: index, item: structuredClone(added) });
  kind.write?.(writer, { item_id: item['id'] ?? item['call_id'], output_index: index }, item);
  writer.push({ type: 'response.output_item.done', output_index: index, item: structuredClone(item) });
}

/** How an item looks before its content, and what is sent while the content arrives. */
interface Kind {
  readonly noStatus?: boolean;
  empty?(item: Loose): Loose;
  write?(writer: StreamWriter, place: Place, item: Loose): void;
}

const kinds: Readonly<Record<string, Kind>> = {
  message: { empty: () => ({ content: [] }), write: writeMessage },
  reasoning: {
    empty: (item) => ({ summary: [], ...(item['content'] === undefined ? undefined : { content: [] }) }),
    write: writeReasoning,
  },
  function_call: { empty: () => ({ arguments: '' }), write: writeFunctionCall },
  custom_tool_call: {
    noStatus: true,
    empty: () => ({ input: '' }),
    write: (writer, place, item) => writer.text('response.custom_tool_call_input', place, 'input', item['input']),
  },
  apply_patch_call: { empty: emptyPatch, write: writePatch },
  mcp_call: { empty: () => ({ arguments: '', output: null }), write: writeMcpCall },
  mcp_list_tools: {
    noStatus: true,
    empty: () => ({ tools: [] }),
    write: (writer, place) => {
      writer.push({ type: 'response.mcp_list_tools.in_progress', ...place });
      writer.push({ type: 'response.mcp_list_tools.completed', ...place });
    },
  },
  mcp_approval_request: { noStatus: true },
  web_search_call: {},
  file_search_call: {},
  code_interpreter_call: {},
  image_generation_call: {},
};

function writeMessage(writer: StreamWriter, place: Place, item: Loose): void {
  for (const [index, part] of (item['content'] as Loose[]).entries()) {
    const at = { ...place, content_index: index };
    const isText = part['type'] === 'output_text';
    const empty = isText ? { ...part, text: '', annotations: [], logprobs: [] } : { ...part, refusal: '' };
    writer.push({ type: 'response.content_part.added', ...at, part: empty });
    if (isText) writeText(writer, at, part);
    else writer.text('response.refusal', at, 'refusal', part['refusal']);
    writer.push({ type: 'response.content_part.done', ...at, part: structuredClone(part) });
  }
}

function writeText(writer: StreamWriter, place: Place, part: Loose): void {
  const text = String(part['text']);
  const logprobs = (part['logprobs'] as Loose[] | undefined) ?? [];
  const first = writer.events.length;
  writer.deltas('response.output_text', place, text);
  // Which token a piece holds is unknown here, so all of them come with the first.
  for (const [index, event] of writer.events.slice(first).entries())
    event['logprobs'] = index === 0 ? structuredClone(logprobs) : [];
  for (const [index, annotation] of ((part['annotations'] as Loose[] | undefined) ?? []).entries())
    writer.push({
      type: 'response.output_text.annotation.added',
      ...place,
      annotation_index: index,
      annotation: structuredClone(annotation),
    });
  writer.push({ type: 'response.output_text.done', ...place, text, logprobs: structuredClone(logprobs) });
}

function writeReasoning(writer: StreamWriter, place: Place, item: Loose): void {
  for (const [index, part] of (item['summary'] as Loose[]).entries()) {
    const at = { ...place, summary_index: index };
    writer.push({ type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } });
    writer.text('response.reasoning_summary_text', at, 'text', part['text']);
    writer.push({ type: 'response.reasoning_summary_part.done', ...at, part: structuredClone(part) });
  }
  for (const [index, part] of ((item['content'] as Loose[] | undefined) ?? []).entries()) {
    const at = { ...place, content_index: index };
    writer.push({ type: 'response.content_part.added', ...at, part: { ...part, text: '' } });
    writer.text('response.reasoning_text', at, 'text', part['text']);
    writer.push({ type: 'response.content_part.done', ...at, part: structuredClone(part) });
  }
}

function writeFunctionCall(writer: StreamWriter, place: Place, item: Loose): void {
  const event = 'response.function_call_arguments';
  writer.deltas(event, place, String(item['arguments']));
  writer.push({ type: `${event}.done`, ...place, name: item['name'], arguments: item['arguments'] });
}

function writeMcpCall(writer: StreamWriter, place: Place, item: Loose): void {
  writer.push({ type: 'response.mcp_call.in_progress', ...place });
  writer.text('response.mcp_call_arguments', place, 'arguments', item['arguments']);
  writer.push({ type: item['error'] ? 'response.mcp_call.failed' : 'response.mcp_call.completed', ...place });
}

function emptyPatch(item: Loose): Loose {
  const operation = item['operation'] as Loose;
  return { operation: 'diff' in operation ? { ...operation, diff: '' } : operation };
}

function writePatch(writer: StreamWriter, place: Place, item: Loose): void {
  const { diff } = item['operation'] as { diff?: unknown };
  if (typeof diff === 'string') writer.text('response.apply_patch_call_operation_diff', place, 'diff', diff);
}

/** Pieces of so many characters, or words with the space before them; an empty text has none. */
function split(text: string, chunk: number | 'word' | undefined): readonly string[] {
  if (chunk === 'word') return text.match(/\s*\S+|\s+$/gu) ?? [];
  if (chunk === undefined || text.length <= chunk) return text === '' ? [] : [text];
  const pieces: string[] = [];
  for (let start = 0, end: number; start < text.length; start = end) {
    end = Math.min(start + chunk, text.length);
    // Half of a surrogate pair is no character.
    if (end < text.length && /[\uD800-\uDBFF]/u.test(text.charAt(end - 1))) end += 1;
    pieces.push(text.slice(start, end));
  }
  return pieces;
}
