import { expectTypeOf, test } from 'vitest';
import { createSpan, withSpan, withTrace } from '../src/index.ts';
import type { Span } from '../src/tracing.ts';

test('the type of a span gives the type of its data', () => {
  const span = createSpan({ type: 'function', name: 'f' });
  expectTypeOf(span.spanData.name).toEqualTypeOf<string>();
  expectTypeOf(span.details.approval).toEqualTypeOf<'none' | 'pending' | 'approved' | 'rejected' | undefined>();
  expectTypeOf(withSpan({ type: 'custom', name: 'x' }, (inner) => inner.spanData.data)).toEqualTypeOf<
    Record<string, unknown> | undefined
  >();
  const any = span as unknown as Span;
  if (any.type === 'turn') expectTypeOf(any.spanData.turn).toEqualTypeOf<number>();
  // @ts-expect-error a turn has no name
  createSpan({ type: 'turn', name: 'x' });
  // @ts-expect-error details are written by the run
  span.details.approval = 'approved';
});

test('values and promises of the function come back as they are', () => {
  expectTypeOf(withTrace('t', () => 1)).toEqualTypeOf<number>();
  expectTypeOf(withTrace('t', async () => 'x')).toEqualTypeOf<Promise<string>>();
});
