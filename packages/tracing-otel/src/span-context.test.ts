import { createContextKey, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Span } from '@opentelemetry/api';
import { expect, it } from 'vitest';
import { withSpan } from './span-context.ts';

const [OURS, THEIRS] = [createContextKey('ours'), createContextKey('theirs')];
const spanOf = (digit: string): Span =>
  trace.wrapSpanContext({ traceId: digit.repeat(32), spanId: digit.repeat(16), traceFlags: 1 });
const [first, second] = [spanOf('1'), spanOf('2')];

it('is a context like those of the API: what user code puts in and takes out stays beside the span [TRACE-O3, O4]', () => {
  const base = ROOT_CONTEXT.setValue(THEIRS, 'base');
  const at = withSpan(base, first, OURS, 'mark');
  expect([trace.getSpan(at), at.getValue(OURS), at.getValue(THEIRS)]).toEqual([first, 'mark', 'base']);
  const changed = at.setValue(THEIRS, 'changed');
  expect([trace.getSpan(changed), changed.getValue(OURS), changed.getValue(THEIRS)]).toEqual([
    first,
    'mark',
    'changed',
  ]);
  expect(at.getValue(THEIRS)).toBe('base');
  const gone = changed.deleteValue(THEIRS);
  expect([trace.getSpan(gone), gone.getValue(OURS), gone.getValue(THEIRS)]).toEqual([first, 'mark', undefined]);
  const replaced = trace.setSpan(changed, second).setValue(OURS, 'other');
  expect([trace.getSpan(replaced), replaced.getValue(OURS), replaced.getValue(THEIRS)]).toEqual([
    second,
    'other',
    'changed',
  ]);
  const without = trace.deleteSpan(changed).deleteValue(OURS);
  expect([trace.getSpan(without), without.getValue(OURS), without.getValue(THEIRS)]).toEqual([
    undefined,
    undefined,
    'changed',
  ]);
});

it('does not grow with the depth of spans: 100,000 inside each other are as deep as one', () => {
  let at = ROOT_CONTEXT.setValue(THEIRS, 'base');
  for (let depth = 0; depth < 100_000; depth++) at = withSpan(at, depth % 2 === 0 ? first : second, OURS, depth);
  expect([trace.getSpan(at), at.getValue(OURS), at.getValue(THEIRS)]).toEqual([second, 99_999, 'base']);
});
