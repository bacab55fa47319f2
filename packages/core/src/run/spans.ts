import type { AnyAgent } from '../agent/agent.ts';
import type { Handoff } from '../agent/handoff.ts';
import type { FunctionTool } from '../agent/tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { ModelTracing, Usage } from '../models/model.ts';
import type { StateRecord } from '../state/record.ts';
import type { Span, SpanUsage, Trace } from '../tracing/types.ts';
import type { Session } from '../sessions/contract.ts';
import type { ResolvedOptions } from './options.ts';
import type { ModelTimeoutError } from '../base/errors.ts';
import { resolveOutput } from '../agent/output.ts';
import { isTripwire, ModelBehaviorError, RunAbortedError } from '../base/errors.ts';
import { contextInternals } from '../state/context.ts';
import { isOfCallIds } from '../state/ledger.ts';
import { GuardrailSpan } from './guardrail-span.ts';
import type { GuardrailStage } from './guardrail-span.ts';
import { HandoffSpan } from './handoff-span.ts';
import { inSessionSpan } from './session-span.ts';
import type { SessionEffect } from './session-span.ts';
import { qualifiedNameOf } from '../state/lookup-key.ts';
import { failCancelled, FunctionSpan } from './function-span.ts';
import { getDefaultModelProvider } from '../models/provider.ts';
import { tracedInput } from '../models/traced-input.ts';
import { addDetails, failSpan, failSpanIfOk, finishItem, startItem } from '../tracing/lifecycle.ts';
import { startRunTrace } from '../tracing/run-trace.ts';
import type { RunTrace } from '../tracing/run-trace.ts';
import { runInScope } from '../tracing/scope.ts';
import { errorText, errorTypeOf, fieldOf } from '../tracing/sensitive.ts';
import type { TextFilter } from '../tracing/sensitive.ts';
import { traceRecordOf } from '../tracing/trace-record.ts';
import { writeUsage } from '../tracing/usage.ts';

interface SpansInit {
  readonly streamed: boolean;
  /** Of a nested run: the span that it goes under. */
  readonly parent: Trace | Span | undefined;
}

/** Opens the trace of a segment and its task span, synchronously: a parent that is current at the call is seen. */
export function startSpans(record: StateRecord, options: ResolvedOptions, from: SpansInit): RunSpans {
  const resumed = record.currentTurn > 0;
  const { streamed, parent } = from;
  const provider = options.modelProvider ?? getDefaultModelProvider();
  const run = startRunTrace(options, { stored: record.trace, parent, provider });
  try {
    const trace = traceRecordOf(run.trace, record.trace);
    const spans = new RunSpans(record, run, { streamed, resumed, nested: parent !== undefined });
    record.trace = trace;
    return spans;
  } catch (error) {
    run.finish();
    throw error;
  }
}

/** Counts of one task or turn; those of a run that it resumes stand elsewhere. */
class Counter {
  readonly total: Required<SpanUsage> = {
    requests: 0,
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    cachedInputTokens: 0,
    cacheWriteInputTokens: 0,
  };

  add(usage: Usage): void {
    const { total } = this;
    total.requests += usage.requests;
    total.inputTokens += usage.inputTokens;
    total.outputTokens += usage.outputTokens;
    total.totalTokens += usage.totalTokens;
    total.cachedInputTokens += usage.inputTokensDetails.cachedTokens;
    total.cacheWriteInputTokens += usage.inputTokensDetails.cacheWriteTokens;
  }
}

/** The spans of one segment: task, agent, turn, and those of its calls. Everything here is a flag test when nobody traces. */
export class RunSpans {
  readonly #run: RunTrace;
  /** As it was at the start. */
  readonly #record: StateRecord;
  /** Of the run's context: a state that was passed in gets one of its own on the way. */
  readonly #context: ReturnType<typeof contextInternals>;
  readonly #task: Span<'task'> | undefined;
  readonly #taskUsage = new Counter();
  #agent: { readonly span: Span<'agent'>; readonly agent: AnyAgent; hasInput: boolean } | undefined;
  #turn: Span<'turn'> | undefined;
  #turnUsage: Counter | undefined;

