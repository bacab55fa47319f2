import { randomHex } from '../base/ids.ts';
import { getLogger } from '../base/logger.ts';
import { itemDigest } from '../items/convert.ts';
import type { AgentInputItem } from '../items/items.ts';
import { appendItems, readItems, forgetAll } from '../sessions/calls.ts';
import { supports } from '../sessions/contract.ts';
import type { Session, TransactionalSession, VersionedSession } from '../sessions/contract.ts';
import { SessionVersionConflictError } from '../sessions/errors.ts';
import { settled } from '../sessions/settled.ts';
import type { RunContext } from '../state/context.ts';

/** More than any session holds: reads past a limit of the session's own. */
export const ALL: number = Number.MAX_SAFE_INTEGER;
const ATTEMPTS = 3;
/** Items that others may have appended while the service compacted. */
const MOST_APPENDED = 1024;

export interface Replacement {
  readonly session: Session;
  readonly ctx: RunContext | undefined;
  /** What was compacted, as it is stored. */
  readonly old: readonly AgentInputItem[];
  readonly compacted: readonly AgentInputItem[];
}

/**
 * Puts the compacted items in place of the newest ones; what was appended behind these meanwhile stays behind. One
 * operation, which may be repeated.
 *
 * @returns false: the items are not there any more (somebody cleared or replaced them), and nothing was changed
 */
export async function replaceSuffix({
  session,
  ...how
}: Replacement & { session: TransactionalSession }): Promise<boolean> {
  const { ctx, old, compacted } = how;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const appended = await appendedBehind({ session, ...how });
    if (appended === undefined) return false;
    const transaction = {
      type: 'replace_suffix',
      expectedSuffix: [...old, ...appended],
      replacement: [...compacted, ...appended],
    } as const;
    const operation = { operationId: randomHex(16), transaction };
    try {
      await settled(() => session.applyHistoryTransaction(operation, ctx));
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'session_suffix_mismatch') throw error;
    }
  }
  return false;
}

async function appendedBehind({ session, ctx, old }: Replacement): Promise<readonly AgentInputItem[] | undefined> {
  const wanted = old.map(digest);
  for (let extra = 16; extra <= MOST_APPENDED; extra *= 4) {
    const count = old.length + extra;
    const tail = await readItems(session, count, ctx);
    const digests = tail.map(digest);
    for (let start = tail.length - old.length; start >= 0; start--)
      if (wanted.every((value, index) => digests[start + index] === value)) return tail.slice(start + old.length);
    if (tail.length < count) return undefined;
  }
  return undefined;
}

/** All of the history, where it still begins with what was compacted (SESS-315, 316). @returns as `replaceSuffix` */
export async function replaceAll(replacement: Replacement): Promise<boolean> {
  const { session } = replacement;
  return supports(session, 'versions')
    ? await replaceVersioned({ ...replacement, session })
    : await replacePlain(replacement);
}

async function replaceVersioned({ session, ...how }: Replacement & { session: VersionedSession }): Promise<boolean> {
  const { ctx, old, compacted } = how;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { items, version } = await session.readHistory(ALL, ctx);
    if (!startsWith(items, old)) return false;
    const options = { ifVersion: version, operationId: randomHex(16) };
    const whole = [...compacted, ...items.slice(old.length)];
    try {
      await settled(() => session.replaceHistory(whole, options, ctx));
      return true;
    } catch (error) {
      if (!(error instanceof SessionVersionConflictError)) throw error;
    }
  }
  return false;
}

/** Two steps on a session that has no better ones: what they leave half done is put back. */
async function replacePlain({ session, ctx, old, compacted }: Replacement): Promise<boolean> {
  const items = await readItems(session, ALL, ctx);
  if (!startsWith(items, old)) return false;
  const whole = [...compacted, ...items.slice(old.length)];
  try {
    await forgetAll(session, ctx);
    await appendItems(session, whole, ctx);
    return true;
  } catch (error) {
    await restore(session, ctx, items).catch((second: unknown) => {
      getLogger('session').error('A history could not be put back after a compaction failed.', {
        sessionId: session.sessionId,
        error: second instanceof Error ? second.name : typeof second,
      });
    });
    throw error;
  }
}

/** Only what really changed is put back: a clear that failed may have done nothing. */
async function restore(session: Session, ctx: RunContext | undefined, items: readonly AgentInputItem[]): Promise<void> {
  const left = await readItems(session, ALL, ctx);
  if (left.length === items.length && startsWith(left, items)) return;
  if (left.length > 0) await forgetAll(session, ctx);
  await appendItems(session, items, ctx);
}

function startsWith(items: readonly AgentInputItem[], head: readonly AgentInputItem[]): boolean {
  if (items.length < head.length) return false;
  return head.every((item, index) => {
    const other = items[index];
    return other !== undefined && digest(item) === digest(other);
  });
}

function digest(item: AgentInputItem): string {
  return itemDigest(item, 'raw');
}
