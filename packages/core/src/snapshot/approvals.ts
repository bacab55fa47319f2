import type { JsonObject, JsonValue } from '../items/wire.ts';
import type { ApprovalMap, ApprovalRecord } from '../state/approvals.ts';
import type { AgentGraph } from './agents.ts';
import { compact, own } from './json.ts';

/** The members of `context` that hold decisions (STATE §12.2). */
export function writeApprovals(approvals: ApprovalMap, graph: AgentGraph): { [key: string]: JsonValue } {
  const functions: JsonObject[] = [];
  for (const [owner, records] of approvals.functions) {
    // Written under a name that means another agent, a decision would be somebody else's.
    if (graph.identityOf(owner) === undefined || !graph.isDistinct(owner)) continue;
    for (const [key, record] of records)
      functions.push({ agent: graph.ref(owner), tool_key: key, decision: writeRecord(record) });
  }
  const hosted = approvals.hosted.map(({ identity, record }) => ({ identity, decision: writeRecord(record) }));
  hosted.sort((a, b) => (hostedOrder(a.identity) < hostedOrder(b.identity) ? -1 : 1));
  return {
    approvals: Object.fromEntries([...approvals.named].map(([key, record]) => [key, writeRecord(record)])),
    ...(functions.length > 0 && { function_tool_approvals: functions }),
    ...(hosted.length > 0 && { hosted_mcp_approvals: hosted }),
  };
}

function writeRecord(record: ApprovalRecord): JsonObject {
  return compact({
    approved: record.approved,
    rejected: record.rejected,
    rejection_messages: record.rejectionMessages.size > 0 ? Object.fromEntries(record.rejectionMessages) : undefined,
    sticky_rejection_message: record.stickyRejectionMessage,
    sticky_scope: record.stickyScope,
  });
}

/** As Python sorts: by kind, what decides most first, then by names. */
function hostedOrder(identity: JsonObject): string {
  const kind = ['server_tool', 'request', 'query'].findIndex((type) => type === own(identity, 'type'));
  return JSON.stringify([kind, ...['server_label', 'tool_name', 'request_id'].map((key) => own(identity, key) ?? '')]);
}
