import { toUsage } from '../base/usage.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { abortError, throwIfAborted } from '../models/abort.ts';
import { collectStream } from '../models/collect.ts';
import type { Model, ModelRequest, ModelResponse, ResponseMetadata, Usage } from '../models/model.ts';
import { plainCopy } from '../models/plain.ts';
import { synthesizeStream } from '../models/synthesize.ts';
import type { Clock } from '../tracing/types.ts';
import { checkOptions } from '../base/options.ts';
import { ModelScriptError } from './script-error.ts';
import { outputFor, prepareStep, ScriptIds } from './script.ts';
import type { ModelCall, ModelStep, PreparedAnswer, PreparedStep } from './script.ts';
import { inGenerationSpan, streamInGenerationSpan } from './generation-span.ts';
import { delay, nextTask } from './wait.ts';

export interface ScriptedModelOptions {
  /** For steps without their own. */
  usage?: Partial<Usage> | undefined;
  chunk?: number | 'word' | undefined;
  /** Makes generation spans. Default `false`. */
  trace?: boolean | undefined;
  /** For `created_at` of streamed responses. Default: always 0. */
  clock?: Clock | undefined;
}
type ScriptedStream = AsyncGenerator<ResponseStreamEvent, ResponseMetadata>;

/**
 * Answers calls from a list, one step per call. Ids that the builders draw are counted over the script, `msg_1`, `call_1`, …;
 * those that the input has already are passed over, so that several scripts can follow each other on one session. Disposing is `assertDone`; a call without a step left is
 * `unexpected_model_call`.
 * @example
 * ```ts
 * const model = new ScriptedModel([toolCall('refund', { id: '7' }), 'Done.']);
 * const result = await run(agent, 'Refund order 7', { model });
 * model.assertDone();
 * ```
 */
export class ScriptedModel implements Model, Disposable {
  readonly #calls: ModelCall[] = [];
  readonly #steps: PreparedStep[] = [];
  #taken = 0;
  #added = 0;
  #ids = new ScriptIds();
  readonly #options: ScriptedModelOptions;

  constructor(steps: Iterable<ModelStep> = [], options: ScriptedModelOptions = {}) {
    checkOptions(options, ['usage', 'chunk', 'trace', 'clock'], 'ScriptedModel');
    this.#options = { ...options };
    this.add(...steps);
  }

  /** Every call so far, also those that failed. */
  get calls(): readonly ModelCall[] {
    return this.#calls;
  }

  /** Steps that were not used yet. */
  get remaining(): number {
    return this.#steps.length - this.#taken;
  }

  /** @throws ModelScriptError `invalid_model_step`, and adds nothing */
  add(...steps: ModelStep[]): this {
    const ids = this.#ids.fork();
    const prepared = steps.map((step, index) => prepareStep(step, `Step ${this.#added + index + 1}`, ids));
    this.#ids = ids;
    this.#steps.push(...prepared);
    this.#added += prepared.length;
    return this;
  }

  /** @throws ModelScriptError `unconsumed_model_steps` */
  assertDone(): void {
    const { remaining } = this;
    if (remaining === 0) return;
    throw new ModelScriptError(
      `${remaining} of ${this.#added} steps of the scripted model ${remaining === 1 ? 'was' : 'were'} not used (${this.#calls.length} calls were made).`,
      { code: 'unconsumed_model_steps' },
    );
  }

