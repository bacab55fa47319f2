import { verdicts } from './goals.ts';
import { contestants } from './rows.ts';
import { round, summary } from './summary.ts';
import type { Measured } from './summary.ts';

/** A Markdown table of medians, least and greatest in brackets; a column for everybody who has a figure in it. */
export function table(all: readonly Measured[]): string {
  const names = contestants.filter((name) => all.some(({ figures }) => figures.has(name)));
  const lines = all.map((measured) => {
    const { title, unit } = measured.row;
    const cells = names.map((name) => cell(measured.figures.get(name)));
    const texts = verdicts(measured, all).map(({ text }) => text);
    return [unit === '' ? title : `${title}, ${unit}`, ...cells, texts.join('; ')];
  });
  return aligned([['', ...names, 'goal'], ...lines]);
}

function cell(figures: readonly number[] | undefined): string {
  if (figures === undefined) return '–';
  const { median, min, max } = summary(figures);
  return min === max ? round(median) : `${round(median)} (${round(min)}–${round(max)})`;
}

function aligned([head = [], ...lines]: readonly (readonly string[])[]): string {
  const width = (column: number): number => Math.max(3, ...[head, ...lines].map((line) => line[column]?.length ?? 0));
  const widths = head.map((_, column) => width(column));
  const print = (line: readonly string[]): string =>
    `| ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [print(head), print(widths.map((length) => '-'.repeat(length))), ...lines.map(print)].join('\n');
}
