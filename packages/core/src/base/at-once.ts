import { UserError } from './errors.ts';

/** Whether a value is a promise, or acts like one. Never throws. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === 'function';
  } catch {
    // A proxy or a getter that refuses: nothing that can be waited for.
    return false;
  }
}

/**
 * For callbacks that have to answer at once: whether one gave a promise instead, as async functions do. What becomes of
 * the promise is then nobody's concern, so its failure must not end the process.
 */
export function answersLater(value: unknown): value is PromiseLike<unknown> {
  if (!isThenable(value)) return false;
  try {
    value.then(undefined, () => {});
  } catch {
    // Thenables of other makers may do what they like.
  }
  return true;
}

/** @throws UserError naming the callback when its answer is a promise */
export function atOnce<T>(value: T, name: string): T {
  if (answersLater(value))
    throw new UserError(`${name} must answer at once: it returned a promise, which nobody waits for here.`);
  return value;
}
