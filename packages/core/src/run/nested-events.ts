import type { AgentToolOptions } from '../agent/agent-tool.ts';
import type { AnyAgent } from '../agent/agent.ts';
import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { RunStreamEvent } from './events.ts';
import type { Sink } from './segment.ts';
import { UserError } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';

type Handler = NonNullable<AgentToolOptions<never, unknown, undefined>['onStream']>;

/** Events that wait for the handler, the one that it has not counted. */
const LIMIT = 1024;

/**
 * Gives the events of a nested run to `onStream`, one after the other and in order, beside the run: a slow handler does not
 * slow the model. One that falls too far behind ends the run.
 */
export class EventDispatch {
  readonly #handler: Handler;
  readonly #toolCall: ResponseFunctionToolCall;
  readonly #waiting: { readonly event: RunStreamEvent; readonly agent: AnyAgent }[] = [];
  readonly #own = new AbortController();
  readonly #outer: AbortSignal;
  /** Of the nested run: the call's, and our own. */
  readonly signal: AbortSignal;
  #running: Promise<void> | undefined;
  /** The model's stream that waits until the handler has taken enough (`eventBufferLimit`). */
  #full: { readonly limit: number; readonly resolve: () => void } | undefined;
  #check: ReturnType<typeof setTimeout> | undefined;
  #overflow: UserError | undefined;
  /** Ends `drive` before the handler is done. */
  #cut: (() => void) | undefined;

  constructor(handler: Handler, toolCall: ResponseFunctionToolCall, outer: AbortSignal) {
    this.#handler = handler;
    this.#toolCall = toolCall;
    this.#outer = outer;
    this.signal = AbortSignal.any([outer, this.#own.signal]);
  }

  sink(agent: () => AnyAgent): Sink {
    return {
      emit: (event) => this.#push(event, agent()),
      boundary: () => undefined,
      room: (limit) => this.#room(limit),
      decided: () => undefined,
    };
  }

  /** Waits for the end of the run and of the events that it left. @throws what the run failed with, or a UserError about the handler */
  async drive(run: Promise<unknown>): Promise<void> {
    const cut = new Promise<void>((resolve) => {
      this.#cut = resolve;
    });
    const onAbort = (): void => {
      this.#release();
      this.#cut?.();
    };
    this.#outer.addEventListener('abort', onAbort, { once: true });
    if (this.#outer.aborted) onAbort();
    try {
      const failure = await run.then(nothing, failed);
      // A call that is over has nobody left who waits for the handler.
      await Promise.race([this.#delivered(), cut]);
      if (this.#overflow) throw this.#overflow;
      if (failure) throw failure.error;
    } finally {
      this.#waiting.length = 0;
      clearTimeout(this.#check);
      this.#outer.removeEventListener('abort', onAbort);
    }
  }

  async #delivered(): Promise<void> {
    while (this.#running) await this.#running;
  }

  #push(event: RunStreamEvent, agent: AnyAgent): void {
    if (this.signal.aborted) return;
    this.#waiting.push({ event, agent });
    this.#running ??= this.#dispatch();
    // The handler gets a turn of the event loop to catch up.
    if (this.#waiting.length > LIMIT) this.#check ??= setTimeout(() => this.#checkLimit(), 0);
  }

  /** Resolves when no more than `limit` events wait, or nobody takes them any more; `undefined`: that is so. */
  #room(limit: number): Promise<void> | undefined {
    if (this.signal.aborted || this.#waiting.length <= limit) return undefined;
    return new Promise((resolve) => {
      this.#full = { limit, resolve };
    });
  }

  #release(): void {
    this.#full?.resolve();
    this.#full = undefined;
  }

  async #dispatch(): Promise<void> {
    // What is emitted stays in order: the handler starts when the run's own work lets it.
    await Promise.resolve();
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (this.#full && this.#waiting.length <= this.#full.limit) this.#release();
      try {
        await this.#handler({ ...next, toolCall: this.#toolCall });
      } catch {
        getLogger().error('`onStream` of an agent tool failed; the nested run goes on.');
      }
    }
    this.#running = undefined;
  }

  #checkLimit(): void {
    this.#check = undefined;
    if (this.#waiting.length <= LIMIT) return;
    this.#overflow = new UserError(
      `\`onStream\` of the agent tool ${this.#toolCall.name} is more than ${LIMIT} events behind, so its run was ended. Let the handler return sooner.`,
    );
    this.#own.abort(this.#overflow);
    this.#waiting.length = 0;
    this.#release();
    this.#cut?.();
  }
}

const nothing = (): undefined => undefined;
const failed = (error: unknown): { readonly error: unknown } => ({ error });
