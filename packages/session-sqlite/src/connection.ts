import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { SessionClosedError, SessionError } from '@agents/core/session';

import type { Config } from './arguments.ts';
import { branchOwner, createBranchTables, hasAllBranchTables } from './branch-schema.ts';
import type { BranchOwner } from './branch-schema.ts';
import { BranchStatements } from './branch-statements.ts';
import { databaseOf, openDatabase } from './driver.ts';
import type { Database, OwnedDatabase, Statement } from './driver.ts';
import { createTables, missingTables } from './schema.ts';
import type { TableNames } from './schema.ts';
import { Statements } from './statements.ts';

/** Connections of this process, by the real path of their file: all sessions of a file share one (SESS-186). */
const shared = new Map<string, Connection>();

/** The connection for these options; every caller gives it back with `release`. Opens nothing yet. */
export function acquire({ target, synchronous }: Pick<Config, 'target' | 'synchronous'>): Connection {
  if (target === 'memory') return new Connection(':memory:', synchronous);
  if ('handle' in target) return new Connection(databaseOf(target.handle), synchronous);
  const path = realPath(target.path);
  const known = shared.get(path);
  // A file that was deleted or replaced lives on for those who have it open, and for nobody else.
  if (known !== undefined && !known.isOrphaned()) return known.join(synchronous);
  const connection = new Connection(path, synchronous);
  shared.set(path, connection);
  return connection;
}

/** One open database. Everything in here is synchronous; waiting for locks is the caller's. */
export class Connection {
  readonly #source: string | Database;
  #synchronous: Config['synchronous'];
  #users = 1;
  #database: Database | OwnedDatabase | undefined;
  #transaction: { readonly begin: Statement; readonly commit: Statement } | undefined;
  readonly #known = new Map<string, Tables>();
  #lost = false;
  /** Of the open file; `undefined`: none is open, or its identity cannot be had. */
  #file: FileIdentity | undefined;

  constructor(source: string | Database, synchronous: Config['synchronous']) {
    this.#source = source;
    this.#synchronous = synchronous;
  }

  /** One more user; the strictest durability that a user asked for holds for all. */
  join(synchronous: Config['synchronous']): this {
    this.#users++;
    if (synchronous === 'FULL' && this.#synchronous !== 'FULL') {
      this.#synchronous = 'FULL';
      this.#database?.exec('PRAGMA synchronous = FULL');
    }
    return this;
  }

