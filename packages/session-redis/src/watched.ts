import type { ChainableCommander, Cluster, Redis } from 'ioredis';

import type { Changes, ClearRequest, MetadataRequest, Outcome, PopRequest, WriteRequest } from './changes.ts';
import { CHUNK } from './chunk.ts';
import { AnswerLost, isAnswer, reasonOf } from './connection.ts';
import type { SessionKeys } from './keys.ts';
import { addOperation, findOperation } from './operations.ts';
import { answersOf, changeCount, versionOf } from './read.ts';
import { Watcher } from './watcher.ts';

/** What was found under WATCH. */
interface Found {
  readonly count: string;
  readonly operations: string;
  readonly length: number;
  /** The elements at the end that were asked for. */
  readonly tail: readonly Buffer[];
  /** Milliseconds until the list expires; below 0: never, or no list. */
  readonly expiry: number;
  readonly isNew: boolean;
  /** The fields of these names. */
  readonly updated: string | null;
  readonly metadata: string;
  readonly seconds: string;
  readonly microseconds: string;
}

const KINDS = ['hash', 'list', 'string'] as const;

/** The changes for servers without Lua: looked at under WATCH, made by MULTI, and again when somebody came between. */
export const watchedChanges: Changes = {
  write: (client, keys, request) =>
    attempt(client, keys, request.expected.length + 1, (found, transaction) =>
      write(keys, request, found, transaction),
    ),
  pop: (client, keys, request) =>
    attempt(client, keys, 1, (found, transaction) => pop(keys, request, found, transaction)),
  clear: (client, keys, request) =>
    attempt(client, keys, 1, (found, transaction) => clear(keys, request, found, transaction)),
  setMetadata: (client, keys, request) =>
    attempt(client, keys, 1, (found, transaction) => setMetadata(keys, request, found, transaction)),
};

/** Runs `decide` until its transaction is carried out; what it decides but `done`, `removed` and `gone` needs none. */
async function attempt(
  client: Redis | Cluster,
  keys: SessionKeys,
  tail: number,
  decide: (found: Found, transaction: ChainableCommander) => Outcome,
): Promise<Outcome> {
  return await Watcher.of(client as Redis).exclusive(async (connection) => {
    for (;;) {
      await connection.watch(keys.session, keys.messages, keys.counter);
      const found = await look(connection, keys, tail);
      const transaction = connection.multi();
      const outcome = 'what' in found ? found : decide(found, transaction);
      if (outcome.what !== 'done' && outcome.what !== 'removed' && outcome.what !== 'gone') {
        await connection.unwatch();
        return outcome;
      }
      if (await carriedOut(transaction, keys)) return outcome;
    }
  });
}

/** @throws AnswerLost */
async function carriedOut(transaction: ChainableCommander, keys: SessionKeys): Promise<boolean> {
  try {
    const answers = await transaction.exec();
    if (answers !== null) answersOf(answers, keys);
    return answers !== null;
  } catch (error) {
    if (!isAnswer(error)) throw new AnswerLost(error);
    throw reasonOf(error);
  }
}

async function look(
  connection: Redis,
  keys: SessionKeys,
  tail: number,
): Promise<Found | Extract<Outcome, { what: 'type' }>> {
  const { session, messages, counter } = keys;
  const types = answersOf(await connection.pipeline().type(session).type(messages).type(counter).exec(), keys);
  const wrong = types.findIndex((type, index) => type !== KINDS[index] && type !== 'none');
  if (wrong !== -1) return { what: 'type', expected: KINDS[wrong] ?? '', actual: String(types[wrong]) };
  const answers = await connection
    .pipeline()
    .hmget(session, '_ver', '_ops', 'updated_at', '_meta')
    .llen(messages)
    .lrangeBuffer(messages, -tail, -1)
    .pttl(messages)
    .time()
    .exec();
  const [[ver, ops, updated, metadata], length, elements, expiry, [seconds, microseconds]] = answersOf(
    answers,
    keys,
  ) as [
    [string | null, string | null, string | null, string | null],
    number | string,
    Buffer[],
    number | string,
    [number | string, number | string],
  ];
  return {
    count: changeCount(ver),
    operations: ops ?? '',
    length: Number(length),
    tail: elements,
    expiry: Number(expiry),
    isNew: types[0] === 'none',
    updated: updated ?? null,
    metadata: metadata ?? '',
    seconds: String(seconds),
    microseconds: String(microseconds),
  };
}

