import { logFailure } from './log.ts';
import type { Span, SpanDetails, SpanError, SpanOf, SpanType, Trace } from './types.ts';

// Calls of traces and spans that may be of other makers: what they throw changes no run (TRACE-E6).

export function startItem<T extends Trace | Span>(item: T): T {
  try {
    item.start();
  } catch (error) {
    logFailure(`Start of a ${item.type}`, error);
  }
  return item;
}

export function finishItem(item: Trace | Span): void {
  try {
    item.finish();
  } catch (error) {
    logFailure(`End of a ${item.type}`, error);
  }
}

/** Sets an error in place of an earlier one. */
export function failSpan(span: Span, error: SpanError): void {
  try {
    span.setError(error);
  } catch (failure) {
    logFailure(`Error of a ${span.type} span`, failure);
  }
}

/** Sets an error that says little: it never replaces another (TRACE-E3). */
export function failSpanIfOk(span: Span, error: SpanError): void {
  if (span.error === undefined) failSpan(span, error);
}

/** Adds facts for processors. `details` is read-only for everybody else. */
export function addDetails<K extends SpanType>(span: SpanOf<K>, details: SpanDetails<K>): void {
  if (!span.isNoop) Object.assign(span.details, details);
}
