import { describe, expect, it } from 'vitest';
import { Agent, getRunErrorDetails, getRunErrorState } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { reasoning, ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { AgentInputItem, Model, RunOptions } from '../index.ts';
import { effectTool, PlainSession } from '../../test/run-kit.ts';

/** What a cast makes of a read-only list. */
const open = <T>(list: readonly T[]): T[] => list as T[];

/** Without what two runs never have in common: times, and ids that are drawn. */
function anonymous(json: string): string {
  const ids = new Map<string, string>();
  const id = /"(?:(?:resp|msg|rs|fc|run|trace|span|item)_\w+|[0-9a-f]{16,})"/g;
  return json
    .replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"time"')
    .replaceAll(id, (found) => ids.get(found) ?? (ids.set(found, `"id ${ids.size}"`), `"id ${ids.size - 1}"`));
}

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

    it('cannot be changed through anything that callbacks are shown of a turn [RUN-813, RUN-223, RUN-810, RUN-1203, TOOL-HO19]', async () => {
      const tries: string[] = [];
      /** Writes into every object below, wherever that is possible. */
      const spoil = (value: unknown, where: string): void => {
        if (typeof value !== 'object' || value === null) return;
        for (const [key, member] of Object.entries(value)) {
          spoil(member, where);
          try {
            (value as Record<string, unknown>)[key] = 'spoiled';
          } catch {
            tries.push(where);
          }
        }
      };
      const items = (list: readonly { readonly rawItem: unknown }[]): unknown[] => list.map(({ rawItem }) => rawItem);
      const spoilers: RunOptions = {
        callModelInputFilter: ({ modelData }) => {
          modelData.input.forEach((item) => spoil(item, 'filter'));
          return modelData;
        },
        handoffInputFilter: (data) => {
          spoil(items(data.preHandoffItems), 'handoff pre');
          spoil(items(data.newItems), 'handoff new');
          (data.inputHistory as readonly object[]).forEach((item) => spoil(item, 'handoff input'));
          return { ...data };
        },
        hooks: {
          onLlmStart: (ctx, _agent, _prompt, input) => {
            spoil(input, 'llm start');
            spoil(ctx.turnInput, 'turn input');
          },
          onLlmEnd: (_ctx, _agent, { output, usage }) => spoil({ output, usage }, 'llm end'),
          onToolStart: (ctx) => spoil(ctx.turnInput, 'turn input'),
        },
      };
      const input: AgentInputItem[] = [{ role: 'user', content: [{ type: 'input_text', text: 'go' }] }];
      const played = async (options: RunOptions) => {
        const model = new ScriptedModel([
          [reasoning('why'), text('Looking.'), toolCall('look', { id: '0' }, { callId: 'c0' })],
          toolCall('transfer_to_b', {}, { callId: 'c1' }),
          toolCall('look', { id: '1' }, { callId: 'c2' }),
          'Done.',
        ]);
        const look = effectTool('look', []);
        const b = new Agent({ name: 'B', model, tools: [look] });
        const session = new PlainSession();
        const a = new Agent({ name: 'A', model, tools: [look], handoffs: [b] });
        const result = await runForm(a, input, {
          session,
          ...options,
          sessionInputCallback: (old, added) => [...old, ...added],
        });
        expect(result.finalOutput).toBe('Done.');
        const {
          requests,
          trace: _,
          ...state
        } = JSON.parse(anonymous(result.toState().toString())) as Record<string, unknown>;
        return {
          session: JSON.parse(anonymous(JSON.stringify(session.items))) as unknown,
          requests: [
            requests,
            model.calls.map(({ request }) => JSON.parse(anonymous(JSON.stringify(request.input))) as unknown),
          ],
          state,
        };
      };
      const unspoiled: RunOptions = {
        ...spoilers,
        callModelInputFilter: undefined,
        handoffInputFilter: (data) => ({ ...data }),
        hooks: undefined,
      };
      expect(await played(spoilers)).toEqual(await played(unspoiled));
      expect(input).toEqual([{ role: 'user', content: [{ type: 'input_text', text: 'go' }] }]);
      const where = ['filter', 'handoff input', 'handoff new', 'handoff pre', 'llm end', 'llm start', 'turn input'];
      expect([...new Set(tries)].toSorted()).toEqual(where);
    });

    it("costs no copy again: an item that callbacks saw is the same object in later turns, and what they return is the run's own [RUN-813, RUN-221]", async () => {
      const lists: (readonly AgentInputItem[])[] = [];
      const sent: unknown[] = [];
      const { agent } = desk();
      const scripted = agent.model as ScriptedModel;
      const model: Model = {
        getResponse: (request) => (sent.push(request.input[0]), scripted.getResponse(request)),
        streamResponse: (request) => (sent.push(request.input[0]), scripted.streamResponse(request)),
      };
      const input: AgentInputItem[] = [{ role: 'user', content: 'go' }];
      await runForm(agent, input, {
        model,
        callModelInputFilter: ({ modelData }) => (lists.push([...modelData.input]), modelData),
        hooks: { onLlmStart: (_ctx, _agent, _prompt, shown) => void lists.push(shown) },
      });
      expect(lists.map((list) => list.length)).toEqual([1, 1, 3, 3]);
      expect(new Set(lists.map(([first]) => first)).size).toBe(1);
      expect(lists[2]?.every((item, index) => item === lists[3]?.[index])).toBe(true);
      expect(sent.map((item) => item === input[0])).toEqual([true, true]);
      expect(Object.isFrozen(input[0])).toBe(false);
    });
  });
});
