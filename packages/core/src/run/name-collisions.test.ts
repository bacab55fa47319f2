import { afterEach, describe, expect, it } from 'vitest';
import { Agent, handoff, tool } from '../index.ts';
import { resetDefaults } from '../testing/defaults.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import * as z from 'zod';
import { logged, rejection } from '../../test/run-kit.ts';

afterEach(() => resetDefaults());

/** A tool `t` that says which one it is. */
const named = (result: string, isEnabled: boolean | (() => boolean) = true) =>
  tool({ name: 't', description: result, parameters: z.object({}), isEnabled, execute: () => result });

bothForms((runForm, form) => {
  describe.each(['warn', 'error'] as const)(`entries of one name (${form}, %s)`, (toolNameCollisionPolicy) => {
    it.each([false, () => false])(
      'are none where the other tool is disabled, wherever it stands: %s [TOOL-I7, TOOL-I2]',
      async (off) => {
        const lines = logged();
        for (const tools of [
          [named('on'), named('off', off)],
          [named('off', off), named('on')],
        ]) {
          const model = new ScriptedModel([toolCall('t', {}), 'done']);
          const result = await runForm(new Agent({ name: 'A', model, tools }), 'go', { toolNameCollisionPolicy });
          expect(model.calls[0]?.request.tools.map(({ description }) => description)).toEqual(['on']);
          expect(result.newItems[1]).toMatchObject({ output: 'on' });
        }
        expect(lines).toEqual([]);
      },
    );

    it('are none where the handoff of a tool`s name is disabled: the tool is called [TOOL-I7, TOOL-HO8]', async () => {
      const lines = logged();
      const model = new ScriptedModel([toolCall('t', {}), 'done']);
      const off = handoff(new Agent({ name: 'B' }), { toolNameOverride: 't', isEnabled: () => false });
      const a = new Agent({ name: 'A', model, tools: [named('tool')], handoffs: [off] });
      const result = await runForm(a, 'go', { toolNameCollisionPolicy });
      expect([result.lastAgent, result.newItems[1]]).toMatchObject([{ name: 'A' }, { output: 'tool' }]);
      expect(model.calls[0]?.request.handoffs).toEqual([]);
      expect(lines).toEqual([]);
    });

    it('are none where the tool of a handoff`s name, or another handoff of it, is disabled [TOOL-I7, TOOL-HO8]', async () => {
      const lines = logged();
      const model = new ScriptedModel([toolCall('t', {}), 'done']);
      const b = new Agent({ name: 'B', model });
      const handoffs = [
        handoff(b, { toolNameOverride: 't' }),
        handoff(new Agent({ name: 'C' }), { toolNameOverride: 't', isEnabled: false }),
      ];
      const a = new Agent({ name: 'A', model, tools: [named('tool', false)], handoffs });
      expect((await runForm(a, 'go', { toolNameCollisionPolicy })).lastAgent).toBe(b);
      expect(lines).toEqual([]);
    });
  });

  describe(`a tool that is enabled later (${form})`, () => {
    const desk = (): { agent: Agent; model: ScriptedModel } => {
      let both = false;
      const model = new ScriptedModel([
        toolCall('t', {}),
        () => {
          both = true;
          return toolCall('t', {});
        },
        toolCall('t', {}),
        'done',
      ]);
      const tools = [named('first', () => true), named('second', () => both)];
      return { agent: new Agent({ name: 'A', model, tools }), model };
    };

    it('takes the name from then on, with one warning [TOOL-I7, TOOL-I2]', async () => {
      const lines = logged();
      const { agent, model } = desk();
      await runForm(agent, 'go');
      expect(model.calls.map(({ request }) => request.tools.map(({ description }) => description))).toEqual([
        ['first'],
        ['first'],
        ['second'],
        ['second'],
      ]);
      expect(lines).toHaveLength(1);
    });

    it('fails that turn under `error`, before the model is asked [TOOL-I7]', async () => {
      const { agent, model } = desk();
      expect(await rejection(runForm(agent, 'go', { toolNameCollisionPolicy: 'error' }))).toMatchObject({
        name: 'UserError',
      });
      expect(model.calls).toHaveLength(2);
    });
  });
});
