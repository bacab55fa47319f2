import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { env } from 'node:process';

import { startServer } from '@agents/testkit';
import type { RunningServer, ServerOptions } from '@agents/testkit';
import { Double, MongoClient } from 'mongodb';
import type { Collection, MongoClientOptions } from 'mongodb';

import type { MessageDocument, SessionDocument } from '../src/layout.ts';

/** The MongoDB that tests share: each uses databases or ids of its own. */
export function mongoUrl(): string {
  const { TEST_MONGO_URL: url, TEST_MONGO_URL_MISSING: missing } = env;
  if (missing !== undefined) throw new Error(missing);
  if (url === undefined) throw new Error('TEST_MONGO_URL is to be the address of a MongoDB that may be written to.');
  return url;
}

let drawn = 0;

/** A name that no other test has. */
export const freshName = (): string => `t${process.pid}_${Date.now()}_${++drawn}`;

/** A member of a replica set of its own; with `announce` others find it there, behind a proxy. */
export async function startReplicaSet(options: ServerOptions & { announce?: string } = {}): Promise<RunningServer> {
  const { announce, ...rest } = options;
  const isOurs = startsOurs();
  const args = isOurs
    ? ['--replica-set', 'rs', ...(announce === undefined ? [] : ['--announce', announce])]
    : ['--replSet', 'rs'];
  const server = await startServer('mongo', { ...rest, args });
  if (!isOurs) await initiate(server, announce);
  return server;
}

/** How the driver finds the set, by any of its addresses. */
export const replicaSetUrl = (port: number): string => `mongodb://127.0.0.1:${port}/?replicaSet=rs`;

/** Whether there is no other server to start. */
function startsOurs(): boolean {
  return !(env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'mongod')));
}

async function initiate(server: RunningServer, announce = `127.0.0.1:${server.port}`): Promise<void> {
  const client = new MongoClient(server.url);
  await client.db('admin').command({ replSetInitiate: { _id: 'rs', members: [{ _id: 0, host: announce }] } });
  await client.close();
}

/**
 * Looks for a lost server often: a test waits for nothing else. And never in the moment in which it was lost: the driver
 * (7.9) waits for ever when it writes to a socket that ends in the same turn of the loop.
 */
export const quick: MongoClientOptions = {
  minHeartbeatFrequencyMS: 100,
  heartbeatFrequencyMS: 100,
  serverSelectionTimeoutMS: 10_000,
};

export interface Raw {
  readonly sessions: Collection<SessionDocument>;
  readonly messages: Collection<MessageDocument>;
}

/** The documents themselves. */
export function raw(client: MongoClient, database: string): Raw {
  const db = client.db(database);
  return { sessions: db.collection('agent_sessions'), messages: db.collection('agent_messages') };
}

/** The names of members that the Python SDK would take for no numbers. */
export async function doublesIn({ sessions, messages }: Raw): Promise<string[]> {
  const typed = { promoteValues: false } as const;
  const found: object[] = [
    ...(await sessions.find({}, typed).toArray()),
    ...(await messages.find({}, typed).toArray()),
  ];
  return found.flatMap((document) =>
    Object.entries(document).flatMap(([name, value]) => (value instanceof Double ? [name] : [])),
  );
}

/** Matches the request of a command on a collection, for a proxy. */
export function commandOn(command: string, collection: string): (request: Buffer) => boolean {
  return (request) => request.includes(`\u0002${command}\0`) && request.includes(`${collection}\0`);
}

type Hook = (command: string, collection: string, args: readonly unknown[]) => Promise<void> | void;

/** The client, with a hook before each call on a collection; what the hook throws is what the call fails with. */
export function hooked(client: MongoClient, hook: Hook): MongoClient {
  const wrapCollection = (collection: Collection): Collection =>
    new Proxy(collection, {
      get(target, member) {
        const value: unknown = Reflect.get(target, member, target);
        if (typeof value !== 'function') return value;
        // Cursors, which send nothing yet.
        if (member === 'find' || member === 'aggregate')
          return (...args: unknown[]): unknown => (value as (...a: unknown[]) => unknown).apply(target, args);
        return async (...args: unknown[]): Promise<unknown> => {
          await hook(String(member), target.collectionName, args);
          return await (value as (...a: unknown[]) => Promise<unknown>).apply(target, args);
        };
      },
    });
  return new Proxy(client, {
    get(target, member) {
      const value: unknown = Reflect.get(target, member, target);
      if (member !== 'db') return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      return (...names: Parameters<MongoClient['db']>): unknown => {
        const db = target.db(...names);
        return new Proxy(db, {
          get(inner, name) {
            const found: unknown = Reflect.get(inner, name, inner);
            if (name !== 'collection')
              return typeof found === 'function' ? (found as () => unknown).bind(inner) : found;
            return (...given: Parameters<typeof db.collection>): Collection =>
              wrapCollection(inner.collection(...given));
          },
        });
      };
    },
  });
}

/** The client, one command of which waits, the first time, until something else was done. */
export function hookedOnce(
  client: MongoClient,
  command: string,
  collection: string,
  meanwhile: () => Promise<unknown>,
): MongoClient {
  let done = false;
  return hooked(client, async (name, on) => {
    if (done || name !== command || on !== collection) return;
    done = true;
    await meanwhile();
  });
}

/** A session as the Python SDK makes it: its first generation is 0. */
export async function begunByPython({ sessions }: Pick<ReturnType<typeof raw>, 'sessions'>): Promise<void> {
  const now = new Date();
  await sessions.insertOne({ session_id: 's', created_at: now, updated_at: now, _seq: 0, _generation: 0 });
}
