import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';

import { scriptedChanges } from './changes.ts';
import { connect } from './connection.ts';
import { RedisHistory } from './history.ts';
import { keysOf } from './keys.ts';
import { readOptions } from './options.ts';
import type { RedisConnection, RedisSessionOptions } from './options.ts';
import { watchedChanges } from './watched.ts';

const TIMEOUT_MS = 30_000;

/**
 * Keys of the Python SDK. Each change is one script that may be sent twice, so a client that sends again what was not
 * answered does no harm. Nothing is sent before the first call. Errors that the server or ioredis gives pass unchanged,
 * but for a change whose answer was lost: `SessionOutcomeUnknownError`.
 *
 * @throws UserError `session_id_invalid`, and for options of a wrong kind
 * @example
 * const client = new Redis('redis://localhost:6379');
 * const session = new RedisSession('user-42', { client, ttlMs: 7 * 24 * 60 * 60 * 1000 });
 * await run(agent, 'My name is Ada.', { session });
 */
export class RedisSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(sessionId: string, options: RedisConnection & RedisSessionOptions) {
    const config = readOptions(options, 'RedisSession');
    const open = (id: string): RedisHistory => {
      const keys = keysOf(id, config.keys);
      const connection = connect(config.target);
      const changes = config.scripting === 'lua' ? scriptedChanges : watchedChanges;
      return new RedisHistory(id, { keys, connection, changes, ttlMs: config.ttlMs });
    };
    super(sessionId, open, { name: 'RedisSession', options: config.session, timeoutMs: TIMEOUT_MS });
  }
}
