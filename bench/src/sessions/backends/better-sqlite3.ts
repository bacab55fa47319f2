import { createTables } from '@agents/session-drizzle/sqlite';
import Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { join } from 'node:path';
import { itemsOfNewestFirst, textsOf } from '../floor.ts';
import { drizzleSession } from '../ours.ts';
import type { OpenBackend, Store } from '../store.ts';

/** The tables of the Python SDK's SQLAlchemy session; statements prepared once. */
class Floor implements Store {
  readonly #sessionId: string;
  readonly #append: (texts: readonly string[]) => void;
  readonly #newest: Database.Statement<[string, number], { message_data: string }>;

  /** @param sessionId has a row already */
  constructor(database: Database.Database, sessionId: string) {
    this.#sessionId = sessionId;
    const touch = database.prepare<[string]>(
      'update agent_sessions set updated_at = CURRENT_TIMESTAMP where session_id = ?',
    );
    const insert = database.prepare<[string, string]>(
      'insert into agent_messages (session_id, message_data) values (?, ?)',
    );
    const append = database.transaction((texts: readonly string[]) => {
      touch.run(sessionId);
      for (const text of texts) insert.run(sessionId, text);
    });
    this.#append = (texts) => append.immediate(texts);
    // Without the cast this build of SQLite prepares it anew with each id.
    this.#newest = database.prepare(
      'select message_data from agent_messages where session_id = cast(? as text) order by created_at desc, id desc limit ?',
    );
  }

  async append(items: readonly object[]): Promise<void> {
    this.#append(textsOf(items));
  }

  async tail(count: number): Promise<readonly object[]> {
    return itemsOfNewestFirst(this.#newest.all(this.#sessionId, count));
  }

  async close(): Promise<void> {}
}

/** Each of the two has a file of its own. */
export const open: OpenBackend = async (folder) => {
  const [bare, client] = ['bare.db', 'session.db'].map((name) => connect(join(folder, name))) as [
    Connection,
    Connection,
  ];
  await createTables(drizzle({ client: bare }));
  const db = drizzle({ client });
  await createTables(db);
  return {
    async floor(sessionId) {
      bare.prepare('insert into agent_sessions (session_id) values (?)').run(sessionId);
      return new Floor(bare, sessionId);
    },
    session: async (sessionId) => drizzleSession(sessionId, db),
    async close() {
      bare.close();
      client.close();
    },
  };
};

type Connection = Database.Database;

/** Every commit is on the disk when it returns. */
function connect(path: string): Connection {
  const database = new Database(path);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  return database;
}
