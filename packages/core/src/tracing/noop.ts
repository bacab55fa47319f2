import type { Frame } from './runtime.ts';
import { dataOf } from './span-data.ts';
import type { Span, SpanDataMap, SpanDetails, SpanOf, SpanType, Trace } from './types.ts';

const NO_OP = 'no-op';
const NO_DETAILS = Object.freeze({});

/** The trace of everything that is not traced. Shared; takes everything, keeps nothing (TRACE-M4). */
export const noopTrace: Trace = Object.freeze<Trace>({
  type: 'trace',
  traceId: NO_OP,
  name: NO_OP,
  groupId: undefined,
  metadata: Object.freeze({}),
  startTimeMs: undefined,
  endTimeMs: undefined,
  apiKey: undefined,
  isNoop: true,
  start() {
    return this;
  },
  finish() {},
  toJSON: () => undefined,
  [Symbol.dispose]() {},
});

class NoopSpan<K extends SpanType> implements SpanOf<K> {
  readonly type: K;
  readonly spanId: string = NO_OP;
  readonly traceId: string = NO_OP;
  readonly parentId: undefined = undefined;
  readonly parent: Trace = noopTrace;
  readonly trace: Trace = noopTrace;
  readonly details: Readonly<SpanDetails<K>> = NO_DETAILS as SpanDetails<K>;
  readonly error: undefined = undefined;
  readonly startTimeMs: undefined = undefined;
  readonly endTimeMs: undefined = undefined;
  readonly isNoop: boolean = true;

  constructor(type: K) {
    this.type = type;
    Object.freeze(this);
  }

  /** A new object each time: shared ones would keep what somebody wrote. */
  get spanData(): SpanDataMap[K] {
    return EMPTY[this.type]?.() ?? ({} as SpanDataMap[K]);
  }

  start(): this {
    return this;
  }
  finish(): void {}
  setError(): void {}
  toJSON(): undefined {
    return undefined;
  }
  [Symbol.dispose](): void {}
}

/** What a span of each type has at least. */
const EMPTY: { readonly [K in SpanType]?: () => SpanDataMap[K] } = {
  agent: () => dataOf({ type: 'agent', name: '' }),
  task: () => ({ name: '' }),
  turn: () => ({ turn: 0, agentName: '' }),
  function: () => ({ name: '' }),
  guardrail: () => dataOf({ type: 'guardrail', name: '' }),
  custom: () => dataOf({ type: 'custom', name: '' }),
};

const spans = new Map<string, Span>();

/** The one no-op span of a type. */
export function noopSpan<K extends SpanType>(type: K): Span<K> {
  let span = spans.get(type);
  if (span === undefined) {
    span = new NoopSpan(type) as SpanOf<SpanType> as Span;
    spans.set(type, span);
  }
  return span as Span<K>;
}

/** The scope in which nothing is traced. */
export const noopFrame: Frame = Object.freeze({ trace: noopTrace, span: noopSpan('custom') });

/** Also tells for traces and spans of other makers, and for no-op ones of another copy. */
export function isNoop(item: Trace | Span): boolean {
  return item.isNoop || (item.type === 'trace' ? item.traceId : item.spanId) === NO_OP;
}

/** An id that asks for a no-op. */
export function isNoopId(id: string | undefined): boolean {
  return id === NO_OP;
}
