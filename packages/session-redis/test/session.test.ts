import { once } from 'node:events';

import { UserError } from '@agents/core';
import { SessionSchemaError, SessionVersionConflictError } from '@agents/core/session';
import { Cluster, Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';

import { RedisSession, RedisSessionStore } from '../src/index.ts';
import type { RedisSessionOptions } from '../src/index.ts';
import { freshPrefix, redisUrl } from './redis.ts';

const redis = new Redis(redisUrl());
afterAll(() => redis.quit());

const user = (content: string) => ({ role: 'user', content });
const users = (...contents: readonly string[]) => contents.map(user);

interface Subject {
  readonly session: RedisSession<object>;
  /** Names of the keys. */
  readonly key: string;
  readonly messages: string;
  readonly counter: string;
  readonly prefix: string;
  readonly open: (id?: string) => RedisSession<object>;
}

function make(options: RedisSessionOptions = {}, client: Redis = redis, id = 's'): Subject {
  const prefix = options.keyPrefix ?? freshPrefix();
  const open = (other = id): RedisSession<object> =>
    new RedisSession<object>(other, { client, ...options, keyPrefix: prefix });
  const key = `${prefix}:${id}`;
  return { session: open(), key, messages: `${key}:messages`, counter: `${key}:counter`, prefix, open };
}

/** The names of all keys of a prefix. */
const keysOf = async (prefix: string): Promise<string[]> => (await redis.keys(`${prefix}*`)).toSorted();
const serverMs = async (): Promise<number> => {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
};

/** Somebody acts right before the next command of this name is sent. */
async function beforeNext(name: string, act: () => Promise<unknown>, work: () => Promise<void>): Promise<void> {
  const sendCommand: Redis['sendCommand'] = Reflect.get(Redis.prototype, 'sendCommand');
  let acted = false;
  const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, stream) {
    const send = (): unknown => sendCommand.call(this, command, stream);
    if (acted || command.name !== name) return send();
    acted = true;
    return act().then(send);
  });
  await work();
  spy.mockRestore();
  expect(acted).toBe(true);
}

/** While the clock of this process stands at 1970. */
async function withoutClock(work: () => Promise<unknown>): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  await work().finally(() => vi.useRealTimers());
}

/** Somebody acts between the look of a change by MULTI and its EXEC. */
async function beforeExec(act: () => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
  const multi: Redis['multi'] = Reflect.get(Redis.prototype, 'multi');
  let acted = false;
  const spy = vi.spyOn(Redis.prototype, 'multi').mockImplementation(function (this: Redis) {
    const transaction = multi.call(this);
    if (this === redis || acted) return transaction;
    acted = true;
    const exec = transaction.exec.bind(transaction);
    transaction.exec = async () => {
      await act();
      return await exec();
    };
    return transaction;
  });
  await work();
  spy.mockRestore();
  expect(acted).toBe(true);
}

const ways: readonly (readonly [string, RedisSessionOptions])[] = [
  ['Lua', {}],
  ['MULTI', { scripting: 'multi' }],
];

