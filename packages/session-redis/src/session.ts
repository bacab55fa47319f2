import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';

import { connect } from './connection.ts';
import type { Connection } from './connection.ts';
import { RedisHistory } from './history.ts';
import type { RedisHistorySetup } from './history.ts';
import { changesBy, readOptions } from './options.ts';
import type { Config, RedisConnection, RedisSessionOptions } from './options.ts';
import { keysOf } from './keys.ts';

export const TIMEOUT_MS = 30_000;

/** For sessions of a store, which share its connection. */
export const ofStore: unique symbol = Symbol('agents.session-redis');

export interface StoreParts {
  readonly config: Config;
  readonly connection: Connection;
  readonly written: ((sessionId: string) => Promise<void>) | undefined;
}

/**
 * Keys of the Python SDK. Each change is one script that may be sent twice, or late, so a client that sends again what was
 * not answered does no harm. Nothing is sent before the first call. Errors that the server or ioredis gives pass unchanged,
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
    const parts = (options as { readonly [ofStore]?: StoreParts } | undefined)?.[ofStore];
    const config = parts?.config ?? readOptions(options, 'RedisSession');
    const open = (id: string): RedisHistory =>
      new RedisHistory(id, setupOf(id, parts ?? { config, connection: undefined, written: undefined }));
    super(sessionId, open, { name: 'RedisSession', options: config.session, timeoutMs: TIMEOUT_MS });
  }
}

/** @throws UserError `session_id_invalid` */
export function setupOf(
  sessionId: string,
  { config, connection, written }: Omit<StoreParts, 'connection'> & { readonly connection: Connection | undefined },
): RedisHistorySetup {
  return {
    keys: keysOf(sessionId, config.keys),
    connection: connection ?? connect(config.target),
    changes: changesBy(config.scripting),
    ttlMs: config.ttlMs,
    written,
  };
}
