import { internal } from '../base/brand.ts';
import { log } from './log.ts';
import { notifyTrace } from './processors.ts';
import { runtime } from './runtime.ts';
import type { Frame } from './runtime.ts';
import { jsonSafe } from './serialize.ts';
import { TraceTime } from './time.ts';
import { rawRecord } from './wire-record.ts';
import type { Trace, TraceOptions, TraceWire } from './types.ts';

export interface TraceInternals {
  time(): TraceTime;
  /** Whether spans are made and events emitted: decided once, at the start or with the first span (TRACE-P13). */
  isRecording(): boolean;
  /** A run of this trace goes on: the end is emitted after the last `release` (TRACE-A10). */
  hold(): void;
  release(): void;
  readonly isStarted: boolean;
  /** Scopes of code that runs directly inside, and of code inside that is not traced; made once. */
  frame: Frame | undefined;
  quietFrame: Frame | undefined;
}

/** `undefined` for traces of other makers. */
export function traceInternals(trace: Trace): TraceInternals | undefined {
  return (trace as { readonly [internal]?: TraceInternals })[internal];
}

/** Traces of other makers are recorded when somebody listens. */
export function isRecording(trace: Trace): boolean {
  return traceInternals(trace)?.isRecording() ?? runtime().entries.length > 0;
}

class TraceLife implements TraceInternals {
  frame: Frame | undefined = undefined;
  quietFrame: Frame | undefined = undefined;
  isStarted = false;
  readonly #trace: LiveTrace;
  /** Another segment of the run has emitted the start: this one emits neither start nor end (TRACE-R6). */
  readonly #reattached: boolean;
  #time: TraceTime | undefined;
  #recording: boolean | undefined;
  #holders = 0;
  #finishing = false;

  constructor(trace: LiveTrace, reattached: boolean) {
    this.#trace = trace;
    this.#reattached = reattached;
  }

  time(): TraceTime {
    this.#time ??= new TraceTime();
    return this.#time;
  }

  isRecording(): boolean {
    this.#recording ??= runtime().entries.length > 0;
    return this.#recording;
  }

  hold(): void {
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.#finishing && this.#holders === 0) this.#end();
  }

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    // Nobody reads the times of a trace that is not recorded.
    if (!this.isRecording()) return;
    this.#trace.startTimeMs = this.time().now();
    if (this.#reattached) return;
    runtime().startedIds.add(this.#trace.traceId);
    notifyTrace('onTraceStart', this.#trace);
  }

  finish(): void {
    if (!this.isStarted) {
      log.warn('A trace was finished before it was started; that is ignored.');
      return;
    }
    if (this.#finishing) return;
    this.#finishing = true;
    if (this.#holders === 0) this.#end();
  }

  #end(): void {
    if (!this.isRecording()) return;
    this.#trace.endTimeMs = this.time().now();
    if (!this.#reattached) notifyTrace('onTraceEnd', this.#trace);
  }
}

/** A trace with an id. Without processors it emits nothing and all its spans are no-ops. */
export class LiveTrace implements Trace {
  readonly type: 'trace' = 'trace' as const;
  readonly traceId: string;
  readonly name: string;
  readonly groupId: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  startTimeMs: number | undefined = undefined;
  endTimeMs: number | undefined = undefined;
  readonly #apiKey: string | undefined;
  readonly #life: TraceLife;

  constructor(name: string, traceId: string, options: TraceOptions, reattached: boolean = false) {
    this.traceId = traceId;
    this.name = name;
    this.groupId = options.groupId;
    this.metadata = options.metadata === undefined ? NO_METADATA : Object.freeze({ ...options.metadata });
    this.#apiKey = options.apiKey;
    this.#life = new TraceLife(this, reattached);
  }

  /** A getter of the class: it shows in no enumeration, copy or inspection. */
  get apiKey(): string | undefined {
    return this.#apiKey;
  }

  get isNoop(): boolean {
    return false;
  }

  /** @internal */
  get [internal](): TraceInternals {
    return this.#life;
  }

  start(): this {
    this.#life.start();
    return this;
  }

  finish(): void {
    this.#life.finish();
  }

  toJSON(): TraceWire {
    const record = this[rawRecord]();
    if (record.metadata !== null) record.metadata = jsonSafe(record.metadata, 1);
    return record;
  }

  /** @internal */
  [rawRecord](): TraceWire {
    return {
      object: 'trace',
      id: this.traceId,
      workflow_name: this.name,
      group_id: this.groupId ?? null,
      metadata: Object.keys(this.metadata).length === 0 ? null : this.metadata,
    };
  }

  [Symbol.dispose](): void {
    this.finish();
  }
}

const NO_METADATA: Readonly<Record<string, unknown>> = Object.freeze({});
