import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { InMemoryTraceProcessor } from '../testing/trace-processor.ts';
import { createSpan, createTrace } from './create.ts';
import { generateGroupId, generateSpanId, generateTraceId } from './ids.ts';
import { addTraceProcessor } from './processors.ts';
import { configureTracing } from './provider.ts';
import { runtime } from './runtime.ts';
import { traceInternals } from './trace.ts';
import type { LogRecord } from '../base/logger.ts';
import type { Span, SpanWire, Trace, TraceWire } from './types.ts';
import { wireRecord } from './wire-record.ts';

afterEach(resetAll);

function record(): InMemoryTraceProcessor {
  const recorder = new InMemoryTraceProcessor();
  addTraceProcessor(recorder);
  return recorder;
}

function captureLogs(): LogRecord[] {
  const lines: LogRecord[] = [];
  configureLogging({ level: 'debug', sink: (line) => lines.push(line) });
  return lines;
}

/** A clock that is moved by hand. */
function handClock(start: number): { now: number; monotonic: number } {
  const times = { now: start, monotonic: 1000 };
  configureTracing({ clock: { now: () => times.now, monotonic: () => times.monotonic } });
  return times;
}

it('draws ids of the documented forms, all different [TRACE-M1]', () => {
  expect(generateTraceId()).toMatch(/^trace_[0-9a-f]{32}$/);
  expect(generateSpanId()).toMatch(/^span_[0-9a-f]{24}$/);
  expect(generateGroupId()).toMatch(/^group_[0-9a-f]{24}$/);
  expect(new Set(Array.from({ length: 1000 }, generateTraceId)).size).toBe(1000);
});

it('uses given ids verbatim and warns once about a trace id without prefix [TRACE-M2]', () => {
  const lines = captureLogs();
  record();
  const traces = [createTrace('a', { traceId: 'run 7' }), createTrace('b', { traceId: 'run 8' })];
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: traces[0]!, spanId: 'mine' });
  expect(traces.map((trace) => trace.traceId)).toEqual(['run 7', 'run 8']);
  expect(span.toJSON()).toMatchObject({ id: 'mine', trace_id: 'run 7' });
  expect(lines.filter((line) => line.level === 'warn')).toHaveLength(1);
  expect(lines[0]?.logger).toBe('openai.agents.tracing');
});

it('keeps two traces apart that use one span id [TRACE-M3, P20]', () => {
  const recorder = record();
  for (const name of ['a', 'b']) {
    const trace = createTrace(name).start();
    const parent = createSpan({ type: 'custom', name: `parent of ${name}` }, { parent: trace, spanId: 'same' }).start();
    createSpan({ type: 'custom', name: `child of ${name}` }, { parent })
      .start()
      .finish();
    parent.finish();
    trace.finish();
  }
  expect(recorder.tree().map((tree) => tree.children[0]?.children.map((child) => child.name))).toEqual([
    ['child of a'],
    ['child of b'],
  ]);
});

it('orders siblings by start time and a parent before its children [TRACE-P20]', () => {
  const recorder = record();
  const times = handClock(0);
  const trace = createTrace('t').start();
  const late = createSpan({ type: 'custom', name: 'late' }, { parent: trace, startTimeMs: 50 }).start();
  const early = createSpan({ type: 'custom', name: 'early' }, { parent: trace, startTimeMs: 20 }).start();
  times.monotonic += 50;
  const child = createSpan({ type: 'custom', name: 'child' }, { parent: late }).start();
  for (const span of [child, early, late]) span.finish();
  trace.finish();
  expect(recorder.tree()[0]?.children).toMatchObject([
    { name: 'early' },
    { name: 'late', children: [{ name: 'child' }] },
  ]);
});

it('gives a no-op span that takes everything and keeps nothing [TRACE-M4, M15]', () => {
  const recorder = record();
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x', data: { a: 1 } }, { parent: trace, spanId: 'no-op' }).start();
  span.spanData.data = { secret: 1 };
  (span.spanData.data ??= {})['more'] = 2;
  span.setError({ message: 'e' });
  span.finish();
  expect(span).toMatchObject({ spanId: 'no-op', traceId: 'no-op', isNoop: true, error: undefined });
  expect(span.spanData).toEqual({ name: '', data: {} });
  expect(span.toJSON()).toBeUndefined();
  const silent = createTrace('t', { disabled: true });
  expect([silent.traceId, silent.start().toJSON()]).toEqual(['no-op', undefined]);
  expect(recorder.spans).toEqual([]);
  expect(recorder.traces).toHaveLength(1);
});

