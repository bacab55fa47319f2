import type { Span, SpanWire, Trace, TraceWire } from './types.ts';

/** The method of traces and spans that gives their record unguarded. Shared by copies of core. */
export const rawRecord: unique symbol = Symbol.for('agents.rawRecord');

/**
 * The wire record for exporters that write JSON themselves: as `toJSON()`, but it costs no walk through the data, and what
 * JSON cannot hold (cycles, BigInt, …) stands where it is. Data is shared with the span: change nothing in it.
 *
 * @returns `undefined` for no-op traces and spans
 * @example
 * const texts = items.map(wireRecord).filter((record) => record !== undefined).map(encode);
 */
export function wireRecord(item: Trace | Span): TraceWire | SpanWire | undefined {
  const own = item as { readonly [rawRecord]?: () => TraceWire | SpanWire };
  return own[rawRecord] === undefined ? item.toJSON() : own[rawRecord]();
}
