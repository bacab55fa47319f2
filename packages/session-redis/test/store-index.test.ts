import { SessionSchemaError } from '@agents/core/session';
import { CuttingProxy } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

let keyPrefix: string;
let index: string;
beforeEach(() => {
  keyPrefix = freshPrefix();
  index = `${keyPrefix}:__index`;
});

const user = (content: string) => ({ role: 'user' as const, content });
const open = (options: { scripting?: 'lua' | 'multi' } = {}, client = redis) =>
  new RedisSessionStore({ client, keyPrefix, index: true, ...options });
const idsOf = ({ sessions }: { sessions: { sessionId: string }[] }) => sessions.map(({ sessionId }) => sessionId);

describe('the index of a store', () => {
  it.each(['lua', 'multi'] as const)(
    'has the time of the server, whatever that of the process is, by %s [SESS-371]',
    async (scripting) => {
      const [before] = await redis.time();
      vi.useFakeTimers({ toFake: ['Date'], now: 0 });
      await open({ scripting })
        .session('s')
        .addItems([user('x')])
        .finally(() => vi.useRealTimers());
      const time = -Number(await redis.zscore(index, 's'));
      expect(time).toBeGreaterThanOrEqual(Number(before) * 1000);
      expect(time).toBeLessThan((Number(before) + 60) * 1000);
    },
  );

  it('keeps the order of the server among sessions of one time: that of the bytes of their ids [SESS-371, 372]', async () => {
    const store = open();
    // Of which the one with the smaller code unit has the greater bytes.
    const ids = ['a', '\uff5e', '😀'];
    for (const id of ids.toReversed()) await store.session(id).addItems([user('x')]);
    for (const id of ids) await redis.zadd(index, -5, id);
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({ limit: 1, ...(cursor !== undefined && { cursor }) });
      listed.push(...idsOf(page));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed).toEqual(ids);
  });

  it('keeps the entry of a session that was gone when a list saw it, and was made anew since [SESS-371]', async () => {
    const proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
    const client = new Redis(proxy.port);
    const store = open({}, client);
    await store.session('s').addItems([user('x')]);
    await redis.del(`${keyPrefix}:s`, `${keyPrefix}:s:messages`);
    await redis.zadd(index, -5, 's');
    proxy.stopNext(
      (forward) =>
        void open()
          .session('s')
          .addItems([user('y')])
          .then(forward),
      { matching: (request) => request.includes('evalsha') && request.includes(index) },
    );
    expect(idsOf(await store.list())).not.toContain('elsewhere');
    expect(await redis.zrange(index, '0', '-1')).toEqual(['s']);
    client.disconnect();
    await proxy.close();
  });

  it('is read by a user who may not write [SESS-371]', async () => {
    const store = open();
    for (const id of ['gone', 'there']) await store.session(id).addItems([user('x')]);
    await redis.del(`${keyPrefix}:gone`, `${keyPrefix}:gone:messages`);
    const name = `lister-${process.pid}`;
    await redis.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', '~*', '+@read', '+@connection', '+info');
    const client = new Redis(redisUrl(), { username: name, password: 'secret' });
    for (const scripting of ['lua', 'multi'] as const)
      expect(idsOf(await open({ scripting }, client).list())).toEqual(['there']);
    await client.quit();
    await redis.call('ACL', 'DELUSER', name);
  });

  it('passes over a session whose key became something else, last by the time that it was made, and a prune does [SESS-221, 371, 374]', async () => {
    const store = open();
    for (const id of ['a', 'b']) await store.session(id).addItems([user('x')]);
    await redis.set(`${keyPrefix}:a`, 'mine');
    const first = await store.list({ order: 'created', limit: 1 });
    expect(idsOf(first)).toEqual(['b']);
    expect(idsOf(await store.list({ order: 'created', limit: 1, cursor: first.cursor! }))).toEqual([]);
    for (const order of ['updated', 'created', 'id'] as const)
      expect(idsOf(await store.list({ order })), order).toEqual(['b']);
    expect(await store.prune({ olderThan: new Date(Date.now() + 60_000) })).toEqual({ sessions: 1, items: 1 });
    await expect(store.get('a')).rejects.toThrow(SessionSchemaError);
    expect(await redis.get(`${keyPrefix}:a`)).toBe('mine');
  });
});

describe('a scan of a store', () => {
  it.each(['none', 'session'] as const)(
    'leaves out what looks like a session and is none, with hash tags: %s [SESS-221, 371]',
    async (hashTag) => {
      const store = new RedisSessionStore({ client: redis, keyPrefix, hashTag });
      const [from, to] = hashTag === 'session' ? ['{', '}'] : ['', ''];
      await store.session('s').addItems([user('x')]);
      for (const name of [`${from}${to}`, ...(hashTag === 'session' ? ['{s}x', 'x', '{}'] : [])])
        await redis.hset(`${keyPrefix}:${name}`, 'session_id', 'x', 'updated_at', '1700000000');
      // The list of this one is something else.
      await redis.hset(`${keyPrefix}:${from}odd${to}`, 'session_id', 'odd');
      await redis.set(`${keyPrefix}:${from}odd${to}:messages`, 'mine');
      expect(idsOf(await store.list())).toEqual(['s']);
    },
  );

  it.each([{}, { index: true, order: 'created' } as const])(
    'fails when the connection breaks, and leaves nothing out for that %o [SESS-151, 371]',
    async ({ order, ...options }) => {
      const proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
      // It is there again for the commands that follow.
      const client = new Redis(proxy.port, { retryStrategy: () => 1, maxRetriesPerRequest: 0 });
      client.on('error', () => {});
      await open()
        .session('s')
        .addItems([user('x')]);
      const command = order === 'created' ? 'hget' : 'hmget';
      const cut = proxy.cutNext('reply', { matching: (request) => request.includes(`\r\n${command}\r\n`) });
      const store = new RedisSessionStore({ client, keyPrefix, ...options });
      await expect(store.list(order && { order })).rejects.toThrow(/max retries per request/);
      await cut;
      client.disconnect();
      await proxy.close();
    },
  );

  it('tells of a list that nobody made a hash for, when it is asked for that session [SESS-371]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await redis.rpush(`${keyPrefix}:s:messages`, '{"n":1}');
    expect(await store.get('s')).toEqual({ sessionId: 's', itemCount: 1 });
    expect(await new RedisSession('s', { client: redis, keyPrefix }).getItems()).toEqual([{ n: 1 }]);
    expect(await store.delete('s')).toBe(true);
  });

  it('takes times of whole and of parts of seconds, and no others [SESS-221, 371]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    const timesOf = async (created: string, updated: string): Promise<unknown[]> => {
      await redis.hset(`${keyPrefix}:s`, { session_id: 's', created_at: created, updated_at: updated });
      const { createdAt, updatedAt } = (await store.get('s')) ?? {};
      return [createdAt?.getTime(), updatedAt?.getTime()];
    };
    expect(await timesOf('1700000000', '1700000000.25')).toEqual([1_700_000_000_000, 1_700_000_000_250]);
    expect(await timesOf('yesterday', '1700000000 s')).toEqual([undefined, undefined]);
    expect(await timesOf('', '-1')).toEqual([undefined, undefined]);
  });
});
