import type { MaybePromise } from '../agent/tool.ts';
import { isThenable } from '../base/at-once.ts';
import { RunAbortedError } from '../base/errors.ts';
import { passOn } from '../base/pass-on.ts';

export type CancelMode = 'immediate' | 'after_turn';

/**
 * How one segment is stopped from outside: by the caller's signal, or by `stream.cancel()`. One listener on the caller's
 * signal for the whole segment, removed at its end; work that can be cut short registers itself while it runs.
 */
export class Control {
  readonly #caller: AbortSignal | undefined;
  readonly #abortable: boolean;
  /** Of a segment that can be aborted. */
  readonly #cuts: Set<(error: RunAbortedError) => void> | undefined;
  #controller: AbortController | undefined;
  #error: RunAbortedError | undefined;
  #afterTurn = false;
  readonly #onCallerAbort = (): void => this.#abort(this.#caller?.reason);

  /** @param cancellable whether `cancel` may come, as from a stream */
  constructor(caller: AbortSignal | undefined, cancellable: boolean) {
    this.#caller = caller;
    this.#abortable = cancellable || caller !== undefined;
    this.#cuts = this.#abortable ? new Set() : undefined;
  }

  /** From here on the caller's signal counts. What a signal of another maker throws passes. */
  listen(): void {
    const caller = this.#caller;
    if (caller?.aborted) this.#abort(caller.reason);
    else caller?.addEventListener('abort', this.#onCallerAbort, { once: true });
  }

  /** For a model: absent when nothing can abort the run, so that a plain call costs nothing for it. */
  signalForModel(): AbortSignal | undefined {
    return this.#abortable ? this.signal : undefined;
  }

  /** Set once the segment was aborted or cancelled at once. */
  get error(): RunAbortedError | undefined {
    return this.#error;
  }

  /** The running turn is the last one. */
  get afterTurn(): boolean {
    return this.#afterTurn;
  }

  /** For models and other work that takes a signal; made when first asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#error) this.#controller.abort(this.#error);
    }
    return this.#controller.signal;
  }

  cancel(mode: CancelMode): void {
    if (mode === 'after_turn') this.#afterTurn = true;
    else this.#abort(undefined);
  }

  #abort(reason: unknown): void {
    if (this.#error) return;
    const error = new RunAbortedError('The run was aborted.', { cause: reason });
    this.#error = error;
    this.#controller?.abort(error);
    const cuts = [...(this.#cuts ?? [])];
    this.#cuts?.clear();
    for (const cut of cuts) cut(error);
  }

  throwIfAborted(): void {
    if (this.#error) throw this.#error;
  }

  /** Calls `cut` at once when the segment is aborted; returns what takes it back. */
  onAbort(cut: (error: RunAbortedError) => void): () => void {
    if (this.#error) cut(this.#error);
    else this.#cuts?.add(cut);
    return () => this.#cuts?.delete(cut);
  }

  /**
   * `work`, unless the segment is aborted first; what comes of it later is then ignored. A value that is there already
   * costs no promise.
   * @param graceMs how long an abort still waits for `work`. Default 0
   */
  race<T>(work: Promise<T>, graceMs?: number): Promise<T>;
  race<T>(work: MaybePromise<T>, graceMs?: number): MaybePromise<T>;
  race<T>(work: MaybePromise<T>, graceMs = 0): MaybePromise<T> {
    if (!this.#abortable || !isThenable(work)) return work;
    return new Promise<T>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const off = this.onAbort((error) => {
        if (graceMs === 0) reject(error);
        else timer = setTimeout(() => reject(error), graceMs);
      });
      const settle = (): void => {
        off();
        clearTimeout(timer);
      };
      passOn(work, settle, resolve, reject);
    });
  }

  dispose(): void {
    this.#cuts?.clear();
    try {
      this.#caller?.removeEventListener('abort', this.#onCallerAbort);
    } catch {
      // A signal of another maker; how the run ended stands.
    }
  }
}
