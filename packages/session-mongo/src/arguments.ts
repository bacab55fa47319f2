import { UserError } from '@agents/core';
import { checkOptions, checkStoreName, kinds, sessionOptionChecks } from '@agents/core/session';
import type { Check, SessionOptions } from '@agents/core/session';
import { MongoClient } from 'mongodb';
import type { MongoClientOptions } from 'mongodb';

import { watchConnections } from './connect.ts';
import type { MongoDBConnection, MongoDBSessionOptions } from './options.ts';

/** What the options mean, checked and with defaults. */
export interface Config {
  readonly connection:
    | { readonly client: MongoClient }
    | { readonly url: string; readonly clientOptions: MongoClientOptions };
  readonly place: Place;
  readonly createIndexes: boolean;
  readonly ttlMs: number | undefined;
  /** Of each call. */
  readonly timeoutMs: number;
  readonly session: SessionOptions;
  /** Of the class, for messages. */
  readonly name: string;
}

/** Where documents are. */
export interface Place {
  readonly database: string;
  readonly sessions: string;
  readonly messages: string;
}

const TIMEOUT_MS = 30_000;
/** A date this far ahead is still one. */
const MAX_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1000;

const ttl: Check = (value) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_TTL_MS
    ? undefined
    : 'a whole number of milliseconds from 1 to 100 years, or null';

const checks = {
  ...sessionOptionChecks,
  client: kinds.any,
  url: kinds.any,
  clientOptions: kinds.object,
  database: kinds.any,
  createIndexes: kinds.boolean,
  sessionsCollection: kinds.any,
  messagesCollection: kinds.any,
  ttlMs: kinds.nullable(ttl),
};

/** @throws UserError */
export function readOptions(options: MongoDBConnection & MongoDBSessionOptions, name: string): Config {
  if (options === undefined) throw new UserError(`${name} needs a 'client' or a 'url'.`);
  checkOptions(options, checks, name);
  const { database = 'agents', sessionsCollection = 'agent_sessions', messagesCollection = 'agent_messages' } = options;
  const { sessionSettings, operationTimeoutMs, corruptItems, onCorruptItem } = options;
  checkDatabaseName(database);
  checkStoreName(sessionsCollection, 'collection');
  checkStoreName(messagesCollection, 'collection');
  if (sessionsCollection === messagesCollection) {
    throw new UserError("'sessionsCollection' and 'messagesCollection' must be two collections.", {
      code: 'session_name_invalid',
    });
  }
  return {
    connection: readConnection(options, name),
    place: { database, sessions: sessionsCollection, messages: messagesCollection },
    createIndexes: options.createIndexes ?? true,
    ttlMs: options.ttlMs ?? undefined,
    timeoutMs: operationTimeoutMs ?? TIMEOUT_MS,
    session: { sessionSettings, operationTimeoutMs, corruptItems, onCorruptItem },
    name,
  };
}

function readConnection(options: MongoDBConnection, name: string): Config['connection'] {
  const { client, url, clientOptions = {} } = options as { clientOptions?: MongoClientOptions } & MongoDBConnection;
  if ((client === undefined) === (url === undefined))
    throw new UserError(`${name} needs a 'client' or a 'url', one of them.`);
  if (client !== undefined) {
    if (typeof client?.db !== 'function')
      throw new UserError(`Option 'client' of ${name} must be a MongoClient of the 'mongodb' package.`);
    if (Object.keys(clientOptions).length > 0)
      throw new UserError(`'clientOptions' of ${name} are for a 'url'; a 'client' has its own.`);
    return { client };
  }
  if (typeof url !== 'string' || !/^mongodb(\+srv)?:\/\//.test(url))
    throw new UserError(`Option 'url' of ${name} must begin with mongodb:// or mongodb+srv://.`);
  return { url, clientOptions };
}

function checkDatabaseName(name: unknown): asserts name is string {
  // What MongoDB allows on every system.
  if (typeof name === 'string' && /^[^/\\. "$*<>:|?\0]{1,63}$/.test(name)) return;
  throw new UserError("Option 'database' must be a name of 1 to 63 characters without /\\. \"$*<>:|? and NUL.", {
    code: 'session_name_invalid',
  });
}

/** A client that belongs to whoever asks for it. Connects with its first command. @throws the driver's error, or a UserError where that could say credentials */
export function makeClient(url: string, options: MongoClientOptions, name: string): MongoClient {
  try {
    return watchConnections(new MongoClient(url, options));
  } catch (error) {
    if (!url.includes('@')) throw error;
    throw new UserError(`The 'url' of ${name} is not a connection string that the driver takes.`);
  }
}
