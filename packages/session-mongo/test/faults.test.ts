import { configureLogging } from '@agents/core';
import { SessionClosedError, SessionOutcomeUnknownError } from '@agents/core/session';
import { MongoServer } from '@agents/mongo-server';
import { CuttingProxy, faultKinds, faultOperations, freePort, meetFault } from '@agents/testkit';
import type { FaultKind, FaultOutcome } from '@agents/testkit';
import { MongoClient, MongoError } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import type { Rig } from './faults/rig.ts';
import { startSubject } from './faults/subject.ts';
import { commandOn, freshName, hooked, mongoUrl, quick } from './mongo.ts';

const user = (content: string) => ({ role: 'user' as const, content });
beforeAll(() => configureLogging({ level: 'error' }));
afterAll(() => configureLogging({ level: 'warn' }));

/** What a fault may lead to. A change takes several requests; the one that meets it decides, or comes before or after that. */
const possible: Readonly<Record<FaultKind, readonly FaultOutcome[]>> = {
  before: ['absent'],
  middle: ['absent', 'committed'],
  sent: ['committed'],
  reply: ['committed'],
  restart: ['ok', 'refused', 'committed', 'absent'],
  killed: ['committed', 'absent'],
};

describe('on a server of its own', () => {
  let subject: Awaited<ReturnType<typeof startSubject>>;
  let rig: Rig;
  beforeAll(async () => {
    subject = await startSubject('standalone');
    rig = subject.rig;
  });
  afterAll(() => subject.stop());

  // All of them, many times: pnpm faults mongo.
  const cells = faultOperations.flatMap((operation) =>
    faultKinds
      .filter((fault) => fault !== 'killed' || operation === 'append')
      .filter((fault) => fault !== 'restart' || operation === 'append' || operation === 'pop')
      .map((fault) => [operation, fault] as const),
  );
  it.each(cells)(
    '%s is whole or absent, and its id settles it, when the connection breaks: %s [SESS-006, 034, 250]',
    { timeout: 60_000 },
    async (operation, fault) => {
      expect(possible[fault]).toContain(await meetFault(subject, operation, fault, 0));
    },
  );

  it.each([
    ['append', 'reply', 'refused'],
    ['appendIfVersion', 'reply', 'refused'],
    ['replace', 'reply', 'refused'],
    ['pop', 'before', 'committed'],
    ['clear', 'before', 'ok'],
  ] as const)(
    '%s is settled when a request breaks that does not decide: %s [SESS-151, 241, 245, 246]',
    async (operation, fault, outcome) => {
      expect(await meetFault(subject, operation, fault, 2)).toBe(outcome);
    },
  );

  it('a call that gets no answer in time has an unknown outcome, a read fails as what it is [SESS-156]', async () => {
    const id = freshName();
    await using client = new MongoClient(rig.url, quick);
    const open = (operationTimeoutMs: number): MongoDBSession<object> =>
      new MongoDBSession<object>(id, { client, operationTimeoutMs });
    await open(30_000).addItems([user('1')]);
    const session = open(300);
    rig.proxy.silence(true);
    await expect(session.addItems([user('2')])).rejects.toThrow(SessionOutcomeUnknownError);
    await expect(session.getItems()).rejects.toThrow('operationTimeoutMs');
    expect(await session.ping()).toBe(false);
    rig.proxy.silence(false);
    rig.proxy.cutAll();
    await expect.poll(() => open(5000).ping()).toBe(true);
  });

  it('a read that is overtaken by a replacement gives the new history [SESS-243]', async () => {
    const id = freshName();
    const other = new MongoDBSession<object>(id, { client: rig.direct });
    await other.addItems([user('1')]);
    // One whose connections met no fault.
    await using client = new MongoClient(rig.url, quick);
    const session = new MongoDBSession<object>(id, { client });
    rig.proxy.stopNext((forward) => void other.replaceHistory([user('2')]).then(forward), {
      matching: (request) => commandOn('find', 'agent_messages')(request) && request.includes(id),
    });
    expect(await session.getItems()).toEqual([user('2')]);
  });

  it('an append that gets no answer holds up nobody else [SESS-156, 241]', async () => {
    const id = freshName();
    await using client = new MongoClient(rig.url, quick);
    const open = (operationTimeoutMs: number): MongoDBSession<object> =>
      new MongoDBSession<object>(id, { client, operationTimeoutMs });
    await open(30_000).addItems([user('1')]);
    rig.proxy.stopNext(() => undefined, { matching: commandOn('insert', 'agent_messages') });
    const session = open(2000);
    await expect(session.addItems([user('2')])).rejects.toMatchObject({ code: 'session_outcome_unknown' });
    // What is called now does not wait for it.
    await session.addItems([user('3')]);
    await open(30_000).addItems([user('4')]);
    expect(await session.getItems()).toEqual([user('1'), user('3'), user('4')]);
  });

  it('an append that could reserve no numbers wrote nothing, and is told so [SESS-151]', async () => {
    const session = new MongoDBSession<object>(freshName(), { client: rig.client });
    await session.addItems([user('1')]);
    void rig.proxy.cutNext('reply', { matching: commandOn('findAndModify', 'agent_sessions') });
    const error: unknown = await session.addItems([user('2')]).catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(SessionOutcomeUnknownError);
    expect((error as Error).name).toMatch(/^MongoNetwork/);
    expect(await session.getItems()).toEqual([user('1')]);
  });
});

