import { afterEach, describe, expect, it } from 'vitest';
import { Agent, run, RunState } from '../src/index.ts';
import type { RunResult } from '../src/index.ts';
import { bothForms } from '../src/testing/forms.ts';
import { resetDefaults } from '../src/testing/defaults.ts';
import { ScriptedModel, toolCall } from '../src/testing/index.ts';
import { effectTool, kindsOf, PlainSession } from './run-kit.ts';
import type { Members } from './states.ts';

afterEach(() => resetDefaults());

const call = (name: string, callId: string) => toolCall(name, {}, { callId });

bothForms((runForm, form) => {
  describe(`faults of the field: states and runs (${form})`, () => {
    it('the output of a handler at the limit of turns is stored like any other [IL-035]', async () => {
      const model = new ScriptedModel([call('lookup', 'c1')]);
      const agent = new Agent({ name: 'A', model, tools: [effectTool('lookup', [])] });
      const session = new PlainSession();
      const result = await runForm(agent, 'go', {
        session,
        maxTurns: 1,
        errorHandlers: { maxTurns: () => ({ finalOutput: 'that is enough' }) },
      });
      expect([result.finalOutput, session.kinds]).toEqual(['that is enough', 'u fc fco m']);
      expect(JSON.stringify(session.items.at(-1))).toContain('that is enough');
    });

    it('a resume adds nothing to lists that were read before, nor, behind its interrupted turn, to the state that was passed in [IL-071]', async () => {
      const model = new ScriptedModel([call('refund', 'c1'), call('lookup', 'c2'), 'done']);
      const effects: string[] = [];
      const tools = [effectTool('refund', effects, { needsApproval: true }), effectTool('lookup', effects)];
      const agent = new Agent({ name: 'A', model, tools });
      const paused: RunResult = await runForm(agent, 'go');
      const state = paused.toState();
      const text = state.toString();
      const lists = [state.newItems, state.interruptions, state.getDecisions(), paused.newItems, paused.rawResponses];
      const lengths = lists.map((list) => list.length);
      for (const item of state.interruptions) state.approve(item);
      const result = await runForm(agent, state);
      expect([result.finalOutput, effects]).toEqual(['done', ['refund -', 'lookup -']]);
      expect(lists.map((list) => list.length)).toEqual(lengths);
      // It stands at the end of the turn that it came with; the two turns behind are the result's.
      expect(kindsOf(state.toInputList())).toBe('u fc fco');
      expect(state.toJSON()['model_responses']).toHaveLength(1);
      expect(kindsOf(result.toInputList())).toBe('u fc fco fc fco m');
      // What was written down before goes on as if nothing had been.
      const again = await RunState.fromString(agent, text);
      for (const item of again.interruptions) again.approve(item);
      model.add('once more');
      expect((await runForm(agent, again)).finalOutput).toBe('once more');
    });

    it('structured results of guardrails stay objects in a saved state [IL-081]', async () => {
      const results = ['input', 'output', 'tool_input', 'tool_output'].map((type) => [
        `${type}_guardrail_results`,
        [
          {
            guardrail: { type, name: 'g' },
            output: {
              outputInfo: { allowed: true, scores: [1, { of: null }] },
              ...(type?.startsWith('tool') ? { behavior: { type: 'allow' } } : { tripwireTriggered: false }),
            },
            ...(type === 'output' && { agentOutput: { answer: [1] }, agent: { name: 'A' } }),
          },
        ],
      ]);
      const agent = new Agent({
        name: 'A',
        model: new ScriptedModel([call('refund', 'c1'), 'done']),
        tools: [effectTool('refund', [], { needsApproval: true })],
      });
      const json = (await runForm(agent, 'go')).toState().toJSON() as unknown as Members;
      const state = await RunState.fromJSON(agent, { ...json, ...Object.fromEntries(results) });
      const restored = await RunState.fromString(agent, state.toString());
      for (const item of restored.interruptions) restored.approve(item);
      const end = (await run(agent, restored)).toState();
      for (const one of [state, restored, end]) {
        const members = one.toJSON() as unknown as Members;
        expect(results.map(([key]) => [key, members[key as string]])).toEqual(results);
      }
    });
  });
});
