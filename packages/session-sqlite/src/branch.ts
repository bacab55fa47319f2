import { UserError } from '@agents/core';

import { BranchStatements } from './branch-statements.ts';
import type { Connection } from './connection.ts';
import type { TableNames } from './schema.ts';

/** On which branch an object is. A clear, also one of another process, takes all branches away: then it is on `main`. */
export class BranchState {
  #id: string;
  #generation: number | undefined;
  /** Whether messages of writers without branches were looked for. */
  adopted = false;
  /** It was not made by this object, and nobody has looked for it yet. */
  mustExist = false;
  /** While it is being made; stays, and rejects, if it could not be. */
  made: Promise<void> | undefined;
  /** For an object that shares the connection of the one that it was made from. */
  readonly connection: Connection | undefined;

  constructor(id: string, connection?: Connection) {
    this.#id = id;
    this.connection = connection;
  }

  get id(): string {
    return this.#id;
  }

  begin(made: Promise<void>): void {
    this.made = made;
    made.then(
      () => (this.made = undefined),
      // Told by each call on the object, and not as an error that nobody waits for.
      () => undefined,
    );
  }

  /**
   * Whether the session was cleared since this object looked last.
   *
   * @throws UserError for a branch that does not exist
   */
  refresh(branches: BranchStatements, sessionId: string): boolean {
    const generation = branches.generation(sessionId);
    const wasCleared = this.#generation !== undefined && this.#generation !== generation;
    if (wasCleared) this.#id = 'main';
    this.#generation = generation;
    if (this.mustExist && !wasCleared && !branches.exists(sessionId, this.#id)) throw unknownBranch();
    this.mustExist = false;
    return wasCleared;
  }

  cleared(branches: BranchStatements | undefined, sessionId: string): void {
    this.#id = 'main';
    this.mustExist = false;
    this.#generation = branches?.generation(sessionId);
  }
}

/** @throws UserError when there is no such turn, or the id was used */
export function makeBranch(
  branches: BranchStatements,
  sessionId: string,
  from: string,
  to: string,
  fromTurn: number,
): void {
  if (!branches.hasTurn(sessionId, from, fromTurn))
    throw new UserError(`Turn ${fromTurn} is no user message of this branch; no branch was made.`);
  branches.reserveAll(sessionId);
  if (to === 'main' || branches.isReserved(sessionId, to))
    throw new UserError('The id of this branch was used before; no branch was made. Ids are never used twice.');
  branches.reserve(sessionId, to);
  branches.copy(sessionId, from, to, fromTurn);
}

/** All of a session, inside a write transaction. */
export function clearSession(
  connection: Connection,
  names: TableNames,
  sessionId: string,
): BranchStatements | undefined {
  const branches = connection.branchesToChange(names);
  const own = branches instanceof BranchStatements ? branches : undefined;
  own?.clear(sessionId);
  connection.statements(names).clear(sessionId);
  return own;
}

export function unknownBranch(): UserError {
  return new UserError('There is no branch of this id. Make it with branch(id, { fromTurn }).');
}
