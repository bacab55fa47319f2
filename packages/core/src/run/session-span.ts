import type { SessionStep } from '../sessions/calls.ts';
import type { Session } from '../sessions/contract.ts';
import { knownSessionId } from '../sessions/settings.ts';
import { failSpanIfOk, finishItem, startItem } from '../tracing/lifecycle.ts';
import type { RunTrace } from '../tracing/run-trace.ts';
import { runInScope } from '../tracing/scope.ts';
import { errorText, fieldOf } from '../tracing/sensitive.ts';
import type { Span, Trace } from '../tracing/types.ts';

export type SessionEffect = Parameters<SessionStep>[0];

const names = { read: 'session.load', append: 'session.save', compact: 'session.compact' } as const;

/** Runs one call of the session in a span of its own; its id is the user's data (TRACE-N21). */
export async function inSessionSpan<T>(
  run: RunTrace,
  at: { readonly owner: Trace | Span; readonly effect: SessionEffect; readonly session: Session | null | undefined },
  work: () => Promise<T>,
): Promise<T> {
  const { operation, items = null } = at.effect;
  const sessionId = at.session && run.includeSensitive ? knownSessionId(at.session) : undefined;
  const data: Record<string, unknown> = { ...(sessionId !== undefined && { session_id: sessionId }), items };
  const name = names[operation];
  const span = startItem(run.span({ type: 'custom', name, data }, at.owner));
  try {
    const result = await runInScope(span, work);
    if (Array.isArray(result) && span.spanData.data) span.spanData.data['items'] = result.length;
    return result;
  } catch (error) {
    const texts = run.texts(fieldOf(span, 'error'));
    failSpanIfOk(span, { message: 'Error in session', data: { error: errorText(error, texts) } });
    throw error;
  } finally {
    finishItem(span);
  }
}
