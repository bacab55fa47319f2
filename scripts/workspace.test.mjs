import { globSync, readFileSync } from 'node:fs';
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
