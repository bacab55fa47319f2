import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import {
  Agent,
  RunState,
  createSpan,
  getCurrentSpan,
  getCurrentTrace,
  run,
  runStreamed,
  tool,
  withSpan,
  withTrace,
} from '../src/index.ts';
import type { FunctionTool, RunContext, RunOptions, RunResult } from '../src/index.ts';
import { configureLogging } from '../src/base/logger.ts';
import { bothForms } from '../src/testing/forms.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../src/testing/index.ts';
import type { ModelStep, TraceNode } from '../src/testing/index.ts';
import {
  addTraceProcessor,
  bindTraceContext,
  configureTracing,
  ConsoleTraceProcessor,
  setTraceProcessors,
  setTracingDisabled,
} from '../src/tracing.ts';
import type { Span, TraceProcessor } from '../src/tracing.ts';
import { runtime } from '../src/tracing/runtime.ts';
import { rejection, unhandledDuring } from './run-kit.ts';

let recorder: InMemoryTraceProcessor;
let events: string[];
let lines: string[];

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  events = [];
  lines = [];
  setTraceProcessors([recorder, eventLog(events)]);
  configureLogging({ level: 'debug', sink: (line) => void lines.push(JSON.stringify(line)) });
});
afterEach(() => resetDefaults());

function eventLog(into: string[]): TraceProcessor {
  const label = (span: Span): string => (span.type === 'turn' ? `turn ${span.spanData.turn}` : span.type);
  return {
    onTraceStart: ({ traceId }) => void into.push(`traceStart ${traceId.slice(0, 6)}`),
    onTraceEnd: ({ traceId }) => void into.push(`traceEnd ${traceId.slice(0, 6)}`),
    onSpanStart: (span) => void into.push(`start ${label(span)}`),
    onSpanEnd: (span) => void into.push(`end ${label(span)}`),
  };
}

const scripted = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { trace: true });

function simpleTool(
  name: string,
  execute: (id: string) => unknown,
  options: { needsApproval?: boolean; failureErrorFunction?: null | undefined } = {},
): FunctionTool<unknown> {
  return tool({
    name,
    parameters: z.object({ id: z.string().default('-') }),
    needsApproval: options.needsApproval ?? false,
    failureErrorFunction: options.failureErrorFunction,
    execute: ({ id }) => execute(id),
  });
}

/** `task Agent workflow { agent A { … } }`, errors in brackets. */
function text({ type, name, error, children }: TraceNode): string {
  const inner = children.length === 0 ? '' : ` { ${children.map(text).join(' ')} }`;
  return `${type}${name === '' ? '' : ` ${name}`}${error === undefined ? '' : ` [${error}]`}${inner}`;
}

const trees = (): string[] => recorder.tree().map(text);
const isOpen = ({
  startTimeMs,
  endTimeMs,
}: {
  startTimeMs: number | undefined;
  endTimeMs: number | undefined;
}): boolean => startTimeMs !== undefined && endTimeMs === undefined;

const spanOf = (type: Span['type']): Span => recorder.spans.find((span) => span.type === type)!;

