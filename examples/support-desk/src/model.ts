import { OfflineModel } from '@agents/core/testing';
import type { RunOptions } from '@agents/core';

export type ModelChoice = Pick<RunOptions, 'model' | 'modelProvider'>;

/** Run options for the model to talk to: the OpenAI API when there is a key for it, else the offline model. */
export async function chooseModel(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<ModelChoice> {
  if (!env['OPENAI_API_KEY']) {
    say(
      'Without OPENAI_API_KEY: the offline model picks tools by your words. Set the key (and OPENAI_BASE_URL) for a real model.',
    );
    return { model: new OfflineModel({ notice: false }) };
  }
  // Only now: without a key nothing of `openai` is loaded.
  const { OpenAIProvider } = await import('@agents/core/openai');
  return { modelProvider: new OpenAIProvider() };
}
