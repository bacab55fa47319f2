import { answersLater } from '../base/at-once.ts';
import { randomHex } from '../base/ids.ts';
import { logFailure } from './log.ts';
import { runtime } from './runtime.ts';
import type { TraceIdGenerator } from './types.ts';

/** `trace_` and 32 hex digits, or what `configureTracing({ ids })` says. */
export function generateTraceId(): string {
  return own('traceId') ?? `trace_${randomHex(16)}`;
}

/** `span_` and 24 hex digits, or what `configureTracing({ ids })` says. */
export function generateSpanId(): string {
  return own('spanId') ?? `span_${randomHex(12)}`;
}

/** `group_` and 24 hex digits, or what `configureTracing({ ids })` says. */
export function generateGroupId(): string {
  return own('groupId') ?? `group_${randomHex(12)}`;
}

/** The id of the configured generator; one that fails or gives no text costs nobody a run (TRACE-A6). */
function own(kind: keyof TraceIdGenerator): string | undefined {
  const { ids } = runtime();
  if (ids === undefined) return undefined;
  try {
    const id: unknown = ids[kind]();
    if (typeof id === 'string' && id !== '') return id;
    answersLater(id);
    logFailure(`Trace id generator: ${kind}`, id);
  } catch (error) {
    logFailure(`Trace id generator: ${kind}`, error);
  }
  return undefined;
}
