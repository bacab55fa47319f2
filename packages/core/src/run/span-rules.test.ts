import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { Agent, outputSchema, run, Runner, runStreamed, RunState, tool, withTrace } from '../index.ts';
import type { AnyAgent, Span } from '../index.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import { newRecord } from '../state/copy.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { createSpan, createTrace, setTraceProcessors } from '../tracing.ts';
import type { SpanType } from '../tracing.ts';
import { failSpan, failSpanIfOk } from '../tracing/lifecycle.ts';
import { writeUsage } from '../tracing/usage.ts';
import { resolveRunOptions } from './options.ts';
import { startSpans } from './spans.ts';
import { effectTool, rejection } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  resetDefaults();
});

const scripted = (...steps: ModelStep[]): ScriptedModel =>
  new ScriptedModel(steps, { trace: true, usage: { requests: 1, inputTokens: 5, outputTokens: 2, totalTokens: 7 } });
const spansOf = <K extends SpanType>(type: K): Span<K>[] =>
  recorder.spans.filter((span) => span.type === type) as unknown as Span<K>[];
const desk = (steps: ModelStep[], ...tools: ReturnType<typeof effectTool>[]): Agent =>
  new Agent({ name: 'A', model: scripted(...steps), tools });
const wireOf = (span: Span | undefined): Record<string, unknown> => ({ ...span?.toJSON()?.span_data });

describe('names', () => {
  bothForms((runForm, form) => {
    it(`of tools are those of calls and of the agent's list (${form}) [TRACE-S3, S15, S2]`, async () => {
      const effects: string[] = [];
      const tools = ['lookup', 'other'].map((name) => effectTool(name, effects));
      await runForm(desk([[toolCall('lookup', {}), toolCall('other', {})], 'done'], ...tools), 'go');
      expect(wireOf(spansOf('agent')[0] as never)['tools']).toEqual(['lookup', 'other']);
      // Every call that ran here has a span of its own.
      expect(spansOf('function').map((span) => span.spanData.name)).toEqual(['lookup', 'other']);
      expect(effects).toHaveLength(2);
      const failing = tool({
        name: 'lookup',
        parameters: z.object({}),
        execute: () => Promise.reject(new Error('x')),
      });
      await runForm(desk([toolCall('lookup', {}), 'done'], failing as never), 'go');
      expect(spansOf('function').at(-1)?.error?.data?.['tool_name']).toBe('lookup');
    });

    it(`of output types stand on the agent's span: str for text (${form}) [TRACE-S4]`, async () => {
      await runForm(desk(['hi']), 'go');
      const schema = z.object({ a: z.number() });
      const run2 = (outputType: unknown): Promise<unknown> =>
        runForm(
          new Agent<unknown, unknown>({ name: 'A', model: scripted('{"a":1}'), outputType: outputType as never }),
          'go',
        );
      await run2(schema);
      await run2(outputSchema(schema, { name: 'refund_report' }));
      expect(spansOf('agent').map((span) => wireOf(span as never)['output_type'])).toEqual([
        'str',
        'final_output',
        'refund_report',
      ]);
    });
  });

  it('of calls have their namespace once, errors the bare name [TRACE-S3]', async () => {
    const agent: AnyAgent = desk([]);
    const record = newRecord({ agent, context: undefined, input: 'go', maxTurns: 1 });
    const spans = startSpans(record, resolveRunOptions({}), { streamed: false, parent: undefined });
    const call = (namespace?: string): ResponseFunctionToolCall => ({
      type: 'function_call',
      call_id: 'c',
      name: 'find',
      arguments: '{}',
      ...(namespace === undefined ? undefined : { namespace }),
    });
    for (const namespace of ['crm', 'find', undefined]) {
      const span = spans.startFunction(call(namespace), undefined, agent);
      await span
        ?.within(
          () => Promise.reject(new Error('down')),
          () => false,
        )
        .catch(() => undefined);
    }
    spans.end();
    expect(spansOf('function').map((span) => [span.spanData.name, span.error?.data?.['tool_name']])).toEqual([
      ['crm.find', 'find'],
      ['find', 'find'],
      ['find', 'find'],
    ]);
  });
});

