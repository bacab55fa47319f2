import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, getRunErrorState, run, RunState, tool } from '../index.ts';
import type { AnyAgent, RunInput, RunOptions, RunResult, Span } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { InMemoryTraceProcessor, refusal, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep, TraceNode } from '../testing/index.ts';
import { configureTracing, setTraceProcessors } from '../tracing.ts';
import { PlainSession } from '../../test/run-kit.ts';

// What is exported of a run, word for word: ids are counted and time stands still.

let recorder: InMemoryTraceProcessor;
let logs: string[];

beforeEach(() => {
  recorder = new InMemoryTraceProcessor();
  logs = [];
  start();
});
afterEach(() => resetDefaults());

/** A process that has not traced anything yet. */
function start(): void {
  resetDefaults();
  const counts: Record<string, number> = {};
  const next = (kind: string) => () => `${kind}_${(counts[kind] = (counts[kind] ?? 0) + 1)}`;
  const time = Date.UTC(2026, 2, 1, 9);
  configureTracing({
    ids: { traceId: next('trace'), spanId: next('span'), groupId: next('group') },
    clock: { now: () => time, monotonic: () => 0 },
  });
  setTraceProcessors([recorder]);
  configureLogging({ level: 'debug', sink: (record) => void logs.push(JSON.stringify(record)) });
}

const usage = { requests: 1, inputTokens: 80, outputTokens: 12, totalTokens: 92 };
const scripted = (...steps: ModelStep[]): ScriptedModel => new ScriptedModel(steps, { trace: true, usage });
const exported = (): unknown[] => [...recorder.traces, ...recorder.spans].map((item) => item.toJSON());
const functionSpan = (): Span<'function'> =>
  recorder.spans.find((span) => span.type === 'function') as Span<'function'>;

/** One span a line, indented; errors behind it, and outputs of tools. */
function tree(): string {
  const lines: string[] = [];
  const add = (nodes: readonly TraceNode[], depth: number): void => {
    for (const { type, name, error, children } of nodes) {
      lines.push(`${'  '.repeat(depth)}${type} ${name}${error === undefined ? '' : ` !! ${error}`}`);
      add(children, depth + 1);
    }
  };
  add(recorder.tree(), 0);
  return lines.join('\n');
}

const tools = {
  free: (execute: (id: string) => unknown = () => 'paid', failureErrorFunction?: null | (() => string)) =>
    tool({
      name: 'lookup',
      parameters: z.object({ id: z.string() }),
      failureErrorFunction,
      execute: ({ id }) => execute(id),
    }),
  gated: () =>
    tool({ name: 'refund', parameters: z.object({ id: z.string() }), needsApproval: true, execute: () => 'refunded' }),
};
const lookup = (id = '7') => toolCall('lookup', { id }, { callId: 'call_1' });
const refund = (id = '7') => toolCall('refund', { id }, { callId: 'call_2' });
const boom =
  (message = 'boom') =>
  (): never => {
    throw new Error(message);
  };

type Go = (agent: AnyAgent, input: RunInput, options?: RunOptions) => Promise<RunResult>;

