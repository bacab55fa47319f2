import { ModelTimeoutError, RunAbortedError } from '../base/errors.ts';
import { passOn } from '../base/pass-on.ts';

/** What a model call that was aborted rejects with; `cause` is the signal's reason. */
export function abortError(signal: AbortSignal): RunAbortedError {
  return new RunAbortedError('The model call was aborted.', { cause: signal.reason });
}

/** @throws RunAbortedError */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** Settles with `work`, or rejects as soon as `signal` fires; `onAbort` is then called once. What `work` does afterwards is nobody's concern. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined, onAbort?: () => void): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => {
      onAbort?.();
      reject(abortError(signal));
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    passOn(work, () => signal.removeEventListener('abort', abort), resolve, reject);
  });
}

/**
 * Of a failed call what its span tells: an aborted one did not fail, and one whose time was over failed of that, whatever
 * the model made of the abort.
 */
export function failureToTrace(
  signal: AbortSignal | undefined,
  error: unknown,
): { readonly error: unknown } | undefined {
  if (signal?.aborted !== true) return { error };
  const reason: unknown = signal.reason;
  return reason instanceof ModelTimeoutError ? { error: reason } : undefined;
}
