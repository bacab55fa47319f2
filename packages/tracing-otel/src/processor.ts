import { propagation, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Context, HrTime, Span as OTelSpan, SpanOptions } from '@opentelemetry/api';
import type { Span, Trace, TraceProcessor } from '@agents/core/tracing';
import { attached } from './attached.ts';
import {
  kindOf,
  modelContent,
  modelInput,
  nameOf,
  outputTypeOf,
  spanEnd,
  spanStart,
  traceStart,
} from './attributes.ts';
import type { Place } from './attributes.ts';
import { Contexts } from './contexts.ts';
import { Shown } from './delta.ts';
import { failureOf } from './failure.ts';
import type { Failure } from './failure.ts';
import { Mapping } from './mapping.ts';
import { agents, common, genAi } from './names.ts';
import type { AgentState, Node, SegmentState } from './node.ts';
import { settingsOf } from './options.ts';
import type { OTelTraceOptions, Settings } from './options.ts';
import { Providers } from './providers.ts';
import { link, Segments } from './segments.ts';

/**
 * Makes OpenTelemetry spans and metrics of runs. The span of a tool, model call or guardrail is OpenTelemetry's active span
 * while its code runs, so that spans of instrumented libraries go under it.
 *
 * @throws UserError for unknown options and wrong kinds
 * @example
 * addTraceProcessor(new OTelTraceProcessor({ captureContent: true }));
 */
export class OTelTraceProcessor implements TraceProcessor {
  /** The SDK's exporters have queues. */
  readonly needsExitFlush: boolean = true;
  readonly carrierKey: string = 'otel';
  readonly #settings: Settings;
  readonly #providers: Providers;
  readonly #mapping: Mapping;
  readonly #segments: Segments;
  readonly #contexts = new Contexts();
  readonly #nodes = attached<Trace | Span, Node>();
  /** The oldest first. */
  readonly #open = new Set<Node>();
  #closed = false;

  constructor(options: OTelTraceOptions = {}) {
    this.#settings = settingsOf(options);
    this.#providers = new Providers(this.#settings);
    this.#mapping = new Mapping(this.#settings);
    this.#segments = new Segments(this.#settings.resumeMaxAgeMs);
  }

  /** @internal */
  get isShutDown(): boolean {
    return this.#closed;
  }

