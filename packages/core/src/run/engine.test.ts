import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, configureLogging, run, Runner, runStreamed, RunState, tool } from '../index.ts';
import type { LogRecord, ModelRequest, RunOptions, RunResult } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, idle, kindsOf, namesOf, PlainSession, readAll, rejection } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

afterEach(() => resetDefaults());

const approved = (result: Pick<RunResult, 'toState'>): RunState => {
  const state = result.toState();
  for (const item of state.interruptions) state.approve(item);
  return state;
};

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

describe('the one loop', () => {
  it('serves both forms: with all there is in a run they differ in nothing but events [RUN-001, RUN-002, RUN-003]', async () => {
    const { plain, streamed } = await symmetry({
      setUp: ({ hooks, session, log }) => ({
        agent: new Agent({
          name: 'A',
          instructions: () => (log.push('instructions'), 'Be brief.'),
          model: new ScriptedModel(
            [
              [
                reasoning('hm'),
                text('first'),
                toolCall('t', {}, { callId: 'a' }),
                toolCall('bad', {}, { callId: 'b' }),
              ],
              [toolCall('g', {}, { callId: 'c' }), toolCall('t', {}, { callId: 'd' })],
              toolCall('t', {}, { callId: 'a' }),
              '{"n":1}',
            ],
            { usage: { inputTokens: 2, outputTokens: 1, totalTokens: 3 } },
          ),
          tools: [
            effectTool('t', log),
            effectTool('g', log, { needsApproval: true }),
            tool({
              name: 'bad',
              execute: () => {
                throw new Error('b');
              },
            }),
          ],
          outputType: z.object({ n: z.number() }),
        }),
        input: 'go',
        options: {
          hooks,
          session: session('s'),
          callModelInputFilter: ({ modelData }) => (log.push(`filter ${kindsOf(modelData.input)}`), modelData),
          toolErrorFormatter: ({ kind }) => kind,
        },
      }),
      goOn: async (outcome, go, { hooks, session }) => {
        const result = outcome.result as RunResult;
        const next = await go(result.lastAgent, approved(result), { hooks, session: session('s') });
        return { ...next, events: [...outcome.events, ...next.events] };
      },
    });
    expect(plain.result?.finalOutput).toEqual({ n: 1 });
    expect(plain.events).toEqual([]);
    expect(namesOf(streamed.events).join(' ')).toBe(
      'agent A R reasoning_item_created message_output_created tool_called tool_called tool_output tool_output ' +
        'R tool_called tool_called tool_approval_requested tool_output agent A tool_output R R message_output_created',
    );
  });

  it('calls the model in the form of the run, and in no other [RUN-003, RUN-001]', async () => {
    const calls: string[] = [];
    const source = new ScriptedModel([toolCall('t'), 'done', toolCall('t'), 'done']);
    const model = {
      getResponse: (request: ModelRequest) => (calls.push('plain'), source.getResponse(request)),
      streamResponse: (request: ModelRequest) => (calls.push('stream'), source.streamResponse(request)),
    };
    const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [])] });
    await run(agent, 'x');
    await readAll(runStreamed(agent, 'x'));
    expect(calls).toEqual(['plain', 'plain', 'stream', 'stream']);
  });

  it('stands in one place of the source, and is driven from one [RUN-001]', () => {
    const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => [name, readFileSync(`${import.meta.dirname}/${name}`, 'utf8')] as const);
    const having = (pattern: RegExp): string[] =>
      files.filter(([, source]) => pattern.test(source)).map(([name]) => name);
    expect(having(/\basync function\*/)).toEqual(['loop.ts']);
    expect(having(/\bof loop\.turns\(/)).toEqual(['segment.ts']);
    expect(having(/\bcallModel\(/)).toEqual(['turn/call.ts']);
    expect(having(/\binvokeTool\(/)).toEqual(['turn/call-run.ts']);
  });
});

