import { usageFromJSON, UsageAccumulator } from '../base/usage.ts';
import type { JsonObject } from '../items/wire.ts';
import type { ApprovalMap } from '../state/approvals.ts';
import { contextInternals } from '../state/context.ts';
import type { RunContext } from '../state/context.ts';
import type { AgentGraph } from './agents.ts';
import { readApprovals, writeApprovals } from './approvals.ts';
import { readContextValue, writeContextValue } from './context-value.ts';
import type { ContextOptions, RestoreContextOptions } from './context-value.ts';
import { compact, own } from './json.ts';
import type { Json } from './json.ts';
import { writeLedger } from './ledger.ts';
import { plainJson } from './plain.ts';
import { usageExtras, writeUsage } from './usage-json.ts';
import type { UsageExtras } from './usage-json.ts';
import type { Version } from './versions.ts';

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

/** A context as it is read. A `RunContext` of the caller is not touched before everything else was found to be right. */
export interface StoredContext {
  readonly context: RunContext;
  readonly usage: UsageAccumulator;
  readonly approvals: ApprovalMap;
  readonly toolInput: unknown;
  readonly foreign: ContextForeign;
}

/** Everything of the context but the ledger, which needs the items. */
export function readContext(
  json: JsonObject,
  graph: AgentGraph,
  version: Version,
  options: RestoreContextOptions,
): StoredContext {
  const approvals = readApprovals(json, graph, version);
  const context = readContextValue(json, options);
  return {
    context,
    usage: new UsageAccumulator(usageFromJSON(own(json, 'usage'))),
    approvals,
    toolInput: options.context === undefined ? own(json, 'tool_input') : undefined,
    foreign: foreignOf(json, context.context),
  };
}

function foreignOf(json: JsonObject, value: unknown): ContextForeign {
  const foreign: Json = { usage: usageExtras(own(json, 'usage')) };
  const meta = own(json, 'context_meta') as JsonObject | undefined;
  if (meta?.['requires_deserializer'] === true && value !== null && value === own(json, 'context')) {
    foreign['value'] = value as JsonObject;
    foreign['meta'] = meta;
  }
  return compact(foreign);
}
