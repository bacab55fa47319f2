import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SessionOutcomeUnknownError } from '@agents/core/session';
import { CuttingProxy, startServer } from '@agents/testkit';
import type { RunningServer } from '@agents/testkit';

import { start } from '../processes/child.ts';
import { open } from './databases.ts';
import type { DriverName } from './databases.ts';
import { cut, deciding, judge, restart, seed } from './faults.ts';
import type { Fault, Ground, Mutation, Outcome } from './faults.ts';
import { makeTables } from './tables.ts';

/** A server whose acknowledged writes outlive it, and a proxy before it. */
export class FaultGround {
  readonly #name: 'postgres' | 'mariadb';
  readonly #folder: string;
  readonly #ground: Ground;
  #server: RunningServer;

  private constructor(name: 'postgres' | 'mariadb', folder: string, server: RunningServer, ground: Ground) {
    this.#name = name;
    this.#folder = folder;
    this.#server = server;
    this.#ground = ground;
  }

  static async start(driver: DriverName): Promise<FaultGround> {
    const name = driver === 'mysql2' ? 'mariadb' : 'postgres';
    const folder = mkdtempSync(join(tmpdir(), 'session-drizzle-faults-'));
    const server = await startServer(name, { durable: true, folder });
    const proxy = await CuttingProxy.start(server.port);
    const through = new URL(server.url);
    through.port = String(proxy.port);
    const [direct, broken] = [await open(driver, server.url), await open(driver, through.href)];
    await makeTables(direct);
    return new FaultGround(name, folder, server, { direct, broken, proxy });
  }

  async run(mutation: Mutation, fault: Fault, attempt: number): Promise<readonly Outcome[]> {
    if (fault === 'server restart') {
      const again = ({ port }: RunningServer): Promise<RunningServer> => this.#startAgain(port);
      const { outcomes, server } = await restart({ ...this.#ground, server: this.#server, again }, mutation, attempt);
      this.#server = server;
      return outcomes;
    }
    if (fault === 'client killed') return [await this.#kill(mutation, attempt)];
    return [await cut(this.#ground, mutation, fault, attempt)];
  }

  async stop(): Promise<void> {
    const { direct, broken, proxy } = this.#ground;
    // drizzle 0.45 keeps a connection of node-postgres for ever whose `begin` failed, and its pool waits for it.
    const closed = Promise.allSettled([direct.close(), broken.close()]);
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 2000))]);
    await proxy.close();
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The client of the change is gone when the server gets, or has done, the statement that decides. */
  async #kill(mutation: Mutation, attempt: number): Promise<Outcome> {
    const { direct, broken, proxy } = this.#ground;
    const id = `${mutation}-killed-${attempt}`;
    const version = await seed(direct, id);
    const matching = deciding(direct.dialect, mutation);
    const done = proxy.cutNext((['before', 'sent', 'reply'] as const)[attempt % 3] ?? 'sent', { matching });
    const child = start('mutate.ts', {}, broken.driver, broken.url, id, mutation, version);
    const early = child.ended.then((code) => Promise.reject(new Error(`The client ended by itself: ${code}`)));
    await Promise.race([done, early]);
    early.catch(() => undefined);
    child.process.kill('SIGKILL');
    await child.ended.catch(() => undefined);
    // Nobody is left who knows.
    const reason = new SessionOutcomeUnknownError('The client was killed.', { sessionId: id, operation: 'append' });
    const gone = { status: 'rejected', reason } as const;
    return await judge(direct, id, mutation, version, gone);
  }

  /** The processes of a server that was killed need a moment to go. */
  async #startAgain(port: number): Promise<RunningServer> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await startServer(this.#name, { durable: true, folder: this.#folder, port });
      } catch (error) {
        if (attempt === 20) throw error;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
  }
}