describe('on a replica set', () => {
  let subject: Awaited<ReturnType<typeof startSubject>>;
  beforeAll(async () => {
    subject = await startSubject('replica set');
  });
  afterAll(() => subject.stop());

  it.each(
    faultOperations.flatMap((operation) => (['before', 'reply'] as const).map((fault) => [operation, fault] as const)),
  )('%s is sent again by the driver and done once: %s [SESS-250]', async (operation, fault) => {
    expect(await meetFault(subject, operation, fault, 0)).toBe('ok');
  });

  it.each([
    ['before', 'absent'],
    ['reply', 'committed'],
  ] as const)(
    'an append has an unknown outcome when both tries of the driver break: %s [SESS-034, 250]',
    async (fault, outcome) => {
      expect(await meetFault({ ...subject, tries: 2 }, 'append', fault, 0)).toBe(outcome);
    },
  );

  it('an append is whole or absent when the server dies [SESS-006, 034]', async () => {
    expect(possible.restart).toContain(await meetFault(subject, 'append', 'restart', 3));
  });
});

describe('a session of its own client', () => {
  it('closes it, for good, when what was called before has ended, a read too [H2, SESS-154]', async () => {
    const session = new MongoDBSession<object>('s', { url: mongoUrl(), database: freshName() });
    const before = [session.addItems([user('1')]), session.getItems(), session.ping()] as const;
    await Promise.all([session.close(), session.close()]);
    expect(await Promise.all(before)).toEqual([undefined, [user('1')], true]);
    await session.close();
    expect(session.closed).toBe(true);
    for (const call of [
      () => session.getItems(),
      () => session.addItems([]),
      () => session.ping(),
      () => session.popItem(),
    ])
      await expect(call()).rejects.toThrow(SessionClosedError);
  });

  it('stays closed when closing failed, and a second close tries again [H4, SESS-154]', async () => {
    const session = new MongoDBSession<object>('s', { url: mongoUrl(), database: freshName() });
    await session.addItems([user('1')]);
    const close = vi.spyOn(MongoClient.prototype, 'close').mockRejectedValueOnce(new Error('cannot close'));
    await expect(session.close()).rejects.toThrow('cannot close');
    await expect(session.getItems()).rejects.toThrow(SessionClosedError);
    await session.close();
    expect(close).toHaveBeenCalledTimes(2);
    close.mockRestore();
  });

  it('says good-bye to its server; to one that hangs it says nothing, and does not wait [SESS-154]', async () => {
    const proxy = await CuttingProxy.start(Number(new URL(mongoUrl()).port));
    let goodByes = 0;
    const count = (forward: () => void): void => {
      goodByes++;
      forward();
    };
    for (const isSilent of [false, true]) {
      proxy.stopNext(count, { matching: (request) => request.includes('endSessions\0') });
      const url = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`;
      const session = new MongoDBSession<object>('s', { url, database: freshName() });
      expect(await session.getItems()).toEqual([]);
      proxy.silence(isSilent);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
      const read = session.getItems().catch((error: unknown) => error);
      if (isSilent) await vi.advanceTimersByTimeAsync(30_001);
      expect((await read) instanceof Error).toBe(isSilent);
      // No time passes.
      await session.close();
      vi.useRealTimers();
    }
    expect(goodByes).toBe(1);
    await proxy.close();
  });
});

describe('errors of the driver', () => {
  it('of a server that is not there say so, are no unknown outcome, and are over when it comes [SESS-151, 250]', async () => {
    const port = await freePort();
    const options = { url: `mongodb://127.0.0.1:${port}`, clientOptions: { serverSelectionTimeoutMS: 100 } };
    await using session = new MongoDBSession<object>('s', options);
    for (const call of [
      () => session.addItems([user('1')]),
      () => session.getItems(),
      () => session.popItem(),
      () => session.clearSession(),
    ])
      await expect(call()).rejects.toMatchObject({ name: 'MongoServerSelectionError' });
    expect(await session.ping()).toBe(false);
    const server = await MongoServer.start({ port });
    // It may take longer than that to connect.
    await expect.poll(() => session.ping()).toBe(true);
    await session.addItems([user('1')]);
    expect(await session.getItems()).toEqual([user('1')]);
    await session.close();
    await server.stop();
  });

  it('after a change was made leave its outcome unknown, whatever they are [SESS-151, 245]', async () => {
    const client = new MongoClient(mongoUrl());
    const failing = (name: string, collection: string): MongoDBSession<object> =>
      new MongoDBSession<object>('s', {
        client: hooked(client, (command, on) => {
          if (command === name && on === collection) throw new Error('no longer allowed');
        }),
        database,
      });
    const database = freshName();
    const session = new MongoDBSession<object>('s', { client, database });
    await session.addItems([user('1'), user('2')]);
    const taken: unknown = await failing('updateOne', 'agent_sessions')
      .popItem()
      .catch((thrown: unknown) => thrown);
    expect(taken).toBeInstanceOf(SessionOutcomeUnknownError);
    expect((taken as Error).cause).toMatchObject({ message: 'no longer allowed' });
    expect(await session.getItems()).toEqual([user('1')]);
    const { version } = await session.readHistory();
    const appended: unknown = await failing('findOne', 'agent_messages')
      .appendIfVersion(version, [user('3')])
      .catch((thrown: unknown) => thrown);
    expect(appended).toBeInstanceOf(SessionOutcomeUnknownError);
    expect(await session.getItems()).toEqual([user('1'), user('3')]);
    await client.close();
  });

  it.each<[string, object, boolean]>([
    ['refused by the server', { code: 13 }, false],
    ['written, and not on enough members', { name: 'MongoWriteConcernError', code: 64 }, true],
    ['written, with a write concern error beside it', { result: { writeConcernError: { code: 64 } } }, true],
    ['interrupted because the server goes away', { code: 11_600 }, true],
    ['interrupted because the server steps down', { code: 11_602 }, true],
    ['out of the time that it had', { name: 'MongoOperationTimeoutError' }, true],
    ['under way when the client was closed', { name: 'MongoClientClosedError' }, true],
    ['interrupted by an operator', { code: 11_601 }, true],
    ['lost between a router and the server behind it', { code: 9001 }, true],
    ['refused by somebody who is no primary', { code: 10_107 }, false],
    ['refused at a second try, the first of which nobody knows', { labels: ['RetryableWriteError'] }, true],
    [
      'refused at a second try, and not made by the first',
      { labels: ['RetryableWriteError', 'NoWritesPerformed'] },
      false,
    ],
    ['without a server for its repetition', { name: 'MongoServerSelectionError' }, true],
    ...[6, 50, 89, 91, 189, 262].map(
      (code) => [`interrupted or lost, with code ${code}`, { code }, true] as [string, object, boolean],
    ),
    ['refused, where nothing is repeated', { labels: ['RetryableWriteError'], retryWrites: false }, false],
    ['without a server, where nothing is repeated', { name: 'MongoServerSelectionError', retryWrites: false }, false],
  ])('tell whether an append may have been stored: %s [SESS-151, 250]', async (_name, given, isUnknown) => {
    const { retryWrites = true, ...members } = given as { retryWrites?: boolean };
    const client = new MongoClient(mongoUrl(), { retryWrites });
    const failing = hooked(client, (command, collection) => {
      if (command !== 'insertOne' || collection !== 'agent_messages') return;
      const { labels = [], ...rest } = members as { labels?: string[] };
      const error = new MongoError('from the server');
      for (const label of labels) error.addErrorLabel(label);
      for (const [key, value] of Object.entries(rest)) Object.defineProperty(error, key, { value });
      throw error;
    });
    const session = new MongoDBSession<object>('s', { client: failing, database: freshName() });
    const error: unknown = await session.addItems([user('1')]).catch((thrown: unknown) => thrown);
    expect(error instanceof SessionOutcomeUnknownError).toBe(isUnknown);
    await client.close();
  });
});
