import { startProcess } from '@agents/testkit';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { MongoDBSession } from '../src/index.ts';
import { Rig } from './faults/rig.ts';
import { freshName, mongoUrl, raw } from './mongo.ts';

let client: MongoClient;
const database = freshName();
beforeAll(() => {
  client = new MongoClient(mongoUrl());
});
afterAll(async () => {
  await client.db(database).dropDatabase();
  await client.close();
});

const append = new URL('processes/append.ts', import.meta.url);

async function contents(id: string, from: MongoClient = client): Promise<string[]> {
  const session = new MongoDBSession<{ content: string }>(id, { client: from, database });
  return (await session.getItems()).map((item) => item.content);
}

/** Every batch whole, contiguous and in order; resolves to its names. */
function batchesOf(items: readonly string[], size: number): string[] {
  expect(items.length % size).toBe(0);
  const names: string[] = [];
  for (let at = 0; at < items.length; at += size) {
    const name = items[at]!.replace(/\/\d+$/, '');
    expect(items.slice(at, at + size)).toEqual(Array.from({ length: size }, (_, index) => `${name}/${index}`));
    names.push(name);
  }
  return names;
}

it('takes batches of two processes without losing or splitting one, and lets both end [F6, H6, SESS-006, 157]', async () => {
  const names = ['a', 'b'];
  const children = names.map((name) => startProcess(append, mongoUrl(), database, 'shared', name, 100, 3));
  await Promise.all(children.map((child) => child.line(1)));
  for (const child of children) child.process.stdin.write('go\n');
  // Nothing keeps a process that closed its session: they end by themselves.
  expect(await Promise.all(children.map((child) => child.ended))).toEqual([0, 0]);
  const batches = batchesOf(await contents('shared'), 3);
  expect(batches).toHaveLength(200);
  for (const name of names)
    expect(batches.filter((batch) => batch.startsWith(name))).toEqual(
      Array.from({ length: 100 }, (_, index) => `${name}/${index}`),
    );
  expect(await raw(client, database).sessions.countDocuments({ session_id: 'shared' })).toBe(1);
});

it(
  'loses no acknowledged batch and keeps no part of one, whichever process is killed at whatever moment [SESS#12, SESS-006]',
  { timeout: 120_000 },
  async () => {
    const rig = await Rig.start('standalone');
    try {
      const acknowledged: string[] = [];
      for (let round = 0; round < 2; round++) {
        const writer = startProcess(append, rig.directUrl, database, 'killed', `w${round}`, 1_000_000, 5);
        await writer.line(1);
        writer.process.stdin.write('go\n');
        await writer.line(3);
        if (round % 2 === 0) writer.process.kill('SIGKILL');
        else await rig.restart();
        writer.process.kill('SIGKILL');
        await writer.ended.catch(() => undefined);
        acknowledged.push(
          ...writer
            .lines()
            .slice(1)
            .map((batch) => `w${round}/${batch}`),
        );
        const stored = batchesOf(await contents('killed', rig.direct), 5);
        const names = new Set(stored);
        expect(acknowledged.filter((batch) => !names.has(batch))).toEqual([]);
        // At most the batch that was in flight came on top.
        expect(stored.length - acknowledged.length).toBeLessThanOrEqual(round + 1);
      }
    } finally {
      await rig.stop();
    }
  },
);

/** A server that a process stops, and that process. */
async function closing(what: string) {
  const server = startProcess(new URL('../../mongo-server/src/main.ts', import.meta.url));
  await server.line(1);
  const script = new URL('processes/close.ts', import.meta.url);
  const child = startProcess(script, server.lines()[0]!, server.process.pid!, what);
  const kill = (): void => {
    child.process.kill('SIGKILL');
    server.process.kill('SIGKILL');
  };
  return { child, kill };
}

it.each(['session', 'store'])(
  'closes a %s while its server stands still and a read is under way: the process ends [SESS-154, 157]',
  { timeout: 60_000 },
  async (what) => {
    const { child, kill } = await closing(what);
    try {
      expect(await child.ended).toBe(0);
    } finally {
      kill();
    }
    expect(child.lines()).toEqual(['SessionError']);
  },
);

it(
  'closes when its server stands still and no connection is left to say so [SESS-154]',
  { timeout: 60_000 },
  async () => {
    const { child, kill } = await closing('idle');
    await child.line(1);
    kill();
    expect(child.lines()).toEqual(['no read']);
  },
);
