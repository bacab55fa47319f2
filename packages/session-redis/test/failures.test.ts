import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { startServer } from '@agents/testkit';
import type { RunningServer } from '@agents/testkit';
import { Cluster, Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { TestCluster } from './cluster.ts';

const user = (content: string) => ({ role: 'user', content }) as const;
const users = (...contents: readonly string[]) => contents.map(user);
const PASSWORD = 'correct-horse';
const WRONG = 'battery-staple';
const SECRET = 'what-the-user-said';

type Session = RedisSession<object>;
const changes: Readonly<Record<string, (session: Session, version: string) => Promise<unknown>>> = {
  append: (session) => session.addItems(users(SECRET)),
  operation: (session) =>
    session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users('3'), replacement: users(SECRET, SECRET) },
    }),
  replace: (session) => session.replaceHistory(users(SECRET)),
  pop: (session) => session.popItem(),
  clear: (session) => session.clearSession(),
  appendIfVersion: (session, version) => session.appendIfVersion(version, users(SECRET)),
};

/** No error of ours, and nothing that a log shows of it is an item or a password. */
function discreet(error: unknown): Error {
  expect(error).toBeInstanceOf(Error);
  const { name, constructor } = error as Error;
  expect(`${name} ${constructor.name}`).not.toMatch(/Session|AnswerLost/);
  const text = `${inspect(error, { depth: 8 })} ${JSON.stringify(error)}`;
  for (const secret of [PASSWORD, WRONG, SECRET]) expect(text).not.toContain(secret);
  return error as Error;
}

/** What the call rejects with. */
async function failure(work: () => Promise<unknown>): Promise<Error> {
  const error: unknown = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return discreet(error);
}

const servers: RunningServer[] = [];
const clients: Redis[] = [];
async function start(...args: readonly (string | number)[]): Promise<RunningServer> {
  const server = await startServer('redis', { args });
  servers.push(server);
  return server;
}
function connect(server: RunningServer): Redis {
  const client = new Redis(server.port);
  clients.push(client);
  return client;
}
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  for (const server of servers.splice(0)) await server.stop();
});

/** Every change but these fails with this error, of the server; what is stored stays. */
async function refuses(session: Session, seen: Session, message: RegExp, but: readonly string[] = []): Promise<void> {
  const before = await seen.readHistory();
  for (const [name, change] of Object.entries(changes)) {
    if (but.includes(name)) continue;
    const error = await failure(() => change(session, before.version));
    expect(error.name).toBe('ReplyError');
    expect(`${name}: ${error.message}`).toMatch(message);
    expect(await seen.readHistory()).toEqual(before);
  }
  // The connection is good for the next call.
  expect(await session.getItems()).toEqual(before.items);
}