describe.each(ways)('what is stored, by %s', (_name, options) => {
  it('has the names, types and texts of the Python SDK [SESS-131, 221]', async () => {
    const { session, key, messages, prefix } = make(options);
    const before = Math.floor((await serverMs()) / 1000);
    await session.addItems([user('Grüße'), { type: 'function_call_output', call_id: 'c1', output: 'ok' }]);
    expect(await keysOf(prefix)).toEqual([key, messages]);
    expect(await redis.lrange(messages, 0, -1)).toEqual([
      String.raw`{"role":"user","content":"Gr\u00fc\u00dfe"}`,
      '{"type":"function_call_output","call_id":"c1","output":"ok"}',
    ]);
    const { session_id, created_at, updated_at, ...ours } = await redis.hgetall(key);
    expect(session_id).toBe('s');
    expect(created_at).toMatch(/^\d+$/);
    expect(Number(created_at)).toBeGreaterThanOrEqual(before);
    expect(Number(created_at)).toBeLessThanOrEqual((await serverMs()) / 1000);
    expect(updated_at).toBe(created_at);
    expect(Object.keys(ours).toSorted()).toEqual(['_ops', '_ver']);
  });

  it('keeps the time of creation, moves that of the update with appends alone, by the clock of the server [SESS#5, SESS-015, 221, IL-020]', async () => {
    const { session, key } = make(options);
    await session.addItems(users('1', '2'));
    await redis.hset(key, { created_at: '1700000000', updated_at: '1700000001', owner: 'somebody else' });
    await session.getItems();
    await session.popItem();
    await session.applyHistoryTransaction({
      operationId: 'cut',
      transaction: { type: 'replace_suffix', expectedSuffix: users('1'), replacement: [] },
    });
    expect(await redis.hmget(key, 'created_at', 'updated_at')).toEqual(['1700000000', '1700000001']);
    const before = Math.floor((await serverMs()) / 1000);
    await withoutClock(() => session.addItems(users('3')));
    const { created_at, updated_at, owner } = await redis.hgetall(key);
    expect([created_at, owner]).toEqual(['1700000000', 'somebody else']);
    expect(Number(updated_at)).toBeGreaterThanOrEqual(before);
  });

  it('keeps the members that other programs put beside it [SESS#89, SESS-221, IL-045]', async () => {
    const { session, key } = make(options);
    await redis.hset(key, 'foreign', 'kept');
    await Promise.all([session.addItems(users('1')), redis.hset(key, 'late', 'kept'), session.addItems(users('2'))]);
    expect(await redis.hmget(key, 'foreign', 'late')).toEqual(['kept', 'kept']);
    expect(await session.getItems()).toEqual(users('1', '2'));
  });

  it('goes on with keys that Python wrote, with a time to live [SESS#5, SESS-221, 223]', async () => {
    const { session, key, messages, counter } = make({ ...options, ttlMs: 600_000 });
    await redis.hset(key, { session_id: 's', created_at: '1700000000', updated_at: '1700000000' });
    await redis.rpush(messages, '{"role": "user", "content": "1"}');
    await redis.set(counter, '7');
    for (const one of [key, messages, counter]) await redis.expire(one, 60);
    const before = await serverMs();
    await withoutClock(() => session.addItems(users('2')));
    const after = await serverMs();
    expect(await session.getItems()).toEqual(users('1', '2'));
    expect(await redis.hget(key, 'created_at')).toBe('1700000000');
    expect(await redis.get(counter)).toBe('7');
    const ends = await Promise.all([key, messages, counter].map((one) => redis.pexpiretime(one)));
    expect(new Set(ends).size).toBe(1);
    expect(ends[0]).toBeGreaterThanOrEqual(Math.floor(before) + 600_000);
    expect(ends[0]).toBeLessThanOrEqual(Math.ceil(after) + 600_000);
  });

  it('is renewed by appends and replacements, not by reads and pops; without ttlMs an end is left alone [SESS-223]', async () => {
    const { session, key, messages, prefix } = make({ ...options, ttlMs: 600_000 });
    await session.addItems(users('1', '2', '3'));
    for (const one of [key, messages]) await redis.pexpire(one, 5000);
    await session.getItems();
    await session.popItem();
    for (const one of [key, messages]) expect(await redis.pttl(one)).toBeLessThanOrEqual(5000);
    await session.replaceHistory(users('4', '5'));
    for (const one of [key, messages]) expect(await redis.pttl(one)).toBeGreaterThan(5000);
    for (const one of [key, messages]) await redis.pexpire(one, 5000);
    const without = make({ ...options, keyPrefix: prefix }).session;
    await without.addItems(users('6'));
    await without.replaceHistory(users('7', '8'));
    await without.applyHistoryTransaction({
      operationId: 'all',
      transaction: { type: 'replace_suffix', expectedSuffix: users('7', '8'), replacement: users('9') },
    });
    for (const one of [key, messages]) {
      expect(await redis.pttl(one)).toBeGreaterThan(0);
      expect(await redis.pttl(one)).toBeLessThanOrEqual(5000);
    }
  });

  it('has one end when a pop makes the hash anew [SESS-223, 224]', async () => {
    const { session, key, messages } = make(options);
    await redis.rpush(messages, '{"n":1}', '{"n":2}');
    await redis.pexpire(messages, 60_000);
    expect(await session.popItem()).toEqual({ n: 2 });
    const { session_id, created_at, updated_at } = await redis.hgetall(key);
    expect([session_id, updated_at]).toEqual(['s', created_at]);
    expect(created_at).toMatch(/^\d{10}$/);
    expect(await redis.pttl(key)).toBeGreaterThan(0);
    expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000);
  });

  it('goes as a whole by a clear, which is harmless where nothing is, with a prefix of the client too [SESS-011, 224, 229, IL-054]', async () => {
    const client = new Redis(redisUrl(), { keyPrefix: 'client:' });
    const { session, prefix, counter } = make(options, client);
    await session.clearSession();
    await session.addItems(users('1'));
    await client.set(counter, '1');
    expect(await redis.exists(`client:${prefix}:s`, `client:${prefix}:s:messages`)).toBe(2);
    await session.clearSession();
    expect(await redis.keys(`*${prefix}*`)).toEqual([]);
    // Python's counter may be all that there is.
    await client.set(counter, '1');
    await session.clearSession();
    expect(await redis.keys(`*${prefix}*`)).toEqual([]);
    await client.quit();
  });

  it.each([
    ['the hash', 'hash', (s: Subject) => redis.set(s.key, 'mine')],
    ['the list', 'list', (s: Subject) => redis.set(s.messages, 'mine')],
    ['the counter', 'string', (s: Subject) => redis.rpush(s.counter, 'mine')],
  ])(
    'is refused where %s is of another type, and nothing is changed [SESS#43, SESS#89, SESS-221, 224, 225]',
    async (_key, kind, spoil) => {
      const subject = make(options);
      const { session, prefix, key, messages, counter } = subject;
      await redis.rpush(messages, '{"n":1}');
      await redis.hset(key, 'session_id', 's');
      await redis.del(kind === 'hash' ? key : kind === 'list' ? messages : counter);
      await spoil(subject);
      const dump = async () =>
        await Promise.all((await keysOf(prefix)).map(async (name) => [name, await redis.dumpBuffer(name)]));
      const before = await dump();
      const calls: Record<string, () => Promise<unknown>> = {
        addItems: () => session.addItems(users('1')),
        clearSession: () => session.clearSession(),
        popItem: () => session.popItem(),
        replaceHistory: () => session.replaceHistory(users('1')),
        replace_suffix: () =>
          session.applyHistoryTransaction({
            operationId: 'op',
            transaction: { type: 'replace_suffix', expectedSuffix: [{ n: 1 }], replacement: [] },
          }),
      };
      for (const [name, call] of Object.entries(calls))
        await expect(call(), name).rejects.toMatchObject({
          name: 'SessionSchemaError',
          sessionId: 's',
          message: expect.stringContaining('choose another keyPrefix or session id'),
        });
      await expect(calls['addItems']?.()).rejects.toMatchObject({
        sessionId: 's',
        message: expect.stringContaining(`where a ${kind} is needed; nothing was changed`),
      });
      expect(await dump()).toEqual(before);
    },
  );

  it('is not read where it is of another type [SESS-221]', async () => {
    const { session, messages } = make(options);
    await redis.set(messages, 'mine');
    await expect(session.getItems()).rejects.toMatchObject({
      name: 'SessionSchemaError',
      sessionId: 's',
      message: expect.stringContaining('choose another keyPrefix or session id'),
    });
  });

  it('grows by 20 first writes at once without a loss [IL-008]', async () => {
    const { open, key } = make(options);
    await Promise.all(Array.from({ length: 20 }, (_, index) => open().addItems(users(String(index)))));
    const items = (await open().getItems()) as { content: string }[];
    expect(items.map(({ content }) => Number(content)).toSorted((a, b) => a - b)).toEqual([...Array(20).keys()]);
    expect(await redis.hget(key, 'session_id')).toBe('s');
  });

  it('takes batches of more elements than one command may have [SESS-221]', async () => {
    const { session, messages } = make(options);
    await session.addItems(Array.from({ length: 8001 }, (_, n) => ({ n })));
    expect(await redis.llen(messages)).toBe(8001);
    expect(await redis.lrange(messages, 3999, 4000)).toEqual(['{"n":3999}', '{"n":4000}']);
    expect(await redis.lindex(messages, -1)).toBe('{"n":8000}');
  });
});

