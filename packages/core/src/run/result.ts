import type { Agent, AnyAgent } from '../agent/agent.ts';
import type { InputGuardrailResult, OutputGuardrailResult, ToolGuardrailResult } from '../agent/guardrail.ts';
import type { OutputSchema, SchemaWithJson } from '../agent/tool.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { ModelResponse } from '../models/model.ts';
import type { RunState } from '../snapshot/run-state.ts';
import type { RunContext } from '../state/context.ts';
import type { ToolApprovalItem } from '../state/decisions.ts';
import type { StateRecord } from '../state/record.ts';
import type { Trace } from '../tracing/types.ts';
import type { RunStreamEvent } from './events.ts';
import { parseValue } from '../agent/output.ts';
import { checkOptions } from '../base/options.ts';
import { defineInspect } from '../base/inspect.ts';
import { replayList } from '../snapshot/replay.ts';
import { stateOf } from '../snapshot/run-state.ts';
import { waitingItems } from '../state/agent-tool-runs.ts';
import { copyRecord } from '../state/copy.ts';
import { publicResults, publicView, readOnly } from '../state/public-view.ts';

/** What all results share; also the type of a helper that takes any result. */
export interface RunResultBase<out C = unknown, out O = unknown> {
  /** What the segment started from; with a session the history plus the new input. Handoffs rewrite it where they nest or filter. */
  readonly input: string | readonly AgentInputItem[];
  /** Every item of the run in order, earlier segments included. */
  readonly newItems: readonly RunItem[];
  /** One per accepted model call, earlier segments included. */
  readonly rawResponses: readonly ModelResponse[];
  /** The agent that ran last: the one for the user's next turn. */
  readonly lastAgent: AnyAgent;
  /** Of the last response. */
  readonly lastResponseId: string | undefined;
  /** Your context, and `usage` of the whole run. */
  readonly context: RunContext<C>;
  /** Results of all segments, in order of completion; of tools those of turns that are done. */
  readonly inputGuardrailResults: readonly InputGuardrailResult[];
  readonly outputGuardrailResults: readonly OutputGuardrailResult[];
  readonly toolInputGuardrailResults: readonly ToolGuardrailResult[];
  readonly toolOutputGuardrailResults: readonly ToolGuardrailResult[];
  readonly currentTurn: number;
  /** `null`: no limit. */
  readonly maxTurns: number | null;
  /** Set exactly when an agent tool started this run. */
  readonly agentToolInvocation: AgentToolInvocation | undefined;
  readonly trace: Trace | undefined;
  /**
   * A replay list: input, then all items once. Where a handoff's filter or nesting has rewritten the history, the input has
   * its summary and the items are still there in full: take the mode `normalized` then, what the next call would see. Of a
   * paused run its calls have no outputs yet: run its state, not this list. Default `preserve_all`. A new array each time.
   */
  toInputList(options?: { mode?: 'preserve_all' | 'normalized' }): AgentInputItem[];
  /** An independent state to write down, decide on and run. A new one each time: keep it in a variable. */
  toState(): RunState<C, O>;
  /** The final output as `schema` parses it. @throws TypeError when it does not fit. */
  finalOutputAs<T>(schema: SchemaWithJson<unknown, T> | OutputSchema<T>): T;
  /** A few lines for logs: status, agent's name, output, counts. */
  toString(): string;
}

/** How a run ends: with an output, or waiting for decisions. Failed and aborted runs reject. */
export type RunResult<C = unknown, O = unknown> = CompletedRunResult<C, O> | InterruptedRunResult<C, O>;

export interface CompletedRunResult<C = unknown, out O = unknown> extends RunResultBase<C, O> {
  readonly status: 'completed';
  readonly finalOutput: O;
  readonly lastAgent: Agent<C, O>;
  readonly interruptions: readonly [];
}

