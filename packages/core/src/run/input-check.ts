import type { InputGuardrail, InputGuardrailResult } from '../agent/guardrail.ts';
import type { StateRecord } from '../state/record.ts';
import type { RunEnv } from './env.ts';
import type { Judge } from './guardrails.ts';
import { checkGuardrails } from '../agent/guardrail.ts';
import { InputGuardrailTripwireTriggered } from '../base/errors.ts';
import { getLogger } from '../base/logger.ts';
import { Guardrails } from './guardrails.ts';

/**
 * The input guardrails of a run's first turn (RUN-901). Those that run beside the model are asked for their verdict where
 * the turn needs it: before local work as far as it is known, and all of it before the turn's outcome counts.
 */
export class InputCheck {
  readonly #record: StateRecord;
  readonly #env: RunEnv;
  readonly #guardrails: readonly InputGuardrail<never>[];
  readonly #set: Guardrails;
  /** The turn has failed already: what comes from now on replaces nothing. */
  #late = false;

  constructor(record: StateRecord, env: RunEnv, guardrails: readonly InputGuardrail<never>[]) {
    // What was pushed to the agent's list later has not been checked yet.
    checkGuardrails(guardrails, 'inputGuardrails', `agent ${record.currentAgent.name}`);
    this.#record = record;
    this.#env = env;
    this.#guardrails = guardrails;
    this.#set = new Guardrails(env, 'input', record.currentAgent.name);
  }

  /** Aborts the model call when the input is not accepted, or the run is aborted. */
  get signal(): AbortSignal {
    return this.#set.signal;
  }

  /** All have accepted. */
  get accepted(): boolean {
    return this.#set.accepted;
  }

  /** Those that run before anything else (step 4). @throws what the first that does not accept failed with */
  async block(): Promise<void> {
    this.#start(({ runInParallel }) => runInParallel === false);
    await this.#set.settled();
  }

  /** Starts those that run beside the model (step 6). */
  startParallel(): void {
    this.#start(({ runInParallel }) => runInParallel !== false);
  }

  /** All at once, and nothing beside them. @throws as `block` */
  async all(): Promise<void> {
    this.#start(() => true);
    await this.settled();
  }

  /** A failure that is known by now (step 21). @throws what it is */
  async throwIfKnown(): Promise<void> {
    if (this.#set.failure) await this.#set.settled();
  }

  /** All have accepted (step 24). @throws what the first that did not failed with */
  async settled(): Promise<void> {
    await this.#set.settled();
    this.#record.inputUnchecked = undefined;
    await this.#set.stop();
  }

  /** `work`, unless the input is not accepted before it is done. */
  cut<T>(work: Promise<T>): Promise<T> {
    return this.#set.cut(work);
  }

  onFailure(listener: (error: unknown) => void): () => void {
    return this.#set.onFailure(listener);
  }

  /** Local work begins: cut from here on, the turn is gone on with, but not with an input that was not accepted. */
  localWork(): void {
    if (!this.#set.accepted) this.#record.inputUnchecked = true;
  }

  /** A call has failed the turn, and no guardrail is told of in its place any more (RUN-910). */
  tooLate(): void {
    this.#late = true;
  }

  /** Whether a turn that failed may keep what it finished: waits for the verdict. */
  async accepts(): Promise<boolean> {
    try {
      await this.settled();
      return true;
    } catch {
      return false;
    }
  }

  /**
   * The turn failed with `error`: gives what the run fails with (RUN-1422) and ends what still judges. The session has the
   * input of a run that a guardrail stopped.
   */
  async end(error: unknown): Promise<unknown> {
    const known = this.#late ? undefined : this.#set.failure;
    const own = this.#set.failure?.error === error;
    await this.#set.stop();
    const { control, session, spans } = this.#env;
    if (control.error) return error;
    const failure = own ? this.#set.failure : known?.tripped ? known : undefined;
    if (failure === undefined) return error;
    if (failure.tripped) {
      const { guardrailResult } = failure.error as InputGuardrailTripwireTriggered;
      spans.tripped(guardrailResult.guardrail.name, 'input_guardrail');
      await session?.writeInput().catch(() => {
        getLogger().error('The input of a run that a guardrail stopped could not be stored; the state keeps it.');
      });
    }
    return failure.error;
  }

  #start(isDue: (guardrail: InputGuardrail<never>) => boolean): void {
    const due = this.#guardrails.filter(isDue);
    if (due.length === 0) return;
    const { input, currentAgent: agent } = this.#record;
    // What a guardrail does to the input is its own business.
    const shown = typeof input === 'string' ? input : structuredClone(input);
    for (const guardrail of due) this.#set.start(this.#judge(guardrail, { input: shown, agent }));
  }

  #judge(
    guardrail: InputGuardrail<never>,
    args: Pick<Parameters<InputGuardrail['execute']>[0], 'input' | 'agent'>,
  ): Judge {
    const { name } = guardrail;
    const { context } = this.#env;
    return {
      name,
      parallel: guardrail.runInParallel !== false,
      ask: (signal) => guardrail.execute({ ...args, context: context as never, signal }),
      note: (output) => {
        const result: InputGuardrailResult = { guardrail: { name }, output };
        this.#record.guardrailResults.input.push(result);
        if (!output.tripwireTriggered) return undefined;
        return new InputGuardrailTripwireTriggered(`The input guardrail ${name} triggered its tripwire.`, {
          guardrailResult: result,
        });
      },
    };
  }
}
