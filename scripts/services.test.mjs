import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { root } from './bootstrap.mjs';

let folder;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'services-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const program = `
  const { provide } = await import('./scripts/services.mjs');
  await provide(['chromium']);
  console.log(JSON.stringify([process.env.TEST_CHROMIUM ?? null, process.env.TEST_CHROMIUM_MISSING ?? null]));`;

/** The two variables on a machine with nothing but what the test put into its PATH: no apt-get. */
async function provided(variables = {}) {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { PATH: folder, ...variables },
  });
  const [found, missing] = JSON.parse(stdout);
  return { found, missing, stderr };
}

function plant(name) {
  writeFileSync(join(folder, name), '', { mode: 0o755 });
  return join(folder, name);
}

test('a service is found by its variable, else on PATH', async () => {
  const onPath = plant('google-chrome');
  expect(await provided()).toEqual({ found: onPath, missing: null, stderr: '' });
  const other = plant('my-browser');
  expect(await provided({ TEST_CHROMIUM: other })).toEqual({ found: other, missing: null, stderr: '' });
});

test('a service that is not there fails nothing but its tests, which read how to get it', async () => {
  const { found, missing, stderr } = await provided();
  expect(found).toBeNull();
  expect(missing).toMatch(/^No chromium .*Install it, .*"apt-get install -y chromium".* or set TEST_CHROMIUM/);
  expect(stderr).toBe(`${missing}\n`);
});

test('a variable that names what is not there is no reason to take another one', async () => {
  plant('chromium');
  expect(await provided({ TEST_CHROMIUM: '/nowhere/chromium' })).toMatchObject({
    missing: 'TEST_CHROMIUM is /nowhere/chromium, which is not there.',
  });
});
