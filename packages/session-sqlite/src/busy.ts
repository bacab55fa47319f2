import { SessionBusyError } from '@agents/core/session';

/** Whether a driver's error says that somebody else holds the lock (SQLITE_BUSY, SQLITE_LOCKED, their extended codes). */
export function isBusy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { errcode, errno, code } = error as { errcode?: unknown; errno?: unknown; code?: unknown };
  // node:sqlite, bun:sqlite: the number; better-sqlite3: the name.
  const result = typeof errcode === 'number' ? errcode : typeof errno === 'number' ? errno : undefined;
  if (result !== undefined) return (result & 0xff) === 5 || (result & 0xff) === 6;
  return typeof code === 'string' && /^SQLITE_(BUSY|LOCKED)/.test(code);
}

/**
 * Calls `work`, at once, until nobody else holds the lock. The waits (1 ms doubling to 50 ms, ±50 %) are awaited: a wait
 * inside the driver would stop the whole process.
 *
 * @returns a promise only if it had to wait
 * @throws SessionBusyError after `timeoutMs`; `work` wrote nothing then
 */
export function retryBusy<T>(timeoutMs: number, sessionId: string | undefined, work: () => T): T | Promise<T> {
  const start = performance.now();
  try {
    return work();
  } catch (error) {
    if (!isBusy(error)) throw error;
    return waitForLock({ timeoutMs, sessionId, start, error }, work);
  }
}

interface Wait {
  readonly timeoutMs: number;
  readonly sessionId: string | undefined;
  readonly start: number;
  /** That of the first try. */
  readonly error: unknown;
}

async function waitForLock<T>({ timeoutMs, sessionId, start, error }: Wait, work: () => T): Promise<T> {
  let cause = error;
  for (let wait = 1; ; wait = Math.min(2 * wait, 50)) {
    const left = timeoutMs - (performance.now() - start);
    if (left <= 0)
      throw new SessionBusyError(
        `The database was locked by another writer for more than ${timeoutMs} ms; nothing was written. Try again, or raise 'busyTimeoutMs'.`,
        { sessionId, cause },
      );
    await new Promise<void>((resolve) => void setTimeout(resolve, Math.min(left, wait * (0.5 + Math.random()))));
    try {
      return work();
    } catch (again) {
      if (!isBusy(again)) throw again;
      cause = again;
    }
  }
}
