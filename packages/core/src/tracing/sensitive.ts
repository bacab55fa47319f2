import { atOnce } from '../base/at-once.ts';
import { env } from '../base/env.ts';
import { AgentsError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { className } from '../base/logger.ts';
import { logFailure } from './log.ts';
import { spanMessages } from './messages.ts';
import type { RedactField, Span, SpanError, Trace } from './types.ts';

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
    return atOnce(policy.redact(field, value), 'traceRedact') as T | undefined;
  } catch (error) {
    if (!policy.redactFailed) logFailure('traceRedact', error);
    policy.redactFailed = true;
    return undefined;
  }
}

/** What a text goes through before it stands on a span, which may drop it; absent where no such text may stand there. */
export type TextFilter = ((text: string) => string | undefined) | undefined;

/** The filter of texts for one field. */
export function textFilter(policy: SpanPolicy, field: RedactField): TextFilter {
  if (!policy.includeSensitive) return undefined;
  return (text) => {
    const shown: unknown = redacted(policy, field, text);
    return typeof shown === 'string' ? shown : undefined;
  };
}

/** A field of a span, with the agent and the tool that it belongs to. */
export function fieldOf(span: Span, field: string): RedactField {
  const names: { agentName?: string; toolName?: string } = {};
  for (let at: Span | Trace = span; at.type !== 'trace' && names.agentName === undefined; at = at.parent) {
    if (at.type === 'agent') names.agentName = at.spanData.name;
    else if (at.type === 'function') names.toolName ??= at.spanData.name;
  }
  return { spanType: span.type, field, ...names };
}

/** Text of an exception for the error of an agent or any other span. Without sensitive data nothing of it is touched. */
export function errorText(error: unknown, show: TextFilter): string {
  return shownText(error, show, spanMessages.redacted) ?? spanMessages.unavailable;
}

/** The same for a tool's failure. `handledByDefault`: the default failure function answered, which never shows details. */
export function toolErrorText(error: unknown, show: TextFilter, handledByDefault: boolean = false): string {
  const filter = handledByDefault ? undefined : show;
  return shownText(error, filter, spanMessages.toolRedacted) ?? spanMessages.unavailable;
}

/** The same for a failed model call. `more`: what the text leaves out. */
export function modelErrorText(error: unknown, show: TextFilter, more: (text: string) => string = same): string {
  return shownText(error, show, spanMessages.redacted, more) ?? `Unrenderable ${className(error)}`;
}

const same = (text: string): string => text;

/** `undefined`: the exception cannot be rendered. */
function shownText(
  error: unknown,
  show: TextFilter,
  otherwise: string,
  more: (text: string) => string = same,
): string | undefined {
  if (show === undefined) return otherwise;
  const text = rendered(error);
  return text === undefined ? undefined : (show(more(text)) ?? otherwise);
}

/** What `withSpan` records of an exception (TRACE-A5). */
export function spanErrorOf(error: unknown, includeSensitive: boolean): SpanError {
  if (!includeSensitive) return { message: spanMessages.redacted };
  const message = rendered(error);
  if (message === undefined) return { message: spanMessages.unavailable };
  try {
    const data: unknown = (error as { data?: unknown } | null | undefined)?.data;
    if (isObject(data)) return { message, data: { ...data } };
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
