import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import { compact, own } from './json.ts';

/** `pending_session_write` of a snapshot (STATE-318). */
export function writePendingWrite(write: PendingWrite): JsonObject {
  return compact({
    session_id: write.sessionId,
    items: write.items as unknown as readonly JsonValue[],
    before: write.before,
    persisted_count: write.persistedCount,
    response_id: write.responseId,
    store: write.store,
    // A batch read from a label that did not know this member is written without it only while it says nothing.
    has_local_tool_outputs:
      write.hasLocalToolOutputs || own(write.foreign, 'held') !== true ? write.hasLocalToolOutputs : undefined,
    append_acknowledged: write.acknowledged ? true : undefined,
    ...write.foreign,
  });
}