  [Symbol.dispose](): void {
    this.assertDone();
  }

  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    if (this.#options.trace !== true) return this.#answer(request);
    return inGenerationSpan('scripted', request, () => this.#answer(request));
  }

  streamResponse(request: ModelRequest): AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void> {
    const stream = this.#stream(request);
    return this.#options.trace === true ? streamInGenerationSpan('scripted', request, stream) : stream;
  }

  async #answer(request: ModelRequest): Promise<ModelResponse> {
    const step = await this.#next(request, false);
    if (step.failure !== undefined) throw step.failure.error;
    const metadata = metadataOf(step, request);
    if (step.events !== undefined)
      return { ...(await collectStream(exactStream(step, request.signal), undefined, request)), ...metadata };
    return { ...this.#response(step, request), ...metadata };
  }

  async *#stream(request: ModelRequest): ScriptedStream {
    const { signal } = request;
    const step = await this.#next(request, true);
    const limit = step.failure === undefined ? Infinity : (step.failAfterEvents ?? 0);
    if (limit === 0) throw step.failure?.error;
    if (step.events !== undefined) {
      yield* exactStream(step, signal);
      return {
        ...metadataOf(step, request),
        ...(step.usage === undefined ? undefined : { usage: toUsage(step.usage) }),
      };
    }
    const response = this.#response(step, request);
    let count = 0;
    for (const event of synthesizeStream(response, this.#look(step))) {
      if (step.delayMs !== undefined) await nextTask();
      throwIfAborted(signal);
      yield event;
      if (++count >= limit) throw step.failure?.error;
    }
    throwIfAborted(signal);
    return { ...metadataOf(step, request), usage: response.usage };
  }

  /** Records the call, then finds out what its answer is. */
  async #next(request: ModelRequest, stream: boolean): Promise<PreparedAnswer> {
    throwIfAborted(request.signal);
    const call = this.#record(request, stream);
    let step = this.#steps[this.#taken];
    if (step === undefined) {
      throw new ModelScriptError(
        `The scripted model has no step for call ${call.index + 1}: it was given ${this.#added}. Add a step, or find out why the run called again.`,
        { code: 'unexpected_model_call', callIndex: call.index },
      );
    }
    this.#taken += 1;
    while (typeof step === 'function')
      step = prepareStep(await step(call), `What the step of call ${call.index + 1} returned`, this.#ids);
    if (step.delayMs !== undefined) await delay(step.delayMs, request.signal);
    throwIfAborted(request.signal);
    return step;
  }

  #record(request: ModelRequest, stream: boolean): ModelCall {
    const snapshot = {
      ...request,
      input: plainCopy(request.input, 'input'),
      modelSettings: plainCopy(request.modelSettings, 'modelSettings'),
      ...(request.prompt === undefined ? undefined : { prompt: plainCopy(request.prompt, 'prompt') }),
    };
    const call: ModelCall = { index: this.#calls.length, stream, request: snapshot };
    this.#calls.push(call);
    return call;
  }

  #response(step: PreparedAnswer, { input }: ModelRequest): ModelResponse {
    const responseId = step.responseId === null ? undefined : (step.responseId ?? this.#ids.next('resp'));
    return {
      output: outputFor(step, input, this.#ids),
      usage: toUsage(step.usage ?? this.#options.usage),
      ...(responseId === undefined ? undefined : { responseId }),
    };
  }

  #look(step: PreparedAnswer): Parameters<typeof synthesizeStream>[1] {
    const { clock } = this.#options;
    return {
      chunk: step.chunk ?? this.#options.chunk,
      response: { model: 'scripted', created_at: clock === undefined ? 0 : Math.floor(clock.now() / 1000) },
    };
  }
}

function metadataOf(step: PreparedAnswer, request: ModelRequest): Pick<ModelResponse, 'requestId' | 'rawUsage'> {
  return {
    ...(step.requestId === undefined ? undefined : { requestId: step.requestId }),
    ...(step.rawUsage !== undefined && request.modelSettings.preserveRawUsage === true
      ? { rawUsage: structuredClone(step.rawUsage) }
      : undefined),
  };
}

/** Exact events, as they are; the iterator is closed however the stream ends. */
async function* exactStream(
  step: PreparedAnswer,
  signal: AbortSignal | undefined,
): AsyncGenerator<ResponseStreamEvent, void> {
  const limit = step.failure === undefined ? Infinity : (step.failAfterEvents ?? 0);
  let count = 0;
  for await (const event of step.events ?? []) {
    if (step.delayMs !== undefined) await nextTask();
    if (signal?.aborted) throw abortError(signal);
    yield event;
    if (++count >= limit) throw step.failure?.error;
  }
  throwIfAborted(signal);
}
