import { operationMismatch } from '@agents/core/session';
import type { HistoryOperationKey } from '@agents/core/session';

import { batchKey } from './layout.ts';
import type { Collections, SessionDocument } from './layout.ts';
import type { State } from './read.ts';

/** Whole-history operations that a session remembers. */
export const REMEMBER_LAST = 256;

/**
 * The version of the first time, if the operation was applied before to what the session is now: nothing is remembered of
 * one that was cleared, removed or whose life is over, whatever is left of its batches.
 *
 * @param key its id is that of the stored operation (`operationKey`)
 * @throws UserError `session_operation_mismatch`
 */
export async function appliedVersion(
  { messages }: Collections,
  key: HistoryOperationKey,
  { document, expired }: Pick<State, 'document' | 'expired'>,
): Promise<string | undefined> {
  if (document === undefined || expired) return undefined;
  const replaced = versionAmong(document, key);
  if (replaced !== undefined) return replaced;
  const batch = await messages.findOne({ _id: batchKey(document, key.id) }, { projection: { operation: 1 } });
  return batch?.operation && versionIf(batch.operation, key);
}

/** Of the operations on the whole history alone. */
export function versionAmong(
  session: Pick<SessionDocument, '_operations'>,
  key: HistoryOperationKey,
): string | undefined {
  const known = session._operations?.find(({ id }) => id === key.id);
  return known && versionIf(known, key);
}

function versionIf(known: { readonly digest: string; readonly version: string }, key: HistoryOperationKey): string {
  if (known.digest !== key.digest) throw operationMismatch();
  return known.version;
}
