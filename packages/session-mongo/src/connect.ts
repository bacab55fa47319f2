import type { MongoClient } from 'mongodb';

/** For which a client is waited for that says good-bye to its server: it goes without, when there is no answer. */
const FAREWELL_MS = 2000;

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

/** Connections of clients of our own that wait for an answer. */
const waiting = new WeakMap<MongoClient, number>();

/** So that `closeClient` knows. */
export function watchConnections(client: MongoClient): MongoClient {
  const count = (by: number) => () => void waiting.set(client, (waiting.get(client) ?? 0) + by);
  return client.on('connectionCheckedOut', count(1)).on('connectionCheckedIn', count(-1));
}

/**
 * Closes a client of our own. The driver tells the server which of its sessions have ended, for which it may connect anew:
 * with a server that hangs that takes it minutes. So it says nothing where calls that nobody waits for any longer have no
 * answer yet, and is cut short where it takes long.
 */
export async function closeClient(client: MongoClient, timeoutMs: number): Promise<void> {
  const hangs = (waiting.get(client) ?? 0) > 0;
  // Ends the connections that wait.
  const closing = client.close();
  if (hangs) endConnections(client);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, Math.min(timeoutMs, FAREWELL_MS), 'late');
  });
  try {
    if ((await Promise.race([closing, late])) === 'late') endConnections(client);
  } finally {
    clearTimeout(timer);
    closing.catch(() => undefined);
  }
}

/** By what is not in the driver's documents. Without it the driver goes on by itself, and nobody waits for that. */
function endConnections(client: MongoClient): void {
  (client as { topology?: { close?: () => void } }).topology?.close?.();
}
