import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

it('the lint refuses a scope that is entered without a callback [TRACE-C3]', { timeout: 30_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'agents-lint-'));
  try {
    const file = join(dir, 'packages/core/src/scope.ts');
    mkdirSync(dirname(file), { recursive: true });
    const enter =
      'export const enter = (storage: { enterWith(store: object): void }): void => storage.enterWith({});\n';
    writeFileSync(file, enter);
    writeFileSync(join(dir, '.oxlintrc.json'), readFileSync(join(root, '.oxlintrc.json'), 'utf8'));
    const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/oxlint'), [], { cwd: dir, encoding: 'utf8' });
    expect(stdout).toContain('no-restricted-properties');
    expect(status).not.toBe(0);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
