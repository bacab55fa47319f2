import type { SessionFixture } from '@agents/core/testing';
import { sessionContract } from '@agents/core/testing';
import { meetFault } from '@agents/testkit';
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { RedisSession } from '../src/index.ts';
import { behindProxies, TestCluster } from './cluster.ts';
import type { ProxiedCluster } from './cluster.ts';
import { noSkip } from './contract.ts';
import { startClusterSubject } from './faults/cluster-subject.ts';
import { freshPrefix } from './redis.ts';

describe('contract, on three masters [SESS-342]', () => {
  let cluster: TestCluster;
  let proxied: ProxiedCluster;
  let client: Cluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
    proxied = await behindProxies(cluster);
    client = proxied.connect(false);
  });
  afterAll(async () => {
    client.disconnect();
    await proxied.close();
    await cluster.stop();
  });

  const make = (): SessionFixture => {
    const keyPrefix = freshPrefix();
    return {
      open: (id, more) => new RedisSession<object>(id, { client, keyPrefix, ...more }),
      addCorrupt: async (id, record) => void (await client.rpush(`${keyPrefix}:{${id}}:messages`, record)),
    };
  };
  // Faults are below.
  const elsewhere = /^(G|H2)/;
  it.each(sessionContract(make).filter(({ id }) => !elsewhere.test(id)))('$title', async (contractCase) => {
    await expect(contractCase.run(noSkip)).resolves.toBeUndefined();
  });
});

/** What a fault may lead to. */
const possible = {
  tells: { before: ['absent'], sent: ['committed', 'absent'], reply: ['committed'], middle: ['absent'] },
  // Mostly ok; now and then the client loses its way in the cluster, and gives up.
  'sends again': {
    before: ['ok', 'absent'],
    sent: ['ok', 'committed', 'absent'],
    reply: ['ok', 'committed'],
    middle: ['ok', 'absent'],
  },
} as const;

describe.each(['tells', 'sends again'] as const)('changes on three masters, by a client that %s', (how) => {
  let subject: Awaited<ReturnType<typeof startClusterSubject>>;
  beforeAll(async () => {
    subject = await startClusterSubject(how === 'sends again');
  });
  afterAll(() => subject.stop());

  it.each(['append', 'appendIfVersion', 'replace', 'pop', 'clear'] as const)(
    '%s: whole or not at all, and settled by its id [SESS-006, 151, 226, 227]',
    async (operation) => {
      for (const fault of ['before', 'sent', 'reply', 'middle'] as const)
        for (const round of [0, 1])
          expect(possible[how][fault]).toContain(await meetFault(subject, operation, fault, round));
    },
  );
});
