import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { root } from './bootstrap.mjs';

test('the bench measures every row of every peer', { timeout: 180_000 }, async () => {
  const args = [join(root, 'bench/src/main.ts'), '--rounds=1', '--seconds=0', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { rows } = JSON.parse(stdout);
  const all = ['bare', 'ai', '@openai/agents', '@agents/core'];
  const packages = all.slice(1);
  const own = all.slice(3);
  expect(rows.map(({ title, figures }) => [title, Object.keys(figures)])).toEqual([
    ['one tool call', all],
    ['5,000 text deltas', all],
    ['paused run, 10,000 items of input: save', own],
    ['… of JSON.stringify', own],
    ['… restore', own],
    ['… of JSON.parse', own],
    ['… save of 100,000, of 10,000', own],
    ['… restore of 100,000, of 10,000', own],
    ['paused run, 10,000 items of 3,333 turns: save', own],
    ['… of JSON.stringify', own],
    ['… the first time', own],
    ['… restore', own],
    ['… of JSON.parse', own],
    ['cold import', packages],
    ['import: modules', packages],
    ['import: size', packages],
    ['import: other packages', packages],
  ]);
  for (const { figures } of rows)
    for (const { median } of Object.values(figures)) expect(median).toBeGreaterThanOrEqual(0);
});
