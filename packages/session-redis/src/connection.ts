import { createHash } from 'node:crypto';

import { SessionClosedError } from '@agents/core/session';
import { Command, Redis } from 'ioredis';
import type { Cluster, RedisOptions } from 'ioredis';

import type { Config } from './options.ts';

/** What a server answers to our scripts: texts as bytes, lists of them. */
export type Reply = Buffer | null | readonly Reply[];

/** A command may have been carried out, and nobody knows: its answer is lost. `cause` is the driver's error, if there was one. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';

  constructor(cause?: unknown) {
    super('The connection was lost before the answer came.', { cause });
  }
}

/** Counts how often it was written to a connection: clients send again what was not answered. */
class TrackedCommand extends Command {
  sent = 0;

  override toWritable(socket: object): string | Buffer {
    this.sent++;
    return super.toWritable(socket);
  }
}

/** A client that may be shared by several sessions. */
export interface Connection {
  /** Gives the work a client that is connected or will be, and keeps the process alive meanwhile. */
  use<R>(work: (client: Redis | Cluster) => Promise<R>): Promise<R>;
  /** Of connections of our own. */
  close?(): Promise<void>;
}

export function connect(target: Config['target']): Connection {
  if ('url' in target) return new OwnConnection(target.url, target.redisOptions);
  return { use: (work) => discreet(() => work(target.client)) };
}

/**
 * The driver's errors have what was sent in their members: items, and the password of a login that was refused. It stays
 * there, but out of what logs show of an error.
 */
async function discreet<R>(work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    let one: unknown = error;
    while (one instanceof Error) {
      for (const name of ['command', 'previousErrors'])
        if (name in one) Object.defineProperty(one, name, { enumerable: false });
      // A cluster that cannot be reached has the error of its last node.
      one = one.cause ?? (one as { lastNodeError?: unknown }).lastNodeError;
    }
    throw error;
  }
}

/** The same connection for those who do not close it. */
export function shared(connection: Connection): Connection {
  return { use: (work) => connection.use(work) };
}

/**
 * Made from an address, at the first command. A broken connection is not mended in the background: what was under way fails
 * at once, and the next command connects again. So nothing keeps the process alive between the calls.
 */
class OwnConnection implements Connection {
  readonly #url: string;
  readonly #options: RedisOptions;
  #client: Redis | undefined;
  #closed = false;
  /** Why the last connection failed; the driver's rejections say only that it did. */
  #problem: unknown;

  constructor(url: string, options: RedisOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** @throws SessionClosedError after `close`: sessions of a store end with it, and do not connect anew on their own */
  async use<R>(work: (client: Redis) => Promise<R>): Promise<R> {
    if (this.#closed) throw new SessionClosedError('The store of this session was closed, and its connection with it.');
    return await heldAlive(async () => {
      const client = this.#open();
      return await discreet(async () => {
        try {
          return await work(client);
        } catch (error) {
          throw isClosedError(error) && this.#problem !== undefined ? this.#problem : error;
        }
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client;
    if (client !== undefined) await heldAlive(() => disconnect(client));
  }

  #open(): Redis {
    if (this.#client?.status === 'end') {
      this.#problem = undefined;
      this.#client.connect().catch(() => {});
    }
    this.#client ??= this.#create();
    return this.#client;
  }

  #create(): Redis {
    const { replyMapping = 'legacy', ...options } = this.#options;
    const client = new Redis(this.#url, {
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      ...options,
      replyMapping,
      lazyConnect: true,
    });
    client.on('error', (error: unknown) => {
      this.#problem = error;
    });
    client.on('ready', () => {
      this.#problem = undefined;
    });
    client.on('connect', () => void client.stream.unref());
    return client;
  }
}

/** Waits until it is over: only then may it connect again. */
export async function disconnect(client: Redis): Promise<void> {
  if (client.status === 'end') return;
  const ended = new Promise((resolve) => void client.once('end', resolve));
  client.disconnect();
  await ended;
}

/** Sockets of idle connections do not keep the process alive; a call does. */
async function heldAlive<R>(work: () => Promise<R>): Promise<R> {
  const hold = setInterval(() => {}, 0x7fff_ffff);
  try {
    return await work();
  } finally {
    clearInterval(hold);
  }
}

function isClosedError(error: unknown): boolean {
  return (
    error instanceof Error && (error.message === 'Connection is closed.' || error.name === 'MaxRetriesPerRequestError')
  );
}

/** An error that the server answered: what was asked for was not done. */
export function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Of a transaction that was discarded, for one of its commands was refused: what was said to that one. */
export function reasonOf(error: unknown): unknown {
  const [reason] = (error as { previousErrors?: readonly unknown[] }).previousErrors ?? [];
  return isAnswer(error) && isAnswer(reason) ? reason : error;
}

/** What a server says to a change. */
export interface Answer {
  readonly reply: Reply;
  /** An earlier answer may be lost: "not done" says nothing then of the first time. */
  readonly sentAgain: boolean;
}

/** @throws AnswerLost when it may have been carried out; the driver's error when it was not */
async function send(
  client: Redis | Cluster,
  name: string,
  args: readonly (string | Buffer)[],
): Promise<{ reply: Reply | Error; sentAgain: boolean }> {
  const { keyPrefix } = client.options;
  const command = new TrackedCommand(name, [...args], { replyEncoding: null, ...(keyPrefix ? { keyPrefix } : {}) });
  try {
    const reply = (await client.sendCommand(command)) as Reply;
    return { reply, sentAgain: command.sent > 1 };
  } catch (error) {
    if (isAnswer(error)) return { reply: error, sentAgain: command.sent > 1 };
    if (command.sent === 0) throw error;
    throw new AnswerLost(error);
  }
}

export class Script {
  readonly #text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.#text = text;
    this.#sha = createHash('sha1').update(text).digest('hex');
  }

  /**
   * By its digest; servers that do not have it yet get its text.
   *
   * @throws AnswerLost when it may have been carried out; the error of the server or the driver when it was not
   */
  async run(client: Redis | Cluster, keys: readonly string[], args: readonly (string | Buffer)[]): Promise<Answer> {
    const rest = [String(keys.length), ...keys, ...args];
    let { reply, sentAgain } = await send(client, 'evalsha', [this.#sha, ...rest]);
    if (reply instanceof Error && reply.message.startsWith('NOSCRIPT')) {
      // A server that was restarted meanwhile has forgotten the script, not what it did.
      const wasSentAgain = sentAgain;
      try {
        ({ reply, sentAgain } = await send(client, 'eval', [this.#text, ...rest]));
      } catch (error) {
        throw wasSentAgain ? new AnswerLost(error) : error;
      }
      sentAgain ||= wasSentAgain;
    }
    if (!(reply instanceof Error)) return { reply, sentAgain };
    throw sentAgain ? new AnswerLost(reply) : reply;
  }
}
