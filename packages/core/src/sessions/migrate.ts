import { checkSession } from '../agent/session-shape.ts';
import { UserError } from '../base/errors.ts';
import { randomHex } from '../base/ids.ts';
import type { AgentInputItem } from '../items/items.ts';
import { supports } from './contract.ts';
import type { Session } from './contract.ts';
import { SessionError } from './errors.ts';
import { convertJsSdkItems } from './js-sdk-items.ts';
import { settled } from './settled.ts';

const BATCH = 500;

/**
 * Copies a history in batches of 500, converting items of npm `@openai/agents`; resolves to the count. `to` has to be empty:
 * what is copied stands there as if the conversation had begun there. If a batch fails, those before it stay: clear `to` and
 * try again.
 *
 * @throws UserError when both are one session, or one is none; SessionError when `to` holds items
 * @example await migrateSession(new SQLiteSession('user-42', 'chat.db'), new RedisSession('user-42', { client }));
 */
export async function migrateSession(from: Session<object>, to: Session): Promise<number> {
  checkSession(from, 'The first argument of migrateSession()');
  checkSession(to, 'The second argument of migrateSession()');
  if ((from as unknown) === to) throw new UserError('migrateSession() needs two sessions.');
  if ((await to.getItems(1)).length > 0)
    throw new SessionError(
      'The session to copy to holds items already; nothing was copied. Clear it, or take another.',
      {
        sessionId: to.sessionId,
      },
    );
  // A limit of the session is for runs; here it would lose what came before.
  const limit = from.sessionSettings?.limit;
  const items =
    limit === undefined || limit === null ? await from.getItems() : await from.getItems(Number.MAX_SAFE_INTEGER);
  const converted = convertJsSdkItems(items);
  for (let at = 0; at < converted.length; at += BATCH) await append(to, converted.slice(at, at + BATCH));
  return converted.length;
}

/** An unknown outcome is settled by the same operation, where the session knows operations. */
async function append(to: Session, items: readonly AgentInputItem[]): Promise<void> {
  if (!supports(to, 'transactions')) {
    await to.addItems(items);
    return;
  }
  const operation = { operationId: `migrate-${randomHex(16)}`, transaction: { type: 'append_items', items } } as const;
  await settled(async () => {
    await to.applyHistoryTransaction(operation);
  });
}
