import { SessionError } from '@agents/core/session';
import { CuttingProxy } from '@agents/testkit';
import type { Cut } from '@agents/testkit';
import { Cluster, Redis } from 'ioredis';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { RedisSessionStore } from '../src/index.ts';
import { TestCluster } from './cluster.ts';
import { isWrite } from './contract.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

/** More than two parts of 500. */
const COUNT = 1203;
const items = Array.from({ length: COUNT }, (_, n) => ({ role: 'user' as const, content: `item ${n}` }));

let keyPrefix: string;
beforeEach(() => {
  keyPrefix = freshPrefix();
});

async function linesOf(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}
async function* stream<T>(values: readonly T[], between?: (at: number) => Promise<unknown>): AsyncGenerator<T> {
  for (const [at, value] of values.entries()) {
    await between?.(at);
    yield value;
  }
}
/** Lists that lie beside sessions. */
const beside = () => redis.keys(`${keyPrefix}*:ops`);

describe.each([{}, { scripting: 'multi' } as const, { hashTag: 'session' } as const])(
  'a long history, %s',
  (options) => {
    it('is exported, imported and copied part by part, and nothing is left lying [SESS-373, 376]', async () => {
      const client = new Redis(redisUrl());
      const store = new RedisSessionStore({ client, keyPrefix, ...options });
      await store.session('s').addItems(items);
      const sizes: number[] = [];
      const sent = vi.spyOn(client, 'sendCommand').mockImplementation(function (this: Redis, command, stream_) {
        const result = Redis.prototype.sendCommand.call(this, command, stream_) as Promise<unknown>;
        sizes.push(command.args.length);
        return result.then((reply) => {
          if (Array.isArray(reply)) sizes.push(reply.length);
          return reply;
        });
      });
      const lines = await linesOf(store.export('s'));
      expect(lines).toHaveLength(COUNT + 2);
      expect(await store.import('imported', stream(lines))).toBe(COUNT);
      await store.fork('s', 'forked');
      await store.fork('s', 'cut', { untilTurn: 1001 });
      // Without scripts an import is one write.
      const most = options.scripting === 'multi' ? COUNT + 10 : 520;
      expect(Math.max(...sizes)).toBeLessThanOrEqual(most);
      sent.mockRestore();
      for (const id of ['imported', 'forked']) expect(await store.session(id).getItems()).toEqual(items);
      expect(await store.session('cut').getItems()).toEqual(items.slice(0, 1000));
      await store.import('imported', stream(lines), { ifExists: 'append' });
      expect((await store.session('imported').getItems()).slice(COUNT)).toEqual(items);
      await store.import('imported', stream(lines), { ifExists: 'replace' });
      expect(await store.session('imported').getItems()).toEqual(items);
      expect(await beside()).toEqual([]);
      await client.quit();
    });
  },
);

describe('what is read in parts', () => {
  it('is of one moment, whatever others do meanwhile [SESS-373, 376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await store.session('s').addItems(items);
    const lines: string[] = [];
    const copies: string[] = [];
    const lives: number[] = [];
    for await (const line of store.export('s')) {
      if (lines.push(line) !== 3) continue;
      copies.push(...(await beside()));
      for (const copy of copies) lives.push(await redis.pttl(copy));
      await store.session('s').clearSession();
      await store.session('s').addItems(items.slice(0, 5));
    }
    expect(lines).toHaveLength(COUNT + 2);
    expect(copies).toHaveLength(1);
    expect(lives[0]).toBeGreaterThan(0);
    expect(await beside()).toEqual([]);
  });

  it('is let go of by who does not read on [SESS-376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await store.session('s').addItems(items);
    for await (const line of store.export('s')) if (line.includes('item 600')) break;
    await expect.poll(beside).toEqual([]);
  });

  it('is told when its copy is gone before it was read [SESS-376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await store.session('s').addItems(items);
    const reading = (async () => {
      for await (const line of store.export('s')) if (line.includes('item 400')) await redis.del(await beside());
    })();
    await expect(reading).rejects.toMatchObject({ code: 'session_version_conflict' });
  });

  it('is read at once where the server makes no copy [SESS-376]', async () => {
    const name = `reader-${process.pid}`;
    await redis.call(
      'ACL',
      'SETUSER',
      name,
      'on',
      '>secret',
      '~*',
      '+@read',
      '+@connection',
      '+multi',
      '+exec',
      '+info',
    );
    const client = new Redis(redisUrl(), { username: name, password: 'secret' });
    await new RedisSessionStore({ client: redis, keyPrefix }).session('s').addItems(items);
    expect(await linesOf(new RedisSessionStore({ client, keyPrefix }).export('s'))).toHaveLength(COUNT + 2);
    await client.quit();
    await redis.call('ACL', 'DELUSER', name);
  });
});

