// `npm test`: brings up the workspace and checks everything. `npm test -- <filter>` runs the tests that match, alone;
// `--only redis,core` runs those of packages and examples, `--without mongo` leaves some out.
// Each check counts as one item; the last line is `N passed, N failed`.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { environment, main, prepare, root, step, StepError } from './bootstrap.mjs';
import { provide, serviceNames } from './services.mjs';

const turbo = (...tasks) => ['turbo', 'run', ...tasks, '--continue', '--output-logs=errors-only'];
const checks = [
  ['format', 'oxfmt', '--check'],
  // First: the examples that use packages as users do see their declarations.
  ['build', ...turbo('build')],
  ['lint', ...turbo('//#lint')],
  ['types', ...turbo('typecheck', '//#typecheck:root')],
  ['public surface', 'node', 'scripts/api.mjs'],
  ['budget', 'node', 'scripts/budget.mjs'],
  ['packages', ...turbo('check:pack')],
  ['README', ...turbo('//#check:readme')],
];

/** Without a build these fail unseen. */
const ofTheBuild = new Set(['public surface', 'budget', 'packages', 'README']);

/** The names of the projects of vitest: folders that have a configuration. */
const projects = ['packages', 'examples']
  .flatMap((top) => readdirSync(join(root, top)).map((name) => join(top, name)))
  .concat('scripts')
  .filter((folder) => existsSync(join(root, folder, 'vitest.config.ts')))
  .map((folder) => basename(folder));

/** `redis` is short for `session-redis`. */
function projectsOf(option, names) {
  return names.split(',').map((name) => {
    const found = projects.find((one) => one === name) ?? projects.find((one) => one.endsWith(`-${name}`));
    if (found === undefined)
      throw new StepError(`${option} ${name}: no such package. There are ${projects.join(', ')}.`);
    return found;
  });
}

/** What the command line asks for: options of vitest, what is left out, and whether that is all tests there are. */
function wanted(args) {
  const rest = [...args];
  const take = (option) => {
    const at = rest.indexOf(option);
    if (at === -1) return [];
    const [, names] = rest.splice(at, 2);
    if (!names) throw new StepError(`${option} needs names: ${projects.join(', ')}.`);
    return projectsOf(option, names);
  };
  const [only, without] = [take('--only'), take('--without')];
  const options = [...only, ...without.map((name) => `!${name}`)].flatMap((name) => ['--project', name]);
  return { vitest: [...options, ...rest], without, some: only.length > 0 || rest.length > 0 };
}

/** Longest first. The files of a project run beside those of others. */
function tellTimes(times) {
  const parts = Object.entries(times)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, ms]) => `${name} ${(ms / 1000).toFixed(1)}`);
  console.log(`Seconds that the test files took: ${parts.join(', ')}`);
}

/** vitest over all packages: its report goes to the terminal, its counts come back by a file. */
async function tests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'agents-test-'));
  const counts = join(folder, 'counts.json');
  try {
    const reporters = ['--reporter=dot', '--reporter=./scripts/count-reporter.mjs'];
    const child = spawn('vitest', ['run', ...reporters, ...args], {
      cwd: root,
      env: { ...environment, TEST_COUNTS: counts },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    process.on('SIGINT', () => {});
    const code = await new Promise((resolve) => child.on('error', () => resolve(127)).on('close', resolve));
    const { passed, failed, skipped, times } = existsSync(counts)
      ? JSON.parse(readFileSync(counts, 'utf8'))
      : { passed: 0, failed: 0, skipped: 0, times: {} };
    tellTimes(times);
    // A run that ends badly without a failed test (a crash, a bad option, no test found) is a failure of its own.
    return { passed, failed: failed === 0 && code !== 0 ? 1 : failed, skipped };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main(async () => {
  await prepare();
  const { vitest, without, some } = wanted(process.argv.slice(2));
  // Beside the checks: a browser that is to be installed takes a while. Tests that run alone get what they need themselves.
  const services = some ? undefined : provide(serviceNames);
  let passed = 0;
  const failures = [];
  for (const [name, command, ...rest] of some ? [] : checks) {
    if (ofTheBuild.has(name) && failures.includes('build')) {
      failures.push(name);
      continue;
    }
    try {
      await step(`Checking ${name}`, command, rest);
      passed++;
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      failures.push(name);
      console.error(`${error.log.trimEnd()}\nFAILED ${error.message}\n`);
    }
  }
  const stopServices = await services;
  console.log(some ? `Running the tests that match ${vitest.join(' ')}` : 'Running the tests');
  const result = await tests(vitest);
  await stopServices?.();
  if (failures.length > 0) console.log(`Failed checks: ${failures.join(', ')}`);
  if (without.length > 0) console.log(`Left out: ${without.join(', ')}`);
  if (result.skipped > 0) console.log(`Skipped tests: ${result.skipped}`);
  const failed = failures.length + result.failed;
  console.log(`${passed + result.passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});
