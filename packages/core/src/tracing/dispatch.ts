import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kindOf } from '../base/options.ts';
import { isNoopId } from './noop.ts';
import { notifySpan, notifyTrace } from './processors.ts';
import { remoteSpan } from './remote.ts';
import { isDisabled, runtime } from './runtime.ts';
import { spanDataFromWire } from './span-data-read.ts';
import { LiveSpan } from './span.ts';
import { epochMs } from './time.ts';
import { LiveTrace } from './trace.ts';
import { rawRecord } from './wire-record.ts';
import type { Span, SpanError, SpanOf, SpanType, SpanWire, Trace, TraceWire } from './types.ts';

/** Dispatched traces and spans that later records may name as theirs. */
const KNOWN = 4096;

/**
 * Sends a finished trace of another process (a durable-execution host, a file) to the processors: its start, then its end.
 * Ids are taken as they are; no scope is entered. Dispatch a trace before its spans, so that they know it.
 *
 * @throws UserError for anything but a trace record
 * @example for (const record of records) if (record.object === 'trace') dispatchTrace(record);
 */
export function dispatchTrace(trace: TraceWire): void {
  const wire: unknown = trace;
  if (!isObject(wire) || wire['object'] !== 'trace') throw refused('dispatchTrace()', 'trace', wire);
  const { id, workflow_name: name, group_id: groupId = null, metadata = null } = wire;
  need('dispatchTrace()', 'id', isId(id), id);
  need('dispatchTrace()', 'workflow_name', typeof name === 'string', name);
  need('dispatchTrace()', 'group_id', groupId === null || typeof groupId === 'string', groupId);
  need('dispatchTrace()', 'metadata', metadata === null || isObject(metadata), metadata);
  if (isSilent()) return;
  const item = new ReplayedTrace(trace);
  keep(item.traceId, item);
  notifyTrace('onTraceStart', item);
  notifyTrace('onTraceEnd', item);
}

/**
 * Sends a finished span of another process to the processors: its start, then its end. Ids and times are taken as they
 * are. A parent that was dispatched before is `span.parent`; another one is known by its id alone.
 *
 * @throws UserError for anything but a span record
 * @example for (const record of records) if (record.object === 'trace.span') dispatchSpan(record);
 */
export function dispatchSpan(span: SpanWire): void {
  checkSpanWire(span);
  if (isSilent()) return;
  const item = new ReplayedSpan(span, parentOf(span)) as SpanOf<SpanType> as Span;
  keep(keyOf(item.traceId, item.spanId), item);
  notifySpan('onSpanStart', item);
  notifySpan('onSpanEnd', item);
}

class ReplayedTrace extends LiveTrace {
  readonly #wire: TraceWire;

  constructor(wire: TraceWire) {
    const { id, workflow_name: name, group_id: groupId, metadata } = wire;
    super(name, id, { groupId: groupId ?? undefined, metadata: metadata ?? undefined }, true);
    this.#wire = wire;
  }

  override start(): this {
    return this;
  }

  override finish(): void {}

  override [rawRecord](): TraceWire {
    return { ...this.#wire };
  }
}

class ReplayedSpan extends LiveSpan<SpanType> {
  readonly #wire: SpanWire;

  constructor(wire: SpanWire, parent: Trace | Span) {
    const { type, data } = spanDataFromWire(wire);
    super({ type, spanId: wire.id, parent, spanData: data, startTimeMs: undefined });
    this.#wire = wire;
    this.startTimeMs = epochMs(wire.started_at);
    this.endTimeMs = epochMs(wire.ended_at);
    if (wire.error !== null && wire.error !== undefined) this.error = errorOf(wire.error);
  }

  override start(): this {
    return this;
  }

  override finish(): void {}

  override [rawRecord](): SpanWire {
    return { ...this.#wire, span_data: { ...this.#wire.span_data } };
  }
}

function errorOf({ message, data }: NonNullable<SpanWire['error']>): SpanError {
  return isObject(data) ? { message, data } : { message };
}

/** The oldest ones are forgotten: a replay is not to fill the memory. */
function keep(key: string, item: Trace | Span): void {
  const { dispatched } = runtime();
  dispatched.delete(key);
  dispatched.set(key, item);
  if (dispatched.size <= KNOWN) return;
  for (const oldest of dispatched.keys()) {
    dispatched.delete(oldest);
    return;
  }
}

function parentOf({ trace_id: traceId, parent_id: parentId }: SpanWire): Trace | Span {
  const { dispatched } = runtime();
  let trace = dispatched.get(traceId) as Trace | undefined;
  if (trace === undefined) {
    trace = new ReplayedTrace({ object: 'trace', id: traceId, workflow_name: '', group_id: null, metadata: null });
    keep(traceId, trace);
  }
  if (parentId === null) return trace;
  return dispatched.get(keyOf(traceId, parentId)) ?? remoteSpan(parentId, trace);
}

/** `JSON` keeps ids with any characters apart, and apart from ids of traces. */
function keyOf(traceId: string, spanId: string): string {
  return JSON.stringify([traceId, spanId]);
}

function isSilent(): boolean {
  return isDisabled() || runtime().entries.length === 0;
}

/** @throws UserError */
function checkSpanWire(wire: unknown): asserts wire is SpanWire {
  const where = 'dispatchSpan()';
  if (!isObject(wire) || wire['object'] !== 'trace.span') throw refused(where, 'trace.span', wire);
  const { id, trace_id: traceId, parent_id: parentId, started_at, ended_at, span_data: data, error = null } = wire;
  need(where, 'id', isId(id), id);
  need(where, 'trace_id', isId(traceId), traceId);
  need(where, 'parent_id', parentId === null || isId(parentId), parentId);
  need(where, 'span_data', isObject(data) && typeof data['type'] === 'string', data);
  for (const [name, time] of Object.entries({ started_at, ended_at }))
    need(where, name, time === null || (typeof time === 'string' && epochMs(time) !== undefined), time);
  need(where, 'error', error === null || (isObject(error) && typeof error['message'] === 'string'), error);
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !isNoopId(value);
}

function refused(where: string, object: string, given: unknown): UserError {
  return new UserError(`${where} takes a record whose member 'object' is '${object}', not ${kindOf(given)}.`);
}

function need(where: string, name: string, fine: boolean, value: unknown): void {
  if (!fine)
    throw new UserError(`${where}: member '${name}' of the record is not as the wire has it (${kindOf(value)}).`);
}
