import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Agent, jsonSchema, tool } from '@agents/core';
import { SessionClosedError } from '@agents/core/session';
import { bothForms, ScriptedModel, toolCall } from '@agents/core/testing';
import { CuttingProxy, freePort, startProcess, startServer } from '@agents/testkit';
import type { Cut } from '@agents/testkit';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import { isWrite } from './contract.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const user = (content: string) => ({ role: 'user', content });
const users = (...contents: readonly string[]) => contents.map(user);
const empty = jsonSchema({ type: 'object', properties: {}, required: [], additionalProperties: false });
const ways = [['lua'], ['multi']] as const;

let proxy: CuttingProxy;
beforeEach(async () => {
  proxy = await CuttingProxy.start(Number(new URL(redisUrl()).port));
});
afterEach(() => proxy.close());
const proxied = (): string => `redis://127.0.0.1:${proxy.port}`;

describe.each(ways)('a client that sends again what was not answered, by %s', (scripting) => {
  it.each<Cut>(['middle', 'sent', 'reply', 'answer'])(
    'changes a session once, cut at %s [SESS#3, SESS-226]',
    async (cut) => {
      const client = new Redis(proxy.port, { retryStrategy: () => 1 });
      client.on('error', () => {});
      const keyPrefix = freshPrefix();
      const session = new RedisSession<object>('s', { client, keyPrefix, scripting });
      /** By MULTI a change fails, for what is watched goes with the connection; its id settles it. To repeat it does no harm. */
      const change = async (work: () => Promise<unknown>): Promise<unknown> => {
        const done = proxy.cutNext(cut, { matching: isWrite });
        const failed = await work().then(
          () => undefined,
          (error: { code?: string }) => error.code,
        );
        expect(failed).toBe(scripting === 'multi' ? 'session_outcome_unknown' : undefined);
        await done;
        return await work();
      };
      const append = (operationId: string, items: object[]) => () =>
        session.applyHistoryTransaction({ operationId, transaction: { type: 'append_items', items } });
      await change(append('1', users('1', '2')));
      await change(append('2', users('3')));
      expect(await session.getItems()).toEqual(users('1', '2', '3'));
      await change(() =>
        session.applyHistoryTransaction({
          operationId: '3',
          transaction: { type: 'replace_suffix', expectedSuffix: users('3'), replacement: users('4', '5') },
        }),
      );
      expect(await session.getItems()).toEqual(users('1', '2', '4', '5'));
      await change(() => session.replaceHistory(users('6', '7', '8'), { operationId: '4' }));
      expect(await session.getItems()).toEqual(users('6', '7', '8'));
      client.disconnect();
    },
  );
});

it.each<Cut>(['middle', 'sent', 'reply', 'answer'])(
  'a client that sends again pops one item and appends one batch, without an id of the caller, cut at %s [SESS#3, SESS-224, 226]',
  async (cut) => {
    const client = new Redis(proxy.port, { retryStrategy: () => 1 });
    client.on('error', () => {});
    const session = new RedisSession<object>('s', { client, keyPrefix: freshPrefix() });
    const first = proxy.cutNext(cut, { matching: isWrite });
    await session.addItems(users('1', '2', '3'));
    await first;
    const second = proxy.cutNext(cut, { matching: isWrite });
    expect(await session.popItem()).toEqual(user('3'));
    await second;
    expect(await session.getItems()).toEqual(users('1', '2'));
    client.disconnect();
  },
);

it('a client that sends again has its read, when a part of the answer was all that came [SESS-224, 226]', async () => {
  const client = new Redis(proxy.port, { retryStrategy: () => 1 });
  client.on('error', () => {});
  const session = new RedisSession<object>('s', { client, keyPrefix: freshPrefix() });
  await session.addItems(users('1', '2'));
  const cut = proxy.cutNext('answer', { matching: (request) => request.includes('lrange') });
  expect(await session.getItems()).toEqual(users('1', '2'));
  await cut;
  client.disconnect();
});

it.each([
  ['a second time, the third answer is read', 2, users('1', '2')],
  ['a third time, the failure is told', 3, 'AbortError'],
])('of answers that are torn %s [SESS-224]', async (_, torn, result) => {
  const client = new Redis(proxy.port, { retryStrategy: () => 1 });
  client.on('error', () => {});
  const session = new RedisSession<object>('s', { client, keyPrefix: freshPrefix() });
  await session.addItems(users('1', '2'));
  const cutting = (async () => {
    for (let cut = 0; cut < torn; cut++)
      await proxy.cutNext('answer', { matching: (request) => request.includes('lrange') });
  })();
  expect(await session.getItems().catch((error: Error) => error.name)).toEqual(result);
  await cutting;
  client.disconnect();
});

