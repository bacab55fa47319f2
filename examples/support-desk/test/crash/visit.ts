import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** When a visit is killed: at the n-th point at which the desk touches something that lasts, or a moment after a line. */
export type Kill = { readonly point: number } | { readonly line: number; readonly afterMs: number } | undefined;

/** What the desk asks for. */
export type Question = 'message' | 'approval' | 'again';

export interface Ended {
  readonly killed: boolean;
  readonly code: number | null;
  readonly text: string;
  /** What it asked for last, if nobody has answered yet. */
  readonly open: Question | undefined;
}

const questions: readonly (readonly [Question, string])[] = [
  ['message', 'You: '],
  ['approval', 'Approve? y / n / reason (no, and why) / always (in this request): '],
  ['again', 'Enter tries again, or say something else: '],
];

/** Compiled sources of the packages: a process starts in a third of the time. */
const NODE_COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/compiled');

/**
 * One visit to the desk as a process of its own. `answer` is asked at each question of the desk; `undefined` leaves.
 */
export function visit(
  folder: string,
  kill: Kill,
  answer: (question: Question, text: string) => string | undefined,
): Promise<Ended> {
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...env } = process.env;
  const here = import.meta.dirname;
  const at = kill !== undefined && 'point' in kill ? String(kill.point) : '0';
  const child = spawn(
    process.execPath,
    [
      '--conditions=source',
      '--import',
      join(here, 'kill-at.ts'),
      join(here, '../../src/main.ts'),
      '--talk',
      '--data',
      folder,
    ],
    { env: { ...env, NODE_COMPILE_CACHE, NO_COLOR: '1', CRASH_AT: at }, stdio: ['pipe', 'pipe', 'inherit'] },
  );
  // The other end may be gone.
  child.stdin.on('error', () => undefined);
  let text = '';
  let seen = 0;
  let lines = 0;
  let open: Question | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const asked = questions.find(([, words]) => text.length > seen && text.endsWith(words));
    if (asked === undefined) return;
    seen = text.length;
    [open] = asked;
    const line = answer(open, text);
    if (line === undefined) {
      child.stdin.end();
      return;
    }
    open = undefined;
    lines += 1;
    child.stdin.write(`${line}\n`);
    if (kill !== undefined && 'line' in kill && kill.line === lines)
      timer = setTimeout(() => child.kill('SIGKILL'), kill.afterMs);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ killed: signal === 'SIGKILL', code, text, open });
    });
  });
}
