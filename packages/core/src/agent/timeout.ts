import type { MaybePromise, ToolOptions } from './tool.ts';
import type { RunContext } from '../state/context.ts';
import { ToolTimeoutError } from '../base/errors.ts';
import type { Check } from '../base/options.ts';
import { passOn } from '../base/pass-on.ts';

/** How long one call of a tool may take, and what becomes of one that took longer. */
export interface ToolTimeout {
  readonly ms: number;
  readonly behavior: 'error_as_result' | 'raise_exception';
  readonly errorFunction: ((ctx: RunContext<never>, error: ToolTimeoutError) => MaybePromise<string>) | undefined;
}

/** The longest time that a timer takes; longer ones would fire at once. */
const longestMs = 2 ** 31 - 1;

export const checkTimeoutMs: Check = (value) =>
  typeof value === 'number' && value > 0 && value <= longestMs
    ? undefined
    : `a number of milliseconds above 0 and at most ${longestMs}`;

export const timeoutBehaviors = ['error_as_result', 'raise_exception'] as const;

export function readTimeout({
  timeoutMs,
  timeoutBehavior = 'error_as_result',
  timeoutErrorFunction,
}: Pick<ToolOptions<undefined, never, unknown>, 'timeoutMs' | 'timeoutBehavior' | 'timeoutErrorFunction'>):
  | ToolTimeout
  | undefined {
  return timeoutMs === undefined
    ? undefined
    : { ms: timeoutMs, behavior: timeoutBehavior, errorFunction: timeoutErrorFunction };
}

export function timeoutError(toolName: string, { ms }: ToolTimeout): ToolTimeoutError {
  return new ToolTimeoutError(`Tool '${toolName}' timed out after ${ms / 1000} seconds.`, { toolName, timeoutMs: ms });
}

/** In place of what takes too long. */
export const tooLate: unique symbol = Symbol('too late');

/**
 * What `start` gives, unless it takes longer than `ms`; what comes of it later is then ignored. Once `signal` aborts
 * there is no limit any more: whoever aborted decides how long to wait.
 */
export function inTime<T>(ms: number, signal: AbortSignal, start: () => MaybePromise<T>): Promise<T | typeof tooLate> {
  const run = async (): Promise<T> => await start();
  if (signal.aborted) return run();
  return new Promise((resolve, reject) => {
    // One more tick: what settles in the same one as the deadline counts.
    let timer = setTimeout(() => {
      timer = setTimeout(() => {
        settle();
        resolve(tooLate);
      }, 0);
    }, ms);
    const stop = (): void => clearTimeout(timer);
    signal.addEventListener('abort', stop, { once: true });
    const settle = (): void => {
      stop();
      signal.removeEventListener('abort', stop);
    };
    passOn(run(), settle, resolve, reject);
  });
}
