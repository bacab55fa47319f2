import { ModelBehaviorError } from '../base/errors.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import type { ModelResponse, Usage } from './model.ts';

export interface SynthesizeOptions {
  /** Text, arguments and reasoning in pieces of so many characters, or word by word. Default: one piece. */
  readonly chunk?: number | 'word' | undefined;
  /** Further members of the response object. */
  readonly response?: Readonly<Record<string, unknown>> | undefined;
}
type Loose = Record<string, unknown>;
type Draft = { type: string } & Loose;

/**
 * The stream that an API would have sent for a response: created and in progress, then each item added empty, its
 * deltas and dones, then completed. No event shares an object with another, or with the response.
 * @throws ModelBehaviorError for items whose stream is not known
 */
export function* synthesizeStream(
  response: Omit<ModelResponse, 'requestId' | 'rawUsage'>,
  options: SynthesizeOptions = {},
): Generator<ResponseStreamEvent, void> {
  let sequence = 0;
  const event = (draft: Draft): ResponseStreamEvent =>
    ({ ...draft, sequence_number: sequence++ }) as unknown as ResponseStreamEvent;
  const shell = responseObject(response, options.response);
  yield event({ type: 'response.created', response: structuredClone(shell) });
  yield event({ type: 'response.in_progress', response: structuredClone(shell) });
  for (const [index, item] of response.output.entries()) {
    for (const draft of itemEvents(item as unknown as Loose, options.chunk)) {
      yield event({ ...draft, output_index: index });
    }
  }
  yield event({
    type: 'response.completed',
    response: structuredClone({
      ...shell,
      status: 'completed',
      output: response.output,
      usage: usageToWire(response.usage),
    }),
  });
}

/** A wire response in progress. */
export function responseObject(response: Pick<ModelResponse, 'responseId'>, members?: Readonly<Loose>): Loose {
  return {
    id: response.responseId ?? '',
    object: 'response',
    created_at: 0,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: 'synthetic',
    output: [],
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    usage: null,
    ...members,
  };
}

/** `usage` of a wire response. */
export function usageToWire(usage: Usage): Loose {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.inputTokensDetails.cachedTokens,
      cache_write_tokens: usage.inputTokensDetails.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.outputTokensDetails.reasoningTokens },
    total_tokens: usage.totalTokens,
  };
}

type Pieces = (text: string) => Iterable<string>;

function* itemEvents(item: Loose, chunk: number | 'word' | undefined): Generator<Draft> {
  const kind = kinds[String(item['type'])];
  if (kind === undefined) {
    throw new ModelBehaviorError(
      `No stream can be made for output items of type "${String(item['type'])}": give the exact events.`,
    );
  }
  const pieces: Pieces = (text) => split(text, chunk);
  yield {
    type: 'response.output_item.added',
    item: structuredClone({ ...item, ...kind.empty(item), ...(kind.noStatus ? undefined : { status: 'in_progress' }) }),
  };
  for (const draft of kind.inner(item, pieces)) yield { ...draft, item_id: item['id'] ?? item['call_id'] };
  yield { type: 'response.output_item.done', item: structuredClone(item) };
}

/** How an item looks before its content, and what is sent while the content arrives. */
interface Kind {
  readonly noStatus?: boolean;
  empty(item: Loose): Loose;
  inner(item: Loose, pieces: Pieces): Iterable<Draft>;
}

const announcedOnly: Kind = { empty: () => ({}), inner: () => [] };
const kinds: Readonly<Record<string, Kind>> = {
  message: { empty: () => ({ content: [] }), inner: messageParts },
  reasoning: {
    empty: (item) => ({ summary: [], ...(item['content'] === undefined ? undefined : { content: [] }) }),
    inner: reasoningParts,
  },
  function_call: {
    empty: () => ({ arguments: '' }),
    inner: (item, pieces) =>
      textMember('response.function_call_arguments', 'arguments', String(item['arguments']), pieces, {
        name: item['name'],
      }),
  },
  custom_tool_call: {
    noStatus: true,
    empty: () => ({ input: '' }),
    inner: (item, pieces) => textMember('response.custom_tool_call_input', 'input', String(item['input']), pieces),
  },
  apply_patch_call: { empty: emptyPatch, inner: patchDiff },
  mcp_call: { empty: () => ({ arguments: '', output: null }), inner: mcpCall },
  mcp_list_tools: {
    noStatus: true,
    empty: () => ({ tools: [] }),
    inner: () => [{ type: 'response.mcp_list_tools.in_progress' }, { type: 'response.mcp_list_tools.completed' }],
  },
  mcp_approval_request: { ...announcedOnly, noStatus: true },
  web_search_call: announcedOnly,
  file_search_call: announcedOnly,
  code_interpreter_call: announcedOnly,
  image_generation_call: announcedOnly,
};

