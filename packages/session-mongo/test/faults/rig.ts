import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CuttingProxy, freePort, startServer } from '@agents/testkit';
import type { RunningServer } from '@agents/testkit';
import { MongoClient } from 'mongodb';

import { quick, replicaSetUrl, startReplicaSet } from '../mongo.ts';

export type Topology = 'standalone' | 'replica set';

/** A server whose acknowledged writes outlive it, behind a proxy that cuts. */
export class Rig {
  readonly topology: Topology;
  readonly proxy: CuttingProxy;
  /** Through the proxy. */
  readonly url: string;
  readonly #folder: string;
  readonly #port: number;
  #server: RunningServer;
  #direct: MongoClient;
  #client: MongoClient;
  /** Met the end of the server, and may be about to hear of it. */
  #former: MongoClient | undefined;

  private constructor(topology: Topology, proxy: CuttingProxy, server: RunningServer) {
    this.topology = topology;
    this.proxy = proxy;
    this.url =
      topology === 'standalone'
        ? `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`
        : replicaSetUrl(proxy.port);
    this.#client = new MongoClient(this.url, quick);
    this.#folder = server.folder;
    this.#port = server.port;
    this.#server = server;
    this.#direct = new MongoClient(server.url, quick);
  }

  static async start(topology: Topology): Promise<Rig> {
    const port = await freePort();
    const proxy = await CuttingProxy.start(port);
    const folder = mkdtempSync(join(tmpdir(), 'session-mongo-faults-'));
    return new Rig(topology, proxy, await startOn(topology, proxy, folder, port));
  }

  /** Through the proxy. A client that met the end of its server is not used again: after a restart it is another one. */
  get client(): MongoClient {
    return this.#client;
  }

  /** Not through the proxy. */
  get direct(): MongoClient {
    return this.#direct;
  }

  /** Its address, not through the proxy. */
  get directUrl(): string {
    return this.#server.url;
  }

  /** Ends the server as a crash does and starts another one on what it left. */
  async restart(): Promise<void> {
    await this.#server.kill();
    await this.#direct.close();
    this.#server = await startOn(this.topology, this.proxy, this.#folder, this.#port);
    this.#direct = new MongoClient(this.#server.url, quick);
    await this.#former?.close();
    this.#former = this.#client;
    this.#client = new MongoClient(this.url, quick);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#client.close(), this.#direct.close(), this.#former?.close()]);
    await Promise.all([this.proxy.close(), this.#server.stop()]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function startOn(topology: Topology, proxy: CuttingProxy, folder: string, port: number): Promise<RunningServer> {
  const options = { folder, port, durable: true };
  return topology === 'standalone'
    ? await startServer('mongo', options)
    : await startReplicaSet({ ...options, announce: `127.0.0.1:${proxy.port}` });
}
