import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** Answers each request as the test says. */
let answer: { status: number; headers: Record<string, string> } = { status: 204, headers: {} };
let requests = 0;
const server = createServer((request, response) => {
  requests++;
  request.resume();
  request.once('end', () => response.writeHead(answer.status, answer.headers).end());
});
let endpoint = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces/ingest`;
});
afterAll(() => server.close());

async function start(
  script: string,
  ...args: string[]
): Promise<{ code: number | null; stdout: string; seconds: number }> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const begun = performance.now();
  const child = spawn(process.execPath, ['--conditions=source', '--expose-gc', file, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0 && code !== 7) throw new Error(`The child ended with ${String(code)}: ${stderr}`);
  return { code, stdout, seconds: (performance.now() - begun) / 1000 };
}

it('a process whose traces nobody takes ends within seconds, with its own code [TRACE-X27, T34, IL-107]', async () => {
  answer = { status: 504, headers: { 'retry-after': '30' } };
  requests = 0;
  const { code, seconds } = await start('exit-child.ts', endpoint);
  expect(code).toBe(7);
  expect(requests).toBeGreaterThanOrEqual(1);
  // A bound for a process that hangs: it waits 5 s for its traces, 30 s were asked for.
  expect(seconds).toBeLessThan(25);
});

it('a process that just ends has its traces delivered, without a flush of its own [TRACE-P19, T66]', async () => {
  answer = { status: 204, headers: {} };
  requests = 0;
  expect((await start('exit-child.ts', endpoint)).code).toBe(7);
  expect(requests).toBe(1);
});

it('100,000 spans and no receiver: the queue stays bounded, and every span is accounted for [TRACE-B2, B12, P25]', async () => {
  // Nobody listens there.
  const { stdout } = await start('load-child.ts', 'http://127.0.0.1:9/v1/traces/ingest');
  const result = JSON.parse(stdout) as Record<string, number>;
  expect(result['accounted']).toBe(result['made']);
  expect(result['exported']).toBe(0);
  expect(result['most']).toBeGreaterThan(0);
  expect(result['most']).toBeLessThanOrEqual(8192);
  expect(result['heapOfFullQueues']).toBeLessThanOrEqual(1.2);
});
