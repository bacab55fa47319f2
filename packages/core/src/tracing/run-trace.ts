import type { ModelTracing } from '../models/model.ts';
import type { TraceRecord } from '../state/record.ts';
import { createSpan, createTrace } from './create.ts';
import { withHarnessId } from './harness.ts';
import { finishItem, startItem } from './lifecycle.ts';
import { currentParent, spanUnder, traceIdOf, traceOf } from './make.ts';
import { isNoop, noopSpan, noopTrace } from './noop.ts';
import { notifyResume } from './processors.ts';
import { isDisabled, runtime } from './runtime.ts';
import { enterNoop, enterScope } from './scope.ts';
import { fieldOf, sensitiveDefault, sensitiveValue, textFilter } from './sensitive.ts';
import type { SpanPolicy, TextFilter } from './sensitive.ts';
import { setSensitive, spanInternals } from './span.ts';
import { continues, DEFAULT_WORKFLOW } from './trace-record.ts';
import { isRecording, LiveTrace, traceInternals } from './trace.ts';
import type { RedactField, RunTraceOptions, Span, SpanDataMap, SpanInit, SpanType, Trace } from './types.ts';

/** What the trace of a run depends on beside its options. */
export interface RunTraceOrigin {
  /** What the resumed state keeps of its trace. */
  readonly stored?: TraceRecord | undefined;
  /** Where a nested run hangs; default: the current span or trace. */
  readonly parent?: Trace | Span | undefined;
  /** Of the run's models; it may know who runs them. */
  readonly provider?: object | undefined;
}

/**
 * Where the spans of a run go, decided and started synchronously (TRACE-N1, N3): a trace of its own, the one that is
 * current, the one of an earlier segment, or nowhere.
 *
 * @internal
 */
export function startRunTrace(options: RunTraceOptions, from: RunTraceOrigin = {}): RunTrace {
  const { stored, parent, provider } = from;
  const workflowName = workflowOf(options, stored);
  if (isDisabled()) return new RunTrace(options, workflowName, 'off', noopTrace, false);
  if (options.tracingDisabled === true) return new RunTrace(options, workflowName, 'hidden', noopTrace, false);
  // Spans of an unrecorded trace are no-ops; the scope still knows the trace.
  const given = parent === undefined || isNoop(parent) ? (currentParent() ?? parent) : parent;
  const outer = given ?? ownTrace(options, workflowName, stored, provider);
  if (isNoop(outer)) return new RunTrace(options, workflowName, 'off', noopTrace, false);
  if (given !== undefined) traceInternals(outer.type === 'trace' ? outer : outer.trace)?.hold();
  return new RunTrace(options, workflowName, 'on', outer, given === undefined);
}

/** `off`: for the process or by the surroundings. `hidden`: for this run, whatever surrounds it (TRACE-N23). */
type Mode = 'on' | 'off' | 'hidden';

/** The tracing of one segment of a run. @internal */
export class RunTrace {
  /** A no-op one when `enabled` is false. */
  readonly trace: Trace;
  /** What the task span (without it the agent spans) hangs on: the trace, or the span that the run was called in. */
  readonly parent: Trace | Span;
  /** This segment began the trace, or took it up again, and ends it. */
  readonly owns: boolean;
  /** `false`: switched off for the process or the run, or called where nothing is traced. */
  readonly enabled: boolean;
  /** Somebody listens: spans are real. */
  readonly recording: boolean;
  readonly workflowName: string;
  readonly includeSensitive: boolean;
  readonly taskAndTurnSpans: boolean;
  readonly sessionSpans: boolean;
  readonly #mode: Mode;
  readonly #policy: SpanPolicy;
  #finished = false;
  /** Spans are of another maker, which passes nothing through the run's redaction: models put nothing on theirs then. */
  #unredacted = false;

