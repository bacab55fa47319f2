import type { MongoClient } from 'mongodb';

const connections = new WeakMap<MongoClient, Promise<unknown>>();

/**
 * A client connects with its first command; one for which no server was there then would refuse every later command too.
 * So it is connected in so many words, and again by the next call when that failed. One that was connected, and that its
 * owner closed, is left alone.
 */
export async function ensureConnected(client: MongoClient): Promise<void> {
  let connecting = connections.get(client);
  if (connecting === undefined) {
    connecting = client.connect();
    connections.set(client, connecting);
    connecting.catch(() => connections.delete(client));
  }
  await connecting;
}
