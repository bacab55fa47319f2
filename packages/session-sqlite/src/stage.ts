import { SessionError } from '@agents/core/session';
import type { StagedHistory } from '@agents/core/session';

import type { Database } from './driver.ts';
import type { SQLiteHistory } from './history.ts';

/** Rows that are published at once, inside one transaction. */
const PAGE = 500;
let stages = 0;

/**
 * What is imported stands in a temporary table of the connection until it is whole: neither in the file, where others would
 * see it, nor in memory.
 */
export class SQLiteStage implements StagedHistory {
  readonly #history: SQLiteHistory;
  readonly #query: <R>(work: (database: Database) => R) => Promise<R>;
  readonly #stage: number = ++stages;
  #count = 0;

  constructor(history: SQLiteHistory, query: <R>(work: (database: Database) => R) => Promise<R>) {
    this.#history = history;
    this.#query = query;
  }

  async append(texts: readonly string[]): Promise<void> {
    await this.#query((database) => {
      database.exec(
        'CREATE TEMP TABLE IF NOT EXISTS agent_session_stages (id INTEGER PRIMARY KEY, stage INTEGER NOT NULL, text TEXT NOT NULL)',
      );
      // One statement: all of them or none.
      const insert = database.prepare(
        'INSERT INTO temp.agent_session_stages (stage, text) SELECT ?, value FROM json_each(?) ORDER BY key',
      );
      insert.run(this.#stage, JSON.stringify(texts));
    });
    this.#count += texts.length;
  }

  async publish(how: 'create' | 'replace' | 'append'): Promise<void> {
    await this.#history.publish(how, (database) => this.#pages(database));
    await this.discard();
  }

  async discard(): Promise<void> {
    await this.#query((database) => {
      database.prepare('DELETE FROM temp.agent_session_stages WHERE stage = ?').run(this.#stage);
    });
  }

  *#pages(database: Database): Generator<readonly string[]> {
    const page = database.prepare(
      'SELECT id, text FROM temp.agent_session_stages WHERE stage = ? AND id > ? ORDER BY id LIMIT ?',
    );
    let after = 0;
    let count = 0;
    for (;;) {
      const rows = page.all(this.#stage, after, PAGE) as { id: number; text: string }[];
      yield rows.map(({ text }) => text);
      count += rows.length;
      if (rows.length < PAGE) break;
      after = rows.at(-1)?.id ?? after;
    }
    // A connection that was opened anew meanwhile has lost them.
    if (count !== this.#count)
      throw new SessionError('What was staged is gone with its connection; nothing was stored. Try again.');
  }
}
