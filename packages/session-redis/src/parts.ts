import { versionConflict } from '@agents/core/session';
import type { StoredRecord } from '@agents/core/session';
import type { Cluster, Redis } from 'ioredis';

import { isAnswer } from './connection.ts';
import type { Connection } from './connection.ts';
import type { RedisHistorySetup } from './history.ts';
import { besideKey } from './keys.ts';
import type { SessionKeys } from './keys.ts';
import { answersOf, RawRecord, readAtOnce, sentAgain } from './read.ts';
import { BESIDE_MS } from './stage.ts';

/** Elements that are read at once. */
const PART = 500;

/**
 * The elements of one moment, oldest first. A short list is read at once; of a longer one the server makes a copy, which is
 * read part by part and then removed. Where it makes none (it is full, a replica, or old; the user may not write) all of it
 * is read at once.
 */
export async function* historyParts({ connection, keys }: RedisHistorySetup): AsyncGenerator<readonly StoredRecord[]> {
  const head = await connection.use((client) => readPart(client, keys, keys.messages, 0, PART));
  if (head.length <= PART) {
    yield head.records;
    return;
  }
  const copy = besideKey(keys);
  const length = await copyList(connection, keys, copy);
  if (length === undefined) {
    yield (await connection.use((client) => readPart(client, keys, keys.messages, 0, Infinity))).records;
    return;
  }
  try {
    for (let from = 0; from < length; from += PART) {
      const part = await connection.use((client) => readPart(client, keys, copy, from, PART));
      if (part.length !== length) throw versionConflict(keys.sessionId, String(length), String(part.length));
      yield part.records;
    }
  } finally {
    // It ends by itself, too.
    await connection.use((client) => client.del(copy)).catch(() => undefined);
  }
}

/** @returns how long the copy is; `undefined`: the server does not make one */
async function copyList(connection: Connection, keys: SessionKeys, to: string): Promise<number | undefined> {
  try {
    return await connection.use(async (client) => {
      const answers = await sentAgain(() =>
        client.multi().copy(keys.messages, to, 'REPLACE').pexpire(to, BESIDE_MS).llen(to).exec(),
      );
      return Number(answersOf(answers, keys)[2]);
    });
  } catch (error) {
    if (isAnswer(error)) return undefined;
    throw error;
  }
}

async function readPart(
  client: Redis | Cluster,
  keys: SessionKeys,
  key: string,
  from: number,
  count: number,
): Promise<{ length: number; records: StoredRecord[] }> {
  const last = count === Infinity ? -1 : from + count - 1;
  const answers = await readAtOnce(client, keys, (commands) => commands.llen(key).lrangeBuffer(key, from, last));
  const [length, elements] = answers as [number | string, Buffer[]];
  return { length: Number(length), records: elements.map((raw, index) => new RawRecord(raw, from + index)) };
}
