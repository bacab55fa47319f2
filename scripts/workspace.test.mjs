import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './bootstrap.mjs';

const read = (file) => readFileSync(join(root, file), 'utf8');

test('the lockfile holds no address: packages come from whatever registry the machine uses', () => {
  expect(read('pnpm-lock.yaml')).not.toContain('://');
});

test('every published package carries the license and a README', () => {
  for (const manifest of globSync('packages/*/package.json', { cwd: root })) {
    if (JSON.parse(read(manifest)).private) continue;
    expect(read(manifest.replace('package.json', 'LICENSE'))).toBe(read('LICENSE'));
    expect(read(manifest.replace('package.json', 'README.md'))).toContain('# @agents/');
  }
});

test('the lint refuses a scope that is entered without a callback [TRACE-C3]', () => {
  const dir = mkdtempSync(join(tmpdir(), 'agents-lint-'));
  try {
    const file = join(dir, 'packages/core/src/scope.ts');
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(
      file,
      'export const enter = (storage: { enterWith(store: object): void }): void => storage.enterWith({});\n',
    );
    writeFileSync(join(dir, '.oxlintrc.json'), read('.oxlintrc.json'));
    const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/oxlint'), [], { cwd: dir, encoding: 'utf8' });
    expect(stdout).toContain('enterWith');
    expect(status).not.toBe(0);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
