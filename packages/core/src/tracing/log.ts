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
  const line = `${what} failed (${className(error)}).`;
  if (mayLogData()) log.error(line, error);
  else log.error(line);
}
