import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { resetAll } from '../base/reset.ts';
import { UserError } from '../base/errors.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel } from '../testing/scripted-model.ts';
import { InMemoryTraceProcessor } from '../testing/trace-processor.ts';
import { configureLogging } from '../base/logger.ts';
import { ConsoleTraceProcessor } from './console.ts';
import { createSpan } from './create.ts';
import { addTraceProcessor } from './processors.ts';
import { setTracingDisabled } from './provider.ts';
import { getTraceContext, injectTraceHeaders, withRemoteTraceContext } from './remote.ts';
import type { RemoteTraceContext } from './remote.ts';
import { getCurrentSpan, getCurrentTrace } from './scope.ts';
import type { Span, Trace, TraceProcessor } from './types.ts';
import { withSpan, withTrace } from './with.ts';

let recorder: InMemoryTraceProcessor;
let logged: string[];

beforeEach(() => {
  logged = [];
  recorder = new InMemoryTraceProcessor();
  addTraceProcessor(recorder);
  configureLogging({ level: 'debug', sink: (line) => void logged.push(JSON.stringify(line)) });
});
afterEach(resetAll);

const REMOTE: RemoteTraceContext = {
  traceId: 'trace_7b0d5c1f3f6a4b7f9a51d1b0c2e4f680',
  spanId: 'span_0a1b2c3d4e5f60718293a4b5',
  workflowName: 'Refund desk',
  groupId: 'thread-981',
  metadata: { tenant: 'acme' },
};

/** What another process does: nothing is left of this one but the text. */
const sent = (context: RemoteTraceContext | undefined): string => JSON.stringify(context);

describe('the place in a trace, for another process', () => {
  it('is plain JSON of ids, names and metadata; the key is not in it [TRACE-R16]', () => {
    const options = { groupId: 'g', metadata: { tenant: 'acme' }, apiKey: 'sk-secret', traceId: 'trace_1' };
    withTrace(
      'desk',
      () => {
        expect(getTraceContext()).toEqual({
          traceId: 'trace_1',
          workflowName: 'desk',
          groupId: 'g',
          metadata: { tenant: 'acme' },
        });
        withSpan({ type: 'custom', name: 'enqueue' }, (span) => {
          expect(getTraceContext()?.spanId).toBe(span.spanId);
          expect(sent(getTraceContext())).not.toContain('sk-secret');
        });
      },
      options,
    );
  });

  it('is undefined outside of any trace, in a no-op one and while tracing is off', () => {
    expect(getTraceContext()).toBeUndefined();
    withTrace('t', () => expect(getTraceContext()).toBeUndefined(), { disabled: true });
    withTrace('t', () => {
      setTracingDisabled(true);
      expect(getTraceContext()).toBeUndefined();
    });
  });

  it('has the headers that the processors inject [TRACE-R15]', () => {
    addTraceProcessor({ inject: (at, carrier) => void (carrier['traceparent'] = `00-${idOf(at)}`) });
    withTrace('t', (trace) => expect(getTraceContext()?.headers).toEqual({ traceparent: `00-${trace.traceId}` }));
  });
});

const idOf = (at: Trace | Span): string => (at.type === 'trace' ? at.traceId : at.spanId);