it('gives no-op spans of every type data of that type [TRACE-M4]', () => {
  const noop = createTrace('t', { disabled: true });
  const agent = createSpan({ type: 'agent', name: 'A' }, { parent: noop });
  agent.spanData.tools?.push('x');
  expect(agent.spanData).toEqual({ name: '', handoffs: [], tools: [] });
  expect(createSpan({ type: 'turn', turn: 3, agentName: 'A' }, { parent: noop }).spanData).toEqual({
    turn: 0,
    agentName: '',
  });
  expect(createSpan({ type: 'response' }, { parent: noop }).spanData).toEqual({});
});

it('writes UTC times with six digits; both forms tell the same instants [TRACE-M5]', () => {
  record();
  const times = handClock(Date.UTC(2026, 2, 1, 9, 0, 0, 120) + 0.45);
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace }).start();
  times.monotonic += 1880.553;
  span.finish();
  expect(span.toJSON()).toMatchObject({
    started_at: '2026-03-01T09:00:00.120450+00:00',
    ended_at: '2026-03-01T09:00:02.001003+00:00',
  });
  expect(span.endTimeMs! - span.startTimeMs!).toBeCloseTo(1880.553, 3);
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: trace }).toJSON()).toMatchObject({
    started_at: null,
    ended_at: null,
  });
});

it('lets no span end before its start, nor leave its parent, when the clock is set back [TRACE-M18, M6, T63]', () => {
  const recorder = record();
  const times = handClock(10_000_000);
  const trace = createTrace('t').start();
  const outer = createSpan({ type: 'custom', name: 'outer' }, { parent: trace }).start();
  times.now -= 3_600_000;
  times.monotonic += 5;
  const inner = createSpan({ type: 'custom', name: 'inner' }, { parent: outer }).start();
  times.now -= 3_600_000;
  times.monotonic += 5;
  for (const item of [inner, outer, trace]) item.finish();
  expect(inner.startTimeMs).toBe(10_000_005);
  expect(inner.endTimeMs).toBe(10_000_010);
  for (const span of recorder.spans) expect(span.toJSON()!.ended_at! >= span.toJSON()!.started_at!).toBe(true);
  expect([outer.startTimeMs! <= inner.startTimeMs!, inner.endTimeMs! <= outer.endTimeMs!]).toEqual([true, true]);
});

it('falls back to the clock of the platform when the configured one fails [TRACE-M6, A6]', () => {
  const lines = captureLogs();
  const before = Date.now();
  configureTracing({
    clock: {
      now: () => Number.NaN,
      monotonic: () => {
        throw new Error('no clock');
      },
    },
  });
  record();
  const trace = createTrace('t').start();
  trace.finish();
  expect(trace.startTimeMs).toBeGreaterThanOrEqual(before);
  expect(trace.endTimeMs).toBeGreaterThanOrEqual(trace.startTimeMs!);
  expect(lines.map((line) => line.message)).toContain('Trace clock failed (Error).');
});

it('ignores a second start, an early finish and a second finish, with a warning for the first two [TRACE-M7]', () => {
  const lines = captureLogs();
  const events: string[] = [];
  addTraceProcessor({
    onTraceStart: () => void events.push('trace start'),
    onTraceEnd: () => void events.push('trace end'),
    onSpanStart: () => void events.push('span start'),
    onSpanEnd: () => void events.push('span end'),
  });
  const warnings = (): number => lines.filter((line) => line.level === 'warn').length;
  const trace = createTrace('t');
  trace.finish();
  expect([warnings(), events]).toEqual([1, []]);
  trace.start().start();
  expect([warnings(), events]).toEqual([1, ['trace start']]);
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace });
  span.finish();
  expect([warnings(), events]).toEqual([2, ['trace start']]);
  span.start().start();
  expect(warnings()).toBe(3);
  span.finish();
  span.finish();
  trace.finish();
  trace.finish();
  expect(events).toEqual(['trace start', 'span start', 'span end', 'trace end']);
  expect(warnings()).toBe(3);
});

it('takes trace and parent of a span from its parent [TRACE-M8]', () => {
  record();
  const trace = createTrace('t', { apiKey: 'sk-1', metadata: { tenant: 'acme' } }).start();
  const outer = createSpan({ type: 'custom', name: 'outer' }, { parent: trace });
  const inner = createSpan({ type: 'custom', name: 'inner' }, { parent: outer });
  expect(outer.parentId).toBeUndefined();
  expect(inner.parentId).toBe(outer.spanId);
  expect(inner.parent).toBe(outer);
  expect(inner.trace).toBe(trace);
  expect([inner.trace.apiKey, inner.trace.metadata]).toEqual(['sk-1', { tenant: 'acme' }]);
});

