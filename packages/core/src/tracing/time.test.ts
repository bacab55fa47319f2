import { expect, it } from 'vitest';
import { isoTime } from './time.ts';

it('writes six digits of the fraction, whatever time was written before [TRACE-M5]', () => {
  const second = Date.parse('2026-03-01T09:00:00Z');
  expect([120.45, 0, 0.001, 999.999, 999.9996, 1000.5, -0.001].map((ms) => isoTime(second + ms))).toEqual([
    '2026-03-01T09:00:00.120450+00:00',
    '2026-03-01T09:00:00.000000+00:00',
    '2026-03-01T09:00:00.000001+00:00',
    '2026-03-01T09:00:00.999999+00:00',
    '2026-03-01T09:00:01.000000+00:00',
    '2026-03-01T09:00:01.000500+00:00',
    '2026-03-01T08:59:59.999999+00:00',
  ]);
  expect(isoTime(-0.5)).toBe('1969-12-31T23:59:59.999500+00:00');
});

it('writes nothing for what has not happened or is no time', () => {
  expect([undefined, Number.NaN, Number.POSITIVE_INFINITY, 1e300].map(isoTime)).toEqual([null, null, null, null]);
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000000+00:00');
});
