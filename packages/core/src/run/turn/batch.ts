import type { PlannedFunctionCall } from './plan.ts';
import { isTripwire, RunAbortedError, ToolCallError } from '../../base/errors.ts';
import { getLogger } from '../../base/logger.ts';

/** How long a failing batch waits for siblings that were told to stop, and for those that only have to commit (RUN-512). */
const GRACE_MS = { running: 250, committing: 100 } as const;

interface Task {
  readonly call: PlannedFunctionCall;
  /** Never rejects; `undefined` while its first part runs. */
  done: Promise<void> | undefined;
  settled: boolean;
  /** The body is over. */
  committing: boolean;
  failed: boolean;
  /** Of its signal, made when the tool asks for it. */
  controller: AbortController | undefined;
}

interface Failure {
  readonly error: unknown;
  /** `undefined`: it did not come from one. */
  readonly call: PlannedFunctionCall | undefined;
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
  /** By the calls' `index`. */
  readonly #tasks: Task[] = [];
  readonly #failures: Failure[] = [];
  #open = 0;
  #reason: unknown;
  #closed = false;
  /** Set by `settled`: no call is left, or one has failed. */
  #wake: (() => void) | undefined;

  /** Nothing may start any more. */
  get stopping(): boolean {
    return this.#failures.length > 0;
  }

  /** The batch has ended without this call: nothing of it may be committed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** A failure elsewhere told this call to stop. */
  cancelled(call: PlannedFunctionCall): boolean {
    return this.stopping && this.#failures[0]?.call !== call && !this.#task(call).committing;
  }

  start(call: PlannedFunctionCall, work: () => Promise<void>): void {
    const task: Task = {
      call,
      done: undefined,
      settled: false,
      committing: false,
      failed: false,
      controller: undefined,
    };
    this.#tasks[call.index] = task;
    this.#open += 1;
    task.done = work().then(
      () => this.#settle(task),
      (error: unknown) => {
        this.failed(call, error);
        this.#settle(task);
      },
    );
  }

  /** A call fails the batch; may be said before the call has ended, and again then. */
  failed(call: PlannedFunctionCall, error: unknown): void {
    const task = this.#task(call);
    if (task.failed) return;
    task.failed = true;
    if (this.#closed) getLogger().debug('A tool call failed after its turn had ended.');
    else this.#add({ error, call, committing: task.committing });
  }

  signal(call: PlannedFunctionCall): AbortSignal {
    return this.#controller(call).signal;
  }

  /** Aborts one call alone, which goes on by itself: its time is over. */
  abort(call: PlannedFunctionCall, reason: unknown): void {
    this.#controller(call).abort(reason);
  }

  /** The body is over; what is left is to commit. It is not signalled any more. */
  committing(call: PlannedFunctionCall): void {
    this.#task(call).committing = true;
  }

  /** Something else ends the batch. */
  fail(error: unknown): void {
    this.#add({ error, call: undefined, committing: false });
  }

  #add(failure: Omit<Failure, 'late'>): void {
    const late = this.stopping;
    this.#failures.push({ ...failure, late });
    if (late) return;
    const { error } = failure;
    this.#reason = error;
    for (const { controller, committing } of this.#tasks) if (!committing) controller?.abort(error);
    this.#wake?.();
  }

  /** Resolves when all calls ended well; rejects with the failure that counts, after the bounded wait. */
  async settled(): Promise<void> {
    if (this.#open > 0 && !this.stopping)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (!this.stopping) return;
    await this.#drain();
    this.#closed = true;
    throw this.#worst();
  }

  async #drain(): Promise<void> {
    const open = this.#tasks.filter((task) => !task.settled);
    const committing = open.filter((task) => task.committing);
    const running = open.filter((task) => !task.committing);
    await Promise.all([ended(running, GRACE_MS.running), ended(committing, GRACE_MS.committing)]);
  }

  #task(call: PlannedFunctionCall): Task {
    const task = this.#tasks[call.index];
    if (task === undefined) throw new Error('A call that was not started.');
    return task;
  }

  #controller(call: PlannedFunctionCall): AbortController {
    const task = this.#task(call);
    if (task.controller === undefined) {
      task.controller = new AbortController();
      if (this.cancelled(call)) task.controller.abort(this.#reason);
    }
    return task.controller;
  }

  #settle(task: Task): void {
    task.settled = true;
    this.#open -= 1;
    if (this.#open === 0) this.#wake?.();
  }

  /**
   * By severity (guardrails and the user's abort, then failures, then aborts of siblings); then what made the batch stop before what
   * siblings threw because they were told to, unless one that had only to commit failed at it; then by call order.
   */
  #worst(): unknown {
    const calls = this.#tasks.map((task) => task.call);
    const order = (failure: Failure): readonly number[] => [
      severity(failure),
      (failure.late ? 1 : 0) + (failure.committing ? 0 : 2),
      failure.call === undefined ? calls.length : calls.indexOf(failure.call),
    ];
    return this.#failures.toSorted((a, b) => compare(order(a), order(b)))[0]?.error;
  }
}

/** Waits for the tasks, but no longer than so. */
async function ended(tasks: readonly Task[], graceMs: number): Promise<void> {
  if (tasks.length === 0) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  await Promise.race([Promise.all(tasks.flatMap(({ done }) => done ?? [])), grace]);
  clearTimeout(timer);
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

function severity({ error, call }: Failure): number {
  if (isTripwire(error)) return 0;
  // Of a call it is the run inside: of an agent tool that was told to stop, like any other sibling.
  if (error instanceof RunAbortedError) return call === undefined ? 0 : 2;
  const thrown = error instanceof ToolCallError ? error.cause : error;
  return (thrown as { name?: unknown } | null | undefined)?.name === 'AbortError' ? 2 : 1;
}
