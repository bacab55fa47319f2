import { publicMessage } from './public-record.ts';
import { nameOf } from './tree.ts';
import type { TreeNode } from './tree.ts';
import type { Span } from './types.ts';

export interface RenderOptions {
  /** A run that went on: an earlier part of the trace was printed, or kept, before. */
  readonly continued: boolean;
  /** Texts of errors may show. */
  readonly data: boolean;
  readonly colours: boolean;
}

type Style = 'bold' | 'dim' | 'red' | 'yellow';
const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, yellow: 33 };
const RESET = '\u{1b}[0m';

/** One tree as lines: `├─ function lookup_order · 12 ms · ✗ Error running tool`. */
export function renderTree(tree: TreeNode, options: RenderOptions): string {
  const lines = [lineOf(tree, options)];
  addChildren(tree, '', options, lines);
  return lines.join('\n');
}

function addChildren({ children }: TreeNode, indent: string, options: RenderOptions, lines: string[]): void {
  for (const [index, child] of children.entries()) {
    const isLast = index === children.length - 1;
    lines.push(`${indent}${isLast ? '└─ ' : '├─ '}${lineOf(child, options)}`);
    addChildren(child, `${indent}${isLast ? '   ' : '│  '}`, options, lines);
  }
}

function lineOf({ item, children }: TreeNode, options: RenderOptions): string {
  const paint = (text: string, style: Style): string =>
    options.colours && text !== '' ? `\u{1b}[${CODES[style]}m${text}${RESET}` : text;
  const continued = item.type === 'trace' && options.continued ? ' (continued)' : '';
  const head = [item.type, paint(oneLine(nameOf(item)), 'bold')].filter((part) => part !== '').join(' ') + continued;
  const facts =
    item.type === 'trace'
      ? [
          duration(item.startTimeMs, item.endTimeMs ?? (options.continued ? lastEnd(children) : undefined)),
          oneLine(item.traceId),
        ]
      : [duration(item.startTimeMs, item.endTimeMs), tokensOf(item)];
  const marks =
    item.type === 'trace' ? [] : [paint(stateOf(item), 'yellow'), paint(errorOf(item, options.data), 'red')];
  const shown = [...facts.map((fact) => fact && paint(fact, 'dim')), ...marks].filter(
    (part) => part !== undefined && part !== '',
  );
  return [head, ...shown].join(' · ');
}

/** A trace that a resumed run took up again emits no end: that of its last span. */
function lastEnd(children: readonly TreeNode[]): number | undefined {
  const ends = children.map(({ item }) => item.endTimeMs).filter((end) => end !== undefined);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

function duration(startMs: number | undefined, endMs: number | undefined): string | undefined {
  if (startMs === undefined || endMs === undefined) return undefined;
  const ms = endMs - startMs;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms >= 10 ? ms.toFixed(0) : ms.toFixed(1)} ms`;
}

/** Tokens of the span's own usage. */
function tokensOf(span: Span): string | undefined {
  const usage = (span.spanData as { usage?: Readonly<Record<string, unknown>> }).usage;
  if (usage === undefined) return undefined;
  const [input, output] = [
    usage['inputTokens'] ?? usage['input_tokens'],
    usage['outputTokens'] ?? usage['output_tokens'],
  ];
  if (typeof input !== 'number' || typeof output !== 'number') return undefined;
  return `${input} in, ${output} out`;
}

/** What became of a call, where it is not the usual. */
function stateOf(span: Span): string {
  if (span.type === 'guardrail') return span.spanData.triggered === true ? 'triggered' : '';
  if (span.type !== 'function') return '';
  const { approval, outcome } = span.details;
  if (approval === 'pending') return 'waits for approval';
  if (approval === 'rejected') return 'rejected';
  return outcome === 'cancelled' ? 'cancelled' : '';
}

function errorOf(span: Span, data: boolean): string {
  const { error } = span;
  // A rejection is what a person wanted: the state says it.
  if (error === undefined || (span.type === 'function' && span.details.outcome === 'rejected')) return '';
  if (!data) return `✗ ${publicMessage(error.message)}`;
  const detail: unknown = error.data?.['error'];
  return oneLine(typeof detail === 'string' && detail !== '' ? `✗ ${error.message}: ${detail}` : `✗ ${error.message}`);
}

/** Names and error texts may hold line breaks and control characters; those would break the tree or the terminal. */
function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}
