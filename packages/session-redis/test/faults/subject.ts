import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CuttingProxy, startProcess, startServer } from '@agents/testkit';
import type { FaultSubject } from '@agents/testkit';

import { RedisSession } from '../../src/index.ts';
import { isWrite } from '../contract.ts';

const script = new URL('change.ts', import.meta.url);

/** So that the server knows the scripts: what is cut is the change itself, not the news that it does not. */
async function warmUp(url: string): Promise<void> {
  await using session = new RedisSession<object>('warm', { url });
  await session.addItems([{ n: '1' }]);
  await session.popItem();
  await session.clearSession();
}

/** A Redis of its own that keeps what it acknowledged, behind a proxy. */
export async function startSubject(scripting: 'lua' | 'multi'): Promise<FaultSubject & { stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'session-redis-faults-'));
  let server = await startServer('redis', { folder, durable: true });
  await warmUp(server.url);
  const proxy = await CuttingProxy.start(server.port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  return {
    proxy,
    isWrite,
    open: (id) => new RedisSession(id, { url, scripting }),
    direct: (id) => new RedisSession(id, { url: server.url, scripting }),
    async restart() {
      await server.kill();
      server = await startServer('redis', { folder, durable: true, port: server.port });
      await warmUp(server.url);
    },
    process(id, operation) {
      const child = startProcess(script, url, scripting, id, operation);
      return { kill: () => void child.process.kill('SIGKILL'), ended: child.ended };
    },
    async stop() {
      await proxy.close();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