describe.each(ways)('operations, by %s', (_name, options) => {
  it('are remembered 64 deep, in a field that stays small [SESS-034, 221]', async () => {
    const { session, key } = make(options);
    const append = (operationId: string) =>
      session.applyHistoryTransaction({ operationId, transaction: { type: 'append_items', items: users('1') } });
    const odd = String.raw`a"],["b\ ü`;
    await append(odd);
    for (let n = 0; n < 64; n++) await append(`["${n}",`);
    await append(odd);
    await append('["0",');
    expect(await session.getItems()).toHaveLength(65);
    await append('one more');
    const remembered = JSON.parse((await redis.hget(key, '_ops'))!) as string[][];
    expect(remembered).toHaveLength(65);
    expect(remembered[0]![0]).toBe('["0",');
    expect(remembered.at(-1)![0]).toBe('one more');
    await append(odd);
    expect(await session.getItems()).toHaveLength(67);
  });

  it('are not mistaken for others, and an unreadable memory is begun anew [SESS-034]', async () => {
    const { session, key } = make(options);
    await redis.hset(key, '_ops', 'not ours');
    const append = (operationId: string, text: string) =>
      session.applyHistoryTransaction({ operationId, transaction: { type: 'append_items', items: users(text) } });
    await append('a', '1');
    await append('', '2').catch(() => {});
    await append('aa', '2');
    await append('A', '3');
    await append('a', '1');
    await expect(append('a', '4')).rejects.toMatchObject({ code: 'session_operation_mismatch' });
    expect(await session.getItems()).toEqual(users('1', '2', '3'));
  });

  it('answer with the version of the first time when they are repeated [SESS-034, 037]', async () => {
    const { session } = make(options);
    const { version } = await session.readHistory();
    const first = await session.appendIfVersion(version, users('1'), { operationId: 'op' });
    const now = await session.appendIfVersion(first, users('2'));
    expect(await session.appendIfVersion(version, users('1'), { operationId: 'op' })).toBe(first);
    expect((await session.readHistory()).version).toBe(now);
    await expect(session.appendIfVersion(version, users('3'))).rejects.toThrow(SessionVersionConflictError);
  });

  it('of which one replaced the end are settled by their id although the end is another now [SESS-035, 225]', async () => {
    const { session } = make(options);
    await session.addItems(users('1', '2'));
    const operation = {
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users('2'), replacement: users('3') },
    } as const;
    await session.applyHistoryTransaction(operation);
    await session.applyHistoryTransaction(operation);
    expect(await session.getItems()).toEqual(users('1', '3'));
    const other = { ...operation, transaction: { ...operation.transaction, replacement: users('4') } };
    await expect(session.applyHistoryTransaction(other)).rejects.toMatchObject({ code: 'session_operation_mismatch' });
  });

  it('that replace the end keep corrupt records in between, byte for byte [SESS-153, 225]', async () => {
    const { session, messages } = make({ ...options, onCorruptItem: () => {} });
    const corrupt = Buffer.from([0x7b, 0xff, 0x00, 0x7d]);
    await session.addItems(users('1', '2'));
    await redis.rpush(messages, corrupt);
    await session.addItems(users('3'));
    await session.applyHistoryTransaction({
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users('2', '3'), replacement: users('4') },
    });
    expect(await session.getItems()).toEqual(users('1', '4'));
    expect(await redis.lrangeBuffer(messages, 1, 1)).toEqual([corrupt]);
  });

  it('that replace the end look again when somebody appended after their look [SESS-225]', async () => {
    const { session, open, messages } = make(options);
    await session.addItems(users('1'));
    const operation = {
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users('1'), replacement: users('2') },
    } as const;
    await beforeNext(
      options.scripting === 'multi' ? 'watch' : 'evalsha',
      () => redis.rpush(messages, '{"n":1}'),
      () =>
        expect(session.applyHistoryTransaction(operation)).rejects.toMatchObject({ code: 'session_suffix_mismatch' }),
    );
    expect(await open().getItems()).toEqual([user('1'), { n: 1 }]);
  });

  it('that replace the end compare all of it: somebody may have changed an item before the newest [SESS-225]', async () => {
    const { session, open, messages } = make(options);
    await session.addItems(users('1', '2'));
    const operation = {
      operationId: 'op',
      transaction: { type: 'replace_suffix', expectedSuffix: users('1', '2'), replacement: users('3') },
    } as const;
    await beforeNext(
      options.scripting === 'multi' ? 'watch' : 'evalsha',
      () => redis.lset(messages, 0, '{"n":1}'),
      () =>
        expect(session.applyHistoryTransaction(operation)).rejects.toMatchObject({ code: 'session_suffix_mismatch' }),
    );
    expect(await open().getItems()).toEqual([{ n: 1 }, user('2')]);
  });

  it('that pop look again when somebody appended after their look [SESS-010, 224]', async () => {
    const { session, messages } = make(options);
    await session.addItems(users('1'));
    await beforeNext(
      options.scripting === 'multi' ? 'watch' : 'evalsha',
      () => redis.rpush(messages, '{"n":1}'),
      async () => expect(await session.popItem()).toEqual({ n: 1 }),
    );
    expect(await session.getItems()).toEqual(users('1'));
  });

  it('that clear look again when somebody appended after their look, and remove that too [SESS-011, 224]', async () => {
    const { session, messages, prefix } = make(options);
    await session.addItems(users('1'));
    await beforeNext(
      options.scripting === 'multi' ? 'watch' : 'evalsha',
      () => redis.rpush(messages, '{"n":1}'),
      () => session.clearSession(),
    );
    expect(await keysOf(prefix)).toEqual([]);
  });

  it('of two clients at once are none lost and none split, and each item is popped once [SESS-006, 010, 222]', async () => {
    const clients = [1, 2].map(() => new Redis(redisUrl()));
    const { prefix, open } = make(options);
    const sessions = clients.map((client) => make({ ...options, keyPrefix: prefix }, client).session);
    await Promise.all(
      sessions.flatMap((session, writer) =>
        Array.from({ length: 10 }, (_, batch) => session.addItems([1, 2].map((n) => ({ writer, batch, n })))),
      ),
    );
    const items = (await open().getItems()) as { writer: number; batch: number; n: number }[];
    expect(items).toHaveLength(40);
    for (let at = 0; at < 40; at += 2) expect(items[at + 1]).toEqual({ ...items[at], n: 2 });
    const popped = await Promise.all(Array.from({ length: 40 }, (_, index) => sessions[index % 2]!.popItem()));
    expect(new Set(popped.map((item) => JSON.stringify(item))).size).toBe(40);
    await Promise.all(clients.map((client) => client.quit()));
  });
});

