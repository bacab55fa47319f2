import { median } from './clock.ts';
import type { Contestant, Row } from './rows.ts';

/** What the processes of a measurement gave for one row, by peer. */
export interface Measured {
  readonly row: Row;
  readonly figures: ReadonlyMap<Contestant, readonly number[]>;
  /** What has the same index was measured in the same process, or in the same round of it. */
  readonly together: boolean;
}

export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summary(figures: readonly number[]): Summary {
  return { median: median(figures), min: Math.min(...figures), max: Math.max(...figures) };
}

export function round(value: number): string {
  return value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}
