import { className, getLogger } from '../base/logger.ts';
import type { Logger } from '../base/logger.ts';

/** Lines of tracing: fixed text, types and counts; more only where the log policy allows it (TRACE-E14). */
export const log: Logger = getLogger('tracing');

/** Whether log lines and the console tree may show payloads and texts of exceptions. */
export function mayLogData(): boolean {
  return !log.dontLogModelData && !log.dontLogToolData;
}

/** One error line for a part of tracing that failed; the failure itself stays here. */
export function logFailure(what: string, error: unknown): void {
  const line = `${what} failed (${kindOfFailure(error)}).`;
  if (mayLogData()) log.error(line, error);
  else log.error(line);
}

/**
 * What a line may say of an exception: its class, and the code that a system or a service gave (`ECONNREFUSED`, 401),
 * also behind a `cause`. Of a list of exceptions, as exporters of OpenTelemetry reject with, the first one and the number
 * of the others. No getter and no `toString` is called.
 */
function kindOfFailure(error: unknown): string {
  try {
    const list: unknown = Array.isArray(error) ? error : ownValue(error, 'errors');
    if (Array.isArray(list) && list.length > 0) {
      const others = list.length - 1;
      return `${kindOfOne(list[0])}${others === 0 ? '' : ` and ${others} more`}`;
    }
    return kindOfOne(error);
  } catch {
    return className(error); // a proxy that refuses to be looked at
  }
}

function kindOfOne(error: unknown): string {
  const code = codeOf(error) ?? codeOf(ownValue(error, 'cause'));
  return code === undefined ? className(error) : `${className(error)} ${code}`;
}

/** Codes are constants or numbers; what looks like a text may be one of a user. */
function codeOf(error: unknown): string | undefined {
  const code = ownValue(error, 'code');
  if (typeof code === 'number' && Number.isInteger(code)) return String(code);
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,39}$/.test(code) ? code : undefined;
}

function ownValue(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}
