// A pipeline: the program says what comes after what, and each agent does one step. Between two steps stands plain code,
// which decides on typed outputs whether it goes on.
import { Agent, run, withTrace } from '@agents/core';
import { z } from 'zod';
import { offline } from './example/offline.ts';
import { outcomeOf } from './example/outcome.ts';

export async function main(runForm = run) {
  const outliner = new Agent({
    name: 'Outliner',
    instructions: 'Write an outline of three lines for a very short story about what the person names.',
    model: offline(
      '1. A lighthouse keeper finds a letter.\n2. It is from herself.\n3. She answers it.',
      'Buy cheap lamps!',
    ),
  });

  const checker = new Agent({
    name: 'Checker',
    instructions: 'Judge the outline of a story: is it good, and is it free of advertisement?',
    outputType: z.object({ good: z.boolean(), free: z.boolean() }),
    model: offline('{"good":true,"free":true}', '{"good":false,"free":false}'),
  });

  const writer = new Agent({
    name: 'Writer',
    instructions: 'Write a story of three sentences from the outline.',
    model: offline('The letter lay under the lamp. It was in her own hand. She sat down and wrote back.'),
  });

  async function tell(topic: string) {
    const outline = await runForm(outliner, topic);
    if (outline.status !== 'completed') throw new Error('No agent here has a tool that waits for a person.');
    const verdict = await runForm(checker, outline.finalOutput);
    const done = { outline: outcomeOf(outline), verdict: outcomeOf(verdict), story: undefined };
    if (!verdict.finalOutput?.good || !verdict.finalOutput.free) return done;
    return { ...done, story: outcomeOf(await runForm(writer, outline.finalOutput)) };
  }

  const stories = [];
  for (const topic of ['A lighthouse', 'Lamps of my shop']) {
    // One trace for all runs of a story.
    const told = await withTrace('Story', () => tell(topic));
    console.log(`${topic}: ${told.story?.text ?? 'the outline was not good enough.'}`);
    stories.push(told);
  }
  return stories;
}

if (import.meta.main) await main();
