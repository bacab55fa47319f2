import { getLogger } from '@agents/core';
import type { SessionInfo, SessionPage, SessionPageResult } from '@agents/core/session';

import { isAnswer } from './connection.ts';
import type { Connection } from './connection.ts';
import { dateOf, infoOf, notOurs } from './info.ts';
import { INDEX_ID, keysOf } from './keys.ts';
import type { Config } from './options.ts';
import { forgetScript, indexScript } from './scripts.ts';

interface Entry {
  readonly id: string;
  /** Milliseconds of the last update, negative. */
  readonly score: string;
}

/** Sessions that are asked about at once where all of the index are. */
const AT_ONCE = 500;

/** The sorted set of the sessions that a store's sessions wrote, by the time of their last update. */
export class StoreIndex {
  readonly #connection: Connection;
  readonly #config: Config;
  readonly #key: string;

  constructor(connection: Connection, config: Config) {
    this.#connection = connection;
    this.#config = config;
    this.#key = `${config.keys.prefix}:${INDEX_ID}`;
  }

  /** After a write is stored; that an entry is missing is no reason to fail it. `new`: only when there is none. */
  async note(sessionId: string, when: 'new' | 'always' = 'always'): Promise<void> {
    try {
      await this.#connection.use(async (client) => {
        if (when === 'new' && (await client.zscore(this.#key, sessionId)) !== null) return;
        if (this.#config.scripting === 'lua') return await indexScript.run(client, [this.#key], [sessionId]);
        const [seconds, microseconds] = (await client.time()).map(Number);
        const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
        return await client.zadd(this.#key, -now, sessionId);
      });
    } catch (error) {
      getLogger('session').warn('A session is not in the index of its store, for that could not be written.', {
        sessionId,
        error: error instanceof Error ? error.name : 'unknown',
      });
    }
  }

  async has(sessionIds: readonly string[]): Promise<boolean[]> {
    return await this.#connection.use(async (client) => {
      const scores = await Promise.all(sessionIds.map((id) => client.zscore(this.#key, id)));
      return scores.map((score) => score !== null);
    });
  }

  /** Entries whose session is gone go as well. `created` asks all sessions for their time, and those of the page for the rest. */
  async page(page: SessionPage): Promise<SessionPageResult> {
    if (page.order === 'created') return await this.#byCreation(page);
    const { limit, order, after, withCount } = page;
    // One more than the page has tells whether there is another one.
    const entries = order === 'updated' ? await this.#updated(after, limit + 1) : await this.#byId(after, limit + 1);
    const some = entries.slice(0, limit);
    const sessions = await this.#infos(some, withCount);
    const last = entries.length > limit ? some.at(-1) : undefined;
    if (last === undefined) return { sessions };
    return { sessions, next: [order === 'updated' ? last.score : 0, last.id] };
  }

  async #byId(after: SessionPage['after'], count: number): Promise<Entry[]> {
    const id = after?.[1];
    const entries = await this.#all();
    const rest = id === undefined ? entries : entries.filter((entry) => compare(entry.id, String(id)) > 0);
    return rest.toSorted((a, b) => compare(a.id, b.id)).slice(0, count);
  }

  async #byCreation({ limit, withCount, after }: SessionPage): Promise<SessionPageResult> {
    const [from, id] = after ?? [];
    const rest = (await this.#created(await this.#all()))
      .filter((one) => after === undefined || (one.key - Number(from) || compare(one.entry.id, String(id))) > 0)
      .toSorted((a, b) => a.key - b.key || compare(a.entry.id, b.entry.id));
    const some = rest.slice(0, limit);
    const sessions = await this.#infos(
      some.map(({ entry }) => entry),
      withCount,
    );
    const last = rest.length > limit ? some.at(-1) : undefined;
    return last === undefined ? { sessions } : { sessions, next: [last.key, last.entry.id] };
  }

  /** With when their sessions were made, in milliseconds, negative; 0 where nobody knows. */
  async #created(entries: readonly Entry[]): Promise<{ entry: Entry; key: number }[]> {
    const found: { entry: Entry; key: number }[] = [];
    for (let at = 0; at < entries.length; at += AT_ONCE) {
      const some = entries.slice(at, at + AT_ONCE);
      const times = await this.#connection.use((client) =>
        Promise.all(
          some.map(({ id }) => client.hget(keysOf(id, this.#config.keys).session, 'created_at').catch(unknown)),
        ),
      );
      for (const [index, entry] of some.entries()) found.push({ entry, key: -(dateOf(times[index])?.getTime() ?? 0) });
    }
    return found;
  }

  /** Behind a place: equal scores are in the order of the bytes of their ids. */
  async #updated(after: SessionPage['after'], count: number): Promise<Entry[]> {
    const [from = '-inf', id] = after ?? [];
    const score = String(from);
    return await this.#connection.use(async (client) => {
      const found: Entry[] = [];
      for (let offset = 0; found.length < count; offset += count) {
        const flat = await client.zrangebyscore(this.#key, score, '+inf', 'WITHSCORES', 'LIMIT', offset, count);
        const entries = entriesOf(flat);
        for (const entry of entries) {
          const isBehind =
            id === undefined ||
            entry.score !== score ||
            Buffer.compare(Buffer.from(entry.id), Buffer.from(String(id))) > 0;
          if (isBehind && found.length < count) found.push(entry);
        }
        if (entries.length < count) break;
      }
      return found;
    });
  }

  async #all(): Promise<Entry[]> {
    return entriesOf(await this.#connection.use((client) => client.zrange(this.#key, '0', '-1', 'WITHSCORES')));
  }

  async #infos(entries: readonly Entry[], withCount: boolean): Promise<SessionInfo[]> {
    const { keys: naming } = this.#config;
    const infos = await this.#connection.use((client) =>
      Promise.all(entries.map(({ id }) => infoOf(client, keysOf(id, naming), withCount).catch(notOurs))),
    );
    await this.#forget(entries.filter((_, at) => infos[at] === undefined));
    return infos.filter((info) => info !== undefined);
  }

  /** Entries of sessions that are gone. Those that stay do no harm: the next list finds them. */
  async #forget(gone: readonly Entry[]): Promise<void> {
    if (gone.length === 0) return;
    const pairs = gone.flatMap(({ id, score }) => [id, score]);
    await this.#connection
      .use(async (client) => {
        if (this.#config.scripting === 'lua') await forgetScript.run(client, [this.#key], pairs);
        else await client.zrem(this.#key, ...gone.map(({ id }) => id));
      })
      .catch(() => undefined);
  }
}

/** Ids and scores in turn; a client that gives the shapes of RESP3 has them as pairs, with numbers. */
function entriesOf(answer: readonly unknown[]): Entry[] {
  const flat = answer.flat().map(String);
  const entries: Entry[] = [];
  for (let at = 0; at < flat.length; at += 2) entries.push({ id: flat[at] ?? '', score: flat[at + 1] ?? '' });
  return entries;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Of another type than the key of a session: whoever lists the page hears of it. */
function unknown(error: unknown): null {
  if (isAnswer(error)) return null;
  throw error;
}
