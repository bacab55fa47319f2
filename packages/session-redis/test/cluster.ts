import { freePort, startServer } from '@agents/testkit';
import type { RunningServer, ServerOptions } from '@agents/testkit';
import { Redis } from 'ioredis';

/** Three masters on this machine that share the slots. */
export interface TestCluster {
  readonly ports: readonly number[];
  readonly servers: readonly RunningServer[];
  stop(): Promise<void>;
}

const SLOTS = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const;

export async function startCluster(options: ServerOptions = {}): Promise<TestCluster> {
  const servers = await Promise.all(
    SLOTS.map(async () => {
      // The bus listens 10 000 above by default, where there may be no port any more.
      const bus = await freePort();
      const args = ['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-node-timeout', 5000];
      return { bus, server: await startServer('redis', { ...options, args }) };
    }),
  );
  const clients = servers.map(({ server }) => new Redis(server.port));
  try {
    for (const [index, client] of clients.entries()) {
      const [from, to] = SLOTS[index] ?? [0, 0];
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    }
    for (const { server, bus } of servers.slice(1))
      await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
    for (const client of clients) await settled(client);
  } finally {
    for (const client of clients) client.disconnect();
  }
  const running = servers.map(({ server }) => server);
  return {
    ports: running.map(({ port }) => port),
    servers: running,
    stop: async () => void (await Promise.all(running.map((server) => server.stop()))),
  };
}

/** Until this node knows who has which slot. */
async function settled(client: Redis): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const info = String(await client.call('CLUSTER', 'INFO'));
    if (info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('The nodes of the cluster did not find each other.');
}
