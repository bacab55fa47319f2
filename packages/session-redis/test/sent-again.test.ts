import { CuttingProxy, startServer } from '@agents/testkit';
import type { Cut } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { isWrite } from './contract.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const user = (content: string) => ({ role: 'user', content }) as const;
const users = (...contents: readonly string[]) => contents.map(user);

let proxy: CuttingProxy;
/** As ioredis makes it by default: it sends again what was not answered. */
let client: Redis;
let keyPrefix: string;
/** By way of the client that sends again. */
let session: RedisSession<object>;
/** Of somebody else. */
let other: RedisSession<object>;

beforeEach(async () => {
  proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
  client = new Redis(proxy.port, { retryStrategy: () => 1 });
  client.on('error', () => {});
  keyPrefix = freshPrefix();
  session = new RedisSession<object>('s', { client, keyPrefix });
  other = new RedisSession<object>('s', { client: redis, keyPrefix });
  await other.addItems(users('1', '2', '3'));
  await session.getItems();
});
afterEach(async () => {
  client.disconnect();
  await proxy.close();
});

/**
 * The connection breaks at the change, others act, and the client comes back and sends the change again.
 *
 * @returns what it led to, an error by its code
 */
async function meanwhile<R>(cut: Cut, change: () => Promise<R>, act: () => Promise<unknown>): Promise<R | string> {
  const done = proxy.cutNext(cut, { matching: isWrite }).then(() => proxy.refuse(true));
  const result = change().catch((error: { code?: string }) => String(error.code));
  await done;
  await act();
  proxy.refuse(false);
  return await result;
}

const cuts: readonly Cut[] = ['middle', 'reply', 'answer'];