describe.each(['lua', 'multi'] as const)('changes by %s', (scripting) => {
  it('are refused by a replica, with its error [SESS-151, 228]', async () => {
    const master = await start();
    const writer = connect(master);
    const replica = await start('--replicaof', '127.0.0.1', master.port);
    const seen = new RedisSession<object>('s', { client: writer });
    await seen.addItems(users('1', '2', '3'));
    expect(await writer.wait(1, 30_000)).toBe(1);
    await using session = new RedisSession<object>('s', { url: replica.url, scripting });
    await refuses(session, seen, /READONLY/);
  });

  it('are refused where the disk is full, with the error of the server [SESS-151]', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'session-redis-full-'));
    mkdirSync(join(folder, 'appendonlydir'));
    // The log of what was written lies on a device that is full.
    symlinkSync('/dev/full', join(folder, 'appendonlydir', 'appendonly.aof.1.incr.aof'));
    const server = await startServer('redis', { folder, args: ['--appendonly', 'yes', '--appendfsync', 'everysec'] });
    servers.push(server);
    const client = connect(server);
    const seen = new RedisSession<object>('s', { client });
    // Taken into memory; only then the server sees that it cannot keep it.
    await seen.addItems(users('1', '2', '3'));
    await expect.poll(() => client.info('persistence')).toContain('aof_last_write_status:err');
    await using session = new RedisSession<object>('s', { url: server.url, scripting });
    await refuses(session, seen, /MISCONF .*No space left on device/);
    client.disconnect();
    await servers.pop()?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('that take memory are refused where there is none, with the error of the server; others go on [SESS-151]', async () => {
    const server = await start();
    const client = connect(server);
    const seen = new RedisSession<object>('s', { client });
    await seen.addItems(users('1', '2', '3'));
    await client.config('SET', 'maxmemory', '1mb');
    await using session = new RedisSession<object>('s', { url: server.url, scripting });
    await using store = new RedisSessionStore({ url: server.url, scripting });
    // A server without memory takes no transactions at all: by MULTI everything has to wait, but reads do not.
    const takeNone = scripting === 'lua' ? ['operation', 'replace', 'pop', 'clear'] : [];
    await refuses(session, seen, /OOM/, takeNone);
    expect(await session.getItems(2)).toEqual(users('2', '3'));
    expect(await store.get('s')).toMatchObject({ itemCount: 3 });
    let lines = 0;
    for await (const line of store.export('s')) lines += line.length > 0 ? 1 : 0;
    expect(lines).toBe(5);
    if (scripting === 'multi') return;
    expect(await session.popItem()).toEqual(user('3'));
    await session.clearSession();
    expect(await seen.getItems()).toEqual([]);
  });

  it('are refused to a user without the right to one of their commands, as a whole [SESS-006, 151, 221]', async () => {
    const server = await start();
    const client = connect(server);
    const seen = new RedisSession<object>('s', { client });
    await seen.addItems(users('1', '2', '3'));
    const login = async (rights: readonly string[], options: { ttlMs?: number }): Promise<Session> => {
      await client.call('ACL', 'SETUSER', 'guest', 'reset', 'on', `>${PASSWORD}`, '~*', ...rights);
      return new RedisSession<object>('s', {
        url: `redis://guest:${PASSWORD}@127.0.0.1:${server.port}`,
        scripting,
        ...options,
      });
    };
    const needed = ['rpush', 'ltrim', 'hset', 'hsetnx', 'pexpireat'];
    for (const rights of [
      ['+@read', '+@connection', '+multi', '+exec', '+info'],
      ...needed.map((name) => ['+@all', `-${name}`]),
    ]) {
      const session = await login(rights, { ttlMs: 60_000 });
      const before = await seen.readHistory();
      let refused = 0;
      for (const change of Object.values(changes)) {
        const answer = await change(session, before.version).then(
          () => undefined,
          (error: unknown) => discreet(error),
        );
        if (answer === undefined) {
          // It did not need the right.
          await seen.clearSession();
          await seen.replaceHistory(before.items);
          before.version = (await seen.readHistory(0)).version;
          continue;
        }
        refused++;
        expect(answer.message).toMatch(/NOPERM|ACL failure/);
        expect(await seen.readHistory()).toEqual(before);
      }
      expect(`${rights.join(' ')}: ${refused}`).not.toMatch(/: 0$/);
      expect(await session.getItems()).toEqual(before.items);
      await session.close();
    }
    // What is made anew ends when the other did.
    const [key, messages] = ['agents:session:s', 'agents:session:s:messages'];
    await client.pexpire(messages, 600_000);
    await client.del(key);
    const before = await client.lrange(messages, 0, -1);
    const session = await login(['+@all', '-pexpire'], {});
    for (const change of [() => session.popItem(), () => session.replaceHistory(users('new'))])
      await expect(change()).rejects.toThrow(/NOPERM|ACL failure/);
    expect([await client.lrange(messages, 0, -1), await client.exists(key)]).toEqual([before, 0]);
    await session.close();
  });

  it('are not even tried with a wrong password, which no log shows [SESS-151]', async () => {
    const server = await start('--requirepass', PASSWORD);
    const admin = new Redis(server.port, { password: PASSWORD });
    clients.push(admin);
    await using session = new RedisSession<object>('s', {
      url: `redis://:${WRONG}@127.0.0.1:${server.port}`,
      scripting,
    });
    for (const change of Object.values(changes))
      expect((await failure(() => change(session, '0'))).message).toMatch(/WRONGPASS/);
    await failure(() => session.getItems());
    const client = new Redis(server.port, { password: WRONG, retryStrategy: () => null });
    client.on('error', () => {});
    clients.push(client);
    await failure(() => new RedisSession<object>('s', { client, scripting }).addItems(users(SECRET)));
    await using store = new RedisSessionStore({ url: `redis://:${WRONG}@127.0.0.1:${server.port}`, scripting });
    for (const call of [() => store.list(), () => store.delete('s'), () => store.setMetadata('s', { a: SECRET })])
      await failure(call);
    expect(await admin.keys('*')).toEqual([]);
    // Nothing hangs about: there is the administrator alone.
    await session.close();
    await store.close();
    await expect
      .poll(
        async () =>
          String(await admin.client('LIST'))
            .trim()
            .split('\n').length,
      )
      .toBe(1);
  });
});

it('reads of a server without memory are of one moment [SESS-224]', async () => {
  const server = await start();
  const client = connect(server);
  const session = new RedisSession<object>('s', { client });
  await session.addItems(users('1', '2', '3'));
  const before = await session.readHistory();
  await client.config('SET', 'maxmemory', '1mb');
  const pipeline = client.pipeline.bind(client);
  const read = vi.spyOn(client, 'pipeline').mockImplementationOnce(() => {
    const commands = pipeline();
    const exec = commands.exec.bind(commands);
    // As if somebody had popped after the first look at the length.
    commands.exec = async () => (await exec())!.map((answer, at) => (at === 1 ? [null, 4] : answer));
    return commands;
  });
  expect(await session.readHistory()).toEqual(before);
  expect(read).toHaveBeenCalledTimes(2);
});

describe('on a cluster', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  it('a password that no node takes is not shown by the error of the client [SESS-151]', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }], {
      redisOptions: { username: 'nobody', password: WRONG },
      clusterRetryStrategy: () => null,
    });
    client.on('error', () => {});
    const session = new RedisSession<object>('s', { client });
    expect((await failure(() => session.addItems(users(SECRET)))).message).toMatch(/WRONGPASS|startup nodes|closed/);
    client.disconnect();
  });
});

describe('items of 10 MB', () => {
  it.each(['lua', 'multi'] as const)(
    'are appended, read, replaced and popped, by %s [SESS#48, SESS-160]',
    async (scripting) => {
      const server = await start();
      await using session = new RedisSession<object>('s', { url: server.url, scripting });
      const large = user('0123456789'.repeat(1_000_000));
      await session.addItems([large, user('small')]);
      await session.addItems([user('ü'.repeat(1_700_000))]);
      expect(await session.getItems(3)).toEqual([large, user('small'), user('ü'.repeat(1_700_000))]);
      expect(await session.popItem()).toEqual(user('ü'.repeat(1_700_000)));
      await session.replaceHistory([user('small'), large]);
      expect(await session.popItem()).toEqual(large);
      expect(await session.getItems()).toEqual(users('small'));
    },
  );
});
