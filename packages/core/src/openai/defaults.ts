import type { OpenAI } from 'openai';
import { checkOptions, kinds } from '../base/options.ts';
import { onReset } from '../base/reset.ts';
import { forgetOpenAIProvider } from '../models/provider.ts';
import { setTraceExportKey } from '../tracing/export-key.ts';
import { setHarnessId } from '../tracing/harness.ts';
import { checkClient } from './client.ts';

/** Settings for providers and models that are made afterwards; `null` restores a default. */
export interface OpenAIDefaults {
  /** Default `OPENAI_API_KEY`. */
  apiKey?: string | null | undefined;
  /** Key of exporters of traces, instead of `apiKey` or the client's. Nothing is exported because of it. */
  traceApiKey?: string | null | undefined;
  client?: OpenAI | null | undefined;
  /** Trace metadata `agent_harness_id`. Default `OPENAI_AGENT_HARNESS_ID`. */
  harnessId?: string | null | undefined;
}

let apiKey: string | undefined;
let client: OpenAI | undefined;

/**
 * Sets defaults of the process; absent members stay as they are. The provider that runs share is made anew.
 * @throws UserError for unknown keys and values of a wrong kind
 * @example setOpenAIDefaults({ client: new OpenAI({ baseURL: 'http://127.0.0.1:8080/v1', apiKey: 'local' }) })
 */
export function setOpenAIDefaults(defaults: OpenAIDefaults): void {
  checkOptions(
    defaults,
    {
      apiKey: kinds.nullable(kinds.nonEmptyString),
      traceApiKey: kinds.nullable(kinds.nonEmptyString),
      client: kinds.nullable(checkClient),
      harnessId: kinds.nullable(kinds.string),
    },
    'setOpenAIDefaults()',
  );
  if (defaults.apiKey !== undefined) apiKey = defaults.apiKey ?? undefined;
  if (defaults.client !== undefined) client = defaults.client ?? undefined;
  setTraceDefaults(defaults);
  forgetOpenAIProvider();
}

/** A key of models is one for exporters too, as far as those have none of their own (MODEL-314). */
function setTraceDefaults({ apiKey, traceApiKey, client, harnessId }: OpenAIDefaults): void {
  if (harnessId !== undefined) setHarnessId(harnessId ?? undefined);
  const ofClient: unknown = client?.apiKey;
  if (traceApiKey !== undefined) setTraceExportKey(traceApiKey ?? undefined);
  else if (apiKey !== undefined) setTraceExportKey(apiKey ?? undefined);
  else if (typeof ofClient === 'string' && ofClient !== '') setTraceExportKey(ofClient);
}

export function defaultApiKey(): string | undefined {
  return apiKey;
}

export function defaultClient(): OpenAI | undefined {
  return client;
}

onReset(() => {
  apiKey = undefined;
  client = undefined;
});