bothForms((runForm, form) =>
  it(`a run on a default client whose answer is lost stores each batch once and succeeds (${form}) [SESS#3, SESS-102, 226]`, async () => {
    const client = new Redis(proxy.port);
    client.on('error', () => {});
    const session = new RedisSession('s', { client, keyPrefix: freshPrefix() });
    const look = tool({ name: 'look', description: 'Looks.', parameters: empty, execute: () => 'seen' });
    const model = new ScriptedModel([[toolCall('look', {})], 'done']);
    const cut = proxy.cutNext('reply', { matching: isWrite });
    const { finalOutput } = await runForm(new Agent({ name: 'A', model, tools: [look] }), 'hello', { session });
    await cut;
    expect(finalOutput).toBe('done');
    expect((await session.getItems()).map((item) => ('type' in item ? item.type : 'input'))).toEqual([
      'input',
      'function_call',
      'function_call_output',
      'message',
    ]);
    client.disconnect();
  }),
);

describe.each(ways)('a connection of its own, by %s', (scripting) => {
  const open = (url: string, more = {}): RedisSession<object> =>
    new RedisSession<object>('s', { url, keyPrefix: freshPrefix(), scripting, ...more });

  it('tells at once that an answer was lost, and connects again for the next call [SESS-226, G2, G3]', async () => {
    await using session = open(proxied());
    await session.addItems(users('1'));
    const cut = proxy.cutNext('reply', { matching: isWrite });
    const operation = {
      operationId: 'op',
      transaction: { type: 'append_items', items: users('2') },
    } as const;
    await expect(session.applyHistoryTransaction(operation)).rejects.toMatchObject({
      code: 'session_outcome_unknown',
      operation: 'append',
      operationId: 'op',
      sessionId: 's',
    });
    await cut;
    await session.applyHistoryTransaction(operation);
    expect(await session.getItems()).toEqual(users('1', '2'));
  });

  it('fails with the error of the driver while nothing was sent, and goes on when the server is there [SESS-151]', async () => {
    const port = await freePort();
    await using session = open(`redis://user:secret@127.0.0.1:${port}`, { redisOptions: { connectTimeout: 2000 } });
    const calls = [
      () => session.addItems(users('1')),
      () => session.popItem(),
      () => session.clearSession(),
      () => session.getItems(),
      () => session.replaceHistory([]),
    ];
    for (const call of calls) {
      const error = await call().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ code: 'ECONNREFUSED' });
      expect(String(error)).not.toContain('secret');
    }
    expect(await session.ping()).toBe(false);
    const server = await startServer('redis', { port, args: ['--user', 'user', 'on', '>secret', '~*', '+@all'] });
    expect(await session.ping()).toBe(true);
    await session.addItems(users('1'));
    expect(await session.getItems()).toEqual(users('1'));
    await session.close();
    await server.stop();
  });

  it('has the options of ioredis that were given, before its own [SESS-228, SESS-226]', async () => {
    const tries: number[] = [];
    const retryStrategy = (times: number): number | null => {
      tries.push(times);
      return times < 3 ? 1 : null;
    };
    const url = `redis://127.0.0.1:${await freePort()}`;
    const session = new RedisSession<object>('s', { url, redisOptions: { retryStrategy, maxRetriesPerRequest: 5 } });
    await expect(session.getItems()).rejects.toThrow(/closed|ECONNREFUSED|retries/);
    expect(tries).toEqual([1, 2, 3]);
    await session.close();
  });

  it('fails with the error of the server for a wrong password, which nobody gets to see [SESS-151]', async () => {
    const server = await startServer('redis', { args: ['--requirepass', 'right'] });
    for (const password of ['wrong-secret', undefined]) {
      const auth = password === undefined ? '' : `:${password}@`;
      const session = open(`redis://${auth}127.0.0.1:${server.port}`);
      for (const call of [() => session.addItems(users('1')), () => session.getItems()]) {
        const error = (await call().then(
          () => undefined,
          (reason: unknown) => reason,
        )) as Error;
        expect(error.name).toBe('ReplyError');
        expect(error.message).toMatch(/^(WRONGPASS|NOAUTH)/);
        expect(JSON.stringify([error.message, error.stack])).not.toContain('wrong-secret');
      }
      await session.close();
    }
    await server.stop();
  });

  it('bounds calls in time: a change has an unknown outcome, a read just failed [SESS-156]', async () => {
    await using session = open(proxied(), { operationTimeoutMs: 300 });
    await session.addItems(users('1'));
    proxy.silence(true);
    await expect(session.addItems(users('2'))).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    await expect(session.getItems()).rejects.toMatchObject({ code: 'session_error' });
    expect(await session.ping()).toBe(false);
    proxy.silence(false);
    proxy.cutAll();
    await expect.poll(() => session.ping()).toBe(true);
    expect(await session.getItems()).toEqual(users('1'));
  });

  it('is made at the first call and gone after close, final for every call [SESS#74, SESS-018, 154]', async () => {
    const name = `conn-${freshPrefix()}`;
    const count = async (): Promise<number> =>
      String(await redis.client('LIST'))
        .split('\n')
        .filter((line) => line.includes(`name=${name} `)).length;
    const session = open(redisUrl(), { redisOptions: { connectionName: name } });
    expect(await count()).toBe(0);
    await session.addItems(users('1'));
    expect(await count()).toBeGreaterThan(0);
    const last = session.addItems(users('2'));
    await Promise.all([session.close(), session.close()]);
    await last;
    await expect.poll(count).toBe(0);
    await expect(session.addItems([])).rejects.toThrow(SessionClosedError);
    await expect(session.ping()).rejects.toThrow(SessionClosedError);
    await open(redisUrl()).close();
  });
});

