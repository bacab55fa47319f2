import { operationMismatch } from '@agents/core/session';
import type { HistoryOperationKey } from '@agents/core/session';

import type { Collections, SessionDocument } from './layout.ts';

/** Whole-history operations that a session remembers. */
export const REMEMBER_LAST = 256;

/**
 * The version of the first time, if the operation was applied before.
 * @param key its id is that of the stored operation (`operationKey`)
 * @throws UserError `session_operation_mismatch`
 */
export async function appliedVersion(
  { messages }: Collections,
  key: HistoryOperationKey,
  session: Pick<SessionDocument, '_operations'> | null | undefined,
): Promise<string | undefined> {
  const replaced = versionAmong(session, key);
  if (replaced !== undefined) return replaced;
  const batch = await messages.findOne({ _id: key.id }, { projection: { operation: 1 } });
  return batch?.operation && versionIf(batch.operation, key);
}

/** Of the operations on the whole history alone. */
export function versionAmong(
  session: Pick<SessionDocument, '_operations'> | null | undefined,
  key: HistoryOperationKey,
): string | undefined {
  const known = session?._operations?.find(({ id }) => id === key.id);
  return known && versionIf(known, key);
}

function versionIf(known: { readonly digest: string; readonly version: string }, key: HistoryOperationKey): string {
  if (known.digest !== key.digest) throw operationMismatch();
  return known.version;
}