describe('what is imported in parts', () => {
  const exported = async (): Promise<string[]> => {
    const store = new RedisSessionStore({ client: redis, keyPrefix: freshPrefix() });
    await store.session('s').addItems(items);
    return await linesOf(store.export('s'));
  };

  it('is seen by nobody before it is whole, and has an end if it never is [SESS-376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix, ttlMs: 60_000 });
    const seen: unknown[] = [];
    const look = async (at: number): Promise<void> => {
      if (at !== 1100) return;
      seen.push(await store.get('s'), (await store.list()).sessions);
      const [staged] = await beside();
      expect(await redis.llen(staged!)).toBe(1000);
      expect(await redis.pttl(staged!)).toBeGreaterThan(0);
    };
    expect(await store.import('s', stream(await exported(), look))).toBe(COUNT);
    expect(seen).toEqual([undefined, []]);
    expect(await store.get('s')).toMatchObject({ itemCount: COUNT });
    // Life and times are those of any other session.
    for (const key of [`${keyPrefix}:s`, `${keyPrefix}:s:messages`])
      expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
    expect(await redis.pttl(`${keyPrefix}:s:messages`)).toBeGreaterThan(0);
  });

  it('has no end where sessions have none, keeps one that was there, and begins another version [SESS-223, 232, 376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    const lines = await exported();
    await store.import('s', stream(lines));
    const messages = `${keyPrefix}:s:messages`;
    expect(await redis.pttl(messages)).toBe(-1);
    const { version } = await store.session('s').readHistory(0);
    await redis.pexpire(messages, 50_000);
    await store.import('s', stream(lines), { ifExists: 'replace' });
    expect(await redis.pttl(messages)).toBeGreaterThan(0);
    expect((await store.session('s').readHistory(0)).version).not.toBe(version);
  });

  it('is refused when somebody else made the session meanwhile, and goes [SESS-376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    const make = (at: number) => (at === COUNT ? store.session('s').addItems(items.slice(0, 1)) : Promise.resolve());
    await expect(store.import('s', stream(await exported(), make))).rejects.toThrow(SessionError);
    expect(await store.session('s').getItems()).toEqual(items.slice(0, 1));
    expect(await beside()).toEqual([]);
  });

  it('is refused when what was staged is gone [SESS-376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    const lines = await exported();
    for (const when of [700, COUNT + 1]) {
      const drop = async (at: number) => (at === when ? redis.del(await beside()) : undefined);
      await expect(store.import('s', stream(lines, drop))).rejects.toThrow(/is gone; nothing was stored/);
      expect(await store.get('s')).toBeUndefined();
    }
  });

  it('is refused where a key is of another type, and changes nothing [SESS-221, 376]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix });
    await redis.set(`${keyPrefix}:s:counter`, '1');
    await redis.hset(`${keyPrefix}:s:messages`, 'mine', '1');
    await expect(store.import('s', stream(await exported()), { ifExists: 'replace' })).rejects.toMatchObject({
      code: 'session_schema',
    });
    expect(await redis.hgetall(`${keyPrefix}:s:messages`)).toEqual({ mine: '1' });
  });

  it.each([
    ['rename', 'replace'],
    ['persist', 'replace'],
    ['lrange', 'append'],
  ] as const)(
    'is refused as a whole to a user without the right to %s what was staged [SESS-221, 376]',
    async (command, ifExists) => {
      const session = new RedisSessionStore({ client: redis, keyPrefix }).session('s');
      await session.addItems(items.slice(0, 2));
      const name = `importer-${process.pid}`;
      await redis.call('ACL', 'SETUSER', name, 'reset', 'on', '>secret', '~*', '+@all', `-${command}`);
      const client = new Redis(redisUrl(), { username: name, password: 'secret' });
      const store = new RedisSessionStore({ client, keyPrefix });
      const lines = stream(await exported());
      await expect(store.import('s', lines, { ifExists })).rejects.toThrow(/NOPERM/);
      expect(await session.getItems()).toEqual(items.slice(0, 2));
      await client.quit();
      await redis.call('ACL', 'DELUSER', name);
    },
  );

  describe('over a connection that breaks', () => {
    let proxy: CuttingProxy;
    let client: Redis;
    beforeEach(async () => {
      proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
      client = new Redis(proxy.port, { retryStrategy: () => 1 });
      client.on('error', () => {});
    });
    afterEach(async () => {
      client.disconnect();
      await proxy.close();
    });

    it.each<[Cut, number, string]>(
      (['middle', 'sent', 'reply', 'answer'] as const).flatMap((cut) => [
        [cut, 1, 'append'],
        [cut, 2, 'append'],
        [cut, 4, 'create'],
        [cut, 4, 'replace'],
        [cut, 4, 'append'],
      ]),
    )('each part is stored once, cut at %s of request %i, to %s [SESS-226, 376]', async (cut, nth, how) => {
      const store = new RedisSessionStore({ client, keyPrefix });
      const lines = await exported();
      const before = how === 'create' ? [] : items.slice(0, 2);
      await new RedisSessionStore({ client: redis, keyPrefix }).session('s').addItems(before);
      let count = 0;
      const done = proxy.cutNext(cut, { matching: (request) => isWrite(request) && ++count === nth });
      const ifExists = how === 'create' ? 'fail' : (how as 'replace' | 'append');
      expect(await store.import('s', stream(lines), { ifExists })).toBe(COUNT);
      await done;
      expect(await store.session('s').getItems()).toEqual(how === 'append' ? [...before, ...items] : items);
      expect(await beside()).toEqual([]);
    });

    it('an import that was made, and cleared before it was sent again, has an unknown outcome [SESS-226, 376]', async () => {
      const store = new RedisSessionStore({ client, keyPrefix });
      const lines = await exported();
      let count = 0;
      const matching = (request: Buffer): boolean => isWrite(request) && ++count === 4;
      const done = proxy.cutNext('reply', { matching }).then(() => proxy.refuse(true));
      const imported = store.import('s', stream(lines)).catch((error: { code?: string }) => error.code);
      await done;
      const other = new RedisSessionStore({ client: redis, keyPrefix });
      expect(await other.get('s')).toMatchObject({ itemCount: COUNT });
      await other.delete('s');
      proxy.refuse(false);
      expect(await imported).toBe('session_outcome_unknown');
      expect(await other.get('s')).toBeUndefined();
    });

    it('a part that is lost is the error of the driver: nobody saw anything of it [SESS-151, 376]', async () => {
      client.disconnect();
      client = new Redis(proxy.port, { retryStrategy: () => null, maxRetriesPerRequest: 0 });
      client.on('error', () => {});
      const store = new RedisSessionStore({ client, keyPrefix });
      const lines = await exported();
      const cut = proxy.cutNext('reply', { matching: isWrite });
      await expect(store.import('s', stream(lines))).rejects.toThrow(/^Connection is closed\.$/);
      await cut;
      expect(await new RedisSessionStore({ client: redis, keyPrefix }).get('s')).toBeUndefined();
    });

    it('calls of the store end in time: a change has an unknown outcome, others just fail [SESS-156]', async () => {
      const store = new RedisSessionStore({ client, keyPrefix, operationTimeoutMs: 200 });
      await store.session('s').addItems(items.slice(0, 1));
      proxy.silence(true);
      for (const call of [
        () => store.list(),
        () => store.get('s'),
        () => store.check(),
        () => linesOf(store.export('s')),
        () => store.import('t', stream([])),
        () => store.fork('s', 't'),
      ])
        await expect(call()).rejects.toMatchObject({
          code: 'session_error',
          message: expect.stringContaining('200 ms'),
        });
      for (const call of [() => store.delete('s'), () => store.setMetadata('s', { a: 1 })])
        await expect(call()).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    });
  });
});

it('a long history is copied on a cluster, from one slot to another [SESS-227, 373]', async () => {
  const cluster = await TestCluster.start();
  const client = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }]);
  const store = new RedisSessionStore({ client, keyPrefix });
  await store.session('a').addItems(items);
  for (const id of ['b', 'c', 'd']) {
    await store.fork('a', id);
    expect(await store.session(id).getItems()).toEqual(items);
  }
  client.disconnect();
  await cluster.stop();
});
