import type { ParsedArguments } from '../../agent/arguments.ts';
import type { FunctionTool, ToolOrigin } from '../../agent/tool.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { StoredDecision } from '../../state/record.ts';
import type { PendingNestedRun } from '../../state/agent-tool-runs.ts';
import type { RunEnv } from '../env.ts';
import type { FunctionSpan } from '../function-span.ts';
import type { CallVerdicts, Pass } from './pass.ts';
import type { PlannedFunctionCall } from './plan.ts';
import type { CustomDataExtractor } from '../../agent/custom-data.ts';
import type { ToolInputGuardrail } from '../../agent/guardrail.ts';
import { extractCustomData } from '../../agent/custom-data.ts';
import { invokeTool } from '../../agent/invoke.ts';
import type { InvokeOptions, ToolFailure, ToolInvocation } from '../../agent/invoke.ts';
import { toolInternals } from '../../agent/tool-internals.ts';
import type { ToolOutputOnWire } from '../../agent/tool-output-parts.ts';
import { resultText } from '../../agent/tool-result.ts';
import { ModelBehaviorError } from '../../base/errors.ts';
import { addCustomData, ToolCallOutputItem } from '../../items/items.ts';
import { tracedPart } from '../../models/traced-input.ts';
import { contextInternals, createToolContext } from '../../state/context.ts';
import { applyAnswer } from '../../state/doubt.ts';
import type { ToolContext } from '../../state/context.ts';
import { paused } from '../env.ts';
import { callSharedHooks } from '../hooks.ts';
import type { Batch } from './batch.ts';
import { callOutput, outputOnWire } from './call-output.ts';
import { gate, storedVerdict } from './gate.ts';
import type { Places } from './places.ts';
import { mayReenter } from './reenter.ts';
import type { ToolVerdict } from './tool-guardrails.ts';
import { notFoundText, rejectionText, exceptionText, tellDeveloper } from './texts.ts';

/** One call on its way: gate, then run, then commit (TOOL §5). */
export class CallRun {
  readonly #call: PlannedFunctionCall;
  readonly #pass: Pass;
  readonly #env: RunEnv;
  readonly #batch: Batch;
  readonly #places: Places;
  #toolContext: ToolContext<never> | undefined;
  /** What the tool's guardrails said, where it has any. */
  #verdicts: CallVerdicts | undefined;

  constructor(call: PlannedFunctionCall, pass: Pass, env: RunEnv, batch: Batch, places: Places) {
    this.#call = call;
    this.#pass = pass;
    this.#env = env;
    this.#batch = batch;
    this.#places = places;
  }

