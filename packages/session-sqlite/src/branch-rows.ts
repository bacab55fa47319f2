import type { BranchStatements, StructureRow } from './branch-statements.ts';
import type { HistoryRows } from './rows.ts';
import type { Row, Statements } from './statements.ts';

/** Of a session in a file with the tables of branches: its messages by their places in one branch. */
export class BranchRows implements HistoryRows {
  readonly #branches: BranchStatements;
  readonly #statements: Statements;
  readonly #sessionId: string;
  readonly #branchId: string;

  constructor(branches: BranchStatements, statements: Statements, sessionId: string, branchId: string) {
    this.#branches = branches;
    this.#statements = statements;
    this.#sessionId = sessionId;
    this.#branchId = branchId;
  }

  newest(count: number, before?: Row): StructureRow[] {
    const sequence = (before as StructureRow | undefined)?.sequence ?? Number.MAX_SAFE_INTEGER;
    return this.#branches.newest(this.#sessionId, this.#branchId, count, sequence);
  }

  oldest(count: number, upTo: Row, after?: Row): StructureRow[] {
    const { sequence } = upTo as StructureRow;
    const behind = (after as StructureRow | undefined)?.sequence ?? Number.MIN_SAFE_INTEGER;
    return this.#branches.oldest(this.#sessionId, this.#branchId, count, sequence, behind);
  }

  has(row: Row): boolean {
    return row.key !== undefined && this.#branches.has(this.#sessionId, row.key);
  }

  version(): string {
    return `s${this.#branches.newestKey(this.#sessionId, this.#branchId)}`;
  }

  versionOf(newest: Row | undefined): string {
    return `s${newest?.key ?? 0}`;
  }

  append(texts: readonly string[]): void {
    const messages = texts.map((text) => {
      this.#statements.addMessage(this.#sessionId, text);
      return { id: this.#statements.lastMessage(), text };
    });
    this.#branches.addPlaces(this.#sessionId, this.#branchId, messages);
  }

  pop(): Row | undefined {
    const [row] = this.newest(1);
    if (row !== undefined) this.delete([row]);
    return row;
  }

  delete(rows: readonly Row[]): void {
    this.#branches.deletePlaces(this.#sessionId, this.#branchId, rows as readonly StructureRow[], this.#statements);
  }

  deleteAll(): void {
    this.#branches.deleteBranch(this.#sessionId, this.#branchId);
  }
}
