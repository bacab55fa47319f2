import { duration, oneLine, painted, wrapped } from './console-text.ts';
import type { Style } from './console-text.ts';
import { hasFailed, labelOf, summaryOf, tokensOf } from './console-summary.ts';
import { publicMessage } from './public-record.ts';
import type { TreeNode } from './tree.ts';
import type { Span, Trace } from './types.ts';

export interface RenderOptions {
  /** A run that went on: an earlier part of the trace was printed, or kept, before. */
  readonly continued: boolean;
  /** Texts of errors may show. */
  readonly data: boolean;
  readonly colours: boolean;
  /** Characters of a line; what is longer goes on below. */
  readonly width: number;
}

const SEPARATOR = ' · ';
/** Narrower than this nobody reads an error text. */
const MIN_TEXT = 30;

/** A part of a line, and how it looks. */
interface Part {
  readonly text: string;
  readonly style?: Style;
}

/**
 * One tree as lines, and what a reader asks first below it:
 * `├─ function lookup_order · 12 ms · ✗ Error running tool`.
 */
export function renderTree(tree: TreeNode, options: RenderOptions): string {
  const lines = linesOf(tree, '', options);
  addChildren(tree, '', options, lines);
  return [...lines, ...summaryLines(tree, options)].join('\n');
}

function addChildren({ children }: TreeNode, indent: string, options: RenderOptions, lines: string[]): void {
  for (const [index, child] of children.entries()) {
    const isLast = index === children.length - 1;
    const inner = `${indent}${isLast ? '   ' : '│  '}`;
    const [first = '', ...more] = linesOf(child, inner, options);
    lines.push(`${indent}${isLast ? '└─ ' : '├─ '}${first}`, ...more.map((line) => `${inner}${line}`));
    addChildren(child, inner, options, lines);
  }
}

/** The line of a trace or span without what is before it, and an error text that has no room there below. */
function linesOf({ item, children }: TreeNode, indent: string, { width, ...options }: RenderOptions): string[] {
  const parts = item.type === 'trace' ? traceParts(item, children, options.continued) : spanParts(item);
  const error = item.type === 'trace' ? '' : errorOf(item, options.data);
  const line = joined(parts, options.colours);
  if (error === '') return [line];
  const room = width - indent.length;
  const length = joined(parts, false).length + SEPARATOR.length + error.length;
  const red = (text: string): string => painted(text, 'red', options.colours);
  if (length <= room) return [`${line}${SEPARATOR}${red(error)}`];
  const below = `${children.length > 0 ? '│' : ' '}  `;
  return [line, ...wrapped(error, Math.max(MIN_TEXT, room - below.length)).map((text) => `${below}${red(text)}`)];
}

function joined(parts: readonly Part[], colours: boolean): string {
  return parts
    .filter(({ text }) => text !== '')
    .map(({ text, style }) => (style === undefined ? text : painted(text, style, colours)))
    .join(SEPARATOR);
}

function traceParts(trace: Trace, children: readonly TreeNode[], continued: boolean): Part[] {
  const end = trace.endTimeMs ?? (continued ? lastEnd(children) : undefined);
  return [
    { text: `${labelOf(trace)}${continued ? ' (continued)' : ''}`, style: 'bold' },
    { text: duration(trace.startTimeMs, end) ?? '', style: 'dim' },
    { text: oneLine(trace.traceId), style: 'dim' },
  ];
}

function spanParts(span: Span): Part[] {
  const tokens = tokensOf(span);
  return [
    { text: labelOf(span), style: 'bold' },
    { text: duration(span.startTimeMs, span.endTimeMs) ?? '', style: 'dim' },
    { text: tokens === undefined ? '' : `${tokens.input} in, ${tokens.output} out`, style: 'dim' },
    { text: stateOf(span), style: 'yellow' },
  ];
}

/** A trace that a resumed run took up again emits no end: that of its last span. */
function lastEnd(children: readonly TreeNode[]): number | undefined {
  const ends = children.map(({ item }) => item.endTimeMs).filter((end) => end !== undefined);
  return ends.length === 0 ? undefined : Math.max(...ends);
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

/** Of a rejection the state says it. */
function errorOf(span: Span, data: boolean): string {
  const { error } = span;
  if (error === undefined || !hasFailed(span)) return '';
  if (!data) return `✗ ${publicMessage(error.message)}`;
  const detail: unknown = error.data?.['error'];
  return oneLine(typeof detail === 'string' && detail !== '' ? `✗ ${error.message}: ${detail}` : `✗ ${error.message}`);
}

function summaryLines(tree: TreeNode, { colours, width }: RenderOptions): string[] {
  const { tokens, slowest, failed } = summaryOf(tree);
  const parts = [
    { label: 'tokens', text: tokens },
    { label: 'slowest step', text: slowest },
    { label: 'failed', text: failed, style: 'red' as const },
  ];
  const lines: string[] = [];
  let length = 0;
  for (const { label, text, style } of parts) {
    if (text === undefined) continue;
    const plain = `${label}: ${text}`;
    const shown = painted(plain, style ?? 'dim', colours);
    const fits = lines.length > 0 && length + SEPARATOR.length + plain.length <= width;
    if (fits) lines[lines.length - 1] += `${SEPARATOR}${shown}`;
    else lines.push(shown);
    length = fits ? length + SEPARATOR.length + plain.length : plain.length;
  }
  return lines;
}
