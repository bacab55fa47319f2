import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sha256Hex } from '../base/digest.ts';
import { configureLogging } from '../base/logger.ts';
import { resetAll } from '../base/reset.ts';
import { readTrace } from '../snapshot/read-trace.ts';
import { writeTrace } from '../snapshot/trace.ts';
import { InMemoryTraceProcessor } from '../testing/trace-processor.ts';
import { createSpan, createTrace } from './create.ts';
import { addDetails } from './lifecycle.ts';
import { addTraceProcessor, setTraceProcessors } from './processors.ts';
import { configureTracing, setTracingDisabled } from './provider.ts';
import { startRunTrace } from './run-trace.ts';
import { runtime } from './runtime.ts';
import { getCurrentSpan, getCurrentTrace } from './scope.ts';
import { traceRecordOf } from './trace-record.ts';
import { withSpan, withTrace } from './with.ts';
import type { TraceRecord } from '../state/record.ts';
import type { RunTrace } from './run-trace.ts';
import type { RunTraceOptions, Span } from './types.ts';

let recorder: InMemoryTraceProcessor;
let events: string[];

beforeEach(() => {
  configureLogging({ sink: () => {} });
  recorder = new InMemoryTraceProcessor();
  events = [];
  addTraceProcessor(recorder);
  addTraceProcessor({
    onTraceStart: (trace) => void events.push(`start ${trace.traceId}`),
    onTraceEnd: (trace) => void events.push(`end ${trace.traceId}`),
  });
});
afterEach(() => {
  vi.unstubAllEnvs();
  resetAll();
});

/** One segment with a task and an agent span, as the loop makes them. */
function segment(
  options: RunTraceOptions = {},
  stored?: TraceRecord,
  inside?: (run: RunTrace, agent: Span) => void,
): RunTrace {
  const run = startRunTrace(options, { stored });
  run.run(() => {
    const task = run.span({ type: 'task', name: run.workflowName }, run.parent).start();
    const agent = run.span({ type: 'agent', name: 'A' }, task).start();
    inside?.(run, agent);
    agent.finish();
    task.finish();
    run.finish();
  });
  return run;
}

const pause = (options: RunTraceOptions = {}, stored?: TraceRecord): TraceRecord =>
  traceRecordOf(segment(options, stored).trace, stored)!;
const throughJSON = (record: TraceRecord): TraceRecord => readTrace(writeTrace(record, false))!;

it('makes a trace of its own, started in the call and ended with the segment [TRACE-N1, N3, N22]', () => {
  const run = startRunTrace({
    workflowName: 'Desk',
    groupId: 'g',
    traceMetadata: { tenant: 'acme' },
    traceApiKey: 'sk-1',
    traceId: 'trace_1',
  });
  expect(events).toEqual(['start trace_1']);
  expect(run).toMatchObject({ owns: true, enabled: true, recording: true, workflowName: 'Desk' });
  expect(run.trace).toMatchObject({ name: 'Desk', groupId: 'g', metadata: { tenant: 'acme' }, apiKey: 'sk-1' });
  expect(run.parent).toBe(run.trace);
  run.finish();
  run.finish();
  expect(events).toEqual(['start trace_1', 'end trace_1']);
});

it('hangs on the current span or trace and emits no trace events there [TRACE-N1, R4, R9]', () => {
  withTrace(
    'outer',
    (outer) => {
      withSpan({ type: 'function', name: 'f' }, (span) => {
        const run = segment(
          { workflowName: 'Inner', traceApiKey: 'sk-2', traceId: 'trace_2' },
          { traceId: 'trace_3', workflowName: 'x', extra: {} },
        );
        expect([run.owns, run.trace, run.parent]).toEqual([false, outer, span]);
      });
      expect(outer.apiKey).toBeUndefined();
    },
    { traceId: 'trace_outer' },
  );
  expect(events).toEqual(['start trace_outer', 'end trace_outer']);
  expect(recorder.tree()).toMatchObject([
    {
      name: 'outer',
      children: [{ name: 'f', children: [{ type: 'task', name: 'Inner', children: [{ name: 'A' }] }] }],
    },
  ]);
});

