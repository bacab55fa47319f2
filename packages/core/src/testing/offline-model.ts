import { sha256Hex } from '../base/digest.ts';
import { checkOptions } from '../base/options.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { throwIfAborted } from '../models/abort.ts';
import type { Model, ModelRequest, ModelResponse, ResponseMetadata } from '../models/model.ts';
import { synthesizeStream } from '../models/synthesize.ts';
import { inGenerationSpan, streamInGenerationSpan } from './generation-span.ts';
import { plan } from './offline/plan.ts';
import { nextTask } from './wait.ts';

/** The notice is for people, once is enough for them. */
let noticed = false;

/**
 * Picks tools by the words of the request and answers from their results: the SDK without a model, for first runs and
 * demos. Calls real tools; the same request gives the same answer. Nothing chooses it but the program that names it.
 * @example
 * ```ts
 * const agent = new Agent({ name: 'Desk', tools: [lookupOrder], model: new OfflineModel() });
 * ```
 */
export class OfflineModel implements Model {
  readonly #notice: boolean;
  #responses = 0;

  constructor(options: { /** One line on stderr that says so. Default `true`. */ notice?: boolean } = {}) {
    checkOptions(options, ['notice'], 'OfflineModel');
    this.#notice = options.notice ?? true;
  }

  getResponse(request: ModelRequest): Promise<ModelResponse> {
    return inGenerationSpan('offline', request, async () => this.#answer(request));
  }

  streamResponse(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void> {
    return streamInGenerationSpan('offline', request, this.#stream(request));
  }

  async *#stream(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata> {
    const response = this.#answer(request);
    for (const event of synthesizeStream(response, { chunk: 'word', response: { model: 'offline' } })) {
      await nextTask();
      throwIfAborted(request.signal);
      yield event;
    }
    throwIfAborted(request.signal);
    return { usage: response.usage };
  }

  #answer(request: ModelRequest): ModelResponse {
    throwIfAborted(request.signal);
    if (this.#notice) tellOnce();
    const output = offlineOutput(request);
    return { output, usage: estimate(request, output), responseId: `resp_offline_${++this.#responses}` };
  }
}

function offlineOutput(request: ModelRequest): ResponseOutputItem[] {
  const { modelSettings, input } = request;
  const next = plan({
    items: input,
    tools: request.tools
      .filter((tool) => tool.allowedCallers.includes('direct'))
      .map((tool) => ({ name: tool.name, description: tool.description, parameters: tool.paramsJsonSchema })),
    handoffs: request.handoffs.map((handoff) => ({
      name: handoff.toolName,
      description: handoff.toolDescription,
      parameters: handoff.inputJsonSchema,
    })),
    toolChoice: modelSettings.toolChoice ?? undefined,
    parallel: modelSettings.parallelToolCalls !== false,
    outputSchema: request.outputSchema?.schema,
  });
  // Ids from the place in the conversation: the same in every process, and no two in one session.
  const id = (text: string): string => `offline_${sha256Hex(`${input.length}:${text}`).slice(0, 16)}`;
  if (next.type === 'text') {
    const message = {
      id: `msg_${id(next.text)}`,
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: next.text, annotations: [], logprobs: [] }],
      provider_data: { model: 'offline', usage_estimated: true },
    };
    return [message as unknown as ResponseOutputItem];
  }
  return next.calls.map(({ name, args }) => {
    const text = JSON.stringify(args);
    return { type: 'function_call', call_id: `call_${id(name + text)}`, name, arguments: text, status: 'completed' };
  });
}

/** About four characters a token. */
function estimate(request: ModelRequest, output: readonly ResponseOutputItem[]): ModelResponse['usage'] {
  const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);
  const inputTokens = tokens([
    request.systemInstructions ?? '',
    request.input,
    request.tools.map((tool) => [tool.name, tool.description, tool.paramsJsonSchema]),
    request.handoffs.map((handoff) => [handoff.toolName, handoff.toolDescription, handoff.inputJsonSchema]),
  ]);
  const outputTokens = tokens(output);
  return toUsage({ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens });
}

function tellOnce(): void {
  if (noticed) return;
  noticed = true;
  globalThis.console.error(
    'OfflineModel: no model is asked, tools are picked by the words of the request. For a real one set OPENAI_API_KEY and give the agent a model name.',
  );
}
