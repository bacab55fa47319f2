import { isThenable } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { kindOf } from '../base/options.ts';
import { createSpan, createTrace } from './create.ts';
import { isGenerator, scopedGenerator } from './generator.ts';
import { failSpanIfOk, finishItem, startItem } from './lifecycle.ts';
import { log, logFailure } from './log.ts';
import { isNoop } from './noop.ts';
import { isDisabled } from './runtime.ts';
import { currentFrame, runInScope } from './scope.ts';
import { fieldOf, redacted, sensitiveDefault, spanErrorOf, textFilter } from './sensitive.ts';
import { spanInternals } from './span.ts';
import { traceInternals } from './trace.ts';
import type { Span, SpanInit, SpanOptions, SpanType, Trace, TraceOptions } from './types.ts';

/** A value whose work goes on after it was returned, as a stream's, tells its end here. */
const PENDING_WORK = Symbol.for('agents.pendingWork');

/**
 * Starts a trace, makes it current for `fn`, finishes it when `fn` (and a stream that it returned) settled. A trace that
 * was started before is made current only.
 *
 * @throws UserError for unknown options; what `fn` throws, unchanged
 * @example
 * await withTrace('Refund desk', async () => {
 *   const first = await run(triage, 'Where is order 7?');
 *   await run(refunds, first.finalOutput);
 * }, { groupId: 'thread-981' });
 */
export function withTrace<R>(trace: string | Trace, fn: (trace: Trace) => R, options?: TraceOptions): R {
  checkScope(typeof trace === 'string' || isItem(trace, 'traceId'), 'withTrace()', 'a name or a trace', trace, fn);
  if (typeof trace !== 'string') refuseOptions('trace', options);
  const item = typeof trace === 'string' ? newTrace(trace, options) : trace;
  if (isDisabled()) return fn(item);
  const owned = item.startTimeMs === undefined && traceInternals(item)?.isStarted !== true;
  if (owned) startItem(item);
  return scoped(
    item,
    () => fn(item),
    () => {
      if (owned) finishItem(item);
    },
  );
}

/**
 * Starts a span under the current one, makes it current for `fn`, records what `fn` throws, finishes. A span that was
 * started before is made current only.
 *
 * @throws UserError for unknown options and incomplete data; what `fn` throws, unchanged
 * @example
 * const rows = await withSpan({ type: 'custom', name: 'load' }, async (span) => {
 *   const found = await db.query('select 1');
 *   span.spanData.data = { rows: found.length };
 *   return found;
 * });
 */
export function withSpan<K extends SpanType, R>(
  span: SpanInit<K> | Span<K>,
  fn: (span: Span<K>) => R,
  options?: SpanOptions,
): R {
  checkScope(typeof span === 'object' && span !== null, 'withSpan()', '{ type, … } or a span', span, fn);
  if (isSpan(span)) refuseOptions('span', options);
  const item = isSpan(span) ? span : createSpan(span, options);
  if (isDisabled()) return fn(item);
  const base = item as unknown as Span;
  // Outside of any trace there is nothing to be inside of: a run in there makes a trace of its own.
  if (isNoop(base) && currentFrame() === undefined && options?.disabled !== true && options?.parent === undefined)
    return fn(item);
  const owned = base.startTimeMs === undefined;
  if (owned) startItem(base);
  return scoped(
    base,
    () => fn(item),
    (failure) => {
      if (failure !== undefined) recordFailure(base, failure.error);
      if (owned) finishItem(base);
    },
  );
}

function checkScope(isScope: boolean, where: string, takes: string, given: unknown, fn: unknown): void {
  if (!isScope) throw new UserError(`${where} takes ${takes}, not ${kindOf(given)}.`);
  if (typeof fn !== 'function') throw new UserError(`${where} takes a function to run, not ${kindOf(fn)}.`);
}

/** Of any copy of the package, or of a provider of the user's own. */
function isItem(value: unknown, id: 'traceId' | 'spanId'): boolean {
  return (
    typeof value === 'object' && value !== null && id in value && 'start' in value && typeof value.start === 'function'
  );
}

function newTrace(name: string, options: TraceOptions | undefined): Trace {
  const trace = createTrace(name, options);
  const current = isDisabled() ? undefined : currentFrame()?.trace;
  if (current !== undefined && !isNoop(current))
    log.warn('A trace is active already; withTrace() makes another one beside it.');
  return trace;
}

function refuseOptions(kind: 'trace' | 'span', options: object | undefined): void {
  if (options !== undefined)
    throw new UserError(`Options make a new ${kind}; this one was made before: give them to its maker.`);
}

function isSpan<K extends SpanType>(span: SpanInit<K> | Span<K>): span is Span<K> {
  return isItem(span, 'spanId');
}

/** The error of what `fn` threw, as far as the run of the span shows it. */
function recordFailure(span: Span, error: unknown): void {
  if (isNoop(span)) return;
  const policy = spanInternals(span)?.policy;
  const spanError = spanErrorOf(error, policy?.includeSensitive ?? sensitiveDefault());
  if (policy?.redact === undefined || !policy.includeSensitive) return failSpanIfOk(span, spanError);
  const message = textFilter(policy, fieldOf(span, 'error'))?.(spanError.message);
  if (message === undefined) return failSpanIfOk(span, spanErrorOf(error, false));
  const data: unknown = redacted(policy, fieldOf(span, 'error.data'), spanError.data);
  failSpanIfOk(span, { message, ...(isRecord(data) ? { data } : undefined) });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Runs `fn` inside `at` and calls `done` once it is really over: its promise, its generator, the work of its value. @internal */
export function scoped<R>(at: Trace | Span, fn: () => R, done: (failure?: { error: unknown }) => void): R {
  const fail = (error: unknown): never => {
    quietly(() => done({ error }));
    throw error;
  };
  let value: R;
  try {
    value = runInScope(at, fn);
  } catch (error) {
    return fail(error);
  }
  if (isThenable(value)) {
    const settled = (result: unknown): unknown => {
      afterWork(result, done);
      return result;
    };
    return value.then(settled, fail) as R;
  }
  if (isGenerator(value)) return scopedGenerator(value, at, (failure) => quietly(() => done(failure))) as R;
  afterWork(value, done);
  return value;
}

function afterWork(value: unknown, done: () => void): void {
  const end = (): void => quietly(done);
  const work: unknown =
    typeof value === 'object' && value !== null ? (value as { [PENDING_WORK]?: unknown })[PENDING_WORK] : undefined;
  if (isThenable(work)) work.then(end, end);
  else end();
}

function quietly(fn: () => void): void {
  try {
    fn();
  } catch (error) {
    logFailure('End of a scope', error);
  }
}
