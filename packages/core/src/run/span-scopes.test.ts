import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { Agent, defineModel, getCurrentSpan, getCurrentTrace, runStreamed, tool, withTrace } from '../index.ts';
import type { RunOptions, Span } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, ScriptedModel, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { setTraceProcessors } from '../tracing.ts';
import type { SpanType } from '../tracing.ts';
import { currentPlace } from '../../test/current-place.ts';
import { effectTool, idle, readAll, rejection } from '../../test/run-kit.ts';

let recorder: InMemoryTraceProcessor;
let ends: string[];
beforeEach(() => {
  resetDefaults();
  recorder = new InMemoryTraceProcessor();
  ends = [];
  const nameOf = ({ type, spanData }: Span): string =>
    type === 'function' ? (spanData as { name: string }).name : type;
  setTraceProcessors([
    recorder,
    { onSpanEnd: (span) => void ends.push(nameOf(span)), onTraceEnd: () => void ends.push('trace') },
  ]);
});
afterEach(() => resetDefaults());

const usage = { requests: 1, inputTokens: 5, outputTokens: 2, totalTokens: 7 };
const scripted = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { trace: true, usage });
const spansOf = <K extends SpanType>(type: K): Span<K>[] =>
  recorder.spans.filter((span) => span.type === type) as unknown as Span<K>[];

/** A run with every callback that can be in a run of one agent; `see` is told of each. */
function everything(see: (where: string) => void): { agent: Agent; options: RunOptions } {
  const guard = (where: string) => ({
    name: where,
    execute: () => (see(where), { tripwireTriggered: false, outputInfo: undefined }),
  });
  const onTool = (where: string) => ({
    name: where,
    execute: () => (see(where), { behavior: { type: 'allow' as const } }),
  });
  const spied = tool({
    name: 'f',
    parameters: z.object({}),
    isEnabled: () => (see('isEnabled'), true),
    needsApproval: () => (see('needsApproval'), false),
    inputGuardrails: [onTool('tool input guardrail')],
    outputGuardrails: [onTool('tool output guardrail')],
    execute: async () => {
      await idle(1);
      see('execute');
      return 'ok';
    },
  });
  const failing = tool({
    name: 'g',
    parameters: z.object({}),
    execute: () => Promise.reject(new Error('no')),
    failureErrorFunction: () => (see('failureErrorFunction'), 'sorry'),
  });
  const inner = scripted([toolCall('f'), toolCall('g')], 'done');
  const model = defineModel({
    getResponse: async (request) => (see('model'), await inner.getResponse(request)),
    async *streamResponse(request) {
      const stream = inner.streamResponse(request);
      for (;;) {
        const next = await stream.next();
        see('model');
        if (next.done) return next.value;
        yield next.value;
      }
    },
  });
  const agent = new Agent({
    name: 'A',
    instructions: async () => (see('instructions'), 'x'),
    model,
    tools: [spied, failing],
    inputGuardrails: [guard('input guardrail'), { ...guard('blocking guardrail'), runInParallel: false }],
    outputGuardrails: [guard('output guardrail')],
    hooks: { onStart: () => see('onStart'), onEnd: () => see('onEnd') },
  });
  const options: RunOptions = {
    callModelInputFilter: ({ modelData }) => (see('callModelInputFilter'), modelData),
    sessionInputCallback: (old, added) => (see('sessionInputCallback'), [...old, ...added]),
    hooks: {
      onRunStart: () => see('onRunStart'),
      onRunEnd: () => see('onRunEnd'),
      onAgentStart: () => see('onAgentStart'),
      onAgentEnd: () => see('onAgentEnd'),
      onToolStart: () => see('onToolStart'),
      onToolEnd: () => see('onToolEnd'),
      onLlmStart: () => see('onLlmStart'),
      onLlmEnd: () => see('onLlmEnd'),
      onTurnEnd: () => see('onTurnEnd'),
    },
    session: {
      sessionId: 's',
      getItems: async () => (see('getItems'), []),
      addItems: async () => see('addItems'),
      popItem: async () => undefined,
      clearSession: async () => {},
    },
  };
  return { agent, options };
}

const places = {
  'blocking guardrail': 'guardrail',
  'input guardrail': 'guardrail',
  'output guardrail': 'guardrail',
  'tool input guardrail': 'function',
  'tool output guardrail': 'function',
  addItems: 'task',
  callModelInputFilter: 'turn',
  execute: 'function',
  failureErrorFunction: 'function',
  getItems: 'task',
  instructions: 'turn',
  isEnabled: 'turn',
  model: 'turn',
  needsApproval: 'function',
  onAgentEnd: 'turn',
  onAgentStart: 'turn',
  onEnd: 'turn',
  onLlmEnd: 'turn',
  onLlmStart: 'turn',
  onRunEnd: 'task',
  onRunStart: 'task',
  onStart: 'turn',
  onToolEnd: 'function',
  onToolStart: 'function',
  onTurnEnd: 'agent',
  sessionInputCallback: 'task',
};

