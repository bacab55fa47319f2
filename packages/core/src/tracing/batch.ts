import { answersLater, atOnce } from '../base/at-once.ts';
import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { unref } from '../base/timers.ts';
import { isWorker, within } from './deadline.ts';
import { log, logFailure } from './log.ts';
import type { FlushOptions, Span, Trace, TraceExporter, TraceProcessor } from './types.ts';

export interface BatchOptions {
  /** Items that wait or are being exported. Default 8192; when there are so many, the new one is dropped. */
  maxQueueSize?: number | undefined;
  /** Default 128, or the queue's size when that is smaller. */
  maxBatchSize?: number | undefined;
  /** Default 5000. */
  scheduleDelayMs?: number | undefined;
  /** Export when the queue is this full. Default 0.7. */
  exportTriggerRatio?: number | undefined;
  /** Per batch. Default 60 000. */
  exportTimeoutMs?: number | undefined;
  filter?: ((item: Trace | Span) => boolean) | undefined;
  /** Workers: keeps the request alive while the trace is posted. */
  waitUntil?: ((work: Promise<unknown>) => void) | undefined;
}

const WARN_EVERY_MS = 60_000;
/** More overflows a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * Queues a trace at its start and a span at its end, and exports them in batches: after a time, when the queue fills, on a
 * flush and at the end. What runs never waits for it.
 *
 * @throws UserError for impossible sizes, unknown options and an exporter without `export`
 * @example
 * addTraceProcessor(new BatchTraceProcessor({ export: async (items) => post(items.map((item) => item.toJSON())) }));
 */
export class BatchTraceProcessor implements TraceProcessor {
  readonly needsExitFlush: boolean = true;
  readonly #exporter: TraceExporter;
  readonly #settings: ReturnType<typeof settingsOf>;
  #queue: (Trace | Span)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Exports the queue, one batch after the other. */
  #draining: Promise<void> | undefined;
  #inFlight: { readonly controller: AbortController; readonly count: number } | undefined;
  /** Stop after the batch in flight; the timer goes on. */
  #paused = false;
  #lastExport: number | undefined;
  /** Items that came in, and those of them that are exported or lost: a flush waits until one reaches the other. */
  #taken = 0;
  #settled = 0;
  readonly #waiting = new Set<{ readonly until: number; readonly resolve: () => void }>();
  #exported = 0;
  #dropped = 0;
  #failed = 0;
  #lastWarning: number | undefined;
  #shutDown = false;
  #deadline: number | undefined;

  constructor(exporter: TraceExporter, options: BatchOptions = {}) {
    const given: unknown = exporter;
    if (typeof given !== 'object' || given === null || typeof exporter.export !== 'function') {
      throw new UserError(`BatchTraceProcessor needs an exporter with a method 'export', not ${kindOf(given)}.`);
    }
    this.#exporter = exporter;
    this.#settings = settingsOf(options);
  }

