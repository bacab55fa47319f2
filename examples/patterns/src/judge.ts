// LLM as judge: one agent writes, another one judges with a score and a reason, and the first one tries again with the
// reason in its conversation. It ends when the score is good enough, or after three rounds.
import { Agent, run } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { z } from 'zod';
import { offline } from './example/offline.ts';

const ROUNDS = 3;

export async function main(runForm = run) {
  const writer = new Agent({
    name: 'Writer',
    instructions: 'Write a slogan for what the person names. Heed what you are told about earlier ones.',
    model: offline(
      'Lamps. For rooms.',
      'Our lamps turn any room into an evening by the fire.',
      'Evenings, switched on.',
    ),
  });

  const judge = new Agent({
    name: 'Judge',
    instructions:
      'Judge the last slogan: a score of 1 to 10, and what to do better. Never more than 5 for the first one.',
    outputType: z.object({ score: z.number(), better: z.string() }),
    model: offline(
      '{"score":3,"better":"Say what a lamp does to an evening."}',
      '{"score":6,"better":"Shorter: three words."}',
      '{"score":9,"better":""}',
    ),
  });

  let conversation: AgentInputItem[] = [{ role: 'user', content: 'A shop for lamps' }];
  const rounds = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const draft = await runForm(writer, conversation);
    conversation = draft.toInputList();
    const verdict = await runForm(judge, conversation);
    if (verdict.status !== 'completed') throw new Error('The judge has no tool that could wait for a person.');
    const { score, better } = verdict.finalOutput;
    console.log(`${round}. ${draft.finalOutput} – ${score} of 10. ${better}`);
    rounds.push({ slogan: draft.finalOutput, score });
    if (score >= 8) break;
    conversation.push({ role: 'user', content: `Not yet. ${better}` });
  }
  return { rounds, conversation };
}

if (import.meta.main) await main();