it('hangs on a given parent where nothing is current [TRACE-C9]', () => {
  configureTracing({ storage: { getStore: () => undefined, run: (_store, fn) => fn() } });
  const outer = startRunTrace({});
  const span = outer.span({ type: 'function', name: 'f' }, outer.parent).start();
  expect(startRunTrace({}, { parent: span })).toMatchObject({ owns: false, parent: span, trace: outer.trace });
});

it('holds the end of a foreign trace until its runs are over [TRACE-A10, C15]', () => {
  const trace = createTrace('t', { traceId: 'trace_1' }).start();
  const run = withTrace(trace, () => startRunTrace({}));
  trace.finish();
  expect(events).toEqual(['start trace_1']);
  run.finish();
  expect(events).toEqual(['start trace_1', 'end trace_1']);
});

describe('switched off', () => {
  it('traces nothing and costs nothing when off for the process [TRACE-P10, N17]', () => {
    setTracingDisabled(true);
    const run = segment({}, undefined, (_run, agent) => expect(agent.isNoop).toBe(true));
    expect(run).toMatchObject({ enabled: false, recording: false, owns: false, modelTracing: 'disabled' });
    expect(run.trace.traceId).toBe('no-op');
    expect(run.span({ type: 'custom', name: 'a' }, run.parent)).toBe(
      run.span({ type: 'custom', name: 'b' }, run.parent),
    );
    expect(runtime().storage).toBeUndefined();
  });

  it('hides any surrounding trace when off for the run [TRACE-N23, N17, T15, R14]', () => {
    withTrace('outer', (outer) => {
      withSpan({ type: 'custom', name: 'around' }, (around) => {
        const stored: TraceRecord = { traceId: 'trace_s', workflowName: 'w', extra: {} };
        const run = segment({ tracingDisabled: true }, stored, () => {
          expect([getCurrentTrace()?.traceId, getCurrentSpan()?.spanId]).toEqual(['no-op', 'no-op']);
          expect(createSpan({ type: 'custom', name: 'x' }).isNoop).toBe(true);
          expect(segment()).toMatchObject({ enabled: false });
        });
        expect([run.enabled, traceRecordOf(run.trace, stored)]).toEqual([false, stored]);
        expect([getCurrentTrace(), getCurrentSpan()]).toEqual([outer, around]);
      });
    });
    expect(recorder.spans.map((span) => span.type === 'custom' && span.spanData.name)).toEqual(['around']);
  });

  it('hides nothing outside of any trace either, when off for the run [TRACE-N23]', () => {
    segment({ tracingDisabled: true }, undefined, () => expect(getCurrentSpan()?.isNoop).toBe(true));
    expect([getCurrentTrace(), recorder.spans]).toEqual([undefined, []]);
  });

  it('traces nothing inside a disabled span [TRACE-N17]', () => {
    withTrace('t', () =>
      withSpan({ type: 'custom', name: 'off' }, () => expect(segment()).toMatchObject({ enabled: false }), {
        disabled: true,
      }),
    );
    expect(recorder.spans).toEqual([]);
  });

  it('keeps the id of the trace without processors, also for runs inside [TRACE-T16, TRACE-N22]', () => {
    setTraceProcessors([]);
    const run = segment({}, undefined, (outer, agent) => {
      expect(agent.isNoop).toBe(true);
      expect(getCurrentTrace()).toBe(outer.trace);
      expect(segment()).toMatchObject({ enabled: true, recording: false, trace: outer.trace });
      expect(startRunTrace({}, { parent: agent }).trace).toBe(outer.trace);
    });
    expect(run.trace.traceId).toMatch(/^trace_/);
    expect([run.modelTracing, run.enabled]).toEqual(['enabled', true]);
  });
});

