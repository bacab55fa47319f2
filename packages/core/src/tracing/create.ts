import { atOnce } from '../base/at-once.ts';
import { logFailure } from './log.ts';
import { checkSpan, checkTrace, makeSpan, makeTrace } from './make.ts';
import { noopSpan, noopTrace } from './noop.ts';
import { isDisabled, runtime } from './runtime.ts';
import type { Span, SpanInit, SpanOptions, SpanType, Trace, TraceOptions } from './types.ts';

/**
 * Not started and not current. Prefer `withTrace`.
 *
 * @throws UserError for unknown options and wrong kinds
 * @example
 * using trace = createTrace('import', { groupId: 'job-7' }).start();
 * createSpan({ type: 'custom', name: 'read' }, { parent: trace });
 */
export function createTrace(name: string, options?: TraceOptions): Trace {
  const { provider } = runtime();
  if (provider === undefined) return makeTrace(name, options);
  checkTrace(name, options);
  if (isDisabled()) return noopTrace;
  try {
    return atOnce(provider.createTrace(name, options), 'createTrace');
  } catch (error) {
    logFailure('Trace provider: createTrace', error);
    return noopTrace;
  }
}

/**
 * Not started and not current. Without a parent, given or current, a no-op.
 *
 * @throws UserError for unknown options and for data without what its type needs
 * @example
 * using span = createSpan({ type: 'custom', name: 'rank' }).start(); // finishes at the end of the block
 */
export function createSpan<K extends SpanType>(span: SpanInit<K>, options?: SpanOptions): Span<K> {
  const { provider } = runtime();
  if (provider === undefined) return makeSpan(span, options);
  checkSpan(span, options);
  if (isDisabled()) return noopSpan(span.type);
  try {
    return atOnce(provider.createSpan(span, options), 'createSpan');
  } catch (error) {
    logFailure('Trace provider: createSpan', error);
    return noopSpan(span.type);
  }
}