bothForms((runForm, form) => {
  describe(`traces of runs (${form})`, () => {
    it('a plain run: the events in order, all before the promise settles [TRACE-T1, N2, N3, N4]', async () => {
      const agent = new Agent({ name: 'A', model: scripted('hello') });
      const pending = runForm(agent, 'hi');
      expect(events.slice(0, 2)).toEqual(['traceStart trace_', 'start task']);
      const result = await pending;
      expect(events).toEqual([
        'traceStart trace_',
        'start task',
        'start agent',
        'start turn 1',
        'start generation',
        'end generation',
        'end turn 1',
        'end agent',
        'end task',
        'traceEnd trace_',
      ]);
      expect(trees()).toEqual([
        'trace Agent workflow { task Agent workflow { agent A { turn 1 { generation scripted } } } }',
      ]);
      expect(result.trace).toBe(recorder.traces[0]);
      expect(getCurrentTrace()).toBeUndefined();
    });

    it('parallel tools hang on the turn and start in the order of the calls [TRACE-T2, N12, C6]', async () => {
      const model = scripted([toolCall('slow', {}), toolCall('fast', {})], 'done');
      const slow = simpleTool('slow', async () => {
        await sleep(5);
        return withSpan({ type: 'custom', name: 'inside' }, () => 'ok');
      });
      const fast = simpleTool('fast', () => createSpan({ type: 'custom', name: 'inside' }).start().finish());
      await runForm(new Agent({ name: 'A', model, tools: [slow, fast] }), 'hi');
      expect(trees()).toEqual([
        'trace Agent workflow { task Agent workflow { agent A { turn 1 { generation scripted function slow { custom inside } function fast { custom inside } } turn 2 { generation scripted } } } }',
      ]);
      const ends = events.filter((event) => event === 'end function');
      expect(ends).toHaveLength(2);
      expect(spanOf('agent').spanData).toMatchObject({ name: 'A', tools: ['slow', 'fast'], outputType: 'str' });
    });

    it('tracing that is switched off meanwhile makes no span more, and traces no run inside of what is open [TRACE-P10, N17]', async () => {
      const model = scripted(toolCall('off', {}), 'inner', toolCall('on', {}), 'done');
      let inner: RunResult | undefined;
      const off = simpleTool('off', async () => {
        setTracingDisabled(true);
        inner = await runForm(new Agent({ name: 'I', model }), 'hi');
        return 'ok';
      });
      const agent = new Agent({ name: 'A', model, tools: [off, simpleTool('on', () => 'ok')] });
      await runForm(agent, 'hi');
      expect([inner?.finalOutput, inner?.trace]).toEqual(['inner', undefined]);
      expect(model.calls.map(({ request }) => request.tracing)).toEqual(['enabled', 'disabled', 'enabled', 'enabled']);
      expect(events.filter((event) => event.startsWith('start'))).toEqual(
        ['task', 'agent', 'turn 1', 'generation', 'function'].map((span) => `start ${span}`),
      );
      expect([...recorder.traces, ...recorder.spans].filter(isOpen)).toEqual([]);
    });

    it('what a tool begins later hangs on its call: after a wait, in a timer, in an event, bound [TRACE-C21, C5, C20]', async () => {
      const late = (name: string) => (): void => createSpan({ type: 'custom', name }).start().finish();
      const source = new EventTarget();
      const f = simpleTool('f', async () => {
        late('at once')();
        await sleep(1);
        late('after a wait')();
        source.addEventListener('x', bindTraceContext(late('in an event')));
        await new Promise<void>((resolve) => {
          setTimeout(() => (late('in a timer')(), resolve()), 1);
        });
        return 'ok';
      });
      const steps = [toolCall('f', {}), (): ModelStep => (source.dispatchEvent(new Event('x')), 'done')] as const;
      await runForm(new Agent({ name: 'A', model: scripted(...steps), tools: [f] }), 'hi');
      const inside = ['at once', 'after a wait', 'in a timer', 'in an event'].map((name) => `custom ${name}`).join(' ');
      expect(trees()[0]).toContain(`function f { ${inside} } }`);
    });

    it('pause, approve and go on in this process: one trace, one start, one end [TRACE-T6, T28, N8, N13, R10]', async () => {
      const agent = new Agent({
        name: 'A',
        model: scripted(toolCall('refund', {}), 'done'),
        tools: [simpleTool('refund', () => 'ok', { needsApproval: true })],
      });
      const paused = await runForm(agent, 'hi', { workflowName: 'Desk', groupId: 'g' });
      const waiting = spanOf('function');
      expect(waiting).toMatchObject({ error: undefined, details: { approval: 'pending', outcome: 'interrupted' } });
      expect(waiting.toJSON()?.span_data['output']).toBeNull();
      expect(isOpen(waiting)).toBe(false);
      const state = paused.toState();
      state.approve(state.interruptions[0]!);
      const done = await runForm(agent, state);
      expect(done.finalOutput).toBe('done');
      expect(events.filter((event) => event.startsWith('trace'))).toEqual(['traceStart trace_', 'traceEnd trace_']);
      expect(trees()).toEqual([
        'trace Desk { task Desk { agent A { turn 1 { generation scripted function refund } } } task Desk { agent A { function refund turn 2 { generation scripted } } } }',
      ]);
      expect(done.trace?.traceId).toBe(paused.trace?.traceId);
    });

    it('goes on in another process: the trace is started again with the same data [TRACE-T7, R7, T40]', async () => {
      const make = (): Agent =>
        new Agent({
          name: 'A',
          model: scripted(toolCall('refund', {}), 'done'),
          tools: [simpleTool('refund', () => 'ok', { needsApproval: true })],
        });
      const paused = await runForm(make(), 'hi', {
        workflowName: 'Desk',
        groupId: 'g',
        traceMetadata: { tenant: 'acme' },
        traceApiKey: 'sk-secret',
      });
      const json = paused.toState().toString();
      expect(json).not.toContain('sk-secret');
      runtime().startedIds.clear();
      events.length = 0;
      const agent = new Agent({
        name: 'A',
        model: scripted('done'),
        tools: [simpleTool('refund', () => 'ok', { needsApproval: true })],
      });
      const state = await RunState.fromString(agent, json);
      state.approve(state.interruptions[0]!);
      const done = await runForm(agent, state, { traceApiKey: 'sk-secret' });
      expect(events.filter((event) => event.startsWith('trace'))).toEqual(['traceStart trace_', 'traceEnd trace_']);
      expect(done.trace).toMatchObject({
        traceId: paused.trace?.traceId,
        name: 'Desk',
        groupId: 'g',
        metadata: { tenant: 'acme' },
        apiKey: 'sk-secret',
      });
    });

    it('a run with tracingDisabled in a trace traces nothing and hides that trace [TRACE-T15, N17, N22, N23]', async () => {
      const seen: unknown[] = [];
      const look = simpleTool('look', async () => {
        await sleep(1);
        seen.push(
          getCurrentTrace()?.traceId,
          getCurrentSpan()?.spanId,
          createSpan({ type: 'custom', name: 'x' }).isNoop,
        );
        await run(new Agent({ name: 'Inner', model: scripted('inner') }), 'hi');
        return 'ok';
      });
      const agent = new Agent({ name: 'A', model: scripted(toolCall('look', {}), 'done'), tools: [look] });
      await withTrace('outer', async (outer) => {
        const span = createSpan({ type: 'custom', name: 'around' }).start();
        await withSpan(span, async () => {
          const result = await runForm(agent, 'hi', { tracingDisabled: true });
          expect(result.trace).toBeUndefined();
          expect([getCurrentTrace(), getCurrentSpan()]).toEqual([outer, span]);
        });
        span.finish();
      });
      expect(seen).toEqual(['no-op', 'no-op', true]);
      expect(trees()).toEqual(['trace outer { custom around }']);
    });

    it('a run in a trace adds its task there; the name is its own [TRACE-N1, N6, T49]', async () => {
      await withTrace('A', async () => {
        await runForm(new Agent({ name: 'X', model: scripted('1') }), 'hi', { workflowName: 'B' });
        await runForm(new Agent({ name: 'Y', model: scripted('2') }), 'hi', { workflowName: 'C' });
      });
      expect(trees()).toEqual([
        'trace A { task B { agent X { turn 1 { generation scripted } } } task C { agent Y { turn 1 { generation scripted } } } }',
      ]);
      expect(events.filter((event) => event.startsWith('trace'))).toHaveLength(2);
    });

    it('a run in a span hangs on that span, and so does one that is made in a tool [TRACE-N1]', async () => {
      const inner = new Agent({ name: 'I', model: scripted('1') });
      const f = simpleTool('f', async () => (await runForm(inner, 'hi')).finalOutput);
      await withTrace('A', () =>
        withSpan({ type: 'custom', name: 'work' }, () =>
          runForm(new Agent({ name: 'X', model: scripted(toolCall('f', {}), '2'), tools: [f] }), 'hi'),
        ),
      );
      const nested = 'task Agent workflow { agent I { turn 1 { generation scripted } } }';
      expect(trees()).toEqual([
        `trace A { custom work { task Agent workflow { agent X { turn 1 { generation scripted function f { ${nested} } } turn 2 { generation scripted } } } } }`,
      ]);
      expect(events.filter((event) => event.startsWith('trace'))).toHaveLength(2);
    });

    it('a call that fails the run ends its span before the turn ends, like any other [TOOL-Y14, TRACE-N18]', async () => {
      for (const failureErrorFunction of [undefined, null] as const) {
        events.length = 0;
        const f = simpleTool('f', () => Promise.reject(new Error('no')), { failureErrorFunction });
        const agent = new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools: [f] });
        await runForm(agent, 'hi').catch(() => undefined);
        const at = events.indexOf('start function');
        expect(events.slice(at, at + 3)).toEqual(['start function', 'end function', 'end turn 1']);
      }
    });

    it('without task and turn spans everything hangs on trace and agent [TRACE-N6, T48]', async () => {
      const agent = new Agent({
        name: 'A',
        model: scripted(toolCall('f', {}), 'done'),
        tools: [simpleTool('f', () => 'ok')],
      });
      await runForm(agent, 'hi', { traceTaskAndTurnSpans: false });
      expect(trees()).toEqual([
        'trace Agent workflow { agent A { generation scripted function f generation scripted } }',
      ]);
    });

    it('a tool that throws, answered by the default failure function [TRACE-T25, E4]', async () => {
      const agent = new Agent({
        name: 'A',
        model: scripted(toolCall('f', {}), 'done'),
        tools: [
          simpleTool('f', () => {
            throw new Error('secret');
          }),
        ],
      });
      await runForm(agent, 'hi');
      expect(spanOf('function').error).toEqual({
        message: 'Error running tool (non-fatal)',
        data: { tool_name: 'f', error: 'Tool execution failed. Error details are redacted.' },
      });
      expect(spanOf('agent').error).toBeUndefined();
    });

    it('a tool that throws, without failure function [TRACE-T26, E1]', async () => {
      const agent = new Agent({
        name: 'A',
        model: scripted(toolCall('f', {})),
        tools: [
          simpleTool(
            'f',
            () => {
              throw new Error('broken');
            },
            { failureErrorFunction: null },
          ),
        ],
      });
      await rejection(Promise.resolve(runForm(agent, 'hi')));
      expect(spanOf('function').error).toMatchObject({ message: 'Error running tool', data: { tool_name: 'f' } });
      expect(spanOf('agent').error?.message).toBe('Error in agent run');
      expect(recorder.spans.filter(isOpen)).toEqual([]);
    });

    it('a turn limit is told by the agent span, and no turn is opened for it [TRACE-T24]', async () => {
      const agent = new Agent({ name: 'A', model: scripted(toolCall('f', {})), tools: [simpleTool('f', () => 'ok')] });
      await rejection(Promise.resolve(runForm(agent, 'hi', { maxTurns: 1 })));
      expect(spanOf('agent').error).toEqual({ message: 'Max turns exceeded', data: { max_turns: 1 } });
      expect(recorder.spans.filter((span) => span.type === 'turn')).toHaveLength(1);
    });

    it('a rejection is told by its text, or by a fixed one without sensitive data [TRACE-T27, N25]', async () => {
      for (const traceIncludeSensitiveData of [true, false]) {
        recorder.clear();
        const agent = new Agent({
          name: 'A',
          model: scripted(toolCall('refund', {}, { callId: 'call_1' }), 'done'),
          tools: [simpleTool('refund', () => 'ok', { needsApproval: true })],
        });
        const state = (await runForm(agent, 'hi', { traceIncludeSensitiveData })).toState();
        state.reject(state.interruptions[0]!, { message: 'too much' });
        recorder.clear();
        await runForm(agent, state, { traceIncludeSensitiveData });
        const span = spanOf('function');
        expect(span.error).toEqual({
          message: traceIncludeSensitiveData ? 'too much' : 'Tool execution rejected',
          data: { tool_name: 'refund', error: 'Tool execution for call_1 was manually rejected by user.' },
        });
        expect(span.toJSON()?.span_data['output']).toBe(traceIncludeSensitiveData ? 'too much' : null);
        expect(span.details).toMatchObject({ approval: 'rejected' });
      }
    });

    it('shows nothing of the conversation without sensitive data [TRACE-E11, E4, E14]', async () => {
      const agent = new Agent({
        name: 'A',
        instructions: 'MARK instructions',
        model: scripted([toolCall('f', { id: 'MARK argument' }), toolCall('g', {})], 'MARK answer'),
        tools: [
          simpleTool('f', () => 'MARK result'),
          simpleTool('g', () => {
            throw new Error('MARK error');
          }),
        ],
      });
      await runForm(agent, 'MARK prompt', { traceIncludeSensitiveData: false });
      const failing = new Agent({ name: 'B', model: scripted({ error: new Error('MARK model') }) });
      await rejection(Promise.resolve(runForm(failing, 'MARK prompt', { traceIncludeSensitiveData: false })));
      const shown = JSON.stringify(
        [...recorder.traces, ...recorder.spans].map((item) => [
          item.toJSON(),
          item.type === 'trace' ? {} : [item.details, item.spanData],
        ]),
      );
      expect(shown).not.toContain('MARK');
      expect(lines.join('\n')).not.toContain('MARK');
      expect(spanOf('generation').toJSON()?.span_data['usage']).toMatchObject({ requests: 1 });
    });

    it('each started span ends once, the trace too, and the scope comes back, wherever it fails [TRACE-T11, N20, N16, E6]', async () => {
      const boom = (): never => {
        throw new Error('boom');
      };
      const failing: Record<string, { steps?: ModelStep[]; tools?: FunctionTool<unknown>[]; options?: RunOptions }> = {
        model: { steps: [{ error: new Error('boom') }] },
        'no more steps': { steps: [] },
        tool: { tools: [simpleTool('f', boom, { failureErrorFunction: null })] },
        'unknown tool': { steps: [toolCall('nobody', {})] },
        'run hook': { options: { hooks: { onAgentStart: boom } } },
        'tool hook': { options: { hooks: { onToolStart: boom } } },
        'end hook': { options: { hooks: { onAgentEnd: boom } } },
        filter: { options: { callModelInputFilter: boom } },
        'session load': {
          options: {
            session: {
              sessionId: 's',
              getItems: async () => boom(),
              addItems: async () => {},
              popItem: async () => undefined,
              clearSession: async () => {},
            },
          },
        },
        'session save': {
          options: {
            session: {
              sessionId: 's',
              getItems: async () => [],
              addItems: async () => boom(),
              popItem: async () => undefined,
              clearSession: async () => {},
            },
          },
        },
        'turn limit': { options: { maxTurns: 1 } },
        signal: { options: { signal: AbortSignal.abort(new Error('stop')) } },
      };
      for (const [where, { steps, tools, options }] of Object.entries(failing)) {
        recorder.clear();
        events.length = 0;
        const agent = new Agent({
          name: 'A',
          model: scripted(...(steps ?? [toolCall('f', {}), 'done'])),
          tools: tools ?? [simpleTool('f', () => 'ok')],
        });
        await rejection(Promise.resolve(runForm(agent, 'hi', options ?? {})));
        const count = (kind: string): number => events.filter((event) => event.startsWith(kind)).length;
        expect([where, count('start '), count('traceStart')]).toEqual([where, count('end '), count('traceEnd')]);
        expect([where, [...recorder.spans, ...recorder.traces].filter(isOpen)]).toEqual([where, []]);
        expect([getCurrentTrace(), getCurrentSpan()]).toEqual([undefined, undefined]);
      }
    });

    it('no failure of tracing changes a run [TRACE-T10, A6, E6]', async () => {
      const boom = (): never => {
        throw new Error('tracing');
      };
      const outcome = async (): Promise<unknown> => {
        const agent = new Agent({
          name: 'A',
          model: scripted(toolCall('f', {}), 'done'),
          tools: [simpleTool('f', () => withSpan({ type: 'custom', name: 'x' }, () => 'ok'))],
        });
        const failing = new Agent({
          name: 'B',
          model: scripted(toolCall('f', {})),
          tools: [simpleTool('f', boom, { failureErrorFunction: null })],
        });
        const result = await runForm(agent, 'hi');
        const error = (await rejection(Promise.resolve(runForm(failing, 'hi')))) as Error;
        return [result.finalOutput, result.newItems.length, error.name, error.message];
      };
      setTracingDisabled(true);
      const expected = await outcome();
      setTracingDisabled(false);
      const breakers: (() => void)[] = [
        ...(['onTraceStart', 'onTraceEnd', 'onSpanStart', 'onSpanEnd', 'bind'] as const).flatMap((method) => [
          () => setTraceProcessors([{ [method]: boom }]),
          () => setTraceProcessors([{ [method]: async () => boom() }]),
        ]),
        () => configureTracing({ ids: { traceId: boom, spanId: boom, groupId: boom } }),
        () => configureTracing({ clock: { now: boom, monotonic: boom } }),
        () => configureTracing({ storage: { getStore: boom, run: boom } }),
        () => configureTracing({ provider: { createTrace: boom, createSpan: boom } }),
        ...(['start', 'finish', 'setError', 'toJSON'] as const).map((method) => () => {
          setTraceProcessors([
            {
              onSpanStart: (span) => void Object.assign(span, { [method]: boom }),
              onTraceStart: (trace) => void Object.assign(trace, { [method]: boom }),
            },
          ]);
        }),
      ];
      const unhandled = await unhandledDuring(async () => {
        for (const breakIt of breakers) {
          resetDefaults();
          configureLogging({ level: 'silent' });
          setTraceProcessors([recorder]);
          breakIt();
          expect(await outcome()).toEqual(expected);
        }
      });
      expect(unhandled).toEqual([]);
    });

    it('counts the usage of its own requests on task and turns [TRACE-S5, D-9]', async () => {
      const usage = { requests: 1, inputTokens: 10, outputTokens: 2, totalTokens: 12 };
      const model = new ScriptedModel([toolCall('f', {}), 'done'], { trace: true, usage });
      const inner = simpleTool(
        'f',
        async () =>
          (await run(new Agent({ name: 'Inner', model: new ScriptedModel(['inner'], { trace: true, usage }) }), 'hi'))
            .finalOutput,
      );
      await runForm(new Agent({ name: 'A', model, tools: [inner] }), 'hi');
      const usages = recorder.spans.flatMap((span) => (span.type === 'task' ? [span.spanData.usage?.inputTokens] : []));
      expect(usages).toEqual([20, 10]);
    });

    it('prints a tree to the console, without payloads unless logs may show them [TRACE-T73]', async () => {
      const make = (): Agent =>
        new Agent({
          name: 'A',
          model: scripted(toolCall('f', { id: 'MARK argument' }), 'MARK answer'),
          tools: [
            tool({
              name: 'f',
              parameters: z.object({ id: z.string() }),
              execute: () => {
                throw new Error('MARK error');
              },
              failureErrorFunction: () => 'MARK output',
            }),
          ],
        });
      for (const format of ['tree', 'json'] as const) {
        const shown: string[] = [];
        setTraceProcessors([new ConsoleTraceProcessor({ format, log: (line) => void shown.push(line) })]);
        await runForm(make(), 'MARK prompt');
        expect(shown.join('\n')).not.toContain('MARK');
        expect(shown.join('\n')).toContain('Error running tool (non-fatal)');
        configureLogging({ dontLogModelData: false, dontLogToolData: false });
        await runForm(make(), 'MARK prompt');
        expect(shown.join('\n')).toContain('MARK error');
        configureLogging({ dontLogModelData: true, dontLogToolData: true });
        expect(shown).toHaveLength(format === 'tree' ? 2 : 16);
      }
    });
  });
});

