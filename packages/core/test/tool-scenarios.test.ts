import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, tool } from '../src/index.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { bothForms } from '../src/testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../src/testing/index.ts';
import { effectTool, exactly, logged } from './run-kit.ts';

afterEach(resetDefaults);

const outputs = (items: readonly object[]): unknown[] =>
  items.flatMap((item) => (item as { output?: unknown }).output ?? []);

bothForms((runForm, form) => {
  describe(`tools of a run (${form})`, () => {
    it('with a namespace is not the bare one [TOOL-P16]', async () => {
      const done: string[] = [];
      const call = { ...toolCall('x', {}, { callId: 'c' }), namespace: 'n' };
      const agent = new Agent({ name: 'A', model: new ScriptedModel([call, 'done']), tools: [effectTool('x', done)] });
      const result = await runForm(agent, 'hi', { toolNotFoundBehavior: 'return_error_to_model' });
      expect(done).toEqual([]);
      expect(outputs(result.toInputList())).toHaveLength(1);
      await expect(runForm(agent.clone({ model: new ScriptedModel([call]) }), 'hi')).rejects.toMatchObject({
        code: 'model_behavior',
      });
    });

    it('of kinds that nobody knows are passed over [TOOL-P18]', async () => {
      const model = new ScriptedModel([exactly({ type: 'hologram_call', id: 'h' }, text('done'))]);
      const result = await runForm(new Agent({ name: 'A', model }), 'hi');
      expect(result.finalOutput).toBe('done');
    });

    it('whose function of behaviour says that it is no final output go on [TOOL-X32]', async () => {
      const model = new ScriptedModel([toolCall('t', {}), 'done']);
      const asked: unknown[] = [];
      const agent = new Agent({
        name: 'A',
        model,
        tools: [effectTool('t', [])],
        toolUseBehavior: (_, results) => {
          asked.push(results.map(({ output }) => output));
          return { isFinalOutput: false };
        },
      });
      expect((await runForm(agent, 'hi')).finalOutput).toBe('done');
      expect(asked).toEqual([['t ok']]);
      expect(model.calls).toHaveLength(2);
    });

    it('that are switched off have no name to clash with [TOOL-I13]', async () => {
      const off = tool({ name: 't', parameters: z.object({}), isEnabled: false, execute: () => 'off' });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('t', {}), 'done']),
        tools: [off, effectTool('t', [])],
      });
      const result = await runForm(agent, 'hi', { toolNameCollisionPolicy: 'error' });
      expect(outputs(result.toInputList())).toEqual(['t ok']);
    });

    it('get the default text of a rejection when the formatter throws, which is logged [TOOL-AC83]', async () => {
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('g', {}), 'done']),
        tools: [effectTool('g', [], { needsApproval: true })],
      });
      const paused = await runForm(agent, 'hi');
      const state = paused.toState();
      for (const item of state.interruptions) state.reject(item);
      const logs = logged();
      const result = await runForm(agent, state, {
        toolErrorFormatter: () => {
          throw new Error('broken');
        },
      });
      expect(result.finalOutput).toBe('done');
      expect(outputs(result.toInputList())).toEqual(['Tool execution was not approved.']);
      expect(logs.filter(({ level }) => level === 'error')).toHaveLength(1);
    });

    it('tell what was wrong with arguments, without their values [TOOL-AC90]', async () => {
      const book = tool({ name: 'book', parameters: z.object({ seats: z.number() }), execute: () => 'ok' });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('book', '{"seats":"two"}'), 'done']),
        tools: [book],
      });
      const [output] = outputs((await runForm(agent, 'hi')).toInputList());
      expect(output).toMatch(/ Invalid arguments: seats: expected number$/u);
      expect(output).not.toContain('two');
    });

    it('show a policy their arguments as the schema gives them, also where a null stood for a default [TOOL-AC92]', async () => {
      const seen: unknown[] = [];
      const counted = tool({
        name: 'n',
        parameters: z.object({ n: z.number().default(3) }),
        needsApproval: (_ctx, args) => {
          seen.push(args);
          return false;
        },
        execute: ({ n }) => `n ${n}`,
      });
      const agentOf = (args: string) =>
        new Agent({ name: 'A', model: new ScriptedModel([toolCall('n', args), 'done']), tools: [counted] });
      const result = await runForm(agentOf('{"n":5}'), 'hi');
      expect([seen, outputs(result.toInputList())]).toEqual([[{ n: 5 }], ['n 5']]);
      const lowered = await runForm(agentOf('{"n":null}'), 'hi');
      expect([seen, outputs(lowered.toInputList())]).toEqual([[{ n: 5 }, { n: 3 }], ['n 3']]);
    });

    it('that a start hook adds are in the first request; then predicates and instructions are asked [TOOL-AC93]', async () => {
      const log: string[] = [];
      const model = new ScriptedModel(['done']);
      const early = tool({ name: 'early', isEnabled: () => log.push('isEnabled early') > 0, execute: () => '' });
      const late = tool({ name: 'late', isEnabled: () => log.push('isEnabled late') > 0, execute: () => '' });
      const agent = new Agent({
        name: 'A',
        model,
        tools: [early],
        instructions: () => {
          log.push('instructions');
          return 'Be brief.';
        },
      });
      const onAgentStart = (): void => {
        log.push('start');
        agent.tools.push(late);
      };
      await runForm(agent, 'hi', { hooks: { onAgentStart } });
      expect(log).toEqual(['start', 'isEnabled early', 'isEnabled late', 'instructions']);
      expect(model.calls[0]?.request.tools.map(({ name }) => name)).toEqual(['early', 'late']);
    });

    it('that declare what they return give compact JSON of what the schema makes of it [TOOL-R9]', async () => {
      const told: unknown[] = [];
      const find = tool({
        name: 'find',
        outputSchema: z.object({ type: z.literal('text'), text: z.string(), n: z.coerce.number() }),
        execute: () => ({ type: 'text', text: 'ü', n: '4', extra: 'gone' }),
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('find', {}), 'done']), tools: [find] });
      const result = await runForm(agent, 'hi', {
        hooks: { onToolEnd: (...[, , , output]) => void told.push(output) },
      });
      const value = { type: 'text', text: 'ü', n: 4 };
      expect(outputs(result.toInputList())).toEqual(['{"type":"text","text":"ü","n":4}']);
      expect([told, outputs(result.newItems)]).toEqual([[value], [value]]);
    });

    it('that return something else than they declare fail the run, whatever their failure policy [TOOL-R9]', async () => {
      const find = tool({
        name: 'find',
        outputSchema: z.object({ n: z.number() }),
        failureErrorFunction: () => 'all is well',
        execute: (): { n: number } => JSON.parse('{"n":"s3cret"}'),
      });
      const model = new ScriptedModel([toolCall('find', {}, { callId: 'c' }), 'done']);
      const error: unknown = await runForm(new Agent({ name: 'A', model, tools: [find] }), 'hi').catch(
        (e: unknown) => e,
      );
      expect(error).toMatchObject({
        code: 'user_error',
        message: 'tool find: what it returned does not match its `outputSchema`: n: expected number.',
      });
      expect(model.calls).toHaveLength(1);
    });

    it('that declare what they return answer failures and guardrails with plain texts [TOOL-R9]', async () => {
      const outputSchema = z.object({ n: z.number() });
      const fails = tool({
        name: 'fails',
        outputSchema,
        failureErrorFunction: () => 'sorry',
        execute: (): { n: number } => {
          throw new Error('no');
        },
      });
      const guarded = tool({
        name: 'guarded',
        outputSchema,
        outputGuardrails: [
          { name: 'no', execute: () => ({ behavior: { type: 'reject_content', message: 'hidden' } }) },
        ],
        execute: () => ({ n: 1 }),
      });
      const model = new ScriptedModel([[toolCall('fails', {}), toolCall('guarded', {})], 'done']);
      const result = await runForm(new Agent({ name: 'A', model, tools: [fails, guarded] }), 'hi');
      expect(outputs(result.toInputList())).toEqual(['sorry', 'hidden']);
    });

    it('that declare what they return tell the model what a guardrail left of it [TOOL-R9]', async () => {
      const find = tool({
        name: 'find',
        outputSchema: z.object({ phone: z.string() }),
        outputGuardrails: [
          {
            name: 'mask',
            execute: ({ output }) => {
              (output as { phone: string }).phone = '***';
              return { behavior: { type: 'allow' } };
            },
          },
        ],
        execute: () => ({ phone: 's3cret' }),
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('find', {}), 'done']), tools: [find] });
      const result = await runForm(agent, 'hi');
      expect(outputs(result.toInputList())).toEqual(['{"phone":"***"}']);
      expect(outputs(result.newItems)).toEqual([{ phone: '***' }]);
    });

    it('that declare what they return may give anything once they are told to stop [TOOL-R9, RUN-512]', async () => {
      const find = tool({
        name: 'find',
        outputSchema: z.object({ n: z.number() }),
        execute: (_, ctx) =>
          new Promise<never>((resolve) => {
            ctx.signal.addEventListener('abort', () => resolve(undefined as never));
          }),
      });
      const stopped = new DOMException('no time', 'AbortError');
      const fails = tool({
        name: 'fails',
        failureErrorFunction: null,
        execute: async () => await Promise.reject(stopped),
      });
      const model = new ScriptedModel([[toolCall('find', {}), toolCall('fails', {})]]);
      const running = runForm(new Agent({ name: 'A', model, tools: [find, fails] }), 'hi');
      await expect(running).rejects.toMatchObject({ code: 'tool_call', cause: stopped });
    });

    it.each([
      ['direct', ['programmatic'], undefined, /find is direct.*permitted callers are: programmatic/],
      ['direct', ['programmatic'], { type: 'direct' }, /find is direct/],
      ['programmatic', undefined, { type: 'program', caller_id: 'p' }, /find is programmatic.*callers are: direct/],
      ['of another kind', ['direct', 'programmatic'], { type: 'cron' }, /unsupported caller type/],
    ] as const)('called %s where callers are %j fail the run before anything runs [TOOL-P9]', async (...row) => {
      const [, allowedCallers, caller, message] = row;
      const done: string[] = [];
      const find = effectTool('find', done).copyWith({ allowedCallers });
      const other = toolCall('other', {}, { callId: 'o' });
      const call = { ...toolCall('find', {}, { callId: 'c' }), ...(caller && { caller }) };
      const model = new ScriptedModel([[other, call as typeof other], 'done']);
      const running = runForm(new Agent({ name: 'A', model, tools: [effectTool('other', done), find] }), 'hi');
      await expect(running).rejects.toThrow(message);
      await expect(running).rejects.toMatchObject({ code: 'model_behavior' });
      expect(done).toEqual([]);
    });

    it('are called by programs no more than handoffs are [TOOL-P9]', async () => {
      const call = { ...toolCall('transfer_to_b', {}, { callId: 'c' }), caller: { type: 'program', caller_id: 'p' } };
      const model = new ScriptedModel([call as ReturnType<typeof toolCall>]);
      const agent = new Agent({ name: 'A', model, handoffs: [new Agent({ name: 'B', model: new ScriptedModel([]) })] });
      await expect(runForm(agent, 'hi')).rejects.toThrow(/transfer_to_b is programmatic.*callers are: direct/);
    });

    it.each([undefined, null, { type: 'direct' }, { type: 'program', caller_id: 'p' }])(
      'called by whom they allow (%j) run [TOOL-P9]',
      async (caller) => {
        const call = { ...toolCall('find', {}, { callId: 'c' }), caller } as ReturnType<typeof toolCall>;
        const model = new ScriptedModel([call, 'done']);
        const tools = [effectTool('find', []).copyWith({ allowedCallers: ['direct', 'programmatic'] })];
        const result = await runForm(new Agent({ name: 'A', model, tools }), 'hi');
        expect(outputs(result.toInputList())).toEqual(['find ok']);
      },
    );

    it('end a run with the first output, or with a rejection, and no model is asked [TOOL-AC94]', async () => {
      for (const [calls, approves, expected] of [
        [['t', 'g'], true, 't ok'],
        [['g'], false, 'Tool execution was not approved.'],
      ] as const) {
        const model = new ScriptedModel([calls.map((name) => toolCall(name, {}, { callId: name }))]);
        const agent = new Agent({
          name: 'A',
          model,
          tools: [effectTool('t', []), effectTool('g', [], { needsApproval: true })],
          toolUseBehavior: 'stop_on_first_tool',
        });
        const state = (await runForm(agent, 'hi')).toState();
        for (const item of state.interruptions) {
          if (approves) state.approve(item);
          else state.reject(item);
        }
        expect((await runForm(agent, state)).finalOutput).toBe(expected);
        expect(model.calls).toHaveLength(1);
      }
    });
  });
});
