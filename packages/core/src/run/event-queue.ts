import { UserError } from '../base/errors.ts';
import type { RunStreamEvent } from './events.ts';

/** How a stream ends for its reader: quietly, or by throwing the run's error after what is still queued. */
type End = { readonly error: unknown } | 'done';

/**
 * Events between a run and its reader. Unbounded, since a run goes on without a reader; each event is read once; one
 * reader at a time. Costs no timer, promise or copy for an event that nobody waits for.
 */
export class EventQueue {
  #events: (RunStreamEvent | undefined)[] = [];
  #head = 0;
  #end: End | undefined;
  /** The reader's `next` that waits for an event. */
  #waiting: ((result: IteratorResult<RunStreamEvent>) => void) | undefined;
  #fail: ((error: unknown) => void) | undefined;
  #attached: object | undefined;
  /** The run that waits at a turn boundary until the reader has taken everything. */
  #drained: (() => void) | undefined;
  /** The model's stream that waits until the reader has taken enough. */
  #full: { readonly limit: number; readonly resolve: () => void } | undefined;

  push(event: RunStreamEvent): void {
    if (this.#end !== undefined) return;
    const waiting = this.#waiting;
    if (waiting) {
      this.#waiting = this.#fail = undefined;
      waiting({ done: false, value: event });
    } else this.#events.push(event);
  }

  /** No more events. `keep: false` drops those that nobody has read. */
  end(end: End, options?: { readonly keep?: boolean }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    if (options?.keep === false) {
      this.#events = [];
      this.#head = 0;
    }
    this.#release();
    const waiting = this.#waiting;
    const fail = this.#fail;
    this.#waiting = this.#fail = undefined;
    if (!waiting || !fail) return;
    // This reader was told: one who comes now is not the second of two.
    this.#attached = undefined;
    if (end === 'done') waiting({ done: true, value: undefined });
    else {
      this.#end = 'done';
      fail(end.error);
    }
  }

  /** Resolves when the reader asks for an event that is not there yet, has let go, or was never there. */
  boundary(): Promise<void> | undefined {
    if (!this.#attached || this.#waiting || this.#end !== undefined) return undefined;
    return new Promise((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Resolves when no more than `limit` events wait, or their reader has let go; `undefined`: that is so. */
  room(limit: number): Promise<void> | undefined {
    if (!this.#attached || this.#end !== undefined || this.#events.length - this.#head <= limit) return undefined;
    return new Promise((resolve) => {
      this.#full = { limit, resolve };
    });
  }

  #release(): void {
    this.#full?.resolve();
    this.#full = undefined;
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** A view of what is to come. Reading through a second one while the first is in use is a `UserError`. */
  reader(): AsyncIterableIterator<RunStreamEvent> {
    const self = {};
    let closed = false;
    const close = (): Promise<IteratorResult<RunStreamEvent>> => {
      closed = true;
      if (this.#attached === self) {
        this.#attached = undefined;
        const waiting = this.#waiting;
        this.#waiting = this.#fail = undefined;
        waiting?.({ done: true, value: undefined });
        this.#release();
      }
      return Promise.resolve({ done: true, value: undefined });
    };
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => {
        if (closed) return Promise.resolve({ done: true, value: undefined });
        if (this.#attached !== undefined && this.#attached !== self)
          return Promise.reject(
            new UserError(
              'The stream is being read already: one reader at a time. Leave the first loop before you start another.',
            ),
          );
        if (this.#waiting)
          return Promise.reject(
            new UserError('The stream is being read already: await each `next()` before the next one.'),
          );
        this.#attached = self;
        return this.#next(close);
      },
      return: close,
    };
  }

  #next(close: () => unknown): Promise<IteratorResult<RunStreamEvent>> {
    const event = this.#events[this.#head];
    if (event !== undefined) {
      // A reader that is never quite done must not keep what it has read.
      this.#events[this.#head] = undefined;
      this.#head += 1;
      if (this.#head === this.#events.length) {
        this.#events = [];
        this.#head = 0;
      }
      if (this.#full && this.#events.length - this.#head <= this.#full.limit) {
        this.#full.resolve();
        this.#full = undefined;
      }
      return Promise.resolve({ done: false, value: event });
    }
    const end = this.#end;
    if (end !== undefined) {
      close();
      if (end === 'done') return Promise.resolve({ done: true, value: undefined });
      this.#end = 'done';
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the run threw, unchanged
      return Promise.reject(end.error);
    }
    return new Promise((resolve, reject) => {
      this.#waiting = resolve;
      this.#fail = reject;
      this.#release();
    });
  }
}