describe('resume', () => {
  it('goes on with a trace of this process: same id, no second start, no second end [TRACE-R6, R13, T6, IL-108]', () => {
    const stored = throughJSON(pause({ workflowName: 'Desk', groupId: 'g', traceMetadata: { a: 1, b: { c: 2 } } }));
    const { traceId } = stored;
    expect(events).toEqual([`start ${traceId}`, `end ${traceId}`]);
    const forks = [segment({}, stored), segment({ traceMetadata: { b: { c: 2 }, a: 1 } }, stored)];
    expect(events).toHaveLength(2);
    for (const fork of forks)
      expect(fork.trace).toMatchObject({ traceId, name: 'Desk', groupId: 'g', metadata: { a: 1, b: { c: 2 } } });
    expect(recorder.tree()).toMatchObject([
      { name: 'Desk', children: [{ type: 'task' }, { type: 'task' }, { type: 'task' }] },
    ]);
  });

  it('starts the trace again with its id in another process [TRACE-R7, T7, R18]', () => {
    const stored = throughJSON(pause({ workflowName: 'Desk', groupId: 'g', traceMetadata: { a: 1 } }));
    runtime().startedIds.clear();
    events.length = 0;
    const run = segment({}, stored);
    expect(events).toEqual([`start ${stored.traceId}`, `end ${stored.traceId}`]);
    expect(run.trace).toMatchObject({ name: 'Desk', groupId: 'g', metadata: { a: 1 } });
  });

  it('starts the trace again when anything of it is changed [TRACE-R7, R17, R19]', () => {
    for (const change of [
      { workflowName: 'Other' },
      { groupId: 'other' },
      { traceMetadata: { a: 2 } },
      { traceApiKey: 'sk-other' },
    ]) {
      const stored = throughJSON(
        pause({ workflowName: 'Desk', groupId: 'g', traceMetadata: { a: 1 }, traceApiKey: 'sk-1' }),
      );
      events.length = 0;
      const run = segment({ traceApiKey: 'sk-1', ...change }, stored);
      expect(events[0]).toBe(`start ${stored.traceId}`);
      expect(run.trace.groupId).toBe(change.groupId ?? 'g');
    }
  });

  it('compares keys by their hash [TRACE-R6, R8, R18, T40]', () => {
    const stored = throughJSON(pause({ traceApiKey: 'sk-1' }));
    expect(stored).toMatchObject({ apiKeyHash: sha256Hex('sk-1') });
    expect(stored.apiKey).toBeUndefined();
    events.length = 0;
    expect(segment({ traceApiKey: 'sk-1' }, stored).trace.apiKey).toBe('sk-1');
    expect(events).toEqual([]);
    segment({}, stored);
    expect(events[0]).toBe(`start ${stored.traceId}`);
  });

  it('takes the stored name unless the options have one of their own [TRACE-R1]', () => {
    const stored: TraceRecord = { traceId: 'trace_s', workflowName: 'Stored', groupId: 'g', extra: {} };
    expect(startRunTrace({}, { stored }).workflowName).toBe('Stored');
    expect(startRunTrace({ workflowName: 'Agent workflow' }, { stored }).workflowName).toBe('Stored');
    expect(startRunTrace({ workflowName: 'Mine', groupId: 'mine' }, { stored }).trace).toMatchObject({
      name: 'Mine',
      groupId: 'mine',
      traceId: 'trace_s',
    });
    expect(startRunTrace({}).workflowName).toBe('Agent workflow');
  });

  it('forgets the oldest of 4096 ids [TRACE-R20]', () => {
    const stored = pause();
    const { startedIds } = runtime();
    for (let i = 0; i < 4095; i++) createTrace('t').start();
    expect(startedIds.has(stored.traceId)).toBe(true);
    createTrace('t').start();
    expect(startedIds.has(stored.traceId)).toBe(false);
    events.length = 0;
    segment({}, stored);
    expect(events[0]).toBe(`start ${stored.traceId}`);
  });

  it('counts an id that was started again as new: the last 4096 starts are known [TRACE-R6, R20]', () => {
    addTraceProcessor({});
    const start = (traceId: string): void => void createTrace('t', { traceId }).start();
    const many = (prefix: string): void => {
      for (let i = 0; i < 3000; i++) start(`trace_${prefix}${i}`);
    };
    start('trace_kept');
    many('a');
    start('trace_kept');
    many('b');
    const { startedIds } = runtime();
    const known = ['kept', 'a0', 'a2999', 'b0', 'b2999'].map((id) => startedIds.has(`trace_${id}`));
    expect(known).toEqual([true, false, true, true, true]);
  });

  it('starts a trace that nobody had seen [TRACE-R21]', () => {
    setTraceProcessors([]);
    const stored = pause();
    setTraceProcessors([recorder]);
    segment({}, stored);
    expect(recorder.traces.map((trace) => trace.traceId)).toEqual([stored.traceId]);
  });

  it('gives processors their carriers back before any span, also when the trace goes on [TRACE-R11, R12]', () => {
    const seen: unknown[] = [];
    setTraceProcessors([
      {
        carrierKey: 'otel',
        getCarrier: (trace) => ({ traceparent: `of ${trace.traceId}` }),
        onTraceResume: (trace, carrier) => void seen.push(trace.traceId, carrier),
        onSpanStart: () => void seen.push('span'),
      },
      { onTraceResume: (_trace, carrier) => void seen.push(carrier) },
      {
        carrierKey: 'broken',
        getCarrier: () => {
          throw new Error('x');
        },
        onTraceResume: () => {
          throw new Error('x');
        },
      },
    ]);
    const stored = throughJSON(pause());
    expect(stored.extra).toEqual({ otel: { traceparent: `of ${stored.traceId}` } });
    seen.length = 0;
    segment({}, stored);
    expect(seen).toEqual([stored.traceId, { traceparent: `of ${stored.traceId}` }, undefined, 'span', 'span']);
  });
});

