import { ModelStreamTruncatedError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { toUsage } from '../base/usage.ts';
import type { ResponseOutputItem, ResponseStreamEvent } from '../items/wire.ts';
import { throwIfAborted, untilAborted } from './abort.ts';
import type { Deadline } from './deadline.ts';
import { failureOfEvent } from './failure.ts';
import type { ModelResponse, ResponseMetadata } from './model.ts';

export type StreamListener = (event: ResponseStreamEvent) => void;
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
  const reader = new StreamReader(stream, onEvent, deadline);
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
      if (step.done === true) return this.#response(step.value ?? {});
      try {
        this.#take(step.value);
      } catch (error) {
        if (!this.#abandoned) await close(this.#stream);
        throw error;
      }
    }
  }

  /** Nobody waits for the answer any more: no event is passed on, the stream is closed in the background. */
  abandon(): void {
    if (this.#abandoned) return;
    this.#onEvent = undefined;
    this.#abandoned = true;
    void close(this.#stream);
  }

  #take(event: ResponseStreamEvent): void {
    this.#started = true;
    this.#onEvent?.(event);
    if (event.type === 'response.completed') this.#completed = event.response;
    else if (event.type === 'response.output_item.done') this.#items.push(event);
    else {
      const failure = failureOfEvent(event);
      if (failure !== undefined) throw failure;
    }
  }

  #response(metadata: ResponseMetadata): ModelResponse {
    const response = this.#completed;
    if (response === undefined) throw truncated(this.#started);
    return {
      output: response.output.length > 0 ? response.output : itemsInOrder(this.#items),
      usage: metadata.usage ?? toUsage(response.usage as Record<string, unknown> | null | undefined),
      ...(response.id ? { responseId: response.id } : undefined),
      ...(metadata.requestId === undefined ? undefined : { requestId: metadata.requestId }),
      ...(metadata.rawUsage === undefined ? undefined : { rawUsage: metadata.rawUsage }),
    };
  }
}

/** Some services leave the terminal output empty; what was completed on the way is the answer then. */
function itemsInOrder(items: readonly ItemDone[]): ResponseOutputItem[] {
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

/** Closing after the outcome is known changes nothing for the caller. */
async function close(stream: ModelStream): Promise<void> {
  try {
    await stream.return(undefined);
  } catch {
    getLogger('models').debug('Closing a model stream failed.');
  }
}
