import { UserError } from '../base/errors.ts';
import { checkOptions, kinds } from '../base/options.ts';
import { decodeItem } from './codec.ts';
import { pauses } from './decode.ts';
import { SessionVersionConflictError } from './errors.ts';
import type { HistoryBackend } from './history-backend.ts';
import type { BoundedStore } from './bounded-store.ts';
import type { SessionPageResult } from './store-backend.ts';
import { date } from './store-query.ts';
import { headCut } from './store-turns.ts';
import type { SessionInfo } from './store.ts';
import type { StoreLife } from './store-life.ts';

/** Sessions that are looked at by one call. */
const PAGE = 500;
/** Sessions that are deleted by one call: its time is for some of them, not for a whole page. */
const BATCH = 50;
const ATTEMPTS = 3;

export interface PruneOptions {
  idleForMs?: number;
  olderThan?: Date;
  maxItems?: number;
  dryRun?: boolean;
}

/**
 * Goes through all sessions in batches (SESS-374); when the store is closed it stops between two of them.
 *
 * @throws UserError for wrong options, and when none of the limits is given; SessionClosedError when it was stopped
 */
export async function pruneSessions(
  store: BoundedStore,
  options: PruneOptions,
  where: string,
  life: StoreLife,
): Promise<{ sessions: number; items: number }> {
  checkOptions(
    options,
    { idleForMs: kinds.integer(0), olderThan: date, maxItems: kinds.integer(1), dryRun: kinds.boolean },
    where,
  );
  // Without options it is told below what is missing.
  const given = (options as PruneOptions | undefined) ?? {};
  const { maxItems, dryRun = false } = given;
  const idleSince = idleLimit(given);
  if (idleSince === undefined && maxItems === undefined)
    throw new UserError(`${where} needs 'idleForMs', 'olderThan' or 'maxItems': without one nothing is to be pruned.`);
  const gone = { sessions: 0, items: 0 };
  const pause = pauses();
  const next = async (): Promise<void> => {
    await pause();
    life.checkOpen();
  };
  let page: SessionPageResult | undefined;
  do {
    if (page !== undefined) await next();
    page = await store.list({
      order: 'id',
      limit: PAGE,
      after: page?.next,
      withCount: maxItems !== undefined || dryRun,
    });
    const idle = page.sessions.filter((info) => isIdle(info, idleSince));
    if (dryRun) {
      gone.sessions += idle.length;
      for (const { itemCount = 0 } of idle) gone.items += itemCount;
    } else {
      for (let at = 0; at < idle.length; at += BATCH) {
        await next();
        const some = idle.slice(at, at + BATCH).map(({ sessionId }) => sessionId);
        const removed = await store.remove(some, idleSince);
        gone.sessions += removed.sessions;
        gone.items += removed.items;
      }
    }
    if (maxItems === undefined) continue;
    for (const info of page.sessions) {
      if (isIdle(info, idleSince) || (info.itemCount ?? 0) <= maxItems) continue;
      await next();
      const history = historyOf(store, info.sessionId);
      if (history !== undefined) gone.items += await cutHead(history, maxItems, dryRun);
    }
  } while (page.next !== undefined);
  if (idleSince === undefined || dryRun) return gone;
  await next();
  await store.sweep(idleSince);
  return gone;
}

/** `undefined`: somebody else wrote it under an id that no session of ours has. It does not hold up the others. */
function historyOf(store: BoundedStore, sessionId: string): Pick<HistoryBackend, 'read' | 'write'> | undefined {
  try {
    return store.history(sessionId);
  } catch (error) {
    if (error instanceof UserError && error.code === 'session_id_invalid') return undefined;
    throw error;
  }
}

/** Both limits have to be passed: the earlier time counts. */
function idleLimit({ idleForMs, olderThan }: PruneOptions): Date | undefined {
  const since = idleForMs === undefined ? undefined : new Date(Date.now() - idleForMs);
  if (since === undefined || olderThan === undefined) return since ?? olderThan;
  return since < olderThan ? since : olderThan;
}

function isIdle({ updatedAt }: SessionInfo, since: Date | undefined): boolean {
  return since !== undefined && updatedAt !== undefined && updatedAt < since;
}

/** How many items went. Nothing, if others write all the time: the next prune will find it. */
async function cutHead(
  history: Pick<HistoryBackend, 'read' | 'write'>,
  maxItems: number,
  dryRun: boolean,
): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { records, version } = await history.read(undefined);
    const valid = records.flatMap(({ text }) => {
      const item = text === undefined ? undefined : decodeItem<object>(text);
      return text === undefined || item === undefined ? [] : [{ text, item }];
    });
    const from = headCut(
      valid.map(({ item }) => item),
      maxItems,
    );
    if (from === 0 || dryRun) return from;
    try {
      const texts = valid.slice(from).map(({ text }) => text);
      await history.write({ type: 'replace', texts, ifVersion: version, upkeep: true });
      return from;
    } catch (error) {
      if (!(error instanceof SessionVersionConflictError)) throw error;
    }
  }
  return 0;
}
