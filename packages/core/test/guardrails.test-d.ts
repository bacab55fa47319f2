/* oxlint-disable no-new, vitest/expect-expect -- the compiler asserts */
import { expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { Agent, run, tool } from '../src/index.ts';
import type {
  InputGuardrail,
  InputGuardrailResult,
  OutputGuardrail,
  OutputGuardrailArgs,
  OutputGuardrailResult,
  RunContext,
  ToolGuardrailResult,
  ToolInputGuardrail,
} from '../src/index.ts';

interface My {
  readonly user: string;
}

const mine: InputGuardrail<My> = {
  name: 'mine',
  execute: ({ context }) => ({ tripwireTriggered: context.context.user === '' }),
};
const anyContext: InputGuardrail = { name: 'any', execute: () => ({ tripwireTriggered: false }) };

test('guardrails of an agent need its context, and no other', () => {
  new Agent<My>({ name: 'A', inputGuardrails: [mine, anyContext] });
  // @ts-expect-error `mine` needs a user
  new Agent<{ readonly other: number }>({ name: 'A', inputGuardrails: [mine] });
});

test('an output guardrail sees the type of the output', () => {
  const outputType = z.object({ n: z.number() });
  new Agent({
    name: 'A',
    outputType,
    outputGuardrails: [
      {
        name: 'small',
        execute: ({ agentOutput }) => {
          expectTypeOf(agentOutput).toEqualTypeOf<{ n: number }>();
          return { tripwireTriggered: agentOutput.n > 9 };
        },
      },
    ],
  });
  const forNumbers: OutputGuardrail<unknown, number> = { name: 'n', execute: () => ({ tripwireTriggered: false }) };
  // @ts-expect-error the output is an object
  new Agent({ name: 'A', outputType, outputGuardrails: [forNumbers] });
  expectTypeOf<OutputGuardrailArgs<My, string>['context']>().toEqualTypeOf<RunContext<My>>();
});

test('a verdict is complete', () => {
  // @ts-expect-error no tripwireTriggered
  new Agent({ name: 'A', inputGuardrails: [{ name: 'x', execute: () => ({}) }] });
  tool({
    name: 't',
    execute: () => 1,
    // @ts-expect-error a rejection has a message
    inputGuardrails: [{ name: 'x', execute: () => ({ behavior: { type: 'reject_content' } }) }],
  });
});

test('guardrails of a tool need its context', () => {
  const guardrail: ToolInputGuardrail<My> = {
    name: 'who',
    execute: ({ context }) => ({ behavior: context.context.user ? { type: 'allow' } : { type: 'raise_exception' } }),
  };
  const t = tool({ name: 't', execute: () => 1, inputGuardrails: [guardrail] });
  new Agent<My>({ name: 'A', tools: [t] });
  // @ts-expect-error the tool's guardrail needs a user
  new Agent<{ readonly other: number }>({ name: 'A', tools: [t] });
});

test('results are typed, live and restored alike', async () => {
  const result = await run(new Agent({ name: 'A' }), 'Hi', {
    inputGuardrails: [anyContext],
    outputGuardrails: [{ name: 'o', execute: ({ agentOutput }) => ({ tripwireTriggered: agentOutput === undefined }) }],
    outputGuardrailBlockedMessage: ({ guardrailName, agent }) => `${guardrailName} ${agent.name}`,
    toolExecution: { preApprovalToolInputGuardrails: true },
  });
  expectTypeOf(result.inputGuardrailResults).toEqualTypeOf<readonly InputGuardrailResult[]>();
  expectTypeOf(result.outputGuardrailResults).toEqualTypeOf<readonly OutputGuardrailResult[]>();
  expectTypeOf(result.toolInputGuardrailResults).toEqualTypeOf<readonly ToolGuardrailResult[]>();
  expectTypeOf(result.toolOutputGuardrailResults).toEqualTypeOf<readonly ToolGuardrailResult[]>();
});
