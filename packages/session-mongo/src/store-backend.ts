import { mergeMetadata, SessionBusyError } from '@agents/core/session';
import type {
  HistoryBackend,
  SessionInfo,
  SessionPage,
  SessionPageResult,
  SessionSettings,
  SessionStoreBackend,
  StagedHistory,
  StoredRecord,
} from '@agents/core/session';
import type { Filter, MongoClient, Sort, WithId } from 'mongodb';

import { makeClient } from './arguments.ts';
import type { Config } from './arguments.ts';
import { closeClient, ensureConnected } from './connect.ts';
import { MongoDBHistory } from './history.ts';
import { ensureIndexes } from './indexes.ts';
import { collectionsOf, countOf, isCleared } from './layout.ts';
import type { Collections, Count, SessionDocument } from './layout.ts';
import { afterCommit, commit, isDuplicate } from './outcome.ts';
import { readParts } from './parts.ts';
import { stateOf } from './read.ts';
import { emptySessions, removeMarks } from './remove.ts';
import { beginAnew, firstDocument, newTimes } from './reserve.ts';
import { MongoDBSession } from './session.ts';
import { StagedBatches } from './staged.ts';

type Listed = WithId<SessionDocument>;

/** Of a session that goes: neither metadata nor what it remembers, which may be much. */
const withoutContents = { metadata: 0, _operations: 0, _replaced: 0 };
/** Uses by others that a removal without a condition gives way to. */
const ATTEMPTS = 50;
/** Marks of clears that are removed at once. */
const SWEPT = 100;

/** Sessions in two collections. Those of the Python SDK are listed too. */
export class MongoDBStore implements SessionStoreBackend<MongoDBSession> {
  readonly #config: Config;
  readonly #client: MongoClient;
  readonly #collections: Collections;
  readonly close: (() => Promise<void>) | undefined;

  constructor(config: Config) {
    const { connection, name, place } = config;
    const client =
      'client' in connection ? connection.client : makeClient(connection.url, connection.clientOptions, name);
    this.#client = client;
    // Sessions of the store have its client: closing one does nothing.
    this.#config = { ...config, connection: { client } };
    this.#collections = collectionsOf(client, place);
    this.close = 'client' in connection ? undefined : () => closeClient(client, config.timeoutMs);
  }

  session(
    sessionId: string,
    { sessionSettings }: { readonly sessionSettings?: SessionSettings | undefined },
  ): MongoDBSession {
    const { place, createIndexes, ttlMs, session } = this.#config;
    return new MongoDBSession(sessionId, {
      client: this.#client,
      database: place.database,
      sessionsCollection: place.sessions,
      messagesCollection: place.messages,
      createIndexes,
      ttlMs,
      ...session,
      ...(sessionSettings && { sessionSettings }),
    });
  }