export interface InterruptedRunResult<C = unknown, out O = unknown> extends RunResultBase<C, O> {
  readonly status: 'interrupted';
  readonly finalOutput: undefined;
  readonly lastAgent: Agent<C, O>;
  /** Calls that wait. */
  readonly interruptions: readonly [ToolApprovalItem, ...ToolApprovalItem[]];
}

/** What an agent tool's `customOutputExtractor` gets: a run that completed, with `agentToolInvocation`. */
export interface AgentToolResult<out C = unknown, out O = unknown> extends RunResultBase<C, O> {
  readonly finalOutput: O;
  readonly agentToolInvocation: AgentToolInvocation;
}

export interface AgentToolInvocation {
  readonly toolName: string;
  readonly toolCallId: string;
  /** JSON text. */
  readonly toolArguments: string;
}

const noInterruptions: readonly ToolApprovalItem[] = Object.freeze([]);

/** A list as it is shown: copied anew only when it has grown since somebody looked. */
class Shown<T> {
  #source: readonly T[] | undefined;
  #copy: readonly T[] = [];

  of(source: readonly T[]): readonly T[] {
    if (this.#source !== source || this.#copy.length !== source.length) {
      this.#source = source;
      this.#copy = readOnly(source);
    }
    return this.#copy;
  }
}

/** The members that results of both forms read from the record of their run. */
export abstract class ResultView {
  static {
    defineInspect<ResultView>(this, (result) => result.toString());
  }

  readonly #items = new Shown<RunItem>();
  readonly #responses = new Shown<ModelResponse>();
  readonly #waiting = new Shown<ToolApprovalItem>();

  protected abstract get record(): StateRecord;
  abstract readonly trace: Trace | undefined;
  abstract readonly status: string;

  get input(): string | readonly AgentInputItem[] {
    return this.record.input;
  }

  get newItems(): readonly RunItem[] {
    return this.#items.of(publicView(this.record).newItems);
  }

  get rawResponses(): readonly ModelResponse[] {
    return this.#responses.of(publicView(this.record).rawResponses);
  }

  get lastAgent(): AnyAgent {
    return this.record.currentAgent;
  }

  get lastResponseId(): string | undefined {
    return publicView(this.record).rawResponses.at(-1)?.responseId;
  }

  get context(): RunContext {
    return this.record.context;
  }

  get inputGuardrailResults(): readonly InputGuardrailResult[] {
    return readOnly(publicResults(this.record).input);
  }

  get outputGuardrailResults(): readonly OutputGuardrailResult[] {
    return readOnly(publicResults(this.record).output);
  }

  get toolInputGuardrailResults(): readonly ToolGuardrailResult[] {
    return readOnly(publicResults(this.record).toolInput);
  }

  get toolOutputGuardrailResults(): readonly ToolGuardrailResult[] {
    return readOnly(publicResults(this.record).toolOutput);
  }

  get currentTurn(): number {
    return this.record.currentTurn;
  }

  get maxTurns(): number | null {
    return this.record.maxTurns;
  }

  get agentToolInvocation(): AgentToolInvocation | undefined {
    return undefined;
  }

  get finalOutput(): unknown {
    const { step } = this.record;
    return step.type === 'final_output' ? step.output : undefined;
  }

  get interruptions(): readonly ToolApprovalItem[] {
    const { step, agentToolRuns } = this.record;
    if (step.type !== 'interruption') return noInterruptions;
    return agentToolRuns === undefined
      ? this.#waiting.of(step.interruptions)
      : Object.freeze(waitingItems(this.record).slice());
  }

  toInputList(options: { mode?: 'preserve_all' | 'normalized' } = {}): AgentInputItem[] {
    checkOptions(options, ['mode'], 'toInputList()');
    return replayList(this.record, options.mode);
  }

  toState(): RunState {
    return stateOf(copyRecord(this.record));
  }

  finalOutputAs<T>(schema: SchemaWithJson<unknown, T> | OutputSchema<T>): T {
    return parseValue(schema, this.finalOutput);
  }

