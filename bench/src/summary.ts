import { median } from './clock.ts';
import type { PeerName } from './peers/peer.ts';
import type { Row } from './rows.ts';

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
  return { median: median(figures), min: Math.min(...figures), max: Math.max(...figures) };
}

export function round(value: number): string {
  return value.toLocaleString('en', value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}