/** Scripts of section 5.1 and the errors of 6.1, as far as runs of one agent can have them; `mark` stands in everything that is private. */
function scenarios(mark = ''): Record<string, (go: Go, options: RunOptions) => Promise<unknown>> {
  const agent = (model: ScriptedModel, ...more: ReturnType<typeof tools.free>[]): Agent =>
    new Agent({ name: 'Triage', instructions: `${mark} instructions`, model, tools: more });
  const decided = async (go: Go, options: RunOptions, decide: (state: RunState) => void): Promise<unknown> => {
    const desk = agent(
      scripted([lookup(mark), refund(mark)], `${mark} done`),
      tools.free(() => `${mark} paid`),
      tools.gated(),
    );
    const state = (await go(desk, `${mark} go`, options)).toState();
    decide(state);
    return await go(desk, state, options);
  };
  return {
    plain: (go, options) => go(agent(scripted(`${mark} hello`)), `${mark} go`, options),
    tools: (go, options) =>
      go(
        agent(
          scripted([lookup(mark), toolCall('lookup', { id: `${mark} 2` }, { callId: 'call_3' })], 'done'),
          tools.free(() => ({ text: `${mark} paid` })),
        ),
        `${mark} go`,
        options,
      ),
    'pause and approval': (go, options) =>
      decided(go, options, (state) => state.interruptions.forEach((item) => state.approve(item, { note: mark }))),
    'pause and rejection': (go, options) =>
      decided(go, options, (state) =>
        state.interruptions.forEach((item) => state.reject(item, { message: `${mark} no`, note: mark })),
      ),
    'failure that the default answers': (go, options) =>
      go(agent(scripted(lookup(mark), 'done'), tools.free(boom(mark))), mark, options),
    'failure that the tool answers': (go, options) =>
      go(
        agent(
          scripted(lookup(mark), 'done'),
          tools.free(boom(mark), () => `${mark} sorry`),
        ),
        mark,
        options,
      ),
    'failure of the run': (go, options) =>
      go(agent(scripted(lookup(mark)), tools.free(boom(mark), null)), mark, options),
    'arguments that do not fit': (go, options) =>
      go(agent(scripted(toolCall('lookup', { id: 5, [`${mark}x`]: mark }), 'done'), tools.free()), mark, options),
    'arguments that are no JSON': (go, options) =>
      go(agent(scripted(toolCall('lookup', `{${mark}`), 'done'), tools.free()), mark, options),
    'unknown tool': (go, options) => go(agent(scripted(toolCall('nobody', { id: mark }))), mark, options),
    'unknown tool, told': (go, options) =>
      go(agent(scripted(toolCall('nobody', { id: mark }), 'done')), mark, {
        ...options,
        toolNotFoundBehavior: 'return_error_to_model',
      }),
    'too many turns': (go, options) =>
      go(agent(scripted(lookup(mark)), tools.free()), mark, { ...options, maxTurns: 1 }),
    'failing model': (go, options) => go(agent(scripted(new Error(`${mark} down`))), mark, options),
    refusal: (go, options) => go(agent(scripted([refusal(`${mark} no`)])), mark, options),
    'output that does not fit': (go, options) =>
      go(
        new Agent({
          name: 'Triage',
          model: scripted([text(`{"n": "${mark}"}`)]),
          outputType: z.object({ n: z.number() }),
        }),
        mark,
        options,
      ),
    'failing filter': (go, options) => go(agent(scripted('x')), mark, { ...options, callModelInputFilter: boom(mark) }),
    'failing hook': (go, options) => go(agent(scripted('x')), mark, { ...options, hooks: { onLlmEnd: boom(mark) } }),
    'failing instructions': (go, options) =>
      go(new Agent({ name: 'Triage', model: scripted('x'), instructions: boom(mark) }), mark, options),
    'failing session': (go, options) => {
      const session = new PlainSession();
      session.error.message = `${mark} store`;
      session.faults.push('before');
      return go(agent(scripted('x')), mark, { ...options, session });
    },
  };
}

/** Runs a scenario to its end, whatever that is. */
async function play(name: string, runForm: unknown, options: RunOptions = {}, mark?: string): Promise<void> {
  await (scenarios(mark)[name] as ReturnType<typeof scenarios>[string])(runForm as Go, options).catch(() => undefined);
}

describe('the tree of a run', () => {
  const trees: Record<string, string> = {
    plain: `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1
        generation scripted`,
    tools: `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1
        generation scripted
        function lookup
        function lookup
      turn 2
        generation scripted`,
    'pause and approval': `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1
        generation scripted
        function lookup
        function refund
  task Agent workflow
    agent Triage
      function refund
      turn 2
        generation scripted`,
    'pause and rejection': `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1
        generation scripted
        function lookup
        function refund
  task Agent workflow
    agent Triage
      function refund !!  no
      turn 2
        generation scripted`,
    'failure that the default answers': `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1
        generation scripted
        function lookup !! Error running tool (non-fatal)
      turn 2
        generation scripted`,
    'failure of the run': `
trace Agent workflow
  task Agent workflow
    agent Triage !! Error in agent run
      turn 1
        generation scripted
        function lookup !! Error running tool`,
    'unknown tool': `
trace Agent workflow
  task Agent workflow
    agent Triage
      turn 1 !! Tool not found
        generation scripted`,
    'too many turns': `
trace Agent workflow
  task Agent workflow
    agent Triage !! Max turns exceeded
      turn 1
        generation scripted
        function lookup`,
    'failing model': `
trace Agent workflow
  task Agent workflow
    agent Triage !! Error in agent run
      turn 1
        generation scripted !! Error`,
    'failing filter': `
trace Agent workflow
  task Agent workflow
    agent Triage !! Error in agent run
      turn 1 !! Error in call_model_input_filter`,
    'failing hook': `
trace Agent workflow
  task Agent workflow
    agent Triage !! Error in agent run
      turn 1
        generation scripted`,
  };

  bothForms((runForm, form) => {
    it.each(Object.entries(trees))(`%s (${form}) [TRACE-T2, TRACE-N8, TRACE-E1]`, async (name, expected) => {
      await play(name, runForm);
      expect(`\n${tree()}`).toBe(expected);
    });
  });
});

