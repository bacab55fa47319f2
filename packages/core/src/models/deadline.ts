import { ModelTimeoutError } from '../base/errors.ts';
import { throwIfAborted } from './abort.ts';

/** How long an attempt that was stopped may take to clean up. */
const CLEANUP_MS = 1000;
/** The longest time that a timer takes; longer ones would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * The time limit of one attempt: `work` gets it, and gives what the attempt gives. When the time is over the attempt's
 * signal fires, its cleanup is awaited for a moment, and whatever comes of it is dropped; an abort of the run still wins.
 * @throws ModelTimeoutError, RunAbortedError
 */
export async function withinTime<T>(
  timeoutMs: number,
  run: AbortSignal | undefined,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(timeoutMs, run);
  let cleanup: ReturnType<typeof setTimeout> | undefined;
  try {
    const attempt = work(deadline);
    const settled = attempt.then(
      () => {},
      () => {},
    );
    await Promise.race([settled, deadline.over]);
    if (!deadline.isOver) return await attempt;
    await Promise.race([
      settled,
      new Promise<void>((resolve) => {
        cleanup = setTimeout(resolve, CLEANUP_MS);
      }),
    ]);
    throwIfAborted(run);
    throw deadline.error;
  } finally {
    clearTimeout(cleanup);
    deadline.stop();
  }
}

/** The clock of one attempt, which can stand still. It runs from its making on. */
export class Deadline {
  /** For the model: fires when the time is over, and with the run's. Its reason tells which. */
  readonly signal: AbortSignal;
  readonly error: ModelTimeoutError;
  /** Resolves when the time is over. */
  readonly over: Promise<void>;
  isOver = false;
  readonly #controller = new AbortController();
  #resolve: () => void = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;
  /** What is left when the running timer ends; of a clock that stands, when it goes on. */
  #left = 0;
  #standingSince: number | undefined;

  constructor(timeoutMs: number, run: AbortSignal | undefined) {
    this.error = new ModelTimeoutError(`The model call timed out after ${timeoutMs} ms.`, { timeoutMs });
    this.signal = run === undefined ? this.#controller.signal : AbortSignal.any([run, this.#controller.signal]);
    this.over = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#start(timeoutMs);
  }

  /** The model has answered for now: what others do with it costs it no time. Only notes when: streams do this per event. */
  pause(): void {
    this.#standingSince ??= performance.now();
  }

  /** The model is waited for again. */
  resume(): void {
    if (this.#standingSince === undefined) return;
    this.#count(performance.now());
    this.#standingSince = undefined;
    if (this.#timer === undefined && !this.#stopped) this.#start(this.#left);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #start(ms: number): void {
    const now = Math.min(ms, LONGEST_MS);
    this.#left = ms - now;
    this.#timer = setTimeout(() => this.#ring(), now);
  }

  /** The time since the clock stands was none of the model's. */
  #count(now: number): void {
    // Without a running timer nothing was taken from what is left.
    if (this.#timer !== undefined && this.#standingSince !== undefined) this.#left += now - this.#standingSince;
  }

  #ring(): void {
    if (this.#standingSince !== undefined) this.#count(performance.now());
    this.#timer = undefined;
    if (this.#standingSince !== undefined) return;
    if (this.#left >= 1) return this.#start(this.#left);
    this.#stopped = true;
    this.isOver = true;
    this.#resolve();
    this.#controller.abort(this.error);
  }
}
