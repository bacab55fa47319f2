import { SessionClosedError } from './errors.ts';

const over = (): void => undefined;

/** The life of a store, which its sessions share, or of a session alone: whether it was closed, and what is under way. */
export class StoreLife {
  readonly #calls = new Set<Promise<void>>();
  /** Of those who wait for somebody else, what tells them that it is closed. */
  readonly #waiting = new Set<() => void>();
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  /** A call that is whole: it goes on to its end, for which `end` waits. @throws SessionClosedError */
  async call<R>(work: () => Promise<R>): Promise<R> {
    this.checkOpen();
    return await this.track(work());
  }

  /** A call that `end` waits for. */
  track<R>(call: Promise<R>): Promise<R> {
    const ended: Promise<void> = call.then(over, over).then(() => void this.#calls.delete(ended));
    this.#calls.add(ended);
    return call;
  }

  /** Steps at the pace of whoever asks for them: each is a call. */
  async *steps<T>(given: AsyncIterable<T>): AsyncGenerator<T> {
    const iterator = given[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step = await this.call(() => iterator.next());
        if (step.done === true) return;
        yield step.value;
      }
    } finally {
      await iterator.return?.();
    }
  }

  /** What somebody else gives, at his pace: `end` does not wait for the next of it. @throws SessionClosedError at the end */
  async *whileOpen<T>(given: AsyncIterable<T>): AsyncGenerator<T> {
    const iterator = given[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step = await this.#unlessClosed(iterator.next());
        if (step.done === true) return;
        yield step.value;
      }
    } finally {
      // Nobody knows when one that is waited for would hear it.
      void Promise.resolve(iterator.return?.()).catch(over);
    }
  }

  async #unlessClosed<R>(answer: Promise<R>): Promise<R> {
    let stop = over;
    const closed = new Promise<never>((_, reject) => {
      stop = (): void => {
        reject(closedError());
      };
    });
    if (this.#closed) stop();
    this.#waiting.add(stop);
    try {
      return await Promise.race([answer, closed]);
    } finally {
      this.#waiting.delete(stop);
    }
  }

  /** From now on it is closed; resolves when what was called before has ended. */
  async end(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#waiting) stop();
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  /** @throws SessionClosedError */
  checkOpen(): void {
    if (this.#closed) throw closedError();
  }
}

function closedError(): SessionClosedError {
  return new SessionClosedError('The store of sessions was closed.');
}
