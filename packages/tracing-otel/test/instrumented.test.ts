import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { env, execPath } from 'node:process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { OtlpReceiver } from './otlp.ts';
import type { OtlpSpan } from './otlp.ts';

// Real instrumentations of http, fetch, pg and ioredis, in a process that is started as an application is: workers of the test
// runner do not get the hook that patches modules.

const receiver = new OtlpReceiver();
/** What tools call. */
const target = createServer((_request, response) => void response.end('ok'));
const children: ChildProcess[] = [];

beforeAll(async () => {
  await receiver.start();
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill();
  receiver.spans.length = 0;
});
afterAll(async () => {
  target.closeAllConnections();
  target.close();
  await receiver.close();
});

/** The address of the application, once it serves. */
async function start(...imports: readonly string[]): Promise<string> {
  for (const name of ['TEST_REDIS_URL', 'TEST_POSTGRES_URL'])
    if (env[name] === undefined) throw new Error(env[`${name}_MISSING`] ?? `${name} is not set.`);
  const folder = new URL('instrumented/', import.meta.url);
  const flags = imports.flatMap((name) => ['--import', new URL(name, folder).href]);
  const child = spawn(execPath, ['--conditions=source', ...flags, new URL('app.ts', folder).pathname], {
    env: {
      ...env,
      NODE_OPTIONS: '',
      RECEIVER_URL: receiver.url,
      TARGET_URL: `http://127.0.0.1:${(target.address() as AddressInfo).port}/`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The application ended with ${code}.`);
  });
  const [port] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
  ended.catch(() => {});
  return `http://127.0.0.1:${String(port).trim()}`;
}

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const caller = '00f067aa0ba902b7';

/** What a request to the application left at the receiver. */
async function traced(url: string, path: string): Promise<readonly OtlpSpan[]> {
  await (await fetch(url + path, { headers: { traceparent: `00-${traceId}-${caller}-01` } })).text();
  await (await fetch(`${url}/flush`)).text();
  return receiver.spans.filter((span) => span.traceId === traceId);
}

/** Spans directly under the span of each tool. */
function underTools(spans: readonly OtlpSpan[]): Record<string, string[]> {
  const tools = spans.filter(({ name }) => name.startsWith('execute_tool '));
  return Object.fromEntries(
    tools.map(({ name, spanId }) => [
      name.slice('execute_tool '.length),
      spans.filter(({ parentSpanId }) => parentSpanId === spanId).map((span) => span.name),
    ]),
  );
}

describe('calls that are instrumented', () => {
  it('nest under the tool that made them, in the trace of the request that the run serves [TRACE-O4, O40, O42, T4, T5]', async () => {
    const url = await start('hook.mjs', 'telemetry.mjs');
    for (const path of ['/plain', '/streamed']) {
      const spans = await traced(url, path);
      expect(underTools(spans)).toEqual({
        by_http: ['GET'],
        by_fetch: ['GET'],
        by_pg: ['pg-pool.connect', 'pg.query:SELECT postgres'],
        by_redis: ['get'],
      });
      const server = spans.find((span) => span.parentSpanId === caller);
      const root = spans.find((span) => span.name === 'invoke_workflow Agent workflow');
      expect(root?.parentSpanId).toBe(server?.spanId);
      // Two calls of enableOTelTracing: one processor.
      expect(spans.filter((span) => span.name === 'invoke_agent Desk')).toHaveLength(1);
      receiver.spans.length = 0;
    }
  });

  it('nest without the hook of the loader only where they need no patched module: pg and fetch', async () => {
    const url = await start('telemetry.mjs');
    await (await fetch(`${url}/plain`)).text();
    await (await fetch(`${url}/flush`)).text();
    expect(underTools(receiver.spans)).toEqual({
      by_http: [],
      by_fetch: ['GET'],
      by_pg: ['pg-pool.connect', 'pg.query:SELECT postgres'],
      by_redis: [],
    });
  });
});
