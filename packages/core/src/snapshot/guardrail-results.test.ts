import { describe, expect, test } from 'vitest';
import { Agent } from '../agent/agent.ts';
import { minimalState } from '../../test/states.ts';
import { recordOf, RunState } from './run-state.ts';

const agent = new Agent({ name: 'Desk' });
const restore = async (members: object): Promise<RunState> =>
  (await RunState.fromJSON(agent, minimalState('1.21', { ...members }))) as RunState;

class Verdict {
  readonly score = 0.5;
  readonly when = new Date(0);
}

describe('results of guardrails in a state', () => {
  test('are written as Python writes them, instances with data as data, and read back as names with results [STATE-356, IL-081]', async () => {
    const state = await restore({});
    const { guardrailResults } = recordOf(state);
    const guardrail = { name: 'g' };
    guardrailResults.input.push({ guardrail, output: { tripwireTriggered: true, outputInfo: new Verdict() } });
    guardrailResults.output.push({
      guardrail,
      agent,
      agentOutput: { toJSON: () => ({ answer: 1 }) },
      output: { tripwireTriggered: false, outputInfo: { allowed: true } },
    });
    guardrailResults.toolInput.push({ guardrail, output: { behavior: { type: 'reject_content', message: '' } } });
    guardrailResults.toolOutput.push({ guardrail, output: { behavior: { type: 'allow' }, outputInfo: new Map() } });
    const json = state.toJSON() as { [key: string]: unknown };
    expect([
      json['input_guardrail_results'],
      json['output_guardrail_results'],
      json['tool_input_guardrail_results'],
      json['tool_output_guardrail_results'],
    ]).toEqual([
      [
        {
          guardrail: { type: 'input', name: 'g' },
          output: { tripwireTriggered: true, outputInfo: { score: 0.5, when: '1970-01-01T00:00:00.000Z' } },
        },
      ],
      [
        {
          guardrail: { type: 'output', name: 'g' },
          output: { tripwireTriggered: false, outputInfo: { allowed: true } },
          agentOutput: { answer: 1 },
          agent: { name: 'Desk' },
        },
      ],
      [
        {
          guardrail: { type: 'tool_input', name: 'g' },
          output: { outputInfo: null, behavior: { type: 'reject_content', message: '' } },
        },
      ],
      [
        {
          guardrail: { type: 'tool_output', name: 'g' },
          output: { outputInfo: '[object Map]', behavior: { type: 'allow' } },
        },
      ],
    ]);
    const again = (await RunState.fromString(agent, state.toString())) as RunState;
    expect(recordOf(again).guardrailResults.output).toEqual([
      {
        guardrail,
        agent,
        agentOutput: { answer: 1 },
        output: { tripwireTriggered: false, outputInfo: { allowed: true } },
      },
    ]);
    expect(again.toJSON()).toEqual(json);
  });

  test('of another type are dropped; what a result lacks is what says least [STATE-356]', async () => {
    const results = [
      { guardrail: { type: 'tool_input', name: 'a' } },
      { guardrail: { type: 'tool_input', name: 'b' }, output: { behavior: { type: 'unheard of' } } },
      {
        guardrail: { type: 'tool_input', name: 'c' },
        output: { behavior: { type: 'raise_exception' }, outputInfo: 1 },
      },
      { guardrail: { type: 'tool_output', name: 'd' } },
      'text',
      {},
    ];
    const state = await restore({
      tool_input_guardrail_results: results,
      input_guardrail_results: [{ guardrail: { type: 'input', name: 'e' } }],
      output_guardrail_results: [{ guardrail: { type: 'output', name: 'f' }, agent: { name: 'Gone' } }],
    });
    const { toolInput, input, output } = recordOf(state).guardrailResults;
    expect(toolInput).toEqual([
      { guardrail: { name: 'a' }, output: { behavior: { type: 'allow' }, outputInfo: null } },
      { guardrail: { name: 'b' }, output: { behavior: { type: 'allow' }, outputInfo: null } },
      { guardrail: { name: 'c' }, output: { behavior: { type: 'raise_exception' }, outputInfo: 1 } },
    ]);
    expect(input).toEqual([{ guardrail: { name: 'e' }, output: { tripwireTriggered: false, outputInfo: null } }]);
    expect(output[0]).toMatchObject({ guardrail: { name: 'f' }, agent, agentOutput: null });
  });
});