  /** The last one closes the file; a database that was handed in stays open. */
  release(): void {
    if (this.#users === 1) this.#close();
    this.#users--;
    if (this.#users === 0 && typeof this.#source === 'string' && shared.get(this.#source) === this)
      shared.delete(this.#source);
  }

  /** Whether another file, or none, is where the open one was. */
  isOrphaned(): boolean {
    if (this.#file === undefined || typeof this.#source !== 'string') return false;
    const now = identityOf(this.#source);
    return now !== 'unknown' && (now === 'missing' || now.ino !== this.#file.ino || now.dev !== this.#file.dev);
  }

  /**
   * Statements for a pair of tables, which are made if need be. May throw that the file is locked, and go on where it
   * stopped when it is called again.
   *
   * @throws SessionError when the file was deleted or replaced: what is written to it now nobody would ever see
   */
  statements(names: TableNames): Statements {
    return this.#tables(names).statements;
  }

  /** The database, open and with its tables. */
  database(names: TableNames): Database {
    return this.#tables(names).database;
  }

  /**
   * The tables of branches, where the file has them for this pair of tables; looked up anew whenever tables of the file
   * changed, which another process may do. Inside the same call as what is done with them.
   */
  branches(names: TableNames): Branches {
    // Whoever asks has its statements already, in this very step: that the file is still there was looked at then.
    const tables = this.#known.get(keyOf(names)) ?? this.#tables(names);
    tables.schema ??= tables.database.prepare('PRAGMA schema_version');
    const { schema_version: version } = tables.schema.get() as { schema_version: unknown };
    if (tables.branches === undefined || tables.branchesOf !== version) {
      const owner = branchOwner(tables.database, names);
      tables.branches =
        owner === 'ours' ? new BranchStatements(tables.database, names, hasAllBranchTables(tables.database)) : owner;
      tables.branchesOf = version;
    }
    return tables.branches;
  }

  /** The same for a change, inside its transaction: what older versions of Python's class did not have yet is made. */
  branchesToChange(names: TableNames): Branches {
    const branches = this.branches(names);
    if (!(branches instanceof BranchStatements) || branches.isWhole) return branches;
    createBranchTables(this.database(names), names);
    return this.branches(names);
  }

  #tables(names: TableNames): Tables {
    if (this.#users === 0)
      throw new SessionClosedError('The store of this session was closed, and its database with it.');
    if (this.isOrphaned()) this.#leaveOrphan();
    const key = keyOf(names);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const database = this.#open();
    // First the check, which only reads: a file that is not ours stays as it is.
    const missing = missingTables(database, names);
    if (typeof this.#source === 'string') useWriteAheadLog(database);
    this.#transaction ??= { begin: database.prepare('BEGIN IMMEDIATE'), commit: database.prepare('COMMIT') };
    if (missing.length > 0) this.transaction(() => createTables(database, names));
    const tables: Tables = { database, statements: new Statements(database, names) };
    this.#known.set(key, tables);
    return tables;
  }

  /** All or nothing. `work` must not wait for anything: whatever else ran meanwhile would join the transaction. */
  transaction<T>(work: () => T): T {
    if (this.#transaction === undefined) throw new SessionError('The database of this session is not open.');
    const { begin, commit } = this.#transaction;
    begin.run();
    try {
      const result = work();
      commit.run();
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    }
  }

  #leaveOrphan(): void {
    if (this.#known.size > 0)
      throw new SessionError(
        'The database file of this session was deleted or replaced while it was open; nothing was read or written. Make a new session object to go on with the file that is there now.',
      );
    // Nothing was read or written yet: the file that is there now will do.
    this.#close();
  }

  #open(): Database {
    if (this.#lost)
      throw new SessionError(
        'The database of this session could not undo a failed write and can no longer be used. Open it anew.',
      );
    if (this.#database !== undefined) return this.#database;
    if (typeof this.#source !== 'string') return (this.#database = this.#source);
    const database = openDatabase(this.#source);
    const file = this.#source === ':memory:' ? 'unknown' : identityOf(this.#source);
    this.#file = typeof file === 'string' ? undefined : file;
    try {
      database.exec(`PRAGMA busy_timeout = 0; PRAGMA foreign_keys = OFF; PRAGMA synchronous = ${this.#synchronous}`);
    } catch (error) {
      database.close();
      throw error;
    }
    return (this.#database = database);
  }

  #rollback(): void {
    try {
      this.#database?.exec('ROLLBACK');
    } catch (error) {
      // SQLite itself undoes some failures (a full disk); then there is nothing left to undo.
      if (error instanceof Error && /no transaction is active/i.test(error.message)) return;
      this.#replace();
    }
  }

  /** A connection that may still be inside a transaction would keep its lock: a file is opened anew, others are lost. */
  #replace(): void {
    this.#lost = typeof this.#source !== 'string' || this.#source === ':memory:';
    try {
      this.#close();
    } catch {
      // The failed write is what its caller gets to know.
    }
  }

  #close(): void {
    const database = this.#database;
    if (database === undefined) return;
    if (typeof this.#source === 'string') (database as OwnedDatabase).close();
    this.#database = undefined;
    this.#file = undefined;
    this.#transaction = undefined;
    this.#known.clear();
  }
}

const keyOf = ({ sessions, messages }: TableNames): string => `${sessions} ${messages}`;

/** Readers and writers of several processes at once. Some file systems can't; SQLite then keeps what it has. */
function useWriteAheadLog(database: Database): void {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode').get() as { journal_mode: unknown };
  if (mode !== 'wal' && mode !== 'memory') database.prepare('PRAGMA journal_mode = WAL').get();
}

/** A pair of tables in an open database. */
interface Tables {
  readonly database: Database;
  readonly statements: Statements;
  schema?: Statement;
  branches?: Branches;
  /** The version of the file's tables that `branches` is of. */
  branchesOf?: unknown;
}

/** What a file has for branches of a pair of tables: nothing, statements, or what can't be used and why. */
export type Branches = BranchStatements | Exclude<BranchOwner, 'ours'>;

interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

/** Costs some microseconds. `unknown`: the system does not tell, which is no reason to stop. */
function identityOf(path: string): FileIdentity | 'missing' | 'unknown' {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'missing';
  } catch {
    return 'unknown';
  }
}

/** Of a file that may not exist yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    try {
      return join(realpathSync(dirname(path)), basename(path));
    } catch {
      return path;
    }
  }
}
