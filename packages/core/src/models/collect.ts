import { ModelStreamTruncatedError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { isObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { throwIfAborted, untilAborted } from './abort.ts';
import { checkedOutput, checkedResponse, unusable } from './answer.ts';
import type { Deadline } from './deadline.ts';
import { failureOfEvent } from './failure.ts';
import type { ModelResponse, ResponseMetadata } from './model.ts';

/** The next event waits for what it returns. */
export type StreamListener =
  | ((event: ResponseStreamEvent) => void)
  | ((event: ResponseStreamEvent) => Promise<void> | undefined);
type ModelStream = AsyncGenerator<ResponseStreamEvent, ResponseMetadata | void>;
type CompletedResponse = Extract<ResponseStreamEvent, { type: 'response.completed' }>['response'];
type ItemDone = Extract<ResponseStreamEvent, { type: 'response.output_item.done' }>;

export interface StreamLimits {
  /** Nothing is waited for any more once it fires. */
  readonly signal?: AbortSignal | undefined;
  /** Its clock runs while the model is waited for. When it is over the stream is only told to end. */
  readonly deadline?: Deadline | undefined;
}

/**
 * Reads a model's stream to its end and gives the response; `onEvent` sees every event first. The iterator is closed
 * once where it does not end by itself: at once after an event that fails the response, and without waiting on abort.
 * @throws ModelStreamTruncatedError when the stream ends without a terminal event
 * @throws ModelBehaviorError after `response.failed`, `response.incomplete` and `error` events
 */
export async function collectStream(
  stream: ModelStream,
  onEvent?: StreamListener,
  { signal, deadline }: StreamLimits = {},
): Promise<ModelResponse> {
  const reader = new StreamReader(checkedStream(stream), onEvent, deadline);
  if (signal?.aborted) reader.abandon();
  throwIfAborted(signal);
  deadline?.signal.addEventListener('abort', () => reader.abandon(), { once: true });
  return untilAborted(reader.read(), signal, () => reader.abandon());
}

class StreamReader {
  readonly #stream: ModelStream;
  readonly #deadline: Deadline | undefined;
  #onEvent: StreamListener | undefined;
  #completed: CompletedResponse | undefined;
  readonly #items: ItemDone[] = [];
  #started = false;
  #abandoned = false;

  constructor(stream: ModelStream, onEvent: StreamListener | undefined, deadline: Deadline | undefined) {
    this.#stream = stream;
    this.#onEvent = onEvent;
    this.#deadline = deadline;
  }

  async read(): Promise<ModelResponse> {
    for (;;) {
      this.#deadline?.resume();
      const step = await this.#stream.next();
      this.#deadline?.pause();
      if (!isObject(step)) throw unusable(`with ${kindOf(step)} as a step of its stream`);
      if (step.done === true) return this.#response(step.value ?? {});
      let room: Promise<void> | undefined;
      try {
        room = this.#take(step.value);
      } catch (error) {
        if (!this.#abandoned) await close(this.#stream);
        throw error;
      }
      if (room) await room;
    }
  }

  /** Nobody waits for the answer any more: no event is passed on, the stream is closed in the background. */
  abandon(): void {
    if (this.#abandoned) return;
    this.#onEvent = undefined;
    this.#abandoned = true;
    void closed(this.#stream);
  }

  #take(event: ResponseStreamEvent): Promise<void> | undefined {
    if (!isObject(event)) throw unusable(`with ${kindOf(event)} as an event of its stream`);
    this.#started = true;
    const room: unknown = this.#onEvent?.(event);
    const failure = failureOfEvent(event);
    if (failure !== undefined) throw failure;
    if (event.type === 'response.completed') this.#completed = event.response ?? {};
    else if (event.type === 'response.output_item.done') this.#items.push(event);
    return room instanceof Promise ? (room as Promise<void>) : undefined;
  }

  #response(metadata: ResponseMetadata): ModelResponse {
    const response = this.#completed;
    if (response === undefined) throw truncated(this.#started);
    return checkedResponse({
      output: checkedOutput(response.output, () => itemsInOrder(this.#items)),
      usage: metadata.usage ?? toUsage(response.usage as Record<string, unknown> | null | undefined),
      ...(response.id ? { responseId: response.id } : undefined),
      ...(metadata.requestId === undefined ? undefined : { requestId: metadata.requestId }),
      ...(metadata.rawUsage === undefined ? undefined : { rawUsage: metadata.rawUsage }),
    });
  }
}

/** A generator as it should be, or what comes close: any iterator or iterable of events. @throws ModelBehaviorError */
function checkedStream(stream: ModelStream): ModelStream {
  const given: unknown = stream;
  if (!isObject(given)) throw unusable(`with ${kindOf(given)} for a stream; streamResponse is an async generator`);
  if (typeof given['next'] === 'function') return stream;
  const iterate = (given as Partial<ModelStream>)[Symbol.asyncIterator];
  if (typeof iterate !== 'function')
    throw unusable('with an object without events for a stream; streamResponse is an async generator');
  return iterate.call(stream) as ModelStream;
}

/** Some services leave the terminal output empty; what was completed on the way is the answer then. */
export function itemsInOrder(items: readonly ItemDone[]): ResponseOutputItem[] {
  return items.toSorted((a, b) => (a.output_index ?? 0) - (b.output_index ?? 0)).map((event) => event.item);
}

/** A stream ended, and no event told how. */
export function truncated(responseStarted: boolean): ModelStreamTruncatedError {
  const when = responseStarted ? 'after its first events' : 'before any event';
  return new ModelStreamTruncatedError(
    `The model's stream ended without a terminal event (response.completed), ${when}: no final response was produced.`,
    { responseStarted },
  );
}

/** How long the end of a failed stream is waited for: its model may have something to write down. */
const CLOSE_GRACE_MS = 250;

/** Closing after the outcome is known changes nothing for the caller, who does not wait long for it. */
async function close(stream: ModelStream): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_GRACE_MS);
  });
  await Promise.race([closed(stream), over]);
  clearTimeout(timer);
}

/** Never rejects; where nobody waits for it, it leaves no timer. */
async function closed(stream: ModelStream): Promise<void> {
  try {
    await stream.return(undefined);
  } catch {
    getLogger('models').debug('Closing a model stream failed.');
  }
}
