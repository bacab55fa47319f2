import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { Model, ModelProvider } from '../models/model.ts';
import { harnessId } from '../tracing/harness.ts';
import { OpenAIProvider } from './provider.ts';
import type { OpenAIProviderOptions } from './provider.ts';

export interface MultiProviderOptions {
  /** By prefix; each gets what follows it. An entry `openai` wins over the option `openai`. */
  providers?: Readonly<Record<string, ModelProvider>> | undefined;
  /** For names without a prefix, and for the prefix `openai`. Default: a provider with the defaults of the process. */
  openai?: OpenAIProviderOptions | ModelProvider | undefined;
  /** `model_id`: names with an unknown prefix go to OpenAI unchanged. Default `error`. */
  unknownPrefix?: 'error' | 'model_id' | undefined;
}

/**
 * Routes `prefix/name` to a provider, which gets the rest; names without a prefix go to OpenAI.
 * @throws UserError for unknown options, and from `getModel` for unknown prefixes
 * @example
 * ```ts
 * const models = new MultiProvider({ providers: { local: new OpenAIProvider({ baseURL: 'http://127.0.0.1:8080/v1' }) } });
 * await run(agent, 'Hello', { modelProvider: models, model: 'local/llama' });
 * ```
 */
export class MultiProvider implements ModelProvider {
  readonly #providers: ReadonlyMap<string, ModelProvider>;
  readonly #openai: ModelProvider;
  readonly #unknownPrefix: 'error' | 'model_id';

  constructor(options: MultiProviderOptions = {}) {
    checkOptions(
      options,
      { providers: kinds.object, openai: kinds.object, unknownPrefix: kinds.oneOf('error', 'model_id') },
      'MultiProvider',
    );
    const { providers = {}, openai, unknownPrefix = 'error' } = options;
    for (const [prefix, provider] of Object.entries(providers))
      if (!isProvider(provider))
        throw new UserError(`MultiProvider: providers.${prefix} must be an object with the method getModel.`);
    this.#providers = new Map(Object.entries(providers));
    this.#openai = isProvider(openai) ? openai : new OpenAIProvider(openai);
    this.#unknownPrefix = unknownPrefix;
  }

  /** That of the OpenAI provider. @internal */
  get [harnessId](): string | undefined {
    return (this.#openai as { readonly [harnessId]?: string | undefined })[harnessId];
  }

  /** @throws UserError for a prefix that nobody has; what the provider throws */
  async getModel(name?: string): Promise<Model> {
    const slash = name?.indexOf('/') ?? -1;
    if (name === undefined || slash === -1) return await this.#openai.getModel(name);
    const prefix = name.slice(0, slash);
    const rest = name.slice(slash + 1);
    const provider = this.#providers.get(prefix);
    if (provider !== undefined) return await provider.getModel(rest);
    if (prefix === 'openai') return await this.#openai.getModel(rest);
    if (this.#unknownPrefix === 'model_id') return await this.#openai.getModel(name);
    throw new UserError(
      `No provider for the prefix '${prefix}' of the model name '${name}'. Register one: new MultiProvider({ providers: { ${prefix}: provider } }); for names that have a slash of their own: unknownPrefix: 'model_id'.`,
    );
  }

  /** Closes each provider once, whatever others do; then the first failure is thrown. An abort is thrown at once. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const provider of new Set([...this.#providers.values(), this.#openai])) {
      try {
        await provider.close?.();
      } catch (error) {
        if ((error as { name?: unknown } | null | undefined)?.name === 'AbortError') throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** By what it can do: an object that is falsy-looking in other ways counts. */
function isProvider(value: unknown): value is ModelProvider {
  return (
    typeof value === 'object' && value !== null && typeof (value as Partial<ModelProvider>).getModel === 'function'
  );
}
