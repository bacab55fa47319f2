import type { PlannedFunctionCall } from './plan.ts';
import { RunAbortedError } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';

/** How long a failing batch waits for siblings that were told to stop, and for those that only have to commit (RUN-512). */
const GRACE_MS = { running: 250, committing: 100 } as const;

interface Task {
  readonly call: PlannedFunctionCall;
  readonly done: Promise<void>;
  settled: boolean;
}

interface Failure {
  readonly error: unknown;
  /** Place of the call; undefined of what did not come from one. */
  readonly index: number | undefined;
  /** It came when its siblings had been told to stop. */
  readonly late: boolean;
  /** The body of its call was over. */
  readonly committing: boolean;
}

/**
 * The calls of one pass, started in call order and running side by side. The first failure stops the rest: calls that
 * have not started never do, running ones get their signal, and all are awaited for a moment. What settles later is ignored.
 */
export class Batch {
  readonly #tasks: Task[] = [];
  readonly #failures: Failure[] = [];
  readonly #controllers = new Map<PlannedFunctionCall, AbortController>();
  readonly #committing = new Set<PlannedFunctionCall>();
  #reason: unknown;
  #closed = false;
  #onFailure: (() => void) | undefined;

  /** Nothing may start any more. */
  get stopping(): boolean {
    return this.#failures.length > 0;
  }

  /** The batch has ended without this call: nothing of it may be committed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** A failure elsewhere told this call to stop, and it has not ended since. */
  cancelled(call: PlannedFunctionCall): boolean {
    return this.stopping && !this.#committing.has(call);
  }

  start(call: PlannedFunctionCall, work: () => Promise<void>): void {
    const index = this.#tasks.length;
    const task: Task = {
      call,
      settled: false,
      done: work().then(
        () => {
          task.settled = true;
        },
        (error: unknown) => {
          task.settled = true;
          if (this.#closed) getLogger().debug('A tool call failed after its turn had ended.');
          else this.#add({ error, index, committing: this.#committing.has(call) });
        },
      ),
    };
    this.#tasks.push(task);
  }

  /** Signal of one call, made when the tool asks for it. */
  signal(call: PlannedFunctionCall): AbortSignal {
    let controller = this.#controllers.get(call);
    if (!controller) {
      controller = new AbortController();
      if (this.stopping) controller.abort(this.#reason);
      this.#controllers.set(call, controller);
    }
    return controller.signal;
  }

  /** Aborts one call alone, which goes on by itself: its time is over. */
  abort(call: PlannedFunctionCall, reason: unknown): void {
    this.signal(call);
    this.#controllers.get(call)?.abort(reason);
  }

  /** The body is over; what is left is to commit. It is not signalled any more. */
  committing(call: PlannedFunctionCall): void {
    this.#committing.add(call);
  }

  /** Something else ends the batch. */
  fail(error: unknown): void {
    this.#add({ error, index: undefined, committing: false });
  }

  #add(failure: Omit<Failure, 'late'>): void {
    const late = this.stopping;
    this.#failures.push({ ...failure, late });
    if (late) return;
    const { error } = failure;
    this.#reason = error;
    for (const [call, controller] of this.#controllers) if (!this.#committing.has(call)) controller.abort(error);
    this.#onFailure?.();
  }

  /** Resolves when all calls ended well; rejects with the failure that counts, after the bounded wait. */
  async settled(): Promise<void> {
    const all = Promise.all(this.#tasks.map((task) => task.done));
    await Promise.race([
      all,
      new Promise<void>((resolve) => {
        this.#onFailure = resolve;
        if (this.stopping) resolve();
      }),
    ]);
    if (!this.stopping) return;
    await this.#drain(all);
    this.#closed = true;
    throw this.#worst();
  }

  async #drain(all: Promise<unknown>): Promise<void> {
    const open = this.#tasks.filter((task) => !task.settled);
    if (open.length === 0) return;
    const ms = open.every((task) => this.#committing.has(task.call)) ? GRACE_MS.committing : GRACE_MS.running;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([
      all,
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      }),
    ]);
    clearTimeout(timer);
  }

  /**
   * By severity (the user's abort, then failures, then aborts of siblings); then what made the batch stop before what
   * siblings threw because they were told to, unless one that had only to commit failed at it; then by call order.
   */
  #worst(): unknown {
    const order = (failure: Failure): readonly number[] => [
      severity(failure.error),
      (failure.late ? 1 : 0) + (failure.committing ? 0 : 2),
      failure.index ?? Number.MAX_SAFE_INTEGER,
    ];
    return this.#failures.toSorted((a, b) => compare(order(a), order(b)))[0]?.error;
  }
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

function severity(error: unknown): number {
  if (error instanceof RunAbortedError) return 0;
  return (error as { name?: unknown } | null | undefined)?.name === 'AbortError' ? 2 : 1;
}

/** At most `limit` at once; free places are filled in the order of asking. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number | null | undefined) {
    this.#free = limit ?? Number.POSITIVE_INFINITY;
  }

  take(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
