// The record of the public surface: packages/*/api.md, made from the built declarations.
//
//   node scripts/api.mjs             fails with a diff where a record is not what is built
//   node scripts/api.mjs --write     renews the records (pnpm api:update)
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { root } from './bootstrap.mjs';
import { readSurface } from './surface.mjs';

export function record({ name, entries, declarations }) {
  const lines = [
    `# Public surface of ${name}`,
    '',
    'Made from the built declarations by `pnpm api:update`. The test command fails when they differ.',
  ];
  for (const [entry, { values, types }] of Object.entries(entries)) {
    lines.push('', `## ${entry}`, '', `${values.length} values, ${types.length} types`, '', '```text');
    lines.push(...values.map((one) => `value ${one}`), ...types.map((one) => `type  ${one}`), '```');
  }
  lines.push(
    '',
    '## Declarations',
    '',
    'Sorted by name, comments left out; what an entry does not list is there because a listed one refers to it.',
    '',
    '```ts',
    ...declarations,
    '```',
    '',
  );
  return lines.join('\n');
}

if (process.argv[1] === import.meta.filename) {
  const temp = mkdtempSync(join(tmpdir(), 'agents-api-'));
  for (const manifest of globSync('packages/*/package.json', { cwd: root })) {
    const folder = join(root, manifest, '..');
    if (JSON.parse(readFileSync(join(root, manifest), 'utf8')).private) continue;
    const file = join(folder, 'api.md');
    const now = record(readSurface(folder));
    if (process.argv.includes('--write')) {
      writeFileSync(file, now);
      continue;
    }
    const then = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (then === now) continue;
    const [before, after] = [join(temp, 'recorded'), join(temp, 'built')];
    writeFileSync(before, then);
    writeFileSync(after, now);
    const { stdout } = spawnSync('git', ['diff', '--no-index', '--no-color', '--unified=2', before, after], {
      encoding: 'utf8',
    });
    const changes = stdout.slice(stdout.indexOf('\n@@') + 1);
    console.error(
      `The public surface is not what ${relative(root, file)} records. If the change is meant: pnpm api:update\n${changes}`,
    );
    process.exitCode = 1;
  }
  rmSync(temp, { recursive: true, force: true });
}