  /** What logs show: names and counts, no agents and no content but the final output. */
  toString(): string {
    return [this.title, ...this.facts()].join('\n- ');
  }

  protected get title(): string {
    return `RunResult: ${this.status}`;
  }

  protected facts(): string[] {
    return [
      `last agent: ${this.lastAgent.name}`,
      `final output: ${shownOutput(this.finalOutput)}`,
      `${this.newItems.length} new item(s), ${this.rawResponses.length} raw response(s), ${this.interruptions.length} interruption(s)`,
      `${this.inputGuardrailResults.length} input and ${this.outputGuardrailResults.length} output guardrail result(s)`,
    ];
  }
}

/** With its type. A tool's value that ended the run may be anything. */
function shownOutput(output: unknown): string {
  if (output === undefined) return 'none';
  if (typeof output === 'string') return `${output} (string)`;
  try {
    return `${JSON.stringify(output)} (${output === null ? 'null' : typeof output})`;
  } catch {
    return `(${typeof output})`;
  }
}

/** A result that is over: its record changes no more. */
class SettledResult extends ResultView {
  readonly #record: StateRecord;
  readonly trace: Trace | undefined;

  readonly #invocation: AgentToolInvocation | undefined;

  constructor(record: StateRecord, trace: Trace | undefined, invocation: AgentToolInvocation | undefined) {
    super();
    this.#record = record;
    this.trace = trace;
    this.#invocation = invocation;
  }

  override get agentToolInvocation(): AgentToolInvocation | undefined {
    return this.#invocation;
  }

  protected get record(): StateRecord {
    return this.#record;
  }

  get status(): 'completed' | 'interrupted' {
    return this.record.step.type === 'interruption' ? 'interrupted' : 'completed';
  }
}

/** @param invocation of a run that an agent tool started */
export function settledResult<C, O>(
  record: StateRecord,
  trace: Trace | undefined,
  invocation?: AgentToolInvocation,
): RunResult<C, O> {
  // The members are getters over one record, whose types the class cannot know.
  return new SettledResult(record, trace, invocation) as unknown as RunResult<C, O>;
}

/** A run in progress. It goes on without a reader; each event is read once; all members are live until the end. */
export interface RunResultStreaming<C = unknown, out O = unknown>
  extends RunResultBase<C, O>, AsyncIterable<RunStreamEvent> {
  readonly status: 'running' | 'completed' | 'interrupted' | 'cancelled' | 'failed';
  /** For a narrowed value: `await stream.completed`. */
  readonly finalOutput: O | undefined;
  readonly interruptions: readonly ToolApprovalItem[];
  readonly lastAgent: Agent<C, O>;
  readonly currentAgent: Agent<C, O>;
  /** `true` once finished, paused, cancelled or failed, even if events wait to be read. */
  readonly isComplete: boolean;
  /** What made the run fail. */
  readonly error: unknown;
  /** The same as `run` would give: rejects with the run's error, or `RunAbortedError` after a cancel. Never unhandled. */
  readonly completed: Promise<RunResult<C, O>>;
  /** Ends after session writes and guardrails; throws the run's error. Leaving the loop does not stop the run. */
  [Symbol.asyncIterator](): AsyncIterableIterator<RunStreamEvent>;
  /** The same iterator. */
  streamEvents(): AsyncIterableIterator<RunStreamEvent>;
  /**
   * Text deltas of all turns and agents. Reads the events, so it replaces the loop; cancelling it cancels the run.
   * @example return new Response(stream.toTextStream().pipeThrough(new TextEncoderStream()));
   */
  toTextStream(): ReadableStream<string>;
  /** `immediate` (default) aborts model and tools; `after_turn` finishes the turn and stores it. Both leave a resumable state. */
  cancel(options?: { mode?: 'immediate' | 'after_turn' }): void;
}
