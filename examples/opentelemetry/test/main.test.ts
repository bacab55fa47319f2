import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { env, execPath } from 'node:process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const at = (path: string): string => new URL(path, import.meta.url).pathname;

it('is one connected trace over two processes and an approval, with the queries of its tools [TRACE-O4, O18, T7]', async () => {
  const { TEST_POSTGRES_URL: url, TEST_POSTGRES_URL_MISSING: missing } = env;
  if (url === undefined) throw new Error(missing ?? 'TEST_POSTGRES_URL is not set.');
  const { stdout } = await promisify(execFile)(execPath, ['--conditions=source', at('../src/main.ts')], {
    env: { ...env, NODE_OPTIONS: '', DATABASE_URL: url },
  });
  const lines = stdout.trim().split('\n');
  expect(lines.slice(0, 2)).toEqual(['Order 7 is paid back.', 'In the database: refunded']);
  expect(lines.slice(2)).toEqual([
    'invoke_workflow Refund desk',
    '  invoke_agent Triage',
    '    chat scripted',
    '    execute_tool find_order',
    '      pg-pool.connect',
    '        pg.connect',
    '      pg.query:SELECT postgres',
    '    chat scripted',
    '    execute_tool transfer_to_refunds',
    '  invoke_agent Refunds ↩ execute_tool transfer_to_refunds',
    '    chat scripted',
    '    execute_tool refund_order',
    '  invoke_workflow Refund desk ↩ invoke_agent Refunds',
    '    invoke_agent Refunds',
    '      execute_tool refund_order',
    '        pg-pool.connect',
    '          pg.connect',
    '        pg.query:UPDATE postgres',
    '      chat scripted',
  ]);
});

it('starts with the file that the guide shows', () => {
  const guide = readFileSync(at('../../../docs/tracing/opentelemetry.md'), 'utf8');
  const [, shown] =
    /<!-- file: examples\/opentelemetry\/src\/telemetry\.mjs -->\n+```js\n([^]*?)```/u.exec(guide) ?? [];
  expect(shown).toBe(readFileSync(at('../src/telemetry.mjs'), 'utf8'));
});
