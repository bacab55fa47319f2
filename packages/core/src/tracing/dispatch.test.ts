import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UserError } from '../base/errors.ts';
import { resetAll } from '../base/reset.ts';
import { dispatchSpan, dispatchTrace } from './dispatch.ts';
import { addTraceProcessor } from './processors.ts';
import { setTracingDisabled } from './provider.ts';
import { getCurrentTrace } from './scope.ts';
import { runtime } from './runtime.ts';
import { createSpan, createTrace } from './create.ts';
import type { Span, SpanInit, SpanType, SpanWire, Trace, TraceWire } from './types.ts';

let events: [string, Trace | Span][];

beforeEach(() => {
  events = [];
  addTraceProcessor({
    onTraceStart: (trace) => void events.push(['traceStart', trace]),
    onTraceEnd: (trace) => void events.push(['traceEnd', trace]),
    onSpanStart: (span) => void events.push(['spanStart', span]),
    onSpanEnd: (span) => void events.push(['spanEnd', span]),
  });
});
afterEach(resetAll);

const TRACE: TraceWire = {
  object: 'trace',
  id: 'trace_7b0d5c1f3f6a4b7f9a51d1b0c2e4f680',
  workflow_name: 'Refund desk',
  group_id: 'thread-981',
  metadata: { tenant: 'acme' },
};
const SPAN: SpanWire = {
  object: 'trace.span',
  id: 'span_1',
  trace_id: TRACE.id,
  parent_id: null,
  started_at: '2026-03-01T09:00:00.120450+00:00',
  ended_at: '2026-03-01T09:00:02.001003+00:00',
  span_data: { type: 'custom', name: 'load cart', data: { items: 3 } },
  error: null,
};
const span = (wire: Partial<SpanWire>): SpanWire => ({ ...SPAN, ...wire });

