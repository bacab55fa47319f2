import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';

import { readOptions, sharedConnection } from './arguments.ts';
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
  constructor(sessionId: string, options?: string | URL | SQLiteSessionOptions) {
    const config = readOptions(options);
    const shared = sharedConnection(options);
    super(sessionId, (id) => new SQLiteHistory(id, config, shared), {
      name: 'SQLiteSession',
      options: config.session,
      encoding: { style: 'spaced' },
    });
  }
}
