import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/**
 * Where a connection breaks, seen from one request:
 * - `before`: nothing of it reaches the server;
 * - `middle`: the server gets the first half;
 * - `sent`: the server gets all of it, and the connection ends in the same moment: it may or may not act on it;
 * - `reply`: the server has acted and answered, the answer is lost;
 * - `answer`: the client gets the first half of the answer.
 */
export type Cut = 'before' | 'middle' | 'sent' | 'reply' | 'answer';

export interface CutOptions {
  /** Which request is meant; chunks as they arrive, mostly one a request. Default: the next one. */
  readonly matching?: (request: Buffer) => boolean;
  /** `sent`: end the server's side by a reset, which may throw away what it has not read yet. Default: orderly. */
  readonly reset?: boolean;
}

interface Armed extends CutOptions {
  readonly cut: Cut;
  readonly done: () => void;
}

interface Stopped extends CutOptions {
  readonly act: (forward: () => void) => void;
}

/**
 * Stands between a client and a server on this machine and cuts connections where a test wants it. Knows no protocol.
 *
 * @example
 * const proxy = await CuttingProxy.start(6379);
 * const client = new Redis(proxy.port);
 * const cut = proxy.cutNext('reply', { matching: (request) => request.includes('EVALSHA') });
 * await Promise.allSettled([session.addItems(items), cut]);
 */
export class CuttingProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #links = new Set<Socket>();
  readonly #waiting: (Armed | Stopped)[] = [];
  #refusing = false;
  #silent = false;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#link(client));
    this.#server.unref();
  }

  /** @param target the server's port; @param port its own, default a free one */
  static async start(target: number, port = 0): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(port, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts the connection of the next request that matches; resolves when it did. Several are taken in their order. */
  cutNext(cut: Cut, options: CutOptions = {}): Promise<void> {
    return new Promise((done) => void this.#waiting.push({ ...options, cut, done }));
  }

  /** Stops the next request that matches until `act` forwards it, if it does; the connection lives on. */
  stopNext(act: (forward: () => void) => void, options: CutOptions = {}): void {
    this.#waiting.push({ ...options, act });
  }

  /** Forgets what no request has met. */
  disarm(): void {
    this.#waiting.length = 0;
  }

  /** Ends every connection that there is. */
  cutAll(): void {
    for (const socket of this.#links) socket.resetAndDestroy();
  }

  /** Whether new connections are ended at once. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  /** Whether what clients send is swallowed: the server seems to be there and does not answer. */
  silence(silent: boolean): void {
    this.#silent = silent;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cutAll();
    await closed;
  }

  #link(client: Socket): void {
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    /** What was cut in this connection: its answer is watched. */
    let armed: Armed | undefined;
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#links.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#links.delete(socket);
        other.destroy();
      });
    }
    client.on('data', (chunk: Buffer) => {
      const at = armed ? -1 : this.#waiting.findIndex(({ matching }) => matching?.(chunk) ?? true);
      if (at === -1) {
        if (!this.#silent) server.write(chunk);
        return;
      }
      const [met] = this.#waiting.splice(at, 1);
      if (met === undefined) return;
      if ('act' in met) {
        met.act(() => void server.write(chunk));
        return;
      }
      armed = met;
      cutRequest(met, chunk, client, server);
    });
    server.on('data', (chunk: Buffer) => {
      if (armed === undefined) client.write(chunk);
      else cutAnswer(armed, chunk, client, server);
    });
  }
}

function cutRequest({ cut, reset, done }: Armed, request: Buffer, client: Socket, server: Socket): void {
  const end = (): void => {
    if (reset === true) server.resetAndDestroy();
    else server.end();
    client.resetAndDestroy();
    done();
  };
  if (cut === 'before') end();
  else if (cut === 'middle') server.write(request.subarray(0, Math.ceil(request.length / 2)), end);
  else if (cut === 'sent') server.write(request, end);
  else server.write(request);
}

function cutAnswer({ cut, done }: Armed, answer: Buffer, client: Socket, server: Socket): void {
  const end = (): void => {
    client.destroy();
    server.destroy();
    done();
  };
  if (cut === 'reply') end();
  else if (cut === 'answer') client.write(answer.subarray(0, Math.ceil(answer.length / 2)), end);
}
