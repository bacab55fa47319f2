import { isThenable } from '../base/at-once.ts';
import { log, logFailure } from './log.ts';
import { isNoop, noopFrame, noopSpan, noopTrace } from './noop.ts';
import { isDisabled, runtime } from './runtime.ts';
import type { Frame, ProcessorEntry } from './runtime.ts';
import { spanInternals } from './span.ts';
import { isRecording, traceInternals } from './trace.ts';
import type { Span, Trace, TraceContextStorage } from './types.ts';

/**
 * The trace in which this code runs: of a run in its callbacks, of `withTrace` in its function. A no-op one where tracing
 * is switched off; `undefined` outside, and on runtimes that keep no context.
 */
export function getCurrentTrace(): Trace | undefined {
  return isDisabled() ? noopTrace : currentFrame()?.trace;
}

/** The span in which this code runs; see `getCurrentTrace`. */
export function getCurrentSpan(): Span | undefined {
  return isDisabled() ? noopSpan('custom') : currentFrame()?.span;
}

/**
 * Runs `fn` as if inside `at`; `null`: outside of any trace.
 *
 * @example
 * withTraceContext(ctx.span, () => createSpan({ type: 'custom', name: 'late' }));
 */
export function withTraceContext<R>(at: Trace | Span | null, fn: () => R): R {
  if (at !== null) return runInScope(at, fn);
  return isDisabled() || currentFrame() === undefined ? fn() : enterFrame(undefined, fn);
}

/**
 * Keeps the current scope for callbacks that are called from elsewhere (event emitters, queues).
 *
 * @example
 * socket.on('message', bindTraceContext((text: string) => handle(text)));
 */
export function bindTraceContext<A extends unknown[], R>(fn: (...args: A) => R, at?: Trace | Span): (...args: A) => R {
  if (isDisabled()) return fn;
  const frame = at === undefined ? currentFrame() : frameOf(at);
  const item = at ?? frame?.span ?? frame?.trace;
  return function bound(this: unknown, ...args: A): R {
    const call = (): R => Reflect.apply(fn, this, args);
    return enterFrame(frame, () => (item === undefined ? call() : callBound(item, call)));
  };
}

/** Runs a callback of the user inside `at`: its scope, and each processor's own context around it. @internal */
export function runInScope<R>(at: Trace | Span, fn: () => R): R {
  if (isDisabled()) return fn();
  const frame = frameOf(at);
  const { binders } = runtime();
  if (binders.length === 0) return currentFrame() === frame ? fn() : enterFrame(frame, fn);
  return enterFrame(frame, () => callBound(at, fn));
}

/** Runs code of ours inside `at`: the scope alone. @internal */
export function enterScope<R>(at: Trace | Span, fn: () => R): R {
  if (isDisabled()) return fn();
  const frame = frameOf(at);
  return currentFrame() === frame ? fn() : enterFrame(frame, fn);
}

/** Runs `fn` where nothing is traced (TRACE-N23). @internal */
export function enterNoop<R>(fn: () => R): R {
  return isDisabled() || currentFrame() === noopFrame ? fn() : enterFrame(noopFrame, fn);
}

/** The frame that code runs in. A storage that nobody has entered is not made. @internal */
export function currentFrame(): Frame | undefined {
  const { storage } = runtime();
  if (storage === undefined) return undefined;
  try {
    return (storage.getStore() ?? undefined) as Frame | undefined;
  } catch (error) {
    logFailure('Trace context storage', error);
    return undefined;
  }
}

function enterFrame<R>(frame: Frame | undefined, fn: () => R): R {
  const now = runtime();
  const storage = (now.storage ??= platformStorage());
  if (!now.ownStorage) return storage.run(frame, fn);
  return callOnce((call) => storage.run(frame, call), fn, 'Trace context storage');
}

