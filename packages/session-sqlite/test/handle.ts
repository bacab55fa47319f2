import type { DatabaseSync } from 'node:sqlite';

import type { SQLiteHandle } from '../src/index.ts';

interface Watch {
  readonly before?: () => void;
  readonly after?: (rows: readonly unknown[], statement: string) => void;
}

/** The database as it is handed in, telling of each statement that gives rows: before they are fetched, and afterwards. */
export function watchedHandle(database: DatabaseSync, { before, after }: Watch): SQLiteHandle {
  return {
    exec: (text) => database.exec(text),
    prepare(text) {
      const statement = database.prepare(text);
      return {
        run: (...values: string[]) => statement.run(...values),
        get: (...values: string[]) => statement.get(...values),
        all(...values: string[]) {
          before?.();
          const rows = statement.all(...values);
          after?.(rows, text);
          return rows;
        },
      };
    },
  };
}
