import { describe, expect, it } from 'vitest';
import { OpenAIResponsesModel } from '../../openai/responses-model.ts';
import { toUsage } from '../../base/usage.ts';
import { defineModel } from '../../models/define.ts';
import type { Model } from '../../models/model.ts';
import { synthesizeStream } from '../../models/synthesize.ts';
import { text } from '../builders.ts';
import { FakeOpenAI } from '../fake-openai.ts';
import type { FakeStep } from '../fake/types.ts';
import { ScriptedModel } from '../scripted-model.ts';
import type { ModelStep } from '../script.ts';
import { modelContract } from './model.ts';
import type { MakeModel } from './model.ts';

const models: readonly [string, MakeModel][] = [
  ['ScriptedModel', (steps) => new ScriptedModel(steps)],
  [
    'OpenAIResponsesModel',
    async (steps) =>
      new OpenAIResponsesModel('m', { client: await new FakeOpenAI({ steps: steps as FakeStep[] }).client() }),
  ],
  ['a model that only answers', (steps) => plainOnly(steps)],
  ['a model that only streams', (steps) => streamOnly(steps)],
];

function plainOnly(steps: readonly ModelStep[]): Model {
  const scripted = new ScriptedModel(steps);
  return defineModel({ getResponse: (request) => scripted.getResponse(request) });
}

function streamOnly(steps: readonly ModelStep[]): Model {
  const scripted = new ScriptedModel(steps);
  return defineModel({ streamResponse: (request) => scripted.streamResponse(request) });
}

describe.each(models)('modelContract of %s [MODEL#84, MODEL-1112]', (_name, make) => {
  for (const contract of modelContract(make)) {
    const { title } = contract;
    it(`${title}.`, async (t) => {
      await expect(contract.run(t)).resolves.toBeUndefined();
    });
  }
});

describe('modelContract', () => {
  it('fails for a model whose stream has no terminal event, and for one that ignores the signal [MODEL#84]', async () => {
    const cut: MakeModel = () => ({
      getResponse: async () => ({ output: [text('Hello there.')], usage: toUsage() }),
      async *streamResponse() {
        yield* [...synthesizeStream({ output: [text('Hello there.')], usage: toUsage() })].slice(0, -1);
      },
    });
    const failed: string[] = [];
    for (const contract of modelContract(cut)) await contract.run().catch(() => failed.push(contract.id));
    expect(failed).toEqual(['MODEL-106', 'MODEL-106-b', 'MODEL-105', 'MODEL-120', 'MODEL-121', 'MODEL-122']);
  });
});
