import { UserError } from '@agents/core';
import { checkOptions, kinds } from '@agents/core/session';
import type { Check } from '@agents/core/session';

/** Where OpenAI takes traces. */
const OPENAI_ENDPOINT = 'https://api.openai.com/v1/traces/ingest';

export interface OpenAITraceExporterOptions {
  /** Default: the trace's own key, then `setTraceExportKey`, then `OPENAI_API_KEY`, read at each export. */
  apiKey?: string | undefined;
  /** Default `OPENAI_ORG_ID`. */
  organization?: string | undefined;
  /** Default `OPENAI_PROJECT_ID`. */
  project?: string | undefined;
  /** Default `https://api.openai.com/v1/traces/ingest`; plain http for loopback only. No environment variable changes it. */
  endpoint?: string | undefined;
  /** Attempts for 408, 409, 425, 429, 5xx and network errors. Default 3. */
  maxAttempts?: number | undefined;
  /** Milliseconds. Default 1000, doubling up to 30 000; a longer `Retry-After` wins, up to 30 000. */
  baseDelayMs?: number | undefined;
  /** Milliseconds per request. Default 60 000. */
  timeoutMs?: number | undefined;
  /** Larger inputs and outputs are cut, keeping their structure. Bytes of JSON. Default 100 000. */
  maxFieldBytes?: number | undefined;
  /** Fit records to what OpenAI's ingest takes. Default: only for OpenAI's endpoint. */
  sanitize?: boolean | undefined;
  /** Sent with each request; they win over the exporter's own. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Default: that of the runtime when a request is made. */
  fetch?: typeof fetch | undefined;
}

/** Options with their defaults; keys and ids are looked up at each export. */
export interface Settings {
  readonly apiKey: string | undefined;
  readonly organization: string | undefined;
  readonly project: string | undefined;
  readonly endpoint: string;
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly timeoutMs: number;
  readonly maxFieldBytes: number;
  readonly sanitize: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch | undefined;
}

const positive: Check = (value) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? undefined : 'a finite number above 0';
const texts: Check = (value) =>
  kinds.object(value) === undefined && Object.values(value as object).every((member) => typeof member === 'string')
    ? undefined
    : 'an object of texts';

export const exporterChecks: Readonly<Record<keyof OpenAITraceExporterOptions, Check>> = {
  apiKey: kinds.nonEmptyString,
  organization: kinds.nonEmptyString,
  project: kinds.nonEmptyString,
  endpoint: kinds.nonEmptyString,
  maxAttempts: kinds.integer(1),
  baseDelayMs: positive,
  timeoutMs: positive,
  maxFieldBytes: kinds.integer(1),
  sanitize: kinds.boolean,
  headers: texts,
  fetch: kinds.function,
};

/** @throws UserError for unknown options, wrong kinds, and an endpoint to which a key must not go */
export function settingsOf(options: OpenAITraceExporterOptions): Settings {
  checkOptions(options, exporterChecks, 'OpenAITraceExporter');
  const endpoint = options.endpoint ?? OPENAI_ENDPOINT;
  checkEndpoint(endpoint);
  return {
    apiKey: options.apiKey,
    organization: options.organization,
    project: options.project,
    endpoint,
    maxAttempts: options.maxAttempts ?? 3,
    baseDelayMs: options.baseDelayMs ?? 1000,
    timeoutMs: options.timeoutMs ?? 60_000,
    maxFieldBytes: options.maxFieldBytes ?? 100_000,
    sanitize: options.sanitize ?? endpoint.replace(/\/+$/u, '') === OPENAI_ENDPOINT,
    headers: options.headers ?? {},
    fetch: options.fetch,
  };
}

/** Prompts and a key go there. @throws UserError, which does not repeat the URL: it may hold a password */
function checkEndpoint(endpoint: string): void {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))) return;
  throw new UserError(
    "Option 'endpoint' of OpenAITraceExporter must be an https URL; plain http is for servers of this machine (localhost, 127.0.0.1, [::1]).",
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/u.test(host);
}
