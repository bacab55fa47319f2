import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, handoff, RunState, tool } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import { kindsOf } from '../../test/run-kit.ts';

bothForms((runForm, form) => {
  describe(`inside a handoff (${form})`, () => {
    it('input is validated, then come callback, hooks, filter and the next agent; the output is there for the filter [RUN-505]', async () => {
      const order: string[] = [];
      const target = new Agent({
        name: 'B',
        model: new ScriptedModel([
          () => {
            order.push('next agent');
            return 'done';
          },
        ]),
      });
      const to = handoff(target, {
        inputType: z.object({ reason: z.string() }).refine(() => order.push('validate') > 0),
        onHandoff: () => void order.push('callback'),
        inputFilter: ({ newItems }) => {
          order.push(`filter ${newItems.map(({ type }) => type).join(' ')}`);
          return {};
        },
        toolNameOverride: 'to_b',
      });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([toolCall('to_b', { reason: 'x' })]),
        handoffs: [to],
      });
      const result = await runForm(agent, 'x', { hooks: { onHandoff: () => void order.push('hook') } });
      expect(order).toEqual([
        'validate',
        'callback',
        'hook',
        'filter handoff_call_item handoff_output_item',
        'next agent',
      ]);
      expect(kindsOf(result.toInputList())).toBe('u fc fco m');
    });
  });

  describe(`a tool outside of an agent tool (${form})`, () => {
    it('has no input of one [TOOL-C4]', async () => {
      const seen: unknown[] = [];
      const look = tool({
        name: 'look',
        parameters: z.object({}),
        execute: (_, ctx) => {
          seen.push(ctx.toolInput);
          return 'ok';
        },
      });
      const agent = new Agent({ name: 'A', model: new ScriptedModel([toolCall('look', {}), 'done']), tools: [look] });
      await runForm(agent, 'x');
      const inner = new Agent({ name: 'I', model: new ScriptedModel([toolCall('look', {}), 'done']), tools: [look] });
      const asked = inner.asTool({ toolName: 'inner', parameters: z.object({ q: z.string() }) });
      const outer = new Agent({
        name: 'O',
        model: new ScriptedModel([toolCall('inner', { q: 'why' }), 'done']),
        tools: [asked],
      });
      await runForm(outer, 'x');
      expect(seen).toEqual([undefined, { q: 'why' }]);
    });

    it('a policy for equal names that is none is refused before anything starts [TOOL-I8]', async () => {
      const model = new ScriptedModel(['done']);
      const options = { toolNameCollisionPolicy: 'ignore' as never };
      await expect((async () => await runForm(new Agent({ name: 'A', model }), 'x', options))()).rejects.toThrow(
        /'toolNameCollisionPolicy'/u,
      );
      expect(model.calls).toHaveLength(0);
    });
  });

  describe(`an agent tool that was resumed (${form})`, () => {
    it('gives its output extractor the name, the id and the arguments of the outer call [STATE-244]', async () => {
      const gated = tool({ name: 'g', parameters: z.object({}), needsApproval: true, execute: () => 'ok' });
      const inner = new Agent({ name: 'I', model: new ScriptedModel([toolCall('g', {}), 'inner']), tools: [gated] });
      const seen: unknown[] = [];
      const asked = inner.asTool({
        toolName: 'ask',
        customOutputExtractor: ({ agentToolInvocation }) => {
          seen.push(agentToolInvocation);
          return 'taken';
        },
      });
      const model = new ScriptedModel([toolCall('ask', '{ "input": "why" }', { callId: 'outer' }), 'done']);
      const agent = new Agent({ name: 'O', model, tools: [asked] });
      const paused = await runForm(agent, 'x');
      const state = await RunState.fromString(agent, paused.toState().toString());
      for (const item of state.interruptions) state.approve(item);
      expect((await runForm(agent, state)).finalOutput).toBe('done');
      expect(seen).toEqual([{ toolName: 'ask', toolCallId: 'outer', toolArguments: '{ "input": "why" }' }]);
    });
  });

  describe(`the end of a turn (${form})`, () => {
    it('is a pause before a handoff, a handoff before what tools end the run with, and these before a message [TOOL-X13]', async () => {
      const script = () => [
        toolCall('t', {}, { callId: 't' }),
        toolCall('g', {}, { callId: 'g' }),
        toolCall('to_b', {}, { callId: 'h' }),
      ];
      const named = (name: string, needsApproval = false) =>
        tool({ name, parameters: z.object({}), needsApproval, execute: () => `${name} ok` });
      const target = new Agent({ name: 'B', model: new ScriptedModel(['done']) });
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([script(), [toolCall('t', {}, { callId: 't2' }), text('said')]]),
        tools: [named('t'), named('g', true)],
        handoffs: [handoff(target, { toolNameOverride: 'to_b' })],
        toolUseBehavior: 'stop_on_first_tool',
      });
      const paused = await runForm(agent, 'x');
      expect(paused.status).toBe('interrupted');
      expect(paused.lastAgent.name).toBe('A');
      expect(kindsOf(paused.toInputList())).toContain('fco');
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(agent, state);
      expect([result.lastAgent.name, result.finalOutput]).toEqual(['B', 'done']);
      const ended = await runForm(agent, 'y');
      expect([ended.lastAgent.name, ended.finalOutput]).toEqual(['A', 't ok']);
    });

    it('is the text of the last message, all of its parts [TOOL-O11]', async () => {
      const part = (value: string) => ({ type: 'output_text' as const, text: value, annotations: [], logprobs: [] });
      const last = { ...text('b'), content: [part('b'), part('c')] };
      const agent = new Agent({ name: 'A', model: new ScriptedModel([[text('a'), last]]) });
      expect((await runForm(agent, 'x')).finalOutput).toBe('bc');
    });

    it('leaves the namespace of a call in the history as it came [TOOL-P13]', async () => {
      const call = { ...toolCall('t', {}, { callId: 'c' }), namespace: 'Some.Space' };
      const agent = new Agent({ name: 'A', model: new ScriptedModel([call, 'done']) });
      const result = await runForm(agent, 'x', { toolNotFoundBehavior: 'return_error_to_model' });
      expect(result.toInputList()[1]).toMatchObject({ type: 'function_call', name: 't', namespace: 'Some.Space' });
    });
  });
});