it('100 runs at once with three tools each: every span under its own call [TRACE-T3, C2, C19, C8]', async () => {
  const pause = (): Promise<void> => sleep(Math.random() * 3);
  const tools = ['x', 'y', 'z'].map((name) =>
    simpleTool(name, async (id) => {
      await pause();
      await withSpan({ type: 'custom', name: `${name} ${id}` }, pause);
      return 'ok';
    }),
  );
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const id = `${index}`;
      const model = scripted(
        ['x', 'y', 'z'].map((name) => toolCall(name, { id })),
        'done',
      );
      const agent = new Agent({ name: 'A', model, tools });
      if (index % 2 === 0) return await run(agent, 'hi');
      return await runStreamed(agent, 'hi').completed;
    }),
  );
  const customs = recorder.spans.filter((span) => span.type === 'custom');
  expect(customs).toHaveLength(300);
  for (const span of customs) {
    const call = span.parent as Span<'function'>;
    expect(span.spanData.name).toBe(`${call.spanData.name} ${(JSON.parse(call.spanData.input!) as { id: string }).id}`);
  }
  expect(recorder.traces).toHaveLength(100);
  for (const trace of recorder.traces) expect(customs.filter((span) => span.trace === trace)).toHaveLength(3);
  expect([getCurrentTrace(), recorder.spans.filter(isOpen)]).toEqual([undefined, []]);
});

