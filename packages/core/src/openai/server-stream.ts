import { getLogger } from '../base/logger.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { abortError } from '../models/abort.ts';
import { truncated } from '../models/collect.ts';
import { failureOfEvent } from '../models/failure.ts';

export type ServerStream = AsyncIterable<ResponseStreamEvent>;

/** Hears of the end before the consumer does, who may stop there. */
export interface StreamObserver {
  ended(event: TerminalEvent): void;
  failed(error: unknown): void;
}
export type TerminalEvent = Extract<
  ResponseStreamEvent,
  { type: 'response.completed' | 'response.failed' | 'response.incomplete' }
>;

/**
 * The events of a server's stream, in order and unchanged, up to the terminal one; its failure is thrown after it. What
 * the client throws for an `error` event becomes that event again. The stream is closed once, without waiting.
 */
export async function* readServerStream(
  stream: ServerStream,
  observer: StreamObserver,
  signal: AbortSignal | undefined,
): AsyncGenerator<ResponseStreamEvent, void> {
  const iterator = stream[Symbol.asyncIterator]();
  let nextNumber = 0;
  let open = true;
  try {
    for (;;) {
      const event = await nextEvent(iterator, nextNumber, () => (open = false));
      // The client ends an aborted stream in silence.
      if (signal?.aborted) throw abortError(signal);
      if (event === undefined) throw truncated(nextNumber > 0);
      nextNumber = typeof event.sequence_number === 'number' ? event.sequence_number + 1 : nextNumber + 1;
      const failure = failureOfEvent(event);
      if (isTerminal(event)) observer.ended(event);
      if (failure !== undefined) observer.failed(failure);
      yield event;
      if (failure !== undefined) throw failure;
      if (event.type === 'response.completed') {
        open = false;
        drain(iterator);
        return;
      }
    }
  } catch (error) {
    throw signal?.aborted ? abortError(signal) : error;
  } finally {
    if (open) close(iterator);
  }
}

/** `undefined` at the end of the stream. `ended` is called when the iterator needs no closing any more. */
async function nextEvent(
  iterator: AsyncIterator<ResponseStreamEvent>,
  number: number,
  ended: () => void,
): Promise<ResponseStreamEvent | undefined> {
  try {
    const step = await iterator.next();
    if (step.done !== true) return step.value;
    ended();
    return undefined;
  } catch (error) {
    ended();
    if (isErrorEvent(error)) return eventOf(error, number);
    throw error;
  }
}

function isTerminal(event: ResponseStreamEvent): event is TerminalEvent {
  return (
    event.type === 'response.completed' || event.type === 'response.failed' || event.type === 'response.incomplete'
  );
}

/** What the client throws for an event: an `APIError` with the event's object and no status. By shape, since the client may be of another copy of `openai`. */
interface ErrorEventError extends Error {
  readonly error: Readonly<Record<string, unknown>>;
}

function isErrorEvent(error: unknown): error is ErrorEventError {
  if (!(error instanceof Error) || !('requestID' in error) || !('error' in error)) return false;
  return (
    (error as { status?: unknown }).status === undefined && typeof error.error === 'object' && error.error !== null
  );
}

/** Both wire shapes, flat and nested, arrive as the same object. */
function eventOf(failure: ErrorEventError, sequence: number): ResponseStreamEvent {
  const { code, message, param } = failure.error;
  return {
    type: 'error',
    code: textOrNull(code),
    message: textOrNull(message) ?? failure.message,
    param: textOrNull(param),
    sequence_number: sequence,
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Lets the answer's body run to its end, so that its connection can be used again; nobody waits for it. */
function drain(iterator: AsyncIterator<ResponseStreamEvent>): void {
  iterator.next().then((step) => {
    if (step.done !== true) close(iterator);
  }, logged);
}

function close(iterator: AsyncIterator<ResponseStreamEvent>): void {
  try {
    iterator.return?.().then(undefined, logged);
  } catch {
    logged();
  }
}

function logged(): void {
  getLogger('models').debug('Closing the stream of a finished model call failed.');
}
