import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Options {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Sent once, when the output contains `after`. */
  readonly signal?: { readonly name: NodeJS.Signals; readonly after: string };
}

/** Compiled sources of the packages: a process starts in a third of the time. */
const NODE_COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/compiled');

/** Runs a file of the example as `npm start` would, on the sources of the packages. */
export function runFile(file: string, args: readonly string[], options: Options = {}): Promise<Ended> {
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...env } = process.env;
  const child = spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, '../src', file), ...args], {
    env: { ...env, NODE_COMPILE_CACHE, NO_COLOR: '1', ...options.env },
  });
  const text = { stdout: '', stderr: '' };
  let { signal } = options;
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
      if (signal === undefined || !text[name].includes(signal.after)) return;
      child.kill(signal.name);
      signal = undefined;
    });
  }
  if (signal === undefined) child.stdin.end(options.stdin ?? '');
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...text }));
  });
}

/** A folder that goes away with the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'support-desk-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
