import { getLogger } from '@agents/core';
import { getTraceExportKey } from '@agents/core/tracing';
import type { Span, Trace, TraceExporter } from '@agents/core/tracing';
import { bodyOf, Encoder, isAbove } from './encode.ts';
import type { Encoded } from './encode.ts';
import { settingsOf } from './options.ts';
import type { OpenAITraceExporterOptions, Settings } from './options.ts';
import { monotonic, Poster } from './post.ts';
import type { PostContext } from './post.ts';

/** A larger body is not even tried. */
const MAX_BODY_BYTES = 5_000_000;

type Items = readonly (Trace | Span)[];

/** Of the process: said once, whoever exports. */
let saidNoKey = false;

/**
 * Posts traces and spans to OpenAI's ingest, one request per key. What is lost is told in the log and by the number that
 * `export` resolves to; it never rejects.
 *
 * @throws UserError for unknown options, wrong kinds, and endpoints that are neither https nor of this machine
 * @example
 * addTraceProcessor(new BatchTraceProcessor(new OpenAITraceExporter({ project: 'proj_support' })));
 */
export class OpenAITraceExporter implements TraceExporter {
  readonly #settings: Settings;
  readonly #poster: Poster;
  #closed = false;
  #saidClosed = false;

  constructor(options: OpenAITraceExporterOptions = {}) {
    this.#settings = settingsOf(options);
    this.#poster = new Poster(this.#settings);
  }

  /** @param options `signal` ends requests and waits; `deadlineMs`: no attempt begins later than so many milliseconds from now */
  async export(items: Items, options: { signal?: AbortSignal; deadlineMs?: number } = {}): Promise<{ lost: number }> {
    if (this.#closed) return this.#refuse(items.length);
    const { signal = new AbortController().signal, deadlineMs } = options;
    const deadline = deadlineMs === undefined ? undefined : monotonic() + deadlineMs;
    const encoder = new Encoder(this.#settings);
    let lost = 0;
    for (const [key, group] of this.#byKey(items))
      lost +=
        key === undefined ? sayNoKey(group.length) : await this.#sendGroup(key, group, { encoder, signal, deadline });
    return { lost };
  }

  async #sendGroup(
    key: string,
    group: Items,
    { encoder, signal, deadline }: Omit<PostContext, 'headers'> & { readonly encoder: Encoder },
  ): Promise<number> {
    const headers = this.#headers(key);
    if (headers === undefined) return group.length;
    const batch = group.map((item) => encoder.encode(item)).filter((encoded) => encoded !== undefined);
    return batch.length === 0 ? 0 : await this.#send(batch, encoder, { headers, signal, deadline });
  }

  /** Ends nothing that is under way; later exports are refused. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Items by the key that they go with, in order. */
  #byKey(items: Items): Map<string | undefined, (Trace | Span)[]> {
    const own = this.#settings.apiKey ?? getTraceExportKey() ?? env('OPENAI_API_KEY');
    const groups = new Map<string | undefined, (Trace | Span)[]>();
    for (const item of items) {
      const trace = item.type === 'trace' ? item : item.trace;
      const key = trace.apiKey ?? own;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [item]);
      else group.push(item);
    }
    return groups;
  }

  #headers(key: string): Headers | undefined {
    const { organization = env('OPENAI_ORG_ID'), project = env('OPENAI_PROJECT_ID'), headers } = this.#settings;
    try {
      return new Headers({
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'openai-beta': 'traces=v1',
        ...(organization === undefined ? undefined : { 'openai-organization': organization }),
        ...(project === undefined ? undefined : { 'openai-project': project }),
        ...lowerCased(headers),
      });
    } catch {
      getLogger('tracing').error(
        'Traces are not exported: the key or another header has characters that none may have.',
      );
      return undefined;
    }
  }

  /** Sends a batch, in halves where it is too large. @returns how many items are lost */
  async #send(batch: readonly Encoded[], encoder: Encoder, context: PostContext): Promise<number> {
    const body = bodyOf(batch);
    const outcome = isAbove(body, MAX_BODY_BYTES) ? 'too_large' : await this.#poster.post(body, context);
    if (outcome !== 'too_large') return outcome === 'sent' ? 0 : batch.length;
    const [only] = batch;
    if (batch.length === 1 && only !== undefined) return await this.#sendSmaller(only, encoder, context);
    const half = Math.ceil(batch.length / 2);
    const lost = await this.#send(batch.slice(0, half), encoder, context);
    return lost + (await this.#send(batch.slice(half), encoder, context));
  }

  async #sendSmaller(only: Encoded, encoder: Encoder, context: PostContext): Promise<number> {
    const smaller = encoder.shrink(only);
    const body = smaller && bodyOf([smaller]);
    const outcome =
      body === undefined || isAbove(body, MAX_BODY_BYTES) ? 'too_large' : await this.#poster.post(body, context);
    if (outcome === 'too_large') getLogger('tracing').warn('A trace or span is too large to be exported; it is lost.');
    return outcome === 'sent' ? 0 : 1;
  }

  #refuse(lost: number): { lost: number } {
    if (!this.#saidClosed) getLogger('tracing').warn('Traces come to an exporter that is closed; they are lost.');
    this.#saidClosed = true;
    return { lost };
  }
}

function sayNoKey(lost: number): number {
  if (!saidNoKey)
    getLogger('tracing').warn(
      'Traces are not exported to OpenAI: there is no key. Set OPENAI_API_KEY or call setTraceExportKey(key); setTracingDisabled(true) switches tracing off.',
    );
  saidNoKey = true;
  return lost;
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function env(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name] || undefined;
  } catch {
    // Deno without the permission throws.
    return undefined;
  }
}
