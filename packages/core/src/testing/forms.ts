import { run, runStreamed } from '../run/run.ts';

/**
 * Gives the test both forms of a run, so that what it shows holds for both; the streamed one is read to its end.
 * @example
 * bothForms((runForm, form) => it(`answers (${form})`, async () => {
 *   const result = await runForm(agent, 'Hi', { model: new ScriptedModel(['Hello']) });
 *   expect(result.finalOutput).toBe('Hello');
 * }));
 */
export function bothForms(test: (runForm: typeof run, form: 'plain' | 'streamed') => void): void {
  test(run, 'plain');
  test(streamedForm, 'streamed');
}

const streamedForm = (async (agent: never, input: never, options: never) => {
  const stream = runStreamed(agent, input, options);
  for await (const _ of stream);
  return await stream.completed;
}) as unknown as typeof run;
