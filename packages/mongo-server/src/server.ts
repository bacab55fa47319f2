import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';

import type { Connection, Users } from './access.ts';
import { Commands } from './commands.ts';
import { Store } from './store.ts';
import { readMessages, writeReply } from './wire.ts';

export interface MongoServerOptions {
  /** Default: a free one. */
  readonly port?: number | undefined;
  /** Plays the one member of a replica set of this name: sessions retry writes and have transactions. */
  readonly replicaSet?: string | undefined;
  /** Where the member of the replica set is found, when that is not here: a proxy. */
  readonly announce?: string | undefined;
  /** Keeps a journal: what was acknowledged is there again after a crash. Default: everything ends with the server. */
  readonly folder?: string | undefined;
  /** How often expired documents are removed, in ms. Default 200. */
  readonly expireEveryMs?: number | undefined;
  /** Who may log in, by SCRAM-SHA-256. Default: nobody has to. */
  readonly users?: Users | undefined;
  /** Speaks TLS alone, with this certificate. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
}

/**
 * Speaks MongoDB's wire protocol as far as drivers and tests need it. Every command is atomic, and they come one after
 * the other.
 *
 * @example
 * const server = await MongoServer.start({ replicaSet: 'rs' });
 * const client = new MongoClient(server.url);
 * await server.stop();
 */
export class MongoServer {
  readonly #server: Server;
  readonly #store: Store;
  readonly #sockets = new Set<Socket>();
  readonly #expiry: NodeJS.Timeout;
  readonly port: number;
  readonly url: string;

  private constructor(server: Server, options: MongoServerOptions) {
    const { port } = server.address() as AddressInfo;
    const { replicaSet, announce = `127.0.0.1:${port}`, users } = options;
    this.#server = server;
    this.#store = new Store(options.folder);
    const commands = new Commands(this.#store, {
      replicaSet: replicaSet === undefined ? undefined : { name: replicaSet, address: announce },
      users,
    });
    server.on(options.tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#serve(socket, commands));
    this.#expiry = setInterval(() => commands.expire(Date.now()), options.expireEveryMs ?? 200);
    this.#expiry.unref();
    this.port = port;
    this.url = `mongodb://127.0.0.1:${port}/${replicaSet === undefined ? '?directConnection=true' : `?replicaSet=${replicaSet}`}`;
  }

  static async start(options: MongoServerOptions = {}): Promise<MongoServer> {
    const server = options.tls ? createSecureServer(options.tls) : createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(options.port ?? 0, '127.0.0.1', resolve);
    });
    return new MongoServer(server, options);
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async stop(): Promise<void> {
    clearInterval(this.#expiry);
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#store.close();
  }

  #serve(socket: Socket, commands: Commands): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    const connection: Connection = {};
    let arrived: Buffer[] = [];
    let size = 0;
    let wanted = 4;
    socket.on('data', (chunk) => {
      arrived.push(chunk);
      size += chunk.length;
      // Not put together for each piece of a long message.
      if (size < wanted) return;
      try {
        const { messages, rest } = readMessages(Buffer.concat(arrived));
        arrived = [rest];
        size = rest.length;
        wanted = size >= 4 ? rest.readInt32LE(0) : 4;
        for (const message of messages) socket.write(writeReply(message, commands.answer(message.body, connection)));
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
        socket.destroy();
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => void this.#sockets.delete(socket));
  }
}
