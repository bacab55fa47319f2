import { getLogger } from '../base/logger.ts';
import type { AgentInputItem } from '../items/items.ts';
import type { RunContext } from '../state/context.ts';
import { appendItems, popNewest, readItems } from './calls.ts';
import type { Session } from './contract.ts';

/** Items before the suffix that are looked at too: they tell a tail that lost it from one that still shows a part of it. */
const BEFORE = 2;
/** Looks at the tail afterwards, and what the waits between them grow by. */
const LOOKS = 5;
const LOOK_AGAIN_AFTER_MS = 100;

export interface Rewind {
  readonly session: Session;
  /** What the history should end with. */
  readonly suffix: readonly AgentInputItem[];
  readonly context: RunContext | undefined;
  /** Makes items comparable. */
  readonly digest: (item: AgentInputItem) => string;
}

/**
 * Takes these items away from the end of a session that has no history transactions: all of them or nothing (SESS-111). One
 * by one, the newest first, and only while the history ends with them. What somebody else put there meanwhile is put back,
 * and so is what was taken before a pop failed.
 *
 * @returns whether all of them are gone; `false`: the history is as it was
 */
export async function rewind(how: Rewind): Promise<boolean> {
  const wanted = how.suffix.map(how.digest);
  if (wanted.length === 0) return true;
  const count = wanted.length + BEFORE;
  const tail = await readDigests(how, count);
  if (!endsWith(tail, wanted) || !(await popAll(how, wanted))) return false;
  const before = tail.slice(0, -wanted.length);
  for (let look = 1; isLingering(before, wanted, await readDigests(how, count)); look++) {
    if (look === LOOKS) {
      warn(how, 'Items that were taken from the end of a session are still read from it.', wanted.length);
      break;
    }
    await new Promise<void>((resolve) => void setTimeout(resolve, look * LOOK_AGAIN_AFTER_MS));
  }
  return true;
}

async function readDigests({ session, context, digest }: Rewind, count: number): Promise<readonly string[]> {
  return (await readItems(session, count, context)).map(digest);
}

/** Whether all were popped; else they are back. */
async function popAll(how: Rewind, wanted: readonly string[]): Promise<boolean> {
  const popped: AgentInputItem[] = [];
  for (const digest of wanted.toReversed()) {
    let newest: AgentInputItem | undefined;
    try {
      newest = await popNewest(how.session, how.context);
    } catch (error) {
      // The failed pop is what the caller has to hear, not that the rest could not be put back either.
      await putBack(how, popped).catch(() => undefined);
      throw error;
    }
    if (newest !== undefined) popped.unshift(newest);
    if (newest === undefined || how.digest(newest) !== digest) {
      await putBack(how, popped);
      return false;
    }
  }
  return true;
}

async function putBack(how: Rewind, popped: readonly AgentInputItem[]): Promise<void> {
  if (popped.length === 0) return;
  const { session, context } = how;
  try {
    await appendItems(session, popped, context);
  } catch (error) {
    getLogger('session').error('Items that were taken from the end of a session could not be put back.', {
      sessionId: session.sessionId,
      count: popped.length,
      error: error instanceof Error ? error.name : typeof error,
    });
    throw error;
  }
  warn(
    how,
    'Items were taken from the end of a session and put back: others changed it, or a pop failed.',
    popped.length,
  );
}

function warn({ session }: Rewind, message: string, count: number): void {
  getLogger('session').warn(message, { sessionId: session.sessionId, count });
}

/** Whether the tail still shows some of the suffix behind what stood before it: a store whose deletes take their time. */
function isLingering(before: readonly string[], suffix: readonly string[], tail: readonly string[]): boolean {
  for (let count = 1; count <= suffix.length && count <= tail.length; count++) {
    if (!suffix.includes(tail.at(-count) ?? '')) return false;
    if (endsWith(tail.slice(0, -count), before)) return true;
  }
  return false;
}

function endsWith(digests: readonly string[], end: readonly string[]): boolean {
  const from = digests.length - end.length;
  return from >= 0 && end.every((digest, index) => digests[from + index] === digest);
}