describe.each(ways)('versions, by %s', (_name, options) => {
  it('are the count of changes, the length and the digest of the newest element [SESS-221, 232]', async () => {
    const { session, key } = make(options);
    expect((await session.readHistory()).version).toBe('0:0:');
    const written = await session.replaceHistory(users('1', '2'));
    const read = await session.readHistory(0);
    expect(read).toEqual({ items: [], version: written });
    const count = await redis.hget(key, '_ver');
    expect(written).toMatch(new RegExp(`^${count}:2:[0-9a-f]{40}$`));
    await session.popItem();
    expect((await session.readHistory()).version).toMatch(new RegExp(`^${Number(count) + 1}:1:`));
    await session.addItems(users('3'));
    const { version } = await session.readHistory(0);
    expect(version).toMatch(new RegExp(`^${Number(count) + 2}:2:`));
    // An operation that changes nothing.
    await session.applyHistoryTransaction({ operationId: 'op', transaction: { type: 'append_items', items: [] } });
    expect((await session.readHistory(0)).version).toBe(version);
  });

  it('change by what other programs do to the end, and never come back after a clear [SESS-037, 232]', async () => {
    const { session, messages } = make(options);
    const seen = [await session.replaceHistory(users('1', '2'))];
    await redis.rpush(messages, '{"n":1}');
    seen.push((await session.readHistory()).version);
    await redis.lset(messages, -1, '{"n":2}');
    seen.push((await session.readHistory()).version);
    await expect(session.appendIfVersion(seen[1] ?? '', users('lost'))).rejects.toMatchObject({ actual: seen[2] });
    await redis.rpop(messages);
    await session.clearSession();
    seen.push(await session.replaceHistory(users('other', '2')));
    await session.popItem();
    await session.popItem();
    seen.push(await session.replaceHistory(users('other', '2')));
    expect(new Set(seen).size).toBe(5);
  });
});

