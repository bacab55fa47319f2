import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { generateSpanId, generateTraceId } from './ids.ts';
import { log } from './log.ts';
import { isNoop, isNoopId, noopSpan, noopTrace } from './noop.ts';
import { isDisabled, runtime, warnOnce } from './runtime.ts';
import { currentFrame } from './scope.ts';
import { checkSpanInit, dataOf } from './span-data.ts';
import { LiveSpan } from './span.ts';
import { isRecording, LiveTrace } from './trace.ts';
import type { Span, SpanInit, SpanOf, SpanOptions, SpanType, Trace, TraceOptions } from './types.ts';

/** A trace of the default provider. */
export function makeTrace(name: string, options: TraceOptions = {}): Trace {
  checkTrace(name, options);
  if (isDisabled()) {
    log.debug('Tracing is off: a trace is a no-op.');
    return noopTrace;
  }
  return options.disabled === true ? noopTrace : traceOf(name, options);
}

/** A trace of the default provider where all is checked: name, options, that tracing is on. */
export function traceOf(name: string, options: TraceOptions): Trace {
  return isNoopId(options.traceId) ? noopTrace : new LiveTrace(name, traceIdOf(options.traceId), options);
}

/** A span of the default provider. */
export function makeSpan<K extends SpanType>(init: SpanInit<K>, options: SpanOptions = {}): Span<K> {
  checkSpan(init, options);
  const { type } = init;
  if (isDisabled()) {
    log.debug('Tracing is off: a span is a no-op.');
    return noopSpan(type);
  }
  if (options.disabled === true || isNoopId(options.spanId)) return noopSpan(type);
  const parent = options.parent ?? currentParent();
  if (parent === undefined) {
    log.debug('A span without a parent and without a current trace is a no-op; withTrace() makes a trace.');
    return noopSpan(type);
  }
  return spanUnder(parent, init, options);
}

const NO_OPTIONS: SpanOptions = {};

/** A span of the default provider where all is checked: data, options, that tracing is on. */
export function spanUnder<K extends SpanType>(
  parent: Trace | Span,
  init: SpanInit<K>,
  options: SpanOptions = NO_OPTIONS,
): Span<K> {
  if (isNoop(parent) || !isRecording(parent.type === 'trace' ? parent : parent.trace)) return noopSpan(init.type);
  const span = new LiveSpan<K>({
    type: init.type,
    spanId: options.spanId ?? generateSpanId(),
    parent,
    spanData: dataOf(init),
    startTimeMs: options.startTimeMs,
  });
  return span as SpanOf<SpanType> as Span<K>;
}

/** Whether a span made there would be seen: asked before its data is put together. */
export function isSeen(parent: Trace | Span | undefined): boolean {
  if (isDisabled()) return false;
  // Another maker decides for itself.
  if (runtime().provider !== undefined) return true;
  const at = parent ?? currentParent();
  return at !== undefined && !isNoop(at) && isRecording(at.type === 'trace' ? at : at.trace);
}

/** The current span, else the current trace. */
export function currentParent(): Trace | Span | undefined {
  const frame = currentFrame();
  return frame?.span ?? frame?.trace;
}

/** The given id, verbatim, or a new one. */
export function traceIdOf(given: string | undefined): string {
  if (given === undefined) return generateTraceId();
  if (!given.startsWith('trace_')) {
    warnOnce(
      'trace-id',
      "A given trace id does not begin with 'trace_'; it is used, but the OpenAI dashboard does not show such traces.",
    );
  }
  return given;
}

const TRACE_OPTIONS = {
  traceId: kinds.nonEmptyString,
  groupId: kinds.string,
  metadata: kinds.object,
  apiKey: kinds.nonEmptyString,
  disabled: kinds.boolean,
} as const;

const SPAN_OPTIONS = {
  parent: kinds.object,
  spanId: kinds.nonEmptyString,
  startTimeMs: kinds.number,
  disabled: kinds.boolean,
} as const;

/** @throws UserError */
export function checkTrace(name: unknown, options: TraceOptions | undefined): void {
  if (typeof name !== 'string') throw new UserError(`A trace needs a name that is a string, not ${kindOf(name)}.`);
  checkOptions(options, TRACE_OPTIONS, 'createTrace()');
}

/** @throws UserError */
export function checkSpan(init: SpanInit<SpanType>, options: SpanOptions | undefined): void {
  checkSpanInit(init);
  checkOptions(options, SPAN_OPTIONS, 'createSpan()');
}
