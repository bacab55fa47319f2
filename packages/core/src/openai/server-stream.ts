import { getLogger } from '../base/logger.ts';
import { unref } from '../base/timers.ts';
import type { ResponseStreamEvent } from '../items/wire.ts';
import { abortError } from '../models/abort.ts';
import { truncated } from '../models/collect.ts';
import { failureOfEvent } from '../models/failure.ts';

export interface ServerStream extends AsyncIterable<ResponseStreamEvent> {
  /** The client's: ends the connection. */
  readonly controller?: AbortController;
}

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
  open: () => Promise<ServerStream>,
  observer: StreamObserver,
  signal: AbortSignal | undefined,
): AsyncGenerator<ResponseStreamEvent, void> {
  let iterator: AsyncIterator<ResponseStreamEvent> | undefined;
  let nextNumber = 0;
  try {
    const stream = await open();
    const source = (iterator = stream[Symbol.asyncIterator]());
    for (;;) {
      let event: ResponseStreamEvent;
      try {
        const step = await source.next();
        // The client ends an aborted stream in silence.
        if (signal?.aborted) throw abortError(signal);
        if (step.done === true) {
          iterator = undefined;
          throw truncated(nextNumber > 0);
        }
        event = step.value;
      } catch (error) {
        if (!isErrorEvent(error)) throw error;
        iterator = undefined;
        event = eventOf(error, nextNumber);
      }
      nextNumber = typeof event.sequence_number === 'number' ? event.sequence_number + 1 : nextNumber + 1;
      const failure = failureOfEvent(event);
      if (isTerminal(event)) observer.ended(event);
      if (failure !== undefined) observer.failed(failure);
      yield event;
      if (failure !== undefined) throw failure;
      if (event.type === 'response.completed') {
        iterator = undefined;
        drain(source, stream.controller);
        return;
      }
    }
  } catch (error) {
    throw signal?.aborted ? abortError(signal) : error;
  } finally {
    if (iterator !== undefined) close(iterator);
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

/** How long a connection is kept for a service that does not end its answer. */
const DRAIN_MS = 1000;

/** Lets the answer's body run to its end, so that its connection can be used again; nobody waits for it, and not for long. */
function drain(iterator: AsyncIterator<ResponseStreamEvent>, controller: AbortController | undefined): void {
  const timer = setTimeout(() => controller?.abort(), DRAIN_MS);
  unref(timer);
  iterator
    .next()
    .then((step) => {
      if (step.done !== true) close(iterator);
    }, logged)
    .finally(() => clearTimeout(timer));
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
