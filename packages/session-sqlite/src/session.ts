import { getLogger, UserError } from '@agents/core';
import type { AgentInputItem, Usage } from '@agents/core';
import { checkOptions, kinds, SessionClosedError, StoredSession } from '@agents/core/session';

import { branchHistory, readOptions, sharedConnection } from './arguments.ts';
import type { OfBranch } from './arguments.ts';
import { SQLiteHistory } from './history.ts';
import type { SQLiteSessionOptions } from './options.ts';

/**
 * Tables of the Python SDK. Safe with several processes, Python ones included. Nothing is opened before the first call;
 * sessions of one file share one connection. Errors of SQLite itself (a full disk, a file that is no database) pass
 * unchanged.
 *
 * @throws UserError `session_id_invalid`, `session_name_invalid`, and for options of a wrong kind
 * @example
 * const session = new SQLiteSession('user-42', 'chat.db');
 * await run(agent, 'My name is Ada.', { session });
 * await session.close(); // lets go of the file; on Node 24 `await using session = …` does it by itself
 */
export class SQLiteSession<T extends object = AgentInputItem> extends StoredSession<T> {
  readonly #history: SQLiteHistory;
  readonly #options: SQLiteSessionOptions;

  constructor(sessionId: string, options?: string | URL | SQLiteSessionOptions) {
    const config = readOptions(options);
    const given = typeof options === 'object' && !(options instanceof URL) ? (options as OfBranch) : {};
    let history = given[branchHistory];
    super(sessionId, (id) => (history ??= new SQLiteHistory(id, config, sharedConnection(options))), {
      name: 'SQLiteSession',
      options: config.session,
      encoding: { style: 'spaced' },
    });
    this.#history = history ?? new SQLiteHistory(sessionId, config);
    this.#options = config.given;
  }

  /** Default `main`; also after a clear, which removes all branches. */
  get branchId(): string {
    return this.#history.branchId;
  }

  /**
   * This conversation on another branch (tables of Python's `AdvancedSQLiteSession`). `fromTurn` makes it: a copy of the
   * turns before that user message, from 1; without it the branch has to exist. Ids of branches are never used twice. What
   * can't be made is told by every call on the new object, as `UserError` or `SessionSchemaError`.
   *
   * @throws UserError for a blank id and wrong options; SessionClosedError
   * @example const again = session.branch('other answer', { fromTurn: 2 });
   */
  branch(branchId: string, options?: { fromTurn?: number | undefined }): SQLiteSession<T> {
    checkOptions(options, { fromTurn: kinds.integer(1) }, 'SQLiteSession.branch()');
    if (typeof branchId !== 'string' || branchId.trim() === '')
      throw new UserError('The id of a branch must be a string that is not blank.');
    if (this.closed)
      throw new SessionClosedError('The session, or its store, was closed.', { sessionId: this.sessionId });
    const history = this.#history.branch(branchId, options?.fromTurn, async (work) => await this.inOrder(work));
    const given: SQLiteSessionOptions & OfBranch = { ...this.#options, [branchHistory]: history };
    return this.inSameStore(new SQLiteSession<T>(this.sessionId, given));
  }

  /** Keeps a run's usage for the branch's current turn: the sum of the turn, in place of what was there. Never rejects; a failure is logged. */
  async addUsage(usage: Usage): Promise<void> {
    try {
      await this.inOrder(async () => await this.#history.addUsage(usage));
    } catch (error) {
      getLogger('session').warn('The usage of a turn could not be stored.', {
        sessionId: this.sessionId,
        error: error instanceof Error ? error.name : typeof error,
      });
    }
  }

  /** The sum of the turns of this branch; `undefined`: none was stored. */
  async getUsage(): Promise<Usage | undefined> {
    return await this.inOrder(async () => await this.#history.getUsage());
  }
}
