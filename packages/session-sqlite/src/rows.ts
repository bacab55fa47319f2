import type { Row, Statements } from './statements.ts';

/** The rows of one session, or of one of its branches, inside a transaction. */
export interface HistoryRows {
  /** The newest rows, newest first; `before`: only those that come before this one. */
  newest(count: number, before?: Row): Row[];
  /** The oldest rows, oldest first, up to that one: `after`: only those that come after this one. */
  oldest(count: number, upTo: Row, after?: Row): Row[];
  has(row: Row): boolean;
  version(): string;
  /** Ids are never used again, so the newest row stands for the whole history. */
  versionOf(newest: Row | undefined): string;
  append(texts: readonly string[]): void;
  /** The newest row leaves, whatever is in it. */
  pop(): Row | undefined;
  delete(rows: readonly Row[]): void;
  deleteAll(): void;
}

/** Of a session without branches: its messages, by their ids. */
export class PlainRows implements HistoryRows {
  readonly #statements: Statements;
  readonly #sessionId: string;
  /** Id of the row that was added last, as long as nothing else changed: the newest one need not be asked for. */
  #added: number | bigint | undefined;

  constructor(statements: Statements, sessionId: string) {
    this.#statements = statements;
    this.#sessionId = sessionId;
  }

  newest(count: number, before?: Row): Row[] {
    return this.#statements.newest(this.#sessionId, count, before?.id);
  }

  oldest(count: number, upTo: Row, after?: Row): Row[] {
    return this.#statements.oldest(this.#sessionId, count, upTo.id, after?.id);
  }

  has({ id }: Row): boolean {
    return this.#statements.hasMessage(this.#sessionId, id);
  }

  version(): string {
    return this.#added === undefined ? this.#statements.version(this.#sessionId) : String(this.#added);
  }

  versionOf(newest: Row | undefined): string {
    return String(newest?.id ?? 0);
  }

  append(texts: readonly string[]): void {
    for (const text of texts) this.#added = this.#statements.addMessage(this.#sessionId, text);
  }

  pop(): Row | undefined {
    const [row] = this.newest(1);
    if (row !== undefined) this.delete([row]);
    return row;
  }

  delete(rows: readonly Row[]): void {
    this.#added = undefined;
    for (const { id } of rows) this.#statements.deleteMessage(id);
  }

  deleteAll(): void {
    this.#added = undefined;
    this.#statements.deleteMessages(this.#sessionId);
  }
}
