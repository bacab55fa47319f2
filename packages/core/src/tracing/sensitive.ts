import { env } from '../base/env.ts';
import { AgentsError } from '../base/errors.ts';
import { className } from '../base/logger.ts';
import { logFailure } from './log.ts';
import { spanMessages } from './messages.ts';
import type { RedactField, Span, SpanError } from './types.ts';

/** What the run of a span wants: how much may be seen, and the list of its open spans. */
export interface SpanPolicy {
  readonly includeSensitive: boolean;
  readonly redact: ((field: RedactField, value: unknown) => unknown) | undefined;
  /** `undefined` once the run has ended. */
  open: Set<Span> | undefined;
  /** The redaction has failed and it was logged. */
  redactFailed: boolean;
}

/** `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA`, read each time; unset is true (TRACE-E12). */
export function sensitiveDefault(): boolean {
  const value = env('OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA');
  return value === undefined || ['1', 'true', 'yes', 'on'].includes(value.trim().toLowerCase());
}

/** A sensitive value as it may stand on a span: `undefined` where the run shows none or its redaction drops it. */
export function sensitiveValue<T>(policy: SpanPolicy, field: RedactField, value: T): T | undefined {
  return policy.includeSensitive ? redacted(policy, field, value) : undefined;
}

/** What `traceRedact` leaves of a value; a throw drops it (TRACE-E15). */
export function redacted<T>(policy: SpanPolicy, field: RedactField, value: T): T | undefined {
  if (policy.redact === undefined || value === undefined) return value;
  try {
    return policy.redact(field, value) as T | undefined;
  } catch (error) {
    if (!policy.redactFailed) logFailure('traceRedact', error);
    policy.redactFailed = true;
    return undefined;
  }
}

/** Text of an exception for the error of an agent or any other span. Without sensitive data nothing of it is touched. */
export function errorText(error: unknown, includeSensitive: boolean): string {
  if (!includeSensitive) return spanMessages.redacted;
  return rendered(error) ?? spanMessages.unavailable;
}

/** The same for a tool's failure. `handledByDefault`: the default failure function answered, which never shows details. */
export function toolErrorText(error: unknown, includeSensitive: boolean, handledByDefault: boolean = false): string {
  if (!includeSensitive || handledByDefault) return spanMessages.toolRedacted;
  return rendered(error) ?? spanMessages.unavailable;
}

/** The same for a failed model call. */
export function modelErrorText(error: unknown, includeSensitive: boolean): string {
  if (!includeSensitive) return spanMessages.redacted;
  return rendered(error) ?? `Unrenderable ${className(error)}`;
}

/** What `withSpan` records of an exception (TRACE-A5). */
export function spanErrorOf(error: unknown, includeSensitive: boolean): SpanError {
  if (!includeSensitive) return { message: spanMessages.redacted };
  const message = rendered(error);
  if (message === undefined) return { message: spanMessages.unavailable };
  try {
    const data: unknown = (error as { data?: unknown } | null | undefined)?.data;
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { message, data: { ...data } };
  } catch {
    // A getter that throws: the message will do.
  }
  return { message };
}

/** A provider's own code where the error has one, else the name of its class. Never its text. */
export function errorTypeOf(error: unknown): string {
  if (error instanceof AgentsError) return className(error);
  try {
    const code: unknown = (error as { code?: unknown } | null | undefined)?.code;
    if (typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)) return code;
  } catch {
    // The class will do.
  }
  return className(error);
}

/** `undefined`: the exception cannot be rendered. */
function rendered(error: unknown): string | undefined {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return undefined;
  }
}
