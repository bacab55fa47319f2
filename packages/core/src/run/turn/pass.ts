import type { AnyAgent } from '../../agent/agent.ts';
import type { ToolGuardrailResult } from '../../agent/guardrail.ts';
import type { RunItem, ToolCallOutputItem } from '../../items/items.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { ProcessedResponse, StateRecord } from '../../state/record.ts';
import type { HandoffCall } from './classify.ts';
import type { Plan, PlannedFunctionCall } from './plan.ts';
import { contextInternals } from '../../state/context.ts';
import { takeOverDecisions } from '../../state/decide.ts';
import { locateResponse } from '../../state/locate.ts';

/** What came of one call. */
export type CallResult =
  | { readonly type: 'output'; readonly item: ToolCallOutputItem }
  | { readonly type: 'waiting'; readonly item: ToolApprovalItem }
  /** The run behind the call waits. */
  | { readonly type: 'paused' };

/** What the guardrails of a tool said about one call; it counts when the call has an output, or waits. */
export interface CallVerdicts {
  readonly input: ToolGuardrailResult[];
  readonly output: ToolGuardrailResult[];
}

/**
 * One execution of the local work of a response: of a fresh turn, or of one resume of an interrupted turn. While it goes
 * on, the record is in the form of an interrupted turn, so that whatever cuts it leaves a state that repeats nothing.
 */
export class Pass {
  readonly record: StateRecord;
  readonly agent: AnyAgent;
  readonly response: ModelResponse;
  readonly processed: ProcessedResponse;
  readonly fresh: boolean;
  /** Function calls of the response that have no output yet. */
  readonly calls: readonly PlannedFunctionCall[];
  /** Calls of the response that hand off; none was taken yet. */
  readonly handoffs: readonly HandoffCall[];
  /** Index in `generatedItems` of the response's first item. */
  readonly start: number;
  /** Which items belong to the response is known. */
  readonly #located: boolean;
  /** Exact repeats of earlier calls were left out of a fresh response. */
  readonly dropped: boolean;
  readonly results: Map<PlannedFunctionCall, CallResult> = new Map();
  /** Waiting items of the record's step; this pass adds to them. */
  readonly #open: ToolApprovalItem[];
  readonly #base: number;
  readonly #order: number[] = [];
  #left: readonly RunItem[] | undefined;
  /** What is left is all that the turn made, so that in a fresh one nothing of it is public. */
  #leftAll = false;
  #handedOff = false;
  #paused = false;
  /** The run behind a call went on, whatever came of it. */
  reentered = false;
  /** Results that were announced as soon as they were there. */
  told: Set<RunItem> | undefined;
  /** Sees each new result, where somebody wants to know of it before the others are there. */
  onResult: ((call: PlannedFunctionCall, item: RunItem) => void) | undefined;

  constructor(
    record: StateRecord,
    processed: ProcessedResponse,
    { calls, handoffs, dropped }: Pick<Plan, 'calls' | 'handoffs' | 'dropped'>,
    options: { readonly fresh: boolean },
  ) {
    const response = record.modelResponses.at(-1);
    // A pass is only made for a record that has the response it works on.
    if (response === undefined) throw new Error('A pass without a response.');
    this.record = record;
    this.agent = record.currentAgent;
    this.response = response;
    this.processed = processed;
    this.calls = calls;
    this.handoffs = handoffs;
    this.fresh = options.fresh;
    this.dropped = options.fresh && dropped;
    const { start, located } = locateResponse(record);
    this.start = start;
    this.#located = located;
    this.#base = record.generatedItems.length;
    const { step } = record;
    this.#open = step.type === 'interruption' ? [...step.interruptions] : [];
    if (step.type === 'interruption') record.step = { ...step, interruptions: this.#open };
  }

  /** An output is there: from now on nothing may run the call again. */
  commitOutput(call: PlannedFunctionCall, item: ToolCallOutputItem, verdicts?: CallVerdicts): void {
    // Cut from here on, a pass whose response cannot be told from what was before could not be gone on with (STATE-336).
    if (!this.#located) this.record.unrecoverable = true;
    if (verdicts) this.#note(verdicts);
    this.results.set(call, { type: 'output', item });
    // Nobody is asked about it any more, also when the pass fails later (STATE-139).
    const open = this.#open.findIndex((waiting) => waiting.agent === this.agent && waiting.callId === item.callId);
    if (open !== -1) this.#open.splice(open, 1);
    // A fresh turn lists outputs of calls to unknown tools behind all others.
    this.#insert(this.fresh && call.tool === undefined ? 2 * this.calls.length + call.index : call.index, item);
    contextInternals(this.record.context).ledger.markCompleted(call.call.call_id);
    this.#forgetRun(call);
    this.onResult?.(call, item);
  }

  /** The run behind the call waits; the registry has it. */
  commitPaused(call: PlannedFunctionCall, verdicts?: CallVerdicts): void {
    if (verdicts) this.#note(verdicts);
    this.results.set(call, { type: 'paused' });
    this.#paused = true;
  }

  /** Some run behind a call waits. */
  get paused(): boolean {
    return this.#paused;
  }

  /** An entry of the registry goes with its call (STATE-256); what was decided inside is told by this run from now on. */
  #forgetRun({ call }: PlannedFunctionCall): void {
    const { agentToolRuns } = this.record;
    const nested = agentToolRuns?.consume(call, agentToolRuns.scope);
    if (nested) takeOverDecisions(this.record, call.call_id, nested.record);
  }

  /** The call waits for a decision; `known` items stand in the record already. */
  commitWaiting(call: PlannedFunctionCall, item: ToolApprovalItem, known: boolean, verdicts?: CallVerdicts): void {
    if (verdicts) this.#note(verdicts);
    this.results.set(call, { type: 'waiting', item });
    // In a resumed pass, what begins to wait stands behind the outputs; in a fresh one in place of its output.
    if (known) return;
    this.#insert(call.index + (this.fresh ? 0 : this.calls.length), item);
    this.#open.splice(this.#placeOf(call), 0, item);
    this.onResult?.(call, item);
  }

  /** Waiting items stand in call order (STATE-123), however long each gate took: a state tells of them by their places. */
  #placeOf({ index }: PlannedFunctionCall): number {
    const later = new Set(this.calls.slice(index + 1).map(({ call }) => call.call_id));
    const place = this.#open.findIndex(({ agent, callId }) => agent === this.agent && later.has(callId));
    return place === -1 ? this.#open.length : place;
  }

