import { getLogger } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';
import type { HistoryBackend, ManagedSession, StoredSessionSetup } from '@agents/core/session';

import { DrizzleHistory } from './history.ts';
import { TIMEOUT_MS, checkIdFor, readOptions } from './options.ts';
import type { DrizzleSessionOptions } from './options.ts';

/** Whether it has history transactions is known with the first call only. */
const Base: new <T extends object>(
  sessionId: string,
  open: (sessionId: string) => HistoryBackend,
  setup: StoredSessionSetup,
) => Omit<StoredSession<T>, 'applyHistoryTransaction'> = StoredSession;

/** Databases of which was said that they have no table of operations. */
const told = new WeakSet<object>();

/**
 * PostgreSQL, MySQL, MariaDB and SQLite by the `db` of drizzle-orm that you have; tables of the Python SDK's SQLAlchemy
 * session, which may use them at the same time. The database is yours and is never closed: `close()` does nothing.
 * Errors of the driver pass unchanged, without what drizzle wraps around them, which shows every value.
 *
 * @throws UserError `session_id_invalid`, and for options of a wrong kind
 * @example
 * const db = drizzle(new Pool({ connectionString: process.env.DATABASE_URL }));
 * await createTables(db); // from '@agents/session-drizzle/pg'; in production: a migration by drizzle-kit
 * const session = new DrizzleSession('user-42', { db });
 * await run(agent, 'My name is Ada.', { session });
 */
export class DrizzleSession<T extends object = AgentInputItem> extends Base<T> {
  /** `undefined` once the operations table was found missing, and with `operations: 'off'`. */
  declare readonly applyHistoryTransaction?: ManagedSession<T>['applyHistoryTransaction'];

  constructor(sessionId: string, options: DrizzleSessionOptions) {
    const config = readOptions(options, 'DrizzleSession');
    const withoutOperations = (): void => {
      Object.defineProperty(this, 'applyHistoryTransaction', { value: undefined, configurable: true });
    };
    const onNoOperations = (): void => {
      withoutOperations();
      if (told.has(config.db)) return;
      told.add(config.db);
      getLogger('session').warn(
        `There is no table '${config.tables.places.operations.name}': sessions work without history transactions, so a write whose answer was lost cannot be settled by its id. A migration of the tables of @agents/session-drizzle/${config.dialect} makes it; operations: 'off' says that this is meant.`,
      );
    };
    const open = (id: string): DrizzleHistory => {
      checkIdFor(config.dialect, id);
      return new DrizzleHistory(id, config, onNoOperations);
    };
    super(sessionId, open, {
      name: 'DrizzleSession',
      options: config.session,
      encoding: { ascii: config.ascii },
      timeoutMs: TIMEOUT_MS,
    });
    if (config.operations === 'off') withoutOperations();
  }
}