it('puts the routing key and the metadata of an agent span on the record, the key of the trace winning [TRACE-M9]', () => {
  record();
  const trace = createTrace('t', { metadata: { agent_harness_id: 'h1', tenant: 'acme' } }).start();
  const plain = createTrace('t', { metadata: { tenant: 'acme' } }).start();
  const agent = createSpan(
    { type: 'agent', name: 'A', metadata: { usage: { requests: 1 }, agent_harness_id: 'mine' } },
    { parent: trace },
  );
  expect(agent.toJSON()?.metadata).toEqual({ usage: { requests: 1 }, agent_harness_id: 'h1' });
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: trace }).toJSON()?.metadata).toEqual({
    agent_harness_id: 'h1',
  });
  expect(createSpan({ type: 'agent', name: 'A' }, { parent: plain }).toJSON()).not.toHaveProperty('metadata');
});

it('writes all keys of a trace in order, null for what is absent [TRACE-M10, M13, M14]', () => {
  const trace = createTrace('Refund desk', {
    traceId: 'trace_1',
    groupId: 'thread-981',
    metadata: { tenant: 'acme' },
    apiKey: 'sk-1',
  });
  expect(JSON.stringify({ t: trace })).toBe(
    '{"t":{"object":"trace","id":"trace_1","workflow_name":"Refund desk","group_id":"thread-981","metadata":{"tenant":"acme"}}}',
  );
  const bare = createTrace('t', { traceId: 'trace_2' });
  expect(JSON.stringify(bare)).toBe(
    '{"object":"trace","id":"trace_2","workflow_name":"t","group_id":null,"metadata":null}',
  );
  expect(bare.metadata).toEqual({});
});

it('shows the key of a trace nowhere [TRACE-M11]', () => {
  const trace = createTrace('t', { apiKey: 'sk-secret' });
  expect(trace.apiKey).toBe('sk-secret');
  expect(Object.keys(trace)).not.toContain('apiKey');
  expect({ ...trace }).not.toHaveProperty('apiKey');
  for (const shown of [JSON.stringify(trace), inspect(trace, { showHidden: true, depth: 9 })])
    expect(shown).not.toContain('sk-secret');
});

it('copies and freezes metadata [TRACE-M13]', () => {
  const metadata: Record<string, unknown> = { nested: { a: 1 }, list: [1, null] };
  const trace = createTrace('t', { metadata });
  metadata['later'] = true;
  expect(trace.metadata).toEqual({ nested: { a: 1 }, list: [1, null] });
  expect(() => Object.assign(trace.metadata, { x: 1 })).toThrow(TypeError);
});

it('writes the record at the time it is asked; changing the record changes no span [TRACE-M12, A13]', () => {
  record();
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x', data: { a: 1 } }, { parent: trace }).start();
  (span.spanData.data as Record<string, unknown>)['output'] = 'late';
  const wire = span.toJSON()!;
  expect(wire.span_data).toEqual({ type: 'custom', name: 'x', data: { a: 1, output: 'late' } });
  wire.span_data['name'] = 'changed';
  (wire.span_data['data'] as Record<string, unknown>)['a'] = 2;
  expect(span.spanData).toEqual({ name: 'x', data: { a: 1, output: 'late' } });
});

it('takes traces and spans of other makers that look like nothing [TRACE-M17]', () => {
  const recorder = record();
  const odd = Object.assign(createTrace('t').start(), { valueOf: () => 0, length: 0 });
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: odd }).start();
  span.finish();
  const own = { ...odd, isNoop: false, toJSON: () => undefined, valueOf: () => 0 } as unknown as Trace;
  const child = createSpan({ type: 'custom', name: 'y' }, { parent: own }).start();
  child.finish();
  expect(recorder.spans).toEqual([span, child]);
  expect(child.trace).toBe(own);
});

it('decides at the start of a trace whether it is recorded: no partial trees [TRACE-P13]', () => {
  const trace = createTrace('t').start();
  const recorder = record();
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace });
  expect(span.isNoop).toBe(true);
  span.start().finish();
  trace.finish();
  expect([recorder.traces, recorder.spans]).toEqual([[], []]);
  expect(trace.traceId).toMatch(/^trace_/);
});

