import type { Model } from '@agents/core';
import { OfflineModel, ScriptedModel } from '@agents/core/testing';
import type { ModelStep } from '@agents/core/testing';

/**
 * The model of an example's agent: without OPENAI_API_KEY answers from a list, a step for each call (no list: by the words
 * of the request). With a key none is given, and the agent asks the real service. A copy of the example needs neither.
 */
export function offline(...steps: ModelStep[]): Model | undefined {
  if (process.env['OPENAI_API_KEY']) return undefined;
  tellOnce();
  return steps.length === 0 ? new OfflineModel({ notice: false }) : new ScriptedModel(steps);
}

let told = false;

function tellOnce(): void {
  if (!told)
    console.error(
      'Without OPENAI_API_KEY: the answers are written down. Set the key (and OPENAI_BASE_URL) for a model.',
    );
  told = true;
}
