import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';

import { readOptions } from './arguments.ts';
import { MongoDBHistory } from './history.ts';
import type { MongoDBConnection, MongoDBSessionOptions } from './options.ts';

/**
 * Documents of the Python SDK: a batch of items is one, so a server of its own is enough and nothing needs transactions.
 * Nothing is sent before the first call. A batch above 16 MB is a `SessionItemError`; errors of the driver pass unchanged.
 *
 * @throws UserError `session_id_invalid`, `session_name_invalid`, and for options of a wrong kind
 * @example
 * const client = new MongoClient('mongodb://localhost');
 * const session = new MongoDBSession('user-42', { client });
 * await run(agent, 'My name is Ada.', { session });
 * await client.close(); // of a session that was given a `url`: `await session.close()`
 */
export class MongoDBSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(sessionId: string, options: MongoDBConnection & MongoDBSessionOptions) {
    const config = readOptions(options, 'MongoDBSession');
    super(sessionId, (id) => new MongoDBHistory(id, config), {
      name: 'MongoDBSession',
      options: config.session,
      timeoutMs: config.timeoutMs,
    });
  }
}