bothForms((runForm, form) => {
  it(`a final turn: hooks, end of the turn, session, end of the agent (${form}) [TRACE-T67, N8]`, async () => {
    const session = {
      sessionId: 's',
      getItems: async () => [],
      addItems: async () => void events.push('save'),
      popItem: async () => undefined,
      clearSession: async () => {},
    };
    const agent = new Agent({ name: 'A', model: scripted('hello') });
    await runForm(agent, 'hi', { session, hooks: { onAgentEnd: () => void events.push('hook') } });
    expect(events.slice(events.indexOf('end generation'))).toEqual([
      'end generation',
      'hook',
      'end turn 1',
      'save',
      'end agent',
      'end task',
      'traceEnd trace_',
    ]);
  });

  it(`an abort is no failure of the agent; its running calls are cancelled (${form}) [TRACE-N19, N18]`, async () => {
    const controller = new AbortController();
    const stuck = simpleTool('stuck', async () => {
      controller.abort(new Error('stop'));
      await sleep(50);
      return 'late';
    });
    const agent = new Agent({ name: 'A', model: scripted(toolCall('stuck', {}), 'done'), tools: [stuck] });
    await rejection(Promise.resolve(runForm(agent, 'hi', { signal: controller.signal })));
    expect(spanOf('agent').error).toBeUndefined();
    expect(spanOf('function').error?.message).toBe('Tool execution cancelled');
    expect([...recorder.traces, ...recorder.spans].filter(isOpen)).toEqual([]);
    await sleep(60);
    expect(events.filter((event) => event === 'end function')).toHaveLength(1);
  });

  it(`a failure that was answered keeps the text for the model as output (${form}) [TRACE-E9]`, async () => {
    const failing = tool({
      name: 'f',
      parameters: z.object({}),
      execute: () => {
        throw new Error('broken');
      },
      failureErrorFunction: () => 'try later',
    });
    const agent = new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools: [failing] });
    await runForm(agent, 'hi');
    expect(spanOf('function').toJSON()).toMatchObject({
      span_data: { output: 'try later' },
      error: { message: 'Error running tool (non-fatal)', data: { tool_name: 'f', error: 'broken' } },
    });
  });

  it(`without a scope the model still finds its parent (${form}) [TRACE-C9, C11, T42]`, async () => {
    configureTracing({ storage: { getStore: () => undefined, run: (_store, fn) => fn() } });
    const f = tool({
      name: 'f',
      parameters: z.object({}),
      execute: (_args, ctx) => withSpan({ type: 'custom', name: 'inside' }, () => 'ok', { parent: ctx.span! }),
    });
    await runForm(new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools: [f] }), 'hi');
    expect(trees()).toEqual([
      'trace Agent workflow { task Agent workflow { agent A { turn 1 { generation scripted function f { custom inside } } turn 2 { generation scripted } } } }',
    ]);
  });
});

