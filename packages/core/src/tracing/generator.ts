import { runInScope } from './scope.ts';
import type { Span, Trace } from './types.ts';

type AnyGenerator = Generator | AsyncGenerator;
type Step = IteratorResult<unknown, unknown>;
type Done = (failure?: { error: unknown }) => void;

/** What a generator function returned, sync or async. */
export function isGenerator(value: unknown): value is AnyGenerator {
  if (typeof value !== 'object' || value === null) return false;
  const tag: unknown = (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  return tag === 'Generator' || tag === 'AsyncGenerator';
}

/**
 * The same generator, each of whose steps runs inside `at`; the consumer's code between the steps does not. `done` is
 * called when it ends, is left or throws (TRACE-A7).
 */
export function scopedGenerator(inner: AnyGenerator, at: Trace | Span, done: Done): AnyGenerator {
  let over = false;
  const end = (failure?: { error: unknown }): void => {
    if (over) return;
    over = true;
    done(failure);
  };
  const ended = <T extends Step>(step: T): T => {
    if (step.done === true) end();
    return step;
  };
  const failed = (error: unknown): never => {
    end({ error });
    throw error;
  };
  const step = (advance: () => Step | Promise<Step>): Step | Promise<Step> => {
    let result: Step | Promise<Step>;
    try {
      result = runInScope(at, advance);
    } catch (error) {
      return failed(error);
    }
    return 'then' in result ? result.then(ended, failed) : ended(result);
  };
  // The rest of a generator (iteration, disposal, iterator helpers) is built on these three.
  const outer = Object.create(Object.getPrototypeOf(inner) as object | null) as object;
  return Object.assign(outer, {
    next: (...args: [] | [unknown]) => step(() => inner.next(...args)),
    return: (value: unknown) => step(() => inner.return(value)),
    throw: (error: unknown) => step(() => inner.throw(error)),
  }) as unknown as AnyGenerator;
}
