import { getLogger } from '@agents/core';
import type { SessionInfo, SessionPage, SessionPageResult } from '@agents/core/session';

import type { Connection } from './connection.ts';
import { infoOf } from './info.ts';
import { INDEX_ID, keysOf } from './keys.ts';
import type { Config } from './options.ts';
import { forgetScript, indexScript } from './scripts.ts';

interface Entry {
  readonly id: string;
  /** Milliseconds of the last update, negative. */
  readonly score: string;
}

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

  /** Entries whose session is gone go as well. `created` and `id` look at all entries. */
  async page(page: SessionPage): Promise<SessionPageResult> {
    const { limit, withCount, order, after } = page;
    const wanted = limit + 1;
    const entries = order === 'updated' ? await this.#updated(after, wanted) : await this.#all();
    const known = await this.#infos(entries, withCount);
    if (order === 'updated') {
      const last = entries.length === wanted ? entries.at(-2) : undefined;
      const sessions = known
        .filter(({ entry }) => last === undefined || entry !== entries.at(-1))
        .map(({ info }) => info);
      return last === undefined ? { sessions } : { sessions, next: [last.score, last.id] };
    }
    const key = ({ createdAt }: SessionInfo): number => (order === 'id' ? 0 : -(createdAt?.getTime() ?? 0));
    const [time, id] = after ?? [];
    const rest = known
      .map(({ info }) => info)
      .toSorted((a, b) => key(a) - key(b) || compare(a.sessionId, b.sessionId))
      .filter((info) => after === undefined || (key(info) - Number(time) || compare(info.sessionId, String(id))) > 0);
    const sessions = rest.slice(0, limit);
    const last = rest.length > limit ? sessions.at(-1) : undefined;
    return last === undefined ? { sessions } : { sessions, next: [key(last), last.sessionId] };
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

  async #infos(entries: readonly Entry[], withCount: boolean): Promise<{ entry: Entry; info: SessionInfo }[]> {
    const { keys: naming } = this.#config;
    const infos = await this.#connection.use((client) =>
      Promise.all(entries.map(({ id }) => infoOf(client, keysOf(id, naming), id, withCount))),
    );
    await this.#forget(entries.filter((_, at) => infos[at] === undefined));
    return entries.flatMap((entry, at) => {
      const info = infos[at];
      return info === undefined ? [] : [{ entry, info }];
    });
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

function entriesOf(flat: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < flat.length; at += 2) entries.push({ id: flat[at] ?? '', score: flat[at + 1] ?? '' });
  return entries;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
