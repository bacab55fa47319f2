import { describe, expect, it } from 'vitest';
import { Agent, run, runStreamed, RunState } from '../index.ts';
import type { ModelSettings, ResponseOutputItem } from '../index.ts';
import { bothForms } from '../testing/forms.ts';
import { ScriptedModel, text, toolCall } from '../testing/index.ts';
import type { ModelStep } from '../testing/index.ts';
import { effectTool, exactly } from '../../test/run-kit.ts';
import { symmetry } from '../../test/symmetry.ts';

const choices = (model: ScriptedModel): unknown[] => model.calls.map(({ request }) => request.modelSettings.toolChoice);

/** An agent that has to use a tool. */
function forced(
  steps: ModelStep[],
  options: { resetToolChoice?: boolean; toolChoice?: ModelSettings['toolChoice'] } = {},
) {
  const model = new ScriptedModel(steps);
  const { toolChoice = 'required', resetToolChoice } = options;
  const agent = new Agent({
    name: 'A',
    model,
    modelSettings: { toolChoice },
    resetToolChoice,
    tools: [effectTool('t', []), effectTool('g', [], { needsApproval: true }), effectTool('tool_search', [])],
  });
  return { agent, model };
}
const hosted = (type: string): ResponseOutputItem =>
  ({
    type,
    id: `${type}_1`,
    status: 'completed',
    action: { type: 'search', query: 'q' },
  }) as unknown as ResponseOutputItem;
const toolSearch = { type: 'tool_search_call', id: 'ts_1', status: 'completed', arguments: {} };

bothForms((runForm, form) => {
  describe(`a forced choice of tools (${form})`, () => {
    it('is forgotten once the agent has used a tool; the next run begins with it [RUN-611, RUN#45, TOOL-X22]', async () => {
      const { agent, model } = forced([toolCall('t'), toolCall('t'), 'done', toolCall('t'), 'done']);
      await runForm(agent, 'go');
      expect(choices(model)).toEqual(['required', undefined, undefined]);
      await runForm(agent, 'again');
      expect(choices(model).slice(3)).toEqual(['required', undefined]);
      expect(agent.modelSettings.toolChoice).toBe('required');
    });

    it('stays where the agent says so [RUN-611, RUN#45, TOOL-X24]', async () => {
      const { agent, model } = forced([toolCall('t'), 'done'], { resetToolChoice: false });
      await runForm(agent, 'go');
      expect(choices(model)).toEqual(['required', 'required']);
    });

    it('of one name is forgotten like the others, also when the run`s options forced it [RUN-611]', async () => {
      const { agent, model } = forced([toolCall('t'), 'done', toolCall('t'), 'done'], { toolChoice: 't' });
      await runForm(agent, 'go');
      await runForm(agent, 'go', { modelSettings: { toolChoice: 'required' } });
      expect(choices(model)).toEqual(['t', undefined, 'required', undefined]);
    });

    it('is forgotten for hosted tools, but not for a tool search; a function named like one is a tool [RUN-408, RUN-611, TOOL-X22]', async () => {
      const used = async (...steps: ModelStep[]): Promise<unknown[]> => {
        const { agent, model } = forced(steps);
        await runForm(agent, 'go');
        return choices(model);
      };
      expect(await used(hosted('file_search_call'), 'done')).toEqual(['required', undefined]);
      expect(await used(toolCall('tool_search'), 'done')).toEqual(['required', undefined]);
      expect(await used(exactly(toolSearch), 'done')).toEqual(['required', 'required']);
      expect(await used(exactly(toolSearch, toolCall('t', {}, { callId: 'c' })), 'done')).toEqual([
        'required',
        undefined,
      ]);
    });

    it('is remembered as forgotten by the state, live and as text, and by nobody else`s [RUN-611, STATE-223, TOOL-X23]', async () => {
      for (const way of ['live', 'text']) {
        const { agent, model } = forced([toolCall('t'), toolCall('g'), 'done', 'other']);
        let state = (await runForm(agent, 'go')).toState();
        if (way === 'text') state = await RunState.fromString(agent, state.toString());
        for (const item of state.interruptions) state.approve(item);
        await runForm(agent, state);
        expect(choices(model)).toEqual(['required', undefined, undefined]);
        // Tracked per agent, not per name.
        await runForm(agent.clone({}), 'go');
        expect(choices(model).at(-1)).toBe('required');
      }
    });
  });
});

it('a forced choice of tools is forgotten by the run that used one: a state that was taken before knows nothing of it [RUN-611]', async () => {
  const { agent, model } = forced([toolCall('t'), 'done', 'again']);
  let before: RunState | undefined;
  const stream = runStreamed(agent, 'go', { hooks: { onLlmStart: () => void (before ??= stream.toState()) } });
  await stream.completed;
  expect(choices(model)).toEqual(['required', undefined]);
  await run(agent, before ?? '');
  expect(choices(model).at(-1)).toBe('required');
});

describe('the names of used tools', () => {
  it('are those of functions and hosted tools of the response, in its order, and stand in the state [RUN-408]', async () => {
    const { plain } = await symmetry({
      setUp: () => ({
        agent: forced([
          exactly(
            hosted('web_search_call'),
            toolSearch,
            toolCall('t', {}, { callId: 'c1' }),
            toolCall('g', {}, { callId: 'c2' }),
          ),
        ]).agent,
        input: 'go',
      }),
    });
    const json = plain.result?.toState().toJSON() as Record<string, { tools_used?: unknown }>;
    expect(json['last_processed_response']?.tools_used).toEqual(['web_search', 'tool_search', 't', 'g']);
    expect(plain.result?.toState().toJSON()['tool_use_tracker']).toEqual({ A: ['web_search', 't', 'g'] });
  });
});

describe('work of the provider', () => {
  it('beside a message ends the run; without one the model is asked again [RUN-515, RUN#46, RUN#47]', async () => {
    for (const [steps, calls] of [
      [[[hosted('web_search_call'), text('found')]], 1],
      [[hosted('file_search_call'), 'found'], 2],
      [[exactly(toolSearch), 'found'], 2],
    ] as const) {
      const { plain } = await symmetry({
        setUp: () => ({ agent: forced([...steps] as ModelStep[]).agent, input: 'go' }),
      });
      expect([plain.result?.finalOutput, plain.result?.rawResponses.length]).toEqual(['found', calls]);
      expect(plain.result?.newItems.at(-1)?.type).toBe('message_output_item');
      expect(plain.result?.newItems).toHaveLength(2);
    }
  });
});