it('waits with the end of a trace for those who hold it [TRACE-A10]', () => {
  const ends: Trace[] = [];
  addTraceProcessor({ onTraceEnd: (trace) => void ends.push(trace) });
  const trace = createTrace('t').start();
  const life = traceInternals(trace)!;
  life.hold();
  life.hold();
  trace.finish();
  life.release();
  expect([ends, trace.endTimeMs]).toEqual([[], undefined]);
  life.release();
  expect(ends).toEqual([trace]);
  expect(trace.endTimeMs).toBeDefined();
});

it('ends no child with its parent, and takes children of ended parents [TRACE-A12, P25]', () => {
  const ended: Span[] = [];
  addTraceProcessor({ onSpanEnd: (span) => void ended.push(span) });
  const trace = createTrace('t').start();
  const parent = createSpan({ type: 'custom', name: 'parent' }, { parent: trace }).start();
  const child = createSpan({ type: 'custom', name: 'child' }, { parent }).start();
  parent.finish();
  trace.finish();
  const late = createSpan({ type: 'custom', name: 'late' }, { parent }).start();
  late.finish();
  expect(ended.map((span) => span.spanId)).toEqual([parent.spanId, late.spanId]);
  expect([child.endTimeMs, late.parentId]).toEqual([undefined, parent.spanId]);
});

it('draws ids itself when the configured generator fails [TRACE-A6, P26]', () => {
  const lines = captureLogs();
  const fail = (): never => {
    throw new Error('no ids');
  };
  configureTracing({ ids: { traceId: fail, spanId: () => '', groupId: () => 'g' } });
  record();
  const trace = createTrace('t').start();
  expect(trace.traceId).toMatch(/^trace_[0-9a-f]{32}$/);
  expect(createSpan({ type: 'custom', name: 'x' }, { parent: trace }).spanId).toMatch(/^span_[0-9a-f]{24}$/);
  expect(generateGroupId()).toBe('g');
  expect(lines.filter((line) => line.level === 'error')).toHaveLength(2);
});

it('keeps one state for all copies in a process [TRACE-C14]', () => {
  expect((globalThis as Record<symbol, unknown>)[Symbol.for('agents.tracing.v1')]).toBe(runtime());
});

it('ends no span before it began, also where its start is given [TRACE-M5, M18]', () => {
  addTraceProcessor({});
  const trace = createTrace('t').start();
  const future = Date.now() + 60_000;
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace, startTimeMs: future }).start();
  span.finish();
  expect([span.startTimeMs, span.endTimeMs]).toEqual([future, future]);
});

describe('the record for exporters that write JSON themselves', () => {
  it('is that of toJSON, with values that JSON cannot hold where they are, and without copies of data [TRACE-S17, M12]', () => {
    record();
    const trace = createTrace('t', { metadata: { n: 1n } }).start();
    const cycle: Record<string, unknown> = { deep: { n: 1n } };
    cycle['self'] = cycle;
    const span = createSpan({ type: 'custom', name: 'c', data: { cycle } }, { parent: trace }).start();
    span.setError({ message: 'm', data: { n: Number.NaN } });
    expect(wireRecord(span)?.object).toBe('trace.span');
    const wire = wireRecord(span) as SpanWire;
    expect((wire.span_data['data'] as Record<string, unknown>)['cycle']).toBe(cycle);
    expect(span.toJSON()?.span_data).toEqual({ type: 'custom', name: 'c', data: { cycle: '<unserializable>' } });
    expect((wireRecord(trace) as TraceWire).metadata).toEqual({ n: 1n });
    expect(trace.toJSON()?.metadata).toEqual({ n: '<unserializable>' });
  });

  it('of items of other makers is what their toJSON gives; of no-op ones there is none', () => {
    const trace = createTrace('t').start();
    const wire = trace.toJSON();
    expect(wireRecord({ ...trace, type: 'trace', toJSON: () => wire })).toBe(wire);
    expect(wireRecord(createTrace('t', { disabled: true }))).toBeUndefined();
    expect(wireRecord(createSpan({ type: 'custom', name: 'c' }))).toBeUndefined();
  });
});

it('a processor that is there already stays where it is when it is added again', () => {
  const seen: string[] = [];
  const processor = { onTraceStart: () => void seen.push('first') };
  addTraceProcessor(processor);
  addTraceProcessor({ onTraceStart: () => void seen.push('second') });
  const remove = addTraceProcessor(processor);
  createTrace('t').start();
  expect(seen).toEqual(['first', 'second']);
  remove();
  createTrace('t').start();
  expect(seen).toEqual(['first', 'second', 'second']);
});