bothForms((runForm, form) => {
  describe(`callbacks of a run (${form})`, () => {
    it.each([
      ['all spans', {}, places],
      [
        'no spans of task and turns',
        { traceTaskAndTurnSpans: false },
        Object.fromEntries(
          Object.entries(places).map(([where, type]) => [
            where,
            type === 'turn' ? 'agent' : type === 'task' ? 'trace' : type,
          ]),
        ),
      ],
    ])(
      'run in the scope of the span that they belong to, while it is open: %s [TRACE-C5, C6]',
      async (_, more, expected) => {
        const seen = new Map<string, Set<string>>();
        const { agent, options } = everything((where) => {
          const known = seen.get(where) ?? new Set();
          seen.set(where, known.add(currentPlace()));
        });
        await runForm(agent, 'go', { ...options, ...more });
        expect(Object.fromEntries([...seen].map(([where, types]) => [where, [...types].join()]))).toEqual(expected);
      },
    );

    it('of an agent behind a tool have all spans of the run around them open, too [TRACE-C6, N14]', async () => {
      const seen = new Map<string, Set<string>>();
      const inner = everything((where) => {
        const known = seen.get(where) ?? new Set();
        seen.set(where, known.add(currentPlace()));
      });
      const expert = inner.agent.asTool({ toolName: 'expert', run: inner.options });
      const model = scripted(toolCall('expert', { input: 'go' }), 'done');
      await runForm(new Agent({ name: 'Outer', model, tools: [expert] }), 'go');
      expect(Object.fromEntries([...seen].map(([where, types]) => [where, [...types].join()]))).toEqual(places);
    });

    it('see the stores of the user as they were at the call [TRACE-C4, C17]', async () => {
      const store = new AsyncLocalStorage<string>();
      const seen = new Map<string, unknown>();
      const { agent, options } = everything((where) => {
        if (seen.get(where) !== 'other') seen.set(where, store.getStore() ?? 'other');
      });
      const pending = store.run('mine', () => runForm(agent, 'go', options));
      await store.run('not mine', () => pending);
      expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(Object.keys(places).map((where) => [where, 'mine'])));
    });

    it('leave nothing behind: the scope is what it was, after a result and after a failure [TRACE-C8]', async () => {
      const { agent, options } = everything(() => undefined);
      await withTrace('outer', async (outer) => {
        await runForm(agent, 'go', options);
        expect([getCurrentTrace(), getCurrentSpan()]).toEqual([outer, undefined]);
        await rejection(runForm(new Agent({ name: 'A', model: scripted(new Error('down')) }), 'go'));
        expect([getCurrentTrace(), getCurrentSpan()]).toEqual([outer, undefined]);
      });
      expect(getCurrentTrace()).toBeUndefined();
    });
  });

  describe(`spans of a run (${form})`, () => {
    it('of calls start in the order of the calls and end as the calls do [TRACE-N12]', async () => {
      let free = (): void => {};
      const held = new Promise<void>((resolve) => (free = resolve));
      const slow = tool({ name: 'slow', parameters: z.object({}), execute: async () => (await held, 'ok') });
      const mid = tool({ name: 'mid', parameters: z.object({}), execute: async () => (await idle(2), free(), 'ok') });
      const fast = tool({ name: 'fast', parameters: z.object({}), execute: () => 'ok' });
      const model = scripted([toolCall('slow'), toolCall('mid'), toolCall('fast')], 'done');
      await runForm(new Agent({ name: 'A', model, tools: [slow, mid, fast] }), 'go');
      expect(spansOf('function').map((span) => span.spanData.name)).toEqual(['slow', 'mid', 'fast']);
      expect(ends.filter((name) => ['slow', 'mid', 'fast'].includes(name))).toEqual(['fast', 'mid', 'slow']);
      const [turn] = spansOf('turn');
      expect(spansOf('function').map((span) => span.parent)).toEqual([turn, turn, turn]);
    });

    it('count what their own requests took, a resume and a turn its own; nothing where nothing was counted [TRACE-S5, R10]', async () => {
      const model = new ScriptedModel(
        [
          { output: [toolCall('t')], usage },
          { output: [toolCall('g')], usage: { ...usage, inputTokens: 6, totalTokens: 8 } },
          { output: 'done', usage: { ...usage, inputTokens: 7, totalTokens: 9 } },
          { output: 'nothing counted', usage: { requests: 0 } },
        ],
        { trace: true },
      );
      const tools = [effectTool('t', []), effectTool('g', [], { needsApproval: true })];
      const agent = new Agent({ name: 'A', model, tools });
      const state = (await runForm(agent, 'go')).toState();
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state);
      expect(spansOf('task').map(({ spanData }) => [spanData.usage?.requests, spanData.usage?.inputTokens])).toEqual([
        [2, 11],
        [1, 7],
      ]);
      expect(spansOf('turn').map(({ spanData }) => [spanData.turn, spanData.usage?.inputTokens])).toEqual([
        [1, 5],
        [2, 6],
        [3, 7],
      ]);
      recorder.clear();
      await runForm(agent, 'again');
      for (const span of [...spansOf('task'), ...spansOf('turn')]) expect(span.spanData).not.toHaveProperty('usage');
    });

    it('of an agent list its targets, and the tools of its last turn [TRACE-S2]', async () => {
      let turn = 0;
      const lists: unknown[] = [];
      const look = tool({
        name: 'look',
        parameters: z.object({}),
        execute: () => void lists.push(spansOf('agent')[0]?.spanData.tools),
      });
      const sometimes = (name: string, on: (turn: number) => boolean) =>
        tool({ name, parameters: z.object({}), isEnabled: () => on(turn), execute: () => 'ok' });
      const b = new Agent({ name: 'B', model: scripted('x') });
      const agent = new Agent({
        name: 'A',
        model: scripted(
          () => (turn++, toolCall('look')),
          () => (turn++, toolCall('look')),
          'done',
        ),
        tools: [look, sometimes('early', (at) => at === 0), sometimes('late', (at) => at > 0)],
        handoffs: [b],
      });
      await runForm(agent, 'go');
      expect(lists).toEqual([
        ['look', 'early'],
        ['look', 'late'],
      ]);
      expect(spansOf('agent')[0]?.spanData).toMatchObject({ handoffs: ['B'], tools: ['look', 'late'] });
    });
  });
});

