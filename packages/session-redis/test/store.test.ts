import { inspect } from 'node:util';

import { configureLogging, UserError } from '@agents/core';
import type { LogRecord } from '@agents/core';
import { SessionClosedError } from '@agents/core/session';
import { sessionStoreContract } from '@agents/core/testing';
import type { SessionStoreFixture } from '@agents/core/testing';
import { startServer } from '@agents/testkit';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { TestCluster } from './cluster.ts';
import { noSkip } from './contract.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const user = (content: string) => ({ role: 'user', content }) as const;

type Options = Omit<ConstructorParameters<typeof RedisSessionStore>[0], 'client' | 'url'>;

/** Ages by the fields of the hash, and by the score of the index. */
async function age(client: Redis | Cluster, prefix: string, key: string, id: string, ms: number): Promise<void> {
  for (const field of ['created_at', 'updated_at']) {
    const seconds = Number(await client.hget(key, field));
    await client.hset(key, field, String(seconds - Math.round(ms / 1000)));
  }
  if ((await client.zscore(`${prefix}:__index`, id)) !== null) await client.zincrby(`${prefix}:__index`, ms, id);
}

const ways: readonly (readonly [string, Options & { clientPrefix?: string }])[] = [
  ['by a scan', {}],
  ['with an index', { index: true }],
  ['by MULTI, with an index', { index: true, scripting: 'multi', clientPrefix: 'cl[i]ent:*' }],
  ['with tags and a prefix that is a pattern', { hashTag: 'session', keyPrefix: 'a*[b]?\\' }],
];

describe.each(ways)(
  'contract of stores, %s [SESS-371, 373, 374, 375, 376]',
  (_name, { clientPrefix = '', ...options }) => {
    const make = async (): Promise<SessionStoreFixture> => {
      const keyPrefix = freshPrefix() + (options.keyPrefix ?? '');
      const client = clientPrefix === '' ? redis : new Redis(redisUrl(), { keyPrefix: clientPrefix });
      const keyOf = (id: string): string => `${keyPrefix}:${options.hashTag === 'session' ? `{${id}}` : id}`;
      return {
        open: () => new RedisSessionStore({ client, ...options, keyPrefix }),
        age: (id, ms) => age(client, keyPrefix, keyOf(id), id, ms),
        ordered: options.index === true,
        dispose: async () => void (client === redis ? undefined : await client.quit()),
      };
    };
    // A client that was handed in stays open; orders are those of the index.
    const elsewhere = options.index === true ? /^(S2)$/ : /^(S2|L2|L3|L7)$/;
    it.each(sessionStoreContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
      await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
    });
  },
);

describe('contract of stores, with a connection of its own [SESS-154, 391]', () => {
  const make = (): SessionStoreFixture => {
    const keyPrefix = freshPrefix();
    return {
      open: () => new RedisSessionStore({ url: redisUrl(), keyPrefix }),
      age: (id, ms) => age(redis, keyPrefix, `${keyPrefix}:${id}`, id, ms),
      ordered: false,
    };
  };
  it.each(sessionStoreContract(make).filter(({ id }) => !/^(L2|L3|L7)$/.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('on a cluster', () => {
  let cluster: TestCluster;
  let client: Cluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
    client = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }]);
  });
  afterAll(async () => {
    client.disconnect();
    await cluster.stop();
  });

  it.each([false, true])(
    'sessions of all masters are listed, copied and pruned (index: %s) [SESS-371, 373]',
    async (index) => {
      const keyPrefix = freshPrefix();
      const store = new RedisSessionStore({ client, keyPrefix, index });
      const ids = Array.from({ length: 30 }, (_, at) => `s${at}`);
      for (const id of ids) await store.session(id).addItems([user(id), user('2')]);
      await store.fork('s1', 'copy');
      const listed = new Set<string>();
      let cursor: string | undefined;
      do {
        const page = await store.list({ limit: 7, withCount: true, ...(cursor === undefined ? {} : { cursor }) });
        for (const { sessionId, itemCount } of page.sessions) {
          listed.add(sessionId);
          expect(itemCount).toBe(2);
        }
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect([...listed].toSorted()).toEqual([...ids, 'copy'].toSorted());
      expect(await store.prune({ maxItems: 1 })).toEqual({ sessions: 0, items: 31 });
      expect(await store.delete('s1')).toBe(true);
      expect(await store.get('s1')).toBeUndefined();
      const advice = await store.check();
      for (const port of cluster.ports)
        expect(advice).toContainEqual(expect.stringMatching(new RegExp(`appendonly.*\\(127\\.0\\.0\\.1:${port}\\)$`)));
    },
  );
});

