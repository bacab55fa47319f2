import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CuttingProxy, freePort, startServer } from '@agents/testkit';
import type { RunningServer } from '@agents/testkit';
import { Cluster, Redis } from 'ioredis';
import type { NatMap } from 'ioredis';

const SLOTS = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const;

interface Node {
  readonly folder: string;
  readonly args: readonly (string | number)[];
  server: RunningServer;
}

/** Three masters on this machine that share the slots. */
export class TestCluster {
  readonly #nodes: readonly Node[];
  readonly #durable: boolean;

  private constructor(nodes: readonly Node[], durable: boolean) {
    this.#nodes = nodes;
    this.#durable = durable;
  }

  /** @param options `durable`: what it acknowledged outlives it */
  static async start({ durable = false }: { readonly durable?: boolean } = {}): Promise<TestCluster> {
    const started = await Promise.all(
      SLOTS.map(async () => {
        const folder = mkdtempSync(join(tmpdir(), 'session-redis-cluster-'));
        // The bus listens 10 000 above by default, where there may be no port any more.
        const bus = await freePort();
        const args = ['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-node-timeout', 5000];
        return { folder, bus, args, server: await startServer('redis', { durable, folder, args }) };
      }),
    );
    const clients = started.map(({ server }) => new Redis(server.port));
    for (const [index, client] of clients.entries()) {
      const [from, to] = SLOTS[index] ?? [0, 0];
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    }
    for (const { server, bus } of started.slice(1))
      await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
    for (const client of clients) client.disconnect();
    const cluster = new TestCluster(started, durable);
    await cluster.#settled();
    return cluster;
  }

  get ports(): readonly number[] {
    return this.#nodes.map(({ server }) => server.port);
  }

  /** Ends a node as a crash does, and starts it again where it was. */
  async restart(index: number): Promise<void> {
    const node = this.#nodes[index];
    if (node === undefined) throw new Error(`There is no node ${index}.`);
    await node.server.kill();
    const { folder, args, server } = node;
    node.server = await startServer('redis', { durable: this.#durable, folder, args, port: server.port });
    await this.#settled();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map(({ server }) => server.stop()));
    for (const { folder } of this.#nodes) rmSync(folder, { recursive: true, force: true });
  }

  async #settled(): Promise<void> {
    for (const port of this.ports) await settled(port);
  }
}

/** A client that comes to each node by way of a proxy. */
export interface ProxiedCluster {
  readonly proxies: readonly CuttingProxy[];
  readonly start: { readonly host: string; readonly port: number };
  readonly natMap: NatMap;
  /** @param sendsAgain as ioredis does by default; else broken connections are told, not mended */
  connect(sendsAgain: boolean): Cluster;
  close(): Promise<void>;
}

export async function behindProxies({ ports }: TestCluster): Promise<ProxiedCluster> {
  const proxies = await Promise.all(ports.map((port) => CuttingProxy.start(port)));
  const host = '127.0.0.1';
  const natMap = Object.fromEntries(ports.map((port, at) => [`${host}:${port}`, { host, port: proxies[at]!.port }]));
  const start = { host, port: proxies[0]!.port };
  return {
    proxies,
    start,
    natMap,
    connect(sendsAgain) {
      const telling = { redisOptions: { maxRetriesPerRequest: 0 }, retryDelayOnFailover: 0 };
      const client = new Cluster([start], { natMap, slotsRefreshTimeout: 30_000, ...(sendsAgain ? {} : telling) });
      client.on('error', () => {});
      return client;
    },
    close: async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))),
  };
}

/** Until this node knows who has which slot. */
async function settled(port: number): Promise<void> {
  const client = new Redis(port, { retryStrategy: () => 50 });
  client.on('error', () => {});
  try {
    for (let attempt = 0; attempt < 600; attempt++) {
      const info = String(await client.call('CLUSTER', 'INFO').catch(() => ''));
      if (info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    client.disconnect();
  }
  throw new Error('The nodes of the cluster did not find each other.');
}
