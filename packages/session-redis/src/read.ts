import { createHash } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';

import { SessionSchemaError } from '@agents/core/session';
import type { StoredRecord } from '@agents/core/session';
import type { ChainableCommander, Cluster, Redis } from 'ioredis';

import { isAnswer, reasonOf } from './connection.ts';
import type { SessionKeys } from './keys.ts';

/** One element of the list, as bytes; read as text when somebody asks, for there may be many. */
export class RawRecord implements StoredRecord {
  readonly raw: Buffer;
  readonly position: number;

  constructor(raw: Buffer, position: number) {
    this.raw = raw;
    this.position = position;
  }

  get text(): string | undefined {
    return isUtf8(this.raw) ? this.raw.toString('utf8') : undefined;
  }
}

/** The newest records and what belongs to them, of one moment. */
export interface Tail {
  /** Oldest first. */
  readonly records: readonly RawRecord[];
  readonly version: string;
  /** Of the whole history. */
  readonly length: number;
  /** Whether there is a session, be it one of no items. */
  readonly exists: boolean;
  /** The field `_ops`, when it was asked for. */
  readonly operations: string;
}

/** @param count how many records, `undefined`: all */
export async function readTail(
  client: Redis | Cluster,
  keys: SessionKeys,
  count: number | undefined,
  { operations = false }: { operations?: boolean } = {},
): Promise<Tail> {
  const fields = operations ? ['_ver', 'session_id', '_ops'] : ['_ver', 'session_id'];
  // The version needs the newest one.
  const first = count === undefined ? 0 : -Math.max(count, 1);
  const answers = await readAtOnce(client, keys, (commands) =>
    commands
      .hmget(keys.session, ...fields)
      .llen(keys.messages)
      .lrangeBuffer(keys.messages, first, -1),
  );
  const [[ver, id, ops], size, elements] = answers as [
    [string | null, string | null, string?],
    number | string,
    Buffer[],
  ];
  const length = Number(size);
  const from = length - elements.length;
  return {
    records: count === 0 ? [] : elements.map((raw, index) => new RawRecord(raw, from + index)),
    version: versionOf(ver, length, elements.at(-1)),
    length,
    exists: id !== null || length > 0,
    operations: ops ?? '',
  };
}

/** How long a history is, and whether there is a session, for what needs no version: its newest record stays where it is. */
export async function readSize(
  client: Redis | Cluster,
  keys: SessionKeys,
): Promise<Pick<Tail, 'length' | 'exists'> & { readonly version: undefined }> {
  const commands = (): ChainableCommander => client.pipeline().hexists(keys.session, 'session_id').llen(keys.messages);
  const [known, size] = answersOf(await sentAgain(() => commands().exec()), keys);
  const length = Number(size);
  return { version: undefined, length, exists: Number(known) === 1 || length > 0 };
}

const ATTEMPTS = 3;

/**
 * What these commands read, of one moment. A server whose memory is full takes no transactions: there they are sent twice,
 * until they read the same.
 */
export async function readAtOnce(
  client: Redis | Cluster,
  keys: SessionKeys,
  add: (commands: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  try {
    return answersOf(await sentAgain(() => add(client.multi()).exec()), keys);
  } catch (error) {
    const reason = reasonOf(error);
    if (!isAnswer(reason) || !reason.message.startsWith('OOM')) throw reason;
  }
  for (;;) {
    const answers = answersOf(await sentAgain(() => add(add(client.pipeline())).exec()), keys);
    const once = answers.slice(0, answers.length / 2);
    if (isDeepStrictEqual(once, answers.slice(once.length))) return once;
  }
}

/** A client that sends again what was not answered leaves out commands of one reading of which it has a part of the answer. */
export async function sentAgain<R>(read: () => Promise<R>): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      const torn = error instanceof Error && error.name === 'AbortError';
      if (!torn || attempt === ATTEMPTS) throw error;
    }
  }
}

/** As in the scripts. */
export function versionOf(count: string | null, length: number, newest: Buffer | string | undefined): string {
  const digest = newest === undefined ? '' : createHash('sha1').update(newest).digest('hex');
  return `${changeCount(count)}:${length}:${digest}`;
}

/** The field `_ver`, or 0 where it is not ours. */
export function changeCount(ver: string | null | undefined): string {
  return ver && /^\d{1,16}$/.test(ver) ? ver : '0';
}

/** The results of a transaction. @throws the first error among them; `SessionSchemaError` for keys of another type */
export function answersOf(answers: readonly [Error | null, unknown][] | null, { sessionId }: SessionKeys): unknown[] {
  return (answers ?? []).map(([error, result]) => {
    if (error?.message.startsWith('WRONGTYPE'))
      throw new SessionSchemaError(
        'A key of this session has another type than the session needs. Another program uses this name: choose another keyPrefix or session id.',
        { sessionId, cause: error },
      );
    if (error) throw error;
    return result;
  });
}