describe('a change that was made and is sent again', () => {
  it.each(cuts)(
    'a clear, cut at %s, does not remove what others appended in between [SESS-011, 224, 226]',
    async (cut) => {
      expect(
        await meanwhile(
          cut,
          () => session.clearSession(),
          () => other.addItems(users('4')),
        ),
      ).toBe('session_outcome_unknown');
      expect(await other.getItems()).toEqual(cut === 'middle' ? users('1', '2', '3', '4') : users('4'));
      await session.clearSession();
      expect(await other.getItems()).toEqual([]);
    },
  );

  it.each(cuts)('a clear, cut at %s, is done when nobody else wrote [SESS-224, 226]', async (cut) => {
    expect(
      await meanwhile(
        cut,
        () => session.clearSession(),
        async () => {},
      ),
    ).toBeUndefined();
    expect(await redis.keys(`${keyPrefix}*`)).toEqual([]);
  });

  it.each(cuts)('a pop, cut at %s, takes no second item, be it the same again [SESS-010, 224, 226]', async (cut) => {
    const act = async (): Promise<void> => {
      await other.clearSession();
      await other.addItems(users('1', '2', '3'));
    };
    expect(await meanwhile(cut, () => session.popItem(), act)).toBe('session_outcome_unknown');
    expect(await other.getItems()).toEqual(users('1', '2', '3'));
  });

  it('a pop that 65 others came after takes no second item [SESS-010, 224, 226]', async () => {
    const act = async (): Promise<void> => {
      for (let n = 0; n < 65; n++) await other.addItems(users(String(n)));
    };
    expect(await meanwhile('reply', () => session.popItem(), act)).toBe('session_outcome_unknown');
    expect(await other.getItems()).toHaveLength(2 + 65);
  });

  it.each(cuts)(
    'a replacement, cut at %s, does not remove what others wrote in between [SESS-225, 226]',
    async (cut) => {
      const act = async (): Promise<void> => {
        await other.clearSession();
        await other.addItems(users('4'));
      };
      const replace = () => session.replaceHistory(users('new'), { operationId: 'op' });
      expect(await meanwhile(cut, replace, act)).toBe('session_outcome_unknown');
      expect(await other.getItems()).toEqual(users('4'));
    },
  );

  it('a replacement of the end is not made on the same end of another history [SESS-225, 226]', async () => {
    const act = async (): Promise<void> => {
      await other.clearSession();
      await other.addItems(users('1', '2', '3'));
    };
    const transaction = { type: 'replace_suffix', expectedSuffix: users('3'), replacement: users('4') } as const;
    const change = () => session.applyHistoryTransaction({ operationId: 'op', transaction });
    expect(await meanwhile('reply', change, act)).toBe('session_outcome_unknown');
    expect(await other.getItems()).toEqual(users('1', '2', '3'));
  });

  it('an append at a version is no conflict when its memory is gone, but unknown [SESS-037, 151, 226]', async () => {
    const { version } = await session.readHistory(0);
    const act = async (): Promise<void> => {
      for (let n = 0; n < 65; n++) await other.addItems(users(String(n)));
    };
    expect(await meanwhile('reply', () => session.appendIfVersion(version, users('4')), act)).toBe(
      'session_outcome_unknown',
    );
    expect(await other.getItems()).toHaveLength(4 + 65);
  });

  it('an append is unknown when the second answer is an error [SESS-151, 226]', async () => {
    const key = `${keyPrefix}:s`;
    const act = async (): Promise<void> => {
      expect(await other.getItems()).toEqual(users('1', '2', '3', '4'));
      await redis.del(key);
      await redis.set(key, 'mine');
    };
    expect(await meanwhile('reply', () => session.addItems(users('4')), act)).toBe('session_outcome_unknown');
    // Sent once, the answer tells.
    await expect(session.addItems(users('5'))).rejects.toMatchObject({ code: 'session_schema' });
    await redis.del(key, `${key}:messages`);
  });

  it('an append is unknown when the server refuses it the second time, for whatever reason [SESS-151, 226]', async () => {
    const name = `again-${process.pid}`;
    await redis.call('ACL', 'SETUSER', name, 'reset', 'on', 'nopass', '~*', '+@all');
    client.disconnect();
    client = new Redis(proxy.port, { retryStrategy: () => 1, username: name, password: 'any' });
    client.on('error', () => {});
    session = new RedisSession<object>('s', { client, keyPrefix });
    await session.getItems();
    const act = () => redis.call('ACL', 'SETUSER', name, '-hset');
    expect(await meanwhile('reply', () => session.addItems(users('4')), act)).toBe('session_outcome_unknown');
    expect(await other.getItems()).toEqual(users('1', '2', '3', '4'));
    await expect(session.addItems(users('5'))).rejects.toThrow(/^NOPERM/);
    client.disconnect();
    await redis.call('ACL', 'DELUSER', name);
  });

  it('an append is unknown when the server forgot the script, and its text could not be sent [SESS-226]', async () => {
    // One of its own: on the one that tests share others bring the script again.
    const server = await startServer('redis');
    const there = new Redis(server.port);
    client.disconnect();
    await proxy.close();
    proxy = await CuttingProxy.start(server.port);
    client = new Redis(proxy.port, { retryStrategy: () => 1 });
    client.on('error', () => {});
    session = new RedisSession<object>('s', { client, keyPrefix });
    other = new RedisSession<object>('s', { client: there, keyPrefix });
    await other.addItems(users('1', '2', '3'));
    await session.getItems();
    const sendCommand: Redis['sendCommand'] = client.sendCommand.bind(client);
    vi.spyOn(client, 'sendCommand').mockImplementation((command, stream) =>
      command.name === 'eval' ? Promise.reject(new Error('Connection is closed.')) : sendCommand(command, stream),
    );
    const act = () => there.script('FLUSH');
    expect(await meanwhile('reply', () => session.addItems(users('4')), act)).toBe('session_outcome_unknown');
    expect(await other.getItems()).toEqual(users('1', '2', '3', '4'));
    client.disconnect();
    await there.quit();
    await server.stop();
  });

  it('an append is made once when the server forgot the script in between [SESS-221, 226]', async () => {
    expect(
      await meanwhile(
        'reply',
        () => session.addItems(users('4')),
        () => redis.script('FLUSH'),
      ),
    ).toBeUndefined();
    expect(await other.getItems()).toEqual(users('1', '2', '3', '4'));
  });

  it('a deletion of a store counts what it removed the first time [SESS-226, 374]', async () => {
    const store = new RedisSessionStore({ client, keyPrefix });
    expect(
      await meanwhile(
        'reply',
        () => store.delete('s'),
        async () => {},
      ),
    ).toBe(true);
    expect(await store.delete('s')).toBe(false);
    await other.addItems(users('1', '2'));
    await redis.hset(`${keyPrefix}:s`, 'updated_at', '1700000000');
    const prune = () => store.prune({ olderThan: new Date(1_700_000_001_000) });
    expect(await meanwhile('reply', prune, async () => {})).toEqual({ sessions: 1, items: 2 });
  });

  it('a deletion of what is idle is unknown when the session is used again [SESS-226, 374]', async () => {
    const store = new RedisSessionStore({ client, keyPrefix });
    await redis.hset(`${keyPrefix}:s`, 'updated_at', '1700000000');
    const prune = () => store.prune({ olderThan: new Date(1_700_000_001_000) });
    expect(await meanwhile('reply', prune, () => other.addItems(users('4')))).toBe('session_outcome_unknown');
    expect(await other.getItems()).toEqual(users('4'));
  });
});
