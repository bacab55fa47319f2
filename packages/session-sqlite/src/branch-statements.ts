import { decodeItem } from '@agents/core/session';

import type { Database, Statement } from './driver.ts';
import type { TableNames } from './schema.ts';
import type { Row, Statements } from './statements.ts';
import { structureOf } from './structure.ts';

/** A message's place in a branch. */
export interface StructureRow extends Row {
  readonly key: number;
  readonly sequence: number;
  readonly turn: number | null;
}

export interface UsageRow {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
  readonly total: number;
  readonly inputDetails: unknown;
  readonly outputDetails: unknown;
}

type Value = string | number;

/** Statements on the tables of branches, prepared when they are first used. */
export class BranchStatements {
  readonly #database: Database;
  readonly #messages: string;
  readonly #select: string;
  readonly #prepared = new Map<string, Statement>();
  /** Whether there are tables for reserved ids and for clears; older versions of Python's class had none. */
  readonly isWhole: boolean;

  constructor(database: Database, { messages }: TableNames, isWhole: boolean) {
    this.#database = database;
    this.isWhole = isWhole;
    this.#messages = messages;
    this.#select = `SELECT s.id AS key, s.message_id AS id, s.sequence_number AS sequence, s.user_turn_number AS turn, m.message_data AS text
       FROM message_structure s JOIN "${messages}" m ON m.id = s.message_id
       WHERE s.session_id = ? AND s.branch_id = ?`;
  }

  newest(sessionId: string, branchId: string, count: number, before: number): StructureRow[] {
    return this.#all(
      `${this.#select} AND s.sequence_number < ? ORDER BY s.sequence_number DESC LIMIT ?`,
      sessionId,
      branchId,
      before,
      count,
    ) as StructureRow[];
  }

