import { brand, internal } from '../base/brand.ts';
import { sha256Base64Url } from '../base/digest.ts';
import { UserError } from '../base/errors.ts';
import { defineInspect } from '../base/inspect.ts';
import { UsageAccumulator } from '../base/usage.ts';
import { ItemViews } from '../items/views.ts';
import { ApprovalMap } from './approvals.ts';
import { InvocationLedger } from './ledger.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { JsonObject, ToolCallWire } from '../items/wire.ts';
import type { Usage } from '../models/model.ts';
import type { Span, Trace } from '../tracing/types.ts';
import type { Decision, ToolApprovalItem } from './decisions.ts';

/** What a run keeps on its context; the contexts of its tool calls share it. */
export interface ContextInternals {
  /** The caller's value. */
  value: unknown;
  usage: UsageAccumulator;
  approvals: ApprovalMap;
  ledger: InvocationLedger;
  turnInput: readonly AgentInputItem[];
  /** What callbacks see of items; made when the first one looks. */
  views?: ItemViews | undefined;
  toolInput: unknown;
  trace: Trace | undefined;
  span: Span | undefined;
  /** Set by the record that the context belongs to. */
  decide: ((item: unknown, decision: Decision) => void) | undefined;
  /** Where progress of tools goes; set by a segment that tells of it. */
  progress?: ((toolName: string, callId: string, data: unknown) => void) | undefined;
}

/** What stands behind a context: the run's part, and of a tool call's context that call's. */
interface Slot {
  readonly run: ContextInternals;
  readonly call: CallInternals | undefined;
}

/** Of one call; the signal and the key are made when somebody reads them. */
interface CallInternals {
  readonly span: Span | undefined;
  signal: AbortSignal | (() => AbortSignal);
  idempotencyKey: string | (() => string);
}

class RunSlot implements Slot {
  readonly run: ContextInternals;
  readonly call: CallInternals | undefined;
  constructor(run: ContextInternals, call: CallInternals | undefined) {
    this.run = run;
    this.call = call;
  }
}

/** What every callback of a run gets: your own value under `context`, and the facts of the run. Never sent to a model. */
export class RunContext<out C = unknown> {
  static {
    brand(this, 'RunContext');
    defineInspect(this, (context, _depth, options, inspect) => show('RunContext', context.toJSON(), options, inspect));
  }

  /** @internal */
  readonly [internal]: unknown;

  /** Only needed to hand one context to several runs; `run` wraps a plain value itself. */
  constructor(context: C) {
    this[internal] = context instanceof RunSlot ? context : new RunSlot(newInternals(context), undefined);
  }

  get context(): C {
    return contextInternals(this).value as C;
  }

  /** Live totals of the whole run, earlier segments included. */
  get usage(): Usage {
    return contextInternals(this).usage.read();
  }

  /** What the model is about to see this turn, before `callModelInputFilter`. Frozen copies of what the run keeps. */
  get turnInput(): readonly AgentInputItem[] {
    const internals = contextInternals(this);
    return viewsOf(internals).list(internals.turnInput);
  }

  /** Structured arguments of the agent tool that this run serves. */
  get toolInput(): unknown {
    return contextInternals(this).toolInput;
  }

  get trace(): Trace | undefined {
    return contextInternals(this).trace;
  }

  get span(): Span | undefined {
    const slot = slotOf(this);
    return slot.call?.span ?? slot.run.span;
  }

  /**
   * Decides a waiting call from inside the run; the same as `state.decide`.
   * @throws UserError where `state.decide` does, and on a context that no run uses.
   */
  decide(item: ToolApprovalItem, decision: Decision): void {
    const { decide } = contextInternals(this);
    if (decide === undefined)
      throw new UserError(
        'This context belongs to no run, so there is no call to decide. Use the context that the run gives to its callbacks, or `state.decide`.',
      );
    decide(item, decision);
  }

  /** Without your value and without payloads. */
  toJSON(): JsonObject {
    return { type: 'run_context', usage: this.usage as unknown as JsonObject };
  }
}

/** The context of one call of a local tool. */
export class ToolContext<out C = unknown> extends RunContext<C> {
  static {
    brand(this, 'ToolContext');
    defineInspect(this, (context, _depth, options, inspect) => show('ToolContext', context.toJSON(), options, inspect));
  }

  readonly toolName: string;
  readonly toolNamespace: string | undefined;
  readonly toolCallId: string;
  /** As the model wrote them: JSON text. */
  readonly toolArguments: string;
  readonly toolCall: ToolCallWire;
  readonly agent: AnyAgent;
  /** 1 for the first attempt. */
  readonly attempt: number;

  /** Made by the run, for each call. */
  protected constructor(context: C, call: ToolCallFacts) {
    super(context);
    this.toolName = call.toolName;
    this.toolNamespace = call.toolNamespace;
    this.toolCallId = call.toolCallId;
    this.toolArguments = call.toolArguments;
    this.toolCall = call.toolCall;
    this.agent = call.agent;
    this.attempt = call.attempt ?? 1;
  }