describe('a trace that another process began', () => {
  it.each([
    ['object', REMOTE],
    ['text', sent(REMOTE)],
  ])('is current with its ids, names and metadata, and emits nothing itself: %s [TRACE-R15, R16]', (_kind, context) => {
    withRemoteTraceContext(context, () => {
      expect(getCurrentTrace()).toMatchObject({
        traceId: REMOTE.traceId,
        name: 'Refund desk',
        groupId: 'thread-981',
        metadata: { tenant: 'acme' },
        apiKey: undefined,
      });
      expect(getCurrentSpan()?.spanId).toBe(REMOTE.spanId);
      withSpan({ type: 'custom', name: 'work' }, () => {});
      getCurrentSpan()?.finish();
    });
    expect(recorder.traces).toEqual([]);
    expect(recorder.spans.map((span) => span.toJSON())).toMatchObject([
      { trace_id: REMOTE.traceId, parent_id: REMOTE.spanId, span_data: { name: 'work' } },
    ]);
    expect(getCurrentTrace()).toBeUndefined();
  });

  it('without a span has its spans directly under it, and without names those of a run without options', () => {
    withRemoteTraceContext({ traceId: 'trace_1' }, () => {
      expect([getCurrentTrace()?.name, getCurrentSpan()]).toEqual(['Agent workflow', undefined]);
      createSpan({ type: 'custom', name: 'x' }).start().finish();
    });
    expect(recorder.spans[0]?.parentId).toBeUndefined();
  });

  it('lasts until what the function gave has settled; its value and its error pass unchanged', async () => {
    const failure = new Error('broken');
    const late = async (): Promise<never> => {
      await Promise.resolve();
      expect(getCurrentSpan()?.spanId).toBe(REMOTE.spanId);
      throw failure;
    };
    await expect(withRemoteTraceContext(REMOTE, late)).rejects.toBe(failure);
    expect(withRemoteTraceContext(REMOTE, () => 7)).toBe(7);
    const steps = withRemoteTraceContext(REMOTE, function* () {
      yield getCurrentSpan()?.spanId;
    });
    expect([...steps]).toEqual([REMOTE.spanId]);
  });

  it('tells processors that it goes on, with the headers that came [TRACE-R15, R11]', () => {
    const resumed: unknown[] = [];
    addTraceProcessor({ onTraceResume: (trace, carrier) => void resumed.push([trace.traceId, carrier]) });
    const headers = { traceparent: '00-1-2-01' };
    withRemoteTraceContext({ ...REMOTE, headers }, () => {});
    withRemoteTraceContext(REMOTE, () => {});
    expect(resumed).toEqual([
      [REMOTE.traceId, headers],
      [REMOTE.traceId, undefined],
    ]);
  });

  it('is a tree of its own at the console, marked as going on [TRACE-B15]', () => {
    const shown: string[] = [];
    addTraceProcessor(new ConsoleTraceProcessor({ log: (text) => void shown.push(text) }));
    withRemoteTraceContext({ ...REMOTE, spanId: undefined as never }, () =>
      withSpan({ type: 'custom', name: 'work' }, () => {}),
    );
    withRemoteTraceContext(REMOTE, () => withSpan({ type: 'custom', name: 'more' }, () => {}));
    expect(shown).toHaveLength(2);
    expect(shown.join('\n')).toMatch(
      /Refund desk \(continued\).*\n└─ custom work.*\ntrace .*\(continued\).*\n└─ custom more/,
    );
  });

  it('changes nothing while tracing is off', () => {
    setTracingDisabled(true);
    withRemoteTraceContext(REMOTE, () => expect(getCurrentTrace()?.isNoop).toBe(true));
    expect(recorder.spans).toEqual([]);
  });

  it.each([
    ['no context', undefined],
    ['no JSON', '{"traceId":'],
    ['a list', []],
    ['no trace id', { spanId: 'span_1' }],
    ['a trace id that is none', { traceId: 7 }],
    ['an empty trace id', { traceId: '' }],
    ['a span id that is none', { traceId: 'trace_1', spanId: {} }],
    ['a name that is none', { traceId: 'trace_1', workflowName: 1 }],
    ['metadata that is none', { traceId: 'trace_1', metadata: 'x' }],
    ['headers that are no texts', { traceId: 'trace_1', headers: { traceparent: 1 } }],
  ])('is refused when malformed: %s [TRACE-R16]', (_name, context) => {
    let called = false;
    const enter = (): void => withRemoteTraceContext(context as unknown as string, () => void (called = true));
    expect(enter).toThrow(UserError);
    expect(called).toBe(false);
  });

  it('takes members of newer versions, and null for absent ones', () => {
    const context = JSON.stringify({ ...REMOTE, groupId: null, sampled: true });
    withRemoteTraceContext(context, () => expect(getCurrentTrace()?.groupId).toBeUndefined());
  });
});

bothForms((runForm, form) => {
  describe(`a run in another process (${form})`, () => {
    it('has its task under the remote span, and no trace events [TRACE-T62]', async () => {
      const text = withTrace('desk', () =>
        withSpan({ type: 'custom', name: 'enqueue' }, () => sent(getTraceContext())),
      );
      const { traceId, spanId } = JSON.parse(text) as RemoteTraceContext;
      recorder.clear();
      const agent = new Agent({ name: 'Worker', model: new ScriptedModel(['done'], { trace: true }) });
      const result = await withRemoteTraceContext(text, () => runForm(agent, 'hi', { workflowName: 'step' }));
      expect(recorder.traces).toEqual([]);
      const task = recorder.spans.find(({ type }) => type === 'task');
      expect(task?.toJSON()).toMatchObject({
        trace_id: traceId,
        parent_id: spanId,
        span_data: { data: { name: 'step' } },
      });
      expect(new Set(recorder.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
      expect(recorder.spans.every((span) => span.endTimeMs !== undefined)).toBe(true);
      expect(result.trace?.traceId).toBe(traceId);
    });
  });
});

describe('headers for outgoing calls', () => {
  const inject =
    (name: string): NonNullable<TraceProcessor['inject']> =>
    (at, carrier) =>
      void (carrier[name] = idOf(at));

  it('are those of all processors at the current span, merged into a copy [TRACE-P17]', () => {
    addTraceProcessor({ inject: inject('x-one') });
    addTraceProcessor({ inject: inject('x-two') });
    const carrier = { accept: 'text/plain' };
    withTrace('t', (trace) => {
      withSpan({ type: 'custom', name: 's' }, ({ spanId }) => {
        expect(injectTraceHeaders(carrier)).toEqual({ accept: 'text/plain', 'x-one': spanId, 'x-two': spanId });
        expect(injectTraceHeaders(undefined, trace)).toEqual({ 'x-one': trace.traceId, 'x-two': trace.traceId });
      });
    });
    expect(carrier).toEqual({ accept: 'text/plain' });
  });

  it('are the given ones where no processor has any, and where nothing is traced [TRACE-P17]', () => {
    const carrier = { accept: 'text/plain' };
    withTrace('t', () => expect(injectTraceHeaders(carrier)).toEqual(carrier));
    addTraceProcessor({ inject: inject('x-one') });
    expect(injectTraceHeaders(carrier)).toBe(carrier);
    expect(injectTraceHeaders()).toEqual({});
    withTrace('t', () => expect(injectTraceHeaders(carrier)).toBe(carrier), { disabled: true });
  });

  it('lack what a processor that fails had begun with; the others still inject [TRACE-P17, P4]', () => {
    addTraceProcessor({
      inject: (_at, carrier) => {
        carrier['x-half'] = '1';
        throw new Error('broken');
      },
    });
    addTraceProcessor({ inject: inject('x-two') });
    withTrace('t', ({ traceId }) => {
      expect(injectTraceHeaders()).toEqual({ 'x-two': traceId });
      injectTraceHeaders();
    });
    expect(logged.filter((line) => line.includes('inject'))).toHaveLength(1);
  });
});
