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
  for (let i = 0; i < 4096; i++) origins.set(`trace_${i}`, origin('b'.repeat(16)));
  origins.set('trace_0', origin('c'.repeat(16)));
  for (let i = 4096; i < 4096 + 10; i++) origins.set(`trace_${i}`, origin('b'.repeat(16)));
  const known = (id: number): boolean => origins.get(`trace_${id}`) !== undefined;
  expect([known(0), known(1), known(10), known(11), known(4105)]).toEqual([true, false, false, true, true]);
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
