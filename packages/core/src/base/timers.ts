/** A timer that does not keep its process alive, where the host's timers can do that. */
export function unref(timer: unknown): void {
  if (typeof timer === 'object' && timer !== null) (timer as { unref?: () => void }).unref?.();
}
