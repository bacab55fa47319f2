import type { SessionFixture } from '@agents/core/testing';
import { sessionContract } from '@agents/core/testing';
import { CuttingProxy } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import type { RedisSessionOptions } from '../src/index.ts';
import { isWrite, noSkip } from './contract.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const plain = new Redis(redisUrl());
afterAll(() => plain.quit());

const waysToWrite: readonly [string, RedisSessionOptions][] = [
  ['Lua', {}],
  ['MULTI', { scripting: 'multi' }],
  ['a time to live', { ttlMs: 60_000, keyPrefix: 'it:{s} odd*' }],
];

describe.each(waysToWrite)('contract, with a client that was handed in, by %s [SESS-342]', (_name, options) => {
  const make = async (): Promise<SessionFixture> => {
    const keyPrefix = (options.keyPrefix ?? '') + freshPrefix();
    const proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
    const client = new Redis(proxy.port, { maxRetriesPerRequest: 0, retryStrategy: () => 1 });
    client.on('error', () => {});
    return {
      open: (id, more) => new RedisSession<object>(id, { client, ...options, keyPrefix, ...more }),
      addCorrupt: async (id, record) => void (await plain.rpush(`${keyPrefix}:${id}:messages`, record)),
      failNext: (when) => void proxy.cutNext(when === 'before' ? 'before' : 'reply', { matching: isWrite }),
      async dispose() {
        client.disconnect();
        await proxy.close();
      },
    };
  };
  it.each(sessionContract(make).filter(({ id }) => id !== 'H2'))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

describe('contract, with a connection of its own [SESS-342]', () => {
  const make = (): SessionFixture => {
    const keyPrefix = freshPrefix();
    const opened: RedisSession<object>[] = [];
    return {
      open(id, more) {
        const session = new RedisSession<object>(id, { url: redisUrl(), keyPrefix, ...more });
        opened.push(session);
        return session;
      },
      addCorrupt: async (id, record) => void (await plain.rpush(`${keyPrefix}:${id}:messages`, record)),
      async dispose() {
        await Promise.all(opened.map((session) => session.close()));
      },
    };
  };
  const elsewhere = /^(G|H3)/;
  it.each(sessionContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});
