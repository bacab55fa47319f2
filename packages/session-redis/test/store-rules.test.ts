import { SessionClosedError } from '@agents/core/session';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';

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

describe('a page of a store with an index', () => {
  it.each([
    ['updated', 0],
    ['id', 0],
    // Of all it asks for the time, once.
    ['created', 40],
  ] as const)('asks about the sessions that it has, and no others: by %s [SESS-372]', async (order, times) => {
    const store = new RedisSessionStore({ client, keyPrefix: freshPrefix(), index: true });
    const ids = Array.from({ length: 40 }, (_, index) => `s${String(index).padStart(2, '0')}`);
    for (const id of ids) await store.session(id).addItems([user(id)]);
    const asked: number[] = [];
    const alone: number[] = [];
    const listed: string[] = [];
    const sent = vi.spyOn(Redis.prototype, 'sendCommand');
    try {
      let cursor: string | undefined;
      do {
        sent.mockClear();
        const page = await store.list({ order, limit: 10, ...(cursor !== undefined && { cursor }) });
        listed.push(...page.sessions.map(({ sessionId }) => sessionId));
        asked.push(sent.mock.calls.filter(([command]) => command.name === 'hmget').length);
        alone.push(sent.mock.calls.filter(([command]) => command.name === 'hget').length);
        cursor = page.cursor;
      } while (cursor !== undefined);
    } finally {
      sent.mockRestore();
    }
    expect(listed.toSorted()).toEqual(ids);
    // The last one looks for sessions that the index does not have.
    expect(asked).toEqual([10, 10, 10, 10, 0]);
    expect(alone).toEqual([times, times, times, times, 0]);
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
    await expect(session.ping()).rejects.toThrow(SessionClosedError);
  });
});