  /**
   * Items that wait or are being exported now; so far exported, dropped because there was no room for them, and lost by a
   * failed export. Together they are all that came in.
   */
  get stats(): Readonly<{ queued: number; exported: number; dropped: number; failed: number }> {
    return { queued: this.#held, exported: this.#exported, dropped: this.#dropped, failed: this.#failed };
  }

  onTraceStart(trace: Trace): void {
    this.#add(trace);
  }

  onTraceEnd(_trace: Trace): void {
    if (this.#shutDown) return;
    // What the runtime answers is of no use.
    answersLater(this.#settings.waitUntil?.(this.forceFlush()));
  }

  onSpanEnd(span: Span): void {
    this.#add(span);
  }

  /** Waits for the export in flight and for all that was queued before. `signal` ends that export and starts no other. */
  async forceFlush(options: FlushOptions = {}): Promise<void> {
    const { signal } = options;
    const abort = (): void => {
      this.#paused = this.#draining !== undefined;
      this.#inFlight?.controller.abort();
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await within(options, this.#reach(this.#taken));
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Exports what is queued, then closes the exporter. At the limit what is left is dropped. */
  async shutdown(options: FlushOptions = {}): Promise<void> {
    if (this.#shutDown) return;
    this.#shutDown = true;
    if (options.timeoutMs !== undefined) this.#deadline = monotonic() + options.timeoutMs;
    await within(options, this.#reach(this.#taken));
    this.#stopTimer();
    const left = this.#queue.length;
    this.#queue = [];
    this.#inFlight?.controller.abort();
    if (left > 0) this.#drop(left);
    const { deadlineMs } = this.#remaining();
    try {
      await within({ ...options, timeoutMs: deadlineMs }, Promise.resolve(this.#exporter.close?.()));
    } catch (error) {
      logFailure('Close of a trace exporter', error);
    }
  }

  /** What is kept in memory. */
  get #held(): number {
    return this.#queue.length + (this.#inFlight?.count ?? 0);
  }

  #add(item: Trace | Span): void {
    if (this.#shutDown || !this.#isWanted(item)) return;
    const { maxQueueSize, trigger } = this.#settings;
    if (this.#held >= maxQueueSize) {
      this.#drop(1);
      return;
    }
    this.#queue.push(item);
    this.#taken++;
    if (this.#queue.length >= trigger) this.#drain();
    else this.#arm();
  }

  #isWanted(item: Trace | Span): boolean {
    try {
      return atOnce(this.#settings.filter?.(item) ?? true, 'The filter');
    } catch (error) {
      // What a filter cannot judge is not sent.
      logFailure('Filter of a BatchTraceProcessor', error);
      return false;
    }
  }

  /** The first item of a queue brings the timer; with nothing queued there is none (TRACE-B4). */
  #arm(): void {
    if (this.#timer !== undefined || this.#draining !== undefined || isWorker()) return;
    const { scheduleDelayMs } = this.#settings;
    const since = this.#lastExport === undefined ? 0 : monotonic() - this.#lastExport;
    this.#timer = setTimeout(() => this.#drain(), Math.max(0, scheduleDelayMs - since));
    unref(this.#timer);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Resolves when the first `until` items that came in are settled. */
  async #reach(until: number): Promise<void> {
    if (this.#settled >= until) return;
    const reached = new Promise<void>((resolve) => {
      this.#waiting.add({ until, resolve });
    });
    this.#drain();
    await reached;
  }

  #drain(): void {
    this.#stopTimer();
    this.#draining ??= this.#exportAll().finally(() => {
      this.#draining = undefined;
      this.#paused = false;
      if (this.#queue.length > 0) this.#arm();
    });
  }

  async #exportAll(): Promise<void> {
    while (this.#queue.length > 0 && !this.#paused) {
      const batch = this.#queue.splice(0, this.#settings.maxBatchSize);
      await this.#export(batch);
      this.#lastExport = monotonic();
      this.#settle(batch.length);
    }
  }

  async #export(batch: readonly (Trace | Span)[]): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#inFlight = { controller, count: batch.length };
    const { exportTimeoutMs } = this.#settings;
    const timer = isWorker() ? undefined : setTimeout(() => controller.abort(), exportTimeoutMs);
    unref(timer);
    try {
      // An exporter that ignores its signal is left behind.
      const work = this.#exporter.export(batch, { signal, ...this.#remaining() });
      const result = await Promise.race([work, aborted(signal)]);
      const lost = Math.min(result?.lost ?? 0, batch.length);
      this.#failed += lost;
      this.#exported += batch.length - lost;
    } catch (error) {
      this.#failed += batch.length;
      logFailure(`Export of ${batch.length} traces and spans`, error);
    } finally {
      clearTimeout(timer);
      this.#inFlight = undefined;
    }
  }

  #remaining(): { deadlineMs?: number } {
    return this.#deadline === undefined ? {} : { deadlineMs: Math.max(0, this.#deadline - monotonic()) };
  }

  #settle(count: number): void {
    this.#settled += count;
    for (const waiting of this.#waiting) {
      if (waiting.until > this.#settled) continue;
      this.#waiting.delete(waiting);
      waiting.resolve();
    }
  }

  #drop(count: number): void {
    this.#dropped += count;
    const now = monotonic();
    if (this.#lastWarning !== undefined && now - this.#lastWarning < WARN_EVERY_MS) return;
    this.#lastWarning = now;
    log.warn(`The queue of traces is full or was closed: ${this.#dropped} traces and spans were dropped so far.`);
  }
}

function settingsOf(options: BatchOptions): {
  maxQueueSize: number;
  maxBatchSize: number;
  trigger: number;
  scheduleDelayMs: number;
  exportTimeoutMs: number;
  filter: BatchOptions['filter'];
  waitUntil: BatchOptions['waitUntil'];
} {
  const positive = (value: unknown): string | undefined =>
    typeof value === 'number' && Number.isFinite(value) && value > 0 ? undefined : 'a finite number above 0';
  const ratio = (value: unknown): string | undefined =>
    typeof value === 'number' && value > 0 && value <= 1 ? undefined : 'a number above 0 and at most 1';
  checkOptions(
    options,
    {
      maxQueueSize: positive,
      maxBatchSize: positive,
      scheduleDelayMs: positive,
      exportTriggerRatio: ratio,
      exportTimeoutMs: positive,
      filter: kinds.function,
      waitUntil: kinds.function,
    },
    'BatchTraceProcessor',
  );
  const maxQueueSize = wholeOf(options.maxQueueSize ?? 8192);
  const maxBatchSize = wholeOf(options.maxBatchSize ?? Math.min(128, maxQueueSize));
  if (maxBatchSize > maxQueueSize) {
    throw new UserError(
      `Option 'maxBatchSize' of BatchTraceProcessor (${maxBatchSize}) is above 'maxQueueSize' (${maxQueueSize}).`,
    );
  }
  return {
    maxQueueSize,
    maxBatchSize,
    trigger: wholeOf(maxQueueSize * (options.exportTriggerRatio ?? 0.7)),
    scheduleDelayMs: Math.min(options.scheduleDelayMs ?? 5000, MAX_DELAY_MS),
    exportTimeoutMs: Math.min(options.exportTimeoutMs ?? 60_000, MAX_DELAY_MS),
    filter: options.filter,
    waitUntil: options.waitUntil,
  };
}

function wholeOf(value: number): number {
  return Math.max(1, Math.floor(value));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('The export took too long, or tracing was shut down.')), {
      once: true,
    });
  });
}

/** Milliseconds that never go back. */
function monotonic(): number {
  return globalThis.performance?.now?.() ?? Date.now();
}
