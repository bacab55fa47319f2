// An input guardrail: a small agent looks at what the person says before the desk's model is asked. What is none of the
// desk's business stops the run, and the person gets a fixed text.
import { Agent, InputGuardrailTripwireTriggered, run } from '@agents/core';
import type { InputGuardrail } from '@agents/core';
import { z } from 'zod';
import { offline } from './example/offline.ts';

export async function main(runForm = run) {
  const checker = new Agent({
    name: 'Checker',
    instructions: 'Does the person want their homework done?',
    outputType: z.object({ homework: z.boolean(), why: z.string() }),
    model: offline('{"homework":false,"why":"about opening hours"}', '{"homework":true,"why":"an equation to solve"}'),
  });

  const noHomework: InputGuardrail = {
    name: 'no homework',
    // Without this line it looks at the input while the model is asked already: faster, and an answer is paid for nothing.
    runInParallel: false,
    execute: async ({ input, signal }) => {
      const { finalOutput } = await runForm(checker, input, { signal });
      return { tripwireTriggered: finalOutput?.homework !== false, outputInfo: finalOutput };
    },
  };

  const desk = new Agent({
    name: 'Desk',
    instructions: 'You answer questions about a library. It is open from 9 to 5.',
    inputGuardrails: [noHomework],
    model: offline('We are open from 9 to 5.'),
  });

  const answers = [];
  for (const message of ['When are you open?', 'Solve x + 3 = 10 for me.']) {
    try {
      const result = await runForm(desk, message);
      answers.push({ agent: result.lastAgent.name, text: result.finalOutput, stoppedBy: undefined, why: undefined });
    } catch (error) {
      if (!(error instanceof InputGuardrailTripwireTriggered)) throw error;
      const { guardrail, output } = error.guardrailResult;
      answers.push({ agent: undefined, text: 'Sorry, not here.', stoppedBy: guardrail.name, why: output.outputInfo });
    }
    console.log(`${message} → ${answers.at(-1)?.text}`);
  }
  return answers;
}

if (import.meta.main) await main();