describe('what is read', () => {
  it('passes over bytes that are no UTF-8, and tells of each once [E7, SESS-153, 230]', async () => {
    const told = vi.fn<(info: { position: number; reason: string }) => void>();
    const { session, messages } = make({ onCorruptItem: told });
    await session.addItems(users('1'));
    await redis.rpush(messages, Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]), '3');
    await session.addItems(users('2'));
    expect(await session.getItems(2)).toEqual(users('1', '2'));
    expect(told.mock.calls.map(([{ position, reason }]) => [position, reason])).toEqual([
      [2, 'not the JSON text of an object'],
      [1, 'not text'],
    ]);
  });

  it.each([
    ['numbers as texts', { stringNumbers: true }],
    ['commands gathered', { enableAutoPipelining: true }],
    ['RESP2', { protocol: 2 }],
    ['RESP3 with its own shapes', { protocol: 3, replyMapping: 'resp3' }],
    ['friendly stacks', { showFriendlyErrorStack: true }],
  ] as const)('is the same by a client with %s [SESS-230]', async (_name, clientOptions) => {
    const client = new Redis(redisUrl(), clientOptions);
    for (const [, options] of ways) {
      const { session } = make({ ...options, ttlMs: 60_000 }, client);
      await Promise.all([session.addItems(users('1')), session.addItems(users('2', '3'))]);
      const { items, version } = await session.readHistory(2);
      expect(items).toEqual(users('2', '3'));
      await session.appendIfVersion(version, users('4'));
      expect(await session.popItem()).toEqual(user('4'));
      await session.clearSession();
      expect(await session.getItems()).toEqual([]);
    }
    await client.quit();
  });

  it('is sent for by one command for each call, an append by one too, what removes something after a look [SESS-160, 221, 224]', async () => {
    const client = new Redis(redisUrl());
    const { session } = make({}, client);
    await session.addItems(users('1', '2'));
    await session.clearSession();
    const sent = vi.spyOn(client, 'sendCommand');
    const names = (): string[] => sent.mock.calls.splice(0).map(([command]) => command.name);
    await session.addItems(users('3'));
    expect(names()).toEqual(['evalsha']);
    await session.getItems(1);
    expect(names()).toEqual(['multi', 'hmget', 'llen', 'lrange', 'exec']);
    await session.clearSession();
    expect(names()).toEqual(['multi', 'hmget', 'llen', 'lrange', 'exec', 'evalsha']);
    sent.mockRestore();
    await client.quit();
  });

  it('is watched over one connection beside that of the client, for one change after the other [SESS-222]', async () => {
    const client = new Redis(redisUrl());
    const { session, open } = make({ scripting: 'multi' }, client);
    const sendCommand: Redis['sendCommand'] = Reflect.get(Redis.prototype, 'sendCommand');
    const sent: { by: Redis; name: string }[] = [];
    const spy = vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, stream) {
      sent.push({ by: this, name: command.name });
      return sendCommand.call(this, command, stream);
    });
    const other = open('other');
    await Promise.all([session.addItems(users('1', '2')), other.addItems(users('3')), session.popItem()]);
    await Promise.all([session.clearSession(), other.replaceHistory(users('4')), open().addItems(users('5'))]);
    spy.mockRestore();
    const watching = sent.find(({ name }) => name === 'watch')?.by;
    expect(watching).not.toBe(client);
    expect(sent.filter(({ by, name }) => by !== watching && name.endsWith('watch'))).toEqual([]);
    const steps = sent.flatMap(({ by, name }) => (by === watching && /watch|exec/.test(name) ? [name] : []));
    expect(steps.length).toBeGreaterThanOrEqual(12);
    expect(steps.join(' ')).toMatch(/^(watch (exec|unwatch) ?)+$/);
    await client.quit();
  });

  it('is looked at again by MULTI when one of its keys was changed meanwhile [SESS-222]', async () => {
    const { session, key, messages, counter, prefix } = make({ scripting: 'multi' });
    const store = new RedisSessionStore({ client: redis, keyPrefix: prefix, scripting: 'multi' });
    await session.addItems(users('1'));
    await beforeExec(
      () => redis.rpush(messages, '{"n":1}'),
      async () => expect(await session.popItem()).toEqual({ n: 1 }),
    );
    await beforeExec(
      () => redis.hset(key, '_meta', '{"theirs":1}'),
      () => store.setMetadata('s', { ours: 1 }),
    );
    expect((await store.get('s'))?.metadata).toEqual({ theirs: 1, ours: 1 });
    await beforeExec(
      () => redis.rpush(counter, 'x'),
      () => expect(session.addItems(users('2'))).rejects.toThrow(SessionSchemaError),
    );
    expect(await session.getItems()).toEqual(users('1'));
  });

  it.each(ways)(
    '%s: fails with a client that its owner has quit, as the client does; nothing is written [SESS-154]',
    async (_name, options) => {
      const client = new Redis(redisUrl());
      const { session, prefix } = make(options, client);
      await session.addItems(users('1'));
      const made = make(options, client);
      await Promise.all([once(client, 'end'), client.quit()]);
      for (const one of [session, made.session])
        for (const call of [
          () => one.addItems(users('2')),
          () => one.replaceHistory(users('2')),
          () => one.popItem(),
          () => one.clearSession(),
          () => one.getItems(),
        ])
          await expect(call()).rejects.toThrow('Connection is closed.');
      expect(await make({ ...options, keyPrefix: prefix }).session.getItems()).toEqual(users('1'));
      expect(await keysOf(made.prefix)).toEqual([]);
    },
  );

  it('survives that the server forgot the scripts [SESS-221]', async () => {
    const { session } = make();
    await session.addItems(users('1'));
    await redis.script('FLUSH');
    await session.addItems(users('2'));
    await redis.script('FLUSH');
    expect(await session.popItem()).toEqual(user('2'));
  });
});