  run(waiting: ToolApprovalItem | undefined): Promise<void> {
    const { tool, paused } = this.#call;
    if (tool === undefined && paused === undefined && waiting === undefined && !this.#call.inDoubt)
      return this.#notFound();
    const span = this.#env.spans.startFunction(this.#call.call, tool, this.#pass.agent);
    const work = (under: FunctionSpan | undefined): Promise<void> =>
      paused ? this.#reentered(paused, under) : this.#gated(waiting, under);
    return span === undefined
      ? work(undefined)
      : span.within(
          () => work(span),
          () => this.#batch.cancelled(this.#call),
        );
  }

  async #gated(waiting: ToolApprovalItem | undefined, span: FunctionSpan | undefined): Promise<void> {
    const { tool } = this.#call;
    const verdict = await gate(this.#call, tool, waiting, this.#pass, this.#env, this.#beforeApproval(tool, span));
    if (this.#batch.closed) return;
    switch (verdict.type) {
      case 'wait':
        this.#pass.commitWaiting(this.#call, verdict.item, verdict.item === waiting, this.#verdicts);
        span?.pending();
        return;
      case 'reject':
        if (this.#batch.stopping) return;
        return await this.#reject(verdict.message, span);
      case 'run':
        if (verdict.approved) span?.approved();
        if (verdict.answer) applyAnswer(this.#pass.record, verdict.answer);
        return tool === undefined ? await this.#notFound() : await this.#execute(tool, verdict.parsed, span);
      case 'done':
        return this.#takeOutput(verdict.answer, span);
      case 'guarded':
        if (this.#batch.stopping) return;
        this.#markExecuted();
        return await this.#commitAnswer(verdict.tool, verdict.message, span);
      default:
        return verdict satisfies never;
    }
  }

  /** The call of an agent tool whose run is kept: it goes on where it stopped, or stays as it is (STATE-233). */
  async #reentered(paused: PendingNestedRun, span: FunctionSpan | undefined): Promise<void> {
    const { tool } = this.#call;
    const stored = storedVerdict(this.#call, this.#pass);
    if (stored?.type === 'reject') return await this.#reject(stored.message, span);
    const mayGoOn = await mayReenter(paused.record, this.#env);
    if (this.#batch.closed) return;
    if (!mayGoOn) return this.#pause(span);
    this.#pass.reentered = true;
    return tool === undefined ? await this.#notFound() : await this.#execute(tool, undefined, span);
  }

  #pause(span: FunctionSpan | undefined): void {
    this.#pass.commitPaused(this.#call, this.#verdicts);
    span?.interrupted();
  }

  async #execute(
    tool: FunctionTool<never>,
    parsed: ParsedArguments | undefined,
    span: FunctionSpan | undefined,
  ): Promise<void> {
    const place = this.#places.take(tool);
    if (place) await place;
    try {
      // A sibling failed while this call waited for its turn: it never starts.
      if (!this.#batch.stopping) await this.#invoke(tool, parsed, span);
    } catch (error) {
      // Told before the place is free, so that the next in line does not take it any more.
      this.#batch.failed(this.#call, error);
      throw error;
    } finally {
      this.#places.give(tool);
    }
  }

  async #invoke(
    tool: FunctionTool<never>,
    parsed: ParsedArguments | undefined,
    span: FunctionSpan | undefined,
  ): Promise<void> {
    const { agent, record } = this.#pass;
    const context = this.#context(span);
    const { inputGuardrails, outputGuardrails } = toolInternals(tool);
    // What goes before a nested run went before its first part (STATE-234).
    if (this.#call.paused === undefined) {
      this.#markExecuted();
      if (inputGuardrails && !(await this.#passes(inputGuardrails, tool, context, span))) return;
      const told = callSharedHooks(record, this.#env, (hooks) => hooks.onToolStart?.(context, agent, tool));
      if (told) await told;
      // A sibling failed meanwhile: the body does not begin any more.
      if (this.#batch.stopping) return;
    }
    const done = await this.#body(tool, context, parsed);
    if (this.#batch.closed) return;
    if (done.output === paused) return this.#pause(span);
    if (this.#batch.stopping) return;
    this.#batch.committing(this.#call);
    let { output, text } = done;
    if (done.failure) {
      output = await this.#answerTo(done.failure, output, span);
      if (this.#batch.closed) return;
    }
    if (outputGuardrails) {
      const { guardOutput } = await import('./tool-guardrails.ts');
      const verdict = await guardOutput(outputGuardrails, { context, agent, output }, this.#noted().output);
      if (this.#batch.closed) return;
      if (verdict.rejected) [output, text] = [verdict.message, undefined];
      // A guardrail may have taken something out of the value itself.
      else if (text !== undefined) text = resultText(output, tool.name);
    }
    const extracted = this.#commitAnswer(tool, output, span, text);
    if (extracted) await extracted;
    if (this.#batch.closed) return;
    const told = callSharedHooks(record, this.#env, (hooks) => hooks.onToolEnd?.(context, agent, tool, output));
    if (told) await told;
  }

  /** What the tool's input guardrails say. `false`: the body does not begin. */
  async #passes(
    guardrails: readonly ToolInputGuardrail<never>[],
    tool: FunctionTool<never>,
    context: ToolContext<never>,
    span: FunctionSpan | undefined,
  ): Promise<boolean> {
    const { guardInput } = await import('./tool-guardrails.ts');
    const verdict = await guardInput(guardrails, { context, agent: this.#pass.agent }, this.#noted().input);
    if (this.#batch.closed || this.#batch.stopping) return false;
    if (verdict.rejected) await this.#commitAnswer(tool, verdict.message, span);
    return !verdict.rejected;
  }

  /** The tool's body under its failure policy. That of an agent tool is a run, whose effects are its own. */
  #body(
    tool: FunctionTool<never>,
    context: ToolContext<never>,
    parsed: ParsedArguments | undefined,
  ): Promise<ToolInvocation> {
    const { call } = this.#call;
    const abort = (reason: unknown): void => this.#batch.abort(this.#call, reason);
    const { nested } = this.#env;
    if (nested && toolInternals(tool).agentTool) return this.#nestedBody(nested, tool, context, { parsed, abort });
    const effect = { kind: 'tool', toolName: tool.qualifiedName, callId: call.call_id } as const;
    return this.#env.step(effect, () => invokeTool(tool, context, call.arguments, { parsed, abort }));
  }

  async #nestedBody(
    nested: NonNullable<RunEnv['nested']>,
    tool: FunctionTool<never>,
    context: ToolContext<never>,
    { parsed, abort }: InvokeOptions,
  ): Promise<ToolInvocation> {
    const { call } = this.#call;
    const { record } = this.#pass;
    const env = this.#env;
    let fatal: { readonly error: unknown } | undefined;
    const done = await invokeTool(tool, context, call.arguments, {
      parsed: this.#call.paused ? { ok: true, value: undefined } : parsed,
      abort,
      body: async (args, ctx) => {
        try {
          return await nested({ tool, call, args, context: ctx, record, env });
        } catch (error) {
          if (this.#call.paused && isInDoubt(error)) fatal = { error };
          throw error;
        }
      },
    });
    if (fatal) throw fatal.error;
    return done;
  }

  /** The output is there, and what the tool's own code knows about it. */
  #commitAnswer(
    tool: FunctionTool<never>,
    output: unknown,
    span: FunctionSpan | undefined,
    text?: string,
  ): Promise<void> | undefined {
    this.#batch.committing(this.#call);
    const onWire = text ?? outputOnWire(this.#call.call, tool, output);
    const item = this.#commit(onWire, output, tool);
    span?.output(typeof onWire === 'string' ? output : onWire.map(tracedPart));
    const { customDataExtractor } = toolInternals(tool);
    return customDataExtractor && this.#addCustomData(tool, customDataExtractor, item, span);
  }

  async #addCustomData(
    tool: FunctionTool<never>,
    extractor: CustomDataExtractor<never>,
    item: ToolCallOutputItem,
    span: FunctionSpan | undefined,
  ): Promise<void> {
    const facts = extractCustomData(tool, extractor, this.#context(span), item);
    const data = await this.#env.control.race(facts);
    if (data && !this.#batch.closed) addCustomData(item, data);
  }

  /** Asks the tool's input guardrails before a person is asked, where the run wants that (TOOL-G6). */
  #beforeApproval(
    tool: FunctionTool<never> | undefined,
    span: FunctionSpan | undefined,
  ): (() => Promise<ToolVerdict>) | undefined {
    if (this.#env.options.toolExecution?.preApprovalToolInputGuardrails !== true) return undefined;
    const guardrails = tool && toolInternals(tool).inputGuardrails;
    if (guardrails === undefined) return undefined;
    return async () => {
      const { guardInput } = await import('./tool-guardrails.ts');
      return await guardInput(
        guardrails,
        { context: this.#context(span), agent: this.#pass.agent },
        this.#noted().input,
      );
    };
  }

  #noted(): CallVerdicts {
    return (this.#verdicts ??= { input: [], output: [] });
  }

  /** The text for the model in place of a failure that the tool's policy answered. */
  async #answerTo(failure: ToolFailure, output: unknown, span: FunctionSpan | undefined): Promise<unknown> {
    if (failure.handledBy === 'timeout') span?.timedOut(failure.error, 'error_handled');
    else span?.handledFailure(failure.error, failure.handledBy === 'default');
    if (failure.handledBy === 'default') tellDeveloper(this.#call.call, failure);
    // The formatter answers for tools without a run of their own (RUN-243).
    return failure.handledBy === 'default' && this.#call.tool?.origin.type === 'function'
      ? await exceptionText(this.#env, this.#call.call, String(output), failure.error)
      : output;
  }

  /** The call happened in an earlier life; somebody knows what it gave. */
  #takeOutput(answer: StoredDecision, span: FunctionSpan | undefined): void {
    const { tool, call } = this.#call;
    const readResult = tool && toolInternals(tool).readResult;
    // A text stands in place of a value, as one that answers a failure does.
    const told = readResult && typeof answer.output !== 'string' ? readResult(answer.output) : undefined;
    const output = told ? told.value : answer.output;
    this.#commit(told?.text ?? outputOnWire(call, tool, output), output, tool);
    applyAnswer(this.#pass.record, answer);
    span?.output(output);
  }

  async #reject(message: string | undefined, span: FunctionSpan | undefined): Promise<void> {
    this.#markExecuted();
    const text = await rejectionText(this.#env, this.#call.call, message);
    if (this.#batch.closed) return;
    const { call, tool } = this.#call;
    this.#commit(outputOnWire(call, tool, text), text, tool);
    span?.rejected(call, text);
  }

  /** @throws ModelBehaviorError unless the run tells the model instead */
  async #notFound(): Promise<void> {
    const { call } = this.#call;
    if (this.#env.options.toolNotFoundBehavior === 'raise_error') throw toolNotFound(call.name, this.#pass.agent.name);
    this.#markExecuted();
    const text = await notFoundText(this.#env, call);
    if (!this.#batch.closed) this.#commit(text, text, undefined);
  }

  #context(span: FunctionSpan | undefined): ToolContext<never> {
    const { call } = this.#call;
    return (this.#toolContext ??= createToolContext(this.#env.context, {
      agent: this.#pass.agent,
      toolCall: call,
      toolName: call.name,
      toolNamespace: call.namespace,
      toolCallId: call.call_id,
      toolArguments: call.arguments,
      attempt: this.#call.inDoubt ? 2 : 1,
      signal: () => this.#batch.signal(this.#call),
      runKey: this.#env.nesting?.runKey ?? this.#pass.record.runKey,
      path: this.#env.nesting?.path,
      span: span?.span,
    }) as ToolContext<never>);
  }

  #markExecuted(): void {
    contextInternals(this.#env.context).ledger.markExecuted(this.#call.call.call_id);
  }

  #commit(onWire: ToolOutputOnWire, output: unknown, tool: FunctionTool<never> | undefined): ToolCallOutputItem {
    const item = new ToolCallOutputItem(this.#pass.agent, callOutput(this.#call.call, onWire), {
      output,
      toolOrigin: tool?.origin ?? originOf(this.#call),
    });
    this.#pass.commitOutput(this.#call, item, this.#verdicts);
    return item;
  }
}

/**
 * A nested run that goes on again has a call in doubt: nobody may take that for a failure of the tool, it waits for an answer.
 */
function isInDoubt(error: unknown): boolean {
  return error instanceof ModelBehaviorError && error.code === 'call_executed_uncommitted';
}

/** Of a tool that is gone: what its item says. */
function originOf({ item }: PlannedFunctionCall): ToolOrigin | undefined {
  return item.type === 'tool_call_item' ? item.toolOrigin : undefined;
}

export function toolNotFound(name: string, agentName: string): ModelBehaviorError {
  return new ModelBehaviorError(`Tool ${name} not found in agent ${agentName}`);
}
