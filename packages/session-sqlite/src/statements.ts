import type { Database, Statement } from './driver.ts';
import type { TableNames } from './schema.ts';

export interface Row {
  /** Of the message. */
  readonly id: number;
  /** Of its place in a branch. */
  readonly key?: number | undefined;
  readonly text: unknown;
}

/** Every statement on one pair of tables, prepared once per connection. */
export class Statements {
  readonly #touch: Statement;
  readonly #addSession: Statement;
  readonly #addMessage: Statement;
  readonly #newest: Statement;
  readonly #older: Statement;
  readonly #oldest: Statement;
  readonly #hasMessage: Statement;
  readonly #newestId: Statement;
  readonly #deleteMessage: Statement;
  readonly #deleteMessages: Statement;
  readonly #deleteSession: Statement;
  readonly #operation: Statement;
  readonly #addOperation: Statement;
  readonly #deleteOperations: Statement;
  readonly #pruneOperations: Statement;

  readonly #deleteMetadata: Statement;
  readonly #hasSession: Statement;
  readonly #lastMessage: Statement;

  constructor(database: Database, { sessions, messages, operations, metadata }: TableNames) {
    const prepare = (sql: string): Statement => database.prepare(sql);
    this.#touch = prepare(`UPDATE "${sessions}" SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?`);
    this.#addSession = prepare(`INSERT OR IGNORE INTO "${sessions}" (session_id) VALUES (?)`);
    this.#addMessage = prepare(`INSERT INTO "${messages}" (session_id, message_data) VALUES (?, ?)`);
    this.#newest = prepare(
      `SELECT id, message_data AS text FROM "${messages}" WHERE session_id = ? ORDER BY id DESC LIMIT ?`,
    );
    this.#older = prepare(
      `SELECT id, message_data AS text FROM "${messages}" WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    );
    this.#oldest = prepare(
      `SELECT id, message_data AS text FROM "${messages}" WHERE session_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?`,
    );
    this.#hasMessage = prepare(`SELECT 1 AS found FROM "${messages}" WHERE session_id = ? AND id = ?`);
    this.#newestId = prepare(`SELECT coalesce(max(id), 0) AS id FROM "${messages}" WHERE session_id = ?`);
    this.#deleteMessage = prepare(`DELETE FROM "${messages}" WHERE id = ?`);
    this.#deleteMessages = prepare(`DELETE FROM "${messages}" WHERE session_id = ?`);
    this.#deleteSession = prepare(`DELETE FROM "${sessions}" WHERE session_id = ?`);
    this.#operation = prepare(`SELECT digest, result FROM "${operations}" WHERE session_id = ? AND operation_id = ?`);
    this.#addOperation = prepare(
      `INSERT INTO "${operations}" (session_id, operation_id, digest, result) VALUES (?, ?, ?, ?)`,
    );
    this.#deleteOperations = prepare(`DELETE FROM "${operations}" WHERE session_id = ?`);
    this.#hasSession = prepare(`SELECT 1 AS found FROM "${sessions}" WHERE session_id = ?`);
    this.#lastMessage = prepare('SELECT last_insert_rowid() AS id');
    this.#deleteMetadata = prepare(`DELETE FROM "${metadata}" WHERE session_id = ?`);
    this.#pruneOperations =
      prepare(`DELETE FROM "${operations}" WHERE session_id = ? AND created_at < datetime('now', '-1 day') AND rowid NOT IN (
      SELECT rowid FROM "${operations}" WHERE session_id = ? ORDER BY rowid DESC LIMIT 64)`);
  }

  /** The newest rows, newest first; `before`: only those with a smaller id. */
  newest(sessionId: string, count: number, before?: number): Row[] {
    const rows = before === undefined ? this.#newest.all(sessionId, count) : this.#older.all(sessionId, before, count);
    return rows as Row[];
  }

  /** The oldest rows up to that id, oldest first; `after`: only those with a greater id. */
  oldest(sessionId: string, count: number, upTo: number, after?: number): Row[] {
    return this.#oldest.all(sessionId, after ?? Number.MIN_SAFE_INTEGER, upTo, count) as Row[];
  }

  hasMessage(sessionId: string, id: number): boolean {
    const row: unknown = this.#hasMessage.get(sessionId, id);
    return row !== undefined && row !== null;
  }

  /** Ids are never used again, so the newest one stands for the whole history; 0: empty. */
  version(sessionId: string): string {
    return String((this.#newestId.get(sessionId) as { id: unknown }).id);
  }

  /** Makes the session if there is none; else it was updated now, but for upkeep. */
  touch(sessionId: string, upkeep = false): void {
    if (upkeep) this.#addSession.run(sessionId);
    else {
      const { changes } = this.#touch.run(sessionId) as { changes?: unknown };
      if (Number(changes ?? 0) === 0) this.#addSession.run(sessionId);
    }
  }

  hasSession(sessionId: string): boolean {
    const row: unknown = this.#hasSession.get(sessionId);
    return row !== undefined && row !== null;
  }

  /** Its id, where the driver tells it. */
  addMessage(sessionId: string, text: string): number | bigint | undefined {
    const result = this.#addMessage.run(sessionId, text) as { lastInsertRowid?: number | bigint } | undefined;
    return result?.lastInsertRowid;
  }

  /** The id of the message that was added last. */
  lastMessage(): number {
    return Number((this.#lastMessage.get() as { id: unknown }).id);
  }

  deleteMessage(id: number): void {
    this.#deleteMessage.run(id);
  }

  deleteMessages(sessionId: string): void {
    this.#deleteMessages.run(sessionId);
  }

  clear(sessionId: string): void {
    this.#deleteMessages.run(sessionId);
    this.#deleteSession.run(sessionId);
    this.#deleteOperations.run(sessionId);
    this.#deleteMetadata.run(sessionId);
  }

  operation(sessionId: string, operationId: string): { readonly digest: string; readonly result: string } | undefined {
    const row = this.#operation.get(sessionId, operationId) as { digest: string; result: string } | undefined | null;
    return row ?? undefined;
  }

  addOperation(sessionId: string, operationId: string, digest: string, result: string): void {
    this.#addOperation.run(sessionId, operationId, digest, result);
    // The last 64 and those of the last day are kept; now and then is often enough to forget the others.
    if (Math.random() < 1 / 64) this.#pruneOperations.run(sessionId, sessionId);
  }
}
