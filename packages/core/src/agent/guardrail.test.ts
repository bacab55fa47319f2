import { describe, expect, it } from 'vitest';
import {
  Agent,
  InputGuardrailTripwireTriggered,
  OutputGuardrailTripwireTriggered,
  run,
  Runner,
  runStreamed,
  tool,
  ToolInputGuardrailTripwireTriggered,
  ToolOutputGuardrailTripwireTriggered,
  UserError,
} from '../index.ts';
import type { RunOptions } from '../index.ts';
import { ScriptedModel } from '../testing/index.ts';
import { rejection, thrown } from '../../test/run-kit.ts';

const execute = (): { tripwireTriggered: boolean } => ({ tripwireTriggered: false });

/** Lists that hold no guardrails, and a word of what is wrong. */
const wrong: readonly [string, unknown, RegExp][] = [
  ['no list', { name: 'g', execute }, /takes an array of guardrails/],
  ['null', null, /takes an array of guardrails/],
  ['a function', [execute], /\[0\]` must be a guardrail/],
  ['no name', [{ execute }], /\[0\]` needs a `name`/],
  ['an empty name', [{ name: '', execute }], /an empty one/],
  ['a name of another kind', [{ name: 7, execute }], /not 7/],
  ['no function', [{ name: 'ok', execute }, { name: 'g' }], /\[1\]` \(guardrail g\) needs the function `execute`/],
  ['parallel of another kind', [{ name: 'g', execute, runInParallel: 1 }], /runInParallel` must be true or false/],
];

describe('lists of guardrails', () => {
  it.each(wrong)(
    'that are none are refused where they are given: %s [TOOL-AC87, TOOL-F11, TOOL-A2, RUN-901]',
    async (_, list, what) => {
      for (const field of ['inputGuardrails', 'outputGuardrails']) {
        const options = { [field]: list } as never;
        const refusals = [
          thrown(() => new Agent({ name: 'Desk', ...(options as object) })),
          thrown(() => tool({ name: 'refund', execute: () => 1, ...(options as object) })),
          thrown(() => new Runner(options)),
          thrown(() => runStreamed(new Agent({ name: 'Desk' }), 'Hi', options)),
          await rejection(run(new Agent({ name: 'Desk' }), 'Hi', options)),
        ] as Error[];
        const owners = ['agent Desk', 'tool refund', 'Runner', 'runStreamed', 'run'];
        for (const [index, error] of refusals.entries()) {
          expect(error).toBeInstanceOf(UserError);
          expect(error.message).toMatch(what);
          expect(error.message).toContain(owners[index]);
          expect(error.message).toContain(field);
        }
      }
    },
  );

  it('of an agent are the arrays of its options, and of a clone those of its source [TOOL-A3]', () => {
    const inputGuardrails = [{ name: 'i', execute }];
    const outputGuardrails = [{ name: 'o', execute }];
    const agent = new Agent({ name: 'A', inputGuardrails, outputGuardrails });
    expect([agent.inputGuardrails, agent.outputGuardrails]).toEqual([inputGuardrails, outputGuardrails]);
    expect(agent.inputGuardrails).toBe(inputGuardrails);
    const clone = agent.clone({ outputGuardrails: [] });
    expect(clone.inputGuardrails).toBe(inputGuardrails);
    expect(clone.outputGuardrails).toEqual([]);
    expect(new Agent({ name: 'B' }).inputGuardrails).toEqual([]);
  });

  it('of a run replace those of its Runner, as other options do [RUN-103]', async () => {
    const log: string[] = [];
    const says = (name: string) => ({ name, execute: () => (log.push(name), { tripwireTriggered: false }) });
    const runner = new Runner({ inputGuardrails: [says('runner')] });
    const agent = new Agent({ name: 'A', model: new ScriptedModel(['x', 'y']) });
    await runner.run(agent, 'Hi');
    await runner.run(agent, 'Hi', { inputGuardrails: [says('call')] });
    expect(log).toEqual(['runner', 'call']);
  });
});

describe('the text of a blocked output', () => {
  it.each<[string, unknown]>([
    ['an empty text', ''],
    ['a number', 7],
    ['an async function', async () => 'x'],
  ])('is refused when it is %s [RUN-218, RUN-105]', async (_, outputGuardrailBlockedMessage) => {
    const options = { outputGuardrailBlockedMessage } as RunOptions;
    for (const error of [
      thrown(() => runStreamed(new Agent({ name: 'A' }), 'Hi', options)),
      await rejection(run(new Agent({ name: 'A' }), 'Hi', options)),
    ]) {
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toContain('outputGuardrailBlockedMessage');
    }
  });

  it('an option of tools that takes true or false takes nothing else [RUN-214]', () => {
    const options = { toolExecution: { preApprovalToolInputGuardrails: 'yes' } } as never;
    expect(thrown(() => runStreamed(new Agent({ name: 'A' }), 'Hi', options))).toMatchObject({
      message: expect.stringContaining('preApprovalToolInputGuardrails'),
    });
  });
});

describe('errors of tripwires', () => {
  const guardrail = { name: 'g' };
  const verdict = { tripwireTriggered: true };
  const behavior = { type: 'raise_exception' } as const;
  it('have a class and a code of their own, and what the guardrail said [RUN-1804, RUN-1800, RUN-1805]', () => {
    const input = new InputGuardrailTripwireTriggered('m', { guardrailResult: { guardrail, output: verdict } });
    const output = new OutputGuardrailTripwireTriggered('m', {
      guardrailResult: { guardrail, output: verdict, agent: new Agent({ name: 'A' }), agentOutput: 1 },
    });
    const toolInput = new ToolInputGuardrailTripwireTriggered('m', { guardrail, output: { behavior } });
    const toolOutput = new ToolOutputGuardrailTripwireTriggered('m', { guardrail, output: { behavior } });
    expect([input, output, toolInput, toolOutput].map((error) => error.toJSON())).toEqual([
      { name: 'InputGuardrailTripwireTriggered', code: 'input_guardrail_tripwire', message: 'm' },
      { name: 'OutputGuardrailTripwireTriggered', code: 'output_guardrail_tripwire', message: 'm' },
      { name: 'ToolInputGuardrailTripwireTriggered', code: 'tool_input_guardrail_tripwire', message: 'm' },
      { name: 'ToolOutputGuardrailTripwireTriggered', code: 'tool_output_guardrail_tripwire', message: 'm' },
    ]);
    expect(input.guardrailResult.guardrail).toBe(guardrail);
    expect([toolInput.guardrail, toolOutput.output]).toEqual([guardrail, { behavior }]);
    expect(input instanceof OutputGuardrailTripwireTriggered).toBe(false);
  });
});
