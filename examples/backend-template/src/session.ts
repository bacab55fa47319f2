import { UserError } from '@agents/core';
import type { AgentInputItem } from '@agents/core';
import { checkOptions, kinds, sessionOptionChecks, StoredSession } from '@agents/core/session';
import type { SessionOptions } from '@agents/core/session';

import type { Database } from './database.ts';
import { TemplateHistory } from './history.ts';

/** @throws UserError for unknown options, values of a wrong kind and a missing database, before anything is done */
export function checkConnected(
  options: { readonly database: Database },
  checks: typeof sessionOptionChecks | undefined,
  where: string,
): void {
  checkOptions(options, { ...checks, database: kinds.object }, where);
  if ((options as Partial<typeof options>)?.database === undefined)
    throw new UserError(`${where}: the option \`database\` is missing. Pass the Database that holds the sessions.`);
}

/** Of each call, unless `operationTimeoutMs` says otherwise. */
export const TIMEOUT_MS = 30_000;

export interface TemplateSessionOptions extends SessionOptions {
  database: Database;
}

/** Ids, limits, item checks, order of calls, corrupt records, timeouts, unknown outcomes: `StoredSession` has them. */
export class TemplateSession<T extends object = AgentInputItem> extends StoredSession<T> {
  constructor(sessionId: string, options: TemplateSessionOptions) {
    checkConnected(options, sessionOptionChecks, 'TemplateSession');
    const { database, ...rest } = options;
    super(sessionId, (id) => new TemplateHistory(id, database), {
      name: 'TemplateSession',
      options: rest,
      timeoutMs: TIMEOUT_MS,
    });
  }
}
