import { getLogger } from '@agents/core';
import { delayMs, quietTimer, wait } from './backoff.ts';
import type { Settings } from './options.ts';

/** What became of a body. */
export type Outcome = 'sent' | 'too_large' | 'lost';

export interface PostContext {
  readonly headers: Headers;
  readonly signal: AbortSignal;
  /** On the monotonic clock; no attempt starts after it. */
  readonly deadline: number | undefined;
}

/** Of the service, or what went wrong on the way to it. */
interface Answer {
  readonly response?: Response;
  readonly error?: unknown;
}

const RETRIED = new Set([408, 409, 425, 429]);
const MUTE_MS = 5 * 60_000;
const MAX_TEXT = 2000;
const KEY_HINT =
  ' Check the key: it comes from traceApiKey of the run, the option apiKey, setTraceExportKey() or OPENAI_API_KEY.';

/** Posts bodies; repeats what may pass, and tells what does not. */
export class Poster {
  readonly #settings: Settings;
  /** When a key was refused last: that is told once in five minutes. */
  #refusedAt: number | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Never rejects. */
  async post(body: string, context: PostContext): Promise<Outcome> {
    const { maxAttempts, baseDelayMs } = this.#settings;
    const { signal, deadline = Number.POSITIVE_INFINITY } = context;
    let delay = 0;
    for (let attempt = 1; ; attempt++) {
      if (monotonic() + delay >= deadline) return tellLost('ended before it was taken: the time for it is over');
      await wait(delay, signal);
      // Whoever stopped it tells of it.
      if (signal.aborted) return 'lost';
      const answer = await this.#request(body, context);
      const verdict = verdictOf(answer);
      if (verdict === 'lost' && answer.response) await this.#tellRefusal(answer.response);
      else await free(answer.response);
      if (verdict !== 'retry') return verdict;
      const what = answer.response ? `status ${answer.response.status}` : kindOf(answer.error);
      if (attempt >= maxAttempts)
        return tellLost(`was not taken in ${attempt} ${attempt === 1 ? 'attempt' : 'attempts'} (${what})`);
      delay = delayMs(baseDelayMs, attempt + 1, answer.response?.headers);
      log().debug(`Export of traces is repeated in ${Math.round(delay)} ms (${what}).`);
    }
  }

  async #request(body: string, { headers, signal, deadline }: PostContext): Promise<Answer> {
    const left = deadline === undefined ? Number.POSITIVE_INFINITY : deadline - monotonic();
    const limit = new AbortController();
    const end = (): void => limit.abort();
    const timer = quietTimer(end, Math.min(this.#settings.timeoutMs, left));
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    try {
      const send = this.#settings.fetch ?? globalThis.fetch;
      const init = { method: 'POST', headers, body, signal: limit.signal, redirect: 'manual' } as const;
      return { response: await send(this.#settings.endpoint, init) };
    } catch (error) {
      return { error };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }

  async #tellRefusal(response: Response): Promise<void> {
    const { status } = response;
    if (status === 401 || status === 403) {
      const now = monotonic();
      const isMuted = this.#refusedAt !== undefined && now - this.#refusedAt < MUTE_MS;
      if (!isMuted) this.#refusedAt = now;
      if (isMuted) return await free(response);
    }
    const isRedirect = response.type === 'opaqueredirect' || (status >= 300 && status < 400);
    const hint = status === 401 || status === 403 ? KEY_HINT : '';
    const what = `${isRedirect ? 'a redirect, which is not followed' : `status ${status}`}.${hint}`;
    if (log().dontLogModelData || log().dontLogToolData) {
      await free(response);
      log().error(`Export of traces was refused: ${what}`);
    } else log().error(`Export of traces was refused: ${what}`, await textOf(response));
  }
}

function verdictOf({ response }: Answer): Outcome | 'retry' {
  if (response === undefined) return 'retry';
  const { status, headers } = response;
  if (status >= 200 && status < 300) return 'sent';
  if (status === 413) return 'too_large';
  if (headers.get('x-should-retry')?.trim().toLowerCase() === 'false') return 'lost';
  return RETRIED.has(status) || status >= 500 ? 'retry' : 'lost';
}

function tellLost(what: string): 'lost' {
  log().error(`Export of traces ${what}.`);
  return 'lost';
}

/** Lets the connection go; nobody reads the body. */
async function free(response: Response | undefined): Promise<void> {
  try {
    await response?.body?.cancel();
  } catch {
    // It is gone already.
  }
}

async function textOf(response: Response): Promise<string> {
  try {
    return (await response.text()).slice(0, MAX_TEXT);
  } catch {
    return '';
  }
}

function log(): ReturnType<typeof getLogger> {
  return getLogger('tracing');
}

/** Class, and the code that the system gave: `fetch` has it in the cause. No text, which may name what was sent. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = codeOf(error) ?? codeOf(error.cause);
  return code === undefined ? error.name : `${error.name} ${code}`;
}

function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,39}$/.test(code) ? code : undefined;
}

/** Milliseconds that never go back. */
export function monotonic(): number {
  return globalThis.performance?.now?.() ?? Date.now();
}
