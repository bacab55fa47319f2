const KNOWN = 4096;

/** Ids of the last 4096 traces whose start was emitted in this process (TRACE-R6). */
export class StartedIds {
  /** Each with its number. A second map instead of one that forgets its oldest at each start. */
  #latest = new Map<string, number>();
  #earlier: ReadonlyMap<string, number> = new Map();
  #started = 0;

  has(traceId: string): boolean {
    const number = this.#latest.get(traceId) ?? this.#earlier.get(traceId);
    return number !== undefined && this.#started - number < KNOWN;
  }

  add(traceId: string): void {
    if (this.#latest.size >= KNOWN) {
      this.#earlier = this.#latest;
      this.#latest = new Map();
    }
    this.#started++;
    this.#latest.set(traceId, this.#started);
  }

  /** As in a process that has just begun. */
  clear(): void {
    this.#latest.clear();
    this.#earlier = this.#latest;
  }
}
