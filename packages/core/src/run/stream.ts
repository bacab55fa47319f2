import type { AnyAgent } from '../agent/agent.ts';
import type { StateRecord } from '../state/record.ts';
import type { Trace } from '../tracing/types.ts';
import type { CancelMode } from './control.ts';
import type { RunAgentTool } from './env.ts';
import type { RunStreamEvent } from './events.ts';
import type { ResolvedOptions, RunInput } from './options.ts';
import type { RunResult } from './result.ts';
import { MaxTurnsExceededError, RunAbortedError, attachRunData } from '../base/errors.ts';
import { className, getLogger } from '../base/logger.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { copyRecord } from '../state/copy.ts';
import { errorDetails } from './error-details.ts';
import { EventQueue } from './event-queue.ts';
import { ResultView, settledResult } from './result.ts';
import { Segment } from './segment.ts';
import { textStream } from './text-stream.ts';
import type { SegmentEnd, Sink } from './segment.ts';

/** How a value whose work goes on tells `withTrace` when it is over. */
const pendingWork = Symbol.for('agents.pendingWork');

/** A run in progress: its events, and views of the record that it moves on. */
export class StreamedRun extends ResultView {
  readonly #segment: Segment;
  readonly #queue = new EventQueue();
  #status: 'running' | 'completed' | 'interrupted' | 'cancelled' | 'failed' = 'running';
  #error: unknown;
  readonly #completed: Promise<RunResult>;
  /** Somebody reads the stream or waits for its end. */
  #watched = false;
  #over = false;

  constructor(agent: AnyAgent, input: RunInput, options: ResolvedOptions, nested: RunAgentTool) {
    super();
    const sink: Sink = {
      emit: (event) => this.#queue.push(event),
      boundary: () => this.#queue.boundary(),
      room: (limit) => this.#queue.room(limit),
      decided: (outcome, error) => {
        if (this.isComplete) return;
        this.#status = outcome;
        if (outcome === 'failed') this.#error = error;
      },
    };
    this.#segment = new Segment(agent, input, options, { sink, nested });
    // Abort by the caller's signal is seen at once, like `cancel`.
    this.#segment.control.onAbort(() => this.#cancelled());
    this.#completed = this.#segment.run().then(
      (end) => this.#settle(end),
      (error: unknown) => this.#fail(error),
    );
    Object.defineProperty(this, pendingWork, { value: this.#completed.catch(() => undefined) });
  }

  protected get record(): StateRecord {
    return this.#segment.record;
  }

  get trace(): Trace | undefined {
    return this.#segment.trace;
  }

  get status(): 'running' | 'completed' | 'interrupted' | 'cancelled' | 'failed' {
    return this.#status;
  }

  get isComplete(): boolean {
    return this.#status !== 'running';
  }

  get error(): unknown {
    return this.#error;
  }

  get completed(): Promise<RunResult> {
    this.#watched = true;
    return this.#completed;
  }

  get currentAgent(): AnyAgent {
    return this.record.currentAgent;
  }

  override get finalOutput(): unknown {
    return this.#status === 'completed' ? super.finalOutput : undefined;
  }

  override get interruptions(): ResultView['interruptions'] {
    return this.#status === 'interrupted' ? super.interruptions : [];
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<RunStreamEvent> {
    this.#watched = true;
    return this.#queue.reader();
  }

  streamEvents(): AsyncIterableIterator<RunStreamEvent> {
    return this[Symbol.asyncIterator]();
  }

  toTextStream(): ReadableStream<string> {
    return textStream(this[Symbol.asyncIterator](), () => this.cancel());
  }

  protected override get title(): string {
    return `RunResultStreaming: ${this.status}`;
  }

  protected override facts(): string[] {
    const { currentTurn, maxTurns, isComplete } = this;
    return [
      ...super.facts(),
      `turn ${currentTurn} of ${maxTurns ?? 'any number'}, ${isComplete ? 'complete' : 'not complete'}`,
    ];
  }

  cancel(options: { mode?: CancelMode } = {}): void {
    checkOptions(options, { mode: kinds.oneOf('immediate', 'after_turn') }, 'cancel()');
    const { mode = 'immediate' } = options;
    // Behind the decision it cuts short what is told of the end.
    if (!this.#over) this.#segment.control.cancel(mode);
  }

  /** What is visible of an abort does not wait for what is still being told to stop. */
  #cancelled(): void {
    if (this.isComplete) return;
    this.#status = 'cancelled';
    this.#queue.end('done', { keep: false });
  }

  #settle(end: SegmentEnd): RunResult {
    this.#over = true;
    if (end === 'cancelled') {
      this.#queue.end('done');
      const record = copyRecord(this.record);
      throw attachRunData(
        new RunAbortedError('The run was cancelled after a turn, before it had an output.'),
        errorDetails(record, this.context, this.trace),
      );
    }
    this.#queue.end('done');
    return settledResult(this.record, this.trace);
  }

  #fail(error: unknown): never {
    this.#over = true;
    if (this.#status !== 'cancelled') {
      if (!this.#watched)
        getLogger().error(`A streamed run that nobody reads failed (${className(error)}); see its \`error\`.`);
      this.#queue.end({ error }, { keep: this.#segment.env.deliverQueued || error instanceof MaxTurnsExceededError });
    }
    throw error;
  }
}