bothForms((runForm, form) => {
  describe(`a turn (${form})`, () => {
    it('decides one step, and every step is data that a state has: paused, again, final [RUN-301, RUN-304]', async () => {
      const steps: unknown[] = [];
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('g', {}, { callId: 'c' }), toolCall('t'), 'done']),
        tools: [effectTool('g', [], { needsApproval: true }), effectTool('t', [])],
      });
      const paused = await runForm(agent, 'go');
      steps.push(paused.toState().currentStep);
      const again = await rejection(runForm(agent, approved(paused), { maxTurns: 2 }));
      const state = (again as { state?: RunState }).state as RunState;
      steps.push(state.currentStep);
      const done = await runForm(agent, state, { maxTurns: 9 });
      steps.push(done.toState().currentStep);
      expect(steps).toEqual([
        { type: 'next_step_interruption', interruptions: [expect.objectContaining({ callId: 'c' })] },
        { type: 'next_step_run_again' },
        { type: 'next_step_final_output', output: 'done' },
      ]);
    });

    it('lets each call through its own gate: none waits for what is still being asked about another [RUN-301, STATE-121]', async () => {
      const log: string[] = [];
      let answer: (needed: boolean) => void = () => undefined;
      const slow = tool({
        name: 'slow',
        needsApproval: () => new Promise<boolean>((resolve) => (answer = resolve)),
        execute: () => (log.push('slow'), 'ok'),
      });
      const free = tool({
        name: 'free',
        execute: () => {
          log.push('free');
          answer(false);
          return 'ok';
        },
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('slow'), toolCall('free')], 'done']),
        tools: [slow, free],
      });
      expect((await runForm(agent, 'go')).finalOutput).toBe('done');
      expect(log).toEqual(['free', 'slow']);
    });

    it('ends with what comes first of: a pause, an output by tools, a message, another turn [RUN-501, RUN-601]', async () => {
      const play = async (step: ModelStep, toolUseBehavior: 'stop_on_first_tool' | 'run_llm_again') => {
        const agent = new Agent({
          name: 'A',
          model: new ScriptedModel([step, 'later']),
          tools: [effectTool('t', []), effectTool('g', [], { needsApproval: true })],
          toolUseBehavior,
        });
        const { status, finalOutput } = await runForm(agent, 'go');
        return status === 'interrupted' ? status : finalOutput;
      };
      const all = [text('said'), toolCall('t'), toolCall('g')];
      expect(await play(all, 'stop_on_first_tool')).toBe('interrupted');
      expect(await play([text('said'), toolCall('t')], 'stop_on_first_tool')).toBe('t ok');
      expect(await play([text('said'), toolCall('t')], 'run_llm_again')).toBe('later');
      expect(await play([text('first'), text('said')], 'stop_on_first_tool')).toBe('said');
    });

    it('that a tool ends gives a text agent the text of its value, a structured one the value as it is; null is told in the log [RUN-607, RUN-612]', async () => {
      const records: LogRecord[] = [];
      configureLogging({ sink: (record) => void records.push(record) });
      const play = async (value: unknown, structured: boolean): Promise<unknown> => {
        const agent = new Agent<unknown, unknown>({
          name: 'A',
          model: new ScriptedModel([toolCall('t')]),
          tools: [tool({ name: 't', execute: () => value })],
          toolUseBehavior: 'stop_on_first_tool',
          ...(structured ? { outputType: z.object({ n: z.number() }) } : {}),
        });
        const result = await runForm(agent, 'go');
        expect(result.newItems.map((item) => item.type)).toEqual(['tool_call_item', 'tool_call_output_item']);
        expect(result.status).toBe('completed');
        return result.finalOutput;
      };
      expect(await play({ n: 1 }, false)).toBe('{"n":1}');
      expect(await play(null, false)).toBe('null');
      expect(await play({ other: 'x' }, true)).toEqual({ other: 'x' });
      expect([await play('', true), await play(0, true), await play(false, true)]).toEqual(['', 0, false]);
      expect(records).toEqual([]);
      expect(await play(null, true)).toBeNull();
      expect(records.map(({ level }) => level)).toEqual(['error']);
    });
  });

  describe(`a resume (${form})`, () => {
    it('resolves the pause with the tools of today before any model is asked [RUN-303, RUN-304]', async () => {
      const log: string[] = [];
      const model = new ScriptedModel([toolCall('g'), () => (log.push('model'), 'done')]);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('g', log, { needsApproval: true })] });
      const session = new PlainSession();
      const state = approved(await runForm(agent, 'go', { session }));
      agent.tools[0] = tool({
        name: 'g',
        needsApproval: true,
        execute: () => (log.push('g of today'), 'new'),
      }) as never;
      session.log.length = 0;
      await runForm(agent, state, { session, hooks: { onLlmStart: () => void log.push(session.log.join(' ')) } });
      // What the pass made is stored before the next model call.
      expect(log).toEqual(['g of today', expect.stringMatching(/add\[fco\]$/), 'model']);
      expect(model.calls[1]?.request.input.at(-1)).toMatchObject({ output: 'new' });
    });

    it('of a run that has its output asks the model once more, on the same history [RUN-111]', async () => {
      for (const way of ['live', 'text']) {
        const model = new ScriptedModel([toolCall('t'), 'first', 'second']);
        const agent = new Agent({ name: 'A', model, tools: [effectTool('t', [])] });
        const done = await runForm(agent, 'go');
        let state: RunState = done.toState();
        if (way === 'text') state = await RunState.fromString(agent, state.toString());
        expect(state.status).toBe('completed');
        const again = await runForm(agent, state);
        expect([again.finalOutput, again.currentTurn, done.finalOutput]).toEqual(['second', 3, 'first']);
        expect(kindsOf(model.calls[2]?.request.input ?? [])).toBe('u fc fco m');
        expect(kindsOf(again.toInputList())).toBe('u fc fco m m');
      }
    });

    it('counts turns by model calls: neither the work before its first one nor a pause that stays [RUN-702, RUN-305]', async () => {
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([[toolCall('g', {}, { callId: 'a' }), toolCall('g', {}, { callId: 'b' })], 'done']),
        tools: [effectTool('g', [], { needsApproval: true })],
      });
      const options: RunOptions = { maxTurns: 2 };
      let state = (await runForm(agent, 'go', options)).toState() as RunState;
      const turns: number[] = [];
      for (let round = 0; round < 2; round += 1) {
        const [first] = state.interruptions;
        if (first) state.approve(first);
        const result = await runForm(agent, state);
        turns.push(result.currentTurn);
        state = result.toState();
      }
      expect([turns, state.status]).toEqual([[1, 2], 'completed']);
    });
  });
});

