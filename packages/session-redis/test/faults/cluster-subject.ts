import { startProcess } from '@agents/testkit';
import type { CuttingProxy, FaultSubject } from '@agents/testkit';
import { Cluster } from 'ioredis';

import { RedisSession } from '../../src/index.ts';
import { behindProxies, TestCluster } from '../cluster.ts';
import { isWrite } from '../contract.ts';

const script = new URL('change.ts', import.meta.url);

/** Waits for a request at each of the nodes; only one of them has the session. */
class AnyNode implements Pick<CuttingProxy, 'cutNext' | 'stopNext'> {
  readonly #proxies: readonly CuttingProxy[];
  /** The node of the last request. */
  last = 0;

  constructor(proxies: readonly CuttingProxy[]) {
    this.#proxies = proxies;
  }

  async cutNext(...request: Parameters<CuttingProxy['cutNext']>): Promise<void> {
    await Promise.race(
      this.#proxies.map(async (proxy, index) => {
        await proxy.cutNext(...request);
        this.#met(index);
      }),
    );
  }

  stopNext(act: (forward: () => void) => void, options: Parameters<CuttingProxy['stopNext']>[1]): void {
    for (const [index, proxy] of this.#proxies.entries())
      proxy.stopNext((forward) => {
        this.#met(index);
        act(forward);
      }, options);
  }

  #met(index: number): void {
    this.last = index;
    for (const proxy of this.#proxies) proxy.disarm();
  }
}

/**
 * A cluster of its own whose nodes keep what they acknowledged, each behind a proxy.
 *
 * @param sendsAgain whether the client is as ioredis makes it by default, or tells of each broken connection
 */
export async function startClusterSubject(sendsAgain: boolean): Promise<FaultSubject & { stop(): Promise<void> }> {
  const cluster = await TestCluster.start({ durable: true });
  const proxied = await behindProxies(cluster);
  const proxy = new AnyNode(proxied.proxies);
  const broken = proxied.connect(sendsAgain);
  const direct = new Cluster([{ host: '127.0.0.1', port: cluster.ports[0]! }]);
  direct.on('error', () => {});
  await warmUp(direct);
  return {
    proxy,
    isWrite,
    open: (id) => new RedisSession(id, { client: broken }),
    direct: (id) => new RedisSession(id, { client: direct }),
    async restart() {
      await cluster.restart(proxy.last);
      await warmUp(direct);
    },
    process(id, operation) {
      const target = JSON.stringify({ start: proxied.start, natMap: proxied.natMap });
      const child = startProcess(script, target, 'lua', id, operation);
      return { kill: () => void child.process.kill('SIGKILL'), ended: child.ended };
    },
    async stop() {
      broken.disconnect();
      direct.disconnect();
      await proxied.close();
      await cluster.stop();
    },
  };
}

/** So that each node knows the scripts: what is cut is the change itself, not the news that it does not. */
async function warmUp(client: Cluster): Promise<void> {
  // Of these ids each node has one.
  for (const id of ['warm', 'a', 'b', 'c', 'd', 'e']) {
    const session = new RedisSession<object>(id, { client });
    for (let attempt = 0; ; attempt++) {
      try {
        await session.addItems([{ n: '1' }]);
        await session.popItem();
        await session.clearSession();
        break;
      } catch (error) {
        if (attempt === 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}
