import { nameOf, treesOf } from '../tracing/tree.ts';
import type { TreeNode } from '../tracing/tree.ts';
import type { Span, SpanType, Trace, TraceProcessor } from '../tracing/types.ts';

export interface TraceNode {
  readonly type: 'trace' | SpanType;
  /** Of an agent, a tool, a model; of a turn its number. */
  readonly name: string;
  /** Message of the span's error. */
  readonly error: string | undefined;
  readonly children: readonly TraceNode[];
}

/**
 * Keeps everything, for assertions: traces and spans from their start, in the order of their starts.
 *
 * @example
 * const recorder = new InMemoryTraceProcessor();
 * addTraceProcessor(recorder);
 * await run(agent, 'hi');
 * recorder.tree()[0].children[0].type; // 'task'
 */
export class InMemoryTraceProcessor implements TraceProcessor {
  readonly #traces = new Set<Trace>();
  readonly #spans = new Set<Span>();

  get traces(): readonly Trace[] {
    return [...this.#traces];
  }

  get spans(): readonly Span[] {
    return [...this.#spans];
  }

  onTraceStart(trace: Trace): void {
    this.#traces.add(trace);
  }

  onTraceEnd(trace: Trace): void {
    this.#traces.add(trace);
  }

  onSpanStart(span: Span): void {
    this.#spans.add(span);
  }

  onSpanEnd(span: Span): void {
    this.#spans.add(span);
  }

  /** One tree per trace id, siblings by start time. */
  tree(): TraceNode[] {
    return treesOf(this.traces, this.spans).map(nodeOf);
  }

  clear(): void {
    this.#traces.clear();
    this.#spans.clear();
  }
}

function nodeOf({ item, children }: TreeNode): TraceNode {
  return {
    type: item.type,
    name: nameOf(item),
    error: item.type === 'trace' ? undefined : item.error?.message,
    children: children.map(nodeOf),
  };
}
