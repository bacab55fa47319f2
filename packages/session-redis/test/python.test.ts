import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { TestCluster } from './cluster.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const { TEST_PYTHON: python = 'python3', TEST_PYTHON_MISSING: missing } = process.env;

/** Takes commands as lines of JSON and answers each with one. A cluster is told from a server by its address. */
const script = `
import asyncio, json, sys
from agents.extensions.memory import RedisSession
from redis.asyncio.cluster import RedisCluster
async def do(url, prefix, session_id, action, argument=None, ttl=None):
    if url.startswith("cluster:"):
        client = RedisCluster(host="127.0.0.1", port=int(url.split(":")[1]))
        session = RedisSession(session_id, redis_client=client, key_prefix=prefix)
    else:
        session = RedisSession.from_url(session_id, url=url, key_prefix=prefix, ttl=ttl)
        client = None
    try:
        if action == "add":
            await session.add_items(argument)
        elif action == "pop":
            return await session.pop_item()
        elif action == "clear":
            await session.clear_session()
        elif action == "write":
            for batch in range(50):
                await session.add_items([{"role": "user", "content": f"{argument}/{batch}/{index}"} for index in range(3)])
        return await session.get_items()
    except Exception as error:
        return {"error": type(error).__name__}
    finally:
        await session.close()
        if client is not None:
            await client.aclose()
for line in sys.stdin:
    print(json.dumps(asyncio.run(do(*json.loads(line)))), flush=True)
`;

const redis = new Redis(redisUrl());
let child: ReturnType<typeof start>;
function start() {
  const process = spawn(python, ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = createInterface(process.stdout)[Symbol.asyncIterator]();
  return {
    async ask(...command: readonly unknown[]): Promise<unknown> {
      process.stdin.write(`${JSON.stringify(command)}\n`);
      const { value } = (await answers.next()) as { value?: string };
      return JSON.parse(value ?? 'null') as unknown;
    },
    end: () => void process.stdin.end(),
  };
}
beforeAll(() => {
  if (missing !== undefined) throw new Error(missing);
  child = start();
});
afterAll(async () => {
  child.end();
  await redis.quit();
});

const items = [
  { role: 'user', content: 'Grüße 😊 \u007f "quoted" \\ / \n' },
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
  { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"a": 1.5}', id: 'fc_1' },
  { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'seen' }] },
  { role: 'assistant', type: 'message', content: [{ type: 'output_text', text: 'done', annotations: [] }] },
];

describe('the Python SDK on the same server', () => {
  const url = redisUrl();

  it('reads, pops and clears what we wrote, and the other way round, byte for byte [SESS-131, 351, 352]', async () => {
    const prefix = freshPrefix();
    const ours = new RedisSession<object>('s', { client: redis, keyPrefix: prefix });
    const ask = (action: string, argument?: unknown) => child.ask(url, prefix, 's', action, argument);
    await ours.addItems(items);
    expect(await ask('get')).toEqual(items);
    expect(await ask('pop')).toEqual(items.at(-1));
    expect(await ours.getItems()).toEqual(items.slice(0, -1));
    await ask('add', items.slice(-1));
    expect(await ours.popItem()).toEqual(items.at(-1));
    await ask('clear');
    expect(await ours.getItems()).toEqual([]);
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
    await ask('add', items);
    await ours.addItems(items);
    const texts = await redis.lrange(`${prefix}:s:messages`, 0, -1);
    expect(texts.slice(items.length)).toEqual(texts.slice(0, items.length));
    await ours.clearSession();
    expect(await ask('get')).toEqual([]);
  });

  it('renews the same times to live, and keeps the time of creation [SESS#5, SESS-223, 352]', async () => {
    const prefix = freshPrefix();
    const ours = new RedisSession<object>('s', { client: redis, keyPrefix: prefix, ttlMs: 600_000 });
    const keys = [`${prefix}:s`, `${prefix}:s:messages`];
    await child.ask(url, prefix, 's', 'add', items.slice(0, 1), 60);
    await redis.hset(keys[0]!, 'created_at', '1700000000');
    for (const key of keys) expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
    await ours.addItems(items.slice(1, 2));
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(60_000);
    await child.ask(url, prefix, 's', 'add', items.slice(2, 3), 60);
    for (const key of keys) expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
    expect(await redis.hget(keys[0]!, 'created_at')).toBe('1700000000');
    // Members that Python does not know survive its writes: our operations are known afterwards.
    expect(Object.keys(await redis.hgetall(keys[0]!)).toSorted()).toEqual(
      ['_ops', '_ver', 'created_at', 'session_id', 'updated_at'].toSorted(),
    );
    expect(await ours.getItems()).toEqual(items.slice(0, 3));
  });

  it('writes beside us, by scripts and by MULTI, without a lost item or a split batch [SESS-352]', async () => {
    const prefix = freshPrefix();
    const write = async (name: string, scripting: 'lua' | 'multi'): Promise<void> => {
      await using session = new RedisSession<object>('s', { url, keyPrefix: prefix, scripting });
      for (let batch = 0; batch < 50; batch++)
        await session.addItems([0, 1, 2].map((index) => ({ role: 'user', content: `${name}/${batch}/${index}` })));
    };
    await Promise.all([child.ask(url, prefix, 's', 'write', 'python'), write('lua', 'lua'), write('multi', 'multi')]);
    const session = new RedisSession<{ content: string }>('s', { client: redis, keyPrefix: prefix });
    const contents = (await session.getItems()).map((item) => item.content);
    expect(contents).toHaveLength(450);
    for (let at = 0; at < contents.length; at += 3) {
      const name = contents[at]!.replace(/\/\d+$/, '');
      expect(contents.slice(at, at + 3)).toEqual([`${name}/0`, `${name}/1`, `${name}/2`]);
    }
  });
});

describe('the Python SDK on the same cluster', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  it('reads and pops what we wrote, under the id with braces; it cannot write there [SESS#42, SESS-227, 354]', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }]);
    const ours = new RedisSession<object>('s', { client });
    const ask = (action: string, argument?: unknown) =>
      child.ask(`cluster:${cluster.ports[0]}`, 'agents:session', '{s}', action, argument);
    await ours.addItems(items);
    expect(await ask('get')).toEqual(items);
    expect(await ask('pop')).toEqual(items.at(-1));
    expect(await ours.getItems()).toEqual(items.slice(0, -1));
    expect(await ask('add', items)).toEqual({ error: 'TypeError' });
    expect(await ask('clear')).toEqual({ error: 'TypeError' });
    client.disconnect();
  });
});