function write(keys: SessionKeys, request: WriteRequest, found: Found, transaction: ChainableCommander): Outcome {
  const { operationId, digest, sessionId, ttlMs, version, mode, expected, push } = request;
  const known = findOperation(found.operations, operationId);
  if (known !== undefined) return { what: 'known', ...known };
  const actual = versionNow(found);
  const end = expected.length === 0 ? [] : found.tail.slice(-expected.length);
  const endsSo = end.length === expected.length && end.every((one, index) => one.equals(expected[index] ?? one));
  if ((version !== undefined && version !== actual) || !endsSo) return { what: 'changed', version: actual };

  if (mode === 'replace') transaction.del(keys.messages);
  else if (expected.length > 0) transaction.ltrim(keys.messages, 0, -expected.length - 1);
  for (let from = 0; from < push.length; from += CHUNK)
    transaction.rpush(keys.messages, ...push.slice(from, from + CHUNK));
  transaction.hset(keys.session, 'session_id', sessionId);
  transaction.hsetnx(keys.session, 'created_at', found.seconds);
  if (push.length > 0 && ttlMs !== 'keep') transaction.hset(keys.session, 'updated_at', found.seconds);
  else transaction.hsetnx(keys.session, 'updated_at', found.seconds);
  const isChange = push.length > 0 || expected.length > 0 || mode === 'replace';
  const count = isChange ? nextCount(found) : found.count;
  const left = mode === 'replace' ? 0 : found.length - expected.length;
  const newest = push.at(-1) ?? (left === 0 ? undefined : found.tail.at(-1 - expected.length));
  const after = versionOf(count, left + push.length, newest);
  const operations = addOperation(found.operations, operationId, { digest, version: after });
  transaction.hset(keys.session, '_ver', count, '_ops', operations);
  if (typeof ttlMs === 'number') {
    const at = Number(found.seconds) * 1000 + Math.floor(Number(found.microseconds) / 1000) + ttlMs;
    for (const key of [keys.session, keys.messages, keys.counter]) transaction.pexpireat(key, at);
  } else if (found.expiry > 0 && left === 0) transaction.pexpire(keys.messages, found.expiry);
  return { what: 'done', version: after };
}

function pop(keys: SessionKeys, request: PopRequest, found: Found, transaction: ChainableCommander): Outcome {
  const { operationId, sessionId, expected, version } = request;
  const known = findOperation(found.operations, operationId);
  if (known !== undefined) return { what: 'known', ...known };
  const actual = versionNow(found);
  if (actual !== version || found.tail.at(-1)?.equals(expected) !== true) return { what: 'changed', version: actual };
  transaction.rpop(keys.messages);
  const operations = addOperation(found.operations, operationId, { digest: '', version: '' });
  transaction.hset(keys.session, '_ver', nextCount(found), '_ops', operations);
  if (found.isNew) {
    const { seconds, expiry } = found;
    transaction.hset(keys.session, 'session_id', sessionId, 'created_at', seconds, 'updated_at', seconds);
    if (expiry > 0) transaction.pexpire(keys.session, expiry);
  }
  return { what: 'done', version: '' };
}

function clear(
  keys: SessionKeys,
  { version, idleSince }: ClearRequest,
  found: Found,
  transaction: ChainableCommander,
): Outcome {
  if (found.isNew && found.length === 0) {
    transaction.del(keys.counter);
    return { what: 'gone', sentAgain: false };
  }
  const isIdle = found.updated !== null && Number(found.updated) * 1000 < (idleSince ?? 0);
  if (idleSince !== undefined && !isIdle) return { what: 'kept' };
  const actual = versionNow(found);
  if (version !== undefined && version !== actual) return { what: 'changed', version: actual };
  transaction.del(keys.session, keys.messages, keys.counter);
  return { what: 'removed', items: found.length };
}

function setMetadata(
  keys: SessionKeys,
  { sessionId, before, after, ttlMs }: MetadataRequest,
  found: Found,
  transaction: ChainableCommander,
): Outcome {
  if (found.metadata !== before) return { what: 'changed', version: versionNow(found) };
  transaction.hset(keys.session, 'session_id', sessionId);
  transaction.hsetnx(keys.session, 'created_at', found.seconds);
  transaction.hsetnx(keys.session, 'updated_at', found.seconds);
  if (after === '') transaction.hdel(keys.session, '_meta');
  else transaction.hset(keys.session, '_meta', after);
  if (found.isNew && found.length === 0 && ttlMs !== undefined) transaction.pexpire(keys.session, ttlMs);
  return { what: 'done', version: '' };
}

function versionNow({ count, length, tail }: Found): string {
  return versionOf(count, length, tail.at(-1));
}

/** As in the scripts: begins with the time. */
function nextCount({ count, seconds, microseconds }: Found): string {
  return count === '0' ? seconds + microseconds.padStart(6, '0') : String(Number(count) + 1);
}
