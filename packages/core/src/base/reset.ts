const resetters = new Set<() => void>();

/**
 * Registers what puts one default of the process back (logging, tracing, providers); `resetAll` calls it. Give the same
 * function each time.
 */
export function onReset(reset: () => void): void {
  resetters.add(reset);
}

/** Puts all defaults of the process back, for tests. */
export function resetAll(): void {
  for (const reset of resetters) reset();
}
