import { UserError } from '@agents/core';
import { checkOptions, kinds, sessionOptionChecks } from '@agents/core/session';
import type { Check, SessionOptions } from '@agents/core/session';
import type { Cluster, Redis, RedisOptions } from 'ioredis';

import { scriptedChanges } from './changes.ts';
import type { Changes } from './changes.ts';
import type { KeyNaming } from './keys.ts';
import { watchedChanges } from './watched.ts';

/** A client is shared and never closed here; a connection made from a `url` belongs to the object. */
export type RedisConnection =
  | { client: Redis | Cluster; url?: undefined }
  | { url: string; client?: undefined; redisOptions?: RedisOptions | undefined };

export interface RedisKeyOptions {
  /** Default `agents:session`, for runs `agents:run`. */
  keyPrefix?: string | undefined;
  /** Braces around the id, so that its keys share a slot. Default `auto`: on clusters. */
  hashTag?: 'auto' | 'none' | 'session' | undefined;
  /** `multi` for servers without Lua; not on clusters. Default `lua`. */
  scripting?: 'lua' | 'multi' | undefined;
}

export interface RedisSessionOptions extends RedisKeyOptions, SessionOptions {
  /** Sliding, renewed by appends; `null` or absent: none. Milliseconds. */
  ttlMs?: number | null | undefined;
}

/** What the options mean, checked and with defaults. */
export interface Config {
  readonly target: { readonly client: Redis | Cluster } | { readonly url: string; readonly redisOptions: RedisOptions };
  readonly keys: KeyNaming;
  readonly scripting: 'lua' | 'multi';
  readonly ttlMs: number | undefined;
  readonly session: SessionOptions;
}

const optionChecks: Readonly<Record<string, Check>> = {
  ...sessionOptionChecks,
  client: kinds.any,
  url: kinds.any,
  redisOptions: kinds.object,
  keyPrefix: (value) => (typeof value === 'string' && !value.includes('\0') ? undefined : 'a string without NUL'),
  hashTag: kinds.oneOf('auto', 'none', 'session'),
  scripting: kinds.oneOf('lua', 'multi'),
  ttlMs: kinds.nullable(kinds.integer(1)),
};

/**
 * @param where whose options these are, for messages
 * @throws UserError
 */
export function readOptions(options: RedisConnection & RedisSessionOptions, where: string): Config {
  // An object with a client in it: `undefined` would pass as "not given".
  if ((options as unknown) === undefined) throw needsConnection(where);
  checkOptions(options, optionChecks, where);
  const { client, url, keyPrefix = 'agents:session', hashTag = 'auto', scripting = 'lua', ttlMs, ...rest } = options;
  const { redisOptions, ...session } = rest as SessionOptions & { redisOptions?: RedisOptions };
  const target = readTarget({ client, url, redisOptions }, where);
  const cluster = 'client' in target && target.client.isCluster;
  if (cluster && scripting === 'multi')
    throw new UserError(`scripting: 'multi' of ${where} does not work on a cluster; its default does.`);
  // The prefix of the client is a part of the key that the server sees.
  const clientPrefix = ('client' in target ? target.client.options.keyPrefix : redisOptions?.keyPrefix) ?? '';
  const keys = { prefix: keyPrefix, clientPrefix, hashTag, cluster };
  return { target, keys, scripting, ttlMs: ttlMs ?? undefined, session };
}

/** @throws UserError */
export function readStoreOptions(options: RedisConnection & RedisSessionOptions & { index?: boolean | undefined }): {
  config: Config;
  index: boolean;
} {
  const where = 'RedisSessionStore';
  if ((options as unknown) === undefined) throw needsConnection(where);
  checkOptions(options, { ...optionChecks, index: kinds.boolean }, where);
  const { index = false, ...rest } = options;
  return { config: readOptions(rest, where), index };
}

export function changesBy(scripting: Config['scripting']): Changes {
  return scripting === 'lua' ? scriptedChanges : watchedChanges;
}

function readTarget(
  { client, url, redisOptions }: { client: unknown; url: unknown; redisOptions: RedisOptions | undefined },
  where: string,
): Config['target'] {
  if (client !== undefined) {
    if (url !== undefined) throw new UserError(`${where} takes 'client' or 'url', not both.`);
    if (redisOptions !== undefined)
      throw new UserError(`Option 'redisOptions' of ${where} goes with 'url'; a client has its own.`);
    if (!isClient(client)) throw wrong('client', where, "a client of 'ioredis', a Redis or a Cluster");
    checkReads(client, where);
    return { client };
  }
  if (url === undefined) throw needsConnection(where);
  // What was given may hold a password: it is not shown.
  if (typeof url !== 'string' || !/^rediss?:\/\//i.test(url) || !URL.canParse(url))
    throw wrong('url', where, "an address as 'redis://localhost:6379' or 'rediss://…'");
  return { url, redisOptions: redisOptions ?? {} };
}

function isClient(value: unknown): value is Redis | Cluster {
  const { sendCommand, multi, options } = (value ?? {}) as Partial<Redis>;
  return typeof sendCommand === 'function' && typeof multi === 'function' && typeof options === 'object';
}

/** A replica may lack the last turn. */
function checkReads(client: Redis | Cluster, where: string): void {
  const { scaleReads = 'master' } = client.options as { scaleReads?: unknown };
  if (scaleReads !== 'master')
    throw new UserError(
      `The cluster client of ${where} reads from replicas, which may lack the last turn. Give one with scaleReads: 'master'.`,
    );
}

function needsConnection(where: string): UserError {
  return new UserError(`${where} needs a 'client' of ioredis or a 'url'.`);
}

function wrong(option: string, where: string, expected: string): UserError {
  return new UserError(`Option '${option}' of ${where} must be ${expected}.`);
}
