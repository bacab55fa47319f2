import type { ResponseFunctionToolCall } from '../items/wire.ts';
import type { Span } from '../tracing/types.ts';
import { ToolTimeoutError } from '../base/errors.ts';
import { addDetails, failSpan, failSpanIfOk, finishItem } from '../tracing/lifecycle.ts';
import type { RunTrace } from '../tracing/run-trace.ts';
import { runInScope } from '../tracing/scope.ts';
import { errorTypeOf, fieldOf, toolErrorText } from '../tracing/sensitive.ts';
import type { TextFilter } from '../tracing/sensitive.ts';

/** A call that something else brought to its end; one that had its output already was merely cut short. */
export function failCancelled(span: Span<'function'>, error: unknown, toolName: string, show: TextFilter): void {
  if (span.details.outcome !== undefined) return;
  addDetails(span, { outcome: 'cancelled' });
  failSpanIfOk(span, {
    message: 'Tool execution cancelled',
    data: { tool_name: toolName, error: toolErrorText(error, show) },
  });
}

/** The span of one call of a function tool. */
export class FunctionSpan {
  readonly span: Span<'function'>;
  readonly #run: RunTrace;
  /** As dashboards know it: without its namespace. */
  readonly #toolName: string;

  constructor(span: Span<'function'>, run: RunTrace, toolName: string) {
    this.span = span;
    this.#run = run;
    this.#toolName = toolName;
  }

  /** Runs the call in its scope; what fails it fails the span too. `cancelled`: others had told it to stop. */
  async within(work: () => Promise<void>, cancelled: () => boolean): Promise<void> {
    try {
      await runInScope(this.span as unknown as Span, work);
    } catch (error) {
      if (cancelled()) failCancelled(this.span, error, this.#toolName, this.#texts);
      else if (error instanceof ToolTimeoutError) this.timedOut(error, 'error');
      else
        this.#fail(
          'Error running tool',
          { tool_name: this.#toolName, error: toolErrorText(error, this.#texts) },
          'error',
        );
      throw error;
    } finally {
      finishItem(this.span);
    }
  }

  pending(): void {
    addDetails(this.span, { approval: 'pending', outcome: 'interrupted' });
  }

  /** The run behind the call waits for decisions. */
  interrupted(): void {
    addDetails(this.span, { outcome: 'interrupted' });
  }

  approved(): void {
    addDetails(this.span, { approval: 'approved' });
  }

  rejected(call: ResponseFunctionToolCall, text: string): void {
    this.#set(text);
    addDetails(this.span, { approval: 'rejected', outcome: 'rejected' });
    failSpan(this.span, {
      message: this.#texts?.(text) ?? 'Tool execution rejected',
      data: {
        tool_name: this.#toolName,
        error: `Tool execution for ${call.call_id} was manually rejected by user.`,
      },
    });
  }

  output(value: unknown): void {
    this.#set(value);
    if (this.span.details.outcome === undefined) addDetails(this.span, { outcome: 'ok' });
  }

  /** The call failed, and its failure policy answered with a text. */
  handledFailure(error: unknown, byDefault: boolean): void {
    this.#fail(
      'Error running tool (non-fatal)',
      { tool_name: this.#toolName, error: toolErrorText(error, this.#texts, byDefault) },
      'error_handled',
      errorTypeOf(error),
    );
  }

  /** The call took too long; a text went to the model, or the run fails. */
  timedOut(error: unknown, outcome: 'error' | 'error_handled'): void {
    this.#fail(
      'Tool execution cancelled',
      { tool_name: this.#toolName, error: toolErrorText(error, this.#texts) },
      outcome,
      errorTypeOf(error),
    );
  }

  #fail(message: string, data: Record<string, unknown>, outcome: 'error' | 'error_handled', errorType?: string): void {
    addDetails(this.span, { outcome, ...(errorType === undefined ? {} : { errorType }) });
    failSpanIfOk(this.span, { message, data });
  }

  #set(value: unknown): void {
    this.#run.setSensitive(this.span, 'output', value);
  }

  get #texts(): TextFilter {
    return this.#run.texts(fieldOf(this.span, 'error'));
  }
}