  constructor(options: RunTraceOptions, workflowName: string, mode: Mode, parent: Trace | Span, owns: boolean) {
    this.parent = parent;
    this.trace = parent.type === 'trace' ? parent : parent.trace;
    this.owns = owns;
    this.enabled = mode === 'on';
    this.recording = this.enabled && isRecording(this.trace);
    this.workflowName = workflowName;
    // The environment is asked only where somebody could see something.
    this.includeSensitive = this.enabled && (options.traceIncludeSensitiveData ?? sensitiveDefault());
    this.taskAndTurnSpans = options.traceTaskAndTurnSpans ?? true;
    this.sessionSpans = options.traceSessionSpans ?? false;
    this.#mode = mode;
    this.#policy = {
      includeSensitive: this.includeSensitive,
      redact: options.traceRedact,
      open: this.recording ? new Set() : undefined,
      redactFailed: false,
    };
  }

  /** What the models of the run are told (TRACE-E13). */
  get modelTracing(): ModelTracing {
    if (!this.enabled) return 'disabled';
    return this.includeSensitive && !this.#unredacted ? 'enabled' : 'enabled_without_data';
  }

  /** A span of this run, not started. Nothing is made when nobody listens; give the data lazily where it costs. */
  span<K extends SpanType>(init: SpanInit<K>, parent: Trace | Span): Span<K> {
    if (!this.recording || isDisabled()) return noopSpan(init.type);
    const span = runtime().provider === undefined ? spanUnder(parent, init) : createSpan(init, { parent });
    const internals = spanInternals(span as unknown as Span);
    if (internals !== undefined) internals.policy = this.#policy;
    else if (this.#policy.redact !== undefined && !isNoop(span as unknown as Span)) this.#unredacted = true;
    return span;
  }

  /** A sensitive value as it may stand on a span (TRACE-E11, E15). */
  sensitive<T>(field: RedactField, value: T): T | undefined {
    return this.recording ? sensitiveValue(this.#policy, field, value) : undefined;
  }

  /** Puts a sensitive value on a span of this run, as far as it may stand there. */
  setSensitive<K extends SpanType, F extends keyof SpanDataMap[K] & string>(
    span: Span<K>,
    field: F,
    value: SpanDataMap[K][F],
  ): void {
    if (!this.recording || !this.includeSensitive) return;
    const base = span as unknown as Span;
    if (spanInternals(base) !== undefined) return setSensitive(span, field, value);
    const shown = this.sensitive(fieldOf(base, field), value);
    if (shown !== undefined) span.spanData[field] = shown;
  }

  /** The filter of texts for one field. */
  texts(field: RedactField): TextFilter {
    return textFilter(this.#policy, field);
  }

  /** Runs the whole segment in its scope: inside `parent`, or where nothing is traced. */
  run<R>(fn: () => R): R {
    if (this.#mode === 'off') return fn();
    return this.#mode === 'hidden' ? enterNoop(fn) : enterScope(this.parent, fn);
  }

  /** What is open now, leaves first. */
  openSpans(): readonly Span[] {
    return [...(this.#policy.open ?? [])].toReversed();
  }

  /** Ends what is open now, leaves first (TRACE-N18). `before` may set errors. */
  endOpenSpans(before?: (span: Span) => void): void {
    for (const span of this.openSpans()) {
      before?.(span);
      finishItem(span);
    }
  }

  /**
   * The segment is over: what its models and tools left open is ended, then the trace, if it is this run's. Spans that
   * the user made for work that goes on stay open.
   */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    for (const span of this.openSpans()) if (span.type !== 'custom') finishItem(span);
    this.#policy.open = undefined;
    if (!this.enabled) return;
    if (this.owns) finishItem(this.trace);
    else traceInternals(this.trace)?.release();
  }
}

/** The options' name; of a resumed run the state's, when the options have none but the default (TRACE-R1). */
function workflowOf({ workflowName }: RunTraceOptions, stored: TraceRecord | undefined): string {
  if (workflowName !== undefined && workflowName !== DEFAULT_WORKFLOW) return workflowName;
  return stored?.workflowName ?? DEFAULT_WORKFLOW;
}

function ownTrace(
  options: RunTraceOptions,
  workflowName: string,
  stored: TraceRecord | undefined,
  provider: object | undefined,
): Trace {
  const traceId = options.traceId ?? stored?.traceId;
  const groupId = options.groupId ?? stored?.groupId;
  const given = options.traceMetadata ?? stored?.metadata;
  // The environment is asked only where somebody could see it.
  const metadata = runtime().entries.length === 0 ? given : withHarnessId(given, provider);
  const apiKey = options.traceApiKey ?? stored?.apiKey;
  const { startedIds } = runtime();
  const reattached =
    stored !== undefined &&
    startedIds.has(stored.traceId) &&
    continues(stored, { traceId: traceId ?? '', workflowName, groupId, metadata, apiKey });
  const made = { traceId, groupId, metadata, apiKey };
  const makeOne = runtime().provider === undefined ? traceOf : createTrace;
  const trace = reattached ? new LiveTrace(workflowName, traceIdOf(traceId), made, true) : makeOne(workflowName, made);
  if (isNoop(trace)) return trace;
  if (stored !== undefined && isRecording(trace)) notifyResume(trace, stored.extra);
  startItem(trace);
  // Ours marks itself when it emits its start.
  if (traceInternals(trace) === undefined) startedIds.add(trace.traceId);
  return trace;
}