describe('a store', () => {
  it('lists what Python wrote, and nothing else that lies under the prefix [SESS-371]', async () => {
    const keyPrefix = freshPrefix();
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await redis.hset(`${keyPrefix}:py`, { session_id: 'py', created_at: '1700000000', updated_at: '1700000100' });
    await redis.rpush(`${keyPrefix}:py:messages`, '{"role":"user","content":"hi"}');
    await redis.set(`${keyPrefix}:py:counter`, '1');
    await redis.hset(`${keyPrefix}:foreign`, 'a', '1');
    await redis.hset(`${keyPrefix}:x:messages`, 'session_id', 'x:messages');
    const { sessions } = await store.list({ withCount: true });
    expect(sessions).toEqual([
      {
        sessionId: 'py',
        createdAt: new Date(1_700_000_000_000),
        updatedAt: new Date(1_700_000_100_000),
        itemCount: 1,
      },
    ]);
  });

  it('keeps metadata in the hash, beside what others put there [SESS-375]', async () => {
    const keyPrefix = freshPrefix();
    const store = new RedisSessionStore({ client: redis, keyPrefix, ttlMs: 60_000 });
    await store.setMetadata('s', { title: 'x' });
    expect(await redis.hget(`${keyPrefix}:s`, '_meta')).toBe('{"title":"x"}');
    expect(await redis.pttl(`${keyPrefix}:s`)).toBeGreaterThan(0);
    expect((await store.get('s'))?.expiresAt?.getTime()).toBeGreaterThan(Date.now());
    await Promise.all(Array.from({ length: 10 }, (_, n) => store.setMetadata('s', { [`n${n}`]: n })));
    expect(Object.keys((await store.get('s'))!.metadata!)).toHaveLength(11);
  });

  it.each([{}, { scripting: 'multi' } as const])(
    'forgets sessions of its index that are gone, and only these %s [IL-051]',
    async (options) => {
      const keyPrefix = freshPrefix();
      const store = new RedisSessionStore({ client: redis, keyPrefix, index: true, ttlMs: 600, ...options });
      for (let n = 0; n < 20; n++) await store.session(`s${n}`).addItems([user('x')]);
      await store.setMetadata('kept', { a: 1 });
      await redis.persist(`${keyPrefix}:kept`);
      expect(await redis.zcard(`${keyPrefix}:__index`)).toBe(21);
      await expect.poll(() => redis.keys(`${keyPrefix}:s*`), { timeout: 60_000 }).toEqual([]);
      const { sessions } = await store.list();
      expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['kept']);
      expect(await redis.zrange(`${keyPrefix}:__index`, '0', '-1')).toEqual(['kept']);
    },
  );

  it('lists sessions that it has no entry for behind the others [SESS-371]', async () => {
    const keyPrefix = freshPrefix();
    const store = new RedisSessionStore({ client: redis, keyPrefix, index: true });
    await new RedisSession('other', { client: redis, keyPrefix }).addItems([user('x')]);
    await store.session('mine').addItems([user('x')]);
    const listed = (await store.list()).sessions.map(({ sessionId }) => sessionId);
    expect(listed).toEqual(['mine', 'other']);
  });

  it('does not fail a write that is stored because its index cannot be written [G6, SESS-152]', async () => {
    const keyPrefix = freshPrefix();
    const warn = vi.fn<(record: LogRecord) => void>();
    configureLogging({ sink: warn });
    await redis.set(`${keyPrefix}:__index`, 'not a sorted set');
    const store = new RedisSessionStore({ client: redis, keyPrefix, index: true });
    await store.session('s').addItems([user('x')]);
    await store.setMetadata('s', { a: 1 });
    expect(await store.session('s').getItems()).toEqual([user('x')]);
    configureLogging({ sink: null });
    expect(warn.mock.calls.length).toBeGreaterThan(0);
    expect(JSON.stringify(warn.mock.calls)).not.toContain('content');
  });

  it('shares one connection with its sessions, which do not close it [SESS-018, 154]', async () => {
    const name = `store-${process.pid}`;
    const count = async (): Promise<number> =>
      String(await redis.client('LIST'))
        .split('\n')
        .filter((line) => line.includes(`name=${name} `)).length;
    const store = new RedisSessionStore({
      url: redisUrl(),
      keyPrefix: freshPrefix(),
      redisOptions: { connectionName: name },
    });
    const sessions = Array.from({ length: 20 }, (_, n) => store.session(`s${n}`));
    await Promise.all(sessions.map((session) => session.addItems([user('x')])));
    expect(await count()).toBe(1);
    await sessions[0]!.close();
    expect(await sessions[0]!.getItems()).toHaveLength(1);
    await store.close();
    await expect.poll(count).toBe(0);
    await expect(store.list()).rejects.toThrow(SessionClosedError);
  });

  it('gives its options to its sessions, beside the settings that one is asked for with [SESS-153, 156, 391]', async () => {
    const told = vi.fn<() => void>();
    const keyPrefix = freshPrefix();
    const store = new RedisSessionStore({
      client: redis,
      keyPrefix,
      onCorruptItem: told,
      sessionSettings: { limit: 2 },
    });
    await redis.rpush(`${keyPrefix}:s:messages`, 'corrupt', '{"n":1}', '{"n":2}', '{"n":3}');
    expect(await store.session('s').getItems()).toEqual([{ n: 2 }, { n: 3 }]);
    expect(await store.session('s', { sessionSettings: { limit: 4 } }).getItems()).toHaveLength(3);
    expect(told).toHaveBeenCalledOnce();
  });

  it('is opened by its address, which no error shows [SESS-391]', async () => {
    const store = RedisSessionStore.open(redisUrl());
    expect(await store.get(`none-${Date.now()}`)).toBeUndefined();
    await store.close();
    for (const url of ['http://user:secret@host', 'redis:', 'redis://a:secret@host:port']) {
      const open = () => RedisSessionStore.open(url);
      expect(open).toThrow(UserError);
      expect(open).toThrow(/^(?!.*secret)/);
    }
    for (const url of ['redis://:secret@localhost', 'rediss://:secret@localhost']) {
      const one: unknown = RedisSessionStore.open(url);
      for (const text of [JSON.stringify(one), String(one), inspect(one)]) expect(text).not.toContain('secret');
    }
    expect(() => new RedisSessionStore({ client: redis, index: 1 } as never)).toThrow(/'index'/);
  });

  it.each([{}, { index: true }])('lists ids without the prefix of the client: %o [SESS-229]', async (options) => {
    const keyPrefix = freshPrefix();
    const [client, other] = ['cl[i]ent:*', 'cl[i]ent:*2'].map((prefix) => new Redis(redisUrl(), { keyPrefix: prefix }));
    const store = new RedisSessionStore({ client: client!, keyPrefix, ...options });
    await store.session('by the store').addItems([user('x')]);
    await new RedisSession('alone', { client: client!, keyPrefix }).addItems([user('x')]);
    await new RedisSession('elsewhere', { client: other!, keyPrefix }).addItems([user('x')]);
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId).toSorted()).toEqual([
      'alone',
      'by the store',
    ]);
    expect(await redis.exists(`cl[i]ent:*${keyPrefix}:alone`)).toBe(1);
    await Promise.all([client!.quit(), other!.quit()]);
  });

  it.each([{}, { index: true }])(
    'lists ids without the prefix that `redisOptions` give its own connection: %o [SESS-229]',
    async (options) => {
      const keyPrefix = freshPrefix();
      const own = { url: redisUrl(), redisOptions: { keyPrefix: 'cl[i]ent:*' }, keyPrefix };
      await using store = new RedisSessionStore({ ...own, ...options });
      await store.session('by the store').addItems([user('x')]);
      await using alone = new RedisSession('alone', own);
      await alone.addItems([user('x')]);
      const ids = (await store.list()).sessions.map(({ sessionId }) => sessionId);
      expect(ids.toSorted()).toEqual(['alone', 'by the store']);
      expect(await redis.exists(`cl[i]ent:*${keyPrefix}:alone`)).toBe(1);
    },
  );

  it.each([
    ['numbers as texts', { stringNumbers: true }],
    ['commands gathered', { enableAutoPipelining: true }],
    ['RESP3 with its own shapes', { protocol: 3, replyMapping: 'resp3' }],
  ] as const)('is the same by a client with %s [SESS-230]', async (_name, clientOptions) => {
    const client = new Redis(redisUrl(), clientOptions);
    for (const scripting of ['lua', 'multi'] as const) {
      const keyPrefix = freshPrefix();
      const store = new RedisSessionStore({ client, keyPrefix, scripting, ttlMs: 60_000, index: true });
      for (const id of ['a', 'b', 'c']) await store.session(id).addItems([user('1'), user('2')]);
      await store.setMetadata('a', { title: 'x' });
      const known = { itemCount: 2, metadata: { title: 'x' }, expiresAt: expect.any(Date) as Date };
      expect(await store.get('a')).toMatchObject(known);
      for (const order of ['id', 'updated', 'created'] as const) {
        const first = await store.list({ order, limit: 2 });
        const second = await store.list({ order, limit: 2, cursor: first.cursor! });
        const ids = [...first.sessions, ...second.sessions].map(({ sessionId }) => sessionId);
        expect(ids.toSorted(), order).toEqual(['a', 'b', 'c']);
      }
      await new RedisSession('d', { client, keyPrefix }).addItems([user('1')]);
      expect((await store.list()).sessions.at(-1)?.sessionId).toBe('d');
      await store.fork('a', 'copy');
      expect(await store.prune({ maxItems: 1 })).toEqual({ sessions: 0, items: 4 });
      expect((await store.check()).join('\n')).not.toMatch(/cannot be read|undefined|object/);
    }
    await client.quit();
  });

  it('gives no advice on a server that is not there, or lets it not in [SESS-231]', async () => {
    const server = await startServer('redis', { args: ['--requirepass', 'right'] });
    const adviceOf = async (url: string): Promise<string[]> => {
      await using store = RedisSessionStore.open(url);
      return await store.check();
    };
    const { host } = new URL(server.url);
    await expect(adviceOf(`redis://:wrong@${host}`)).rejects.toThrow(/WRONGPASS/);
    await expect(adviceOf(`redis://${host}`)).rejects.toThrow(/NOAUTH/);
    await server.stop();
    await expect(adviceOf(`redis://:right@${host}`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('tells what of the settings an operator should change [SESS-231]', async () => {
    const lax = await startServer('redis', { args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] });
    const careful = await startServer('redis', { durable: true });
    const adviceOf = async (url: string): Promise<string[]> => {
      await using store = RedisSessionStore.open(url);
      return await store.check();
    };
    expect(await adviceOf(lax.url)).toEqual([
      expect.stringMatching(/^maxmemory-policy is allkeys-lru \(maxmemory 104857600\)/),
      expect.stringMatching(/^appendonly is no and save is off/),
    ]);
    expect(await adviceOf(careful.url)).toEqual([]);
    const operator = new Redis(lax.url);
    // Also a policy that takes keys with a time to live alone: sessions may have one.
    await operator.config('SET', 'maxmemory-policy', 'volatile-ttl');
    await operator.config('SET', 'save', '60 1000');
    expect(await adviceOf(lax.url)).toEqual([
      expect.stringMatching(/^maxmemory-policy is volatile-ttl \(maxmemory 104857600\)/),
      expect.stringMatching(/^appendonly is no \(save 60 1000\)/),
    ]);
    await operator.config('SET', 'maxmemory-policy', 'noeviction');
    await operator.config('SET', 'appendonly', 'yes');
    expect(await adviceOf(lax.url)).toEqual([expect.stringMatching(/^appendfsync is everysec/)]);
    await operator.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await operator.config('SET', 'maxmemory', '0');
    expect((await adviceOf(lax.url))[0]).toMatch(/^maxmemory-policy is allkeys-lru \(maxmemory 0\)/);
    await operator.config('SET', 'maxmemory-policy', 'noeviction');
    // Redis does not stop while it writes its first append-only file.
    await operator.config('SET', 'appendonly', 'no');
    await operator.acl('SETUSER', 'default', '-config');
    expect(await adviceOf(lax.url)).toEqual([expect.stringMatching(/^The settings cannot be read \(CONFIG GET\)/)]);
    await operator.quit();
    await Promise.all([lax.stop(), careful.stop()]);
  });
});

describe('a prefix of keys', () => {
  it('is taken as it is spelled, also where it looks like a pattern; NUL alone is refused [SESS-159]', async () => {
    const base = freshPrefix();
    const pattern = new RedisSessionStore({ client: redis, keyPrefix: `${base}a*[b]?\\` });
    const other = new RedisSessionStore({ client: redis, keyPrefix: `${base}axxb1\\` });
    await pattern.session('mine').addItems([user('hi')]);
    await other.session('theirs').addItems([user('ho')]);
    expect((await pattern.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(['mine']);
    expect((await other.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(['theirs']);
    expect(() => new RedisSessionStore({ client: redis, keyPrefix: 'a\0b' })).toThrow(UserError);
    expect(() => new RedisSession('s', { client: redis, keyPrefix: 'a\0b' })).toThrow(/'keyPrefix' of RedisSession/u);
  });
});