it('two copies of the package share trace and processors [TRACE-T41, C14, IL-148]', async () => {
  vi.resetModules();
  const copy = await import('../src/tracing.ts');
  expect(copy.withSpan).not.toBe(withSpan);
  const f = simpleTool('f', () =>
    copy.withSpan({ type: 'custom', name: 'by the copy' }, (span) =>
      createSpan({ type: 'custom', name: 'inside' }, { parent: span }).start().finish(),
    ),
  );
  await run(new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools: [f] }), 'hi');
  expect(trees()[0]).toContain('function f { custom by the copy { custom inside } }');
});

describe('streams', () => {
  it('are traced without a reader, and when the reader leaves [TRACE-T20, N5, C18, IL-109]', async () => {
    const unread = runStreamed(new Agent({ name: 'A', model: scripted('hello') }), 'hi');
    await unread.completed;
    const left = runStreamed(new Agent({ name: 'A', model: scripted('hello') }), 'hi');
    for await (const _ of left) break;
    await left.completed;
    const tools = [simpleTool('f', () => 'ok')];
    const waited = runStreamed(new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools }), 'hi');
    for await (const event of waited) {
      if (event.type !== 'run_item_stream_event' || event.name !== 'tool_output') continue;
      // The run waits for its reader by now.
      await sleep(5);
      break;
    }
    await waited.completed;
    expect(spanOf('task').spanData).toHaveProperty('usage.requests', 1);
    expect(recorder.traces).toHaveLength(3);
    expect([...recorder.traces, ...recorder.spans].filter(isOpen)).toEqual([]);
    expect(getCurrentTrace()).toBeUndefined();
  });

  it('keep the trace open that they were returned from [TRACE-T19, A9, C15]', async () => {
    const stream = withTrace('outer', () => runStreamed(new Agent({ name: 'A', model: scripted('hello') }), 'hi'));
    expect(events).not.toContain('traceEnd trace_');
    for await (const _ of stream) expect(getCurrentTrace()).toBeUndefined();
    await stream.completed;
    await sleep(0);
    expect(events.at(-1)).toBe('traceEnd trace_');
    expect(trees()).toEqual(['trace outer { task Agent workflow { agent A { turn 1 { generation scripted } } } }']);
  });

  it('leave the scope of their reader alone, and see the one of their call [TRACE-C7, C16, T43]', async () => {
    const seen: unknown[] = [];
    const look = simpleTool('f', () => void seen.push(getCurrentTrace()?.name, getCurrentSpan()?.type));
    const agent = new Agent({ name: 'A', model: scripted(toolCall('f', {}), 'done'), tools: [look] });
    const stream = withTrace('caller', () => runStreamed(agent, 'hi'));
    await withTrace('reader', async (reader) => {
      for await (const _ of stream) expect([getCurrentTrace(), getCurrentSpan()]).toEqual([reader, undefined]);
    });
    expect(seen).toEqual(['caller', 'function']);
  });
});

