import { internal } from '../base/brand.ts';
import { log } from './log.ts';
import { notifySpan } from './processors.ts';
import { passField, redactData } from './redact.ts';
import { textFilter, fieldOf } from './sensitive.ts';
import type { SpanPolicy, TextFilter } from './sensitive.ts';
import { jsonSafe } from './serialize.ts';
import { spanDataToWire } from './span-data.ts';
import { isoTime, TraceTime } from './time.ts';
import { traceInternals } from './trace.ts';
import { rawRecord } from './wire-record.ts';
import type { Frame } from './runtime.ts';
import type { Span, SpanDataMap, SpanDetails, SpanError, SpanOf, SpanType, SpanWire, Trace } from './types.ts';

export interface SpanInternals {
  readonly time: TraceTime;
  /** What the run that the span belongs to wants; children take it over. */
  policy: SpanPolicy | undefined;
  /** Values that went through the run's redaction, by field: they do so once. */
  passed: Map<string, unknown> | undefined;
  /** The scope of code that runs inside, made once. */
  frame: Frame | undefined;
  /** It is a span of another process: parent of spans here, never emitted. */
  readonly isRemote: boolean;
}

/** `undefined` for spans of other makers. */
export function spanInternals(span: Span): SpanInternals | undefined {
  return (span as { readonly [internal]?: SpanInternals })[internal];
}

export interface SpanParts<K extends SpanType> {
  readonly type: K;
  readonly spanId: string;
  readonly parent: Trace | Span;
  readonly spanData: SpanDataMap[K];
  readonly startTimeMs: number | undefined;
  readonly isRemote?: boolean;
}

/** A span that processors see. */
export class LiveSpan<K extends SpanType> implements SpanOf<K> {
  readonly type: K;
  readonly spanId: string;
  readonly traceId: string;
  readonly parentId: string | undefined;
  readonly parent: Trace | Span;
  readonly trace: Trace;
  readonly spanData: SpanDataMap[K];
  readonly details: Readonly<SpanDetails<K>> = {} as SpanDetails<K>;
  error: SpanError | undefined = undefined;
  startTimeMs: number | undefined = undefined;
  endTimeMs: number | undefined = undefined;
  readonly #givenStart: number | undefined;
  /** @internal */
  readonly [internal]: SpanInternals;

  constructor({ type, spanId, parent, spanData, startTimeMs, isRemote = false }: SpanParts<K>) {
    const under = parent.type === 'trace' ? undefined : parent;
    this.type = type;
    this.spanId = spanId;
    this.parent = parent;
    this.trace = under === undefined ? (parent as Trace) : under.trace;
    this.traceId = this.trace.traceId;
    this.parentId = under?.spanId;
    this.spanData = spanData;
    this.#givenStart = startTimeMs;
    this[internal] = {
      time: traceInternals(this.trace)?.time() ?? new TraceTime(),
      policy: under === undefined ? undefined : spanInternals(under)?.policy,
      passed: undefined,
      frame: undefined,
      isRemote,
    };
  }

  get isNoop(): boolean {
    return false;
  }

  start(): this {
    if (this.startTimeMs !== undefined) {
      log.warn(`A ${this.type} span was started twice; the second start is ignored.`);
      return this;
    }
    const { time, policy } = this[internal];
    this.startTimeMs = this.#givenStart ?? time.now();
    const span = this.#asSpan();
    if (policy?.redact !== undefined) redactData(span, policy, passedOf(this[internal]));
    policy?.open?.add(span);
    notifySpan('onSpanStart', span);
    return this;
  }

  finish(): void {
    if (this.startTimeMs === undefined) {
      log.warn(`A ${this.type} span was finished before it was started; that is ignored.`);
      return;
    }
    if (this.endTimeMs !== undefined) return;
    const { time, policy } = this[internal];
    this.endTimeMs = Math.max(this.startTimeMs, time.now());
    const span = this.#asSpan();
    if (policy?.redact !== undefined) redactData(span, policy, passedOf(this[internal]));
    policy?.open?.delete(span);
    if (this.trace.endTimeMs !== undefined) log.debug('A span ended after its trace.');
    notifySpan('onSpanEnd', span);
  }

  setError(error: SpanError): void {
    this.error = error;
  }

  toJSON(): SpanWire {
    const record = this[rawRecord]();
    record.span_data = jsonSafe(record.span_data) as SpanWire['span_data'];
    if (record.error !== null) record.error = jsonSafe({ ...record.error }) as typeof record.error;
    if (record.metadata !== undefined) record.metadata = jsonSafe(record.metadata);
    return record;
  }

  /** @internal */
  [rawRecord](): SpanWire {
    const error = this.error === undefined ? null : { message: this.error.message, data: this.error.data ?? null };
    const metadata = this.#metadata();
    return {
      object: 'trace.span',
      id: this.spanId,
      trace_id: this.traceId,
      parent_id: this.parentId ?? null,
      started_at: isoTime(this.startTimeMs),
      ended_at: isoTime(this.endTimeMs),
      span_data: spanDataToWire(this),
      error,
      ...(metadata === undefined ? undefined : { metadata }),
    };
  }

  [Symbol.dispose](): void {
    this.finish();
  }

  /** A class with a type parameter is no member of the union, though each of its objects is. */
  #asSpan(): Span {
    return this as SpanOf<SpanType> as Span;
  }

  /** The routing key of the trace and the span's own metadata, if any (TRACE-M9). */
  #metadata(): Record<string, unknown> | undefined {
    const own = (this.spanData as SpanDataMap['agent']).metadata;
    const harnessId = this.trace.metadata['agent_harness_id'];
    const metadata = {
      ...(this.type === 'agent' ? own : undefined),
      ...(harnessId === undefined ? undefined : { agent_harness_id: harnessId }),
    };
    return Object.keys(metadata).length === 0 ? undefined : metadata;
  }
}

function passedOf(internals: SpanInternals): Map<string, unknown> {
  return (internals.passed ??= new Map());
}

/** Puts a sensitive value on a span, as far as its run shows it (TRACE-E15). What its maker gave at its creation needs no call. */
export function setSensitive<K extends SpanType, F extends keyof SpanDataMap[K] & string>(
  span: Span<K>,
  field: F,
  value: SpanDataMap[K][F],
): void {
  const base = span as unknown as Span;
  const internals = spanInternals(base);
  const shown =
    internals?.policy?.redact === undefined
      ? value
      : (passField(base, internals.policy, passedOf(internals), field, value) as SpanDataMap[K][F] | undefined);
  if (shown !== undefined) span.spanData[field] = shown;
}

/** The filter for texts of a span's error, where its run shows data at all. */
export function errorTexts(span: Span): TextFilter {
  const policy = spanInternals(span)?.policy;
  return policy?.redact === undefined ? (text) => text : textFilter(policy, fieldOf(span, 'error'));
}