  history(sessionId: string): HistoryBackend {
    return new MongoDBHistory(sessionId, this.#config);
  }

  async list(page: SessionPage): Promise<SessionPageResult> {
    await ensureConnected(this.#client);
    const found = await this.#collections.sessions
      .find(conditionsOf(page), { sort: orderOf(page), limit: page.limit + 1, projection: { _operations: 0 } })
      .toArray();
    const documents = found.slice(0, page.limit);
    const counts = page.withCount ? await this.#counts(documents) : undefined;
    const sessions = documents.filter((one) => !isGone(one)).map((one) => infoOf(one, counts?.get(one.session_id)));
    const last = found.length > page.limit ? documents.at(-1) : undefined;
    return last === undefined ? { sessions } : { sessions, next: placeOf(page, last) };
  }

  async get(sessionId: string): Promise<SessionInfo | undefined> {
    await ensureConnected(this.#client);
    const document = await this.#collections.sessions.findOne(
      { session_id: sessionId },
      { projection: { _operations: 0 } },
    );
    if (document === null || isGone(document)) return undefined;
    return infoOf(document, (await this.#counts([document])).get(sessionId));
  }

  async remove(sessionIds: readonly string[], idleSince?: Date): Promise<{ sessions: number; items: number }> {
    await ensureConnected(this.#client);
    const idle: Filter<SessionDocument> = idleSince === undefined ? {} : { updated_at: { $lt: idleSince } };
    let found = await this.#find({ session_id: { $in: [...sessionIds] }, ...idle });
    const gone = { sessions: 0, items: 0 };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const used = await this.#removeOnce(found, gone);
      // One that was used is idle no more.
      if (used.length === 0 || idleSince !== undefined) return gone;
      // Without a condition it goes with what was appended, or came into its place. One that was begun since is left alone.
      found = await this.#find({ $or: used.map(({ _id, _since }) => ({ _id, _since: _since ?? null })) });
      if (found.length === 0) return gone;
    }
    throw new SessionBusyError('Others used the session again and again; it was not removed. Try again.', {
      sessionId: found[0]?.session_id,
    });
  }

  /** @returns those that were used meanwhile, or are gone */
  async #removeOnce(found: readonly Listed[], gone: { sessions: number; items: number }): Promise<Listed[]> {
    const counts = await this.#counts(found);
    const emptied = await commit(this.#collections, () => emptySessions(this.#collections, found));
    // Gone are they already, whatever else fails.
    await afterCommit(() => removeMarks(this.#collections, emptied));
    const removed = new Set(emptied.map(({ session_id }) => session_id));
    for (const document of found) {
      if (!removed.has(document.session_id) || isGone(document)) continue;
      gone.sessions++;
      gone.items += counts.get(document.session_id) ?? 0;
    }
    return found.filter(({ session_id }) => !removed.has(session_id));
  }

  async #find(matching: Filter<SessionDocument>): Promise<Listed[]> {
    return await this.#collections.sessions.find(matching, { projection: withoutContents }).toArray();
  }

  async sweep(idleSince: Date): Promise<void> {
    await ensureConnected(this.#client);
    const idle: Filter<SessionDocument> = { updated_at: { $lt: idleSince }, _cleared: { $exists: true } };
    let some: Listed[] = [];
    const sweepSome = async (): Promise<void> => {
      await removeMarks(this.#collections, await emptySessions(this.#collections, some));
      some = [];
    };
    for await (const document of this.#collections.sessions.find(idle, {
      projection: withoutContents,
      batchSize: SWEPT,
    })) {
      if (isCleared(document)) some.push(document);
      if (some.length === SWEPT) await sweepSome();
    }
    await sweepSome();
  }

  async setMetadata(sessionId: string, patch: Readonly<Record<string, unknown>>): Promise<void> {
    const { sessions, messages } = this.#collections;
    await ensureConnected(this.#client);
    await ensureIndexes(this.#collections, this.#config);
    const { ttlMs } = this.#config;
    for (;;) {
      const current = await sessions.findOne({ session_id: sessionId }, { projection: { _operations: 0 } });
      const state = stateOf(current ?? undefined);
      if (state.expired) {
        await beginAnew({ sessions, ttlMs }, state);
        continue;
      }
      const merged = mergeMetadata(parsed(current?.metadata), patch);
      const text = merged === undefined ? undefined : JSON.stringify(merged);
      if (current === null) {
        const first = await firstDocument({ messages, sessionId, ttlMs }, 0);
        try {
          await sessions.insertOne({ ...first, ...(text !== undefined && { metadata: text }) });
          return;
        } catch (error) {
          // Made by somebody else in the same moment: merged into that one.
          if (!isDuplicate(error)) throw error;
          continue;
        }
      }
      const fields = { ...(isCleared(current) && newTimes(ttlMs)), ...(text !== undefined && { metadata: text }) };
      const { matchedCount } = await sessions.updateOne(
        {
          _id: current._id,
          metadata: current.metadata ?? null,
          _cleared: current._cleared ?? null,
        } as Filter<SessionDocument>,
        {
          $unset: { _cleared: '', ...(text === undefined && { metadata: '' }) },
          ...(Object.keys(fields).length > 0 && { $set: fields }),
        },
      );
      if (matchedCount === 1) return;
    }
  }

  async *parts(sessionId: string): AsyncGenerator<readonly StoredRecord[]> {
    await ensureConnected(this.#client);
    yield* readParts({ ...this.#collections, sessionId });
  }

  async stage(sessionId: string): Promise<StagedHistory> {
    await ensureConnected(this.#client);
    await ensureIndexes(this.#collections, this.#config);
    const { ttlMs, timeoutMs } = this.#config;
    return await StagedBatches.begin({ ...this.#collections, sessionId, ttlMs, timeoutMs });
  }

  async check(): Promise<string[]> {
    await ensureConnected(this.#client);
    const { sessions, messages } = this.#collections;
    const advice: string[] = [];
    for (const [collection, keys, unique] of [
      [sessions, ['session_id'], true],
      [messages, ['session_id', 'generation', 'seq'], false],
    ] as const) {
      const indexes = await collection.indexes().catch(noneYet);
      const found = indexes.find(({ key }) => Object.keys(key).join() === keys.join());
      if (found === undefined || (unique && found['unique'] !== true))
        advice.push(
          `Collection ${collection.collectionName} has no ${unique ? 'unique ' : ''}index on ${keys.join(', ')}: ${unique ? 'two first writes can make a session twice' : 'reads look at every document'}. The first write makes it unless createIndexes is false.`,
        );
    }
    return advice;
  }

  /** Items that count, by session. Corrupt ones are among them. */
  async #counts(documents: readonly Listed[]): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    if (documents.length === 0) return counts;
    const rows = await this.#collections.messages
      .aggregate<{ _id: { session: string; generation?: Count | null }; count: number }>([
        { $match: { session_id: { $in: documents.map(({ session_id }) => session_id) } } },
        { $group: { _id: { session: '$session_id', generation: '$generation' }, count: { $sum: sizeOfBatch } } },
      ])
      .toArray();
    const generations = new Map(documents.map(({ session_id, _generation }) => [session_id, countOf(_generation)]));
    for (const id of generations.keys()) counts.set(id, 0);
    for (const { _id, count } of rows) {
      const { session, generation } = _id;
      // What others count for is on its way out.
      if (generations.get(session) !== countOf(generation)) continue;
      counts.set(session, (counts.get(session) ?? 0) + countOf(count));
    }
    return counts;
  }
}

/** Its document is still there: its life is over, or it was cleared. */
function isGone(document: Listed): boolean {
  return stateOf(document).expired || isCleared(document);
}

/** Of a collection that does not exist there are no indexes. */
function noneYet(error: unknown): [] {
  if ((error as { code?: unknown } | null)?.code === 26) return [];
  throw error;
}

/** Old documents hold one text. */
const sizeOfBatch = { $cond: [{ $isArray: '$message_data' }, { $size: '$message_data' }, 1] };

function conditionsOf({ order, after, prefix, updatedAfter, updatedBefore }: SessionPage): Filter<SessionDocument> {
  const all: Filter<SessionDocument>[] = [];
  if (prefix !== undefined) all.push({ session_id: beginningWith(prefix) });
  if (updatedAfter !== undefined) all.push({ updated_at: { $gte: updatedAfter } });
  if (updatedBefore !== undefined) all.push({ updated_at: { $lt: updatedBefore } });
  if (after !== undefined) all.push(behind(order, after));
  return all.length === 0 ? {} : { $and: all };
}

/** Which is looked up in the index of ids. No pattern may have a NUL, and no id has one. */
function beginningWith(prefix: string): Filter<string> {
  if (prefix.includes('\0')) return { $in: [] };
  return { $regex: `^${prefix.replaceAll(/[\\^$.*+?()[\]{}|/#\s-]/g, '\\$&')}` };
}

/** What comes after the last entry of the page before. */
function behind(order: SessionPage['order'], [time, id]: readonly (string | number)[]): Filter<SessionDocument> {
  const bySameTime = { session_id: { $gt: String(id) } };
  if (order === 'id') return bySameTime;
  const field = order === 'created' ? 'created_at' : 'updated_at';
  // Sessions without a time are the oldest.
  if (typeof time !== 'number') return { [field]: null, ...bySameTime };
  const at = new Date(time);
  return { $or: [{ [field]: { $lt: at } }, { [field]: null }, { [field]: at, ...bySameTime }] };
}

function orderOf({ order }: SessionPage): Sort {
  if (order === 'id') return { session_id: 1 };
  return order === 'created' ? { created_at: -1, session_id: 1 } : { updated_at: -1, session_id: 1 };
}

function placeOf({ order }: SessionPage, { session_id, created_at, updated_at }: Listed): (string | number)[] {
  const time = order === 'created' ? created_at : updated_at;
  return [order !== 'id' && time instanceof Date ? time.getTime() : '', session_id];
}

function infoOf({ session_id, created_at, updated_at, expires_at, metadata }: Listed, itemCount?: number): SessionInfo {
  const members = parsed(metadata);
  return {
    sessionId: session_id,
    ...(created_at instanceof Date && { createdAt: created_at }),
    ...(updated_at instanceof Date && { updatedAt: updated_at }),
    ...(expires_at instanceof Date && { expiresAt: expires_at }),
    ...(itemCount !== undefined && { itemCount }),
    ...(members !== undefined && { metadata: members }),
  };
}

/** Anything but the text of an object was put there by others. */
function parsed(metadata: unknown): Record<string, unknown> | undefined {
  if (typeof metadata !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(metadata);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
