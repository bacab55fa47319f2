import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';

/** The person on the other side. */
export interface Terminal {
  /** A line of theirs, without blanks around it; `undefined` when they left: `exit`, Ctrl-D, Ctrl-C. */
  ask(question: string): Promise<string | undefined>;
  write(text: string): void;
  /** Does something that Ctrl-C stops. */
  work<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

export function openTerminal(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Terminal {
  return new LineTerminal(createInterface({ input, output, terminal: input.isTTY && output.isTTY }), output);
}

class LineTerminal implements Terminal {
  readonly #lines: Interface;
  readonly #output: NodeJS.WriteStream;
  /** Lines that were typed ahead. */
  readonly #typed: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #left = false;
  #working: AbortController | undefined;
  readonly #interrupt = (): void => {
    if (this.#working === undefined) this.#lines.close();
    else this.#working.abort();
  };

  constructor(lines: Interface, output: NodeJS.WriteStream) {
    this.#lines = lines;
    this.#output = output;
    lines.on('line', (line) => {
      if (this.#waiting === undefined) this.#typed.push(line);
      else this.#answer(line);
    });
    lines.on('close', () => {
      this.#left = true;
      this.#answer(undefined);
    });
    // From the keyboard of a terminal, and as a signal otherwise.
    lines.on('SIGINT', this.#interrupt);
    process.on('SIGINT', this.#interrupt);
  }

  async ask(question: string): Promise<string | undefined> {
    const line = (await this.#nextLine(question))?.trim();
    if (line === undefined) this.write('\n');
    return line === 'exit' || line === 'quit' ? undefined : line;
  }

  #nextLine(question: string): Promise<string | undefined> {
    const typed = this.#typed.shift();
    if (typed !== undefined) {
      this.write(`${question}${typed}\n`);
      return Promise.resolve(typed);
    }
    if (this.#left) return Promise.resolve(undefined);
    this.#lines.setPrompt(question);
    this.#lines.prompt();
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  #answer(line: string | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(line);
  }

  write(text: string): void {
    this.#output.write(text);
  }

  async work<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#working = new AbortController();
    try {
      return await task(this.#working.signal);
    } finally {
      this.#working = undefined;
    }
  }

  close(): void {
    process.off('SIGINT', this.#interrupt);
    this.#lines.close();
  }
}