describe('JSON of a state', () => {
  it('keeps unknown members, reads trace_id, writes what a resume changed [TRACE-R5, T8]', () => {
    const json = {
      object: 'trace',
      trace_id: 'trace_p',
      workflow_name: 'Desk',
      group_id: null,
      metadata: null,
      extra_member: { a: [1] },
    };
    const record = readTrace(json)!;
    expect([record.traceId, record.groupId, record.metadata]).toEqual(['trace_p', undefined, undefined]);
    const next = writeTrace(traceRecordOf(segment({}, record).trace, record)!, false);
    expect(next).toMatchObject({ object: 'trace', id: 'trace_p', workflow_name: 'Desk', extra_member: { a: [1] } });
    const changed = traceRecordOf(segment({ groupId: 'g', traceMetadata: { b: 1 } }, record).trace, record)!;
    expect(writeTrace(changed, false)).toMatchObject({ id: 'trace_p', group_id: 'g', metadata: { b: 1 } });
    for (const nothing of [null, undefined]) expect(readTrace(nothing)).toBeUndefined();
  });

  it('holds the hash of a key, and the key itself only when asked [TRACE-R4, R5, R8, T40]', () => {
    const record = pause({
      traceApiKey: 'test',
      groupId: 'thread-981',
      traceMetadata: { tenant: 'acme' },
      traceId: 'trace_k',
    });
    const hash = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
    const json = writeTrace(record, false);
    expect(json).toEqual({
      object: 'trace',
      id: 'trace_k',
      workflow_name: 'Agent workflow',
      group_id: 'thread-981',
      metadata: { tenant: 'acme' },
      tracing_api_key_hash: hash,
    });
    expect(writeTrace(record, true)).toMatchObject({ tracing_api_key: 'test', tracing_api_key_hash: hash });
    const later = traceRecordOf(segment({}, readTrace(json)).trace, readTrace(json));
    expect(later?.apiKeyHash).toBe(hash);
  });
});

