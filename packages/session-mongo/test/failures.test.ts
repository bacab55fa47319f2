import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { MongoServer } from '@agents/mongo-server';
import { MongoClient, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { freshName, mongoUrl, quick, raw } from './mongo.ts';

const user = (content: string) => ({ role: 'user' as const, content });
const users = (count: number, from = 1) => Array.from({ length: count }, (_, index) => user(String(from + index)));
const errorOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => error,
  );

const changes: Readonly<Record<string, (session: MongoDBSession<object>) => Promise<unknown>>> = {
  append: (session) => session.addItems(users(2, 8)),
  appendIfVersion: async (session) =>
    await session.appendIfVersion((await session.readHistory(0)).version, users(1, 8)),
  replace: (session) => session.replaceHistory(users(300, 8)),
  pop: (session) => session.popItem(),
  clear: (session) => session.clearSession(),
};

describe('who may not', () => {
  let server: MongoServer;
  let ada: MongoClient;
  const logins = { ada: { password: 'good-secret' }, eve: { password: 'read-secret', readOnly: true } };
  const urlOf = (name: string, password: string): string => server.url.replace('://', `://${name}:${password}@`);
  beforeAll(async () => {
    server = await MongoServer.start({ users: logins });
    ada = new MongoClient(urlOf('ada', 'good-secret'));
    await new MongoDBSession<object>('s', { client: ada }).addItems(users(3));
  });
  afterAll(async () => {
    await ada.close();
    await server.stop();
  });

  it('log in hears so from the driver, in words without the password [SESS-151, 391]', async () => {
    const before = server.connections;
    const url = urlOf('ada', 'bad-secret');
    const session = new MongoDBSession<object>('s', { url, clientOptions: quick });
    const calls = Object.values(changes).map((make) => () => make(session));
    for (const call of [() => session.getItems(), ...calls]) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(MongoServerError);
      expect((error as MongoServerError).code).toBe(18);
      expect(`${inspect(error, { depth: 20, showHidden: true })} ${(error as Error).stack}`).not.toContain('secret');
    }
    expect(await session.ping()).toBe(false);
    await session.close();
    await expect.poll(() => server.connections).toBe(before);
    expect(await new MongoDBSession('s', { client: ada }).getItems()).toEqual(users(3));
  });

  it.each(Object.entries(changes))(
    'write hears so, changes nothing, and goes on reading: %s [SESS-151]',
    async (_name, make) => {
      for (const createIndexes of [true, false]) {
        await using client = new MongoClient(urlOf('eve', 'read-secret'), { ...quick, maxPoolSize: 1 });
        const session = new MongoDBSession<object>('s', { client, createIndexes });
        const error = await errorOf(make(session));
        expect(error).toBeInstanceOf(MongoServerError);
        expect((error as MongoServerError).code).toBe(13);
        expect(inspect(error, { depth: 20 })).not.toContain('secret');
        // By the one connection that there may be.
        expect(await session.getItems()).toEqual(users(3));
      }
      expect(await raw(ada, 'agents').messages.countDocuments()).toBe(1);
    },
  );
});

describe('a server', () => {
  it('with an expired certificate is refused by the driver [SESS-151]', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'session-mongo-tls-'));
    const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'ignore', cwd: folder });
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    openssl('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key.pem', '-out', 'csr.pem', ...subject);
    openssl('x509', '-req', '-in', 'csr.pem', '-signkey', 'key.pem', '-days', '-1', '-out', 'cert.pem');
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => readFileSync(join(folder, name), 'utf8')) as [
      string,
      string,
    ];
    const server = await MongoServer.start({ tls: { key, cert } });
    const clientOptions = { ...quick, serverSelectionTimeoutMS: 1000, tls: true, ca: cert };
    const url = server.url.replace('://', '://ada:secret@');
    const session = new MongoDBSession<object>('s', { url, clientOptions });
    for (const call of [() => session.addItems(users(1)), () => session.getItems()]) {
      let error: unknown;
      // A machine that is busy may not have seen the certificate in that time.
      await expect.poll(async () => String((error = await errorOf(call())))).toContain('certificate has expired');
      expect(error).toBeInstanceOf(MongoServerSelectionError);
      expect(inspect(error, { depth: 20 })).not.toContain('secret');
    }
    await session.close();
    await expect.poll(() => server.connections).toBe(0);
    // It is the date alone.
    const careless = { tls: true, ca: cert, tlsAllowInvalidCertificates: true };
    await using other = new MongoDBSession<object>('s', { url: server.url, clientOptions: careless });
    await other.addItems(users(1));
    expect(await other.getItems()).toEqual(users(1));
    await other.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['append', 'findAndModify', 'agent_sessions'],
    ['append', 'insert', 'agent_messages'],
    ['appendIfVersion', 'findAndModify', 'agent_sessions'],
    ['appendIfVersion', 'insert', 'agent_messages'],
    ['replace', 'insert', 'agent_messages'],
    ['replace', 'update', 'agent_sessions'],
    ['pop', 'findAndModify', 'agent_messages'],
    ['clear', 'findAndModify', 'agent_sessions'],
  ])(
    'whose disk is full, and one that is no primary: %s changes nothing at %s on %s [SESS-151, 250]',
    async (name, command, collection) => {
      const make = changes[name]!;
      const server = await MongoServer.start({ replicaSet: 'rs' });
      await using client = new MongoClient(server.url, { ...quick, maxPoolSize: 1 });
      const session = new MongoDBSession<object>('s', { client });
      await session.addItems(users(3));
      for (const [errorCode, errorLabels] of [
        [14_031, []],
        [10_107, ['RetryableWriteError', 'NoWritesPerformed']],
      ] as const) {
        const failing = { failCommands: [command], errorCode, errorLabels, namespace: `agents.${collection}` };
        const fail = async (mode: string): Promise<unknown> =>
          await client.db('admin').command({ configureFailPoint: 'failCommand', mode, data: failing });
        await fail('alwaysOn');
        const error = await errorOf(make(session));
        expect(error).toBeInstanceOf(MongoServerError);
        expect((error as MongoServerError).code).toBe(errorCode);
        await fail('off');
        expect(await session.getItems()).toEqual(users(3));
        expect(await raw(client, 'agents').messages.countDocuments()).toBe(1);
      }
      await make(session);
      expect(await session.getItems()).not.toEqual(users(3));
      await client.close();
      await server.stop();
    },
  );
});

it('a history of 100 MB, of items of 10 MB, is kept, read and cleared; its newest items are read alone [SESS#48, SESS-160]', async () => {
  const database = freshName();
  await using client = new MongoClient(mongoUrl());
  const session = new MongoDBSession<object>('s', { client, database });
  const large = Array.from({ length: 10 }, (_, index) => user(String(index).repeat(10_000_000)));
  for (const item of large) await session.addItems([item]);
  await session.addItems(users(3));
  expect(await session.getItems(3)).toEqual(users(3));
  const items = await session.getItems();
  expect(items).toHaveLength(13);
  // Compared one by one, so that a failure does not print them.
  expect(large.every((item, index) => item.content === (items[index] as typeof item).content)).toBe(true);
  await session.clearSession();
  expect(await raw(client, database).messages.countDocuments()).toBe(0);
  await client.db(database).dropDatabase();
});
