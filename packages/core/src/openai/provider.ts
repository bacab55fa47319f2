import type { OpenAI } from 'openai';
import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import type { Model, ModelProvider } from '../models/model.ts';
import { checkClient, makeClient, once } from './client.ts';
import type { ClientSource } from './client.ts';
import { harnessId } from '../tracing/harness.ts';
import { defaultApiKey, defaultClient } from './defaults.ts';
import { modelWithClient } from './responses-model.ts';

export interface OpenAIProviderOptions {
  /** Excludes key, URL, organization and project: `UserError`. Never closed by the provider. */
  client?: OpenAI | undefined;
  apiKey?: string | undefined;
  baseURL?: string | undefined;
  organization?: string | undefined;
  project?: string | undefined;
  /** Trace metadata `agent_harness_id` of runs with this provider. Default: that of the process, else `OPENAI_AGENT_HARNESS_ID`. */
  harnessId?: string | null | undefined;
}

/**
 * Models of the OpenAI API by name, through one client, which is made for the first model. Without a key the first
 * request fails with `missing_credentials`.
 * @throws UserError for unknown options, and for a client together with options of one
 * @example
 * ```ts
 * const local = new OpenAIProvider({ baseURL: 'http://127.0.0.1:8080/v1', apiKey: 'local' });
 * await run(agent, 'Hello', { modelProvider: local });
 * ```
 */
export class OpenAIProvider implements ModelProvider, AsyncDisposable {
  readonly #client: ClientSource;
  readonly #warned: Set<string> = new Set();
  /** @internal */
  readonly [harnessId]: string | undefined;

  constructor(options: OpenAIProviderOptions = {}) {
    const text = kinds.string;
    checkOptions(
      options,
      {
        client: checkClient,
        apiKey: text,
        baseURL: text,
        organization: text,
        project: text,
        harnessId: kinds.nullable(text),
      },
      'OpenAIProvider',
    );
    const { client, harnessId: harness, ...own } = options;
    this[harnessId] = harness ?? undefined;
    // An empty string counts as given.
    const isOwn = Object.values(own).some((value) => value !== undefined);
    if (client !== undefined && isOwn) {
      throw new UserError(
        'OpenAIProvider takes either a client or its options: with client, leave out apiKey, baseURL, webSocket.baseURL, organization and project.',
      );
    }
    this.#client = once(() => client ?? (isOwn ? undefined : defaultClient()) ?? makeClient(clientOptions(own)));
  }

  /** The Responses model of that name; without one, of `OPENAI_DEFAULT_MODEL` or `gpt-5.6-luna`. */
  async getModel(name?: string): Promise<Model> {
    return modelWithClient(name?.trim() || undefined, this.#client, this.#warned);
  }

  /** Nothing is kept open over HTTP; may be called again. */
  async close(): Promise<void> {}

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function clientOptions(own: Omit<OpenAIProviderOptions, 'client' | 'harnessId'>): Parameters<typeof makeClient>[0] {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  const apiKey = own.apiKey ?? defaultApiKey();
  return { ...given, ...(apiKey === undefined ? undefined : { apiKey }) };
}
