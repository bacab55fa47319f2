// The template of a backend, as its reader gets it: copied out of the repository, on the packed core.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { environment, root } from './bootstrap.mjs';
import { EmptyProject } from './empty-project.mjs';

const project = new EmptyProject();
afterAll(() => project.remove());

test('starts outside of the repository with the contracts running', { timeout: 300_000 }, () => {
  const core = join(root, 'packages/core');
  if (!existsSync(join(core, 'dist/node/index.js'))) project.run('pnpm', ['--filter', '@agents/core', 'build'], root);
  project.install(core);
  project.linkNeeds(core);
  const folder = join(project.path, 'my-backend');
  mkdirSync(folder);
  for (const part of ['src', 'test', 'package.json'])
    cpSync(join(root, 'examples/backend-template', part), join(folder, part), { recursive: true });

  const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', 'test/contract.ts'], {
    cwd: folder,
    env: { ...environment, NODE_OPTIONS: '' },
    encoding: 'utf8',
  });
  const count = (what) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1] ?? Number.NaN);
  expect([status, count('fail'), count('skipped')]).toEqual([0, 0, 1]);
  // Both contracts, all of their cases.
  expect(count('pass')).toBeGreaterThan(130);
});
