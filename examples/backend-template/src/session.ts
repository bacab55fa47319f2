import type { AgentInputItem } from '@agents/core';
import { StoredSession } from '@agents/core/session';
import type { SessionOptions } from '@agents/core/session';

import type { Database } from './database.ts';
import { TemplateHistory } from './history.ts';

export interface TemplateSessionOptions extends SessionOptions {
  database: Database;
}

/** Ids, limits, item checks, order of calls, corrupt records, timeouts, unknown outcomes: `StoredSession` has them. */
export class TemplateSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(sessionId: string, { database, ...options }: TemplateSessionOptions) {
    super(sessionId, (id) => new TemplateHistory(id, database), {
      name: 'TemplateSession',
      options,
      timeoutMs: 30_000,
    });
  }
}
