import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Agent, RunContext, runStreamed, tool } from '../index.ts';
import type { ModelResponse } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import { effectTool, idle, PlainSession, rejection, scriptedDesk } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

const passes = (name: string, execute: () => unknown = () => undefined) => ({
  name,
  execute: async () => {
    await execute();
    return { tripwireTriggered: false, outputInfo: name };
  },
});

bothForms((runForm, form) => {
  describe(`the context of a run (${form})`, () => {
    it('is one object for everything that is called, and of one that was given only the value counts [RUN-106]', async () => {
      const seen = new Map<string, RunContext<unknown>>();
      const see =
        <R>(where: string, value: R) =>
        (ctx: unknown): R => {
          seen.set(where, ctx as RunContext<unknown>);
          return value;
        };
      const look = tool({
        name: 'look',
        parameters: z.object({}),
        isEnabled: see('isEnabled', true),
        execute: (_, ctx) => void seen.set('tool', ctx),
      });
      const guard = (where: string) => ({
        name: where,
        execute: ({ context }: { context: unknown }) => {
          see(where, undefined)(context);
          return { tripwireTriggered: false, outputInfo: undefined };
        },
      });
      const value = { who: 'Ada' };
      const given = new RunContext<unknown>(value);
      const agent = new Agent<unknown, string>({
        name: 'A',
        instructions: see('instructions', 'Help.'),
        model: new ScriptedModel([toolCall('look'), 'done'], { usage: { inputTokens: 1, totalTokens: 1 } }),
        tools: [look],
        hooks: { onStart: see('onStart', undefined), onEnd: see('onEnd', undefined) },
        inputGuardrails: [guard('input guardrail')],
        outputGuardrails: [guard('output guardrail')],
      });
      const result = await runForm(agent, 'go', {
        context: given,
        callModelInputFilter: ({ modelData, context }) => (see('filter', undefined)(context), modelData),
        hooks: {
          onRunStart: see('onRunStart', undefined),
          onRunEnd: see('onRunEnd', undefined),
          onAgentStart: see('onAgentStart', undefined),
          onLlmStart: see('onLlmStart', undefined),
          onLlmEnd: see('onLlmEnd', undefined),
          onAgentEnd: see('onAgentEnd', undefined),
          onTurnEnd: see('onTurnEnd', undefined),
        },
      });
      const ofTool = seen.get('tool');
      seen.delete('tool');
      expect(seen.size).toBe(14);
      for (const [where, context] of seen) expect([where, context === result.context]).toEqual([where, true]);
      expect([ofTool?.context, ofTool?.usage]).toEqual([value, result.context.usage]);
      expect(result.context).not.toBe(given);
      expect([given.context, given.usage.requests, result.context.usage.requests]).toEqual([value, 0, 2]);
    });
  });

  it(`the provider is asked for a model at most once a turn (${form}) [RUN-203]`, async () => {
    const model = new ScriptedModel([toolCall('t'), toolCall('t'), 'done']);
    const asked: unknown[] = [];
    const modelProvider = { getModel: async (name?: string) => (asked.push(name), model) };
    const agent = new Agent({ name: 'A', model: 'm', tools: [effectTool('t', [])] });
    await runForm(agent, 'go', { modelProvider });
    expect(model.calls).toHaveLength(3);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThanOrEqual(3);
    expect(new Set(asked)).toEqual(new Set(['m']));
  });

  describe(`a result (${form})`, () => {
    it('has the very responses that onLlmEnd was given [RUN-1203]', async () => {
      const given: ModelResponse[] = [];
      const { agent } = scriptedDesk(toolCall('t'), 'done');
      const result = await runForm(agent, 'go', { hooks: { onLlmEnd: (_ctx, _agent, each) => void given.push(each) } });
      expect(result.rawResponses).toHaveLength(2);
      result.rawResponses.forEach((response, index) => expect(response).toBe(given[index]));
    });

    it('has what guardrails said in the order in which they were done [RUN-1210]', async () => {
      const slow = async (): Promise<void> => await idle(6);
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel(['done']),
        inputGuardrails: [passes('slow in', slow), passes('fast in')],
        outputGuardrails: [passes('slow out', slow), passes('fast out')],
      });
      const result = await runForm(agent, 'go');
      const said = (list: readonly { readonly output: { readonly outputInfo?: unknown } }[]): unknown[] =>
        list.map(({ output }) => output.outputInfo);
      expect([said(result.inputGuardrailResults), said(result.outputGuardrailResults)]).toEqual([
        ['fast in', 'slow in'],
        ['fast out', 'slow out'],
      ]);
    });

    it('has the text of the last message, all of its parts; earlier ones stay items [RUN-601]', async () => {
      const parts = { ...text('one '), content: [...text('one ').content, ...text('two').content] };
      const { agent } = scriptedDesk([text('first'), parts]);
      const result = await runForm(agent, 'go');
      expect([result.finalOutput, result.newItems.length]).toEqual(['one two', 2]);
    });

    it('has the value as the schema makes it: with defaults, transformed, out of its wrapper [RUN-605]', async () => {
      const output = async (outputType: z.ZodType, answer: string): Promise<unknown> =>
        (
          await runForm(
            new Agent<unknown, unknown>({ name: 'A', model: new ScriptedModel([answer]), outputType }),
            'go',
          )
        ).finalOutput;
      const words = z.object({ words: z.string(), count: z.number().default(3) });
      expect(await output(words, '{"words":"a b"}')).toEqual({ words: 'a b', count: 3 });
      expect(await output(z.array(z.number()), '{"response":[1,2]}')).toEqual([1, 2]);
      const day = z.object({ day: z.string().transform((of) => of.length) });
      expect(await output(day, '{"day":"Monday"}')).toEqual({ day: 6 });
    });

    it('of a run that a tool ended has the call and its output, and no message [RUN-612]', async () => {
      const { agent, model } = scriptedDesk([text('Looking.'), toolCall('t')]);
      const result = await runForm(agent.clone({ toolUseBehavior: 'stop_on_first_tool' }), 'go');
      expect([result.finalOutput, model.calls.length]).toEqual(['t ok', 1]);
      expect(result.newItems.map((item) => item.type).filter((type) => type !== 'message_output_item')).toEqual([
        'tool_call_item',
        'tool_call_output_item',
      ]);
      expect(result.newItems.at(-1)?.type).toBe('tool_call_output_item');
    });
  });

  it(`ten turns are the limit where none is given, those before a pause included (${form}) [RUN-701]`, async () => {
    const calls = (count: number) => Array.from({ length: count }, () => toolCall('t'));
    const { agent, model } = scriptedDesk(...calls(20));
    expect(await rejection(runForm(agent, 'go'))).toMatchObject({ code: 'max_turns_exceeded', maxTurns: 10 });
    expect(model.calls).toHaveLength(10);
    const paused = scriptedDesk(...calls(5), toolCall('g', {}, { callId: 'g1' }), ...calls(20));
    const state = (await runForm(paused.agent, 'go')).toState();
    for (const item of state.interruptions) state.approve(item);
    expect(await rejection(runForm(paused.agent, state))).toMatchObject({ maxTurns: 10 });
    expect(paused.model.calls).toHaveLength(10);
  });
});

describe('finalOutput of a stream', () => {
  it('is there when it is completed, "" too, and not before, at a pause, after a cancel or a failure [RUN-1204]', async () => {
    const done = runStreamed(scriptedDesk(toolCall('t'), '').agent, 'go');
    const seen: unknown[] = [];
    for await (const _ of done) seen.push(done.finalOutput);
    expect(new Set(seen.slice(0, -1))).toEqual(new Set([undefined]));
    expect([done.status, done.finalOutput]).toEqual(['completed', '']);
    const paused = runStreamed(scriptedDesk(toolCall('g')).agent, 'go');
    await paused.completed;
    expect([paused.status, paused.finalOutput]).toEqual(['interrupted', undefined]);
    const cut = runStreamed(scriptedDesk('never shown').agent, 'go', { session: new PlainSession() });
    for await (const _ of cut) cut.cancel();
    expect([cut.status, cut.finalOutput]).toEqual(['cancelled', undefined]);
    const failed = runStreamed(scriptedDesk(toolCall('t'), new Error('down')).agent, 'go');
    await rejection(failed.completed);
    expect([failed.status, failed.finalOutput]).toEqual(['failed', undefined]);
  });
});
