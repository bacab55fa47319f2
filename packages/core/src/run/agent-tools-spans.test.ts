import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent, configureLogging, RunState } from '../index.ts';
import type { Span } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep, TraceNode } from '../testing/index.ts';
import { configureTracing, setTraceProcessors } from '../tracing.ts';
import { effectTool, rejection } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  setTraceProcessors([recorder]);
  configureLogging({ level: 'silent' });
});
afterEach(() => resetDefaults());

const usage = { requests: 1, inputTokens: 80, outputTokens: 12, totalTokens: 92 };
const scripted = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { trace: true, usage });
const ask = (callId: string, name = 'expert') => toolCall(name, { input: 'q' }, { callId });

/** One span a line, indented; errors behind it. */
function tree(): string[] {
  const lines: string[] = [];
  const add = (nodes: readonly TraceNode[], depth: number): void => {
    for (const { type, name, error, children } of nodes) {
      lines.push(`${'  '.repeat(depth)}${type} ${name}${error === undefined ? '' : ` !! ${error}`}`);
      add(children, depth + 1);
    }
  };
  add(recorder.tree(), 0);
  return lines;
}

const spans = <K extends 'task' | 'function'>(type: K): Span<K>[] =>
  recorder.spans.filter((span) => span.type === type) as unknown as Span<K>[];

bothForms((runForm, form) => {
  describe(`spans of agent tools (${form})`, () => {
    it('stand under the span of their call, in the one trace [TRACE-T13, N14, TOOL-AT9, TRACE-S5]', async () => {
      const expert = new Agent({ name: 'Expert', model: scripted('r') });
      const tools = [expert.asTool({ toolName: 'expert' })];
      await runForm(new Agent({ name: 'Desk', model: scripted(ask('out'), 'done'), tools }), 'hi', {
        workflowName: 'Refund desk',
      });
      expect(tree().map((line) => line.replace(/generation .*/, 'generation'))).toEqual([
        'trace Refund desk',
        '  task Refund desk',
        '    agent Desk',
        '      turn 1',
        '        generation',
        '        function expert',
        '          task Refund desk',
        '            agent Expert',
        '              turn 1',
        '                generation',
        '      turn 2',
        '        generation',
      ]);
      expect(recorder.traces).toHaveLength(1);
      const [outer, inner] = spans('task');
      expect([inner?.details, outer?.details]).toMatchObject([
        { nested: true, streamed: false, resumed: false },
        { nested: false, streamed: form === 'streamed', resumed: false },
      ]);
      expect([inner?.spanData.usage, outer?.spanData.usage]).toMatchObject([{ requests: 1 }, { requests: 2 }]);
      expect(spans('function')[0]?.details).toMatchObject({ toolType: 'function', outcome: 'ok' });
    });

    it('find their parents where nothing keeps the context [TRACE-C9]', async () => {
      configureTracing({ storage: { getStore: () => undefined, run: (_store, fn) => fn() } });
      const tools = [new Agent({ name: 'Expert', model: scripted('r') }).asTool({ toolName: 'expert' })];
      await runForm(new Agent({ name: 'Desk', model: scripted(ask('out'), 'done'), tools }), 'hi');
      expect(recorder.traces).toHaveLength(1);
      const [outer, inner] = spans('task');
      expect([outer?.parentId, inner?.parentId]).toEqual([undefined, spans('function')[0]?.spanId]);
    });

    it('of calls side by side keep apart [TRACE-T14, TOOL-AC86]', async () => {
      const named = (name: string) => new Agent({ name, model: scripted(name) }).asTool();
      const tools = [named('Spanish'), named('French'), named('Italian')];
      const calls = [ask('1', 'spanish'), ask('2', 'french'), ask('3', 'italian')];
      const result = await runForm(new Agent({ name: 'Desk', model: scripted(calls, 'done'), tools }), 'hi');
      const functions = spans('function');
      expect(functions.map((span) => span.spanData.name)).toEqual(['spanish', 'french', 'italian']);
      const tasks = spans('task');
      expect(tasks.map((span) => span.spanData.usage?.requests)).toEqual([2, 1, 1, 1]);
      expect(tasks.slice(1).map((span) => span.parentId)).toEqual(functions.map((span) => span.spanId));
      expect(result.context.usage.requests).toBe(5);
    });

    it('of a pause end without an error, and go on under the next call [TRACE-T6, N13]', async () => {
      const expert = new Agent({
        name: 'Expert',
        model: scripted(toolCall('rm', {}, { callId: 'in' }), 'r'),
        tools: [effectTool('rm', [], { needsApproval: true })],
      });
      const tools = [expert.asTool({ toolName: 'expert' })];
      const desk = new Agent({ name: 'Desk', model: scripted(ask('out'), 'done'), tools });
      const first = await runForm(desk, 'hi');
      const [outer, inner] = spans('function');
      expect([inner?.details, outer?.details]).toMatchObject([
        { outcome: 'interrupted', approval: 'pending' },
        { outcome: 'interrupted' },
      ]);
      expect([outer?.error, outer?.spanData.output]).toEqual([undefined, undefined]);
      recorder.clear();
      const state = await RunState.fromString(desk, first.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      await runForm(desk, state);
      expect(tree().map((line) => line.replace(/generation .*/, 'generation'))).toEqual([
        'trace Agent workflow',
        '  task Agent workflow',
        '    agent Desk',
        '      function expert',
        '        task Agent workflow',
        '          agent Expert',
        '            function rm',
        '            turn 2',
        '              generation',
        '      turn 2',
        '        generation',
      ]);
      expect(spans('task').map((span) => [span.details.nested, span.details.resumed])).toEqual([
        [false, true],
        [true, true],
      ]);
    });

    it('of failures end once, with the names of their kinds [TRACE-N20, E10]', async () => {
      const expert = new Agent({ name: 'Expert', model: scripted(new Error('secret')) });
      const tools = [expert.asTool({ toolName: 'expert' })];
      await runForm(new Agent({ name: 'Desk', model: scripted(ask('out'), 'done'), tools }), 'hi');
      const [call] = spans('function');
      expect(call?.error?.message).toBe('Error running tool (non-fatal)');
      expect(JSON.stringify(call?.toJSON())).not.toContain('secret');
      expect(call?.details.outcome).toBe('error_handled');
    });

    it('are none where the run is not traced, whatever the tool says [TRACE-N17, N23]', async () => {
      const expert = new Agent({ name: 'Expert', model: scripted('r') });
      const tools = [expert.asTool({ toolName: 'expert', run: { tracingDisabled: false } })];
      const desk = new Agent({ name: 'Desk', model: scripted(ask('out'), 'done'), tools });
      const result = await runForm(desk, 'hi', { tracingDisabled: true });
      expect(result.finalOutput).toBe('done');
      expect([recorder.traces, recorder.spans]).toEqual([[], []]);
    });

    it('end with an abort, leaves first [TRACE-N18, N19]', async () => {
      const abort = new AbortController();
      const inner = scripted(() => {
        abort.abort();
        return new Promise<ModelStep>(() => undefined);
      });
      const tools = [new Agent({ name: 'Expert', model: inner }).asTool({ toolName: 'expert' })];
      const desk = new Agent({ name: 'Desk', model: scripted(ask('out')), tools });
      await rejection(runForm(desk, 'hi', { signal: abort.signal }));
      expect(recorder.spans.every((span) => span.endTimeMs !== undefined)).toBe(true);
      expect(spans('task').map((span) => span.details.nested)).toEqual([false, true]);
      expect(spans('function')[0]?.details.outcome).toBe('cancelled');
    });
  });
});
