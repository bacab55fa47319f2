import type { Agent, AnyAgent } from '../agent/agent.ts';
import { brand, internal } from '../base/brand.ts';
import { defineInspect } from '../base/inspect.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import type { AgentInputItem, RunItem } from '../items/items.ts';
import type { JsonObject } from '../items/wire.ts';
import type { Usage } from '../models/model.ts';
import type { RunContext } from '../state/context.ts';
import { waitingItems } from '../state/agent-tool-runs.ts';
import { allDecisions, applyDecision } from '../state/decide.ts';
import type { ApproveOptions, Decision, DecisionRecord, RejectOptions, ToolApprovalItem } from '../state/decisions.ts';
import { nextStepOf } from '../state/next-step.ts';
import type { NextStep } from '../state/next-step.ts';
import { publicView } from '../state/public-view.ts';
import type { StateRecord } from '../state/record.ts';
import { copyPlain, detach, stringify } from './json.ts';
import { replayList } from './replay.ts';
import { writeRecord } from './write.ts';

/** RunState JSON as the Python SDK writes it, plus `agents_ts`. */
export interface SerializedRunState extends JsonObject {
  readonly $schemaVersion: string;
}

export interface SerializeOptions<C> {
  /** Needed when the context is more than JSON: a connection, a Map, a class. Gives what is stored of it. */
  contextSerializer?: ((context: C) => JsonObject) | undefined;
  /** Also fail for an instance of a class, which else is written as its data, or left out, with a warning. Default `false`. */
  strictContext?: boolean | undefined;
  /** Default `false`. */
  includeTracingApiKey?: boolean | undefined;
}

export interface RestoreOptions<C> {
  /** Replaces the stored context. */
  context?: C | RunContext<C> | undefined;
  contextDeserializer?: ((raw: JsonObject) => C) | undefined;
  /** Fail instead of warn when the stored context needs help. Default `false`. */
  strictContext?: boolean | undefined;
  /** Bytes of text; a run of 10,000 items has 8 MiB and more. Default 256 MiB. */
  maxBytes?: number | undefined;
}

const noInterruptions: readonly ToolApprovalItem[] = Object.freeze([]);
// Far above what runs have, far below the longest string: what was written can be read.
const defaultMaxBytes = 256 * 1024 * 1024;

const serializeOptions = {
  contextSerializer: kinds.function,
  strictContext: kinds.boolean,
  includeTracingApiKey: kinds.boolean,
};
const restoreOptions = {
  context: kinds.any,
  contextDeserializer: kinds.function,
  strictContext: kinds.boolean,
  maxBytes: kinds.integer(1),
};
const approveOptions = { always: kinds.boolean, by: kinds.string, note: kinds.string };
const rejectOptions = { ...approveOptions, message: kinds.string };

/**
 * Everything of a run that must survive. Decide on it, write it down, pass it to `run`. One run at a time per object:
 * `state_busy`.
 *
 * Its text is a capability: who can change it can approve calls. Keep it where only the program can write.
 *
 * @example
 * const state = await RunState.fromString(desk, text);
 * for (const item of state.interruptions) state.approve(item);
 * const result = await run(desk, state);
 */
export class RunState<out C = unknown, out O = unknown> {
  static {
    brand(this, 'RunState');
    defineInspect(this, inspectState);
  }

  /** @internal */
  declare readonly [internal]: StateRecord;

  private constructor(record: StateRecord) {
    // Not enumerable: whoever logs a state does not want its agents and the caller's context.
    Object.defineProperty(this, internal, { value: record });
  }

  /**
   * Restores what `toString` wrote, here or in Python. `agent` is the run's *starting* agent. Executes nothing from the
   * text.
   *
   * @throws TypeError when `agent` is no agent; UserError `json_parse`, `json_too_large`, `schema_unsupported`,
   * `agent_missing`, … whatever is wrong with the text, without a word of what it holds
   */
  static async fromString<C, O>(
    agent: Agent<C, O>,
    text: string,
    options: RestoreOptions<NoInfer<C>> = {},
  ): Promise<RunState<C, O>> {
    checkOptions(options, restoreOptions, 'RunState.fromString()');
    if (typeof text !== 'string')
      throw new TypeError(
        `RunState.fromString() takes the text of a state, not ${kindOf(text)}. For parsed JSON there is fromJSON().`,
      );
    // A quarter of the package reads states, and most programs never do.
    const { readText } = await import('./read.ts');
    return stateOf(readText(agent, text, options.maxBytes ?? defaultMaxBytes, options)) as RunState<C, O>;
  }

  /**
   * As `fromString`, from the parsed text or what `toJSON` gave. The value is copied.
   *
   * @throws TypeError when `agent` is no agent; UserError `json_not_plain` for anything but plain data, and what `fromString` throws
   */
  static async fromJSON<C, O>(
    agent: Agent<C, O>,
    json: unknown,
    options: RestoreOptions<NoInfer<C>> = {},
  ): Promise<RunState<C, O>> {
    checkOptions(options, restoreOptions, 'RunState.fromJSON()');
    const copy = copyPlain(json, options.maxBytes ?? defaultMaxBytes);
    const { readRecord } = await import('./read.ts');
    return stateOf(readRecord(agent, copy, options)) as RunState<C, O>;
  }

