import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** What is between a driver and its server. */
export type Protocol = 'redis' | 'postgres' | 'mariadb';

/** What one call costs on the way to a server. */
export interface Traffic {
  /** Commands, or statements, that the server is told to carry out. */
  readonly statements: number;
  /** How often an answer is waited for. */
  readonly roundTrips: number;
}

/** A way to a server on which what goes by is counted. */
export interface Wire {
  readonly url: string;
  /** Of a call during which nothing else is under way. */
  trafficOf(call: () => Promise<unknown>): Promise<Traffic>;
  close(): void;
}

export async function openWire(url: string, protocol: Protocol): Promise<Wire> {
  let [statements, roundTrips, waits] = [0, 0, false];
  const proxy = createServer((client) => {
    const { hostname, port } = new URL(url);
    const server = connect(Number(port), hostname);
    client.on('data', (bytes: Buffer) => {
      statements += countStatements[protocol](bytes);
      if (!waits) roundTrips += 1;
      waits = true;
    });
    server.on('data', () => (waits = false));
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => {});
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const through = new URL(url);
  through.port = String((proxy.address() as AddressInfo).port);
  return {
    url: through.href,
    async trafficOf(call) {
      [statements, roundTrips, waits] = [0, 0, false];
      await call();
      return { statements, roundTrips };
    },
    close: () => void proxy.close(),
  };
}

const countStatements: Readonly<Record<Protocol, (bytes: Buffer) => number>> = {
  /** Each command is a list of texts. */
  redis: (bytes) => bytes.toString('latin1').match(/(?:^|\r\n)\*\d+\r\n\$/g)?.length ?? 0,
  /** Messages of a type and a length; `E` carries out what was prepared, `Q` is a text with statements. */
  postgres(bytes) {
    let count = 0;
    for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1))
      if (bytes[at] === 0x45 || bytes[at] === 0x51) count += 1;
    return count;
  },
  /** Packets of a length and a number, which begins with 0 in each command. */
  mariadb(bytes) {
    let count = 0;
    for (let at = 0; at + 4 <= bytes.length; at += 4 + bytes.readUIntLE(at, 3)) if (bytes[at + 3] === 0) count += 1;
    return count;
  },
};
