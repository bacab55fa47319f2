import type { SessionOptions } from '@agents/core/session';

/** What is used of `DatabaseSync`, better-sqlite3's `Database` and Bun's `Database`. A handle that was passed in is never closed and keeps its own settings. */
export interface SQLiteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: never[]): unknown;
    get(...values: never[]): unknown;
    all(...values: never[]): unknown[];
  };
}

export interface SQLiteOptions {
  /** Default `:memory:`, private to the object. */
  path?: string | URL | undefined;
  /** Instead of `path`. */
  database?: SQLiteHandle | undefined;
  /** Awaited, never blocking. Default 5000. @throws SessionBusyError */
  busyTimeoutMs?: number | undefined;
  /** Default `FULL`. */
  synchronous?: 'FULL' | 'NORMAL' | undefined;
}

export interface SQLiteSessionOptions extends SQLiteOptions, Omit<SessionOptions, 'operationTimeoutMs'> {
  /** Default `agent_sessions`. */
  sessionsTable?: string | undefined;
  /** Default `agent_messages`. */
  messagesTable?: string | undefined;
}
