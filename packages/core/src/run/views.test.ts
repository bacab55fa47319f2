import { describe, expect, it } from 'vitest';
import { Agent, getRunErrorDetails, getRunErrorState } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, toolCall } from '../testing/index.ts';
import { effectTool } from '../../test/run-kit.ts';

/** What a cast makes of a read-only list. */
const open = <T>(list: readonly T[]): T[] => list as T[];

function desk(last: 'Paid.' | Error = 'Paid.') {
  const effects: string[] = [];
  const model = new ScriptedModel([
    toolCall('look', { id: '0' }),
    toolCall('pay', { id: '1' }, { callId: 'c1' }),
    last,
  ]);
  const tools = [effectTool('pay', effects, { needsApproval: true }), effectTool('look', effects)];
  return { agent: new Agent({ name: 'Desk', model, tools }), effects };
}

bothForms((runForm, form) => {
  describe(`what a run shows (${form})`, () => {
    it('is read only: its lists cannot be emptied, and the run goes on as it was [IL-070]', async () => {
      const { agent, effects } = desk();
      const paused = await runForm(agent, 'go');
      const before = paused.toState().toString();
      for (const list of [paused.interruptions, paused.newItems, paused.rawResponses] as const) {
        expect(list.length).toBeGreaterThan(0);
        expect(() => open<unknown>(list).pop()).toThrow(TypeError);
      }
      const state = paused.toState();
      open(state.interruptions).length = 0;
      open(state.newItems).length = 0;
      expect([paused.toState().toString(), state.interruptions.length]).toEqual([before, 1]);
      for (const item of state.interruptions) state.approve(item);
      open(state.getDecisions()).length = 0;
      Object.assign(state.getDecisions()[0] ?? {}, { type: 'reject' });
      expect(state.getDecisions()).toMatchObject([{ type: 'approve' }]);
      expect((await runForm(agent, state)).finalOutput).toBe('Paid.');
      expect(effects).toEqual(['look 0', 'pay 1']);
    });

    it('stays as it was while the list behind it grows [RUN-1203]', async () => {
      const { agent } = desk();
      const paused = await runForm(agent, 'go');
      const seen = paused.newItems;
      expect(paused.newItems).toBe(seen);
      const state = paused.toState();
      for (const item of state.interruptions) state.approve(item);
      const end = await runForm(agent, state);
      expect([seen.length, end.newItems.length]).toEqual([4, 6]);
    });

    it('of a failure is read only too [IL-070, RUN-1802]', async () => {
      const { agent } = desk(new Error('down'));
      const state = (await runForm(agent, 'go')).toState();
      for (const item of state.interruptions) state.approve(item);
      const error: unknown = await runForm(agent, state).catch((thrown: unknown) => thrown);
      const details = getRunErrorDetails(error);
      const before = getRunErrorState(error)?.toString();
      expect(() => open(details?.newItems ?? []).pop()).toThrow(TypeError);
      expect(() => open(details?.rawResponses ?? []).pop()).toThrow(TypeError);
      expect(getRunErrorState(error)?.toString()).toBe(before);
    });

    it('of a call that was decided cannot be changed: what a person read is what runs [IL-070]', async () => {
      const { agent, effects } = desk();
      const state = (await runForm(agent, 'go')).toState();
      const [item] = state.interruptions;
      state.approve(item!);
      expect(() => Object.assign(item!.rawItem, { arguments: '{"id":"999"}' })).toThrow(TypeError);
      await runForm(agent, state);
      expect(effects).toEqual(['look 0', 'pay 1']);
    });
  });
});
