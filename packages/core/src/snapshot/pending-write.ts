import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { PendingWrite } from '../state/pending-write.ts';
import { compact } from './json.ts';

/** `pending_session_write` of a snapshot (STATE-318). */
export function writePendingWrite(write: PendingWrite): JsonObject {
  return compact({
    session_id: write.sessionId,
    items: write.items as unknown as readonly JsonValue[],
    before: write.before,
    persisted_count: write.persistedCount,
    response_id: write.responseId,
    store: write.store,
    // Python leaves it out of held batches.
    has_local_tool_outputs:
      write.hasLocalToolOutputs || write.held === undefined ? write.hasLocalToolOutputs : undefined,
    append_acknowledged: write.acknowledged ? true : undefined,
    ...(write.held && {
      held: true,
      reasoning_item_id_policy: write.held.policy,
      current_response: { turn: write.held.turn, start: write.held.start },
    }),
    compaction_model_exchange: write.exchange && {
      item_digests: write.exchange.itemDigests,
      reasoning_item_id_policy: write.exchange.reasoningItemIdPolicy,
    },
  });
}
