import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { FunctionTool, RunState } from '../src/index.ts';
import { Agent, getRunErrorState, MemorySession, RunState as States, tool } from '../src/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { bothForms } from '../src/testing/forms.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';

afterEach(resetDefaults);

const program = { type: 'program', caller_id: 'p' };
const callers = ['direct', 'programmatic'] as const;

const callOf = (name: string, caller: unknown = program, callId = `c_${name}`) =>
  ({ ...toolCall(name, {}, { callId }), caller }) as unknown as ReturnType<typeof toolCall>;

const outputsIn = (items: readonly object[]): object[] =>
  items.filter((item) => (item as { type?: string }).type === 'function_call_output');

const agentOf = (tools: readonly FunctionTool<unknown>[], calls: ReturnType<typeof toolCall>[]): Agent =>
  new Agent({ name: 'A', model: new ScriptedModel([calls, 'done']), tools: [...tools] });

bothForms((runForm, form) => {
  const failure = async (
    agent: Agent,
    input: string | RunState,
    options: { onInDoubt?: 'interrupt' } = {},
  ): Promise<Error> =>
    await runForm(agent, input, options).then(
      () => expect.fail('The run succeeded.'),
      (error: Error) => error,
    );

  describe(`calls of programs (${form})`, () => {
    it.each([
      ['ü "text"', 'ü "text"'],
      [{ type: 'text', text: 'a' }, '{"type":"text","text":"a"}'],
      [[{ type: 'image', file_id: 'f' }], '[{"type":"image","file_id":"f"}]'],
      [{ n: [1, null], at: new Date(0) }, '{"n":[1,null],"at":"1970-01-01T00:00:00.000Z"}'],
      [7, '7'],
      [false, 'false'],
      [null, 'null'],
      [undefined, 'null'],
    ])('get %j as JSON, with the program that made the call [TOOL-R8]', async (value, output) => {
      const find = tool({ name: 'find', allowedCallers: callers, execute: () => value });
      const session = new MemorySession();
      const result = await runForm(agentOf([find], [callOf('find')]), 'hi', { session });
      const expected = [{ type: 'function_call_output', call_id: 'c_find', output, caller: program }];
      expect(outputsIn(result.toInputList())).toMatchObject(expected);
      expect(outputsIn(await session.getItems())).toMatchObject(expected);
      const direct = await runForm(agentOf([find], [callOf('find', { type: 'direct' })]), 'hi');
      expect(outputsIn(direct.toInputList())[0]).not.toHaveProperty('caller');
    });

    it.each([
      1n,
      { s3cret: 1n },
      Number.NaN,
      [Number.POSITIVE_INFINITY],
      { m: new Map() },
      () => 's3cret',
      Symbol('s3cret'),
    ])('fail the run over a value without a JSON form: %o [TOOL-R8]', async (value) => {
      const find = tool({ name: 'find', allowedCallers: callers, execute: () => value as unknown });
      const error = await failure(agentOf([find], [callOf('find')]), 'hi');
      expect(error).toMatchObject({ code: 'user_error' });
      expect(error.message).toMatch(/^tool find: what it returned has no JSON form, and programs/);
      expect(error.message).not.toContain('s3cret');
    });

    it('get texts in place of a declared value as JSON that says so [STATE-111]', async () => {
      const declared = {
        allowedCallers: callers,
        outputSchema: z.object({ n: z.number() }),
        execute: () => ({ n: 1 }),
      };
      const fails = tool({
        ...declared,
        name: 'fails',
        failureErrorFunction: () => 'sorry "you"',
        execute: (): { n: number } => {
          throw new Error('no');
        },
      });
      const guarded = tool({
        ...declared,
        name: 'guarded',
        outputGuardrails: [
          { name: 'no', execute: () => ({ behavior: { type: 'reject_content', message: 'hidden' } }) },
        ],
      });
      const asked = tool({ ...declared, name: 'asked', needsApproval: true });
      const plain = tool({ name: 'plain', allowedCallers: callers, needsApproval: true, execute: () => '' });
      const tools = [tool({ ...declared, name: 'works' }), fails, guarded, asked, plain];
      const agent = agentOf(
        tools,
        tools.map(({ name }) => callOf(name)),
      );
      const state = (await runForm(agent, 'hi')).toState();
      for (const item of state.interruptions) state.reject(item, { message: 'not now' });
      const result = await runForm(agent, await States.fromString(agent, state.toString()));
      const outputs = outputsIn(result.toInputList()) as { output: string; caller: unknown }[];
      expect(outputs.map(({ output }) => output)).toEqual([
        '{"n":1}',
        '{"error":"sorry \\"you\\""}',
        '{"error":"hidden"}',
        '{"error":"not now"}',
        'not now',
      ]);
      expect(outputs.map(({ caller }) => caller)).toEqual(tools.map(() => program));
      // Nobody but the program reads the wrapping.
      const given = result.newItems.flatMap((item) => (item.type === 'tool_call_output_item' ? [item.output] : []));
      expect(given).toEqual([{ n: 1 }, 'sorry "you"', 'hidden', 'not now', 'not now']);
    });

    it.each([
      'program',
      'direct',
      '',
      5,
      true,
      [[]],
      [['program']],
      {},
      { type: null },
      { type: '' },
      { type: 'PROGRAM' },
      { type: ['direct'] },
      { type: 'program' },
      { type: 'program', caller_id: 5 },
      { type: 'program', caller_id: '' },
    ])('whose caller is %j are nobody’s, and do not pass for the model’s own [TOOL-P9]', async (caller) => {
      const done: string[] = [];
      const find = tool({ name: 'find', allowedCallers: callers, execute: () => void done.push('find') });
      const error = await failure(agentOf([find], [callOf('find', caller)]), 'hi');
      expect(error).toMatchObject({ code: 'model_behavior' });
      expect(error.message).toMatch(/call of find has an unsupported caller type/);
      expect(done).toEqual([]);
    });

    it('that find no tool say that, not who may call it [TOOL-P9, P14]', async () => {
      const result = await runForm(agentOf([], [callOf('gone')]), 'hi', {
        toolNotFoundBehavior: 'return_error_to_model',
      });
      expect(outputsIn(result.toInputList())).toMatchObject([{ output: "Tool 'gone' not found.", caller: program }]);
      expect((await failure(agentOf([], [callOf('gone')]), 'hi')).message).toMatch(/^Tool gone not found in agent A/);
    });

    it.each(['live', 'through JSON'])(
      'and of the model are asked again who made them when they go on; state %s [STATE-226]',
      async (way) => {
        for (const [caller, now] of [
          [program, ['direct']],
          [null, ['programmatic']],
        ] as const) {
          const done: string[] = [];
          const gated = (allowedCallers: readonly ('direct' | 'programmatic')[]) =>
            tool({ name: 'find', allowedCallers, needsApproval: true, execute: () => void done.push('find') });
          const free = tool({ name: 'free', allowedCallers: callers, execute: () => void done.push('free') });
          const agent = agentOf([gated(callers), free], [callOf('free'), callOf('find', caller)]);
          const paused = (await runForm(agent, 'hi')).toState();
          done.length = 0;
          // What a restart changes; a live agent's list of tools may change, too.
          const changed = way === 'live' ? agent : agent.clone({});
          changed.tools.splice(0, 2, gated(now), free);
          const next = async (decide: (state: RunState) => void): Promise<RunState> => {
            const state = way === 'live' ? paused : await States.fromString(changed, paused.toString());
            decide(state);
            return state;
          };
          const approved = await next((state) => state.approve(state.interruptions[0] as never));
          expect((await failure(changed, approved)).message).toMatch(/find is .*permitted callers are/);
          expect(done).toEqual([]);
          if (way === 'live') continue;
          const rejected = await next((state) => state.reject(state.interruptions[0] as never));
          expect((await runForm(changed, rejected)).finalOutput).toBe('done');
          expect(done).toEqual([]);
        }
      },
    );
  });

  describe(`what a person says that a tool gave (${form})`, () => {
    const desk = async (output: unknown, caller?: object) => {
      const find = tool({
        name: 'find',
        allowedCallers: callers,
        outputSchema: z.object({ type: z.literal('text'), text: z.string(), n: z.coerce.number() }),
        failureErrorFunction: null,
        execute: (): never => {
          throw new Error('line cut');
        },
      });
      const look = tool({ name: 'look', execute: () => 'seen' });
      const agent = agentOf([find, look], [callOf('find', caller ?? null), toolCall('look', {}, { callId: 'l' })]);
      const state = getRunErrorState(await failure(agent, 'hi'));
      const paused = (await runForm(agent, state as RunState, { onInDoubt: 'interrupt' })).toState();
      paused.decide(paused.interruptions[0] as never, { type: 'done', output });
      return { agent, find, look, state: await States.fromString(agent, paused.toString()) };
    };

    it('is what the tool declares, like what it gives itself [TOOL-R9]', async () => {
      const { agent, state } = await desk({ type: 'text', text: 'a', n: '4', extra: 1 });
      const result = await runForm(agent, state);
      expect(outputsIn(result.toInputList())).toMatchObject([
        { output: 'seen' },
        { output: '{"type":"text","text":"a","n":4}' },
      ]);
    });

    it('is taken of a call that the tool would not let be made any more: it was made [STATE-178, 226]', async () => {
      const { agent, find, look, state } = await desk({ type: 'text', text: 'a', n: 4 }, program);
      agent.tools.splice(0, 2, find.copyWith({ allowedCallers: ['direct'] }), look);
      const result = await runForm(agent, state);
      expect(result.finalOutput).toBe('done');
      expect(outputsIn(result.toInputList())[1]).toMatchObject({ caller: program });
    });

    it('may be a text in place of the value, and nothing else [TOOL-R9]', async () => {
      const said = await desk('it was there');
      const result = await runForm(said.agent, said.state);
      expect(outputsIn(result.toInputList())).toMatchObject([{ output: 'seen' }, { output: 'it was there' }]);
      const { agent, state } = await desk({ n: 's3cret' });
      const error = await failure(agent, state);
      expect(error.message).toMatch(/^tool find: what it returned does not match its `outputSchema`: /u);
      expect(error.message).not.toContain('s3cret');
      // The answer was not taken; another one may be given.
      const again = getRunErrorState(error) as RunState;
      const paused =
        (await runForm(agent, again, { onInDoubt: 'interrupt' }).catch(() => undefined))?.toState() ?? again;
      paused.decide(paused.interruptions[0] as never, { type: 'done', output: 'it was there' });
      expect((await runForm(agent, paused)).finalOutput).toBe('done');
    });
  });
});