it('gives the trace its id without processors, and no span [TRACE-T16, D-14]', async () => {
  setTraceProcessors([]);
  const agent = new Agent({ name: 'A', model: scripted('hello') });
  const result = await run(agent, 'hi');
  expect(result.trace?.traceId).toMatch(/^trace_[0-9a-f]{32}$/);
  const remove = addTraceProcessor(recorder);
  remove();
  expect(recorder.spans).toEqual([]);
});

it('shows callbacks the trace and the open span that they belong to on their context [TRACE-C10]', async () => {
  const seen: string[] = [];
  const see =
    (where: string) =>
    (ctx: RunContext): void => {
      expect(ctx.trace).toBe(recorder.traces[0]);
      seen.push(`${where}: ${ctx.span?.type}${ctx.span?.endTimeMs === undefined ? '' : ' that has ended'}`);
    };
  const steps: ModelStep[] = [toolCall('f', {}), 'done'];
  await run(new Agent({ name: 'A', model: scripted(...steps), tools: [simpleTool('f', () => 'ok')] }), 'hi', {
    hooks: {
      onRunStart: see('run start'),
      onLlmStart: see('model start'),
      onToolStart: see('tool start'),
      onToolEnd: see('tool end'),
      onAgentEnd: see('agent end'),
      onRunEnd: see('run end'),
    },
  });
  expect(seen).toEqual([
    'run start: task',
    'model start: turn',
    'tool start: function',
    'tool end: function',
    'model start: turn',
    'agent end: turn',
    'run end: agent',
  ]);
});

