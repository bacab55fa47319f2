import type { FlushOptions } from './types.ts';

/** Waits for `work`, at most until the limit or the signal. Never rejects because of either; the work goes on by itself. */
export async function within(options: FlushOptions, work: Promise<unknown>): Promise<void> {
  const { timeoutMs, signal } = options;
  if (timeoutMs === undefined && signal === undefined) {
    await work;
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
