import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, handoff, tool } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
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
});
