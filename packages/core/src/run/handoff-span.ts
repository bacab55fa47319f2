import type { Span } from '../tracing/types.ts';
import { failSpan, failSpanIfOk, finishItem } from '../tracing/lifecycle.ts';
import { spanMessages } from '../tracing/messages.ts';
import type { RunTrace } from '../tracing/run-trace.ts';
import { runInScope } from '../tracing/scope.ts';
import { errorText, fieldOf } from '../tracing/sensitive.ts';

/** The span of one handoff: its callback, hooks and input filter. */
export class HandoffSpan {
  readonly #span: Span<'handoff'>;
  readonly #run: RunTrace;

  constructor(span: Span<'handoff'>, run: RunTrace) {
    this.#span = span;
    this.#run = run;
  }

  /** Runs the handoff in its scope; what fails it fails the span too. */
  async within<T>(work: (span: HandoffSpan) => Promise<T>): Promise<T> {
    try {
      return await runInScope(this.#span as unknown as Span, () => work(this));
    } catch (error) {
      const data = { error: errorText(error, this.#run.texts(fieldOf(this.#span, 'error'))) };
      failSpanIfOk(this.#span, { message: spanMessages.handoff, data });
      throw error;
    } finally {
      finishItem(this.#span);
    }
  }

  target(agentName: string): void {
    this.#span.spanData.toAgent = agentName;
  }

  /** The model asked for several agents, and the first one goes on; this fails nothing. */
  several(agentNames: readonly string[]): void {
    failSpan(this.#span, { message: spanMessages.multipleHandoffs, data: { requested_agents: agentNames } });
  }

  /** A fault that dashboards know by its message. `error` says more, where it may. */
  fail(message: string, error: unknown): void {
    const details = this.#run.texts(fieldOf(this.#span, 'error'))?.(error instanceof Error ? error.message : '');
    failSpan(this.#span, { message, data: details === undefined ? {} : { details } });
  }
}
