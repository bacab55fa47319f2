import { setOwn } from '../base/json.ts';
import type { JsonObject } from '../items/wire.ts';
import { contextInternals } from '../state/context.ts';
import type { RunContext } from '../state/context.ts';
import type { LedgerEntry } from '../state/ledger.ts';
import type { AgentGraph } from './agents.ts';
import { writeApprovals } from './approvals.ts';
import { writeContextValue } from './context-value.ts';
import type { ContextOptions } from './context-value.ts';
import { compact } from './json.ts';
import { plainJson } from './plain.ts';
import { writeUsage } from './usage-json.ts';
import type { UsageExtras } from './usage-json.ts';

/** What the record keeps of a context's JSON that the context itself does not hold. */
export interface ContextForeign extends JsonObject {
  readonly usage?: UsageExtras;
  /** The stored value that needs a deserializer, and what was said about it; counts while the run still has that value. */
  readonly value?: JsonObject;
  readonly meta?: JsonObject;
}

/** `context` of a snapshot (STATE §12.2). */
export function writeContext(
  context: RunContext,
  foreign: ContextForeign | undefined,
  graph: AgentGraph,
  options: ContextOptions,
): JsonObject {
  const { value, usage, approvals, ledger, toolInput } = contextInternals(context);
  const written = writeContextValue(value, options);
  const isStored = foreign?.meta !== undefined && foreign.value === value && options.contextSerializer === undefined;
  return compact({
    usage: writeUsage(usage.read(), foreign?.usage),
    ...writeApprovals(approvals, graph),
    tool_invocations: writeLedger(ledger.entries()),
    context: written.value,
    context_meta: isStored ? foreign.meta : written.meta,
    tool_input: toolInput === undefined ? undefined : plainJson(toolInput),
  });
}

/** `context.tool_invocations`. */
function writeLedger(entries: Iterable<LedgerEntry>): JsonObject {
  const rows: Record<string, JsonObject> = {};
  for (const { type, callId, approvalScope, fingerprint, executed, completed } of entries) {
    setOwn(rows, callId, { type, approval_scope: approvalScope, fingerprint, executed, completed });
  }
  return rows;
}
