import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ManagedSession } from '@agents/core/session';
import { CuttingProxy, startServer } from '@agents/testkit';
import type { FaultOperation, FaultSubject, RunningServer } from '@agents/testkit';
import { sql } from 'drizzle-orm/sql/sql';

import { DrizzleSession } from '../../src/index.ts';
import { start } from '../processes/child.ts';
import { open } from '../support/databases.ts';
import type { DriverName, Opened } from '../support/databases.ts';
import { execute } from '../support/fixture.ts';
import { makeTables } from '../support/tables.ts';

/** A server of its own that keeps what it acknowledged, behind a proxy. */
export async function startSubject(driver: DriverName): Promise<FaultSubject & { stop(): Promise<void> }> {
  const name = driver === 'mysql2' ? 'mariadb' : 'postgres';
  const folder = mkdtempSync(join(tmpdir(), 'session-drizzle-faults-'));
  let server = await startServer(name, { durable: true, folder });
  const proxy = await CuttingProxy.start(server.port);
  const through = new URL(server.url);
  through.port = String(proxy.port);
  const [direct, broken] = [await open(driver, server.url), await open(driver, through.href)];
  await makeTables(direct);
  return {
    proxy,
    isWrite: (request, operation, round) => decides(direct, operation, round).test(request.toString('latin1')),
    open: (id) => sessionOn(broken, id),
    direct: (id) => sessionOn(direct, id),
    async restart() {
      await server.kill();
      server = await startAgain(name, folder, server.port);
      await ready(direct);
    },
    process(id, operation) {
      const child = start('change.ts', {}, driver, through.href, id, operation);
      return { kill: () => void child.process.kill('SIGKILL'), ended: child.ended };
    },
    async settled(id) {
      // Who is at work on the session holds the lock of its row.
      await execute(direct, sql`update agent_sessions set session_id = ${id} where session_id = ${id}`);
    },
    async stop() {
      // drizzle 0.45 keeps a connection of node-postgres for ever whose `begin` failed, and its pool waits for it.
      const closed = Promise.allSettled([direct.close(), broken.close()]);
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 2000))]);
      await proxy.close();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** An append is one statement in PostgreSQL; the others are transactions, of which some rounds meet an earlier statement. */
function decides({ dialect }: Opened, operation: FaultOperation, round: number): RegExp {
  // By an item: preparing the statement does nothing yet, and one that is prepared is not sent again.
  if (dialect === 'pg' && operation === 'append') return /{\\?"n\\?":/;
  return round % 3 === 2 ? /insert into|delete from|for update/ : /commit(?!ted)/;
}

export function sessionOn({ db }: Pick<Opened, 'db'>, id: string): ManagedSession<{ readonly n: string }> {
  // With the table of operations, which these databases have, it has history transactions.
  return new DrizzleSession(id, { db, operationTimeoutMs: 20_000 }) as DrizzleSession<{ n: string }> &
    ManagedSession<{ n: string }>;
}

/** The processes of a server that was killed need a moment to go. */
async function startAgain(name: 'postgres' | 'mariadb', folder: string, port: number): Promise<RunningServer> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await startServer(name, { durable: true, folder, port });
    } catch (error) {
      if (attempt === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

/** A server that takes connections may still be reading its log. */
async function ready(opened: Opened): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await execute(opened, sql`select 1`);
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