it('a stream that nobody reads goes on to its end inside withTrace, whose trace ends with it [TRACE-A18, RUN-1401]', async () => {
  const agent = new Agent({
    name: 'A',
    model: scripted(toolCall('f', {}), toolCall('f', {}), 'done'),
    tools: [simpleTool('f', () => 'ok')],
  });
  const stream = withTrace('A', () => runStreamed(agent, 'hi'));
  await vi.waitFor(() => expect(events.at(-1)).toMatch(/^traceEnd/));
  expect([stream.status, stream.finalOutput, stream.currentTurn]).toEqual(['completed', 'done', 3]);
  expect(recorder.spans.filter((span) => span.endTimeMs === undefined)).toEqual([]);
});

it('gives every callback the scope of the span it belongs to [TRACE-C5, C6, C10]', async () => {
  const seen: Record<string, string | undefined> = {};
  let spans: (Span | undefined)[] = [];
  const see = (where: string): void => void (seen[where] = getCurrentSpan()?.type);
  const spied = tool({
    name: 'f',
    parameters: z.object({}),
    needsApproval: () => (see('needsApproval'), false),
    isEnabled: () => (see('isEnabled'), true),
    execute: (_args, ctx) => {
      see('execute');
      spans = [ctx.span, getCurrentSpan()];
      return 'ok';
    },
  });
  const agent = new Agent({
    name: 'A',
    instructions: () => (see('instructions'), 'x'),
    model: scripted(toolCall('f', {}), 'done'),
    tools: [spied],
  });
  await run(agent, 'hi', {
    callModelInputFilter: ({ modelData }) => (see('callModelInputFilter'), modelData),
    hooks: {
      onAgentStart: () => see('onAgentStart'),
      onLlmStart: () => see('onLlmStart'),
      onToolStart: () => see('onToolStart'),
      onAgentEnd: () => see('onAgentEnd'),
    },
    session: {
      sessionId: 's',
      getItems: async () => (see('getItems'), []),
      addItems: async () => see('addItems'),
      popItem: async () => undefined,
      clearSession: async () => {},
    },
  });
  expect(spans[0]).toBeDefined();
  expect(spans[0]).toBe(spans[1]);
  expect(seen).toEqual({
    getItems: 'task',
    isEnabled: 'turn',
    onAgentStart: 'turn',
    instructions: 'turn',
    callModelInputFilter: 'turn',
    onLlmStart: 'turn',
    needsApproval: 'function',
    onToolStart: 'function',
    execute: 'function',
    onAgentEnd: 'turn',
    addItems: 'task',
  });
});
