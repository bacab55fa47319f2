import { expect, it } from 'vitest';
import { fromCarrier, Origins, toCarrier } from './carrier.ts';
import type { Origin } from './carrier.ts';

const origin = (spanId: string): Origin => ({
  root: { traceId: 'a'.repeat(32), spanId, traceFlags: 1 },
  agent: undefined,
  pausedAt: undefined,
});

it('knows the origins of the last 4096 traces, those that were asked for again among the latest [TRACE-O18]', () => {
  const origins = new Origins();
  const add = (from: number, to: number): void => {
    for (let i = from; i < to; i++) origins.set(`trace_${i}`, origin('b'.repeat(16)));
  };
  add(0, 4096);
  origins.set('trace_0', origin('c'.repeat(16)));
  // One of each 4096 is no new one.
  add(4096, 4096 + 4095);
  const known = (id: number): boolean => origins.get(`trace_${id}`) !== undefined;
  expect([known(0), known(4096), known(4096 + 4094)]).toEqual([true, true, true]);
  expect(origins.get('trace_0')?.root.spanId).toBe('c'.repeat(16));
  add(10_000, 10_001);
  expect([known(0), known(1), known(4095), known(4096), known(10_000)]).toEqual([true, false, false, true, true]);
});

it('is read back as it was written [TRACE-R12, O18]', () => {
  const written: Origin = {
    ...origin('b'.repeat(16)),
    agent: origin('c'.repeat(16)).root,
    pausedAt: 1_772_355_600_000,
  };
  const read = fromCarrier(toCarrier(written));
  expect(read).toMatchObject({
    root: { ...written.root, isRemote: true },
    agent: { ...written.agent, isRemote: true },
    pausedAt: 1_772_355_600_000,
  });
});
