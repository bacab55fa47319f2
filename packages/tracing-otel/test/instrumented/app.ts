// A server whose handler runs an agent with four tools, each of which calls something that is instrumented. The clients are
// connected first. Prints its port; `/flush` passes on what was traced.
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { env } from 'node:process';
import { Agent, flushTraces, run, runStreamed, tool } from '@agents/core';
import { ScriptedModel, toolCall } from '@agents/core/testing';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { enableOTelTracing } from '../../src/index.ts';

const { TARGET_URL = '', TEST_REDIS_URL = '', TEST_POSTGRES_URL = '' } = env;
const redis = new Redis(TEST_REDIS_URL);
await redis.ping();
const database = new Pool({ connectionString: TEST_POSTGRES_URL });
await database.query('select 1');

enableOTelTracing();
enableOTelTracing();

const none = { type: 'object', properties: {}, required: [], additionalProperties: false } as const;
const bodies: Record<string, () => Promise<unknown>> = {
  by_http: () =>
    new Promise((resolve, reject) => {
      get(TARGET_URL, (response) => void response.resume().on('end', () => resolve('ok'))).on('error', reject);
    }),
  by_fetch: async () => await (await fetch(TARGET_URL)).text(),
  by_pg: async () => (await database.query('select 7 as answer')).rows,
  by_redis: async () => await redis.get('nothing'),
};
const tools = Object.entries(bodies).map(([name, execute]) => tool({ name, parameters: none, execute }));
const agent = (): Agent =>
  new Agent({
    name: 'Desk',
    tools,
    model: new ScriptedModel([Object.keys(bodies).map((name) => toolCall(name, {})), 'done'], { trace: true }),
  });

const handlers: Record<string, () => Promise<unknown>> = {
  '/plain': () => run(agent(), 'go'),
  '/streamed': async () => {
    const stream = runStreamed(agent(), 'go');
    for await (const _ of stream);
    await stream.completed;
  },
  '/flush': () => flushTraces(),
};
const server = createServer((request, response) => {
  void (async () => {
    await handlers[request.url ?? '']?.();
    response.end('done');
  })();
});
server.listen(0, '127.0.0.1', () => console.log(String((server.address() as AddressInfo).port)));
