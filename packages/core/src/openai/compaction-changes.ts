/**
 * Changes of a history that is compacted now and then. They go to the wrapped session at once, as it orders its own; only
 * during a replacement they wait, and a replacement waits for those that are under way.
 */
export class Changes {
  readonly #open = new Set<Promise<unknown>>();
  #replacing: Promise<unknown> | undefined;
  #generation = 0;
  #candidates: number | undefined;

  /** How many changes were made, replacements left out. */
  get generation(): number {
    return this.#generation;
  }

  /** Items in the store that are worth compacting; `undefined`: they have to be counted. */
  get candidates(): number | undefined {
    return this.#candidates;
  }

  counted(candidates: number): void {
    if (this.#open.size === 0) this.#candidates = candidates;
  }

  /** @param added counts candidates that the change added; without it they are counted anew when somebody needs them */
  async change<T>(work: () => Promise<T>, added?: () => number): Promise<T> {
    const result = this.#replacing ? this.#replacing.then(work) : work();
    this.#open.add(result);
    const before = this.#candidates;
    this.#candidates = undefined;
    try {
      const value = await result;
      this.#generation += 1;
      if (added !== undefined && before !== undefined && this.#open.size === 1) this.#candidates = before + added();
      return value;
    } finally {
      this.#open.delete(result);
    }
  }

  /** Nothing else is changed meanwhile. */
  async replace<T>(work: () => Promise<T>): Promise<T> {
    await this.ended();
    this.#candidates = undefined;
    const replacing = work();
    this.#replacing = replacing.catch(() => undefined);
    try {
      return await replacing;
    } finally {
      this.#replacing = undefined;
    }
  }

  /** What waits for a replacement is kept as it was when the call was made. What is no JSON the wrapped session refuses. */
  kept<T>(value: T): T {
    if (this.#replacing === undefined) return value;
    try {
      return structuredClone(value);
    } catch {
      return value;
    }
  }

  get isReplacing(): boolean {
    return this.#replacing !== undefined;
  }

  /** Of the replacement that goes on. */
  async replaced(): Promise<void> {
    await this.#replacing;
  }

  /** Of all changes that go on. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#open);
  }
}
