import type { PeerName } from './peers/peer.ts';
import type { Row } from './rows.ts';
import { peerNames } from './peers/peer.ts';

/** What the processes of a measurement gave for one row, by peer. */
export interface Measured {
  readonly row: Row;
  readonly figures: ReadonlyMap<PeerName, readonly number[]>;
}

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summary(figures: readonly number[]): Summary {
  const sorted = figures.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1) };
}

export interface Verdict {
  /** What the goal is about: the figure of `@agents/core`, or its ratio to a peer's. */
  readonly figure: number;
  readonly reached: boolean;
  readonly text: string;
}

export function verdict({ row, figures }: Measured): Verdict | undefined {
  const { goal } = row;
  if (goal === undefined) return undefined;
  const median = (peer: PeerName): number => summary(figures.get(peer) ?? []).median;
  const figure = median('@agents/core') / (goal.of === undefined ? 1 : median(goal.of));
  const reached = 'atMost' in goal ? figure <= goal.atMost : figure >= goal.atLeast;
  const limit = 'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`;
  const of = goal.of === undefined ? '' : ` of ${goal.of}`;
  return { figure, reached, text: `${round(figure)}${of}, to be ${limit}${reached ? '' : ': missed'}` };
}

/** A Markdown table of medians, least and greatest in brackets. */
export function table(all: readonly Measured[]): string {
  const lines = all.map((measured) => {
    const { title, unit } = measured.row;
    const cells = peerNames.map((name) => cell(measured.figures.get(name)));
    return [unit === '' ? title : `${title}, ${unit}`, ...cells, verdict(measured)?.text ?? ''];
  });
  return aligned([['', ...peerNames, 'goal'], ...lines]);
}

function cell(figures: readonly number[] | undefined): string {
  if (figures === undefined) return '–';
  const { median, min, max } = summary(figures);
  return min === max ? round(median) : `${round(median)} (${round(min)}–${round(max)})`;
}

function round(value: number): string {
  return value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}

function aligned([head = [], ...lines]: readonly (readonly string[])[]): string {
  const width = (column: number): number => Math.max(3, ...[head, ...lines].map((line) => line[column]?.length ?? 0));
  const widths = head.map((_, column) => width(column));
  const print = (line: readonly string[]): string =>
    `| ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [print(head), print(widths.map((length) => '-'.repeat(length))), ...lines.map(print)].join('\n');
}
