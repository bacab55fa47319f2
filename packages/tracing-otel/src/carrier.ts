import { createTraceState, isSpanContextValid } from '@opentelemetry/api';
import type { SpanContext } from '@opentelemetry/api';

/** What later segments of a run need to know of the earlier ones. */
export interface Origin {
  /** What they go under: the root span of the run, or what that would be under. */
  readonly root: SpanContext;
  /** The span of the agent that paused. */
  readonly agent: SpanContext | undefined;
  /** Epoch milliseconds. */
  readonly pausedAt: number | undefined;
}

/** Plain JSON for a state: W3C texts, and when the run paused. */
export function toCarrier({ root, agent, pausedAt }: Origin): Record<string, string> {
  const state = root.traceState?.serialize();
  return {
    traceparent: traceparentOf(root),
    ...(state && { tracestate: state }),
    ...(agent && { interrupted: traceparentOf(agent) }),
    ...(pausedAt !== undefined && { paused_at: new Date(pausedAt).toISOString() }),
  };
}

/** `undefined` for anything but a carrier that can be gone on with: states are kept by others. */
export function fromCarrier(carrier: unknown): Origin | undefined {
  if (typeof carrier !== 'object' || carrier === null) return undefined;
  const { traceparent, tracestate, interrupted, paused_at: paused } = carrier as Readonly<Record<string, unknown>>;
  const root = fromTraceparent(traceparent);
  if (root === undefined) return undefined;
  const pausedAt = typeof paused === 'string' ? Date.parse(paused) : Number.NaN;
  return {
    root: typeof tracestate === 'string' ? { ...root, traceState: createTraceState(tracestate) } : root,
    agent: fromTraceparent(interrupted),
    pausedAt: Number.isNaN(pausedAt) ? undefined : pausedAt,
  };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

function fromTraceparent(text: unknown): SpanContext | undefined {
  const match = typeof text === 'string' ? /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/u.exec(text) : null;
  const [, traceId = '', spanId = '', flags = ''] = match ?? [];
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags || '0', 16), isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}

const REMEMBERED = 4096;

/** Origins of the traces of this process, the latest ones. */
export class Origins {
  #latest = new Map<string, Origin>();
  #earlier: ReadonlyMap<string, Origin> = new Map();

  get(traceId: string): Origin | undefined {
    return this.#latest.get(traceId) ?? this.#earlier.get(traceId);
  }

  /** Of as many as are remembered at least, at most of twice as many. */
  set(traceId: string, origin: Origin): void {
    if (this.#latest.size >= REMEMBERED) {
      this.#earlier = this.#latest;
      this.#latest = new Map();
    }
    this.#latest.set(traceId, origin);
  }
}
