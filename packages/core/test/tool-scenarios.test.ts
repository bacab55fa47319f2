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

    it('show a policy their arguments as the schema gives them', async () => {
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
    });

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
