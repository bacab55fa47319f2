// Parallelization: the same question goes to an agent three times at once, and another agent picks the best answer. The
// runs share a signal: when one fails, the others stop.
import { Agent, run, withTrace } from '@agents/core';
import { offline } from './example/offline.ts';
import { outcomeOf } from './example/outcome.ts';

const TEXT = 'Good morning, how may I help you?';

export async function main(runForm = run) {
  const translator = new Agent({
    name: 'Translator',
    instructions: 'Translate what the person says into Spanish. Give the translation alone.',
    model: offline('Buen día, ¿qué quiere?', 'Buenos días, ¿en qué puedo ayudarle?', 'Buenas, ¿qué hay?'),
  });

  const picker = new Agent({
    name: 'Picker',
    instructions: 'Pick the best of the translations and repeat it, alone.',
    model: offline('Buenos días, ¿en qué puedo ayudarle?'),
  });

  return withTrace('Parallel translation', async () => {
    const stop = new AbortController();
    const translate = () => runForm(translator, TEXT, { signal: stop.signal });
    const results = await Promise.all([translate(), translate(), translate()]).catch((error: unknown) => {
      stop.abort();
      throw error;
    });

    const translations = results.map(({ finalOutput }) => `- ${finalOutput}`).join('\n');
    console.log(translations);
    const best = await runForm(picker, `${TEXT}\n\nTranslations:\n${translations}`);
    console.log(`Best: ${best.finalOutput}`);
    return { asked: best.input, translations: results.map(outcomeOf), best: outcomeOf(best) };
  });
}

if (import.meta.main) await main();
