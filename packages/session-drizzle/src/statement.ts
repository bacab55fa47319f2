import type { SQL } from 'drizzle-orm/sql/sql';

/** What a statement gives; every column that is read has a name of its own. */
export type Row = Readonly<Record<string, unknown>>;

/** Drivers of SQLite want to be told whether a statement gives rows. */
export interface Statement {
  readonly sql: SQL;
  readonly gives: 'rows' | 'nothing';
}
/** The statements of one transaction: each is answered with its rows. Runs on drivers with and without promises. */
export type Body<R> = Generator<Statement, R, readonly Row[]>;

export function* rows(sql: SQL): Body<readonly Row[]> {
  return yield { sql, gives: 'rows' };
}
export function* change(sql: SQL): Body<void> {
  yield { sql, gives: 'nothing' };
}
