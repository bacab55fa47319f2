import { itemsOfNewestFirst, textsOf } from '../floor.ts';
import type { Store } from '../store.ts';

/**
 * The tables of the Python SDK in PostgreSQL. One statement, which is a transaction by itself: it locks the session's row,
 * so that the batches of two writers do not mix, and stamps the items with a time after those of the writer before.
 */
export const append = `
  with session as (
    update agent_sessions set updated_at = cast(clock_timestamp() as timestamp) where session_id = $1
    returning session_id, updated_at
  )
  insert into agent_messages (session_id, message_data, created_at)
  select session.session_id, item.text, session.updated_at
  from session, unnest(cast($2 as text[])) with ordinality as item (text, place)
  order by item.place`;

export const newest = `
  select message_data from agent_messages where session_id = $1 order by created_at desc, id desc limit $2`;

/** What a driver is asked by a floor. */
export interface Queries {
  /** Gives how many rows were inserted. */
  append(sessionId: string, texts: readonly string[]): Promise<number>;
  newest(sessionId: string, count: number): Promise<readonly { readonly message_data: string }[]>;
}

export class PostgresFloor implements Store {
  readonly #sessionId: string;
  readonly #queries: Queries;

  /** @param sessionId has a row already */
  constructor(sessionId: string, queries: Queries) {
    this.#sessionId = sessionId;
    this.#queries = queries;
  }

  async append(items: readonly object[]): Promise<void> {
    const stored = await this.#queries.append(this.#sessionId, textsOf(items));
    if (stored !== items.length) throw new Error('There is no such session.');
  }

  async tail(count: number): Promise<readonly object[]> {
    return itemsOfNewestFirst(await this.#queries.newest(this.#sessionId, count));
  }

  async close(): Promise<void> {}
}

export const create = 'insert into agent_sessions (session_id) values ($1)';
