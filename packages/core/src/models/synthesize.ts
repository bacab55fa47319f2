import type { ResponseStreamEvent } from '../items/wire.ts';
import type { ModelResponse, Usage } from './model.ts';
import { StreamWriter, writeItem } from './synthesize-items.ts';

export interface SynthesizeOptions {
  /** Text, arguments and reasoning in pieces of so many characters, or word by word. Default: one piece. */
  readonly chunk?: number | 'word' | undefined;
  /** Further members of the response object. */
  readonly response?: Readonly<Record<string, unknown>> | undefined;
}
type Loose = Record<string, unknown>;

/**
 * The stream that an API would have sent for a response: created and in progress, then each item added empty, its
 * deltas and dones, then completed. No event shares an object with another, or with the response.
 * @throws ModelBehaviorError for items whose stream is not known
 */
export function synthesizeStream(
  response: Omit<ModelResponse, 'requestId' | 'rawUsage'>,
  options: SynthesizeOptions = {},
): ResponseStreamEvent[] {
  const writer = new StreamWriter(options.chunk);
  const shell = responseObject(response, options.response);
  writer.push({ type: 'response.created', response: structuredClone(shell) });
  writer.push({ type: 'response.in_progress', response: structuredClone(shell) });
  for (const [index, item] of response.output.entries()) writeItem(writer, index, item as unknown as Loose);
  const end = { ...shell, status: 'completed', output: response.output, usage: usageToWire(response.usage) };
  writer.push({ type: 'response.completed', response: structuredClone(end) });
  return writer.events as unknown as ResponseStreamEvent[];
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
