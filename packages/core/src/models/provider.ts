import { UserError } from '../base/errors.ts';
import { onReset } from '../base/reset.ts';
import type { Model, ModelProvider } from './model.ts';

let configured: ModelProvider | undefined;
let openai: Promise<ModelProvider> | undefined;

/**
 * The provider of runs without `modelProvider`; `undefined` restores the OpenAI provider. Counts for runs that begin
 * afterwards; the provider stays the caller's, no run closes it.
 * @throws UserError for anything without a `getModel` method
 * @example setDefaultModelProvider({ getModel: (name) => models.get(name ?? 'small') })
 */
export function setDefaultModelProvider(provider: ModelProvider | undefined): void {
  if (provider !== undefined && typeof (provider as Partial<ModelProvider> | null)?.getModel !== 'function') {
    throw new UserError('setDefaultModelProvider needs an object with a getModel method, or undefined.');
  }
  configured = provider;
}

/** What runs use that name no provider. Asking for it loads nothing; asking it for a model loads the OpenAI provider. */
export function getDefaultModelProvider(): ModelProvider {
  return configured ?? openaiProvider;
}

/** Defaults of OpenAI changed: the shared provider is made anew when a name is next asked for. */
export function forgetOpenAIProvider(): void {
  openai = undefined;
}

const openaiProvider: ModelProvider = {
  async getModel(name?: string): Promise<Model> {
    openai ??= loadOpenAIProvider().catch((error: unknown) => {
      openai = undefined;
      throw error;
    });
    return await (await openai).getModel(name);
  },
};

/** The one import that points up: core stays free of the `openai` package until a model is asked for by name. */
async function loadOpenAIProvider(): Promise<ModelProvider> {
  const { MultiProvider } = await import('../openai/index.ts').catch((cause: unknown) => {
    throw new UserError(
      "The package 'openai' could not be loaded, which models given by name need. Install it, or give the agent a model object or the run a modelProvider.",
      { cause },
    );
  });
  return new MultiProvider();
}

onReset(() => {
  configured = undefined;
  openai = undefined;
});
