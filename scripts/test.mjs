// `npm test`: brings up the workspace and checks everything. `npm test -- <filter>` runs the tests that match, alone.
// Each check counts as one item; the last line is `N passed, N failed`.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment, main, prepare, root, step, StepError } from './bootstrap.mjs';
import { provide, serviceNames } from './services.mjs';

const turbo = (...tasks) => ['turbo', 'run', ...tasks, '--continue', '--output-logs=errors-only'];
const checks = [
  ['format', 'oxfmt', '--check'],
  ['lint', ...turbo('//#lint')],
  ['types', ...turbo('typecheck', '//#typecheck:root')],
  ['build', ...turbo('build')],
  ['public surface', 'node', 'scripts/api.mjs'],
  ['budget', 'node', 'scripts/budget.mjs'],
  ['packages', ...turbo('check:pack')],
  ['README', ...turbo('//#check:readme')],
];

/** Without a build these fail unseen. */
const ofTheBuild = new Set(['public surface', 'budget', 'packages', 'README']);

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
    const { passed, failed, skipped } = existsSync(counts)
      ? JSON.parse(readFileSync(counts, 'utf8'))
      : { passed: 0, failed: 0, skipped: 0 };
    // A run that ends badly without a failed test (a crash, a bad option, no test found) is a failure of its own.
    return { passed, failed: failed === 0 && code !== 0 ? 1 : failed, skipped };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main(async () => {
  await prepare();
  const args = process.argv.slice(2);
  // Beside the checks: a browser that is to be installed takes a while. Tests that run alone get what they need themselves.
  const services = args.length > 0 ? undefined : provide(serviceNames);
  let passed = 0;
  const failures = [];
  for (const [name, command, ...rest] of args.length > 0 ? [] : checks) {
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
  console.log(args.length > 0 ? `Running the tests that match ${args.join(' ')}` : 'Running the tests');
  const result = await tests(args);
  await stopServices?.();
  if (failures.length > 0) console.log(`Failed checks: ${failures.join(', ')}`);
  if (result.skipped > 0) console.log(`Skipped tests: ${result.skipped}`);
  const failed = failures.length + result.failed;
  console.log(`${passed + result.passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});
