import { OpenAI } from 'openai';
import type { ClientOptions } from 'openai';
import { env } from '../base/env.ts';
import { MissingCredentialsError } from '../base/errors.ts';
import { clientLog } from './client-log.ts';

/** Gives the client of a model, and makes it when it is first needed. */
export type ClientSource = () => OpenAI;

/** A `Check` of options: anything that can do what the models call, of whichever copy of `openai`. */
export function checkClient(value: unknown): string | undefined {
  const create = (value as { responses?: { create?: unknown } } | null | undefined)?.responses?.create;
  return typeof create === 'function' ? undefined : 'a client of the openai package';
}

/** @throws MissingCredentialsError when there is no key, neither given nor in the environment */
export function makeClient(options: ClientOptions): OpenAI {
  const apiKey = options.apiKey ?? env('OPENAI_API_KEY');
  if (apiKey) return new OpenAI({ logger: clientLog, ...options, apiKey });
  const baseURL = options.baseURL ?? env('OPENAI_BASE_URL');
  if (isLoopback(baseURL)) return new OpenAI({ logger: clientLog, ...options, apiKey: 'local' });
  throw new MissingCredentialsError(
    'No API key for the OpenAI API. Three ways on: set OPENAI_API_KEY; give the run another provider (modelProvider) or the agent a model object; or try without a model first: new OfflineModel() of @agents/core/testing.',
  );
}

/** A call made lazily, once; a failure is not kept. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** Whether requests go to OpenAI itself: exactly its host, over TLS. */
export function isOfficial(client: Partial<Pick<OpenAI, 'baseURL'>>): boolean {
  const url = urlOf(client.baseURL);
  return url?.protocol === 'https:' && url.hostname === 'api.openai.com';
}

/** Servers of one's own machine ask for no key. */
function isLoopback(baseURL: string | null | undefined): boolean {
  const host = urlOf(baseURL)?.hostname;
  return host === 'localhost' || host === '[::1]' || (host !== undefined && /^127(?:\.\d{1,3}){3}$/u.test(host));
}

export function urlOf(text: string | null | undefined): URL | undefined {
  return text && URL.canParse(text) ? new URL(text) : undefined;
}