it('runs of one agent, context, session callback and options at once keep what is theirs apart [RUN-005, RUN#80]', async () => {
  const context = { shared: true };
  const agent = new Agent({
    name: 'A',
    modelSettings: { toolChoice: 'required' },
    tools: [
      tool({
        name: 'slow',
        execute: async () => {
          await idle(3);
          return 'ok';
        },
      }),
    ],
  });
  const options = { context, hooks: { onLlmEnd: () => undefined } };
  const models = Array.from({ length: 5 }, () => new ScriptedModel([toolCall('slow'), 'done']));
  const results = await Promise.all(
    models.map((model, index) =>
      index % 2 === 0
        ? run(agent, `${index}`, { ...options, model })
        : runStreamed(agent, `${index}`, { ...options, model }).completed,
    ),
  );
  results.forEach((result, index) => {
    expect([result.input, result.newItems.length, result.context.usage.requests]).toEqual([`${index}`, 3, 2]);
    expect(models[index]?.calls.map(({ request }) => request.modelSettings.toolChoice)).toEqual([
      'required',
      undefined,
    ]);
  });
  expect(new Set(results.map((result) => result.context)).size).toBe(5);
});

bothForms((runForm, form) => {
  it(`a run that comes and goes while another one is within a tool has nothing of it, and leaves it nothing (${form}) [RUN-005, RUN#80]`, async () => {
    const [entered, leave] = [gate(), gate()];
    const agent = new Agent({
      name: 'A',
      modelSettings: { toolChoice: 'required' },
      tools: [
        tool({
          name: 'pay',
          parameters: z.object({ who: z.string() }),
          needsApproval: true,
          execute: async ({ who }) => {
            if (who === 'first') {
              entered.open();
              await leave.opened;
            }
            return `${who} paid`;
          },
        }),
      ],
    });
    const script = (who: string): ScriptedModel =>
      new ScriptedModel(
        [toolCall('pay', { who }, { callId: 'same' }), toolCall('pay', { who }, { callId: 'next' }), who],
        {
          usage: { inputTokens: who.length, totalTokens: who.length },
        },
      );
    const models = { first: script('first'), second: script('second') };
    const told: string[] = [];
    const runner = new Runner({
      context: { shared: true },
      hooks: { onLlmEnd: (ctx) => void told.push(`${ctx.usage.inputTokens}`) },
    });
    const first = runner.run(agent, 'one', {
      model: models.first,
      onApproval: () => ({ type: 'approve', always: true }),
    });
    await entered.opened;

    const options = { model: models.second, context: { shared: true } };
    const paused = await runForm(agent, 'two', options);
    expect(paused.interruptions.map(({ callId }) => callId)).toEqual(['same']);
    expect([paused.input, kindsOf(paused.toInputList()), paused.toState().getDecisions()]).toEqual(['two', 'u fc', []]);
    const state = paused.toState();
    for (const item of state.interruptions) state.approve(item);
    const again = await runForm(agent, state, options);
    expect(again.interruptions.map(({ callId }) => callId)).toEqual(['next']);
    const second = await runForm(agent, approved(again), options);

    leave.open();
    const results = [await first, second];
    expect(results.map(({ finalOutput }) => finalOutput)).toEqual(['first', 'second']);
    expect(results.map(({ context }) => context.usage.inputTokens)).toEqual([15, 18]);
    expect(told).toEqual(['5', '10', '15']);
    for (const { calls } of Object.values(models)) {
      expect(calls.map(({ request }) => request.modelSettings.toolChoice)).toEqual(['required', undefined, undefined]);
      expect(calls.map(({ request }) => kindsOf(request.input))).toEqual(['u', 'u fc fco', 'u fc fco fc fco']);
    }
  });
});
