import { getCurrentSpan, getCurrentTrace } from '../src/index.ts';
import type { Span, Trace } from '../src/index.ts';

/**
 * Which span this code runs in: its type, `trace` outside of any, `nothing` outside of that too. What covers code is open
 * while it runs: where the span or one around it is not, that is told too.
 */
export function currentPlace(): string {
  const place: Span | Trace | undefined = getCurrentSpan() ?? getCurrentTrace();
  if (place === undefined) return 'nothing';
  const closed = around(place).filter(
    ({ startTimeMs, endTimeMs }) => startTimeMs === undefined || endTimeMs !== undefined,
  );
  return closed.length === 0 ? place.type : `${place.type} (not open: ${closed.map(({ type }) => type).join(', ')})`;
}

/** It and all that it is in, the trace last. */
function around(at: Span | Trace): (Span | Trace)[] {
  return at.type === 'trace' ? [at] : [at, ...around(at.parent)];
}
