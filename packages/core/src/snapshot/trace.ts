import { sha256Hex } from '../base/digest.ts';
import type { JsonObject } from '../items/wire.ts';
import type { TraceRecord } from '../state/record.ts';
import { compact } from './json.ts';

/** The key itself is written on request only; its digest always, so that a resume can tell whether it has the same one. */
export function writeTrace(trace: TraceRecord, includeApiKey: boolean): JsonObject {
  const { apiKey } = trace;
  return compact({
    object: 'trace',
    id: trace.traceId,
    workflow_name: trace.workflowName,
    group_id: trace.groupId,
    metadata: trace.metadata as JsonObject | undefined,
    ...trace.extra,
    tracing_api_key_hash: apiKey === undefined ? trace.apiKeyHash : sha256Hex(apiKey),
    tracing_api_key: includeApiKey ? apiKey : undefined,
  });
}