  /** Calls that wait, in call order. */
  waiting(): readonly ToolApprovalItem[] {
    const items: ToolApprovalItem[] = [];
    for (const call of this.calls) {
      const result = this.results.get(call);
      if (result?.type === 'waiting') items.push(result.item);
    }
    return items;
  }

  /** A handoff was taken: from now on nothing may take it again. Ignored ones have their outputs before that of the first. */
  commitHandoff(outputs: readonly RunItem[]): void {
    const { ledger } = contextInternals(this.record.context);
    this.record.generatedItems.push(...outputs);
    for (const { call } of this.handoffs) ledger.markCompleted(call.call_id);
    this.#handedOff = true;
  }

  /** A handoff of the response was taken. */
  get handedOff(): boolean {
    return this.#handedOff;
  }

  /** The turn leaves other items to people and sessions than the model sees of it. */
  leave(items: readonly RunItem[], all: boolean): void {
    this.#left = items;
    this.#leftAll = all;
  }

  /** Items of the response and all its local results, whichever pass made them. */
  responseItems(): readonly RunItem[] {
    return this.record.generatedItems.slice(this.start);
  }

  /** An earlier pass committed outputs and failed before anybody was told of them (STATE-230). */
  hasRecovered(): boolean {
    if (this.fresh) return false;
    const made = new Set<RunItem>(
      [...this.results.values()].flatMap((result) => ('item' in result ? result.item : [])),
    );
    return this.unpublished().some((item) => item.type === 'tool_call_output_item' && !made.has(item));
  }

  /** What guardrails of tools said is in the state with the call's outcome, and public when the turn is (STATE-217, 230). */
  #note({ input, output }: CallVerdicts): void {
    if (input.length + output.length === 0) return;
    const { record } = this;
    const { toolInput, toolOutput } = record.guardrailResults;
    record.privateResults ??= { toolInput: toolInput.length, toolOutput: toolOutput.length };
    record.responseResults ??= toolOutput.length;
    toolInput.push(...input);
    toolOutput.push(...output);
  }

  /** Items of the response and its local results that nobody was told of yet, in the order of the record. */
  unpublished(): RunItem[] {
    const items = this.#left ?? this.record.generatedItems.slice(this.start);
    if (this.fresh && (this.#left === undefined || this.#leftAll)) return [...items];
    const known = new Set<RunItem>(this.record.sessionItems);
    return [...new Set(items)].filter((item) => !known.has(item));
  }

  /** Results are placed in call order, whichever call ends first; the last place is right nearly always. */
  #insert(order: number, item: RunItem): void {
    const placed = this.#order;
    let index = placed.length;
    while (index > 0 && (placed[index - 1] ?? 0) > order) index -= 1;
    placed.splice(index, 0, order);
    this.record.generatedItems.splice(this.#base + index, 0, item);
  }
}
