import type { FlushOptions } from './types.ts';

/**
 * Waits for `work`, at most until the limit or the signal. Never rejects because of either; the work goes on by itself. The
 * process stays alive meanwhile: timers of exporters keep none alive, and whoever waits wants to see the end.
 */
export async function within(options: FlushOptions, work: Promise<unknown>): Promise<void> {
  const { timeoutMs, signal } = options;
  if (timeoutMs === undefined && signal === undefined) {
    const alive = isWorker() ? undefined : setInterval(() => {}, LONG_MS);
    try {
      await work;
    } finally {
      clearInterval(alive);
    }
    return;
  }
  if (signal?.aborted === true) return;
  let release: (() => void) | undefined;
  const limit = new Promise<void>((resolve) => {
    release = resolve;
  });
  const end = (): void => release?.();
  const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs);
  signal?.addEventListener('abort', end, { once: true });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}

/** A timer that fires now and then, and does nothing. */
const LONG_MS = 2 ** 30;

/** Timers do not outlive a request there: nothing waits (TRACE-B13). */
export function isWorker(): boolean {
  return (globalThis.navigator as { userAgent?: string } | undefined)?.userAgent === 'Cloudflare-Workers';
}