  /**
   * Fires on timeout, failure of a sibling, cancel and abort of the run; `signal.reason` tells which. A promise cannot be
   * killed: hand the signal to what you wait for (`fetch(url, { signal })`), else that goes on when the run has ended. A run
   * waits for calls that were told to stop, but only a moment (250 ms), and takes nothing of them.
   */
  get signal(): AbortSignal {
    const call = callOf(this);
    if (typeof call.signal === 'function') call.signal = call.signal();
    return call.signal;
  }

  /** The same for each attempt of this call, over pauses, crashes and processes; fits the HTTP header `Idempotency-Key`. */
  get idempotencyKey(): string {
    const call = callOf(this);
    if (typeof call.idempotencyKey === 'function') call.idempotencyKey = call.idempotencyKey();
    return call.idempotencyKey;
  }

  /** Sends a `tool_progress` event (with `extendedEvents`); else does nothing. */
  emit(data: unknown): void {
    contextInternals(this).progress?.(this.toolName, this.toolCallId, data);
  }

  override toJSON(): JsonObject {
    return {
      ...super.toJSON(),
      type: 'tool_context',
      agent: { name: this.agent.name },
      toolName: this.toolName,
      ...(this.toolNamespace === undefined ? {} : { toolNamespace: this.toolNamespace }),
      toolCallId: this.toolCallId,
      attempt: this.attempt,
    };
  }
}

interface ToolCallFacts {
  readonly agent: AnyAgent;
  readonly toolCall: ToolCallWire;
  readonly toolName: string;
  readonly toolNamespace?: string | undefined;
  readonly toolCallId: string;
  readonly toolArguments: string;
  /** Default 1. */
  readonly attempt?: number | undefined;
}

/** What a call's context is made of. */
export interface ToolContextInit extends ToolCallFacts {
  /** Or a function that makes it when the tool first reads it. */
  readonly signal: AbortSignal | (() => AbortSignal);
  /** What names the run in idempotency keys: its `run_key`. */
  readonly runKey: string;
  /** Ids of the agent-tool calls around this one, outermost first. Default: none. */
  readonly path?: readonly string[] | undefined;
  /** Default: the span of the run's context. */
  readonly span?: Span | undefined;
}

/** The context of one call; it shares everything but the call with `run` (TOOL-C1). */
export function createToolContext<C>(run: RunContext<C>, init: ToolContextInit): ToolContext<C> {
  const { runKey, path, toolCallId } = init;
  const slot = new RunSlot(contextInternals(run), {
    span: init.span,
    signal: init.signal,
    idempotencyKey: () => idempotencyKey(runKey, path ?? [], toolCallId),
  });
  // The constructor is closed to users; a slot in place of a value is how the shared part gets in.
  return new (ToolContext as unknown as new (slot: Slot, call: ToolCallFacts) => ToolContext<C>)(slot, init);
}

/** The same call with another signal: for work inside it that has a limit of its own. */
export function withCallSignal<C>(context: ToolContext<C>, signal: AbortSignal): ToolContext<C> {
  const { run, call } = slotOf(context);
  const slot = new RunSlot(run, { span: call?.span, signal, idempotencyKey: () => context.idempotencyKey });
  return new (ToolContext as unknown as new (slot: Slot, call: ToolCallFacts) => ToolContext<C>)(slot, context);
}

/** Names one call for the outside world (STATE-509): equal for every attempt, different for every other call. */
export function idempotencyKey(runKey: string, path: readonly string[], callId: string): string {
  return sha256Base64Url(JSON.stringify(['agents-run-v1', runKey, ...path, callId]));
}

/** The run's part of a context; the same object for the contexts of its tool calls. */
export function contextInternals(context: RunContext): ContextInternals {
  return slotOf(context).run;
}

/** The views of a run's items; the same for all its callbacks. */
export function viewsOf(internals: ContextInternals): ItemViews {
  return (internals.views ??= new ItemViews());
}

/** Of a context that the caller passes only the value counts: every run has a context of its own (RUN-106). */
export function unwrapContext(value: unknown): unknown {
  return value instanceof RunContext ? value.context : value;
}

function newInternals(value: unknown): ContextInternals {
  return {
    value,
    usage: new UsageAccumulator(),
    approvals: new ApprovalMap(),
    ledger: new InvocationLedger(),
    turnInput: [],
    toolInput: undefined,
    trace: undefined,
    span: undefined,
    decide: undefined,
  };
}

function slotOf(context: RunContext): Slot {
  return context[internal] as Slot;
}

function callOf(context: ToolContext): CallInternals {
  const { call } = slotOf(context);
  if (call === undefined) throw new UserError('A tool context is made by the run, or by `invokeFunctionTool`.');
  return call;
}

function show(
  name: string,
  facts: JsonObject,
  options: object,
  inspect: ((value: unknown, options: object) => string) | undefined,
): string {
  return `${name} ${inspect === undefined ? JSON.stringify(facts) : inspect(facts, options)}`;
}
