import type { MongoClient } from 'mongodb';

const lanes = new WeakMap<MongoClient, Map<string, Promise<unknown>>>();

/**
 * Work of this process on one session, one after the other: what was reserved first is inserted first, whichever objects
 * append. Between processes nothing keeps this order (`seq` decides where a batch stands, its insertion when it is seen).
 */
export async function inLane<R>(client: MongoClient, key: string, work: () => Promise<R>): Promise<R> {
  let lane = lanes.get(client);
  if (lane === undefined) lanes.set(client, (lane = new Map<string, Promise<unknown>>()));
  const before = lane.get(key) ?? Promise.resolve();
  const result = before.then(work);
  const settled = result.catch(() => undefined);
  lane.set(key, settled);
  try {
    return await result;
  } finally {
    if (lane.get(key) === settled) lane.delete(key);
  }
}
