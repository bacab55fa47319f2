import { median } from './clock.ts';
import type { Goal, Reference } from './rows.ts';
import { round } from './summary.ts';
import type { Measured } from './summary.ts';

export interface Verdict {
  /** What the goal is about: the figure of `@agents/core`, or its ratio to another. */
  readonly figure: number;
  readonly reached: boolean;
  readonly text: string;
}

/** One for each goal of the row whose other figure, if it is about one, was measured too. */
export function verdicts(measured: Measured, all: readonly Measured[]): Verdict[] {
  const { row, figures, together } = measured;
  const own = figures.get('@agents/core') ?? [];
  return (row.goals ?? []).flatMap((goal) => {
    if (goal.of === undefined) return [verdict(goal, median(own))];
    const others = figuresOf(goal.of, measured, all);
    return others === undefined ? [] : [verdict(goal, ratio(own, others, together))];
  });
}

/** Of those that were measured beside each other in the same process or round, the median of their ratios. */
function ratio(own: readonly number[], others: readonly number[], together: boolean): number {
  if (!together) return median(own) / median(others);
  return median(own.map((figure, index) => figure / (others[index] ?? Number.NaN)));
}

function figuresOf(
  { peer = '@agents/core', row: title }: Reference,
  measured: Measured,
  all: readonly Measured[],
): readonly number[] | undefined {
  // Titles of rows that go with another one are those of several.
  const other = title === undefined ? measured : all.find(({ row }) => row.title === title);
  return other?.figures.get(peer);
}

function verdict(goal: Goal, figure: number): Verdict {
  const reached = 'atMost' in goal ? figure <= goal.atMost : figure >= goal.atLeast;
  const limit = 'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`;
  const of = goal.of === undefined ? '' : ` of ${nameOf(goal.of)}`;
  return { figure, reached, text: `${round(figure)}${of}, to be ${limit}${reached ? '' : ': missed'}` };
}

/** Which of a peer's rows a figure is beside is plain from the row that has the goal. */
function nameOf({ peer, row }: Reference): string {
  return peer ?? `its own ${row?.replace(/^… /u, '')}`;
}
