import { duration, oneLine, shortened } from './console-text.ts';
import { nameOf } from './tree.ts';
import type { TreeNode } from './tree.ts';
import type { Span, Trace } from './types.ts';

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

/** What a reader asks first of a trace. */
export interface Summary {
  /** Of all model calls in it. */
  readonly tokens: string | undefined;
  readonly slowest: string | undefined;
  readonly failed: string | undefined;
}

const MAX_FAILED = 3;

export function summaryOf(tree: TreeNode): Summary {
  const nodes = below(tree);
  return { tokens: tokensIn(nodes), slowest: slowestOf(nodes), failed: failedOf(nodes) };
}

/** Tokens of a span's own usage, in whichever words it stands. */
export function tokensOf(span: Span): Tokens | undefined {
  const usage = (span.spanData as { usage?: Readonly<Record<string, unknown>> }).usage;
  if (usage === undefined) return undefined;
  const input = usage['inputTokens'] ?? usage['input_tokens'];
  const output = usage['outputTokens'] ?? usage['output_tokens'];
  return typeof input === 'number' && typeof output === 'number' ? { input, output } : undefined;
}

/** A failure of its own: a rejection is what a person wanted. */
export function hasFailed(span: Span): boolean {
  return span.error !== undefined && !(span.type === 'function' && span.details.outcome === 'rejected');
}

/** `function lookup_order`, `turn 1`. */
export function labelOf(item: Trace | Span): string {
  return [item.type, shortened(oneLine(nameOf(item)), 60)].filter((part) => part !== '').join(' ');
}

interface SpanNode {
  readonly span: Span;
  readonly children: readonly SpanNode[];
}

function below({ children }: TreeNode): SpanNode[] {
  return children.flatMap((node) => {
    const inner = below(node);
    const own = node.children.map(({ item }) => inner.find(({ span }) => span === item));
    return node.item.type === 'trace'
      ? inner
      : [{ span: node.item, children: own.filter((child) => child !== undefined) }, ...inner];
  });
}

/** A task counts what its own turns used, so all of them together are the whole; models say it where there is no task. */
function tokensIn(nodes: readonly SpanNode[]): string | undefined {
  const spans = nodes.map(({ span }) => span);
  const tasks = spans.filter(({ type }) => type === 'task');
  const calls = spans.filter(({ type }) => type === 'generation' || type === 'response');
  const counts = (tasks.some(tokensOf) ? tasks : calls).map(tokensOf).filter((tokens) => tokens !== undefined);
  if (counts.length === 0) return undefined;
  const input = counts.reduce((sum, tokens) => sum + tokens.input, 0);
  const output = counts.reduce((sum, tokens) => sum + tokens.output, 0);
  return `${input + output} (${input} in, ${output} out)`;
}

/** Of the steps that have no steps themselves; of one alone nobody asks. */
function slowestOf(nodes: readonly SpanNode[]): string | undefined {
  const steps = nodes.filter(({ children }) => children.length === 0).map(({ span }) => span);
  if (steps.length < 2) return undefined;
  const lengthOf = ({ startTimeMs, endTimeMs }: Span): number => (endTimeMs ?? 0) - (startTimeMs ?? 0);
  const [slowest] = steps.toSorted((a, b) => lengthOf(b) - lengthOf(a));
  const time = slowest && duration(slowest.startTimeMs, slowest.endTimeMs);
  return slowest && time && `${labelOf(slowest)} (${time})`;
}

/** Where failures began: spans around them repeat them. */
function failedOf(nodes: readonly SpanNode[]): string | undefined {
  const fails = ({ span, children }: SpanNode): boolean => hasFailed(span) || children.some(fails);
  const failed = nodes.filter(({ span, children }) => hasFailed(span) && !children.some(fails));
  if (failed.length === 0) return undefined;
  const labels = failed.slice(0, MAX_FAILED).map(({ span }) => labelOf(span));
  return [...labels, ...(failed.length > MAX_FAILED ? [`${failed.length - MAX_FAILED} more`] : [])].join(', ');
}
