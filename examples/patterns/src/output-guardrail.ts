// An output guardrail: plain code looks at an answer before it counts. One with a phone number stops the run; it reaches
// neither the person, who gets a fixed text, nor the session. A stream shows its deltas before the verdict: show the text
// of a run with such guardrails when it is over.
import { Agent, MemorySession, OutputGuardrailTripwireTriggered, run } from '@agents/core';
import type { OutputGuardrail } from '@agents/core';
import { offline } from './example/offline.ts';

const noPhoneNumbers: OutputGuardrail<unknown, string> = {
  name: 'no phone numbers',
  execute: ({ agentOutput }) => ({ tripwireTriggered: /\d{3}[ -]?\d{4}/.test(agentOutput) }),
};

export async function main(runForm = run) {
  const desk = new Agent({
    name: 'Desk',
    instructions: 'You answer questions about the people of a company. Ann works in sales, her number is 555-0142.',
    outputGuardrails: [noPhoneNumbers],
    model: offline('Ann works in sales.', 'You reach Ann under 555-0142.'),
  });

  const session = new MemorySession();
  const answers = [];
  for (const message of ['Where does Ann work?', 'What is her number?']) {
    try {
      const { lastAgent, finalOutput } = await runForm(desk, message, { session });
      answers.push({ agent: lastAgent.name, text: finalOutput, stoppedBy: undefined });
    } catch (error) {
      if (!(error instanceof OutputGuardrailTripwireTriggered)) throw error;
      const { agent, guardrail } = error.guardrailResult;
      answers.push({ agent: agent.name, text: 'That I may not say.', stoppedBy: guardrail.name });
    }
    console.log(`${message} → ${answers.at(-1)?.text}`);
  }
  return { answers, session: await session.getItems() };
}

if (import.meta.main) await main();