it('calls of a session and of a store end after 30 seconds where nothing else was said [SESS-156]', async () => {
  const client = new Redis(proxy.port);
  client.on('error', () => {});
  const keyPrefix = freshPrefix();
  const session = new RedisSession<object>('s', { client, keyPrefix });
  const store = new RedisSessionStore({ client, keyPrefix });
  await session.getItems();
  proxy.silence(true);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const failed = Promise.all(
    [() => session.getItems(), () => session.addItems(users('1')), () => store.list(), () => store.delete('s')].map(
      async (call) => await call().catch((error: Error) => error.message + String(error.cause)),
    ),
  );
  await vi.advanceTimersByTimeAsync(120_000);
  vi.useRealTimers();
  for (const text of await failed) expect(text).toContain('within 30000 ms');
  client.disconnect();
});

it.each([
  ['close', '0'],
  ['leave', 'left'],
])('connections of sessions let the process end, after %s [H6, SESS-157]', async (how, said) => {
  const script = new URL('processes/linger.ts', import.meta.url);
  const child = startProcess(script, redisUrl(), freshPrefix(), how);
  expect(await child.ended).toBe(0);
  expect(child.lines()).toEqual([said]);
});

it.each(['session', 'store'])(
  'closes a %s while its server stands still and a read is under way: the process ends [SESS-154, 157]',
  { timeout: 60_000 },
  async (what) => {
    const server = await startServer('redis');
    const child = startProcess(new URL('processes/close.ts', import.meta.url), server.url, what);
    expect(await child.ended).toBe(0);
    expect(child.lines()).toEqual(['SessionError']);
    await server.stop();
  },
);

it('a close that fails leaves the session closed, and can be tried again [H4, SESS-154]', async () => {
  const session = new RedisSession<object>('s', {
    url: redisUrl(),
    keyPrefix: freshPrefix(),
    redisOptions: { retryStrategy: () => null },
  });
  await session.addItems(users('1'));
  const disconnect = vi.spyOn(Redis.prototype, 'disconnect').mockImplementationOnce(() => {
    throw new Error('will not go');
  });
  await expect(session.close()).rejects.toThrow('will not go');
  expect(session.closed).toBe(true);
  await expect(session.getItems()).rejects.toThrow(SessionClosedError);
  await session.close();
  expect(disconnect).toHaveBeenCalledTimes(2);
  disconnect.mockRestore();
});

it('10 000 sessions on one client are one connection, and closing them closes nothing [SESS#74, SESS-018, 154, H3]', async () => {
  const client = new Redis(redisUrl(), { connectionName: `many-${process.pid}` });
  const keyPrefix = freshPrefix();
  const sessions = Array.from({ length: 10_000 }, (_, index) => new RedisSession(`s${index}`, { client, keyPrefix }));
  await Promise.all(sessions.slice(0, 50).map((session) => session.getItems()));
  const list = String(await redis.client('LIST'));
  expect(list.split('\n').filter((line) => line.includes(`name=many-${process.pid} `))).toHaveLength(1);
  await Promise.all(sessions.map((session) => session.close()));
  expect(sessions[0]!.closed).toBe(false);
  expect(await sessions[0]!.ping()).toBe(true);
  await client.quit();
});

it('an expired certificate is told as the driver tells it [SESS-151]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'session-redis-tls-'));
  const file = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'ignore', cwd: folder });
  openssl(
    'req',
    '-new',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    'key.pem',
    '-out',
    'csr.pem',
    '-subj',
    '/CN=localhost',
  );
  openssl('x509', '-req', '-in', 'csr.pem', '-signkey', 'key.pem', '-days', '-1', '-out', 'cert.pem');
  const tlsPort = await freePort();
  const server = await startServer('redis', {
    args: [
      '--tls-port',
      tlsPort,
      '--tls-cert-file',
      file('cert.pem'),
      '--tls-key-file',
      file('key.pem'),
      '--tls-ca-cert-file',
      file('cert.pem'),
      '--tls-auth-clients',
      'no',
    ],
  });
  const session = new RedisSession<object>('s', {
    url: `rediss://:secret@127.0.0.1:${tlsPort}`,
    redisOptions: { tls: { ca: readFileSync(file('cert.pem')) } },
  });
  await expect(session.addItems(users('1'))).rejects.toMatchObject({ code: 'CERT_HAS_EXPIRED' });
  await expect(session.getItems()).rejects.toMatchObject({ code: 'CERT_HAS_EXPIRED' });
  await session.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});