  oldest(sessionId: string, branchId: string, count: number, upTo: number, after: number): StructureRow[] {
    return this.#all(
      `${this.#select} AND s.sequence_number > ? AND s.sequence_number <= ? ORDER BY s.sequence_number LIMIT ?`,
      sessionId,
      branchId,
      after,
      upTo,
      count,
    ) as StructureRow[];
  }

  has(sessionId: string, key: number): boolean {
    return this.#is('SELECT 1 AS found FROM message_structure WHERE id = ? AND session_id = ?', key, sessionId);
  }

  /** Ids are never used again: the newest one stands for the history of the branch. */
  newestKey(sessionId: string, branchId: string): number {
    const row = this.#get(
      'SELECT id FROM message_structure WHERE session_id = ? AND branch_id = ? ORDER BY id DESC LIMIT 1',
      sessionId,
      branchId,
    );
    return Number(row?.['id'] ?? 0);
  }

  exists(sessionId: string, branchId: string): boolean {
    return this.#is(
      'SELECT 1 AS found FROM message_structure WHERE session_id = ? AND branch_id = ? LIMIT 1',
      sessionId,
      branchId,
    );
  }

  /** Places for messages, in this order, behind all others of the session (SESS-203). */
  addPlaces(sessionId: string, branchId: string, messages: readonly { id: number; text: unknown }[]): void {
    if (messages.length === 0) return;
    const { sequence } = this.#get(
      'SELECT coalesce(max(sequence_number), 0) AS sequence FROM message_structure WHERE session_id = ?',
      sessionId,
    ) as { sequence: number };
    const turns = this.#get(
      `SELECT coalesce(max(user_turn_number), 0) AS turn, coalesce(max(branch_turn_number), 0) AS branchTurn
       FROM message_structure WHERE session_id = ? AND branch_id = ?`,
      sessionId,
      branchId,
    ) as { turn: number; branchTurn: number };
    let place = sequence;
    let { turn, branchTurn } = turns;
    for (const { id, text } of messages) {
      const structure = structureOf(typeof text === 'string' ? decodeItem<object>(text) : undefined);
      if (structure.isUserMessage) {
        turn++;
        branchTurn++;
      }
      this.#run(
        `INSERT INTO message_structure (session_id, message_id, branch_id, message_type, sequence_number, user_turn_number, branch_turn_number, tool_name)
         SELECT ?, ?, ?, ?, ?, ?, ?, nullif(?, '')`,
        sessionId,
        id,
        branchId,
        structure.type,
        ++place,
        turn,
        branchTurn,
        structure.toolName ?? '',
      );
    }
  }

  /** Messages without a place, of writers that know no branches, get one in `main` (SESS-212). */
  adopt(sessionId: string): void {
    this.addPlaces(sessionId, 'main', this.#orphans(sessionId));
  }

  needsAdoption(sessionId: string): boolean {
    return this.#orphans(sessionId, 1).length > 0;
  }

  #orphans(sessionId: string, limit = -1): { id: number; text: unknown }[] {
    return this.#all(
      `SELECT id, message_data AS text FROM "${this.#messages}" WHERE session_id = ?
       AND id NOT IN (SELECT message_id FROM message_structure WHERE session_id = ?) ORDER BY id LIMIT ?`,
      sessionId,
      sessionId,
      limit,
    ) as { id: number; text: unknown }[];
  }

  /** The places go, and with them messages that stand in no other branch, and usage of turns that are empty now. */
  deletePlaces(sessionId: string, branchId: string, rows: readonly StructureRow[], statements: Statements): void {
    this.reserve(sessionId, branchId);
    for (const { key } of rows) this.#run('DELETE FROM message_structure WHERE id = ?', key);
    const isAlone = !this.#hasOtherBranch(sessionId, branchId);
    for (const { id } of rows) {
      const isShared = !isAlone && this.#isPlaced(sessionId, id);
      if (!isShared) statements.deleteMessage(id);
    }
    for (const turn of new Set(rows.map((row) => row.turn))) {
      if (turn === null || this.#hasPlaces(sessionId, branchId, turn)) continue;
      this.#run(
        'DELETE FROM turn_usage WHERE session_id = ? AND branch_id = ? AND user_turn_number = ?',
        sessionId,
        branchId,
        turn,
      );
    }
  }

  deleteBranch(sessionId: string, branchId: string): void {
    this.reserve(sessionId, branchId);
    this.#run(
      `DELETE FROM "${this.#messages}" WHERE session_id = ?
       AND id IN (SELECT message_id FROM message_structure WHERE session_id = ? AND branch_id = ?)
       AND id NOT IN (SELECT message_id FROM message_structure WHERE session_id = ? AND branch_id <> ?)`,
      sessionId,
      sessionId,
      branchId,
      sessionId,
      branchId,
    );
    for (const table of ['message_structure', 'turn_usage'])
      this.#run(`DELETE FROM ${table} WHERE session_id = ? AND branch_id = ?`, sessionId, branchId);
  }

  /** What clear leaves behind: reserved ids, and the number that tells others of it (SESS-208). */
  clear(sessionId: string): void {
    this.reserveAll(sessionId);
    for (const table of ['message_structure', 'turn_usage'])
      this.#run(`DELETE FROM ${table} WHERE session_id = ?`, sessionId);
    this.#run('INSERT OR IGNORE INTO session_clear_generations (session_id, generation) VALUES (?, 0)', sessionId);
    this.#run('UPDATE session_clear_generations SET generation = generation + 1 WHERE session_id = ?', sessionId);
  }

  generation(sessionId: string): number {
    if (!this.isWhole) return 0;
    const row = this.#get('SELECT generation FROM session_clear_generations WHERE session_id = ?', sessionId);
    return Number(row?.['generation'] ?? 0);
  }

  // ---- ids of branches are never used again (SESS-205)

  reserve(sessionId: string, branchId: string): void {
    this.#run('INSERT OR IGNORE INTO branch_reservations (session_id, branch_id) VALUES (?, ?)', sessionId, branchId);
  }

  /** Of branches that older writers made. */
  reserveAll(sessionId: string): void {
    this.#run(
      'INSERT OR IGNORE INTO branch_reservations (session_id, branch_id) SELECT DISTINCT session_id, branch_id FROM message_structure WHERE session_id = ?',
      sessionId,
    );
  }

  isReserved(sessionId: string, branchId: string): boolean {
    return this.#is(
      'SELECT 1 AS found FROM branch_reservations WHERE session_id = ? AND branch_id = ?',
      sessionId,
      branchId,
    );
  }

  hasTurn(sessionId: string, branchId: string, turn: number): boolean {
    return this.#is(
      `SELECT 1 AS found FROM message_structure WHERE session_id = ? AND branch_id = ? AND branch_turn_number = ? AND message_type = 'user'`,
      sessionId,
      branchId,
      turn,
    );
  }

  /** The messages before that turn get places in the other branch too. */
  copy(sessionId: string, from: string, to: string, beforeTurn: number): void {
    this.#run(
      `INSERT INTO message_structure (session_id, message_id, branch_id, message_type, sequence_number, user_turn_number, branch_turn_number, tool_name)
       SELECT session_id, message_id, ?, message_type,
         (SELECT coalesce(max(sequence_number), 0) FROM message_structure WHERE session_id = ?) + row_number() OVER (ORDER BY sequence_number),
         user_turn_number, branch_turn_number, tool_name
       FROM message_structure WHERE session_id = ? AND branch_id = ? AND branch_turn_number < ? ORDER BY sequence_number`,
      to,
      sessionId,
      sessionId,
      from,
      beforeTurn,
    );
  }

  // ---- usage

  currentTurn(sessionId: string, branchId: string): number | undefined {
    const row = this.#get(
      'SELECT max(user_turn_number) AS turn FROM message_structure WHERE session_id = ? AND branch_id = ?',
      sessionId,
      branchId,
    );
    return typeof row?.['turn'] === 'number' ? row['turn'] : undefined;
  }

  putUsage(sessionId: string, branchId: string, turn: number, usage: UsageRow): void {
    this.#run(
      `INSERT OR REPLACE INTO turn_usage (session_id, branch_id, user_turn_number, requests, input_tokens, output_tokens, total_tokens, input_tokens_details, output_tokens_details)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      sessionId,
      branchId,
      turn,
      usage.requests,
      usage.input,
      usage.output,
      usage.total,
      String(usage.inputDetails),
      String(usage.outputDetails),
    );
  }

  usage(sessionId: string, branchId: string): UsageRow[] {
    return this.#all(
      `SELECT requests, input_tokens AS input, output_tokens AS output, total_tokens AS total,
       input_tokens_details AS inputDetails, output_tokens_details AS outputDetails
       FROM turn_usage WHERE session_id = ? AND branch_id = ? ORDER BY user_turn_number`,
      sessionId,
      branchId,
    ) as UsageRow[];
  }

  // ---- helpers

  /** Two look-ups in an index, where counting would read the session. */
  #hasOtherBranch(sessionId: string, branchId: string): boolean {
    return ['<', '>'].some((compare) =>
      this.#is(
        `SELECT 1 AS found FROM message_structure WHERE session_id = ? AND branch_id ${compare} ? LIMIT 1`,
        sessionId,
        branchId,
      ),
    );
  }

  #hasPlaces(sessionId: string, branchId: string, turn: number): boolean {
    return this.#is(
      'SELECT 1 AS found FROM message_structure WHERE session_id = ? AND branch_id = ? AND user_turn_number = ? LIMIT 1',
      sessionId,
      branchId,
      turn,
    );
  }

  #isPlaced(sessionId: string, messageId: number): boolean {
    return this.#is(
      'SELECT 1 AS found FROM message_structure WHERE session_id = ? AND message_id = ? LIMIT 1',
      sessionId,
      messageId,
    );
  }

  #statement(sql: string): Statement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }

  #run(sql: string, ...values: readonly Value[]): void {
    this.#statement(sql).run(...values);
  }

  #all(sql: string, ...values: readonly Value[]): unknown[] {
    return this.#statement(sql).all(...values);
  }

  #get(sql: string, ...values: readonly Value[]): Record<string, unknown> | undefined {
    return (this.#statement(sql).get(...values) as Record<string, unknown> | undefined | null) ?? undefined;
  }

  #is(sql: string, ...values: readonly Value[]): boolean {
    return this.#get(sql, ...values) !== undefined;
  }
}
