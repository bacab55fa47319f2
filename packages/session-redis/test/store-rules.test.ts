import { SessionClosedError } from '@agents/core/session';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const client = new Redis(redisUrl());
afterAll(() => client.quit());

const user = (content: string) => ({ role: 'user' as const, content });

describe('the key of the index of a store', () => {
  it('is that of no session: else no list would work any more [SESS-137, SESS-371]', async () => {
    const keyPrefix = freshPrefix();
    const store = new RedisSessionStore({ client, keyPrefix, index: true });
    const refusal = { code: 'session_id_invalid', message: expect.stringContaining("'__index'") as string };
    expect(() => new RedisSession('__index', { client, keyPrefix })).toThrow(expect.objectContaining(refusal));
    expect(() => store.session('__index')).toThrow(expect.objectContaining(refusal));
    await expect(store.setMetadata('__index', { a: 1 })).rejects.toMatchObject(refusal);
    await store.session('__index:a').addItems([user('x')]);
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual(['__index:a']);
  });

  it('counts for nothing where ids stand in braces', async () => {
    const session = new RedisSession('__index', { client, keyPrefix: freshPrefix(), hashTag: 'session' });
    await session.addItems([user('x')]);
    expect(await session.getItems()).toHaveLength(1);
  });
});

describe.each(['lua', 'multi'] as const)('a store of its own connection, by %s', (scripting) => {
  it('ends its sessions with it: none connects again where nobody would close it', async () => {
    const store = new RedisSessionStore({ url: redisUrl(), keyPrefix: freshPrefix(), scripting });
    const session = store.session('s');
    await session.addItems([user('x')]);
    await store.close();
    for (const call of [() => session.getItems(), () => session.addItems([user('y')]), () => session.popItem()])
      await expect(call()).rejects.toThrow(SessionClosedError);
    expect(await session.ping()).toBe(false);
  });
});