describe('usage', () => {
  const usage = {
    requests: 2,
    inputTokens: 10,
    outputTokens: 4,
    totalTokens: 14,
    cachedInputTokens: 3,
    cacheWriteInputTokens: 1,
  };
  const none = {
    requests: 0,
    inputTokens: 0,
    outputTokens: 0,
    totalTokens: 0,
    cachedInputTokens: 0,
    cacheWriteInputTokens: 0,
  };
  const write = (init: Parameters<typeof createSpan>[0], counts = usage): Span => {
    const span = createSpan(init, { parent: createTrace('t').start() }) as unknown as Span;
    writeUsage(span, counts);
    return span;
  };

  it('of a task and a turn has their form, of any other span it is in the metadata; zeros are not written [TRACE-S6]', () => {
    const tokens = { inputTokens: 10, outputTokens: 4, cachedInputTokens: 3, cacheWriteInputTokens: 1 };
    expect(write({ type: 'task', name: 'x' }).spanData).toEqual({ name: 'x', usage });
    expect(write({ type: 'turn', turn: 1, agentName: 'A' }).spanData).toEqual({
      turn: 1,
      agentName: 'A',
      usage: tokens,
    });
    const agent = write({ type: 'agent', name: 'A', metadata: { kept: true } });
    const metadata = {
      kept: true,
      usage: {
        requests: 2,
        input_tokens: 10,
        output_tokens: 4,
        total_tokens: 14,
        cached_input_tokens: 3,
        cache_write_input_tokens: 1,
      },
    };
    expect(agent.toJSON()?.metadata).toEqual(metadata);
    expect(write({ type: 'task', name: 'x' }, none).spanData).toEqual({ name: 'x' });
    expect(write({ type: 'agent', name: 'A' }, none).spanData).not.toHaveProperty('metadata');
  });

  bothForms((runForm, form) => {
    it(`of a run is nowhere else when task and turn have no spans (${form}) [TRACE-S6]`, async () => {
      await runForm(desk([toolCall('lookup', {}), 'done'], effectTool('lookup', [])), 'go', {
        traceTaskAndTurnSpans: false,
      });
      expect(recorder.spans.map((span) => span.type)).toEqual(['agent', 'generation', 'function', 'generation']);
      for (const span of recorder.spans) {
        expect(span.toJSON()).not.toHaveProperty('metadata');
        expect(Object.hasOwn(span.spanData, 'usage')).toBe(span.type === 'generation');
      }
    });
  });
});

