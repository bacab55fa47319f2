import { createTables } from '@agents/session-drizzle/mysql';
import { drizzle } from 'drizzle-orm/mysql2';
import { createPool } from 'mysql2/promise';
import type { Pool, RowDataPacket } from 'mysql2/promise';
import { itemsOfNewestFirst, textsOf } from '../floor.ts';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend, Store } from '../store.ts';

/**
 * The tables of the Python SDK in MariaDB. The update takes the lock of the session's row first, so that the batches of two
 * writers do not mix; the items get the time of their own statement, which comes after that.
 */
class Floor implements Store {
  readonly #pool: Pool;
  readonly #sessionId: string;

  /** @param sessionId has a row already */
  constructor(pool: Pool, sessionId: string) {
    this.#pool = pool;
    this.#sessionId = sessionId;
  }

  async append(items: readonly object[]): Promise<void> {
    const values = textsOf(items).flatMap((text) => [this.#sessionId, text]);
    const places = Array.from(items, () => '(?, ?)').join(', ');
    const connection = await this.#pool.getConnection();
    try {
      await connection.beginTransaction();
      await connection.query('update agent_sessions set updated_at = now(6) where session_id = ?', [this.#sessionId]);
      await connection.query(`insert into agent_messages (session_id, message_data) values ${places}`, values);
      await connection.commit();
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  }

  async tail(count: number): Promise<readonly object[]> {
    const [rows] = await this.#pool.query<(RowDataPacket & { message_data: string })[]>(
      'select message_data from agent_messages where session_id = ? order by created_at desc, id desc limit ?',
      [this.#sessionId, count],
    );
    return itemsOfNewestFirst(rows);
  }

  async close(): Promise<void> {}
}

export const open: OpenBackend = async (url) => {
  const [bare, client] = [createPool(url), createPool(url)];
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      await bare.query('insert into agent_sessions (session_id) values (?)', [sessionId]);
      return new Floor(bare, sessionId);
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      await Promise.all([bare.end(), client.end()]);
    },
  };
};