  constructor(
    record: StateRecord,
    run: RunTrace,
    details: { readonly streamed: boolean; readonly resumed: boolean; readonly nested: boolean },
  ) {
    this.#run = run;
    this.#record = record;
    if (run.recording && run.taskAndTurnSpans) {
      this.#task = run.span({ type: 'task', name: run.workflowName }, run.parent);
      addDetails(this.#task, details);
      startItem(this.#task);
    }
    this.#context = contextInternals(record.context);
    this.#context.trace = run.trace;
    this.#context.span = this.current?.type === 'trace' ? undefined : this.current;
  }

  /** `undefined` when the run is not traced. */
  get trace(): Trace | undefined {
    return this.#run.enabled ? this.#run.trace : undefined;
  }

  get workflowName(): string {
    return this.#run.workflowName;
  }

  /** What a new span hangs on now. */
  get current(): Trace | Span {
    return this.#turn ?? this.#agent?.span ?? this.#task ?? this.#run.parent;
  }

  get modelTracing(): ModelTracing {
    return this.#run.modelTracing;
  }

  /** Runs the whole segment in the scope of its task. */
  task<T>(work: () => Promise<T>): Promise<T> {
    return this.#task === undefined ? this.#run.run(work) : runInScope(this.#task, work);
  }

  /** Runs one turn under its span; it closes before what the turn decided is stored. */
  turn<T>(turn: number, agent: AnyAgent, work: () => Promise<T>): Promise<T> {
    return this.#run.recording ? this.#recordedTurn(turn, agent, work) : work();
  }

  async #recordedTurn<T>(turn: number, agent: AnyAgent, work: () => Promise<T>): Promise<T> {
    const owner = this.openAgent(agent);
    if (!this.#run.taskAndTurnSpans) return await runInScope(owner, work);
    const span = startItem(this.#run.span({ type: 'turn', turn, agentName: agent.name }, owner));
    this.#turn = span;
    const usage = (this.#turnUsage = new Counter());
    this.#setSpan(span);
    try {
      return await runInScope(span, work);
    } finally {
      writeUsage(span, usage.total);
      this.#turn = undefined;
      finishItem(span);
      this.#setSpan(owner);
    }
  }

  /** The span of the active agent, opened when there is none: on a resume before the interrupted turn is resolved. */
  openAgent(agent: AnyAgent): Span<'agent'> {
    if (this.#agent?.agent === agent) return this.#agent.span;
    const output = resolveOutput(agent);
    const outputType = output.type === 'text' ? 'str' : output.request.name;
    const span = this.#run.span(
      { type: 'agent', name: agent.name, handoffs: [], tools: [], outputType },
      this.#task ?? this.#run.parent,
    );
    if (this.#run.recording) addDetails(span, this.#conversation());
    startItem(span);
    this.#agent = { span, agent, hasInput: false };
    this.#setSpan(span);
    return span;
  }

  /** Which conversation the run is part of; the session's id is the user's own, and shown as their data are. */
  #conversation(): { conversationId?: string; sessionId?: string } {
    const { serverManaged, sessionId } = this.#record;
    return {
      ...(serverManaged?.conversationId !== undefined && { conversationId: serverManaged.conversationId }),
      ...(sessionId !== undefined && this.#run.includeSensitive && { sessionId }),
    };
  }

  /** Work of the agent outside its turns: on an interrupted turn that is resumed, at the turn limit. */
  async besideTurns<T>(agent: AnyAgent, work: () => Promise<T>): Promise<T> {
    return this.#run.recording ? await runInScope(this.openAgent(agent), work) : await work();
  }

  describeAgent(tools: readonly FunctionTool<never>[], handoffs: readonly Handoff<never>[]): void {
    if (this.#agent === undefined || !this.#run.recording) return;
    const { spanData } = this.#agent.span;
    spanData.tools = tools.map((tool) => tool.qualifiedName);
    spanData.handoffs = handoffs.map((handoff) => handoff.agentName);
  }

  /** The agent's stretch is over: what comes next is another agent's, or its own again. */
  leaveAgent(): void {
    if (this.#agent === undefined) return;
    finishItem(this.#agent.span);
    this.#agent = undefined;
    this.#context.span = this.current?.type === 'trace' ? undefined : this.current;
  }

  /** What the agent began with; later turns only add to it. */
  agentInput(input: readonly AgentInputItem[]): void {
    const at = this.#agent;
    if (at === undefined || at.hasInput || !this.#run.recording) return;
    at.hasInput = true;
    const shown = this.#run.sensitive(fieldOf(at.span, 'input'), tracedInput(input));
    if (shown !== undefined) addDetails(at.span, { input: shown });
  }

  agentOutput(output: unknown): void {
    const span = this.#agent?.span;
    if (span === undefined || !this.#run.recording) return;
    const shown = this.#run.sensitive(fieldOf(span, 'finalOutput'), output);
    if (shown !== undefined) addDetails(span, { finalOutput: shown });
  }

  countUsage(usage: Usage): void {
    if (!this.#run.recording) return;
    this.#taskUsage.add(usage);
    this.#turnUsage?.add(usage);
  }

  /** A model that does not stop when its time is over does not tell it either. */
  modelTimedOut(error: ModelTimeoutError): void {
    for (const span of this.#run.openSpans()) {
      if ((span.type !== 'response' && span.type !== 'generation') || span.parent !== this.current) continue;
      addDetails(span, { errorType: 'timeout' });
      failSpanIfOk(span, {
        message: 'Error getting response',
        data: { error: errorText(error, this.#texts(span)) },
      });
      finishItem(span);
    }
  }

  /** A fault that belongs to the turn, named as dashboards group it; an exception goes in as its text. */
  fail(message: string, data: Readonly<Record<string, unknown>> | { readonly exception: unknown }): void {
    const span = this.#turn ?? this.#agent?.span;
    if (span === undefined || !this.#run.recording) return;
    failSpan(span, {
      message,
      data: 'exception' in data ? { error: errorText(data.exception, this.#texts(span)) } : data,
    });
  }

  /** What texts of the turn's faults go through; absent where they may show nothing. */
  get errorTexts(): TextFilter {
    const span = this.#turn ?? this.#agent?.span;
    return span && this.#run.recording ? this.#texts(span) : undefined;
  }

  startFunction(
    call: ResponseFunctionToolCall,
    tool: FunctionTool<never> | undefined,
    agent: AnyAgent,
  ): FunctionSpan | undefined {
    if (!this.#run.recording) return undefined;
    const span = this.#run.span({ type: 'function', name: qualifiedNameOf(call.name, call.namespace) }, this.current);
    this.#run.setSensitive(span, 'input', call.arguments);
    addDetails(span, {
      toolCallId: call.call_id,
      toolType: 'function',
      toolDescription: tool?.description ?? '',
      agentName: agent.name,
    });
    startItem(span);
    return new FunctionSpan(span, this.#run, call.name);
  }

  /** Runs a handoff under its span. */
  async handoff<T>(
    call: ResponseFunctionToolCall,
    fromAgent: string,
    work: (span: HandoffSpan | undefined) => Promise<T>,
  ): Promise<T> {
    if (!this.#run.recording) return await work(undefined);
    const span = this.#run.span({ type: 'handoff', fromAgent }, this.current);
    addDetails(span, { toolCallId: call.call_id, toolName: call.name });
    startItem(span);
    return await new HandoffSpan(span, this.#run).within(work);
  }

  /** One call of the session: in the scope of the task, in a span of its own where the run shows those. */
  session<T>(effect: SessionEffect, session: Session | null | undefined, work: () => Promise<T>): Promise<T> {
    if (!this.#run.recording) return work();
    const owner = this.#task ?? this.#run.parent;
    if (!this.#run.sessionSpans) return runInScope(owner, work);
    return inSessionSpan(this.#run, { owner, effect, session }, work);
  }

  startGuardrail(name: string, stage: GuardrailStage, agentName: string, parallel: boolean): GuardrailSpan | undefined {
    if (!this.#run.recording) return undefined;
    const span = this.#run.span({ type: 'guardrail', name }, this.current);
    addDetails(span, { stage, agentName, parallel });
    startItem(span);
    return new GuardrailSpan(span, this.#run, name);
  }

  /** A guardrail stopped the run: its agent says so, and the turn whose input it was. */
  tripped(guardrail: string, type: 'input_guardrail' | 'output_guardrail'): void {
    if (!this.#run.recording) return;
    const error = { message: 'Guardrail tripwire triggered', data: { guardrail, type } };
    if (this.#turn) failSpan(this.#turn, error);
    if (this.#agent) failSpan(this.#agent.span, error);
  }

  /**
   * The agent span tells that the run failed, unless a narrower span says more (TRACE-E1). Calls that still run were told to
   * stop; after an abort everything that is open ends at once (TRACE-N18).
   */
  runFailed(error: unknown): void {
    if (!this.#run.recording) return;
    const stop = (span: Span): void => {
      if (span.type === 'function') failCancelled(span, error, span.spanData.name, this.#texts(span));
    };
    if (error instanceof RunAbortedError) {
      if (this.#agent) addDetails(this.#agent.span, { errorType: 'cancelled' });
      this.#run.endOpenSpans(stop);
      return;
    }
    for (const span of this.#run.openSpans()) stop(span);
    const span = this.#agent?.span as unknown as Span | undefined;
    if (span === undefined || (error instanceof ModelBehaviorError && !isOfCallIds(error))) return;
    addDetails(span, { errorType: errorTypeOf(error) });
    if (isTripwire(error)) return;
    failSpanIfOk(span, {
      message: 'Error in agent run',
      data: { error: errorText(error, this.#texts(span)) },
    });
  }

  /** What a paused run keeps of its trace: processors may know more of it now than when it began. */
  keepTrace(record: StateRecord): void {
    if (this.#run.recording) record.trace = traceRecordOf(this.#run.trace, record.trace);
  }

  /** The segment is over; nothing of it stays open. */
  end(): void {
    if (this.#run.recording) {
      if (this.#agent) finishItem(this.#agent.span);
      if (this.#task) {
        writeUsage(this.#task, this.#taskUsage.total);
        finishItem(this.#task);
      }
    }
    this.#run.finish();
  }

  #texts(span: Span<'turn'> | Span<'agent'> | Span): TextFilter {
    return this.#run.texts(fieldOf(span, 'error'));
  }

  #setSpan(span: Span<'turn'> | Span<'agent'>): void {
    this.#context.span = span as unknown as Span;
  }
}
