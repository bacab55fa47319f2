import { RunAbortedError } from '../base/errors.ts';

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
    work.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject);
  });
}
