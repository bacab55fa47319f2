import type { GuardrailFunctionOutput } from '../agent/guardrail.ts';
import type { MaybePromise } from '../agent/tool.ts';
import type { RunEnv } from './env.ts';
import type { GuardrailStage } from './guardrail-span.ts';
import { checkVerdict } from '../agent/guardrail.ts';
import { getLogger } from '../base/logger.ts';
import { passOn } from '../base/pass-on.ts';

/** How long guardrails that were told to stop are waited for (RUN-512). */
const GRACE_MS = 250;

/** Why a set of guardrails does not accept: one tripped, or failed to give a verdict. */
export interface GuardrailFailure {
  readonly tripped: boolean;
  readonly error: unknown;
}

/** One guardrail, with what it is asked. */
export interface Judge {
  readonly name: string;
  readonly parallel: boolean;
  readonly ask: (signal: AbortSignal) => MaybePromise<unknown>;
  /** Takes note of the verdict. Gives the error of a trip. */
  readonly note: (output: GuardrailFunctionOutput) => unknown;
}

/**
 * Guardrails that judge side by side. The first that trips or fails tells the others to stop; what they say later counts
 * for nothing. Nothing here is left behind: each is waited for, for a moment, and what it rejects with is taken.
 */
export class Guardrails {
  readonly #env: RunEnv;
  readonly #stage: GuardrailStage;
  readonly #agentName: string;
  readonly #controller = new AbortController();
  readonly #open = new Set<Promise<void>>();
  readonly #listeners = new Set<(error: unknown) => void>();
  readonly #spans = new Set<() => void>();
  readonly #off: () => void;
  #failure: GuardrailFailure | undefined;
  #closed = false;

  constructor(env: RunEnv, stage: GuardrailStage, agentName: string) {
    this.#env = env;
    this.#stage = stage;
    this.#agentName = agentName;
    this.#off = env.control.onAbort((error) => this.#controller.abort(error));
  }

  /** Fires when the set does not accept, when it is stopped, and when the run is aborted. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get failure(): GuardrailFailure | undefined {
    return this.#failure;
  }

  /** All that were started have accepted. */
  get accepted(): boolean {
    return this.#open.size === 0 && this.#failure === undefined;
  }

  start(judge: Judge): void {
    const done = this.#judge(judge).finally(() => this.#open.delete(done));
    this.#open.add(done);
  }

  async #judge(judge: Judge): Promise<void> {
    const span = this.#env.spans.startGuardrail(judge.name, this.#stage, this.#agentName, judge.parallel);
    const end = (): void => span?.end();
    this.#spans.add(end);
    try {
      const ask = async (): Promise<GuardrailFunctionOutput> =>
        checkVerdict(await judge.ask(this.#controller.signal), judge.name);
      const output = await (span ? span.within(ask) : ask());
      if (this.#closed) return;
      const error = judge.note(output);
      if (!output.tripwireTriggered) return;
      span?.triggered();
      this.#fail({ tripped: true, error });
    } catch (error) {
      if (!this.#controller.signal.aborted) span?.failed(error);
      if (this.#closed) getLogger().debug('A guardrail failed after its run had ended.');
      else this.#fail({ tripped: false, error });
    } finally {
      end();
      this.#spans.delete(end);
    }
  }

  /** The first failure counts; a trip counts before a guardrail that gave no verdict. */
  #fail(failure: GuardrailFailure): void {
    const first = this.#failure === undefined;
    if (first || (failure.tripped && this.#failure?.tripped === false)) this.#failure = failure;
    if (!first) return;
    for (const listener of this.#listeners) listener(failure.error);
    this.#listeners.clear();
    this.#controller.abort(failure.error);
  }

  /** Calls `listener` when the set does not accept, at once when that is known. Returns what takes it back. */
  onFailure(listener: (error: unknown) => void): () => void {
    if (this.#failure) listener(this.#failure.error);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** `work`, unless the set does not accept before it is done; what comes of it later is ignored. */
  cut<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => passOn(work, this.onFailure(reject), resolve, reject));
  }

  /** Waits until all have given their verdict, or the first does not accept. @throws what that one failed with, or the abort */
  async settled(): Promise<void> {
    if (this.#open.size > 0) await this.#env.control.race(this.cut(Promise.all(this.#open))).catch(() => undefined);
    this.#env.control.throwIfAborted();
    if (this.#failure === undefined) return;
    await this.stop();
    throw this.#failure.error;
  }

  /** Nobody asks for verdicts any more: those that still judge are told, and waited for for a moment. */
  async stop(): Promise<void> {
    this.#controller.abort(this.#failure?.error);
    if (this.#open.size > 0) await within(GRACE_MS, Promise.all(this.#open));
    this.#closed = true;
    for (const end of this.#spans) end();
    this.#off();
  }
}

/** Waits for `work`, but no longer than so. */
async function within(graceMs: number, work: Promise<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  await Promise.race([work, over]);
  clearTimeout(timer);
}
