const MAX_DELAY_MS = 30_000;

/** How long to wait before attempt `next` (from 2): doubling, with a tenth of chance, and what the service asks for. */
export function delayMs(baseMs: number, next: number, headers: Headers | undefined): number {
  const own = Math.min(baseMs * 2 ** (next - 2), MAX_DELAY_MS) * (1 + Math.random() * 0.1);
  const hint = hintMs(headers);
  return hint === undefined ? own : Math.min(Math.max(own, hint), MAX_DELAY_MS);
}

/** `Retry-After` in its three forms. */
function hintMs(headers: Headers | undefined): number | undefined {
  const exact = numberOf(headers?.get('retry-after-ms'));
  if (exact !== undefined) return exact;
  const text = headers?.get('retry-after');
  const seconds = numberOf(text);
  if (seconds !== undefined) return seconds * 1000;
  const at = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at - Date.now();
}

function numberOf(text: string | null | undefined): number | undefined {
  const value = text?.trim() ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : undefined;
}

/** Waits; an abort ends it at once. Keeps no process alive: whoever waits for a flush does that. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || ms <= 0) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = quietTimer(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}

/** A timer that keeps no process alive, where the runtime knows such. */
export function quietTimer(fn: () => void, ms: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(fn, ms);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