  /**
   * The state as JSON text, without white space: `JSON.stringify(state, null, 2)` is for people.
   *
   * @throws UserError when the context cannot be written (`context_not_json`, …) or something is nested too deep (`json_too_large`)
   */
  toString(options: SerializeOptions<C> = {}): string {
    checkOptions(options, serializeOptions, 'RunState.toString()');
    return stringify(writeRecord(this[internal], options));
  }

  /** A string, the key that `JSON.stringify` passes, means defaults. */
  toJSON(options: SerializeOptions<C> | string = {}): SerializedRunState {
    if (typeof options !== 'string') checkOptions(options, serializeOptions, 'RunState.toJSON()');
    return detach(writeRecord(this[internal], typeof options === 'string' ? {} : options)) as SerializedRunState;
  }

  /** `interrupted`: waits for decisions; `ready`: goes on with a model call; `completed`: has its output; `unrecoverable`: can never be run. */
  get status(): 'interrupted' | 'ready' | 'completed' | 'unrecoverable' {
    const { step, unrecoverable, modelResponses } = this[internal];
    if (unrecoverable) return 'unrecoverable';
    switch (step.type) {
      case 'interruption':
        return 'interrupted';
      case 'run_again':
      case 'handoff':
        return 'ready';
      case 'final_output':
        return 'completed';
      case 'none':
        return modelResponses.length > 0 ? 'completed' : 'ready';
      default:
        return step satisfies never;
    }
  }

  /** `undefined` before the first turn, and of a finished run that was restored. */
  get currentStep(): NextStep<O> | undefined {
    return nextStepOf(this[internal].step, waitingItems(this[internal])) as NextStep<O> | undefined;
  }

  get currentAgent(): AnyAgent | undefined {
    return this[internal].currentAgent;
  }

  get currentTurn(): number {
    return this[internal].currentTurn;
  }

  /** `null`: no limit. `run(agent, state, { maxTurns })` changes it. */
  get maxTurns(): number | null {
    return this[internal].maxTurns;
  }

  get context(): RunContext<C> {
    return this[internal].context as RunContext<C>;
  }

  get usage(): Usage {
    return this[internal].context.usage;
  }

  /** The session the run used; resuming needs it, or `session: null` (`session_missing`). */
  get sessionId(): string | undefined {
    return this[internal].sessionId;
  }

  /** What the run did so far, for whoever has to decide. */
  get newItems(): readonly RunItem[] {
    return publicView(this[internal]).newItems.slice();
  }

  /** The conversation so far, as the result's. */
  toInputList(options: { mode?: 'preserve_all' | 'normalized' } = {}): AgentInputItem[] {
    checkOptions(options, ['mode'], 'toInputList()');
    return replayList(this[internal], options.mode);
  }

  /** Calls that wait. */
  get interruptions(): readonly ToolApprovalItem[] {
    const waiting = waitingItems(this[internal]);
    return waiting.length === 0 ? noInterruptions : waiting.slice();
  }

  /** Decides a waiting call; may be changed until it runs. An item of the result or of another restore will do. */
  decide(item: ToolApprovalItem, decision: Decision): void {
    applyDecision(this[internal], item, decision);
  }

  /** `decide(item, { type: 'approve', …options })`. */
  approve(item: ToolApprovalItem, options: ApproveOptions = {}): void {
    checkOptions(options, approveOptions, 'state.approve()');
    this.decide(item, { ...options, type: 'approve' });
  }

  /** `decide(item, { type: 'reject', …options })`. */
  reject(item: ToolApprovalItem, options: RejectOptions = {}): void {
    checkOptions(options, rejectOptions, 'state.reject()');
    this.decide(item, { ...options, type: 'reject' });
  }

  /** All decisions of the run so far, oldest first; those inside agent tools have the calls around them in `path`. */
  getDecisions(): readonly DecisionRecord[] {
    return allDecisions(this[internal]).map((decision) => ({ ...decision }));
  }
}

/** A state over this record, which belongs to it from then on. @internal */
export function stateOf(record: StateRecord): RunState {
  return new (RunState as unknown as new (record: StateRecord) => RunState)(record);
}

/** What a state is a view of. @internal */
export function recordOf(state: RunState): StateRecord {
  return state[internal];
}

/** As `console.log` shows a state: where it stands, without agents, context and contents. */
function inspectState(
  state: RunState,
  depth: number,
  options: object,
  inspect: ((value: unknown, options: object) => string) | undefined,
): string {
  const { currentAgent, currentTurn, maxTurns } = recordOf(state);
  const shown = {
    status: state.status,
    currentAgent: currentAgent.name,
    currentTurn,
    maxTurns,
    newItems: state.newItems.length,
    interruptions: state.interruptions.map((item) => item.qualifiedName),
  };
  return `RunState ${inspect === undefined ? JSON.stringify(shown) : inspect(shown, { ...options, depth })}`;
}