describe('names', () => {
  it.each(['a:messages', 'a:counter', 'a:ops', ':messages', '__index'])(
    'refuses the id %s [SESS#44, SESS-137]',
    (id) => {
      expect(() => make({}, redis, id)).toThrow(expect.objectContaining({ code: 'session_id_invalid' }));
    },
  );

  it('takes ids with a colon, a percent sign, an asterisk, quotes, a newline or an emoji as they are [SESS#46, SESS-137]', async () => {
    const ids = ['a:b', '%s', '*', '"\'', 'a\nb', '😀', '{', '}', '{}', 'x'.repeat(1000), '_index', 'a:messages:'];
    const { prefix } = make();
    const sessions = ids.map((id) => make({ keyPrefix: prefix }, redis, id));
    for (const [index, { session }] of sessions.entries()) await session.addItems(users(String(index)));
    for (const [index, { session, key }] of sessions.entries()) {
      expect(await session.getItems()).toEqual(users(String(index)));
      expect(await redis.hget(key, 'session_id')).toBe(ids[index]);
    }
    await sessions[2]!.session.clearSession();
    expect(await keysOf(prefix)).toHaveLength(2 * (ids.length - 1));
  });

  it('puts braces around the id where hash tags are wanted [SESS-227]', async () => {
    const { session, prefix } = make({ hashTag: 'session' });
    await session.addItems(users('1'));
    expect(await keysOf(prefix)).toEqual([`${prefix}:{s}`, `${prefix}:{s}:messages`]);
    expect(await redis.hget(`${prefix}:{s}`, 'session_id')).toBe('s');
    expect(() => make({ hashTag: 'session' }, redis, '}x')).toThrow(
      expect.objectContaining({ code: 'session_id_invalid' }),
    );
    expect(() => make({ hashTag: 'session', keyPrefix: 'a{}b' })).toThrow(UserError);
    make({ hashTag: 'session' }, redis, '{}x');
  });

  it('leaves the tag to a prefix that has one, on a cluster [SESS-227]', async () => {
    const cluster = (keyPrefix?: string): Redis =>
      new Cluster([], { lazyConnect: true, ...(keyPrefix === undefined ? {} : { keyPrefix }) }) as unknown as Redis;
    // The key is in the first command; nothing is connected.
    const keyBy = async (client: Redis, options: RedisSessionOptions = {}, id = 's'): Promise<string> => {
      const { session } = make({ keyPrefix: 'p', ...options }, client, id);
      const sent = vi.spyOn(client, 'sendCommand').mockImplementation(() => Promise.reject(new Error('not sent')));
      await session.addItems(users('1')).catch(() => {});
      return String(sent.mock.calls[0]![0].args[2]);
    };
    expect(await keyBy(cluster())).toBe('p:{s}');
    expect(await keyBy(cluster(), { keyPrefix: '{app}' })).toBe('{app}:s');
    expect(await keyBy(cluster('{app}:'))).toBe('{app}:p:s');
    expect(await keyBy(cluster(), { hashTag: 'none' })).toBe('p:s');
    expect(await keyBy(cluster(), { keyPrefix: 'a{' })).toBe('a{:{s}');
    await expect(keyBy(cluster(), {}, '}x')).rejects.toMatchObject({ code: 'session_id_invalid' });
    await expect(keyBy(cluster(), { keyPrefix: '{app}' }, '}x')).resolves.toBe('{app}:}x');
  });
});