  onTraceStart(trace: Trace): void {
    if (!this.#closed && this.#isWatched()) this.#startSegment(trace, trace.startTimeMs, true);
  }

  onTraceEnd(trace: Trace): void {
    const node = this.#nodes.get(trace);
    if (node === undefined || this.#closed) return;
    this.#providers.metrics?.workflow(trace, node.context);
    this.#endRoot(node, trace, trace.endTimeMs);
  }

  onSpanStart(span: Span): void {
    if (this.#closed) return;
    const parent = this.#nodes.get(span.parent) ?? this.#adopted(span);
    if (parent === undefined) return;
    if (span.type === 'agent' && parent.agent === undefined) parent.segment.interrupted = false;
    const at = this.#contexts.under(parent);
    if (this.#isCollapsed(span)) this.#nodes.set(span, this.#node(parent, span, at));
    else this.#startSpan(span, parent, at);
  }

  onSpanEnd(span: Span): void {
    const node = this.#nodes.get(span);
    if (node === undefined || this.#closed) return;
    const failure = this.#failureOf(span, node);
    if (span.type === 'function' && span.details.outcome === 'interrupted') this.#segments.paused(node, span);
    this.#measure(span, node, failure);
    try {
      if (node.span !== undefined && this.#open.delete(node)) this.#endSpan(span, node, node.span, failure);
    } finally {
      const root = node.segment.endsWithFirst;
      if (root !== undefined && this.#nodes.get(span.parent) === root) {
        node.segment.endsWithFirst = undefined;
        this.#endRoot(root, span.trace, span.endTimeMs);
      }
    }
  }

  bind<R>(at: Trace | Span, fn: () => R): R {
    const node = this.#nodes.get(at);
    return node === undefined || this.#closed ? fn() : this.#contexts.run(node, fn);
  }

  inject(at: Trace | Span, carrier: Record<string, string>): void {
    const node = this.#nodes.get(at);
    if (node !== undefined) propagation.inject(this.#contexts.under(node), carrier);
  }

  getCarrier(trace: Trace): Record<string, string> | undefined {
    return this.#segments.carrier(trace, this.#nodes.get(trace));
  }

  onTraceResume(trace: Trace, carrier: Record<string, string> | undefined): void {
    if (!this.#closed) this.#segments.resume(trace, carrier);
  }

  /** Of the providers; those that cannot flush are left alone. */
  async forceFlush(): Promise<void> {
    await this.#providers.forceFlush();
  }

  /** Ends what is open and flushes. The providers are their makers' to shut down. */
  async shutdown(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const { span } of this.#open) {
      span?.setAttribute(common.errorType, 'shutdown');
      span?.end();
    }
    this.#open.clear();
    await this.#providers.forceFlush();
  }

  #isWatched(): boolean {
    return this.#providers.tracer !== undefined || this.#providers.metrics !== undefined;
  }

  #isCollapsed(span: Span): boolean {
    if (this.#providers.tracer === undefined) return true;
    if (span.type === 'task' || span.type === 'turn') return !this.#settings.taskAndTurnSpans;
    return this.#settings.modelSpans === 'external' && (span.type === 'response' || span.type === 'generation');
  }

  /** What a span hangs on that began before this processor could see it, in an earlier segment, or in another process. */
  #adopted(span: Span): Node | undefined {
    if (!this.#isWatched()) return undefined;
    const node = this.#nodes.get(span.trace) ?? this.#startSegment(span.trace, span.startTimeMs, false);
    this.#nodes.set(span.parent, node);
    return node;
  }

  /** `isTold`: the trace has a start and an end here. Another one that cannot go on has a root that ends with its first span. */
  #startSegment(trace: Trace, startTimeMs: number | undefined, isTold: boolean): Node {
    const { segment, base, startsAnew } = this.#segments.begin(trace, this.#contexts.caller(), startTimeMs);
    const hasRoot = this.#settings.workflowSpan && (isTold || startsAnew);
    const node: Node = {
      span: hasRoot ? this.#startRoot(trace, segment, base, startTimeMs) : undefined,
      context: base,
      emitted: undefined,
      segment,
      agent: undefined,
      topAgent: undefined,
      turn: undefined,
      started: undefined,
      handoff: undefined,
    };
    const { span } = node;
    this.#contexts.enter(node);
    this.#nodes.set(trace, node);
    if (span !== undefined) {
      this.#opened(node);
      if (!isTold) segment.endsWithFirst = node;
    }
    this.#segments.began(trace, node);
    return node;
  }

  #startRoot(
    trace: Trace,
    segment: SegmentState,
    base: Context,
    startTimeMs: number | undefined,
  ): OTelSpan | undefined {
    const options: SpanOptions = { attributes: this.#mapping.map(traceStart(trace), trace) };
    if (segment.links.length > 0) options.links = segment.links.splice(0);
    if (startTimeMs !== undefined) options.startTime = hrTime(startTimeMs);
    return this.#providers.tracer?.startSpan(`invoke_workflow ${trace.name}`, options, base);
  }

  #endRoot(node: Node, trace: Trace, endTimeMs: number | undefined): void {
    const { span, segment } = node;
    if (span === undefined || !this.#open.delete(node)) return;
    if (span.isRecording()) {
      const attributes: Attributes = {};
      if (segment.interrupted) attributes[agents.interrupted] = true;
      if (segment.input !== undefined) attributes[genAi.inputMessages] = segment.input;
      if (segment.output !== undefined) attributes[genAi.outputMessages] = segment.output;
      span.setAttributes(this.#mapping.map(attributes, trace));
    }
    span.end(endTimeMs === undefined ? undefined : hrTime(endTimeMs));
  }

  #startSpan(span: Span, parent: Node, at: Context): void {
    const attributes = spanStart(span, agentNameOf(span, parent.agent));
    let started: OTelSpan | undefined;
    try {
      started = this.#providers.tracer?.startSpan(nameOf(span), this.#startOptions(span, parent, attributes), at);
    } finally {
      // What is inside a span that could not be made goes under the one around it.
      const node = this.#node(parent, span, at, started, attributes);
      this.#nodes.set(span, node);
      if (started !== undefined) this.#opened(node);
    }
  }

  #startOptions(span: Span, parent: Node, attributes: Attributes): SpanOptions {
    const options: SpanOptions = { kind: kindOf(span), attributes: this.#mapping.map(attributes, span) };
    const { segment, handoff } = parent;
    if (segment.links.length > 0) options.links = segment.links.splice(0);
    if (span.type === 'agent' && handoff !== undefined) {
      if (handoff.to === span.spanData.name)
        options.links = [...(options.links ?? []), link(handoff.context, 'handoff')];
      parent.handoff = undefined;
    }
    if (span.startTimeMs !== undefined) options.startTime = hrTime(span.startTimeMs);
    return options;
  }

  #endSpan(span: Span, node: Node, otel: OTelSpan, failure: Failure | undefined): void {
    try {
      if (span.type === 'handoff') noteHandoff(span, this.#nodes.get(agentParent(span)), otel);
      if (otel.isRecording()) this.#describeEnd(span, node, otel, failure);
    } finally {
      otel.end(span.endTimeMs === undefined ? undefined : hrTime(span.endTimeMs));
    }
  }

  #describeEnd(span: Span, node: Node, otel: OTelSpan, failure: Failure | undefined): void {
    const { content } = this.#mapping;
    const attributes = spanEnd(span, placeOf(span, node), node.started, content);
    if (content !== undefined && (span.type === 'response' || span.type === 'generation'))
      Object.assign(attributes, modelContent(span, this.#shownInput(span, node.agent), content));
    if (span.type === 'agent') noteContent(node, attributes);
    if (failure !== undefined) attributes[common.errorType] = failure.errorType;
    otel.setAttributes(this.#mapping.map(attributes, span));
    // An adapter may know the name of its model only now.
    if (genAi.requestModel in attributes) otel.updateName(nameOf(span));
    if (failure?.isError === true) fail(otel, failure, content !== undefined, span.endTimeMs);
  }

  #shownInput(
    span: Span<'response'> | Span<'generation'>,
    agent: AgentState | undefined,
  ): readonly unknown[] | undefined {
    const input = modelInput(span);
    if (this.#settings.inputMessages === 'full' || agent === undefined || input === undefined) return input;
    agent.shown ??= new Shown();
    const fresh = agent.shown.fresh(input);
    const output: unknown = span.type === 'response' ? span.spanData.response?.output : span.spanData.output;
    if (Array.isArray(output)) agent.shown.add(output as unknown[]);
    return fresh;
  }

  /** Of a turn without a span the agent tells: nobody else would, if it was the last one. */
  #failureOf(span: Span, { span: otel, agent }: Node): Failure | undefined {
    const failure = failureOf(span);
    if (span.type === 'turn' && otel === undefined && agent !== undefined) agent.turnFailure = failure;
    return span.type === 'agent' ? (failure ?? agent?.turnFailure) : failure;
  }

  #measure(span: Span, node: Node, failure: Failure | undefined): void {
    const { metrics } = this.#providers;
    if (span.type === 'response' || span.type === 'generation') {
      if (node.agent !== undefined) node.agent.calls.model++;
      if (this.#settings.modelSpans === 'emit') metrics?.model(span, failure, node.context);
    } else if (span.type === 'function') {
      // A call that waits, or was rejected, did not run.
      if (span.details.outcome === 'interrupted' || span.details.outcome === 'rejected') return;
      if (node.agent !== undefined) node.agent.calls.tool++;
      metrics?.tool(span, failure, node.context);
    } else if (span.type === 'agent' && node.agent !== undefined) {
      metrics?.agent(span, node.agent.calls, failure, node.context);
    }
  }

  #node(parent: Node, span: Span, at: Context, otel?: OTelSpan, started?: Attributes): Node {
    const agent: AgentState | undefined =
      span.type === 'agent'
        ? { span, context: otel?.spanContext(), calls: { model: 0, tool: 0 }, turnFailure: undefined, shown: undefined }
        : parent.agent;
    const turn = span.type === 'turn' ? span.spanData.turn : span.type === 'agent' ? undefined : parent.turn;
    const node: Node = {
      span: otel,
      context: at,
      emitted: parent.emitted,
      segment: parent.segment,
      agent,
      topAgent: parent.topAgent ?? agent,
      turn,
      started,
      handoff: undefined,
    };
    this.#contexts.enter(node);
    return node;
  }

  /** Keeps it among the open ones; one too many ends the oldest. */
  #opened(node: Node): void {
    this.#open.add(node);
    if (this.#open.size <= this.#settings.maxOpenItems) return;
    const [oldest] = this.#open;
    if (oldest === undefined) return;
    this.#open.delete(oldest);
    oldest.span?.setAttribute(agents.leaked, true);
    oldest.span?.end();
  }
}

function placeOf(span: Span, node: Node): Place {
  const { agent, turn } = node;
  const details = span.details as { turn?: number; conversationId?: string };
  const around = agent?.span.details;
  return {
    turn: details.turn ?? turn,
    conversationId: details.conversationId ?? around?.conversationId ?? around?.sessionId ?? span.trace.groupId,
    outputType: agent === undefined ? undefined : outputTypeOf(agent.span.spanData.outputType),
  };
}

function agentNameOf({ details }: Span, agent: AgentState | undefined): string | undefined {
  return (details as { agentName?: string }).agentName ?? agent?.span.spanData.name;
}

/** The content of the root is what its outermost agents got and said. */
function noteContent({ segment, agent, topAgent }: Node, attributes: Attributes): void {
  if (agent !== topAgent) return;
  const { [genAi.inputMessages]: input, [genAi.outputMessages]: output } = attributes;
  if (typeof input === 'string') segment.input ??= input;
  if (typeof output === 'string') segment.output = output;
}

/** What the agent of a handoff hangs on: the next one goes there too. */
function agentParent(span: Span): Trace | Span {
  let at: Trace | Span = span;
  while (at.type !== 'trace' && at.type !== 'agent') at = at.parent;
  return at.type === 'agent' ? at.parent : at;
}

function noteHandoff({ spanData }: Span<'handoff'>, around: Node | undefined, otel: OTelSpan): void {
  if (around !== undefined && spanData.toAgent !== undefined)
    around.handoff = { context: otel.spanContext(), to: spanData.toAgent };
}

function fail(otel: OTelSpan, failure: Failure, showsContent: boolean, endTimeMs: number | undefined): void {
  const { message, errorType } = failure;
  const detail = showsContent ? failure.detail : undefined;
  const description = message ?? detail;
  otel.setStatus({ code: SpanStatusCode.ERROR, ...(description !== undefined && { message: description }) });
  otel.recordException(
    { name: errorType, message: detail ?? '' },
    endTimeMs === undefined ? undefined : hrTime(endTimeMs),
  );
}

/** Numbers would be taken for times since the process began, where they are small. */
function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.min(999_999_999, Math.round((epochMs - seconds * 1000) * 1e6))];
}