bothForms((runForm, form) => {
  it(`one agent span for a stretch of turns; it ends with the run, at a pause, at a failure (${form}) [TRACE-N7]`, async () => {
    const agent = desk(
      [toolCall('lookup', {}), toolCall('refund', {}, { callId: 'r1' }), toolCall('lookup', {}), 'done'],
      effectTool('lookup', []),
      effectTool('refund', [], { needsApproval: true }),
    );
    const first = await runForm(agent, 'go');
    expect(spansOf('agent').map((span) => span.endTimeMs !== undefined)).toEqual([true]);
    expect(spansOf('turn').map((span) => span.parentId)).toEqual(Array(2).fill(spansOf('agent')[0]?.spanId));
    const state = first.toState();
    for (const item of state.interruptions) state.approve(item);
    await runForm(agent, state);
    expect(spansOf('agent')).toHaveLength(2);
    expect(spansOf('agent')[1]?.endTimeMs).toBeDefined();
    await rejection(runForm(desk([new Error('down')]), 'go'));
    expect(spansOf('agent')).toHaveLength(3);
    expect(spansOf('agent')[2]).toMatchObject({
      error: { message: 'Error in agent run' },
      endTimeMs: expect.any(Number),
    });
  });

  it(`every span is over before the one around it, and before what comes after it: nothing is left to the end of the run (${form}) [TRACE-N7]`, async () => {
    const open: Span[] = [];
    const starts: string[] = [];
    const wrong: string[] = [];
    const nameOf = ({ type, spanData }: Span): string =>
      'name' in spanData ? `${type} ${spanData.name}` : 'turn' in spanData ? `turn ${spanData.turn}` : type;
    setTraceProcessors([
      {
        onSpanStart: (span) => {
          starts.push(nameOf(span));
          // Side by side are only guardrails with a model, and calls of one turn.
          const around = new Set<unknown>();
          for (let at: unknown = span.parent; at !== undefined; at = (at as Span).parent) around.add(at);
          const beside = ['function', 'guardrail'].includes(span.type) ? ['function'] : ['guardrail'];
          for (const other of open)
            if (!around.has(other) && !(other.parent === span.parent && beside.includes(other.type)))
              wrong.push(`${nameOf(span)} began within ${nameOf(other)}`);
          open.push(span);
        },
        onSpanEnd: (span) => {
          open.splice(open.indexOf(span), 1);
          for (const other of open) if (other.parent === span) wrong.push(`${nameOf(other)} outlived ${nameOf(span)}`);
        },
      },
    ]);
    const passes = (name: string) => ({ name, execute: () => ({ tripwireTriggered: false, outputInfo: undefined }) });
    const b = desk([toolCall('t', {}), 'done'], effectTool('t', [])).clone({
      name: 'B',
      outputGuardrails: [passes('out')],
    });
    const expert = desk([toolCall('t', {}), 'inner'], effectTool('t', [])).clone({ name: 'Expert' });
    const a = new Agent({
      name: 'A',
      model: scripted(
        [toolCall('t', { id: '1' }), toolCall('t', { id: '2' })],
        toolCall('expert', { input: 'q' }),
        toolCall('nobody'),
        toolCall('transfer_to_b'),
      ),
      tools: [effectTool('t', []), expert.asTool()],
      handoffs: [b],
      inputGuardrails: [passes('in'), { ...passes('first'), runInParallel: false }],
    });
    const result = await runForm(a, 'go', { toolNotFoundBehavior: 'return_error_to_model' });
    expect(result.finalOutput).toBe('done');
    expect(wrong).toEqual([]);
    expect(open).toEqual([]);
    const counted = ['agent A', 'agent B', 'agent Expert', 'turn 1', 'function t', 'function expert', 'handoff'];
    expect(counted.map((name) => starts.filter((start) => start === name).length)).toEqual([1, 1, 1, 2, 4, 1, 1]);
    expect(starts.filter((start) => start.startsWith('guardrail')).toSorted()).toEqual([
      'guardrail first',
      'guardrail in',
      'guardrail out',
    ]);
  });

  it(`spans have facts for processors, which are in no record (${form}) [TRACE-D-13]`, async () => {
    const agent = desk(
      [toolCall('refund', { id: '7' }, { callId: 'r1' }), 'done'],
      effectTool('refund', [], { needsApproval: true }),
    );
    const state = (await runForm(agent, 'go')).toState();
    for (const item of state.interruptions) state.approve(item);
    await runForm(agent, state);
    const streamed = form === 'streamed';
    expect(spansOf('task').map((span) => span.details)).toEqual([
      { streamed, resumed: false, nested: false },
      { streamed, resumed: true, nested: false },
    ]);
    const call = { toolCallId: 'r1', toolType: 'function', toolDescription: '', agentName: 'A' };
    expect(spansOf('function').map((span) => span.details)).toEqual([
      { ...call, approval: 'pending', outcome: 'interrupted' },
      { ...call, approval: 'approved', outcome: 'ok' },
    ]);
    expect(spansOf('agent').map((span) => span.details)).toEqual([
      { input: [{ role: 'user', content: 'go' }] },
      { input: expect.arrayContaining([{ role: 'user', content: 'go' }]), finalOutput: 'done' },
    ]);
    expect(JSON.stringify(recorder.spans)).not.toContain('toolCallId');
  });

  it(`unknown tools and unreadable JSON are told by the narrower span (${form}) [TRACE-E2, E1]`, async () => {
    await rejection(runForm(desk([toolCall('nobody', {})]), 'go'));
    const [agent] = spansOf('agent');
    expect([spansOf('turn')[0]?.error, agent?.error]).toEqual([
      { message: 'Tool not found', data: { tool_name: 'nobody' } },
      undefined,
    ]);
    const structured = new Agent({ name: 'A', model: scripted('no json'), outputType: z.object({ a: z.number() }) });
    await rejection(runForm(structured, 'go'));
    expect([spansOf('turn')[1]?.error?.message, spansOf('agent')[1]?.error]).toEqual([
      'Invalid JSON provided',
      undefined,
    ]);
    await runForm(desk([toolCall('lookup', '{'), 'done'], effectTool('lookup', [])), 'go');
    expect(spansOf('function')[0]?.error?.message).toBe('Error running tool (non-fatal)');
    expect([spansOf('turn')[2]?.error, spansOf('agent')[2]?.error]).toEqual([undefined, undefined]);
  });

  it(`a rejection fails no run: outcome and no kind of error tell it from one (${form}) [TRACE-E10]`, async () => {
    const agent = desk([toolCall('refund', {}), 'done'], effectTool('refund', [], { needsApproval: true }));
    const state = (await runForm(agent, 'go')).toState();
    for (const item of state.interruptions) state.reject(item, { message: 'no' });
    const result = await runForm(agent, state);
    const rejected = spansOf('function').at(-1);
    expect([result.finalOutput, rejected?.error?.message]).toEqual(['done', 'no']);
    expect(rejected?.details).toMatchObject({ approval: 'rejected', outcome: 'rejected' });
    expect(rejected?.details).not.toHaveProperty('errorType');
    expect(spansOf('agent').every((span) => span.error === undefined && !('errorType' in span.details))).toBe(true);
    const failing = tool({
      name: 'lookup',
      parameters: z.object({}),
      execute: () => Promise.reject(new RangeError('x')),
    });
    await runForm(desk([toolCall('lookup', {}), 'done'], failing as never), 'go');
    expect(spansOf('function').at(-1)?.details).toMatchObject({ outcome: 'error_handled', errorType: 'RangeError' });
  });

  it(`options of a runner and of a call are laid over each other; the call wins (${form}) [TRACE-R3]`, async () => {
    const runner = new Runner({
      workflowName: 'Desk',
      groupId: 'g',
      traceMetadata: { from: 'runner' },
      traceIncludeSensitiveData: false,
      traceTaskAndTurnSpans: false,
    });
    const go = async (options: object): Promise<void> => {
      const agent = desk(['hi']);
      await (form === 'plain' ? runner.run(agent, 'go', options) : runner.runStreamed(agent, 'go', options).completed);
    };
    await go({ groupId: 'own', traceMetadata: { own: true }, workflowName: undefined });
    expect(recorder.traces[0]?.toJSON()).toMatchObject({
      workflow_name: 'Desk',
      group_id: 'own',
      metadata: { own: true },
    });
    expect(spansOf('task')).toEqual([]);
    expect(spansOf('generation')[0]?.spanData.input).toBeUndefined();
    await go({ traceTaskAndTurnSpans: true, traceIncludeSensitiveData: true, traceId: 'trace_own', traceApiKey: 'k' });
    expect(recorder.traces[1]).toMatchObject({
      traceId: 'trace_own',
      groupId: 'g',
      apiKey: 'k',
      metadata: { from: 'runner' },
    });
    expect(spansOf('task')).toHaveLength(1);
    expect(spansOf('generation')[1]?.spanData.input).toBeDefined();
    await go({ tracingDisabled: true });
    expect(recorder.traces).toHaveLength(2);
  });
});

it('a later error replaces an earlier one; one that says little replaces none [TRACE-E3]', () => {
  const trace = createTrace('t').start();
  const span = createSpan({ type: 'custom', name: 'x' }, { parent: trace }).start() as unknown as Span;
  span.setError({ message: 'first' });
  failSpan(span, { message: 'second' });
  expect(span.error).toEqual({ message: 'second' });
  failSpanIfOk(span, { message: 'generic' });
  expect(span.error).toEqual({ message: 'second' });
});

it('with a key in the environment and no call that turns an exporter on, no request leaves the process [TRACE-T66, D-1]', async () => {
  resetDefaults();
  vi.stubEnv('OPENAI_API_KEY', 'sk-test');
  const sent = vi.fn<typeof fetch>();
  vi.stubGlobal('fetch', sent);
  const state = (
    await run(desk([toolCall('refund', {})], effectTool('refund', [], { needsApproval: true })), 'go')
  ).toState();
  expect(state).toBeInstanceOf(RunState);
  await runStreamed(desk(['hi']), 'go', { traceApiKey: 'sk-own' }).completed;
  await withTrace('t', () => run(desk(['hi']), 'go'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(sent).not.toHaveBeenCalled();
});
