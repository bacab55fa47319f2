import { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

let keyPrefix: string;
let key: string;
beforeEach(() => {
  keyPrefix = freshPrefix();
  key = `${keyPrefix}:s`;
});

describe.each(['lua', 'multi'] as const)('metadata, by %s', (scripting) => {
  const open = (options: { ttlMs?: number } = {}) =>
    new RedisSessionStore({ client: redis, keyPrefix, scripting, ...options });

  it('gives an end to a session that it makes, and leaves that of another alone [SESS-223, 375]', async () => {
    const store = open({ ttlMs: 60_000 });
    await store.setMetadata('s', { a: 1 });
    expect(await redis.pttl(key)).toBeGreaterThan(0);
    await redis.pexpire(key, 5000);
    await store.setMetadata('s', { b: 1 });
    expect(await redis.pttl(key)).toBeLessThanOrEqual(5000);
    // One that never ends, and one of which there is the list alone.
    await redis.persist(key);
    await redis.rpush(`${keyPrefix}:list:messages`, '{"n":1}');
    for (const id of ['s', 'list']) {
      await store.setMetadata(id, { c: 1 });
      expect(await redis.pttl(`${keyPrefix}:${id}`), id).toBe(-1);
    }
  });

  it('leaves no field behind when its last member goes [SESS-375]', async () => {
    const store = open();
    await store.setMetadata('s', { a: 1 });
    expect(await redis.hexists(key, '_meta')).toBe(1);
    await store.setMetadata('s', { a: null });
    expect(await redis.hexists(key, '_meta')).toBe(0);
  });

  it.each(['no JSON', '[1]', 'null', '"text"', '5'])(
    'of somebody else, %s, is none, and is replaced [SESS-375]',
    async (text) => {
      const store = open();
      await redis.hset(key, { session_id: 's', _meta: text });
      expect(await store.get('s')).toEqual({ sessionId: 's', itemCount: 0 });
      await store.setMetadata('s', { a: 1 });
      expect((await store.get('s'))?.metadata).toEqual({ a: 1 });
    },
  );

  it.each([
    ['hash', ''],
    ['list', ':messages'],
    ['string', ':counter'],
  ])(
    'is refused where the key of the %s is of another type, and nothing is changed [SESS-221, 375]',
    async (_, end) => {
      const store = open();
      await (end === ':counter' ? redis.rpush(key + end, 'mine') : redis.set(key + end, 'mine'));
      await expect(store.setMetadata('s', { a: 1 })).rejects.toMatchObject({
        name: 'SessionSchemaError',
        sessionId: 's',
      });
      expect(await redis.keys(`${keyPrefix}*`)).toEqual([key + end]);
    },
  );
});

describe.each(['lua', 'multi'] as const)('fields of a session, by %s', (scripting) => {
  const open = () => new RedisSession<object>('s', { client: redis, keyPrefix, scripting });

  it('have both times after an operation of no items made them [SESS-015, 221]', async () => {
    await open().applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: [] } });
    const { session_id, created_at, updated_at } = await redis.hgetall(key);
    expect([session_id, updated_at]).toEqual(['s', created_at]);
    expect(created_at).toMatch(/^\d{10}$/);
  });

  it.each(['theirs', '-1', '1.5', '12345678901234567'])(
    'count changes anew where the count, %s, is none of ours [SESS-221, 232]',
    async (count) => {
      const session = open();
      await session.addItems([{ n: 1 }, { n: 2 }]);
      await redis.hset(key, '_ver', count);
      const { version } = await session.readHistory(0);
      expect(version).toMatch(/^0:2:/);
      const next = await session.appendIfVersion(version, [{ n: 3 }]);
      expect(next).toMatch(/^\d{16}:3:/);
      await redis.hset(key, '_ver', count);
      expect(await session.popItem()).toEqual({ n: 3 });
    },
  );
});
