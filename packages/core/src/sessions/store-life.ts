import { SessionClosedError } from './errors.ts';

const over = (): void => undefined;

/** The life of a store, which its sessions share, or of a session alone: whether it was closed, and what is under way. */
export class StoreLife {
  #closed = false;
  readonly #calls = new Set<Promise<void>>();

  get closed(): boolean {
    return this.#closed;
  }

  /** A call that `end` waits for. */
  track<R>(call: Promise<R>): Promise<R> {
    const ended: Promise<void> = call.then(over, over).then(() => void this.#calls.delete(ended));
    this.#calls.add(ended);
    return call;
  }

  /** From now on it is closed; resolves when what was called before has ended. */
  async end(): Promise<void> {
    this.#closed = true;
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  /** @throws SessionClosedError */
  checkOpen(): void {
    if (this.#closed) throw new SessionClosedError('The store of sessions was closed.');
  }
}
