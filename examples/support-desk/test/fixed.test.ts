import { readFileSync, writeFileSync } from 'node:fs';
import { FakeOpenAI } from '@agents/core/testing';
import { expect, test } from 'vitest';
import { DeskFolder } from '../src/folder.ts';
import { Orders } from '../src/orders.ts';
import { runFile, temporaryFolder } from './processes.ts';

test('without a terminal one process pauses at the approval and another one ends the run', async () => {
  const { code, stdout, stderr } = await runFile('main.ts', []);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const pids = [...stdout.matchAll(/(First|Second) process \(pid (\d+)\)/g)].map((match) => match[2]);
  expect(new Set(pids).size).toBe(2);
  const steps = [
    'Without OPENAI_API_KEY: the offline model',
    'First process',
    '→ look_up_order',
    'Desk: Order 1042',
    '→ refund_order',
    'waits for approval',
    'the run is written to',
    'Second process',
    'Approved: refund_order',
    '"status":"refunded"',
    'trace Support desk',
    'In the orders file: order 1042 is refunded, once, 89.00 of 89.00.',
  ];
  let at = 0;
  for (const step of steps) {
    at = stdout.indexOf(step, at);
    expect(at, `${step}, in its place in ${stdout}`).toBeGreaterThanOrEqual(0);
  }
});

test('a paused run that is approved twice, in two processes, pays once', async () => {
  const folder = new DeskFolder(temporaryFolder());
  await runFile('fixed/pause.ts', [folder.path]);
  const paused = readFileSync(folder.unfinishedRun, 'utf8');
  for (let i = 0; i < 2; i++) {
    writeFileSync(folder.unfinishedRun, paused);
    const { code, stdout } = await runFile('fixed/finish.ts', [folder.path]);
    expect(code).toBe(0);
    // The second one is told of the refund too, not that nothing is left to refund.
    expect(stdout).toContain('"status":"refunded"');
  }
  const orders = new Orders(folder.orders);
  expect(orders.countRefunds('1042')).toBe(1);
  orders.close();
});

test('a process that does not find what it needs says so and fails', async () => {
  const folder = temporaryFolder();
  const { code, stderr } = await runFile('fixed/finish.ts', [folder]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `There is no run in ${new DeskFolder(folder).unfinishedRun}.\n`,
  });
});

test('a key sends the fixed conversation to the service; what the service does not do is no success', async () => {
  const fake = new FakeOpenAI({ steps: ['Order 1042 is delivered.', 'I would rather not.'] });
  await using server = await fake.listen();
  const { code, stdout, stderr } = await runFile('main.ts', [], {
    env: { OPENAI_API_KEY: 'sk-secret', OPENAI_BASE_URL: server.baseURL },
  });
  expect(stdout).toContain('Desk: I would rather not.');
  expect(stdout).not.toContain('offline');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr:
      'The refund should wait for an approval, but the run is over.\nThe process of pause.ts ended with exit code 1.\n',
  });
});
