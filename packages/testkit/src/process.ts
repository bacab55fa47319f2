import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Readable, Writable } from 'node:stream';

export interface ChildProgram {
  readonly process: ChildProcessByStdio<Writable, Readable, Readable>;
  /** What it has written so far, in lines. */
  lines(): string[];
  /** Resolves when it has written so many lines. */
  line(count: number): Promise<void>;
  /** Resolves to its exit code or signal, when its output has been read. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Runs a script as a process of its own, on the sources of the packages. */
export function startProcess(script: URL, ...args: readonly (string | number)[]): ChildProgram {
  return startNode([], script, ...args);
}

/** The same, with more options of Node. */
export function startNode(
  options: readonly string[],
  script: URL,
  ...args: readonly (string | number)[]
): ChildProgram {
  const path = fileURLToPath(script);
  const node = ['--conditions=source', '--no-warnings', ...options];
  const child = spawn(process.execPath, [...node, path, ...args.map(String)], { stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  const waiting: { count: number; resolve: () => void }[] = [];
  const lines = (): string[] => output.split('\n').slice(0, -1);
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
    for (const waiter of waiting) if (lines().length >= waiter.count) waiter.resolve();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.on('close', (code, signal) => {
      if (errors === '') resolve(code ?? signal);
      else reject(new Error(`${path} failed: ${errors}`));
      for (const waiter of waiting) waiter.resolve();
    });
  });
  ended.catch(() => undefined);
  return {
    process: child,
    lines,
    line: (count) =>
      new Promise((resolve) => (lines().length >= count ? resolve() : void waiting.push({ count, resolve }))),
    ended,
  };
}
