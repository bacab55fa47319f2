import type { AnyAgent } from '../../agent/agent.ts';
import type { RunItem, ToolCallOutputItem } from '../../items/items.ts';
import type { ModelResponse } from '../../models/model.ts';
import type { ToolApprovalItem } from '../../state/decisions.ts';
import type { ProcessedResponse, StateRecord } from '../../state/record.ts';
import type { PlannedFunctionCall } from './plan.ts';
import { contextInternals } from '../../state/context.ts';

/** What came of one call. */
export type CallResult =
  | { readonly type: 'output'; readonly item: ToolCallOutputItem }
  | { readonly type: 'waiting'; readonly item: ToolApprovalItem };

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
  /** Index in `generatedItems` of the response's first item. */
  readonly start: number;
  /** Exact repeats of earlier calls were left out of a fresh response. */
  readonly dropped: boolean;
  readonly results: Map<PlannedFunctionCall, CallResult> = new Map();
  /** Waiting items of the record's step; this pass adds to them. */
  readonly #open: ToolApprovalItem[];
  readonly #base: number;
  readonly #order: number[] = [];

  constructor(
    record: StateRecord,
    processed: ProcessedResponse,
    calls: readonly PlannedFunctionCall[],
    options: { readonly fresh: boolean; readonly dropped?: boolean },
  ) {
    const response = record.modelResponses.at(-1);
    // A pass is only made for a record that has the response it works on.
    if (response === undefined) throw new Error('A pass without a response.');
    this.record = record;
    this.agent = record.currentAgent;
    this.response = response;
    this.processed = processed;
    this.calls = calls;
    this.fresh = options.fresh;
    this.dropped = options.dropped ?? false;
    this.start = startOf(record, processed);
    this.#base = record.generatedItems.length;
    const { step } = record;
    this.#open = step.type === 'interruption' ? [...step.interruptions] : [];
    if (step.type === 'interruption') record.step = { ...step, interruptions: this.#open };
  }

  /** An output is there: from now on nothing may run the call again. */
  commitOutput(call: PlannedFunctionCall, item: ToolCallOutputItem): void {
    this.results.set(call, { type: 'output', item });
    // Nobody is asked about it any more, also when the pass fails later (STATE-139).
    const open = this.#open.findIndex((waiting) => waiting.agent === this.agent && waiting.callId === item.callId);
    if (open !== -1) this.#open.splice(open, 1);
    // A fresh turn lists outputs of calls to unknown tools behind all others.
    this.#insert(this.fresh && call.tool === undefined ? 2 * this.calls.length + call.index : call.index, item);
    contextInternals(this.record.context).ledger.markCompleted(call.call.call_id);
  }

  /** The call waits for a decision; `known` items stand in the record already. */
  commitWaiting(call: PlannedFunctionCall, item: ToolApprovalItem, known: boolean): void {
    this.results.set(call, { type: 'waiting', item });
    // In a resumed pass, what begins to wait stands behind the outputs; in a fresh one in place of its output.
    if (known) return;
    this.#insert(call.index + (this.fresh ? 0 : this.calls.length), item);
    this.#open.push(item);
  }

  /** Calls that wait, in call order. */
  waiting(): readonly ToolApprovalItem[] {
    return this.calls.flatMap((call) => {
      const result = this.results.get(call);
      return result?.type === 'waiting' ? [result.item] : [];
    });
  }

  /** Items of the response and its local results that nobody was told of yet, in the order of the record. */
  unpublished(): RunItem[] {
    const items = this.record.generatedItems.slice(this.start);
    if (this.fresh) return items;
    const known = new Set<RunItem>(this.record.sessionItems);
    return items.filter((item) => !known.has(item));
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

/** Restored items are the same objects in both lists; where they are not found, only what follows is this pass's. */
function startOf(record: StateRecord, processed: ProcessedResponse): number {
  const first = processed.newItems[0];
  const index = first === undefined ? -1 : record.generatedItems.lastIndexOf(first);
  return index === -1 ? record.generatedItems.length : index;
}
