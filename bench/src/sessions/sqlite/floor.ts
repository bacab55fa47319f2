import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import type { Store } from '../store.ts';
import type { OpenStore } from './file.ts';

/**
 * The least that a session in SQLite takes: the same tables and the same log, one connection, statements prepared once,
 * items as JSON. Nobody waits for a lock, checks an item or looks whether the file is still there.
 */
export class Floor implements Store {
  readonly #sessionId: string;
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #touch: StatementSync;
  readonly #insert: StatementSync;
  readonly #newest: StatementSync;

  readonly #encode: (item: object) => string;

  constructor(
    sessionId: string,
    path: string,
    synchronous: 'FULL' | 'NORMAL',
    encode: (item: object) => string = (item) => JSON.stringify(item),
  ) {
    this.#sessionId = sessionId;
    this.#encode = encode;
    this.#database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    this.#database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; ${tables}`);
    const prepare = (sql: string): StatementSync => this.#database.prepare(sql);
    prepare('INSERT INTO agent_sessions (session_id) VALUES (?)').run(sessionId);
    this.#begin = prepare('BEGIN IMMEDIATE');
    this.#commit = prepare('COMMIT');
    this.#touch = prepare('UPDATE agent_sessions SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?');
    this.#insert = prepare('INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)');
    this.#newest = prepare('SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT ?');
  }

  async append(items: readonly object[]): Promise<void> {
    this.#begin.run();
    this.#touch.run(this.#sessionId);
    for (const item of items) this.#insert.run(this.#sessionId, this.#encode(item));
    this.#commit.run();
  }

  async tail(count: number): Promise<object[]> {
    const rows = this.#newest.all(this.#sessionId, count) as { message_data: string }[];
    return rows.map((row) => JSON.parse(row.message_data) as object).toReversed();
  }

  async close(): Promise<void> {
    this.#database.close();
  }
}

const tables = `
  CREATE TABLE IF NOT EXISTS agent_sessions (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
  );
  CREATE TABLE IF NOT EXISTS agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
  );
  CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id)`;

export const openStore: OpenStore = (sessionId, path, synchronous) => new Floor(sessionId, path, synchronous);
