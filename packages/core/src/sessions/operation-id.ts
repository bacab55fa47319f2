import { sha256Base64Url } from '../base/digest.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import type { StateRecord } from '../state/record.ts';

type Position = NonNullable<PendingWrite['position']>;

/**
 * Where a batch stands in its run: the same before and after a restore of the state, since it is read off the record's
 * turn and the count of items of that turn that were acknowledged before. Turn 0 is the run's input.
 */
export function batchPosition(record: StateRecord): Position {
  const isInput = record.modelResponses.length === 0;
  return isInput
    ? { turn: 0, firstItemIndex: 0 }
    : { turn: record.currentTurn, firstItemIndex: record.persistedItemCount };
}

/**
 * Id of one append of a run (SESS-101). Content alone is not enough: "yes" twice in a chat is two operations; the run's
 * key and the position tell them apart and are the same when the append is repeated.
 */
export function operationId(
  sessionId: string,
  runKey: string,
  position: Position,
  itemDigests: readonly string[],
): string {
  return sha256Base64Url(
    JSON.stringify(['agents-session-op-v1', sessionId, runKey, position.turn, position.firstItemIndex, ...itemDigests]),
  );
}
