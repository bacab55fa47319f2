import { AsyncLocalStorage } from 'node:async_hooks';

/** Timers that were set while `work` went on, by whomever, and are neither over nor cleared when it ends. */
export interface Timers {
  /** `work`, and how many timers it left. */
  count<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly left: number }>;
  restore(): void;
}

export function watchTimers(): Timers {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const owners = new AsyncLocalStorage<Set<unknown>>();
  const ownerOf = new WeakMap<object, Set<unknown>>();
  globalThis.setTimeout = ((callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const open = owners.getStore();
    const timer = set(() => {
      open?.delete(timer);
      callback(...args);
    }, ms);
    open?.add(timer);
    if (open) ownerOf.set(timer, open);
    return timer;
  }) as typeof set;
  globalThis.clearTimeout = ((timer: ReturnType<typeof set> | undefined) => {
    if (timer) ownerOf.get(timer)?.delete(timer);
    clear(timer);
  }) as typeof clear;
  return {
    count: async (work) => {
      const open = new Set<unknown>();
      const value = await owners.run(open, work);
      return { value, left: open.size };
    },
    restore: () => Object.assign(globalThis, { setTimeout: set, clearTimeout: clear }),
  };
}