describe('what is exported', () => {
  it.each(Object.keys(scenarios()))('is the same in both forms: %s [TRACE-T2, D-8]', async (name) => {
    const records: unknown[] = [];
    const forms: unknown[] = [];
    bothForms((runForm) => void forms.push(runForm));
    for (const runForm of forms) {
      start();
      recorder.clear();
      await play(name, runForm, {}, 'x');
      records.push(exported());
    }
    expect(records[1]).toEqual(records[0]);
    expect((records[0] as unknown[]).length).toBeGreaterThan(2);
  });

  bothForms((runForm, form) => {
    it(`of a run with a tool, word for word (${form}) [TRACE-S1, M5, M10]`, async () => {
      // As the model wrote it, in both spans.
      const asked = '{ "id" : "7" }';
      const agent = new Agent({
        name: 'Triage',
        instructions: 'Help.',
        model: scripted(toolCall('lookup', asked, { callId: 'call_1' }), 'It is paid.'),
        tools: [tools.free()],
      });
      await runForm(agent, 'Where is order 7?', {
        workflowName: 'Desk',
        groupId: 'thread-981',
        traceMetadata: { tenant: 'acme' },
      });
      const at = '2026-03-01T09:00:00.000000+00:00';
      const span = (id: string, parent: string | null, data: object) => ({
        object: 'trace.span',
        id,
        trace_id: 'trace_1',
        parent_id: parent,
        started_at: at,
        ended_at: at,
        span_data: data,
        error: null,
      });
      const used = {
        requests: 1,
        input_tokens: 80,
        output_tokens: 12,
        total_tokens: 92,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      };
      const ofTurn = { input_tokens: 80, output_tokens: 12, cached_input_tokens: 0, cache_write_input_tokens: 0 };
      const turn = (number: number) => ({
        type: 'custom',
        name: 'turn',
        data: { sdk_span_type: 'turn', turn: number, agent_name: 'Triage', usage: ofTurn },
      });
      expect(exported()).toMatchObject([
        { object: 'trace', id: 'trace_1', workflow_name: 'Desk', group_id: 'thread-981', metadata: { tenant: 'acme' } },
        span('span_1', null, {
          type: 'custom',
          name: 'task',
          data: {
            sdk_span_type: 'task',
            name: 'Desk',
            usage: {
              input_tokens: 160,
              output_tokens: 24,
              cached_input_tokens: 0,
              cache_write_input_tokens: 0,
              requests: 2,
              total_tokens: 184,
            },
          },
        }),
        span('span_2', 'span_1', {
          type: 'agent',
          name: 'Triage',
          handoffs: [],
          tools: ['lookup'],
          output_type: 'str',
        }),
        span('span_3', 'span_2', turn(1)),
        span('span_4', 'span_3', {
          type: 'generation',
          input: [
            { role: 'system', content: 'Help.' },
            { role: 'user', content: 'Where is order 7?' },
          ],
          output: [{ type: 'function_call', call_id: 'call_1', name: 'lookup', arguments: asked }],
          model: 'scripted',
          usage: used,
        }),
        span('span_5', 'span_3', {
          type: 'function',
          name: 'lookup',
          input: asked,
          output: 'paid',
          mcp_data: null,
        }),
        span('span_6', 'span_2', turn(2)),
        span('span_7', 'span_6', {
          type: 'generation',
          model: 'scripted',
          usage: used,
          output: [{ type: 'message', content: [{ type: 'output_text', text: 'It is paid.' }] }],
        }),
      ]);
      expect(Object.keys(recorder.spans[4]?.toJSON() ?? {})).toEqual([
        'object',
        'id',
        'trace_id',
        'parent_id',
        'started_at',
        'ended_at',
        'span_data',
        'error',
      ]);
    });

    it(`keeps one trace over a pause, with one start and one end; calls tell what was decided (${form}) [TRACE-T6, N13, N25, R6]`, async () => {
      const events: string[] = [];
      setTraceProcessors([
        recorder,
        {
          onTraceStart: ({ traceId }) => void events.push(`start ${traceId}`),
          onTraceEnd: ({ traceId }) => void events.push(`end ${traceId}`),
        },
      ]);
      const agent = new Agent({ name: 'Triage', model: scripted(refund(), 'done'), tools: [tools.gated()] });
      const paused = await runForm(agent, 'go');
      expect(functionSpan().details).toMatchObject({
        approval: 'pending',
        outcome: 'interrupted',
        toolCallId: 'call_2',
      });
      expect(functionSpan().toJSON()?.span_data).toEqual({
        type: 'function',
        name: 'refund',
        input: '{"id":"7"}',
        output: null,
        mcp_data: null,
      });
      recorder.clear();
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state);
      expect(functionSpan().details).toMatchObject({ approval: 'approved', outcome: 'ok', toolCallId: 'call_2' });
      expect(functionSpan().toJSON()?.span_data).toMatchObject({ output: 'refunded' });
      expect(recorder.spans.flatMap((span) => (span.type === 'turn' ? [span.spanData.turn] : []))).toEqual([2]);
      expect(events).toEqual(['start trace_1', 'end trace_1']);
    });

    it(`starts the trace again in another process, with id, name, group and metadata (${form}) [TRACE-T7, R7]`, async () => {
      const agent = new Agent({ name: 'Triage', model: scripted(refund(), 'done'), tools: [tools.gated()] });
      const options = { workflowName: 'Desk', groupId: 'g', traceMetadata: { tenant: 'acme' }, traceId: 'trace_mine' };
      const text = (await runForm(agent, 'go', options)).toState().toString();
      const first = recorder.traces.map((trace) => trace.toJSON());
      start();
      recorder.clear();
      const state = await RunState.fromString(agent, text);
      for (const item of state.interruptions) state.approve(item);
      await runForm(agent, state);
      expect(recorder.traces.map((trace) => trace.toJSON())).toEqual(first);
      expect(tree()).toBe(
        [
          'trace Desk',
          '  task Desk',
          '    agent Triage',
          '      function refund',
          '      turn 2',
          '        generation scripted',
        ].join('\n'),
      );
    });

    it(`goes on in the trace of a run that failed (${form}) [TRACE-R6, RUN-309]`, async () => {
      const agent = new Agent({ name: 'Triage', model: scripted(lookup(), 'done'), tools: [tools.free()] });
      const error = await runForm(agent, 'go', { maxTurns: 1 }).catch((thrown: unknown) => thrown);
      await runForm(agent, getRunErrorState(error) as RunState, { maxTurns: 2 });
      expect(recorder.traces).toHaveLength(1);
      expect(new Set(recorder.spans.map((span) => span.traceId))).toEqual(new Set(['trace_1']));
      expect(recorder.spans.flatMap((span) => (span.type === 'turn' ? [span.spanData.turn] : []))).toEqual([1, 2]);
    });
  });
});

describe('without sensitive data', () => {
  bothForms((runForm, form) => {
    it.each(Object.keys(scenarios()))(
      `nothing private of "%s" is in a record, a detail or a log line (${form}) [TRACE-T9, E4, E11, D-7]`,
      async (name) => {
        await play(name, runForm, { traceIncludeSensitiveData: false }, 'MARK');
        const shown = JSON.stringify([
          exported(),
          recorder.spans.map((span) => [span.details, span.spanData, span.error]),
          recorder.traces,
        ]);
        expect(shown).not.toContain('MARK');
        expect(logs.join('\n')).not.toContain('MARK');
        // Names, counts and kinds of errors stay.
        expect(tree()).toContain('agent Triage');
      },
    );
  });

  it.each(Object.keys(scenarios()))('is a matter of this option: "%s" shows it with it [TRACE-E11]', async (name) => {
    await play(name, run, {}, 'MARK');
    expect(JSON.stringify(exported())).toContain('MARK');
  });
});