describe('finished records of another process', () => {
  it('reach the processors as start and end, with ids and times verbatim, and touch no scope [TRACE-A15]', () => {
    dispatchTrace(TRACE);
    dispatchSpan(SPAN);
    expect(events.map(([event]) => event)).toEqual(['traceStart', 'traceEnd', 'spanStart', 'spanEnd']);
    expect(events.map(([, item]) => item.toJSON())).toEqual([TRACE, TRACE, SPAN, SPAN]);
    expect(events[0]?.[1]).toMatchObject({ traceId: TRACE.id, name: 'Refund desk', groupId: 'thread-981' });
    const item = events[2]?.[1] as Span;
    expect([item.startTimeMs, item.endTimeMs]).toEqual([
      Date.parse('2026-03-01T09:00:00.120Z') + 0.45,
      Date.parse('2026-03-01T09:00:02.001Z') + 0.003,
    ]);
    expect(getCurrentTrace()).toBeUndefined();
    expect(runtime().startedIds.has(TRACE.id)).toBe(false);
  });

  it('know their trace and their parent, dispatched before or not [TRACE-A15]', () => {
    dispatchTrace(TRACE);
    dispatchSpan(SPAN);
    dispatchSpan(span({ id: 'span_2', parent_id: 'span_1' }));
    dispatchSpan(span({ id: 'span_3', parent_id: 'span_unknown' }));
    dispatchSpan(span({ id: 'span_1', trace_id: 'trace_other', parent_id: null }));
    const [first, second, third, other] = events
      .filter(([event]) => event === 'spanEnd')
      .map(([, item]) => item as Span);
    expect(first?.trace).toBe(events[0]?.[1]);
    expect(second?.parent).toBe(first);
    expect(third?.parentId).toBe('span_unknown');
    expect(third?.trace).toBe(first?.trace);
    expect([other?.traceId, other?.trace === first?.trace, other?.parent.type]).toEqual([
      'trace_other',
      false,
      'trace',
    ]);
  });

  it('have the data of their type in memory, so that a second export is the same [TRACE-A15, S1]', () => {
    const trace = createTrace('t').start();
    const inits: SpanInit<SpanType>[] = [
      { type: 'agent', name: 'A', tools: ['f'], handoffs: ['B'], outputType: 'str' },
      {
        type: 'task',
        name: 'desk',
        usage: {
          requests: 2,
          inputTokens: 3,
          outputTokens: 4,
          totalTokens: 7,
          cachedInputTokens: 1,
          cacheWriteInputTokens: 0,
        },
      },
      {
        type: 'turn',
        turn: 1,
        agentName: 'A',
        usage: { inputTokens: 3, outputTokens: 4, cachedInputTokens: 1, cacheWriteInputTokens: 0 },
      },
      { type: 'turn', turn: 2, agentName: 'A' },
      { type: 'generation', input: [{ role: 'user' }], model: 'm', modelConfig: { top_p: 1 }, usage: { requests: 1 } },
      { type: 'response', responseId: 'resp_1', usage: { requests: 1 } },
      { type: 'function', name: 'f', input: '{}', output: 'ok', mcpData: { server: 's' } },
      { type: 'handoff', fromAgent: 'A', toAgent: 'B' },
      { type: 'guardrail', name: 'g', triggered: true },
      { type: 'custom', name: 'c', data: { rows: 1 } },
      { type: 'mcp_tools', server: 's', result: ['a'] },
      { type: 'transcription', input: 'UklG', output: 'hi', model: 'm' },
      { type: 'speech', input: 'hi', output: 'UklG', firstContentAt: '2026-01-01' },
      { type: 'speech_group', input: 'hi' },
    ];
    for (const init of inits) {
      const { type, ...given } = init;
      const live = createSpan(init, { parent: trace }).start();
      live.finish();
      dispatchSpan(live.toJSON()!);
      const replayed = events.at(-1)?.[1] as Span;
      expect(replayed.type).toBe(type);
      expect(replayed.spanData).toEqual(given);
    }
  });

  it('bring error and metadata along; a type that is not known here keeps its members', () => {
    const error = { message: 'Error running tool', data: { tool_name: 'f' } };
    dispatchSpan(span({ error, metadata: { usage: { requests: 1 } }, span_data: { type: 'agent', name: 'A' } }));
    expect(events.at(-1)?.[1]).toMatchObject({ error, spanData: { name: 'A', metadata: { usage: { requests: 1 } } } });
    dispatchSpan(span({ span_data: { type: 'retrieval', index: 'docs' } }));
    expect(events.at(-1)?.[1]).toMatchObject({ type: 'retrieval', spanData: { index: 'docs' } });
  });

  it('are finished: nothing that is called on them is told to anybody', () => {
    dispatchTrace(TRACE);
    dispatchSpan(SPAN);
    const [trace, item] = [events[0]?.[1], events[2]?.[1]];
    trace?.start().finish();
    item?.start().finish();
    expect(events).toHaveLength(4);
  });

  it('leave no growth behind [TRACE-A15]', () => {
    for (let i = 0; i < 10_000; i++) dispatchSpan(span({ id: `span_${i}` }));
    expect(runtime().dispatched.size).toBeLessThanOrEqual(4096);
  });

  it('reach nobody while tracing is off', () => {
    setTracingDisabled(true);
    dispatchTrace(TRACE);
    dispatchSpan(SPAN);
    expect(events).toEqual([]);
  });

  it.each([
    ['a span as trace', () => dispatchTrace(SPAN as unknown as TraceWire)],
    ['a trace as span', () => dispatchSpan(TRACE as unknown as SpanWire)],
    ['nothing', () => dispatchSpan(undefined as unknown as SpanWire)],
    ['no id', () => dispatchTrace({ ...TRACE, id: '' })],
    ['no name', () => dispatchTrace({ ...TRACE, workflow_name: undefined as unknown as string })],
    ['metadata that is a list', () => dispatchTrace({ ...TRACE, metadata: [] as unknown as Record<string, unknown> })],
    ['no trace id', () => dispatchSpan(span({ trace_id: undefined as unknown as string }))],
    ['no parent member', () => dispatchSpan(span({ parent_id: undefined as unknown as string }))],
    ['a time that is none', () => dispatchSpan(span({ started_at: 'yesterday' }))],
    ['no data', () => dispatchSpan(span({ span_data: undefined as unknown as SpanWire['span_data'] }))],
    ['data without a type', () => dispatchSpan(span({ span_data: {} as unknown as SpanWire['span_data'] }))],
    [
      'an error without a message',
      () => dispatchSpan(span({ error: {} as unknown as NonNullable<SpanWire['error']> })),
    ],
  ])('are refused when they are not as the wire has them: %s [TRACE-A15]', (_name, dispatch) => {
    expect(dispatch).toThrow(UserError);
    expect(events).toEqual([]);
  });
});
