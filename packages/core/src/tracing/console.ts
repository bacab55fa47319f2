import { answersLater } from '../base/at-once.ts';
import { env } from '../base/env.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { renderTree } from './console-tree.ts';
import { logFailure, mayLogData } from './log.ts';
import { publicRecord } from './public-record.ts';
import { spanInternals } from './span.ts';
import { treesOf } from './tree.ts';
import type { Span, Trace, TraceProcessor } from './types.ts';

/** Spans kept for trees that are not finished. Past it the oldest tree is printed as it is. */
const MAX_SPANS = 10_000;
/** Characters of a line where no terminal says otherwise. */
const WIDTH = 100;

/** What a tree is made of while it grows. */
interface Growing {
  readonly spans: Span[];
  /** Its end will come; else the end of a span at the top closes the tree. */
  readonly started: boolean;
}

/**
 * Prints each finished trace as a tree with times, tokens and errors, and below it the tokens of all, the slowest step and
 * what failed; `json`: one wire record a line. A resumed run is a
 * tree of its own, marked `(continued)`. Prompts, arguments, outputs and error texts show only where the log policy
 * (`configureLogging`) allows both kinds of data.
 *
 * @throws UserError for unknown options and wrong kinds
 * @example
 * addTraceProcessor(new ConsoleTraceProcessor());
 */
export class ConsoleTraceProcessor implements TraceProcessor {
  readonly #json: boolean;
  readonly #log: (text: string) => void;
  readonly #toConsole: boolean;
  readonly #colours: boolean;
  /** By identity: parallel segments of one trace are trees of their own. */
  readonly #growing = new Map<Trace, Growing>();
  /** Traces of resumed runs, in the process of the pause as in another one. */
  readonly #resumed = new WeakSet<Trace>();
  #kept = 0;
  #shutDown = false;

  /**
   * @param options `format`: `tree` (default) or `json`, a trace at its start and a span at its end; `log`: where the text
   * goes, default the runtime's console, with colours at a terminal
   */
  constructor(options: { format?: 'tree' | 'json' | undefined; log?: ((text: string) => void) | undefined } = {}) {
    checkOptions(options, { format: kinds.oneOf('tree', 'json'), log: kinds.function }, 'ConsoleTraceProcessor');
    this.#json = options.format === 'json';
    this.#log = options.log ?? printLine;
    this.#toConsole = options.log === undefined;
    this.#colours = this.#toConsole && isTerminal();
  }

  onTraceStart(trace: Trace): void {
    if (this.#shutDown) return;
    if (this.#json) this.#print(() => jsonLine(trace));
    else this.#growing.set(trace, { spans: this.#growing.get(trace)?.spans ?? [], started: true });
  }

  onTraceResume(trace: Trace): void {
    this.#resumed.add(trace);
  }

  onTraceEnd(trace: Trace): void {
    if (this.#shutDown || this.#json) return;
    this.#close(trace);
  }

  onSpanEnd(span: Span): void {
    if (this.#shutDown) return;
    if (this.#json) {
      this.#print(() => jsonLine(span));
      return;
    }
    const growing = this.#growing.get(span.trace) ?? { spans: [], started: false };
    this.#growing.set(span.trace, growing);
    growing.spans.push(span);
    this.#kept++;
    if (!growing.started && isTop(span)) this.#close(span.trace);
    while (this.#kept > MAX_SPANS) this.#closeOldest();
  }

  /** Prints what has not come to its end. */
  shutdown(): void {
    while (this.#growing.size > 0) this.#closeOldest();
    this.#shutDown = true;
  }

  #closeOldest(): void {
    for (const trace of this.#growing.keys()) {
      this.#close(trace);
      return;
    }
    this.#kept = 0;
  }

  #close(trace: Trace): void {
    const growing = this.#growing.get(trace) ?? { spans: [], started: false };
    this.#growing.delete(trace);
    this.#kept -= growing.spans.length;
    this.#print(() => {
      const continued = !growing.started || this.#resumed.has(trace);
      return treesOf([trace], growing.spans)
        .map((tree) =>
          renderTree(tree, { continued, data: mayLogData(), colours: this.#colours, width: this.#width() }),
        )
        .join('\n');
    });
  }

  /** Of the terminal at this moment, which may be resized. */
  #width(): number {
    const columns: unknown = this.#toConsole ? globalThis.process?.stdout?.columns : undefined;
    return typeof columns === 'number' && columns > 0 ? columns : WIDTH;
  }

  #print(text: () => string | undefined): void {
    try {
      const line = text();
      // An asynchronous output is as good; its failure is no reason to end the process.
      if (line !== undefined) answersLater(this.#log(line));
    } catch (error) {
      // A closed or full output is no reason to fail a run.
      logFailure('Console of traces', error);
    }
  }
}

/** Nothing of this process is above it: its parent is the trace, or a span of another process. */
function isTop({ parent }: Span): boolean {
  return parent.type === 'trace' || spanInternals(parent)?.isRemote === true;
}

function jsonLine(item: Trace | Span): string | undefined {
  const record = item.toJSON();
  if (record === undefined) return undefined;
  return JSON.stringify(mayLogData() ? record : publicRecord(record));
}

function printLine(text: string): void {
  // Printing is what this processor is for.
  // oxlint-disable-next-line no-console
  console.log(text);
}

function isTerminal(): boolean {
  if (env('NO_COLOR')) return false;
  return globalThis.process?.stdout?.isTTY ?? false;
}
