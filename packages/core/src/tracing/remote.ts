import { UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { kinds } from '../base/options.ts';
import type { Check } from '../base/options.ts';
import { finishItem, startItem } from './lifecycle.ts';
import { currentParent, traceIdOf } from './make.ts';
import { isNoop } from './noop.ts';
import { injectAll, notifyRemote } from './processors.ts';
import { isDisabled } from './runtime.ts';
import { LiveSpan } from './span.ts';
import { DEFAULT_WORKFLOW } from './trace-record.ts';
import { isRecording, LiveTrace } from './trace.ts';
import type { Span, SpanOf, SpanType, Trace } from './types.ts';
import { scoped } from './with.ts';

/** Where another process takes up a trace: plain JSON, without the key. */
export interface RemoteTraceContext {
  traceId: string;
  /** Under which the other process goes on; without it directly under the trace. */
  spanId?: string;
  workflowName?: string;
  groupId?: string;
  metadata?: Record<string, unknown>;
  /** What the processors here inject (`traceparent`, …). */
  headers?: Record<string, string>;
}

/**
 * The place in the trace where this code runs, for a job or a message to another process; `undefined` outside of any trace
 * and where nothing is traced.
 *
 * @example
 * await queue.send({ order: 7, trace: getTraceContext() });
 */
export function getTraceContext(): RemoteTraceContext | undefined {
  const at = isDisabled() ? undefined : currentParent();
  if (at === undefined || isNoop(at)) return undefined;
  const trace = at.type === 'trace' ? at : at.trace;
  const headers = injectAll(at, {});
  return {
    traceId: trace.traceId,
    ...(at.type === 'trace' ? undefined : { spanId: at.spanId }),
    workflowName: trace.name,
    ...(trace.groupId === undefined ? undefined : { groupId: trace.groupId }),
    ...(Object.keys(trace.metadata).length === 0 ? undefined : { metadata: { ...trace.metadata } }),
    ...(Object.keys(headers).length === 0 ? undefined : { headers }),
  };
}

/**
 * Spans made in `fn` become children of the remote span. Of trace and span themselves nothing is emitted here: the process
 * that began them does that.
 *
 * @param context what `getTraceContext` gave there, or its JSON; members that are not known here are passed over
 * @throws UserError for malformed contexts; what `fn` throws, unchanged
 * @example
 * await withRemoteTraceContext(job.trace, () => run(worker, job.text));
 */
export function withRemoteTraceContext<R>(context: RemoteTraceContext | string, fn: () => R): R {
  const remote = readContext(context);
  if (isDisabled()) return fn();
  const trace = new LiveTrace(remote.workflowName ?? DEFAULT_WORKFLOW, traceIdOf(remote.traceId), remote, true);
  if (isRecording(trace)) notifyRemote(trace, remote.headers);
  startItem(trace);
  const at = remote.spanId === undefined ? trace : remoteSpan(remote.spanId, trace);
  return scoped(at, fn, () => finishItem(trace));
}

/**
 * Adds what the processors inject (OpenTelemetry: `traceparent`), for calls that carry headers.
 *
 * @param carrier headers that are there already; stays as it is
 * @param at default: the current span, else the current trace
 * @example
 * await fetch(url, { headers: injectTraceHeaders({ accept: 'application/json' }) });
 */
export function injectTraceHeaders(carrier: Record<string, string> = {}, at?: Trace | Span): Record<string, string> {
  const place = isDisabled() ? undefined : (at ?? currentParent());
  return place === undefined || isNoop(place) ? carrier : injectAll(place, carrier);
}

/** A span of another process: parent of spans here, and never emitted. */
class RemoteSpan extends LiveSpan<'custom'> {
  override start(): this {
    return this;
  }

  override finish(): void {}
}

/** Parent of what is made here. */
export function remoteSpan(spanId: string, trace: Trace): Span {
  const span = new RemoteSpan({
    type: 'custom',
    spanId,
    parent: trace,
    spanData: { name: 'remote', data: {} },
    startTimeMs: undefined,
    isRemote: true,
  });
  return span as SpanOf<SpanType> as Span;
}

const texts: Check = (value) =>
  isObject(value) && Object.values(value).every((member) => typeof member === 'string')
    ? undefined
    : 'an object of texts';

const MEMBERS: Readonly<Record<keyof RemoteTraceContext, Check>> = {
  traceId: kinds.nonEmptyString,
  spanId: kinds.nonEmptyString,
  workflowName: kinds.string,
  groupId: kinds.string,
  metadata: kinds.object,
  headers: texts,
};

/** @throws UserError that names the member, never its value */
function readContext(given: RemoteTraceContext | string): RemoteTraceContext {
  const context: unknown = typeof given === 'string' ? parsed(given) : given;
  if (!isObject(context) || (context['traceId'] ?? undefined) === undefined)
    throw new UserError('A remote trace context is what getTraceContext() gave, or its JSON: { traceId, spanId?, … }.');
  const read: Record<string, unknown> = {};
  for (const [name, check] of Object.entries(MEMBERS)) {
    const value = context[name];
    // JSON has no other way to say that there is none.
    if (value === undefined || value === null) continue;
    const expected = check(value);
    if (expected !== undefined) throw new UserError(`Member '${name}' of a remote trace context must be ${expected}.`);
    read[name] = value;
  }
  return read as unknown as RemoteTraceContext;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