describe('streams', () => {
  it('are traced to the end before their reader and `completed` learn of it [TRACE-N4]', async () => {
    const agent = (): Agent =>
      new Agent({ name: 'A', model: scripted(toolCall('t'), 'done'), tools: [effectTool('t', [])] });
    await readAll(runStreamed(agent(), 'go'));
    expect(ends.slice(-3)).toEqual(['agent', 'task', 'trace']);
    ends.length = 0;
    await runStreamed(agent(), 'go').completed;
    expect(ends.slice(-3)).toEqual(['agent', 'task', 'trace']);
    ends.length = 0;
    const failing = new Agent({ name: 'A', model: scripted(new Error('down')) });
    await rejection(readAll(runStreamed(failing, 'go')));
    expect(ends.slice(-3)).toEqual(['agent', 'task', 'trace']);
  });

  it('that are cancelled at once end what is open at once, leaves first, and the model has no error [TRACE-N18]', async () => {
    const never = new Promise<never>(() => undefined);
    const model = scripted(async () => await never);
    const inModel = runStreamed(new Agent({ name: 'A', model }), 'go');
    await vi.waitUntil(() => model.calls.length === 1);
    inModel.cancel();
    await idle(1);
    expect(ends).toEqual(['generation', 'turn', 'agent', 'task', 'trace']);
    expect(recorder.spans.map((span) => span.error)).toEqual([undefined, undefined, undefined, undefined]);
    recorder.clear();
    ends.length = 0;
    const desk = (execute: () => Promise<string>): Agent =>
      new Agent({
        name: 'A',
        model: scripted(toolCall('stuck'), 'done'),
        tools: [tool({ name: 'stuck', parameters: z.object({}), execute })],
      });
    const inTool = runStreamed(
      desk(async () => (setImmediate(() => inTool.cancel()), await never)),
      'go',
    );
    await inTool.completed.catch(() => undefined);
    expect(ends).toEqual(['generation', 'stuck', 'turn', 'agent', 'task', 'trace']);
    expect(spansOf('function')[0]?.error?.message).toBe('Tool execution cancelled');
    expect([spansOf('generation')[0]?.error, spansOf('agent')[0]?.error]).toEqual([undefined, undefined]);
    recorder.clear();
    ends.length = 0;
    // Its reader cancels at the event of the call: no call begins, and no span.
    let calls = 0;
    const before = runStreamed(
      desk(async () => (calls++, await never)),
      'go',
    );
    for await (const event of before) if (event.type === 'run_item_stream_event') before.cancel();
    await idle();
    expect(ends).toEqual(['generation', 'turn', 'agent', 'task', 'trace']);
    expect([calls, spansOf('function')]).toEqual([0, []]);
  });

  it('that are cancelled after the turn end as runs do that were not [TRACE-N18]', async () => {
    const model = scripted(toolCall('t'), 'never');
    const stream = runStreamed(new Agent({ name: 'A', model, tools: [effectTool('t', [])] }), 'go');
    for await (const _ of stream) stream.cancel({ mode: 'after_turn' });
    expect(ends).toEqual(['generation', 't', 'turn', 'agent', 'task', 'trace']);
    expect(recorder.spans.filter((span) => span.error !== undefined)).toEqual([]);
    expect(spansOf('function')[0]?.details.outcome).toBe('ok');
  });
});
