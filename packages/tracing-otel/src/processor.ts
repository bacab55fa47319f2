import { context, createContextKey, propagation, ROOT_CONTEXT, SpanStatusCode, trace as api } from '@opentelemetry/api';
import type { Attributes, Context, HrTime, Link, Span as OTelSpan, SpanOptions } from '@opentelemetry/api';
import { getLogger } from '@agents/core';
import type { Span, Trace, TraceProcessor } from '@agents/core/tracing';
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
import { fromCarrier, Origins, toCarrier } from './carrier.ts';
import type { Origin } from './carrier.ts';
import { Content } from './content.ts';
import { Shown } from './delta.ts';
import { failureOf } from './failure.ts';
import type { Failure } from './failure.ts';
import type { AgentState, Node, SegmentState } from './node.ts';
import { agents, common, contentAttributes, genAi } from './names.ts';
import { contentDefault, settingsOf } from './options.ts';
import type { OTelTraceOptions, Settings } from './options.ts';
import { Providers } from './providers.ts';

/** Spans of all processors of this package: those of another one are not the user's own. */
const ours = new WeakSet<OTelSpan>();

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
  /** In a context: the node whose code runs there. */
  readonly #key = createContextKey('@agents/tracing-otel');
  readonly #nodes = new WeakMap<Trace | Span, Node>();
  /** Resumed traces before their first event, with what is known of their beginning. */
  readonly #resumed = new WeakMap<Trace, Origin | undefined>();
  readonly #origins = new Origins();
  /** The oldest first. */
  readonly #open = new Set<Node>();
  #content: Content | false | undefined;
  #mapFailed = false;
  #closed = false;

  constructor(options: OTelTraceOptions = {}) {
    this.#settings = settingsOf(options);
    this.#providers = new Providers(this.#settings);
  }

  /** @internal */
  get isShutDown(): boolean {
    return this.#closed;
  }

  onTraceStart(trace: Trace): void {
    if (this.#closed || !this.#isWatched()) return;
    this.#startSegment(trace, trace.startTimeMs);
  }

  onTraceEnd(trace: Trace): void {
    const node = this.#nodes.get(trace);
    if (node === undefined || this.#closed) return;
    this.#providers.metrics?.workflow(trace, node.context);
    if (node.span !== undefined) this.#endRoot(node, trace, trace.endTimeMs);
  }

  onSpanStart(span: Span): void {
    if (this.#closed) return;
    const parent = this.#nodes.get(span.parent) ?? this.#adopted(span);
    if (parent === undefined) return;
    if (span.type === 'agent' && parent.agent === undefined) parent.segment.interrupted = false;
    if (this.#isCollapsed(span))
      this.#nodes.set(span, this.#node(parent, span, undefined, this.#parentContext(parent)));
    else this.#startSpan(span, parent);
  }

  onSpanEnd(span: Span): void {
    const node = this.#nodes.get(span);
    if (node === undefined || this.#closed) return;
    const failure = failureOf(span);
    if (span.type === 'function' && span.details.outcome === 'interrupted') this.#paused(node, span);
    this.#measure(span, node, failure);
    try {
      if (node.span !== undefined && this.#open.delete(node)) this.#endSpan(span, node, node.span, failure);
    } finally {
      const root = node.segment.endsWithFirst;
      if (root !== undefined && span.parent.type === 'trace') {
        node.segment.endsWithFirst = undefined;
        this.#endRoot(root, span.trace, span.endTimeMs);
      }
    }
  }

  bind<R>(at: Trace | Span, fn: () => R): R {
    const node = this.#nodes.get(at);
    if (node === undefined || this.#closed) return fn();
    const active = context.active();
    const owner = active.getValue(this.#key) as Node | undefined;
    if (owner === node && api.getSpan(active) === api.getSpan(node.context)) return fn();
    // What user code put into the context on the way stays, but nothing of another run's.
    return context.with(owner?.segment === node.segment ? this.#inside(active, node) : node.context, fn);
  }

  inject(at: Trace | Span, carrier: Record<string, string>): void {
    const node = this.#nodes.get(at);
    if (node !== undefined) propagation.inject(this.#parentContext(node), carrier);
  }

  getCarrier(trace: Trace): Record<string, string> | undefined {
    const origin = this.#nodes.get(trace)?.segment.origin ?? this.#origins.get(trace.traceId);
    return origin === undefined ? undefined : toCarrier(origin);
  }

  onTraceResume(trace: Trace, carrier: Record<string, string> | undefined): void {
    if (!this.#closed) this.#resumed.set(trace, this.#origins.get(trace.traceId) ?? fromCarrier(carrier));
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

  // ---- segments: a trace, or a part of it after a pause

  /** What a span hangs on that began before this processor could see it, or in another process. */
  #adopted(span: Span): Node | undefined {
    if (!this.#isWatched()) return undefined;
    const node = this.#nodes.get(span.trace) ?? this.#startSegment(span.trace, span.startTimeMs, true);
    this.#nodes.set(span.parent, node);
    return node;
  }

  /** `silent`: the trace has no start or end of its own here. */
  #startSegment(trace: Trace, startTimeMs: number | undefined, silent: boolean = false): Node {
    const active = this.#callerContext();
    const isResumed = this.#resumed.has(trace);
    const origin = this.#resumed.get(trace);
    this.#resumed.delete(trace);
    const goesOn = origin !== undefined && this.#isFresh(origin, startTimeMs);
    const base = goesOn ? api.setSpanContext(active, origin.root) : active;
    const links = origin === undefined ? [] : [link(origin.agent ?? origin.root, 'resume')];
    const segment: SegmentState = {
      links,
      origin: goesOn ? origin : undefined,
      interrupted: false,
      endsWithFirst: undefined,
      input: undefined,
      output: undefined,
    };
    const hasRoot = this.#settings.workflowSpan && (!silent || (isResumed && !goesOn));
    const node = hasRoot ? this.#startRoot(trace, segment, base, startTimeMs) : this.#bareRoot(segment, base);
    if (silent && node.span !== undefined) segment.endsWithFirst = node;
    this.#nodes.set(trace, node);
    const root = api.getSpanContext(node.context);
    if (root !== undefined) segment.origin ??= { root, agent: undefined, pausedAt: undefined };
    if (segment.origin !== undefined) this.#origins.set(trace.traceId, segment.origin);
    return node;
  }

  #isFresh({ pausedAt }: Origin, now: number | undefined): boolean {
    return pausedAt === undefined || (now ?? Date.now()) - pausedAt <= this.#settings.resumeMaxAgeMs;
  }

  #startRoot(trace: Trace, segment: SegmentState, base: Context, startTimeMs: number | undefined): Node {
    const { tracer } = this.#providers;
    if (tracer === undefined) return this.#bareRoot(segment, base);
    const span = tracer.startSpan(
      `invoke_workflow ${trace.name}`,
      {
        attributes: this.#mapped(traceStart(trace), trace),
        links: segment.links.splice(0),
        ...(startTimeMs !== undefined && { startTime: hrTime(startTimeMs) }),
      },
      base,
    );
    return this.#opened(this.#rootNode(segment, span, api.setSpan(base, span)));
  }

  #bareRoot(segment: SegmentState, base: Context): Node {
    return this.#rootNode(segment, undefined, base);
  }

  #rootNode(segment: SegmentState, span: OTelSpan | undefined, at: Context): Node {
    return this.#made({ span, segment, agent: undefined, topAgent: undefined, turn: undefined }, undefined, at);
  }

  #endRoot(node: Node, trace: Trace, endTimeMs: number | undefined): void {
    const { span, segment } = node;
    if (span === undefined || !this.#open.delete(node)) return;
    if (span.isRecording()) {
      const attributes: Attributes = {};
      if (segment.interrupted) attributes[agents.interrupted] = true;
      if (segment.input !== undefined) attributes[genAi.inputMessages] = segment.input;
      if (segment.output !== undefined) attributes[genAi.outputMessages] = segment.output;
      span.setAttributes(this.#mapped(attributes, trace));
    }
    span.end(endTimeMs === undefined ? undefined : hrTime(endTimeMs));
  }

  /** A call waits for a decision: later segments know of the agent, and when that was. */
  #paused(node: Node, span: Span): void {
    const { segment, topAgent } = node;
    segment.interrupted = true;
    if (segment.origin === undefined) return;
    segment.origin = { ...segment.origin, agent: topAgent?.context, pausedAt: span.endTimeMs };
    this.#origins.set(span.traceId, segment.origin);
  }

  // ---- spans

  #startSpan(span: Span, parent: Node): void {
    const at = this.#parentContext(parent);
    let started: OTelSpan | undefined;
    try {
      started = this.#providers.tracer?.startSpan(nameOf(span), this.#startOptions(span, parent), at);
    } finally {
      // What is inside a span that could not be made goes under the one around it.
      const inside = started === undefined ? at : api.setSpan(at, started);
      const node = this.#node(parent, span, started, inside);
      this.#nodes.set(span, node);
      if (started !== undefined) this.#opened(node);
    }
  }

  #startOptions(span: Span, parent: Node): SpanOptions {
    const links = parent.segment.links.splice(0);
    if (span.type === 'agent' && parent.handoff !== undefined) {
      if (parent.handoff.to === span.spanData.name) links.push(link(parent.handoff.context, 'handoff'));
      parent.handoff = undefined;
    }
    return {
      kind: kindOf(span),
      attributes: this.#mapped(spanStart(span, placeOf(span, parent)), span),
      ...(links.length > 0 && { links }),
      ...(span.startTimeMs !== undefined && { startTime: hrTime(span.startTimeMs) }),
    };
  }

  #endSpan(span: Span, node: Node, otel: OTelSpan, failure: Failure | undefined): void {
    try {
      if (otel.isRecording()) this.#describeEnd(span, node, otel, failure);
    } finally {
      otel.end(span.endTimeMs === undefined ? undefined : hrTime(span.endTimeMs));
    }
  }

  #describeEnd(span: Span, node: Node, otel: OTelSpan, failure: Failure | undefined): void {
    const content = this.#contentForm();
    const attributes = spanEnd(span, placeOf(span, node), content);
    if (content !== undefined && (span.type === 'response' || span.type === 'generation'))
      Object.assign(attributes, modelContent(span, this.#shownInput(span, node.agent), content));
    if (span.type === 'agent') noteContent(node, attributes);
    if (failure !== undefined) attributes[common.errorType] = failure.errorType;
    otel.setAttributes(this.#mapped(attributes, span));
    // Some names are known only now: those of models that an adapter chooses late.
    if (LATE_NAMES.has(span.type)) otel.updateName(nameOf(span));
    if (failure?.isError === true) fail(otel, failure, content !== undefined, span.endTimeMs);
    if (span.type === 'handoff') noteHandoff(span, this.#nodes.get(agentParent(span)), otel);
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

  // ---- nodes and contexts

  #node(parent: Node, span: Span, otel: OTelSpan | undefined, at: Context): Node {
    const agent: AgentState | undefined =
      span.type === 'agent'
        ? { span, context: otel?.spanContext(), calls: { model: 0, tool: 0 }, shown: undefined }
        : parent.agent;
    const turn = span.type === 'turn' ? span.spanData.turn : span.type === 'agent' ? undefined : parent.turn;
    const { segment } = parent;
    return this.#made({ span: otel, segment, agent, topAgent: parent.topAgent ?? agent, turn }, parent.emitted, at);
  }

  #made(parts: Omit<Node, 'context' | 'emitted' | 'handoff'>, around: Node | undefined, at: Context): Node {
    const node: { -readonly [K in keyof Node]: Node[K] } = {
      ...parts,
      context: at,
      emitted: around,
      handoff: undefined,
    };
    node.context = at.setValue(this.#key, node);
    if (node.span !== undefined) {
      ours.add(node.span);
      node.emitted = node;
    }
    return node;
  }

  /** Keeps it among the open ones; one too many ends the oldest. */
  #opened(node: Node): Node {
    this.#open.add(node);
    if (this.#open.size > this.#settings.maxOpenItems) {
      const [oldest] = this.#open;
      if (oldest !== undefined) {
        this.#open.delete(oldest);
        oldest.span?.setAttribute(agents.leaked, true);
        oldest.span?.end();
      }
    }
    return node;
  }

  /** Where a run was called: the active context, without spans of other processors. */
  #callerContext(): Context {
    const active = context.active();
    const span = api.getSpan(active);
    if (span === undefined || !ours.has(span)) return active;
    const owner = active.getValue(this.#key) as Node | undefined;
    const own = owner === undefined ? undefined : api.getSpan(owner.context);
    if (own === span) return active;
    return own === undefined ? api.deleteSpan(active) : api.setSpan(active, own);
  }

  /** In which a span under `parent` is made: inside a span that user code opened in between, where there is one. */
  #parentContext(parent: Node): Context {
    const active = context.active();
    if (active === ROOT_CONTEXT) return parent.context;
    const owner = active.getValue(this.#key) as Node | undefined;
    const span = api.getSpan(active);
    if (owner === undefined || span === undefined || ours.has(span)) return parent.context;
    if (owner.segment !== parent.segment || owner.emitted !== parent.emitted) return parent.context;
    const around = api.getSpanContext(parent.context);
    return around === undefined || around.traceId === span.spanContext().traceId ? active : parent.context;
  }

  #inside(active: Context, node: Node): Context {
    const span = api.getSpan(node.context);
    return (span === undefined ? active : api.setSpan(active, span)).setValue(this.#key, node);
  }

  // ---- attributes

  #contentForm(): Content | undefined {
    this.#content ??=
      (this.#settings.captureContent ?? contentDefault()) && new Content(this.#settings.maxContentLength);
    return this.#content === false ? undefined : this.#content;
  }

  /** The user's last word. Where it fails, what people said is left out. */
  #mapped(attributes: Attributes, item: Trace | Span): Attributes {
    const { mapAttributes } = this.#settings;
    if (mapAttributes === undefined) return attributes;
    try {
      return present(mapAttributes(attributes, item));
    } catch {
      if (!this.#mapFailed) getLogger('tracing').error('mapAttributes failed; content is left out.');
      this.#mapFailed = true;
      return present(attributes, contentAttributes);
    }
  }
}

const LATE_NAMES: ReadonlySet<string> = new Set(['response', 'generation', 'handoff']);

function present(attributes: Attributes, without: readonly string[] = []): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).filter(([name, value]) => value !== undefined && !without.includes(name)),
  );
}

function placeOf(span: Span, node: Node): Place {
  const { agent, turn } = node;
  const details = span.details as { agentName?: string; turn?: number; conversationId?: string };
  const around = agent?.span.details;
  return {
    agentName: details.agentName ?? agent?.span.spanData.name,
    turn: details.turn ?? turn,
    conversationId: details.conversationId ?? around?.conversationId ?? around?.sessionId ?? span.trace.groupId,
    outputType: agent === undefined ? undefined : outputTypeOf(agent.span.spanData.outputType),
  };
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

function link(to: Link['context'], kind: 'resume' | 'handoff'): Link {
  return { context: to, attributes: { [agents.linkKind]: kind } };
}

/** Numbers would be taken for times since the process began, where they are small. */
function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.min(999_999_999, Math.round((epochMs - seconds * 1000) * 1e6))];
}
