import type { Span } from '../tracing/types.ts';
import { failSpan, finishItem } from '../tracing/lifecycle.ts';
import type { RunTrace } from '../tracing/run-trace.ts';
import { runInScope } from '../tracing/scope.ts';
import { errorText, fieldOf } from '../tracing/sensitive.ts';

export type GuardrailStage = 'input' | 'output';

/** The span of one guardrail of an agent or a run. What the guardrail said about the input or output is in none. */
export class GuardrailSpan {
  readonly #span: Span<'guardrail'>;
  readonly #run: RunTrace;
  readonly #name: string;

  constructor(span: Span<'guardrail'>, run: RunTrace, name: string) {
    this.#span = span;
    this.#run = run;
    this.#name = name;
  }

  within<T>(work: () => Promise<T>): Promise<T> {
    return runInScope(this.#span as unknown as Span, work);
  }

  triggered(): void {
    this.#span.spanData.triggered = true;
  }

  failed(error: unknown): void {
    const show = this.#run.texts(fieldOf(this.#span, 'error'));
    failSpan(this.#span, {
      message: 'Error running guardrail',
      data: { guardrail: this.#name, error: errorText(error, show) },
    });
  }

  end(): void {
    finishItem(this.#span);
  }
}