/** Frames are made once per trace and span, so that entering a scope twice is seen by identity. */
function frameOf(at: Trace | Span): Frame {
  if (at.type === 'trace') {
    if (isNoop(at)) return noopFrame;
    const internals = traceInternals(at);
    if (internals === undefined) return { trace: at, span: undefined };
    internals.frame ??= { trace: at, span: undefined };
    return internals.frame;
  }
  if (isNoop(at)) return quietFrame(at);
  const internals = spanInternals(at);
  if (internals === undefined) return { trace: at.trace, span: at };
  internals.frame ??= { trace: at.trace, span: at };
  return internals.frame;
}

/** Inside a no-op span the trace stays, but nothing is traced. */
function quietFrame(span: Span): Frame {
  const now = currentFrame();
  if (now === undefined || isNoop(now.trace)) return noopFrame;
  if (now.span !== undefined && isNoop(now.span)) return now;
  const internals = traceInternals(now.trace);
  if (internals === undefined) return { trace: now.trace, span };
  // A trace without processors has no-op spans only: whether one is current makes no difference.
  if (now.span === undefined && !isRecording(now.trace)) return now;
  internals.quietFrame ??= { trace: now.trace, span: noopSpan('custom') };
  return internals.quietFrame;
}

/** Calls `fn` inside the contexts of the processors, the first one outermost (TRACE-P16). */
function callBound<R>(at: Trace | Span, fn: () => R): R {
  const { binders } = runtime();
  if (binders.length === 0 || isNoop(at)) return fn();
  const wrap = (binder: ProcessorEntry, inner: () => R): (() => R) => {
    return () => callOnce((call) => binder.processor.bind?.(at, call), inner, 'Trace processor: bind');
  };
  return binders.reduceRight((inner, binder) => wrap(binder, inner), fn)();
}

type Outcome<R> = { readonly value: R } | { readonly error: unknown };

/**
 * Calls `fn` through `around`, exactly once, and gives its own outcome, whatever `around` does: it may throw before, throw
 * after, call twice or not at all (TRACE-P15).
 */
function callOnce<R>(around: (call: () => R) => unknown, fn: () => R, what: string): R {
  let outcome: Outcome<R> | undefined;
  const call = (): R => {
    if (outcome === undefined) {
      try {
        outcome = { value: fn() };
      } catch (error) {
        outcome = { error };
      }
    }
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  };
  try {
    ignoreRejection(around(call), outcome, what);
  } catch (error) {
    if (!isErrorOf(outcome, error)) logFailure(what, error);
  }
  return call();
}

/** A promise that `around` made itself is nobody's: its rejection must not go unhandled. */
function ignoreRejection(result: unknown, outcome: Outcome<unknown> | undefined, what: string): void {
  if (!isThenable(result) || (outcome !== undefined && 'value' in outcome && outcome.value === result)) return;
  // Made around the promise of the callback, it only repeats what that one tells.
  const repeats = outcome !== undefined && 'value' in outcome && isThenable(outcome.value);
  result.then(undefined, (error: unknown) => {
    if (!repeats) logFailure(what, error);
  });
}

function isErrorOf(outcome: Outcome<unknown> | undefined, error: unknown): boolean {
  return outcome !== undefined && 'error' in outcome && outcome.error === error;
}

interface AsyncVariable {
  get(): unknown;
  run<R>(value: unknown, fn: () => R): R;
}

/** The runtime's own way to keep a value over asynchronous calls (TRACE-C1). */
function platformStorage(): TraceContextStorage {
  const platform = globalThis as {
    AsyncContext?: { Variable?: new () => AsyncVariable };
    AsyncLocalStorage?: new () => TraceContextStorage;
  };
  try {
    const Variable = platform.AsyncContext?.Variable;
    if (Variable !== undefined) {
      const variable = new Variable();
      return { getStore: () => variable.get(), run: (value, fn) => variable.run(value, fn) };
    }
    const AsyncLocalStorage =
      globalThis.process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage ?? platform.AsyncLocalStorage;
    if (AsyncLocalStorage !== undefined) return new AsyncLocalStorage<unknown>();
  } catch (error) {
    logFailure('Trace context storage of the runtime', error);
  }
  log.debug('This runtime keeps no context over asynchronous calls: there is no current trace, spans need a parent.');
  return { getStore: () => undefined, run: (_value, fn) => fn() };
}
