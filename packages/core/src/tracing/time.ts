import { answersLater } from '../base/at-once.ts';
import { logFailure } from './log.ts';
import { runtime } from './runtime.ts';
import type { Clock } from './types.ts';

let last = 0;
/** What `monotonic()` lacks to the epoch. */
let offset: number | undefined;
/** A wall clock that differs by more was set. */
const SET_MS = 5;

/** A `Date.now` that goes back stands still instead. */
function monotonic(): number {
  last = Math.max(last, globalThis.performance?.now?.() ?? Date.now());
  return last;
}

/** The wall clock with the fraction of a millisecond that `Date.now` cuts off: traces of one millisecond keep their order. */
function now(): number {
  const [wall, elapsed] = [Date.now(), monotonic()];
  const ahead = offset === undefined ? -1 : offset + elapsed - wall;
  // What was cut off is never less than nothing: the first readings find out how much it was.
  if (offset === undefined || ahead < 0 || ahead > SET_MS) offset = wall - elapsed;
  return offset + elapsed;
}

const platform: Clock = { now, monotonic };

/** Clocks are anybody's: one that answers later has no time to tell. */
function reading(value: unknown): number {
  if (typeof value === 'number') return value;
  answersLater(value);
  return Number.NaN;
}

/**
 * The time of one trace: the wall clock read once, then monotonic differences. So no end is before its start and no
 * child outside of its parent when the wall clock is set (TRACE-M5, M18).
 */
export class TraceTime {
  readonly #clock: Clock;
  readonly #wall: number;
  readonly #monotonic: number;

  constructor() {
    let clock = runtime().clock ?? platform;
    let [wall, monotonic] = [Number.NaN, Number.NaN];
    try {
      [wall, monotonic] = [reading(clock.now()), reading(clock.monotonic())];
    } catch (error) {
      logFailure('Trace clock', error);
    }
    if (!Number.isFinite(wall) || !Number.isFinite(monotonic)) {
      clock = platform;
      [wall, monotonic] = [clock.now(), clock.monotonic()];
    }
    this.#clock = clock;
    this.#wall = wall;
    this.#monotonic = monotonic;
  }

  /** Epoch milliseconds with fraction. */
  now(): number {
    try {
      const now = this.#wall + (reading(this.#clock.monotonic()) - this.#monotonic);
      if (Number.isFinite(now)) return now;
    } catch (error) {
      logFailure('Trace clock', error);
    }
    return this.#wall;
  }
}

/** The second that was written last, and its text: spans are many in one. */
let written = { second: Number.NaN, text: '' };

/** `2026-03-01T09:00:00.120450+00:00`, as the wire has it; `null` for what has not happened or is no time. */
export function isoTime(epochMs: number | undefined): string | null {
  if (epochMs === undefined) return null;
  const micros = Math.round(epochMs * 1000);
  const second = Math.floor(micros / 1_000_000);
  if (second !== written.second) {
    const date = new Date(second * 1000);
    if (Number.isNaN(date.getTime())) return null;
    written = { second, text: date.toISOString().slice(0, -'.000Z'.length) };
  }
  // The digit in front keeps the zeros.
  const fraction = String(1_000_000 + (micros - second * 1_000_000)).slice(1);
  return `${written.text}.${fraction}+00:00`;
}

/** The instant of a time of the wire, as epoch milliseconds with fraction; `undefined` for what is none. */
export function epochMs(time: string | null | undefined): number | undefined {
  if (time === null || time === undefined) return undefined;
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) return undefined;
  // Engines read three digits of the fraction.
  const more = /\.\d{3}(\d+)/.exec(time)?.[1];
  return more === undefined ? ms : ms + Number(`0.${more}`);
}
