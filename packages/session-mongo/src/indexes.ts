import { SessionSchemaError } from '@agents/core/session';
import type { IndexDescription, MongoClient } from 'mongodb';

import type { Config } from './arguments.ts';
import type { Collections } from './layout.ts';

/** What was made, or is being made, over a client. */
const made = new WeakMap<MongoClient, Map<string, Promise<void>>>();

/** Once per client and collections; who comes meanwhile waits for the same, and after a failure the next one tries again. */
export async function ensureIndexes(collections: Collections, config: Config): Promise<void> {
  if (!config.createIndexes) return;
  const { client } = collections;
  const { database, sessions, messages } = config.place;
  const key = JSON.stringify([database, sessions, messages, config.ttlMs !== undefined]);
  let known = made.get(client);
  if (known === undefined) made.set(client, (known = new Map<string, Promise<void>>()));
  let making = known.get(key);
  if (making === undefined) {
    making = create(collections, config.ttlMs !== undefined);
    known.set(key, making);
    making.catch(() => known.delete(key));
  }
  await making;
}

/** Names and keys are those of the Python SDK. */
async function create({ sessions, messages }: Collections, expiring: boolean): Promise<void> {
  const byId: IndexDescription = { key: { session_id: 1 }, name: 'session_id_1', unique: true };
  const byOrder: IndexDescription = {
    key: { session_id: 1, generation: 1, seq: 1 },
    name: 'session_id_1_generation_1_seq_1',
  };
  const life: IndexDescription[] = expiring
    ? [{ key: { expires_at: 1 }, name: 'expires_at_1', expireAfterSeconds: 0 }]
    : [];
  try {
    // One after the other: a client of many sessions gets by with one connection.
    await sessions.createIndexes([byId, ...life]);
    await messages.createIndexes([byOrder, ...life]);
  } catch (error) {
    throw asSchemaError(error) ?? error;
  }
}

/** Indexes of the same keys with other options, and ids that are there twice, are for an operator to repair. */
function asSchemaError(error: unknown): SessionSchemaError | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  const problem =
    code === 85 || code === 86
      ? 'An index of the collections has other options than the sessions need. Drop it, so that it is made anew'
      : code === 11000
        ? "The collection of sessions has an id twice, so 'session_id' cannot be made unique. Remove the doubles"
        : undefined;
  return problem === undefined
    ? undefined
    : new SessionSchemaError(`${problem}, or set createIndexes: false and make the indexes yourself.`, {
        cause: error,
      });
}
