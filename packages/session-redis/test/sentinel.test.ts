import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startServer } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { freshPrefix } from './redis.ts';

const folder = mkdtempSync(join(tmpdir(), 'session-redis-sentinel-'));
let servers: Awaited<ReturnType<typeof startServer>>[] = [];
let sentinelPort = 0;

beforeAll(async () => {
  const master = await startServer('redis');
  const replica = await startServer('redis', { args: ['--replicaof', '127.0.0.1', master.port] });
  const config = join(folder, 'sentinel.conf');
  writeFileSync(
    config,
    [
      `sentinel monitor chats 127.0.0.1 ${master.port} 1`,
      'sentinel down-after-milliseconds chats 1000',
      'sentinel failover-timeout chats 10000',
      '',
    ].join('\n'),
  );
  // Its file comes first, before the options that every server gets.
  const sentinel = await startServer('redis', { config, args: ['--sentinel'] });
  sentinelPort = sentinel.port;
  servers = [sentinel, replica, master];
}, 120_000);
afterAll(async () => {
  for (const server of servers) await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const user = (content: string) => ({ role: 'user', content });

it('a session whose connection is its own asks the sentinels of its options for the master, also after the connection broke [SESS-228]', async () => {
  const redisOptions = { sentinels: [{ host: '127.0.0.1', port: sentinelPort }], name: 'chats' };
  const keyPrefix = freshPrefix();
  // Nobody has this host: the sentinels say where the master is.
  const session = new RedisSession<object>('s', { url: 'redis://host.invalid:1', redisOptions, keyPrefix });
  const client = new Redis(redisOptions);
  await session.addItems([user('1')]);
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await expect.poll(() => session.ping(), { timeout: 60_000, interval: 100 }).toBe(true);
  await session.addItems([user('2')]);
  expect(await client.llen(`${keyPrefix}:s:messages`)).toBe(2);
  await session.close();
  client.disconnect();
});

it('a session goes on with the new master after a failover [SESS-228]', async () => {
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinelPort }], name: 'chats' });
  client.on('error', () => {});
  const session = new RedisSession<object>('s', { client, keyPrefix: freshPrefix() });
  await session.addItems([user('1'), user('2')]);
  // Redis replicates behind the acknowledgement: what is to be there after the failover has to have arrived.
  expect(await client.wait(1, 30_000)).toBe(1);
  const sentinel = new Redis(sentinelPort);
  const before = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'chats');
  await expect
    .poll(() => sentinel.call('SENTINEL', 'FAILOVER', 'chats').catch((error: Error) => error.message), {
      timeout: 60_000,
      interval: 200,
    })
    .toBe('OK');
  await expect
    .poll(() => sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'chats'), { timeout: 60_000, interval: 100 })
    .not.toEqual(before);
  // What the old master refuses as a replica is an answer: nothing was stored, and the next try is a new one.
  await expect
    .poll(
      () =>
        session.addItems([user('3')]).then(
          () => 'stored',
          (error: { message: string }) => error.message,
        ),
      { timeout: 60_000, interval: 100 },
    )
    .toBe('stored');
  expect(await session.getItems()).toEqual([user('1'), user('2'), user('3')]);
  expect(await session.popItem()).toEqual(user('3'));
  const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'chats')) as [string, string];
  const master = new Redis(Number(port));
  expect((await master.role())[0]).toBe('master');
  expect(await master.llen((await master.keys('*:messages'))[0]!)).toBe(2);
  for (const one of [client, sentinel, master]) one.disconnect();
});