function* messageParts(item: Loose, pieces: Pieces): Generator<Draft> {
  for (const [index, part] of (item['content'] as Loose[]).entries()) {
    const at = { content_index: index };
    const isText = part['type'] === 'output_text';
    yield {
      type: 'response.content_part.added',
      ...at,
      part: isText
        ? { type: 'output_text', text: '', annotations: [], logprobs: [] }
        : { type: 'refusal', refusal: '' },
    };
    if (isText) yield* textPart(part, at, pieces);
    else yield* textMember('response.refusal', 'refusal', String(part['refusal']), pieces, at);
    yield { type: 'response.content_part.done', ...at, part: structuredClone(part) };
  }
}

function* textPart(part: Loose, at: { content_index: number }, pieces: Pieces): Generator<Draft> {
  const text = String(part['text']);
  const logprobs = (part['logprobs'] as Loose[] | undefined) ?? [];
  let first = true;
  for (const delta of pieces(text)) {
    // Which token a piece holds is unknown here, so all of them come with the first.
    yield { type: 'response.output_text.delta', ...at, delta, logprobs: first ? structuredClone(logprobs) : [] };
    first = false;
  }
  for (const [index, annotation] of ((part['annotations'] as Loose[] | undefined) ?? []).entries()) {
    yield {
      type: 'response.output_text.annotation.added',
      ...at,
      annotation_index: index,
      annotation: structuredClone(annotation),
    };
  }
  yield { type: 'response.output_text.done', ...at, text, logprobs: structuredClone(logprobs) };
}

function* reasoningParts(item: Loose, pieces: Pieces): Generator<Draft> {
  for (const [index, part] of (item['summary'] as Loose[]).entries()) {
    const at = { summary_index: index };
    yield { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } };
    yield* textMember('response.reasoning_summary_text', 'text', String(part['text']), pieces, at);
    yield { type: 'response.reasoning_summary_part.done', ...at, part: structuredClone(part) };
  }
  for (const [index, part] of ((item['content'] as Loose[] | undefined) ?? []).entries()) {
    const at = { content_index: index };
    yield { type: 'response.content_part.added', ...at, part: { ...part, text: '' } };
    yield* textMember('response.reasoning_text', 'text', String(part['text']), pieces, at);
    yield { type: 'response.content_part.done', ...at, part: structuredClone(part) };
  }
}

function* textMember(event: string, member: string, text: string, pieces: Pieces, at: Loose = {}): Generator<Draft> {
  const { name, ...place } = at;
  for (const delta of pieces(text)) yield { type: `${event}.delta`, ...place, delta };
  yield { type: `${event}.done`, ...place, [member]: text, ...(name === undefined ? undefined : { name }) };
}

function* mcpCall(item: Loose, pieces: Pieces): Generator<Draft> {
  yield { type: 'response.mcp_call.in_progress' };
  yield* textMember('response.mcp_call_arguments', 'arguments', String(item['arguments']), pieces);
  yield { type: item['error'] ? 'response.mcp_call.failed' : 'response.mcp_call.completed' };
}

function emptyPatch(item: Loose): Loose {
  const operation = item['operation'] as Loose;
  return { operation: 'diff' in operation ? { ...operation, diff: '' } : operation };
}

function* patchDiff(item: Loose, pieces: Pieces): Generator<Draft> {
  const diff = (item['operation'] as Loose)['diff'];
  if (typeof diff === 'string') yield* textMember('response.apply_patch_call_operation_diff', 'diff', diff, pieces);
}

function* split(text: string, chunk: number | 'word' | undefined): Generator<string> {
  if (chunk === 'word') {
    for (const [word] of text.matchAll(/\s*\S+\s*$|\s*\S+|\s+$/gu)) yield word;
  } else if (chunk === undefined || text.length <= chunk) {
    if (text !== '') yield text;
  } else {
    for (let start = 0, end: number; start < text.length; start = end) {
      end = Math.min(start + chunk, text.length);
      // Half of a surrogate pair is no character.
      if (end < text.length && /[\uD800-\uDBFF]/u.test(text.charAt(end - 1))) end += 1;
      yield text.slice(start, end);
    }
  }
}
