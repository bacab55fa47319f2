import {
  checkTurnsWithPython,
  checkWritingBesidePython,
  pythonForTests,
  pythonItems as items,
} from '@agents/testkit/python';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { TestCluster } from './cluster.ts';
import { freshPrefix, redisUrl } from './redis.ts';

/** A cluster is told from a server by its address. */
const onSession = `
from agents.extensions.memory import RedisSession
from redis.asyncio.cluster import RedisCluster
async def on_session(place, action, argument):
    url, prefix, session_id, *ttl = place
    if url.startswith("cluster:"):
        client = RedisCluster(host="127.0.0.1", port=int(url.split(":")[1]))
        session = RedisSession(session_id, redis_client=client, key_prefix=prefix)
    else:
        session = RedisSession.from_url(session_id, url=url, key_prefix=prefix, ttl=ttl[0] if ttl else None)
        client = None
    try:
        return await act(session, action, argument)
    finally:
        await session.close()
        if client is not None:
            await client.aclose()
`;

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());
const python = pythonForTests(onSession);
/** @param ttl in seconds */
const on = (keyPrefix: string, ttl?: number): ReturnType<typeof python> =>
  python([redisUrl(), keyPrefix, 's', ...(ttl === undefined ? [] : [ttl])]);

describe('the Python SDK on the same server', () => {
  it('reads, pops and clears what we wrote, and the other way round, byte for byte [SESS-131, 351, 352]', async () => {
    const prefix = freshPrefix();
    const ours = new RedisSession<object>('s', { client: redis, keyPrefix: prefix });
    await expect(checkTurnsWithPython(ours, on(prefix))).resolves.toBeUndefined();
    expect(await redis.keys(`${prefix}*`)).toEqual([]);
    await on(prefix)('add', items);
    await ours.addItems(items);
    const texts = await redis.lrange(`${prefix}:s:messages`, 0, -1);
    expect(texts.slice(items.length)).toEqual(texts.slice(0, items.length));
  });

  it('renews the same times to live, and keeps the time of creation [SESS#5, SESS-223, 352]', async () => {
    const prefix = freshPrefix();
    const ours = new RedisSession<object>('s', { client: redis, keyPrefix: prefix, ttlMs: 600_000 });
    const keys = [`${prefix}:s`, `${prefix}:s:messages`];
    await on(prefix, 60)('add', items.slice(0, 1));
    await redis.hset(keys[0]!, 'created_at', '1700000000');
    for (const key of keys) expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
    await ours.addItems(items.slice(1, 2));
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(60_000);
    await on(prefix, 60)('add', items.slice(2, 3));
    for (const key of keys) expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
    expect(await redis.hget(keys[0]!, 'created_at')).toBe('1700000000');
    // Members that Python does not know survive its writes: our operations are known afterwards.
    expect(Object.keys(await redis.hgetall(keys[0]!)).toSorted()).toEqual(
      ['_ops', '_ver', 'created_at', 'session_id', 'updated_at'].toSorted(),
    );
    expect(await ours.getItems()).toEqual(items.slice(0, 3));
  });

  it('takes what we remember of operations along when it clears: what is settled afterwards is appended [SESS-354]', async () => {
    const prefix = freshPrefix();
    const ours = new RedisSession<object>('s', { client: redis, keyPrefix: prefix });
    const operation = { operationId: 'op', transaction: { type: 'append_items', items: items.slice(0, 1) } } as const;
    await ours.applyHistoryTransaction(operation);
    await on(prefix)('clear');
    await ours.applyHistoryTransaction(operation);
    expect(await on(prefix)('get')).toEqual(items.slice(0, 1));
  });

  it('writes beside us, by scripts and by MULTI, without a lost item or a split batch [SESS-352]', async () => {
    const keyPrefix = freshPrefix();
    await using lua = new RedisSession<object>('s', { url: redisUrl(), keyPrefix });
    await using multi = new RedisSession<object>('s', { url: redisUrl(), keyPrefix, scripting: 'multi' });
    await expect(checkWritingBesidePython({ lua, multi }, on(keyPrefix))).resolves.toBeUndefined();
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
    const ask = python([`cluster:${cluster.ports[0]}`, 'agents:session', '{s}']);
    await ours.addItems(items);
    expect(await ask('get')).toEqual(items);
    expect(await ask('pop')).toEqual(items.at(-1));
    expect(await ours.getItems()).toEqual(items.slice(0, -1));
    for (const action of ['add', 'clear']) await expect(ask(action, items)).rejects.toThrow('TypeError');
    client.disconnect();
  });
});
