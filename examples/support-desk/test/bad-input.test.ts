import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { FakeOpenAI } from '@agents/core/testing';
import type { Fault } from '@agents/core/testing';
import { expect, test } from 'vitest';
import { DeskFolder } from '../src/folder.ts';
import { Orders } from '../src/orders.ts';
import { runFile, temporaryFolder } from './processes.ts';

const talk = (folder: DeskFolder, stdin: string, env: Record<string, string> = {}) =>
  runFile('main.ts', ['--talk', '--data', folder.path], { stdin, env });
const stackTrace = /^\s+at .*:\d+/m;

test.for(['orders', 'conversations'] as const)(
  'a damaged file of %s stops the desk and stays as it is',
  async (file) => {
    const folder = new DeskFolder(temporaryFolder());
    const rubbish = 'no database, and longer than the header of one. '.repeat(100);
    writeFileSync(folder[file], rubbish);
    const { code, stderr } = await talk(folder, 'Where is order 1041?\n');
    expect(code).toBe(1);
    expect(stderr).toBe(
      `${folder[file]}: The file is damaged, or no SQLite database; it was left as it is. Put a copy in its place, or move it away to begin anew.\n`,
    );
    expect(readFileSync(folder[file], 'utf8')).toBe(rubbish);
  },
);

test('a locked file of orders stops the desk; what waited for an approval still waits', async () => {
  const folder = new DeskFolder(temporaryFolder());
  new Orders(folder.orders).close();
  await talk(folder, 'Refund order 1042\n');
  const other = new DatabaseSync(folder.orders);
  other.exec('BEGIN IMMEDIATE');
  const { code, stderr } = await talk(folder, 'y\n');
  other.close();
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('locked by another program') });
  const after = await talk(folder, 'y\n');
  expect(after.stdout).toContain('"status":"refunded"');
});

test('a connection that is refused loses nothing: the request goes on when there is a model', async () => {
  const folder = new DeskFolder(temporaryFolder());
  const env = { OPENAI_API_KEY: 'sk-secret', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' };
  const refused = await talk(folder, 'Where is order 1041?\n', env);
  expect(refused.code).toBe(0);
  expect(refused.stdout).toMatch(/No connection to http:\/\/127\.0\.0\.1:9\/v1 \(.+\)\. Is the network up/);
  expect(refused.stdout + refused.stderr).not.toMatch(stackTrace);
  expect(refused.stdout + refused.stderr).not.toContain('sk-secret');
  const later = await talk(folder, '\n');
  expect(later.stdout).toContain('Desk: Order 1041');
});

const faults: [string, Fault, RegExp][] = [
  ['that is cut', { kind: 'cut', afterEvents: 3 }, /^The answer of the model broke off before its end\.$/m],
  ['that ends early', { kind: 'truncate', afterEvents: 3 }, /^The answer of the model broke off before its end\.$/m],
  [
    'that refuses the key',
    { kind: 'status', status: 401 },
    /^The service refuses the key \(401\)\. Check OPENAI_API_KEY\.$/m,
  ],
];

test.for(faults)('an answer %s loses nothing: Enter goes on', async ([, fault, message]) => {
  const folder = new DeskFolder(temporaryFolder());
  const fake = new FakeOpenAI();
  fake.inject(fault);
  await using server = await fake.listen();
  const env = { OPENAI_API_KEY: 'sk-secret', OPENAI_BASE_URL: server.baseURL };
  const { code, stdout, stderr } = await talk(folder, 'Where is order 1041?\n\n', env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(message);
  expect(stdout).not.toMatch(stackTrace);
  expect(stdout).not.toContain('sk-secret');
  expect(stdout).toContain('Desk: Order 1041');
});

test('Ctrl-C at a question leaves', async () => {
  const { code, stderr } = await runFile('main.ts', ['--talk', '--data', temporaryFolder()], {
    signal: { name: 'SIGINT', after: 'You: ' },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('an option that is unknown is named', async () => {
  const { code, stderr } = await runFile('main.ts', ['--tlak']);
  expect(code).toBe(1);
  expect(stderr).toContain("'--tlak'");
  expect(stderr).not.toMatch(stackTrace);
});
