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

/**
 * Closes a client of our own. The driver tells the server which of its sessions have ended, and connects anew for it when a
 * call is under way: with a server that hangs that takes it minutes. So it is cut short, and its sockets end at once.
 */
export async function closeClient(client: MongoClient, timeoutMs: number): Promise<void> {
  const closing = client.close();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>(
    (resolve) => (timer = setTimeout(resolve, Math.min(timeoutMs, FAREWELL_MS), 'late')),
  );
  try {
    if ((await Promise.race([closing, late])) !== 'late') return;
  } finally {
    clearTimeout(timer);
  }
  closing.catch(() => undefined);
  // Not in the driver's documents. Without it the driver goes on by itself, and nobody waits for that.
  (client as { topology?: { close?: () => void } }).topology?.close?.();
}