describe('options', () => {
  it.each([2 ** 63, 0, -1, 1.5, Number.NaN, '1000'])(
    'refuses ttlMs %s before any command [SESS#45, SESS-223]',
    (ttlMs) => {
      expect(() => make({ ttlMs: ttlMs as number })).toThrow(/Option 'ttlMs' of RedisSession must be an integer/);
    },
  );

  it('takes the shortest time that there is, the longest, and none [SESS-223]', async () => {
    for (const [, options] of ways) {
      for (const ttlMs of [1, null]) expect(() => make({ ...options, ttlMs })).not.toThrow();
      const { session, key } = make({ ...options, ttlMs: Number.MAX_SAFE_INTEGER });
      await session.addItems(users('1'));
      expect(await redis.pttl(key)).toBeGreaterThan(9e15);
    }
  });

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /needs a 'client' of ioredis or a 'url'/],
    ['no connection', {}, /needs a 'client' of ioredis or a 'url'/],
    ['two connections', { client: redis, url: 'redis://x' }, /takes 'client' or 'url', not both/],
    ['a client of something else', { client: {} }, /'client' .* must be a client of 'ioredis'/],
    ['options beside a client', { client: redis, redisOptions: {} }, /'redisOptions' .* goes with 'url'/],
    ['options of another kind', { url: 'redis://x', redisOptions: 5 }, /'redisOptions'/],
    ['another scheme', { url: 'http://secret@host' }, /^Option 'url' of RedisSession must be an address as 'redis:/],
    ['no address', { url: 'redis://user:secret@host:port' }, /^Option 'url' (?!.*secret)/],
    ['an unknown option', { client: redis, ttl: 5 }, /Unknown option 'ttl' of RedisSession/],
    ['NUL in the prefix', { client: redis, keyPrefix: 'a\0' }, /'keyPrefix' .* must be a string without NUL/],
    ['another way of tags', { client: redis, hashTag: 'id' }, /'hashTag'/],
    ['another way of scripts', { client: redis, scripting: 'js' }, /'scripting'/],
    ['no time', { client: redis, operationTimeoutMs: 0 }, /'operationTimeoutMs'/],
  ])('refuses %s', (_name, options, message) => {
    const construct = () => new RedisSession('s', options as never);
    expect(construct).toThrow(UserError);
    expect(construct).toThrow(message);
  });

  it('takes an address however its scheme is spelled', () => {
    for (const url of ['REDIS://localhost', 'Rediss://localhost'])
      expect(() => new RedisSession('s', { url })).not.toThrow();
  });

  it('refuses to read from replicas, and MULTI on a cluster [SESS-222, 227]', () => {
    for (const scaleReads of ['slave', 'all', (nodes: Redis[]) => nodes] as const) {
      const client = new Cluster([], { lazyConnect: true, scaleReads });
      expect(() => new RedisSession('s', { client })).toThrow(/reads from replicas/);
      expect(() => new RedisSessionStore({ client })).toThrow(/reads from replicas/);
    }
    const plain = new Cluster([], { lazyConnect: true });
    expect(() => new RedisSession('s', { client: plain, scripting: 'multi' })).toThrow(
      expect.objectContaining({ name: 'UserError', message: expect.stringContaining('does not work on a cluster') }),
    );
  });
});
