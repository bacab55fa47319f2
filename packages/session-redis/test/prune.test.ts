import { CuttingProxy } from '@agents/testkit';
import { Cluster, Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';

import { RedisSessionStore } from '../src/index.ts';
import { TestCluster } from './cluster.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());
afterEach(() => {
  vi.restoreAllMocks();
});

const user = (content: string) => ({ role: 'user' as const, content });
/** Of which all are older. */
const LATER = { olderThan: new Date(Date.now() + 3_600_000) };

/** How often each command was sent from now on, and how many of it waited for an answer at once. */
function counted(): { sent: Map<string, number>; atOnce: Map<string, number> } {
  const [sent, atOnce, waiting] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  type Send = (this: Redis, ...args: Parameters<Redis['sendCommand']>) => unknown;
  const send: Send = Reflect.get(Redis.prototype, 'sendCommand');
  const add = (to: Map<string, number>, name: string, by: number): number => {
    const sum = (to.get(name) ?? 0) + by;
    to.set(name, sum);
    return sum;
  };
  vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, stream) {
    const { name } = command;
    add(sent, name, 1);
    atOnce.set(name, Math.max(add(waiting, name, 1), atOnce.get(name) ?? 0));
    const over = (): void => void add(waiting, name, -1);
    command.promise.then(over, over);
    return send.call(this, command, stream);
  });
  return { sent, atOnce };
}

async function filled(store: RedisSessionStore, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, at) => store.session(`s${at}`).addItems([user('1'), user('2')])));
}

describe('prune', () => {
  it('removes sessions some at once, with three commands each and no item read [SESS-374]', async () => {
    const store = new RedisSessionStore({ client: redis, keyPrefix: freshPrefix(), index: true });
    await filled(store, 120);
    // So that the server has the script.
    expect(await store.delete('none')).toBe(false);
    const { sent, atOnce } = counted();
    expect(await store.prune(LATER)).toEqual({ sessions: 120, items: 240 });
    expect(atOnce.get('hexists')).toBe(50);
    const perSession = ['hexists', 'evalsha', 'lrange', 'multi', 'eval'].map((name) => sent.get(name) ?? 0);
    expect(perSession).toEqual([120, 120, 0, 0, 0]);
  });

  it.each(['lua', 'multi'] as const)(
    'leaves a session that is used after it was listed, by %s [SESS-374]',
    async (scripting) => {
      const proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
      const client = new Redis(proxy.port);
      const keyPrefix = freshPrefix();
      const store = new RedisSessionStore({ client, keyPrefix, scripting });
      const others = new RedisSessionStore({ client: redis, keyPrefix });
      await filled(others, 3);
      for (const at of [0, 1, 2]) await redis.hset(`${keyPrefix}:s${at}`, 'updated_at', 1);
      // One before it is looked at, one between that and its removal.
      for (const [id, command] of [
        ['s1', 'hexists'],
        ['s2', scripting === 'lua' ? 'evalsha' : 'watch'],
      ] as const)
        proxy.stopNext(
          (forward) =>
            void others
              .session(id)
              .addItems([user('3')])
              .then(forward),
          {
            matching: (request) => request.includes(command) && request.includes(`${keyPrefix}:${id}`),
          },
        );
      expect(await store.prune({ idleForMs: 60_000 })).toEqual({ sessions: 1, items: 2 });
      for (const id of ['s1', 's2']) expect(await others.session(id).getItems()).toHaveLength(3);
      client.disconnect();
      await proxy.close();
    },
  );

  it('tells of a removal that got no answer, not of another that was refused [SESS-151, 374]', async () => {
    const proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
    const client = new Redis(proxy.port, { retryStrategy: () => null, maxRetriesPerRequest: 0 });
    client.on('error', () => {});
    const keyPrefix = freshPrefix();
    // Of the index a page has all three; a scan may give them one by one, between the keys of others.
    const store = new RedisSessionStore({ client, keyPrefix, index: true });
    await filled(new RedisSessionStore({ client: redis, keyPrefix, index: true }), 3);
    // The first one becomes something else before it is looked at.
    proxy.stopNext(
      (forward) => {
        const list = `${keyPrefix}:s0:messages`;
        void redis.multi().del(list).set(list, 'x').exec().then(forward);
      },
      { matching: (request) => request.includes('hexists') && request.includes(`${keyPrefix}:s0`) },
    );
    const cut = proxy.cutNext('reply', {
      matching: (request) => request.includes('evalsha') && request.includes(`${keyPrefix}:s2`),
    });
    await expect(store.prune(LATER)).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    await cut;
    client.disconnect();
    await proxy.close();
  });

  it('removes those of all masters of a cluster, some at once [SESS-227, 374]', async () => {
    const cluster = await TestCluster.start();
    const client = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }]);
    const store = new RedisSessionStore({ client, keyPrefix: freshPrefix() });
    await filled(store, 60);
    const { sent, atOnce } = counted();
    expect(await store.prune(LATER)).toEqual({ sessions: 60, items: 120 });
    expect(sent.get('evalsha')).toBe(60);
    // A scan gives those of one master after the other.
    expect(atOnce.get('hexists')).toBeGreaterThan(10);
    vi.restoreAllMocks();
    expect(await store.list()).toMatchObject({ sessions: [] });
    client.disconnect();
    await cluster.stop();
  });
});
