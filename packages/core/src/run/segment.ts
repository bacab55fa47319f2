import type { AnyAgent } from '../agent/agent.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { Model, Usage } from '../models/model.ts';
import type { SessionWriter } from '../sessions/persist.ts';
import type { StateRecord } from '../state/record.ts';
import type { Trace } from '../tracing/types.ts';
import type { Effect, Nesting, RunAgentTool, RunEnv } from './env.ts';
import type { InputCheck } from './input-check.ts';
import type { RunStreamEvent } from './events.ts';
import type { turns } from './loop.ts';
import type { ResolvedOptions, RunInput } from './options.ts';
import type { ServerHistory } from './server-history.ts';
import { Agent } from '../agent/agent.ts';
import { attachRunData, UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { kindOf } from '../base/options.ts';
import { checkNewItems } from '../items/check.ts';
import { makePromptCacheKey } from '../models/cache-key.ts';
import { knownSessionId } from '../sessions/settings.ts';
import { recordOf, RunState } from '../snapshot/run-state.ts';
import { setScope } from '../state/agent-tool-runs.ts';
import { contextInternals, unwrapContext } from '../state/context.ts';
import type { ContextInternals } from '../state/context.ts';
import { copyRecord, newRecord } from '../state/copy.ts';
import { markDoubt } from '../state/doubt.ts';
import { goesOn } from '../state/next-step.ts';
import { checkGuardedResume, checkResume } from './resume-checks.ts';
import { Control } from './control.ts';
import { errorDetails } from './error-details.ts';
import { forkRecord } from './fork.ts';
import { checkServerManaged, serverManagedBy } from './server-managed.ts';
import { startSpans } from './spans.ts';
import type { RunSpans } from './spans.ts';
import { ModelInput } from './turn/model-input.ts';

/** How long an aborted run waits for a change that the session has not answered (SESS-016). */
const CHANGE_GRACE_MS = 30_000;
/** How long an aborted run waits for what is told of its end (RUN-512). */
const END_GRACE_MS = 250;

/** Where a streamed segment puts its events, and where it waits for its reader. */
export interface Sink {
  emit(event: RunStreamEvent): void;
  boundary(): Promise<void> | undefined;
  /** What a model's next event waits for while more than `limit` wait for the reader; `undefined`: nothing. */
  room?(limit: number): Promise<void> | undefined;
  /** How the segment ends is certain: what happens while it is told of that changes it no more. */
  decided(outcome: Outcome, error?: unknown): void;
}

type Outcome = 'completed' | 'interrupted' | 'cancelled' | 'failed';

/** What a segment is given beside agent, input and options. */
export interface SegmentParts {
  /** Of a streamed run. */
  readonly sink?: Sink | undefined;
  /** Runs the agents behind tools. */
  readonly nested?: RunAgentTool | undefined;
  /** Of the run of an agent tool: what it has of the run around it. */
  readonly nesting?: Nesting | undefined;
}

/** How a segment that did not fail ended. `cancelled`: after a turn, with nothing to show yet. */
export type SegmentEnd = 'settled' | 'cancelled';

/** With the first run: a program that only declares its agents does not load what runs them. */
let loop: { readonly turns: typeof turns } | undefined;

/** One call of `run` or `runStreamed`: the checks at its entry, the loop, and the way out. */
export class Segment {
  readonly control: Control;
  readonly env: SegmentEnv;
  readonly #sink: Sink | undefined;
  readonly #input: string | readonly AgentInputItem[] | undefined;
  /** The state that the caller passed in; it is in use until the segment ends. */
  readonly #live: StateRecord | undefined;
  #record: StateRecord;
  #started = false;

  /** @throws TypeError, UserError; nothing has started then */
  constructor(agent: AnyAgent, input: RunInput, options: ResolvedOptions, parts: SegmentParts = {}) {
    const { sink, nesting } = parts;
    checkArguments(agent, input);
    const state = input instanceof RunState ? recordOf(input) : undefined;
    this.#live = state;
    this.#input = input instanceof RunState ? undefined : input;
    this.#sink = sink;
    const managed = serverManagedBy(options, state?.serverManaged);
    if (state) checkResume(state, agent, options, managed);
    else checkServerManaged(managed, agent, options);
    this.#record = state ?? freshRecord(agent, this.#input ?? [], options);
    // Asked before the state is marked: a context is the caller's own object.
    const context = unwrapContext(options.context);
    if (state) state.inUse = true;
    this.control = new Control(options.signal, sink !== undefined);
    try {
      this.control.listen();
      this.env = new SegmentEnv(
        this.#record,
        options,
        this.control,
        parts,
        startSpans(this.#record, options, { streamed: sink !== undefined, parent: nesting?.parent }),
      );
    } catch (error) {
      // Nothing has started: the state is as it was, and free.
      this.control.dispose();
      if (state) state.inUse = false;
      throw error;
    }
    this.#record.serverManaged = managed;
    if (state) applyOptions(state, options, context);
    else if (nesting) contextInternals(this.#record.context).toolInput = nesting.toolInput;
    if (this.#record.agentToolRuns) setScope(this.#record.context, this.#record.agentToolRuns.scope);
    // Open spans end with the abort, not with what is still being told to stop.
    this.control.onAbort((error) => this.env.spans.runFailed(error));
  }

  /** What views read: always whole, at any time. */
  get record(): StateRecord {
    return this.#record;
  }

  get trace(): Trace | undefined {
    return this.env.spans.trace;
  }

  /** Runs to the end. Rejects with the run's error, which has `runData` and `state` then. */
  run(): Promise<SegmentEnd> {
    return this.env.spans.task(() => this.#run());
  }

  async #run(): Promise<SegmentEnd> {
    let outcome: Outcome = 'failed';
    let failure: unknown;
    try {
      const end = await this.#drive();
      outcome =
        end === 'cancelled' ? 'cancelled' : this.#record.step.type === 'interruption' ? 'interrupted' : 'completed';
      this.#sink?.decided(outcome);
      return end;
    } catch (thrown) {
      if (this.control.error) outcome = 'cancelled';
      failure = this.#failure(this.control.error ?? thrown);
      this.#sink?.decided(outcome, failure);
      throw failure;
    } finally {
      await this.#leave(outcome, failure);
    }
  }

  async #drive(): Promise<SegmentEnd> {
    const { control, env } = this;
    control.throwIfAborted();
    await this.#prepare();
    control.throwIfAborted();
    this.#started = true;
    const told = env.options.hooks?.onRunStart?.(env.context as never, this.#record.currentAgent);
    if (told) await control.race(told);
    env.emit?.({ type: 'agent_updated_stream_event', newAgent: this.#record.currentAgent });
    if (control.afterTurn) return 'cancelled';
    loop ??= await control.race(import('./loop.ts'));
    for await (const record of loop.turns(this.#record, env)) {
      this.#record = record;
      if (!goesOn(record.step)) break;
      const boundary = this.#sink?.boundary();
      if (boundary) await control.race(boundary);
      control.throwIfAborted();
      if (control.afterTurn) return 'cancelled';
    }
    control.throwIfAborted();
    return 'settled';
  }

  /** History and new input of a fresh run; what an earlier segment left owed to the session of a resumed one. */
  async #prepare(): Promise<void> {
    const { env, control } = this;
    const record = this.#record;
    const { session } = env.options;
    if (session) {
      const input = this.#input ?? (record.unprepared ? record.input : undefined);
      const { openSession } = await control.race(import('./open-session.ts'));
      await openSession(env, session, record, input);
    }
    if (record.serverManaged) {
      const { openServerHistory } = await control.race(import('./server-history.ts'));
      await openServerHistory(record, env);
    }
    if (this.#live) checkGuardedResume(record, env.options);
    contextInternals(env.context).ledger.protect(
      typeof record.input === 'string' ? [] : record.input,
      record.generatedItems,
    );
  }

  #failure(thrown: unknown): unknown {
    this.env.spans.runFailed(thrown);
    markDoubt(this.#record);
    const frozen = copyRecord(this.#record);
    return attachRunData(thrown, errorDetails(frozen, this.env.context, this.trace));
  }

  async #leave(outcome: Outcome, failure: unknown): Promise<void> {
    const { env, control } = this;
    this.#settleLive();
    const tell = (what: string, call: () => MaybePromise<void> | undefined): Promise<void> =>
      quietly(what, () => control.race(call(), END_GRACE_MS));
    const { hooks } = env.options;
    const agent = this.#record.currentAgent;
    if (outcome === 'failed' && hooks?.onError)
      await tell('onError', () => hooks.onError?.(env.context as never, agent, failure));
    if (this.#started && hooks?.onRunEnd) await tell('onRunEnd', () => hooks.onRunEnd?.(env.context as never, outcome));
    for (const model of env.models)
      if (model.onRunEnd) await tell('onRunEnd of a model', () => model.onRunEnd?.(env.owner));
    control.dispose();
    env.spans.end();
    if (outcome === 'interrupted') env.spans.keepTrace(this.#record);
    if (this.#record.agentToolRuns) setScope(env.context, null);
  }

  /** The caller's state ends where its run did; the result has a record that nobody else moves on. */
  #settleLive(): void {
    const live = this.#live;
    if (live === undefined) return;
    live.inUse = false;
    // The registry of the run around a nested one follows it, wherever it goes.
    if (this.env.nesting) return;
    if (this.#record === live) this.#record = forkRecord(live, this.env);
    else {
      live.unrecoverable ||= this.#record.unrecoverable;
      if (this.#record.step.type === 'final_output') live.step = this.#record.step;
      // What a state used grows with its run (RUN-1005).
      contextInternals(live.context).usage = contextInternals(this.env.context).usage.copy();
    }
  }
}

function checkArguments(agent: unknown, input: unknown): void {
  if (!(agent instanceof Agent))
    throw new TypeError(`run: the first argument must be an Agent (made by \`new Agent\`), not ${kindOf(agent)}.`);
  if (typeof input !== 'string' && !Array.isArray(input) && !(input instanceof RunState))
    throw new TypeError(
      `run: the input must be a string, an array of input items, or a RunState, not ${kindOf(input)}.`,
    );
  if (Array.isArray(input)) checkNewItems(input, 'input', 'run');
  // An easy slip, and a model would get all of it as a message.
  if (typeof input === 'string' && /^\s*\{\s*"\$schemaVersion"\s*:/.test(input))
    throw new UserError(
      'run: the input is the text of a run state. Restore it first: RunState.fromString(agent, text).',
    );
}

function freshRecord(
  agent: AnyAgent,
  input: string | readonly AgentInputItem[],
  options: ResolvedOptions,
): StateRecord {
  const record = newRecord({
    agent,
    input: typeof input === 'string' ? input : [...input],
    context: unwrapContext(options.context),
    maxTurns: options.maxTurns === undefined ? 10 : options.maxTurns,
    reasoningItemIdPolicy: options.reasoningItemIdPolicy,
    sessionId: options.session ? knownSessionId(options.session) : undefined,
  });
  record.unprepared = Boolean(options.session);
  return record;
}

/** Options that are given win over what the state says, and are written into it. */
function applyOptions(record: StateRecord, options: ResolvedOptions, context: unknown): void {
  if (options.maxTurns !== undefined) record.maxTurns = options.maxTurns;
  if (options.context !== undefined) contextInternals(record.context).value = context;
  if (options.reasoningItemIdPolicy !== undefined) record.reasoningItemIdPolicy = options.reasoningItemIdPolicy;
}

async function quietly(what: string, work: () => unknown): Promise<void> {
  try {
    await work();
  } catch {
    getLogger().error(`${what} failed while a run ended; the run's outcome stands.`);
  }
}

function progressTo(emit: NonNullable<RunEnv['extended']>): ContextInternals['progress'] {
  return (toolName, callId, data) =>
    emit({ type: 'run_extended_event', name: 'tool_progress', data: { toolName, callId, data } });
}

class SegmentEnv implements RunEnv {
  readonly options: ResolvedOptions;
  readonly context: RunEnv['context'];
  readonly control: Control;
  readonly spans: RunSpans;
  readonly emit: RunEnv['emit'];
  readonly extended: RunEnv['extended'];
  readonly room: RunEnv['room'];
  readonly owner: object = {};
  readonly attempt: RunEnv['attempt'] = { number: 1, owner: this.owner, disableProviderRetries: false };
  readonly models: Set<Model> = new Set();
  modelInput: ModelInput = new ModelInput();
  server: ServerHistory | undefined;
  session: SessionWriter | undefined;
  inputCheck: InputCheck | undefined;
  startHooksDue = true;
  deliverQueued = false;
  storeSetting: boolean | undefined;
  readonly nesting: RunEnv['nesting'];
  readonly nested: RunEnv['nested'];
  asked: RunEnv['asked'];
  #warned: Set<string> | undefined;

  constructor(
    record: StateRecord,
    options: ResolvedOptions,
    control: Control,
    { sink, nesting, nested }: SegmentParts,
    spans: RunSpans,
  ) {
    this.options = options;
    this.context = record.context;
    this.control = control;
    this.emit = sink && ((event) => sink.emit(event));
    const { extendedEvents = false, eventBufferLimit: limit } = options;
    this.extended = extendedEvents ? this.emit : undefined;
    if (sink && limit !== undefined) this.room = () => sink.room?.(limit);
    contextInternals(record.context).progress = this.extended && progressTo(this.extended);
    this.nesting = nesting;
    this.nested = nested;
    this.asked = nesting?.asked;
    this.spans = spans;
  }

  /**
   * The seam of all effects. A read can be left alone; a change of the history that was sent is given time to be answered.
   * Of a compaction the abort ends the request to the service, not the replacement after it (SESS-123, 326).
   */
  readonly step = <T>(effect: Effect, execute: () => Promise<T>): Promise<T> => {
    const { control } = this;
    if (control.error) return Promise.reject(control.error);
    if (effect.kind !== 'session') return execute();
    const call = this.spans.session(effect, this.options.session, execute);
    return control.race(call, effect.operation === 'read' ? 0 : CHANGE_GRACE_MS);
  };

  countUsage(usage: Usage): void {
    contextInternals(this.context).usage.add(usage);
    this.nesting?.countUsage(usage);
  }

  cacheKey(): string {
    return makePromptCacheKey({
      conversationId: this.server?.conversationId,
      session: this.options.session ?? undefined,
      groupId: this.options.groupId,
    });
  }

  warnOnce(key: string, message: string): void {
    this.#warned ??= new Set();
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    getLogger().warn(message);
  }
}
