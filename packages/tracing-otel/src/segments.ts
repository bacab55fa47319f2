import { propagation, ROOT_CONTEXT, trace as api } from '@opentelemetry/api';
import type { Context, Link, SpanContext } from '@opentelemetry/api';
import type { Span, Trace } from '@agents/core/tracing';
import { fromCarrier, Origins, toCarrier } from './carrier.ts';
import type { Origin } from './carrier.ts';
import { agents } from './names.ts';
import type { Node, SegmentState } from './node.ts';

type Carrier = Record<string, string>;

/** Where a trace begins, or goes on after a pause or in another process. */
export interface Beginning {
  readonly segment: SegmentState;
  readonly base: Context;
  /** It is resumed, and cannot go under where it began. */
  readonly startsAnew: boolean;
}

/** Keeps traces connected over their segments (TRACE-O18 to O20). */
export class Segments {
  readonly #maxAgeMs: number;
  readonly #origins = new Origins();
  /** Resumed traces before their first event, with what came along. */
  readonly #resumed = new WeakMap<Trace, Carrier | undefined>();

  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs;
  }

  resume(trace: Trace, carrier: Carrier | undefined): void {
    this.#resumed.set(trace, carrier);
  }

  /** @param active where the run was called */
  begin(trace: Trace, active: Context, nowMs: number | undefined): Beginning {
    const isResumed = this.#resumed.has(trace);
    const carrier = isResumed ? this.#resumed.get(trace) : undefined;
    if (isResumed) this.#resumed.delete(trace);
    const origin = isResumed ? this.#originOf(trace, carrier) : undefined;
    const goesOn = origin !== undefined && this.#isFresh(origin, nowMs);
    const links: Link[] = [];
    if (origin?.agent !== undefined) links.push(link(origin.agent, 'resume'));
    else if (origin !== undefined && !goesOn) links.push(link(origin.root, 'resume'));
    const segment: SegmentState = {
      links,
      origin: goesOn ? origin : undefined,
      interrupted: false,
      endsWithFirst: undefined,
      input: undefined,
      output: undefined,
    };
    if (!goesOn) return { segment, base: active, startsAnew: isResumed };
    // Baggage travels in the same headers.
    const base = carrier === undefined ? active : propagation.extract(active, carrier);
    return { segment, base: api.setSpanContext(base, origin.root), startsAnew: false };
  }

  /** What later segments go under, once it is known. */
  began(trace: Trace, root: Node): void {
    const { segment } = root;
    const spanContext = api.getSpanContext(root.context);
    if (spanContext !== undefined) segment.origin ??= { root: spanContext, agent: undefined, pausedAt: undefined };
    if (segment.origin !== undefined) this.#origins.set(trace.traceId, segment.origin);
  }

  /** A call waits for a decision: later segments know of its agent, and when that was. */
  paused({ segment, topAgent }: Node, call: Span): void {
    segment.interrupted = true;
    if (segment.origin === undefined) return;
    segment.origin = { ...segment.origin, agent: topAgent?.context, pausedAt: call.endTimeMs };
    this.#origins.set(call.traceId, segment.origin);
  }

  carrier(trace: Trace, root: Node | undefined): Carrier | undefined {
    const origin = root?.segment.origin ?? this.#origins.get(trace.traceId);
    return origin === undefined ? undefined : toCarrier(origin);
  }

  /** What came along says where it goes on; of traces of this process more is known. */
  #originOf(trace: Trace, carrier: Carrier | undefined): Origin | undefined {
    const own = this.#origins.get(trace.traceId);
    const given = fromCarrier(carrier) ?? this.#extracted(carrier);
    return given === undefined || given.root.spanId === own?.root.spanId ? own : given;
  }

  /** Headers of another format than W3C's, which the user's propagator knows. */
  #extracted(carrier: Carrier | undefined): Origin | undefined {
    if (carrier === undefined) return undefined;
    const root = api.getSpanContext(propagation.extract(ROOT_CONTEXT, carrier));
    return root === undefined ? undefined : { root, agent: undefined, pausedAt: undefined };
  }

  #isFresh({ pausedAt }: Origin, nowMs: number | undefined): boolean {
    return pausedAt === undefined || (nowMs ?? Date.now()) - pausedAt <= this.#maxAgeMs;
  }
}

export function link(to: SpanContext, kind: 'resume' | 'handoff'): Link {
  return { context: to, attributes: { [agents.linkKind]: kind } };
}
