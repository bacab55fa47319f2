import { createTables } from '@agents/session-drizzle/sqlite';
import { createClient } from '@libsql/client';
import type { Client } from '@libsql/client';
import { drizzle } from 'drizzle-orm/libsql';
import { join } from 'node:path';
import { itemsOfNewestFirst, textsOf } from '../floor.ts';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend, Store } from '../store.ts';

/** The tables of the Python SDK's SQLAlchemy session; a batch of statements is a transaction. */
class Floor implements Store {
  readonly #client: Client;
  readonly #sessionId: string;

  /** @param sessionId has a row already */
  constructor(client: Client, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  async append(items: readonly object[]): Promise<void> {
    const id = this.#sessionId;
    const touch = 'update agent_sessions set updated_at = CURRENT_TIMESTAMP where session_id = ?';
    const insert = 'insert into agent_messages (session_id, message_data) values (?, ?)';
    const inserts = textsOf(items).map((text) => ({ sql: insert, args: [id, text] }));
    await this.#client.batch([{ sql: touch, args: [id] }, ...inserts], 'write');
  }

  async tail(count: number): Promise<readonly object[]> {
    const { rows } = await this.#client.execute({
      sql: 'select message_data from agent_messages where session_id = ? order by created_at desc, id desc limit ?',
      args: [this.#sessionId, count],
    });
    return itemsOfNewestFirst(rows as unknown as { message_data: string }[]);
  }

  async close(): Promise<void> {}
}

/** Each of the two has a file of its own. */
export const open: OpenBackend = async (folder) => {
  const [bare, client] = [await connect(join(folder, 'bare.db')), await connect(join(folder, 'session.db'))];
  await createTables(drizzle({ client: bare }));
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      await bare.execute({ sql: 'insert into agent_sessions (session_id) values (?)', args: [sessionId] });
      return new Floor(bare, sessionId);
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      bare.close();
      client.close();
    },
  };
};

async function connect(path: string): Promise<Client> {
  const client = createClient({ url: `file:${path}` });
  await client.execute('PRAGMA journal_mode = WAL');
  return client;
}
