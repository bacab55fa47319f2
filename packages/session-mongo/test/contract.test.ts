import { sessionContract } from '@agents/core/testing';
import type { SessionFixture } from '@agents/core/testing';
import { CuttingProxy, freePort } from '@agents/testkit';
import { MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { integer } from '../src/layout.ts';
import { commandOn, freshName, mongoUrl, quick, raw, replicaSetUrl, startReplicaSet } from './mongo.ts';

/** Cases that cannot be run here are left out by name; any other must not be skipped. */
const noSkip = {
  skip(reason: string): never {
    throw new Error(`Skipped: ${reason}`);
  },
};

/** The commands by which changes count: an append, a pop, a clear. */
function isChange(request: Buffer): boolean {
  const onSessions = commandOn('findAndModify', 'agent_sessions')(request);
  return (
    commandOn('insert', 'agent_messages')(request) ||
    commandOn('findAndModify', 'agent_messages')(request) ||
    (onSessions && request.includes('$unset\0'))
  );
}

interface Server {
  readonly client: MongoClient;
  readonly proxied: MongoClient;
  readonly proxy: CuttingProxy;
  stop(): Promise<void>;
}

function isItem(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

async function fixtureOf(server: Server, database: string, tries: number): Promise<SessionFixture> {
  const { messages, sessions } = raw(server.client, database);
  let lastSeq = 1_000_000;
  return {
    open: (id, options) => new MongoDBSession<object>(id, { client: server.proxied, database, ...options }),
    async addCorrupt(id, record) {
      const session = await sessions.findOneAndUpdate(
        { session_id: id },
        { $inc: { _seq: 1 } },
        { returnDocument: 'after' },
      );
      const seq = Number(session?._seq ?? ++lastSeq) - 1;
      await messages.insertOne({
        _id: new ObjectId(),
        session_id: id,
        seq: integer(seq),
        generation: integer(0),
        message_data: [record],
      });
    },
    async readCorrupt(id) {
      const batches = await messages.find({ session_id: id }).sort({ seq: 1 }).toArray();
      return batches.flatMap(({ message_data }) => message_data as string[]).filter((text) => !isItem(text));
    },
    failNext(when) {
      server.proxy.disarm();
      for (let attempt = 0; attempt < tries; attempt++)
        void server.proxy.cutNext(when === 'before' ? 'before' : 'reply', { matching: isChange });
    },
  };
}

const database = freshName();

async function standalone(): Promise<Server> {
  const client = new MongoClient(mongoUrl());
  const proxy = await CuttingProxy.start(Number(new URL(mongoUrl()).port || 27_017));
  const proxied = new MongoClient(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, quick);
  return {
    client,
    proxied,
    proxy,
    async stop() {
      await Promise.all([client.close(), proxied.close()]);
      await proxy.close();
    },
  };
}

async function replicaSet(): Promise<Server> {
  const port = await freePort();
  const proxy = await CuttingProxy.start(port);
  const server = await startReplicaSet({ port, announce: `127.0.0.1:${proxy.port}` });
  const client = new MongoClient(server.url);
  const proxied = new MongoClient(replicaSetUrl(proxy.port), quick);
  return {
    client,
    proxied,
    proxy,
    async stop() {
      await Promise.all([client.close(), proxied.close()]);
      await Promise.all([proxy.close(), server.stop()]);
    },
  };
}

// The driver sends a write again where sessions are known: its second try is cut as well.
describe.each([
  ['a server of its own', standalone, 1],
  ['a replica set', replicaSet, 2],
] as const)('contract, on %s [SESS-342]', (_name, start, tries) => {
  let server: Server;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  const cases = sessionContract(() => fixtureOf(server, database, tries));
  // A client that was handed in is not closed: H2 is tested with a url.
  it.each(cases.filter(({ id }) => id !== 'H2'))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});