describe('sensitive data', () => {
  it('comes from the option, else from the environment, read for each run [TRACE-E12, E13]', () => {
    const show = (options: RunTraceOptions = {}): unknown[] => {
      const run = startRunTrace(options);
      return [run.includeSensitive, run.modelTracing];
    };
    expect(show()).toEqual([true, 'enabled']);
    for (const [value, shown] of [
      [' YES ', true],
      ['on', true],
      ['1', true],
      ['true', true],
      ['0', false],
      ['', false],
      ['maybe', false],
    ] as const) {
      vi.stubEnv('OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA', value);
      expect(show()).toEqual([shown, shown ? 'enabled' : 'enabled_without_data']);
    }
    expect(show({ traceIncludeSensitiveData: true })).toEqual([true, 'enabled']);
    expect(show({ tracingDisabled: true })[1]).toBe('disabled');
  });

  it('is dropped for the whole run, also in what users of a tool record by throwing [TRACE-E11]', () => {
    segment({ traceIncludeSensitiveData: false }, undefined, (run, agent) => {
      expect(run.sensitive({ spanType: 'function', field: 'input' }, 'secret')).toBeUndefined();
      expect(() =>
        withSpan(
          { type: 'custom', name: 'mine' },
          () => {
            throw new Error('secret');
          },
          { parent: agent },
        ),
      ).toThrow('secret');
    });
    expect(recorder.spans.at(-1)?.error).toEqual({ message: 'Error details are redacted.' });
    expect(JSON.stringify(recorder.spans)).not.toContain('secret');
  });

  it('passes through traceRedact: changed, dropped, or dropped because it throws [TRACE-E15, E16]', () => {
    const lines: string[] = [];
    configureLogging({ sink: ({ message }) => lines.push(message) });
    const fields: unknown[] = [];
    const traceRedact = (field: { field: string }, value: unknown): unknown => {
      fields.push(field);
      if (field.field === 'input') throw new Error('secret');
      if (field.field === 'output') return undefined;
      return field.field === 'data' ? { masked: true } : `masked ${String(value)}`;
    };
    segment({ traceRedact }, undefined, (run, agent) => {
      const at = { spanType: 'function', agentName: 'A', toolName: 'f' } as const;
      expect(run.sensitive({ ...at, field: 'input' }, 'x')).toBeUndefined();
      expect(run.sensitive({ ...at, field: 'input' }, 'x')).toBeUndefined();
      expect(run.sensitive({ ...at, field: 'output' }, 'x')).toBeUndefined();
      expect(run.sensitive({ ...at, field: 'error' }, 'x')).toBe('masked x');
      expect(fields[0]).toEqual({ ...at, field: 'input' });
      expect(() =>
        withSpan(
          { type: 'custom', name: 'c', data: { card: 'secret' } },
          (span) => {
            expect(span.spanData.data).toEqual({ masked: true });
            span.spanData.data = { card: 'secret again' };
            throw new Error('secret');
          },
          { parent: agent },
        ),
      ).toThrow('secret');
    });
    const custom = recorder.spans.find((span) => span.type === 'custom');
    expect(custom?.toJSON()).toMatchObject({
      span_data: { data: { masked: true } },
      error: { message: 'masked secret' },
    });
    expect(lines).toEqual(['traceRedact failed (Error).']);
  });
});

it('keeps custom data of users as it is without sensitive data [TRACE-E16]', () => {
  segment({ traceIncludeSensitiveData: false }, undefined, (_run, agent) =>
    withSpan({ type: 'custom', name: 'c', data: { mine: 1 } }, () => {}, { parent: agent }),
  );
  expect(recorder.spans.find((span) => span.type === 'custom')?.spanData).toMatchObject({ data: { mine: 1 } });
});

it('ends what is open, leaves first, and lets errors be set before [TRACE-N18]', () => {
  const ended: string[] = [];
  addTraceProcessor({ onSpanEnd: (span) => void ended.push(`${span.type} ${span.error?.message ?? ''}`) });
  const run = startRunTrace({});
  const task = run.span({ type: 'task', name: 't' }, run.parent).start();
  const call = run.span({ type: 'function', name: 'f' }, task).start();
  const inner = createSpan({ type: 'custom', name: 'mine' }, { parent: call }).start();
  run.endOpenSpans((span) => span.type === 'function' && span.setError({ message: 'Tool execution cancelled' }));
  expect(ended).toEqual(['custom ', 'function Tool execution cancelled', 'task ']);
  inner.finish();
  run.finish();
  expect(ended).toHaveLength(3);
});

it('ends with the segment what its models left open, not what users go on with [TRACE-N20, C18, C20]', () => {
  const run = startRunTrace({});
  const model = run.span({ type: 'generation' }, run.parent).start();
  const mine = createSpan({ type: 'custom', name: 'mine' }, { parent: model }).start();
  run.finish();
  expect([model.endTimeMs === undefined, mine.endTimeMs === undefined]).toEqual([false, true]);
  const late = createSpan({ type: 'generation' }, { parent: model }).start();
  expect([late.trace, late.endTimeMs]).toEqual([run.trace, undefined]);
});

it('adds details for processors, never to the record [TRACE-D-13]', () => {
  const run = startRunTrace({});
  const span = run.span({ type: 'function', name: 'f' }, run.parent).start();
  addDetails(span, { toolCallId: 'call_1', approval: 'pending' });
  expect(span.details).toEqual({ toolCallId: 'call_1', approval: 'pending' });
  expect(JSON.stringify(span)).not.toContain('call_1');
  setTracingDisabled(true);
  addDetails(createSpan({ type: 'function', name: 'f' }), { toolCallId: 'call_1' });
  expect(createSpan({ type: 'function', name: 'f' }).details).toEqual({});
});
