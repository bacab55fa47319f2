import type { MongoClient } from 'mongodb';

const lanes = new WeakMap<MongoClient, Map<string, Promise<unknown>>>();

/**
 * Work of this process on one session, one after the other: what was reserved first is inserted first, whichever objects
 * append. Between processes nothing keeps this order (`seq` decides where a batch stands, its insertion when it is seen).
 *
 * @param patienceMs how long others wait for this work: one whose answer never comes holds them up no longer than its caller
 */
export async function inLane<R>(
  client: MongoClient,
  key: string,
  patienceMs: number,
  work: () => Promise<R>,
): Promise<R> {
  let lane = lanes.get(client);
  if (lane === undefined) lanes.set(client, (lane = new Map<string, Promise<unknown>>()));
  const result = (lane.get(key) ?? Promise.resolve()).then(work);
  const over = endOf(result, patienceMs);
  lane.set(key, over);
  try {
    return await result;
  } finally {
    if (lane.get(key) === over) lane.delete(key);
  }
}

/** However it ends, and at the latest after so long. */
async function endOf(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work.catch(() => undefined), late]);
  clearTimeout(timer);
}
