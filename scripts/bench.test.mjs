import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from './bootstrap.mjs';

test('the bench measures every row of every peer', { timeout: 180_000 }, async () => {
  const args = [join(root, 'bench/src/main.ts'), '--rounds=1', '--seconds=0', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { rows } = JSON.parse(stdout);
  expect(rows.map(({ title, figures }) => [title, Object.keys(figures)])).toEqual([
    ['one tool call', ['bare', 'ai', '@openai/agents', '@agents/core']],
    ['5,000 text deltas', ['bare', 'ai', '@openai/agents', '@agents/core']],
    ['cold import', ['ai', '@openai/agents', '@agents/core']],
    ['import: modules', ['ai', '@openai/agents', '@agents/core']],
    ['import: size', ['ai', '@openai/agents', '@agents/core']],
    ['import: other packages', ['ai', '@openai/agents', '@agents/core']],
  ]);
  for (const { figures } of rows)
    for (const { median } of Object.values(figures)) expect(median).toBeGreaterThanOrEqual(0);
});
